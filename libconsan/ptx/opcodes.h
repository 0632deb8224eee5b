/* ptx/opcodes: the names of the instructions, OP_add and so on, one for each row of
 * ptx.def. Only files that single out an instruction include it, as a new row compiles
 * them again; ir.h holds an opcode as a number, and its effect is a column of the table. */
#ifndef CONSAN_PTX_OPCODES_H
#define CONSAN_PTX_OPCODES_H

enum ptx_op {
	OP_NONE,
#define OP(id, name, mods, operands, effect, doc) OP_##id,
#include "ptx.def"
#undef OP
	OP_COUNT
};

#endif
