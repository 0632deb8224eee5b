/* calls: which device functions of a module get the recording state of their caller (hook.h)
 * as a parameter, and the text for it. This file edits names and parameter lists only. plan.h
 * decides what is recorded; statement.c prints it. */
#ifndef CONSAN_INSTRUMENT_CALLS_H
#define CONSAN_INSTRUMENT_CALLS_H

#include "libconsan/ptx/ptx.h"

struct calls {
	const struct ptx_module *m;
	bool global;               /* accesses to global memory are recorded */
	bool indirect;             /* the module has indirect calls */
	/* Arrays with an element for each function of the module: */
	bool *takes_state;         /* has one more parameter, the last: the address of the
				      caller's recording state */
	bool *address_taken;       /* its address is taken */
	uint32_t *recorded;        /* number of recorded instructions; set by rewrite.c */
	VEC(struct calls_patch) patch; /* sorted by `at` */
};

/* An insertion into the module's text, at this position. */
struct calls_patch { size_t at; const char *text; };

void calls_open(struct calls *c, const struct ptx_module *m, bool global);
void calls_close(struct calls *c);
/* Does the callee get the recording state? */
bool calls_takes_state(const struct calls *c, const struct ptx_insn *call);
bool calls_indirect(const struct ptx_insn *call);
/* f and all functions with a body that it can reach, f first. reach: has space for all of the
 * module's functions. */
size_t calls_reach(const struct calls *c, const struct ptx_func *f, const struct ptx_func **reach);
/* The stack depth of f's calls is not known, as functions that record are recursive or called
 * indirectly. */
bool calls_unbounded(const struct calls *c, const struct ptx_func *f);
/* Appends the module's text between two positions, with the parameter inserted. */
void calls_text(const struct calls *c, struct text *t, size_t from, size_t end);
/* Declares all functions that an indirect call can reach, as the hook before it names them. */
void calls_declare(const struct calls *c, struct text *t);
/* Appends the call with one more argument. */
void calls_statement(struct text *t, const struct ptx_func *f, const struct ptx_insn *call,
	const char *argument);

/* The name of the parameter. */
#define CALLS_PARAM "consan_place"

#endif
