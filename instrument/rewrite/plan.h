/* plan: what is recorded of an instruction, when, and what of it the record
 * holds. The rewriter and the decoder read the same plan. */
#ifndef CONSAN_INSTRUMENT_PLAN_H
#define CONSAN_INSTRUMENT_PLAN_H

#include "libconsan/ptx/ptx.h"

enum plan_class {
	PLAN_NOTHING,              /* that it happened */
	PLAN_ADDRESS,              /* one shared address a lane */
	PLAN_LANES,                /* words of each lane */
	PLAN_UNIFORM,              /* words that are the same in all lanes */
	PLAN_GLOBAL,               /* one global address a lane */
};

enum plan_kind {
	VAL_SHARED,                /* an address: of shared memory, rank << 24 | offset */
	VAL_U32,                   /* at most 32 bits */
	VAL_U64,                   /* two words */
	VAL_MAP,                   /* a generic or .param address, two words: of the kernel's
				      parameters the offset in them */
	VAL_PRED,                  /* 0 or 1 */
	VAL_GLOBAL,                /* an address of global memory, two words */
};

#define PLAN_VALUES 10

struct plan {
	uint8_t class;             /* enum plan_class */
	bool before, after;        /* it is recorded before or after it is executed */
	bool sync;                 /* takes a ticket */
	bool generic;              /* recorded only where value 0 lies in shared memory */
	bool window;               /* value 0 is a generic address of shared memory */
	bool test;                 /* a wait: after it, what it returned */
	bool strays;               /* recorded before it, too, where value 0 lies in another CTA */
	bool poll;                 /* a strong load */
	bool stalls;               /* recorded before it, too, as a wait that has failed */
	bool wgmma;                /* recorded with its group, see statement.c */
	uint8_t rivals;            /* a store: words that it writes out of registers, which
				      lanes of the same address compare (rivals.h) */
	bool meets;                /* lanes meet and order no memory: several in a row
				      are recorded as one */
	uint8_t nvalues;           /* those that are no constants */
	struct { const struct ptx_operand *o; uint8_t kind; } value[PLAN_VALUES];
};

/* False: nothing is recorded of it. */
bool plan_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p);
/* The call behind assert(): it does not return. */
bool plan_asserts(const struct ptx_insn *i);
/* What is recorded of its global side, if that is wanted, in a record of its own:
 * an access itself, where a copy reads or writes, or that it is griddepcontrol. `generic`: only where the
 * address lies in global memory. `poll`: not while it reads what it read before. */
bool plan_global_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p);
/* What is recorded of mapa, in a record of its own, only where the cluster has no CTA
 * of that rank, or the address is none of shared memory. */
bool plan_rank_of(const struct ptx_insn *i, struct plan *p);
/* What is recorded of a token, behind the arrival that returned it and before what is
 * recorded of a wait by it, in a record of its own; only where all that the wait can
 * wait by was returned in this function, as what is recorded must be all that there is. */
bool plan_token_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p);
/* All that this register can hold was returned by arrivals of this function, which
 * complete phases if asked for. */
bool plan_holds_states(const struct ptx_func *f, uint32_t reg, bool completing);
/* Some access of this function orders others across clusters. */
bool plan_orders_grid(const struct ptx_func *f);
unsigned plan_words(const struct plan *p);
/* Why an instruction that has an effect on what is checked cannot be recorded
 * yet; NULL: it can, or there is nothing to record. */
const char *plan_refuses(const struct ptx_insn *i);

/* Operands of bulk copies, found by the rules of their syntax lines. */
enum plan_copy { COPY_LOAD, COPY_STORE, COPY_PEER, COPY_PREFETCH };
struct plan_bulk {
	enum plan_copy copy;
	bool tensor, multicast, rows; /* rows: a gather or scatter */
	const struct ptx_operand *shared, *other, *size, *mbar, *mask, *offsets;
};
struct plan_bulk plan_bulk_of(const struct ptx_insn *i);
/* The address operand's position. */
unsigned plan_address(const struct ptx_insn *i);
/* The number of a CTA barrier. */
const struct ptx_operand *plan_bar(const struct ptx_insn *i);
/* The member mask of an instruction at which lanes meet; NULL: it is none. */
const struct ptx_operand *plan_mask(const struct ptx_insn *i);

#endif
