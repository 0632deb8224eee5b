/* mma.sync with a sparse A, with the narrow types of sm_120 and with block scales. References: ISA
 * 9.7.14.6 (sparse matrices), 9.7.14.3 (block scaling); fragments as in mma.c. Of A half of the
 * columns is stored: column c of what is stored is, in a chunk of w columns, the c % (w / 2)-th.
 * Four bits of metadata for a chunk hold two positions, of units of w / 4 columns; for tf32, w = 2,
 * they are 0b0100 or 0b1110. An element of B takes part only if the row stores one for it: infinity
 * times a zero that is not stored is not a NaN. */
#include "conform.h"
#include "matrix.h"

#include <string.h>

enum scale { SCALE_NONE, SCALE_UE8M0, SCALE_UE4M3 };

struct form {
	const char *name;
	unsigned k;                /* of the dense shape; a sparse one has twice as many */
	enum type d;
	enum scale scale;
	unsigned nscale;           /* of a row */
	char pack;                 /* bits of an element in a register */
};

static const struct form plain[] = {
	{ "", 8, T_f32, SCALE_NONE, 0, 16 }, { "", 16, T_f32, SCALE_NONE, 0, 16 },
	{ "", 16, T_f16, SCALE_NONE, 0, 16 }, { "", 4, T_f32, SCALE_NONE, 0, 32 },
	{ "", 8, T_f32, SCALE_NONE, 0, 32 }, { "", 16, T_s32, SCALE_NONE, 0, 8 },
	{ "", 32, T_s32, SCALE_NONE, 0, 8 }, { "", 32, T_s32, SCALE_NONE, 0, 4 },
	{ "", 64, T_s32, SCALE_NONE, 0, 4 }, { "", 32, T_f32, SCALE_NONE, 0, 9 /* fp8 */ },
};
static const struct form narrow[] = {
	{ "f8f6f4", 32, T_f32, SCALE_NONE, 0, 8 }, { "f8f6f4", 32, T_f16, SCALE_NONE, 0, 8 },
	{ "mxf8f6f4", 32, T_f32, SCALE_UE8M0, 1, 8 }, { "mxf4", 64, T_f32, SCALE_UE8M0, 2, 4 },
	{ "mxf4nvf4", 64, T_f32, SCALE_UE8M0, 2, 4 }, { "mxf4nvf4", 64, T_f32, SCALE_UE4M3, 4, 4 },
};

enum { P_ROW, P_A, P_B, P_VALUES, P_FLAGS, P_IDS };
enum { SPARSE = 1, ORDERED = 2, SAT = 4, NARROW = 8, SELECTOR = 16 /* times 0 to 3 */ };
/* registers of a thread, each in 8 bytes */
struct in { uint64_t a[4], b[4], c[4], meta, sa, sb; };
enum { M = 16, N = 8, MAX_K = 128 };

static const struct form *kind_of(const struct item *i)
{
	return &(i->p[P_FLAGS] & NARROW ? narrow : plain)[i->p[P_ROW]];
}
static unsigned width(const struct item *i)
{
	return (unsigned char)kind_of(i)->pack & ~1u;
}
static bool sparse(const struct item *i) { return i->p[P_FLAGS] & SPARSE; }
static unsigned depth(const struct item *i) { return kind_of(i)->k << sparse(i); }
static unsigned per(const struct item *i) { return 32 / width(i); }
static unsigned regs_b(const struct item *i) { return N * depth(i) / 32 / per(i); }
static unsigned regs_a(const struct item *i) { return regs_b(i) * 2 >> sparse(i); }
static unsigned selector(const struct item *i) { return (unsigned)i->p[P_FLAGS] / SELECTOR; }
static unsigned chunk(const struct item *i) { return width(i) == 32 ? 2 : width(i) == 4 ? 8 : 4; }
/* byte and thread of the scales of A and B */
static unsigned id(const struct item *i, unsigned n) { return (unsigned)i->p[P_IDS] >> 4 * n & 15; }

