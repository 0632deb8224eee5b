/* external: variables in global memory that another module holds, the program's own. Their
 * addresses are in a table behind the module's struct record_params (record.h), in the order of
 * the variables (gpu_module_global()). */
#ifndef CONSAN_INSTRUMENT_EXTERNAL_H
#define CONSAN_INSTRUMENT_EXTERNAL_H

#include "rewrite.h"

bool external_is(const struct rewrite *r, const struct ptx_var *v);
/* Prints the load of its address. */
void external_address(struct text *t, const struct rewrite *r, const struct ptx_var *v,
	const char *reg);
/* Variables in the table. */
size_t external_count(const struct ptx_module *m);
/* Prints a statement that names such variables. False: it names none, nothing is printed. */
bool external_statement(struct text *t, const struct rewrite *r, const struct ptx_func *f,
	const struct ptx_insn *i);

#endif
