/* site: where in the program something stands.
 *
 * Producers add sites as they load a module; everyone else holds ids.
 * The table is process-wide, append-only and thread-safe; id 0 = unknown.
 * All strings are copied. */
#ifndef CONSAN_SITE_H
#define CONSAN_SITE_H

#include <stdint.h>

struct site_loc {
	const char *file;      /* as the compiler wrote it */
	uint32_t line, col;
	const char *function;  /* inlined function's name, or NULL */
	const struct site_loc *inlined_at; /* the caller's place, or NULL */
};

struct site {
	const char *kernel;    /* mangled name of the function it stands in */
	const char *module;    /* name of the PTX: file, or "prog: module 2" */
	uint32_t ptx_line;     /* 1-based, in the PTX text */
	const char *ptx;       /* the instruction as written */
	const struct site_loc *loc; /* NULL: no line information */
};

uint32_t site_add(const struct site *s);
/* Like site_add, but equal sites get the same id: for readers of saved files,
 * where the same place comes from several processes. */
uint32_t site_intern(const struct site *s);
const struct site *site_get(uint32_t id); /* never NULL */
/* Source place if known, else the PTX place; for sorting and tests. */
void site_where(uint32_t id, const char **file, uint32_t *line);
/* The frame of an inlining chain that tells a reader most: the innermost one in a .cu
 * file (inner ones are often library headers), else the innermost. NULL of NULL. */
const struct site_loc *site_headline(const struct site_loc *l);

#endif
