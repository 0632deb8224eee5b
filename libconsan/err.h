/* err: the input is wrong, and where. A part of the public interface: no other
 * header of consan's is needed to use it. */
#ifndef CONSAN_ERR_H
#define CONSAN_ERR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONSAN_API __attribute__((visibility("default")))

/* Zero it before the first use. Who reports an error fills it once: the first
 * one wins. It owns nothing. */
struct err {
	int code;       /* 0: success, else an enum err_code */
	int line, col;  /* 1-based position in the input (PTX, options), 0: none */
	char text[480]; /* one clause, lower case, no full stop */
};
enum err_code {
	ERR_NONE,
#define ERR(id, text) ERR_##id,
#include "err.def"
#undef ERR
};
/* What kind of error this is: the text of its err.def row. Static. */
CONSAN_API const char *err_name(int code);
/* Records the first error only; always returns false, to be returned on. */
CONSAN_API bool err_set(struct err *e, int code, int line, int col, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

#ifdef __cplusplus
}
#endif
#endif
