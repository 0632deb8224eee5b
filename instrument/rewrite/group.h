/* group: accesses of shared memory that one record stands for. They follow each other in a basic
 * block with nothing between them that is recorded, so all of them are executed or none. */
#ifndef CONSAN_INSTRUMENT_GROUP_H
#define CONSAN_INSTRUMENT_GROUP_H

#include "plan.h"
#include "rewrite.h"

enum { GROUP_MEMBERS = 16, GROUP_LANE_WORDS = 8, GROUP_MOVES = 48 };

struct group {
	/* Instructions. values: where the record has those of the member's plan */
	struct group_member {
		uint32_t at;
		struct rewrite_part value[REWRITE_PARTS];
	} member[GROUP_MEMBERS];
	unsigned nmembers;
	/* The words that a lane records: operands that hold the wanted value before the first
	 * member, once the instructions of `move` were executed there. */
	struct { struct ptx_operand o; uint8_t kind; } word[GROUP_LANE_WORDS];
	unsigned nwords;
	/* Instructions after the first member that only compute registers, in their order, which
	 * must be executed before it. */
	uint32_t move[GROUP_MOVES];
	unsigned nmoves;
};

/* The group whose first member is f->insn[at]; false: there is none. scope: by instruction the
 * lexical scope, group_scopes(). */
bool group_find(const struct ptx_func *f, const uint32_t *scope, uint32_t at, bool global,
	struct group *g);
/* By instruction, a number for the scope in which it is; instructions between which a register is
 * declared have different numbers. free() it. */
uint32_t *group_scopes(const struct ptx_func *f);

#endif
