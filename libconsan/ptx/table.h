/* table: ptx.def, mods.def and sreg.def as lookups. For the files of ptx/ only.
 *
 * Built once per process, on first use; constant after. */
#ifndef CONSAN_PTX_TABLE_H
#define CONSAN_PTX_TABLE_H

#include "ir.h"

/* What an instruction's spelling ("ld.global.v4.f32") means. */
struct spelling {
	uint16_t op;       /* OP_unknown if no row matches */
	uint8_t nmods;
	uint16_t mod[PTX_MAX_MODS];
};

/* `text` holds no blanks. Modifiers that the tables do not know are left out
 * of an unknown spelling. */
void table_spell(const char *text, size_t n, struct spelling *s);
/* Do these operands fit the row's? */
bool table_fits(unsigned op, const struct ptx_operand *o, size_t n);
/* The type called `name` (without dot), or TY_none. */
enum ptx_type table_type(const char *name, size_t n);
/* `name` with % and component; false if there is none. */
bool table_sreg(const char *name, size_t n, enum ptx_sreg *r);
const char *table_sreg_name(enum ptx_sreg r);
const char *table_type_name(enum ptx_type t);
/* Checks the tables against each other; NULL or what is wrong. For tests. */
const char *table_check(void);

#endif
