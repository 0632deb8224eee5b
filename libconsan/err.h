/* err: errors of the input, with their position. A part of the public interface that depends
 * on no other header of consan. */
#ifndef CONSAN_ERR_H
#define CONSAN_ERR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONSAN_API __attribute__((visibility("default")))

/* The caller zeroes it before use. The first error is recorded; later ones are ignored. It owns
 * no memory. */
struct err {
	int code;       /* 0: success, else an enum err_code */
	int line, col;  /* 1-based position in the input; 0: no position */
	char text[480]; /* one clause in lower case, without a full stop */
};
enum err_code {
	ERR_NONE,
#define ERR(id, text) ERR_##id,
#include "err.def"
#undef ERR
};
/* The text of an error code, from err.def; static. */
CONSAN_API const char *err_name(int code);
/* Records an error unless *e has one; e may be NULL. Returns false, for the caller to return. */
bool err_set(struct err *e, int code, int line, int col, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

#ifdef __cplusplus
}
#endif
#endif