/* An element in its register: e2m1 is in the middle of a byte. */
static long double get(const struct item *i, enum type t, const uint64_t *reg, unsigned e)
{
	const uint64_t v = packed_get(reg, width(i), e);

	return matrix_value(t, width(i) > 4 && t == T_e2m1 ? v >> 2 & 15
		: t == T_e3m2 || t == T_e2m3 ? v & 63 : v);
}
static void set(const struct item *i, enum type t, uint64_t *reg, unsigned e, uint64_t v)
{
	packed_set(reg, width(i), e, width(i) > 4 && t == T_e2m1 ? v << 2 : v);
}

/* Where the metadata of this chunk of a row is. */
static unsigned meta_at(const struct item *i, unsigned row, unsigned c, unsigned *bit)
{
	const unsigned n = depth(i) / chunk(i), quad = row % 8 * 4;

	if (width(i) >= 16) {
		*bit = row / 8 * 16 + c % 4 * 4;
		return quad + (n == 4 ? selector(i) : 2 * selector(i) + c / 4);
	}
	*bit = c % 8 * 4;
	return quad + row / 8 + (n == 8 ? 2 * selector(i) : c / 8 * 2);
}

/* The column of the dense A in which stored column s of the row lies. */
static unsigned column(const struct item *i, const struct in *in, unsigned row, unsigned s)
{
	const unsigned w = chunk(i), c = s / (w / 2), in_chunk = s % (w / 2);
	unsigned bit, lane, nibble;

	if (!sparse(i))
		return s;
	lane = meta_at(i, row, c, &bit);
	nibble = (unsigned)(in[lane].meta >> bit & 15);
	if (w == 2)
		return c * w + (nibble == 14);
	if (w == 8) /* pairs */
		return c * w + (nibble >> in_chunk / 2 * 2 & 3) * 2 + in_chunk % 2;
	return c * w + (nibble >> in_chunk * 2 & 3);
}

static long double scale_of(const struct item *i, uint64_t data, unsigned k)
{
	const unsigned v = (unsigned)(data >> 8 * k & 0xff);

	return kind_of(i)->scale == SCALE_UE4M3 ? matrix_value(T_e4m3, v)
		: matrix_value(T_ue8m0, v);
}

static void expect(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const struct form *kind = kind_of(i);
	const unsigned k = depth(i), stored = k >> sparse(i), n = per(i);
	const enum type ta = (enum type)i->p[P_A], tb = (enum type)i->p[P_B];
	const struct dot dot = { ta, tb, kind->d, (enum values)i->p[P_VALUES], i->p[P_FLAGS] & SAT, 0 };

	(void)out;
	for (unsigned warp = 0; warp < CTA_THREADS / 32; warp++) {
		static long double a[M][MAX_K], b[N][MAX_K], c[M][N];
		unsigned at[M][MAX_K];
		const struct in *in = (const struct in *)inputs + warp * 32;
		struct want *to = w + warp * 32 * i->nout;

		for (unsigned l = 0; l < 32; l++) {
			const unsigned g = l / 4, t = l % 4;

			for (unsigned r = 0; r < regs_a(i); r++)
				for (unsigned e = 0; e < n; e++) {
					const unsigned row = g + 8 * (r & 1), s = t * n + r / 2 * 4 * n + e;

					a[row][s] = get(i, ta, &in[l].a[r], e);
					at[row][s] = column(i, in, row, s);
				}
			for (unsigned r = 0; r < regs_b(i); r++)
				for (unsigned e = 0; e < n; e++)
					b[g][t * n + r * 4 * n + e] = get(i, tb, &in[l].b[r], e);
			for (unsigned e = 0; e < 4; e++)
				c[g + e / 2 * 8][2 * t + e % 2] = matrix_value(kind->d, in[l].c[e]);
		}
		for (unsigned x = 0; x < k && kind->nscale; x++) {
			const unsigned block = x / (k / kind->nscale);

			for (unsigned row = 0; row < M && x < stored; row++)
				a[row][x] *= scale_of(i, in[row % 8 * 4 + 2 * id(i, 1) + row / 8].sa,
					id(i, 0) + at[row][x] / (k / kind->nscale));
			for (unsigned col = 0; col < N; col++)
				b[col][x] *= scale_of(i, in[col * 4 + id(i, 3)].sb, id(i, 2) + block);
		}
		for (unsigned l = 0; l < 32; l++)
			for (unsigned e = 0; e < 4; e++) {
				const unsigned row = l / 4 + e / 2 * 8, col = l % 4 * 2 + e % 2;
				long double chosen[MAX_K];

				for (unsigned s = 0; s < stored; s++)
					chosen[s] = b[col][at[row][s]];
				matrix_dot(&dot, a[row], chosen, stored, c[row][col], &to[l * 4 + e]);
			}
	}
}

