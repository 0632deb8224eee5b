/* plan: which records an instruction needs, when they are written, and which operands they
 * hold. The rewriter and the decoder use the same plan, so that a record needs no description
 * of its own. */
#ifndef CONSAN_INSTRUMENT_PLAN_H
#define CONSAN_INSTRUMENT_PLAN_H

#include "libconsan/ptx/ptx.h"

enum plan_class {
	PLAN_NOTHING,              /* only that it was executed */
	PLAN_ADDRESS,              /* one shared address for each lane */
	PLAN_LANES,                /* some words for each lane */
	PLAN_UNIFORM,              /* some words that are the same in all lanes */
	PLAN_GLOBAL,               /* one global address for each lane */
};

enum plan_kind {
	VAL_SHARED,                /* an address of shared memory: CTA rank << 24 | offset */
	VAL_U32,                   /* at most 32 bits */
	VAL_U64,                   /* two words */
	VAL_MAP,                   /* a generic or .param address, two words; for a parameter of
				      the kernel its offset */
	VAL_PRED,                  /* 0 or 1 */
	VAL_GLOBAL,                /* an address of global memory, two words */
	VAL_CANCELED,              /* a response of clusterlaunchcontrol: 1 if it canceled a cluster */
	VAL_TMEM,                  /* an address of tensor memory */
	VAL_LOADED,                /* 32 bits that are loaded from value 0 after the instruction */
};

#define PLAN_VALUES 16

struct plan {
	uint8_t class;             /* enum plan_class */
	bool before, after;        /* recorded before, after it is executed */
	bool sync;                 /* the record has a ticket (record.h) */
	bool generic;              /* recorded only if value 0 is an address of shared memory */
	bool window;               /* value 0 is a generic address of shared memory */
	bool test;                 /* an mbarrier wait: recorded after it, with its result */
	bool remote;               /* also recorded before it if value 0 is in another CTA */
	bool poll;                 /* a strong load, or an atomic that reads only */
	bool waits;                /* also recorded before it, as a wait that has not succeeded
				      yet */
	bool uniform;              /* the lanes of a record mostly have the same words */
	bool elected;              /* PLAN_LANES: often executed by one lane alone, as what synchronizes and bulk
				      copies */
	bool wgmma;                /* recorded together with its group (statement.c) */
	uint8_t conflicts;         /* a store: register words that it writes, which lanes with
				      the same address compare (conflict.h) */
	bool elsewhere;            /* the record is written at another instruction (plan_heap_of()) */
	bool collective;           /* a warp collective that orders no memory: several in a row
				      are recorded as one */
	uint64_t map;              /* of a tensor copy: the map, as VAL_MAP, if it is always this parameter of
				      the kernel, so that it is not recorded; else 0 */
	uint8_t nvalues;           /* values that are not constants */
	struct { const struct ptx_operand *o; uint8_t kind; } value[PLAN_VALUES];
};

/* The record of an instruction. False: it has none. */
bool plan_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p);
/* The call of assert() that does not return. */
bool plan_asserts(const struct ptx_insn *i);
/* The record of the global side of an instruction, with --gpu-global: of an access its
 * address, of a copy where it reads or writes, of griddepcontrol that it was executed, of a call of
 * malloc or free the block.
 * `generic`: recorded only if the address is one of global memory. `poll`: not recorded again
 * while it loads the same value. */
bool plan_global_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p);
/* The record of mapa, only if the cluster has no CTA of that rank, or if the address is not
 * one of shared memory. */
bool plan_rank_of(const struct ptx_insn *i, struct plan *p);
/* The record of an mbarrier token: after the arrival that returned it, or before the record of
 * a wait that takes it. Only if all tokens that the wait can take were returned in this
 * function, as the decoder must know all of them. */
bool plan_token_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p);
/* Were all values that this register can hold returned by arrivals of this function?
 * completing: and can these arrivals complete a phase? */
bool plan_holds_states(const struct ptx_func *f, uint32_t reg, bool completing);
/* Does an access of this function order others across clusters? */
bool plan_orders_grid(const struct ptx_func *f);
/* A call of malloc or free in a kernel, with the operands that hold the block and its size, and the
 * instruction before (free) or after which (malloc) it is recorded. False: it is none, or it is not
 * known which registers hold them. plan_heap() is its plan. */
struct plan_heap {
	bool frees;
	const struct ptx_operand *block, *size; /* size: NULL for free */
	const struct ptx_insn *at;
};
bool plan_heap(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p);
bool plan_heap_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan_heap *h);
/* The reason why a call of malloc or free is not recorded; NULL: it is, or it is no such call. */
const char *plan_heap_refuses(const struct ptx_func *f, const struct ptx_insn *i);
/* The call that is recorded at this instruction; NULL: none. */
const struct ptx_insn *plan_heap_at(const struct ptx_func *f, const struct ptx_insn *i);
/* The word of record.h for the value of a store of constants; 0: it is no such store. */
uint32_t plan_stores(const struct ptx_insn *i);
unsigned plan_words(const struct plan *p);
/* For rules of a single effect: adds a value, unless it is a constant, which the decoder takes from the
 * instruction. */
void plan_add(struct plan *p, const struct ptx_operand *o, enum plan_kind kind);
/* The reason why an instruction whose effect is checked cannot be recorded; NULL: it can, or
 * there is nothing to record. */
const char *plan_refuses(const struct ptx_insn *i);

/* Does the instruction add a constant, operand 2, to a register of the same width? */
bool plan_adds_constant(const struct ptx_func *f, const struct ptx_insn *i);
/* The index of the address operand. */
unsigned plan_address(const struct ptx_insn *i);
/* The barrier operand of a CTA barrier instruction. */
const struct ptx_operand *plan_barrier(const struct ptx_insn *i);
/* Index of scale-d of a wgmma.mma_async. */
unsigned plan_scale_d(const struct ptx_insn *i);
/* The member mask of a warp collective; NULL: it has none. */
const struct ptx_operand *plan_mask(const struct ptx_insn *i);
/* A collective that the whole warp executes: mma and the like. */
bool plan_whole_warp(const struct ptx_insn *i);

#endif
