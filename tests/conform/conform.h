/* conform: random programs for every class of instructions, run by the executor and, if there is
 * one, by a GPU, and compared with a reference.
 *
 *     class.def -> class_emit() -> item: statements and operands -> program: one kernel of many
 *     items (program.c) -> executor (cpu.c), GPU (gpu.c) -> compare.c
 *
 * Rules:
 *  - The references share no code with libconsan/exec: integers are C's, floating point is exact
 *    arithmetic rounded once (real.h), matrices are plain loops. They are written from the PTX ISA.
 *  - An item reads only its own part of the input and writes only its own part of the output. Every
 *    result is stored, so the same text runs on the executor and on a GPU, and both outputs can be
 *    compared byte by byte.
 *  - What the ISA leaves undefined has no reference (WANT_ANY), but is still compared with the GPU.
 *    Approximate functions have an error bound instead of a value (WANT_NEAR). */
#ifndef CONFORM_H
#define CONFORM_H

#include "libconsan/base/base.h"
#include "libconsan/tensormap_args.h"

/* ---- random numbers: a function of the seed, the class and the item ---- */

struct rng { uint64_t s; };
struct rng rng_start(uint64_t seed, const char *class, uint64_t index);
uint64_t rng_bits(struct rng *r);
/* 0 to n - 1 */
unsigned rng_below(struct rng *r, unsigned n);
/* true once in n times */
bool rng_once_in(struct rng *r, unsigned n);
#define RNG_OF(r, array) ((array)[rng_below(r, ARRAY_SIZE(array))])

/* ---- types of operands ---- */

enum kind { KIND_INT, KIND_SIGNED, KIND_BITS, KIND_FLOAT, KIND_PRED };
/* TYPE(id, bits, kind, elements): as spelled in PTX; packed types have several elements */
#define TYPE_LIST \
	TYPE(pred, 1, PRED, 1) \
	TYPE(u8, 8, INT, 1) TYPE(u16, 16, INT, 1) TYPE(u32, 32, INT, 1) TYPE(u64, 64, INT, 1) \
	TYPE(s8, 8, SIGNED, 1) TYPE(s16, 16, SIGNED, 1) TYPE(s32, 32, SIGNED, 1) \
	TYPE(s64, 64, SIGNED, 1) \
	TYPE(b8, 8, BITS, 1) TYPE(b16, 16, BITS, 1) TYPE(b32, 32, BITS, 1) TYPE(b64, 64, BITS, 1) \
	TYPE(u16x2, 32, INT, 2) TYPE(s16x2, 32, SIGNED, 2) \
	TYPE(f16, 16, FLOAT, 1) TYPE(bf16, 16, FLOAT, 1) TYPE(tf32, 32, FLOAT, 1) \
	TYPE(f32, 32, FLOAT, 1) TYPE(f64, 64, FLOAT, 1) \
	TYPE(f16x2, 32, FLOAT, 2) TYPE(bf16x2, 32, FLOAT, 2) TYPE(f32x2, 64, FLOAT, 2) \
	TYPE(u4, 4, INT, 1) TYPE(s4, 4, SIGNED, 1) TYPE(b1, 1, BITS, 1) \
	TYPE(e4m3, 8, FLOAT, 1) TYPE(e5m2, 8, FLOAT, 1) TYPE(e3m2, 8, FLOAT, 1) \
	TYPE(e2m3, 8, FLOAT, 1) TYPE(e2m1, 4, FLOAT, 1) TYPE(ue8m0, 8, FLOAT, 1) \
	TYPE(e4m3x2, 16, FLOAT, 2) TYPE(e5m2x2, 16, FLOAT, 2) TYPE(e3m2x2, 16, FLOAT, 2) \
	TYPE(e2m3x2, 16, FLOAT, 2) TYPE(e2m1x2, 8, FLOAT, 2) TYPE(ue8m0x2, 16, FLOAT, 2)
enum type {
	T_none,
#define TYPE(id, bits, kind, n) T_##id,
	TYPE_LIST
#undef TYPE
	T_COUNT
};
const char *type_name(enum type t);
unsigned type_bits(enum type t);
enum kind type_kind(enum type t);
/* Elements of a packed type, else 1; and their type. */
unsigned type_elements(enum type t);
enum type type_element(enum type t);
bool type_signed(enum type t);
/* A value of the type: random, or special (extreme values, NaN, infinity, subnormal ...). */
uint64_t type_pick(struct rng *r, enum type t);
/* v, of the type's width, extended to 64 bits */
int64_t type_extend(enum type t, uint64_t v);
uint64_t type_mask(enum type t);

/* ---- what a result must be ---- */

enum how {
	WANT_BITS, /* v where care is set */
	WANT_NAN,  /* any NaN of the type */
	WANT_NEAR, /* a float of the type, at most tol away from real; exactly v if that is
		      infinite or NaN */
	WANT_ANY   /* undefined by the ISA */
};
struct want {
	enum how how;
	enum type type;            /* NAN, NEAR: of the result */
	uint64_t v, care;
	long double real, tol;
};

/* ---- items ---- */

enum { CTA_THREADS = 128, SRC_MAX = 5, DST_MAX = 4, PARAMS = 8 };

struct item;
/* Fills the input of one CTA and, where the item reads it, the output. */
typedef void fill_fn(const struct item *i, struct rng *r, void *in, void *out);
/* Computes the results of one CTA: w[thread * nout + k]; all start as WANT_BITS with care ~0. out
 * is what memory held before. */