static uint64_t pick_scales(const struct item *i, struct rng *r)
{
	const bool exact = i->p[P_VALUES] == VALUES_EXACT;
	uint64_t v = 0;

	for (unsigned k = 0; k < 4; k++)
		v |= (uint64_t)(kind_of(i)->scale == SCALE_UE4M3
			? exact ? 0x38 + 8 * rng_below(r, 2) : 0x20 + rng_below(r, 0x40)
			: 127 + (exact ? rng_below(r, 2) : rng_below(r, 16) - 8)) << 8 * k;
	return v;
}

static void fill(const struct item *i, struct rng *r, void *inputs, void *out)
{
	static const uint8_t rising[] = { 4, 8, 12, 9, 13, 14 }, falling[] = { 1, 2, 3, 6, 7, 11 };
	struct in *in = inputs;
	const enum type ta = (enum type)i->p[P_A], tb = (enum type)i->p[P_B];
	const enum values v = (enum values)i->p[P_VALUES];

	(void)out;
	memset(in, 0, CTA_THREADS * sizeof *in);
	for (unsigned t = 0; t < CTA_THREADS; t++) {
		for (unsigned k = 0; k < 4 * per(i); k++) {
			set(i, ta, &in[t].a[k / per(i)], k % per(i), matrix_pick(r, ta, v));
			set(i, tb, &in[t].b[k / per(i)], k % per(i), matrix_pick(r, tb, v));
		}
		for (unsigned e = 0; e < 4; e++)
			in[t].c[e] = matrix_pick_acc(r, kind_of(i)->d, v);
		for (unsigned k = 0; k < 8; k++)
			in[t].meta |= (uint64_t)(width(i) == 32 ? rng_once_in(r, 2) ? 4 : 14
				: i->p[P_FLAGS] & ORDERED || rng_once_in(r, 2) ? RNG_OF(r, rising)
				: RNG_OF(r, falling)) << 4 * k;
		in[t].sa = pick_scales(i, r);
		in[t].sb = pick_scales(i, r);
	}
}

static void list(struct text *p, const char *name, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%s%s%u", k ? ", " : "{", name, k);
	text_printf(p, "}, ");
}

static void load(struct text *p, const char *name, unsigned n, size_t at)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "\tld.global.b32 %s%u, [%%src+%zu];\n", name, k, at + 8 * k);
}

static void print(struct item *i)
{
	static const char *const scales[] = { "", ".ue8m0", ".ue4m3" };
	const struct form *kind = kind_of(i);
	struct text *p = &i->ptx;
	const unsigned nreg = kind->d == T_f16 ? 2 : 4;
	const char *sp = !sparse(i) ? "" : i->p[P_FLAGS] & ORDERED ? ".sp::ordered_metadata" : ".sp";

	text_printf(p, "\t.reg .b32 a<%u>, b<%u>, c<%u>, d<%u>, e<1>, s<1>, z<1>;\n"
		"\t.reg .b16 h, g;\n", regs_a(i), regs_b(i), nreg, nreg);
	load(p, "a", regs_a(i), offsetof(struct in, a));
	load(p, "b", regs_b(i), offsetof(struct in, b));
	for (unsigned k = 0; k < nreg; k++) {
		const size_t at = offsetof(struct in, c);

		if (kind->d == T_f16)
			text_printf(p, "\tld.global.b16 h, [%%src+%zu];\n\tld.global.b16 g, [%%src+%zu];\n"
				"\tmov.b32 c%u, {h, g};\n", at + 16 * k, at + 16 * k + 8, k);
		else
			text_printf(p, "\tld.global.b32 c%u, [%%src+%zu];\n", k, at + 8 * k);
	}
	load(p, "e", 1, offsetof(struct in, meta));
	load(p, "s", 1, offsetof(struct in, sa));
	load(p, "z", 1, offsetof(struct in, sb));
	text_printf(p, "/**/\tmma%s.sync.aligned.m16n8k%u.row.col%s", *kind->name ? "" : sp, depth(i),
		i->p[P_FLAGS] & SAT ? ".satfinite" : "");
	if (*kind->name)
		text_printf(p, ".kind::%s%s", kind->name, sp);
	if (kind->nscale)
		text_printf(p, ".block_scale.scale_vec::%uX", kind->nscale);
	text_printf(p, ".%s.%s.%s.%s%s ", type_name(kind->d), type_name((enum type)i->p[P_A]),
		type_name((enum type)i->p[P_B]), type_name(kind->d), scales[kind->scale]);
	list(p, "d", nreg);
	list(p, "a", regs_a(i));
	list(p, "b", regs_b(i));
	list(p, "c", nreg);
	if (sparse(i))
		text_printf(p, "e0, %u, ", selector(i));
	if (kind->nscale)
		text_printf(p, "s0, {%u, %u}, z0, {%u, %u}, ", id(i, 0), id(i, 1), id(i, 2), id(i, 3));
	p->n -= 2; /* the last comma */
	text_printf(p, ";\n");
	for (unsigned k = 0; k < nreg; k++)
		text_printf(p, "\tst.global.b32 [%%dst+%u], d%u;\n", 4 * k, k);
}

