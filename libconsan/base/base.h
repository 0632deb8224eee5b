/* base: memory, growable text and vectors, arenas. Depends on no other module.
 *
 * Errors of the whole code base:
 *  - `struct consan_err` (err.h) reports wrong input, base_die() a broken invariant of consan;
 *    a problem of the checked kernel is a finding (finding.h), not an error;
 *  - in the program under test, no function calls exit(), except base_die(). */
#ifndef CONSAN_BASE_H
#define CONSAN_BASE_H

#include "libconsan/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Ends the process with status 70: an invariant of consan is broken, or host memory is
 * exhausted. Findings reported before are in the record file. */
_Noreturn void base_die(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Records an error unless *e has one; e may be NULL. Returns false, for the caller to return. */
bool err_set(struct consan_err *e, int code, int line, int col, const char *fmt, ...)
	PRINTF_LIKE(5, 6);

/* These never return NULL: they call base_die(). The caller free()s the result. */
void *base_alloc(size_t bytes); /* zeroed */
/* Zeroed pages, of which only those that are used cost anything: for large and sparse tables */
void *base_alloc_pages(size_t bytes);
void base_free_pages(void *at, size_t bytes);
void *base_alloc_aligned(size_t align, size_t bytes); /* zeroed; align: a power of 2 */
void *base_resize(void *old, size_t bytes); /* the new part is not zeroed */
char *base_strdup(const char *s);
char *base_strndup(const char *s, size_t n);

/* As getenv(), for a variable CONSAN_...: its first value if the program has removed it. */
const char *base_environ(const char *name);
/* As open(), close-on-exec, but never returns a standard descriptor: if the program has closed one, what it
 * writes there would get into our file. */
int base_open(const char *path, int flags, unsigned mode);
/* The same for a descriptor that exists, which is closed if it is one of those. */
int base_above_standard(int fd);

/* ---- arena: many small objects that are freed together ---- */
struct arena {
	struct arena_block *top;
};
void *arena_alloc(struct arena *a, size_t bytes); /* zeroed, 16-aligned */
char *arena_strndup(struct arena *a, const char *s, size_t n);
void arena_free(struct arena *a); /* the arena may be used again */

/* ---- growable text, NUL-terminated after the first write; zero it to initialize ---- */
struct text {
	char *at;
	size_t n, cap;
};
void text_add(struct text *t, const char *s, size_t n);
void text_printf(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_vprintf(struct text *t, const char *fmt, va_list ap);
/* Appends a whole file. False: CONSAN_ERR_IO in *e. */
bool text_read(struct text *t, const char *path, struct consan_err *e);
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
/* The same; what is new is zero. For tables whose elements exist up to cap. */
void vec_grow_zero(void **at, size_t *cap, size_t want, size_t size);

/* ---- the other headers of this module ---- */
#include "append.h"
#include "cpu_time.h"
#include "demangle.h"
#include "folder.h"
#include "number_map.h"
#include "number_set.h"
#include "pool.h"
#include "own_thread.h"
#include "progress.h"
#include "sha256.h"
#include "similar.h"
#include "size_limit.h"
#include "span.h"
#include "visible.h"

#endif
