/* site: the places of instructions in the program, and call stacks of the host. A call stack is a
 * site without an instruction: its chain of places is that of the callers, innermost first.
 *
 * The table of sites belongs to the process, is append-only and thread-safe. Code that loads a
 * module adds its sites; all other code refers to them by id. Id 0: unknown. All strings are
 * copied, in their visible form (base/visible.h). */
#ifndef CONSAN_SITE_H
#define CONSAN_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site_loc {
	const char *file;      /* as the compiler wrote it */
	uint32_t line, col;
	const char *function;  /* inlined function's name, or NULL */
	const struct site_loc *inlined_at; /* the caller's place, or NULL */
	uint64_t offset;       /* of host code without line information: its address in the object
				  `file`, with line 0 */
};

enum site_constant { CONSTANT_NOT, CONSTANT_IN_CTA, CONSTANT_IN_GRID };

struct site {
	const char *kernel;    /* mangled name of the function it stands in */
	const char *module;    /* name of the PTX: file, or "prog: module 2" */
	uint32_t ptx_line;     /* 1-based, in the PTX text */
	const char *ptx;       /* the instruction as written */
	/* its first column, and the line and the column behind its semicolon; 0: not known, as in saved
	 * events */
	uint32_t ptx_col, end_line, end_col;
	const struct site_loc *loc; /* NULL: no line information */
	enum site_constant constant; /* a store of one value, the same for all that execute it */
	uint64_t value;        /* two stores of a kernel with the same number here store the same */
	bool unread;           /* a read-modify-write whose result no instruction reads */
	bool unread_load;      /* a weak load whose value no instruction reads */
	bool ticket;           /* an atomic that no loop repeats until its result ends the loop */
	bool texture;          /* reads a texture or surface */
};

uint32_t site_add(const struct site *s);
/* Like site_add(), but equal sites get the same id: for saved files, in which several processes
 * may have saved the same place. */
uint32_t site_intern(const struct site *s);
const struct site *site_get(uint32_t id); /* never NULL */
uint32_t site_count(void); /* identifiers are below this */
/* Compares by the source place if it is known, else by the PTX place. */
void site_where(uint32_t id, const char **file, uint32_t *line);
/* Is the file part of a library (libraries.def, site_libraries())? */
bool site_in_library(const char *file);
/* Further patterns, for the whole process: parts of a path, or patterns for fnmatch() if they
 * contain one of *?[. They replace those of an earlier call, and are copied. */
void site_libraries(const char *const *pattern, size_t n);
/* The frame of an inlining chain to show first: the innermost one in a .cu file outside libraries,
 * as headers are mostly helpers; else the innermost one outside libraries, else the innermost. NULL
 * if l is NULL. */
const struct site_loc *site_headline(const struct site_loc *l);

#endif
