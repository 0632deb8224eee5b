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
struct consan_err {
	int code;       /* 0: success, else an enum consan_err_code */
	int line, col;  /* 1-based position in the input; 0: no position */
	char text[480]; /* one clause in lower case, without a full stop */
};
enum consan_err_code {
	CONSAN_ERR_NONE,
#define ERR(id, text) CONSAN_ERR_##id,
#include "err.def"
#undef ERR
};
/* The text of an error code, from err.def; static. */
CONSAN_API const char *consan_err_name(int code);

#ifdef __cplusplus
}
#endif
#endif