static void describe(struct item *i, struct rng *r, bool is_sparse)
{
	const struct form *kind = kind_of(i);

	i->p[P_FLAGS] |= is_sparse ? SPARSE : 0;
	if (is_sparse)
		i->p[P_FLAGS] += (int)(SELECTOR * rng_below(r, 16 / (depth(i) / chunk(i))));
	/* 1X: any byte; 2X: 0 or 2; 4X: 0 */
	i->p[P_IDS] = kind->nscale ? (int)(rng_below(r, 4 / kind->nscale) * kind->nscale
		| rng_below(r, 2) << 4 | rng_below(r, 4 / kind->nscale) * kind->nscale << 8
		| rng_below(r, 4) << 12) : 0;
	item_block(i, sizeof(struct in), 16, 4, type_bits(kind->d), expect);
	i->fill = fill;
	i->approximate = i->p[P_VALUES] != VALUES_EXACT;
	print(i);
}

void class_mma_sparse(struct item *i, struct rng *r)
{
	static const enum type bytes[] = { T_s8, T_u8 }, nibbles[] = { T_s4, T_u4 },
		fp8[] = { T_e4m3, T_e5m2 }, half[] = { T_f16, T_bf16 };
	const struct form *kind;

	i->p[P_ROW] = (int)rng_below(r, ARRAY_SIZE(plain));
	i->p[P_VALUES] = (int)rng_below(r, 3);
	i->p[P_FLAGS] = rng_once_in(r, 2) ? ORDERED : 0;
	kind = kind_of(i);
	for (unsigned b = 0; b < 2; b++)
		i->p[b ? P_B : P_A] = (int)(kind->pack == 9 ? RNG_OF(r, fp8)
			: kind->pack == 8 ? RNG_OF(r, bytes) : kind->pack == 4 ? RNG_OF(r, nibbles)
			: kind->pack == 32 ? T_tf32 : kind->d == T_f16 ? T_f16 : RNG_OF(r, half));
	if (kind->pack == 16)
		i->p[P_B] = i->p[P_A];
	i->p[P_FLAGS] |= kind->d == T_s32 && rng_once_in(r, 2) ? SAT : 0;
	describe(i, r, true);
}

void class_mma_narrow(struct item *i, struct rng *r)
{
	static const enum type types[] = { T_e4m3, T_e5m2, T_e3m2, T_e2m3, T_e2m1 };
	const bool is_sparse = rng_once_in(r, 2);

	i->p[P_ROW] = (int)rng_below(r, ARRAY_SIZE(narrow));
	i->p[P_VALUES] = (int)rng_below(r, 3);
	i->p[P_FLAGS] = NARROW | ORDERED;
	for (unsigned b = 0; b < 2; b++)
		i->p[b ? P_B : P_A] = (int)(kind_of(i)->pack == 4 ? T_e2m1 : RNG_OF(r, types));
	describe(i, r, is_sparse);
}
