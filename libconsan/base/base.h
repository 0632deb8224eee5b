/* base: memory, growable text and vectors; errors are in err.h. Knows nobody.
 *
 * House rules of the vocabulary (libconsan/, flat):
 *  - no room is included from here, except by consan.c and main.c;
 *  - `struct err` says that the *input* is wrong, base_die() that *we* are;
 *    a finding about the checked kernel is neither (finding.h);
 *  - in a watched program nothing here calls exit(), base_die() excepted. */
#ifndef CONSAN_BASE_H
#define CONSAN_BASE_H

#include "libconsan/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Stops the process: an invariant of consan's own is broken, or host memory
 * ran out. Findings already made are in the records' file. */
_Noreturn void base_die(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Never NULL; zeroed. Freed with free(). */
void *base_alloc(size_t bytes);
/* ... at a multiple of `align`, a power of 2. */
void *base_alloc_aligned(size_t align, size_t bytes);
void *base_resize(void *old, size_t bytes); /* the new part is not zeroed */
char *base_strdup(const char *s);
char *base_strndup(const char *s, size_t n);

/* ---- arena: many small objects that die together ---- */
struct arena {
	struct arena_block *top;
};
void *arena_alloc(struct arena *a, size_t bytes); /* zeroed, 16-aligned */
char *arena_strndup(struct arena *a, const char *s, size_t n);
void arena_free(struct arena *a); /* the arena may be used again */

/* ---- growable text, always NUL-terminated once written ---- */
struct text {
	char *at;
	size_t n, cap;
};
void text_add(struct text *t, const char *s, size_t n);
void text_printf(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_vprintf(struct text *t, const char *fmt, va_list ap);
/* Adds the whole file. */
bool text_read(struct text *t, const char *path, struct err *e);
void text_free(struct text *t);

/* ---- growable vector: struct { T *at; size_t n, cap; } ---- */
#define VEC(T) struct { T *at; size_t n, cap; }
#define vec_push(v, x) \
	(vec_grow((void **)&(v)->at, &(v)->cap, (v)->n + 1, sizeof *(v)->at), \
	 (v)->at[(v)->n++] = (x))
#define vec_reserve(v, want) \
	vec_grow((void **)&(v)->at, &(v)->cap, (want), sizeof *(v)->at)
#define vec_free(v) \
	(free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)
void vec_grow(void **at, size_t *cap, size_t want, size_t size);

/* ---- the rest of what this module offers ---- */
#include "append.h"
#include "demangle.h"
#include "number_set.h"
#include "pool.h"
#include "progress.h"
#include "span.h"

#endif