typedef void expect_fn(const struct item *i, const void *in, const void *out, struct want *w);
/* The same for one thread of a register-to-register instruction. */
typedef void lane_fn(const struct item *i, const uint64_t *src, struct want *w);

struct item {
	struct text ptx;           /* the statements, in a scope of their own */
	/* In the input and output buffers, bytes of each thread; results are nout elements. */
	uint32_t in_bytes, out_bytes, nout, element_bits;
	uint64_t in_at, out_at;    /* offset of CTA 0's part; CTA c's follows */
	fill_fn *fill;
	expect_fn *expect;
	bool approximate;          /* not compared bit by bit with a GPU */

	/* register-to-register instructions; see item_scalar() */
	lane_fn *lane;
	enum type src[SRC_MAX], dst[DST_MAX];
	unsigned nsrc, ndst;
	uint8_t immediate;         /* bit k: operand k is value[k] in the text */
	uint8_t position;          /* bit k: operand k is mostly small */
	uint64_t value[SRC_MAX];
	bool cancels;              /* a * b + c: c is sometimes about -a * b */
	int guard;                 /* 0: none, 1: @p, -1: @!p */

	/* tensor maps, filled by the item's class; address is an offset: in the input, or with
	 * map_out in the output of CTA 0 */
	struct map {
		struct consan_tensormap_args args;
		uint64_t dim[5], stride[4];
		uint32_t box[5], elem_stride[5];
		int32_t lower[3], upper[3];
	} *map;
	bool map_out;
	uint32_t map_index;

	int p[PARAMS];             /* for the reference; the class's own meaning */
	void *data;                /* more of the same, freed with the item */
};

/* Describes a register-to-register instruction and writes its text. text is either the opcode with
 * its modifiers, to which the operands are appended, or, if it has a semicolon, statements on the
 * registers d, q, v, w (results), a, b, c, e, f (operands) declared by types. dst, src: types
 * separated by blanks, as "u32 u32!"; a type that ends with ! is never an immediate, one that ends
 * with ~ is a position or shift amount, mostly below 80. Sometimes operands become immediates, and
 * the instruction is guarded. */
void item_scalar(struct item *i, struct rng *r, lane_fn *lane, const char *dst, const char *src,
	const char *text, ...) PRINTF_LIKE(6, 7);

/* Describes statements that threads execute together. Each thread has in_bytes of input, out_bytes
 * of output, of which nout results of element_bits are compared. The class writes the text, which
 * may use %src and %dst (the thread's input and output, global addresses), %thr (the thread in the
 * CTA), %lane, %map (the item's tensor map), and smem (40 KiB of shared memory, to be separated
 * from other items' use by a barrier). in is filled with random bits unless the class sets fill. */
void item_block(struct item *i, unsigned in_bytes, unsigned out_bytes, unsigned nout,
	unsigned element_bits, expect_fn *expect);

void item_free(struct item *i);

/* ---- classes: class.def ---- */

struct class {
	const char *name;
	const char *rows;          /* ids of ops.def, separated by blanks, that it emits */
	void (*emit)(struct item *i, struct rng *r);
	unsigned sm;               /* 90: sm_90a; 100: not on Hopper, so not compared with a GPU */
	unsigned ctas, cluster;    /* CTAs of a launch, of a cluster */
	unsigned share;            /* of 100: how many of --count items it gets */
};
extern const struct class classes[];
extern const unsigned nclasses;

#define CLASS(name, rows, sm, ctas, cluster, share) \
	void class_##name(struct item *i, struct rng *r);
#include "class.def"
#undef CLASS

/* ---- programs ---- */

struct program {
	const struct class *class;
	uint64_t seed;
	struct item *item;
	unsigned n, ctas, nmaps;
	struct text ptx;
	unsigned char *in, *out;   /* the buffers as they are before the launch */
	uint64_t in_bytes, out_bytes;
};
void program_make(struct program *p, const struct class *c, uint64_t seed, unsigned items);
void program_free(struct program *p);

/* Multicast addresses, only on the executor: that of output + n is MULTICAST_AT beyond it, and stands
 * for the bytes at output + n and, of another device, at output + n + MULTICAST_PART. */
enum { MULTICAST_PART = 32 };
#define MULTICAST_AT (UINT64_C(1) << 50)

/* Runs a program; out gets the output buffer. False: e has the reason. */
bool cpu_run(const struct program *p, unsigned char *out, struct consan_err *e);
bool gpu_open(struct consan_err *e);
/* level: how far the driver optimizes, 0 to GPU_LEVEL_MOST, its default */
enum { GPU_LEVEL_MOST = 4 };
bool gpu_run(const struct program *p, unsigned level, unsigned char *out, struct consan_err *e);

struct tally {
	uint64_t compared, wrong;
	uint64_t undefined;        /* results that the ISA does not define; of a comparison with a
				      GPU, those that differ */
	uint64_t known;            /* differences between executor and GPU in deviation.def */
};
/* Compares an output with the reference. Prints the first `show` mismatches. */
struct tally compare_reference(const struct program *p, const unsigned char *out,
	const char *who, unsigned show);
/* Compares the outputs of executor and GPU bit by bit; approximate items by their bound; known
 * deviations (deviation.def) are counted, not printed. show_open: the same for differences that the ISA leaves open. */
struct tally compare_gpu(const struct program *p, const unsigned char *cpu,
	const unsigned char *gpu, unsigned show, unsigned show_open);

/* Prints which rows of ops.def no class covers, with the reason. False: a row has neither a class
 * nor a reason, or a class names a row that it never emits. */
bool coverage_check(bool print);

#endif
