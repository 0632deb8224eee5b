/* calls: the device functions of a module: which of them are handed their caller's
 * place among the records, and the text that hands it over. It knows names and
 * parentheses; what is recorded is plan.h's, what is printed statement.c's. */
#ifndef CONSAN_INSTRUMENT_CALLS_H
#define CONSAN_INSTRUMENT_CALLS_H

#include "libconsan/ptx/ptx.h"

struct calls {
	const struct ptx_module *m;
	bool global;               /* global accesses are recorded */
	bool indirect;             /* there are indirect calls */
	/* by function: */
	bool *carries;             /* takes one more parameter, last: where its caller's
				      place lies (hook.h) */
	bool *pointed;             /* its address is taken */
	uint32_t *recorded;        /* instructions; filled by rewrite.c */
	VEC(struct calls_patch) patch; /* by place */
};

/* What is put into the module's text there. */
struct calls_patch { size_t at; const char *text; };

void calls_open(struct calls *c, const struct ptx_module *m, bool global);
void calls_close(struct calls *c);
/* The callee hands on what it recorded. */
bool calls_carry(const struct calls *c, const struct ptx_insn *call);
bool calls_indirect(const struct ptx_insn *call);
/* f and all functions with a body that it can come to, f first. reach: room for
 * all of the module's. */
size_t calls_reach(const struct calls *c, const struct ptx_func *f, const struct ptx_func **reach);
/* Nobody knows beforehand how deep f's calls of functions that record can be, as these call
 * themselves or are called indirectly. */
bool calls_deep(const struct calls *c, const struct ptx_func *f);
/* The module's text from place to place, with the parameter in it. */
void calls_text(const struct calls *c, struct text *t, size_t from, size_t end);
/* Declares what an indirect call may reach: its hook names them all. */
void calls_declare(const struct calls *c, struct text *t);
/* The call, with one more argument of this name. */
void calls_statement(struct text *t, const struct ptx_func *f, const struct ptx_insn *call,
	const char *argument);

/* The parameter's name. */
#define CALLS_PLACE "consan_place"

#endif
