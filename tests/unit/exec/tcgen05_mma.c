/* tcgen05_mma: products in every legal form against plain loops over the tables of the ISA. Values
 * are small multiples of 1/4, so that sums are exact in any order. */
#include "tcgen05_run.h"

#include <math.h>

enum kind { F16, TF32, F8F6F4, I8, MXF8F6F4, MXF4, MXF4NVF4, KINDS };
enum { D_AT = 0, A_AT = 256, META_AT = 272, SFA_AT = 288, SFB_AT = 320 /* columns */ };
enum { A_BYTE = 0, B_BYTE = 32 * 1024, SECOND = 16 * 1024, SECOND_B = 40 * 1024 };

/* Types of A and B: code in the instruction descriptor, bits and fields of a float (none: integer) */
struct format { unsigned code, bits, exponent, mantissa, bias; };
static const struct format formats[KINDS][6] = {
	[F16] = { { 0, 16, 5, 10, 15 }, { 1, 16, 8, 7, 127 } },
	[TF32] = { { 2, 32, 8, 23, 127 } },
	[F8F6F4] = { { 0, 8, 4, 3, 7 }, { 1, 8, 5, 2, 15 }, { 3, 6, 2, 3, 1 }, { 4, 6, 3, 2, 3 },
		{ 5, 4, 2, 1, 1 } },
	[I8] = { { .code = 0, .bits = 8 }, { .code = 1, .bits = 8 } },
	[MXF8F6F4] = { { 0, 8, 4, 3, 7 }, { 1, 8, 5, 2, 15 }, { 3, 6, 2, 3, 1 }, { 4, 6, 3, 2, 3 },
		{ 5, 4, 2, 1, 1 } },
	[MXF4] = { { 1, 4, 2, 1, 1 } },
	[MXF4NVF4] = { { 1, 4, 2, 1, 1 } },
};
static const struct format ue4m3 = { 0, 8, 4, 3, 7 };
static const char *const names[KINDS] = { "f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4",
	"mxf4nvf4" };

/* An operand in shared memory (ISA, "Canonical Layouts"), in bytes */
struct place { unsigned start, lead, stride, swizzle, span; bool mn, absolute; };

struct mma {
	enum kind kind;
	unsigned m, n, k;
	bool pair, ws, sparse, a_tmem, own_copies, ashift, enable, negate_a, negate_b, saturate, half_d;
	bool masked;
	const struct format *fa, *fb;
	struct place a, b;
	unsigned vec, block;       /* scales of a row; elements that share one */
	unsigned id[2], selector, scale_d, lane, shift;
	bool ue8m0;
	uint32_t disabled[8];
	unsigned ndisabled;
	uint64_t mask;
	/* A as it is in memory, by rows of the whole matrix; B; scales */
	double a_at[4][256][128], b_at[288][128], scale[2][256][6];
	uint8_t slot[256][64];     /* where the elements of sparse A belong */
	bool infinite;             /* the elements of B that no row of A selects are */
};

static uint64_t state;

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static double value(const struct format *f)
{
	static const double some[] = { 0, 0.5, 1, 1.5, 2, 3 };

	if (!f->exponent)
		return (double)below(5) - (f->code ? 2 : 0);
	return some[below(6)] * (below(2) ? 1 : -1);
}

static uint32_t encode(const struct format *f, double v)
{
	const uint32_t sign = v < 0;
	int e;
	double m;

	if (!f->exponent)
		return (uint32_t)(int32_t)v & 255;
	if (v == 0)
		return 0;
	if (isinf(v))
		return ((1u << f->exponent) - 1) << f->mantissa;
	m = frexp(fabs(v), &e);
	e += (int)f->bias - 1;
	if (e < 1) {
		m = ldexp(m, e - 1);
		e = 0;
	} else {
		m = 2 * m - 1;
		return sign << (f->exponent + f->mantissa) | (uint32_t)e << f->mantissa
			| (uint32_t)ldexp(m, (int)f->mantissa);
	}
	return sign << (f->exponent + f->mantissa) | (uint32_t)ldexp(2 * m, (int)f->mantissa);
}

static void put_bits(unsigned char *at, unsigned bit, unsigned n, uint32_t v)
{
	for (unsigned i = 0; i < n; i++, bit++)
		at[bit / 8] = (unsigned char)((at[bit / 8] & ~(1u << bit % 8)) | (v >> i & 1) << bit % 8);
}

/* ---- shared memory ---- */

/* Bits between two elements, and elements in 16 bytes: 4- and 6-bit elements of the f8f6f4 kinds
 * lie packed at the start of 16 bytes, which have 16 of them. */
static unsigned in_piece(const struct mma *c, const struct format *f)
{
	return f->bits == 4 && (c->kind == MXF4 || c->kind == MXF4NVF4) ? 32
		: f->bits < 8 ? 16 : 128 / f->bits;
}

/* outer: row of A or column of B */
static void put_shared(const struct mma *c, unsigned char *shared, const struct format *f,
	const struct place *p, unsigned outer, unsigned k, double v)
{
	const unsigned t = in_piece(c, f), along = p->mn ? outer : k, across = p->mn ? k : outer;
	const unsigned piece = along / t, per = p->span / 16;
	const unsigned rows = p->swizzle == 1 ? 4 : 8;
	unsigned at;

	if (!p->mn)
		at = p->start + across % 8 * p->span + across / 8 * p->stride
			+ (p->span == 16 ? piece * p->lead : piece * 16);
	else if (p->span == 16)
		at = p->start + piece * p->stride + across % 8 * 16 + across / 8 * p->lead;
	else
		at = p->start + piece % per * 16 + piece / per * p->lead + across % rows * p->span
			+ across / rows * p->stride;
	if (p->absolute && p->start % 128 + piece * 16 >= 128)
		at = p->lead + across % 8 * 128 + across / 8 * p->stride + piece * 16
			- (128 - p->start % 128);
	/* Swizzle<B,4,3> and Swizzle<2,5,2> of CuTe */
	if (p->swizzle == 1)
		at ^= (at >> 7 & 3) << 5;
	else
		at ^= (at >> 7 & (per - 1)) << 4;
	put_bits(shared + at, along % t * f->bits, f->bits, encode(f, v));
}

static uint64_t descriptor(const struct place *p)
{
	return p->start >> 4 | (uint64_t)(p->lead >> 4) << 16 | (uint64_t)(p->stride >> 4) << 32
		| 1ull << 46 | (uint64_t)p->absolute << 52 | (uint64_t)p->swizzle << 61;
}

/* A layout for `rows` rows of `bytes` bytes along K */
static struct place any_place(const struct mma *c, const struct format *f, bool mn, unsigned first,
	unsigned rows, unsigned bytes, unsigned second)
{
	static const struct { unsigned swizzle, span; } modes[] = { { 0, 16 }, { 6, 32 }, { 4, 64 },
		{ 2, 128 }, { 1, 128 } };
	const unsigned element = f->bits < 8 ? 1 : f->bits / 8;
	const unsigned chunks = rows * element / 16;
	struct place p = { .start = first, .mn = mn };
	unsigned i;

	do
		i = below(mn ? 5 : 4);
	while (mn ? (modes[i].swizzle == 1) != (f->bits == 32)
		: modes[i].span > 16 && modes[i].span < bytes);
	p.swizzle = modes[i].swizzle;
	p.span = modes[i].span;
	if (mn && p.span == 16) {
		p.stride = 128;                 /* between pieces along MN */
		p.lead = 128 * chunks;
	} else if (mn) {
		const unsigned high = p.swizzle == 1 ? 4 : 8;

		p.stride = high * p.span;       /* between atoms along K */
		p.lead = p.stride * (bytes / element / high);
	} else if (p.span == 16) {
		p.lead = below(2) ? 128 : 16 * rows;
		p.stride = p.lead == 128 ? 8 * bytes : 128;
	} else {
		p.stride = 8 * p.span;
		p.start += bytes * below(p.span / bytes);
	}
	if (c->k == 96 && p.swizzle == 2 && below(2)) {
		p.absolute = true;
		p.start = first + 16 * below(8);
		p.lead = second;
	}
	return p;
}

/* ---- tensor memory: where a row of A, D or metadata is ---- */

static unsigned rows_of(const struct mma *c)
{
	return c->pair ? c->m / 2 : c->m;
}

/* Layouts C and F use 16 lanes of each window. */
static bool is_half(const struct mma *c)
{
	return (c->m == 64 && !c->ws) || (c->pair && c->m == 128 && c->sparse);
}

static unsigned lane_of(const struct mma *c, unsigned row)
{
	const unsigned r = row % rows_of(c);

	return is_half(c) ? c->lane + r / 16 * 32 + r % 16 : r;
}

/* Into which the columns of D are split, each with lanes and a copy of A of its own */
static unsigned groups_of(const struct mma *c)
{
	return c->ws || (c->pair && c->m == 128 && !c->sparse) ? LANES / rows_of(c) : 1;
}

static uint32_t *d_cell(const struct mma *c, struct memory *m, bool after, unsigned row,
	unsigned column)
{
	const unsigned groups = groups_of(c);
	const unsigned lane = lane_of(c, row) + column / (c->n / groups) * rows_of(c);

	m += row / rows_of(c);
	return &(after ? m->after : m->before)[lane][D_AT + column % (c->n / groups)];
}

static void put_metadata(const struct mma *c, struct memory *m, unsigned row, unsigned group,
	unsigned bits)
{
	const unsigned bit = 4 * group;
	unsigned lane = lane_of(c, row), column = META_AT + bit / 32, at = bit % 32;

	if (c->kind == F16 || c->kind == TF32) {
		lane = lane_of(c, row - row % 16) + row % 8 + bit / 16 * 8;
		column = META_AT + c->selector;
		at = bit % 16 + row % 16 / 8 * 16;
	}
	put_bits((unsigned char *)&m[row / rows_of(c)].before[lane][column], at, 4, bits);
}

static void put_scale(const struct mma *c, struct memory *m, unsigned which, unsigned row,
	unsigned j)
{
	const double v = c->scale[which][row][j];
	const uint32_t code = c->ue8m0 ? (uint32_t)(127 + (int)log2(v)) : encode(&ue4m3, v);
	const bool split = which && c->pair && c->m == 128;
	const unsigned at = c->id[which] + j;
	const unsigned next = which && c->n > 128 ? 8 : 4;

	for (unsigned h = 0; h < (c->pair ? 2u : 1u); h++)
		for (unsigned window = 0; window < 4; window++) {
			unsigned r = row;

			if (!which && row / rows_of(c) != h)
				continue;
			if (split && row / (c->n / 2) != window / 2)
				continue;
			r = split ? row % (c->n / 2) : !which ? row % rows_of(c) : row;
			put_bits((unsigned char *)&m[h].before[32 * window + r % 32]
				[(which ? SFB_AT : SFA_AT) + r / 32 + at / 4 * next], at % 4 * 8, 8, code);
		}
}

/* ---- one product ---- */

static void fill(struct mma *c, struct memory *m)
{
	const unsigned ka = c->sparse ? c->k / 2 : c->k, ctas = c->pair ? 2 : 1;

	for (unsigned r = 0; r < c->m; r++) {
		for (unsigned k = 0; k < ka; k++)
			for (unsigned i = 0; i < 4; i++)
				c->a_at[i][r][k] = i && !c->own_copies ? c->a_at[0][r][k] : value(c->fa);
		for (unsigned g = 0; c->sparse && g < ka;) {
			static const uint8_t two[] = { 4, 8, 12, 9, 13, 14 };
			unsigned bits = two[c->infinite ? g % 5 : below(6)];

			if (c->kind == TF32) {
				bits = (c->infinite ? g % 3 : below(2)) ? 14 : 4;
				c->slot[r][g] = (uint8_t)(2 * g + (bits == 14));
				put_metadata(c, m, r, g, bits);
				g++;
			} else if (c->kind >= MXF4) {
				for (unsigned i = 0; i < 4; i++)
					c->slot[r][g + i] = (uint8_t)(2 * g + (bits >> i / 2 * 2 & 3) * 2 + i % 2);
				put_metadata(c, m, r, g / 4, bits);
				g += 4;
			} else {
				c->slot[r][g] = (uint8_t)(2 * g + (bits & 3));
				c->slot[r][g + 1] = (uint8_t)(2 * g + (bits >> 2));
				put_metadata(c, m, r, g / 2, bits);
				g += 2;
			}
		}
	}
	for (unsigned r = 0; r < c->n + c->shift; r++)
		for (unsigned k = 0; k < c->k; k++)
			c->b_at[r][k] = c->infinite && !memchr(c->slot[0], (int)k, ka) ? INFINITY
				: value(c->fb);
	for (unsigned which = 0; c->vec && which < 2; which++)
		for (unsigned r = 0; r < (which ? c->n : c->m); r++)
			for (unsigned j = 0; j < c->vec; j++) {
				c->scale[which][r][j] = c->ue8m0 ? ldexp(1, (int)below(4) - 2)
					: 0.5 * (1 + below(4));
				put_scale(c, m, which, r, j);
			}
	for (unsigned r = 0; r < c->m; r++)
		for (unsigned k = 0; k < ka; k++) {
			struct memory *at = &m[r / rows_of(c)];
			const unsigned copies = is_half(c) ? 1 : LANES / rows_of(c);

			if (!c->a_tmem) {
				put_shared(c, at->shared, c->fa, &c->a, r % rows_of(c), k, c->a_at[0][r][k]);
				continue;
			}
			for (unsigned i = 0; i < copies; i++) {
				const unsigned lane = lane_of(c, r) + i * rows_of(c);
				unsigned char *row = (unsigned char *)&at->before[lane][A_AT];
				const uint32_t code = encode(c->fa, c->a_at[i][r][k]);

				if (c->fa->bits < 8 && c->kind < MXF4) /* a byte each */
					put_bits(row, 8 * k, 8, code << (c->fa->bits == 4 ? 2 : 0));
				else
					put_bits(row, k * c->fa->bits, c->fa->bits, code);
			}
		}
	for (unsigned r = 0; r < c->n + c->shift; r++)
		for (unsigned k = 0; k < c->k; k++)
			put_shared(c, m[r / (c->n / ctas) % ctas].shared, c->fb, &c->b,
				c->pair ? r % (c->n / 2) : r, k, c->b_at[r][k]);
}

/* Is column c of B zeroed? Spans alternate from the start count on. */
static bool zeroed(const struct mma *c, unsigned column)
{
	const unsigned n = c->m < 128 ? c->n / (128 / c->m) : c->n, i = column / n;
	const unsigned skip = (c->mask >> 40 & 255) + 1, use = (c->mask >> 48 & 255) + 1;
	const bool zero_first = c->mask >> (32 + i) & 1;
	const unsigned at = (column % n + (c->mask >> 8 * i & 255)) % (skip + use);

	if (!c->masked || !(c->mask >> 39 & 1))
		return false;
	return zero_first ? at < skip : at >= use;
}

static double product(const struct mma *c, unsigned row, unsigned column)
{
	const unsigned last = (row / rows_of(c) + 1) * rows_of(c) - 1;
	const unsigned from = c->ashift && row < last ? row + 1 : row;
	const unsigned copy = c->a_tmem ? column / (c->n / groups_of(c)) : 0;
	double sum = 0;

	for (unsigned i = 0; i < (c->sparse ? c->k / 2 : c->k); i++) {
		const unsigned k = c->sparse ? c->slot[from][i] : i;
		double x = c->a_at[copy][from][i] * c->b_at[column + c->shift][k];

		if (c->vec)
			x *= c->scale[0][row][k / c->block] * c->scale[1][column][k / c->block];
		sum += zeroed(c, column) ? 0 : x;
	}
	return c->negate_a != c->negate_b ? -sum : sum;
}

static double number(const struct mma *c, uint32_t cell)
{
	float f;

	if (c->kind == I8)
		return (int32_t)cell;
	if (c->half_d) {
		const int e = (int)(cell >> 10 & 31), m = cell & 1023;

		return ldexp(e ? 1024 + m : m, (e ? e : 1) - 25) * (cell >> 15 & 1 ? -1 : 1);
	}
	memcpy(&f, &cell, 4);
	return f;
}

static uint32_t cell_of(const struct mma *c, double v)
{
	static const struct format f16 = { 0, 16, 5, 10, 15 };
	float f = (float)v;
	uint32_t u;

	if (c->kind == I8)
		return (uint32_t)(int32_t)v;
	if (c->half_d)
		return encode(&f16, v);
	memcpy(&u, &f, 4);
	return u;
}

static char *instruction(const struct mma *c)
{
	static const char *const sizes[2][7] = { { "", ".scale_vec::1X", ".scale_vec::2X", "", "",
		".scale_vec::4X" }, { "", ".block32", ".block32", ".block32", ".block16", "", ".block16" } };
	static const char *const a_use[] = { "", ".collector::a::fill", ".collector::a::use",
		".collector::a::lastuse", ".collector::a::discard" };
	static const char *const b_use[] = { "", ".collector::b0::fill", ".collector::b3::use",
		".collector::b1::lastuse", ".collector::b2::discard" };
	struct text t = { 0 };

	if (c->a.absolute || c->b.absolute) /* an address instead of an offset */
		text_printf(&t, "shl.b64 %%e, %%e, 16;\n");
	for (unsigned i = 0; i < 2; i++)
		if (i ? c->b.absolute : c->a.absolute)
			text_printf(&t, "add.u64 %%d%u, %%d%u, %%e;\n", i, i);
	text_printf(&t, "tcgen05.mma%s%s.cta_group::%u.kind::%s%s%s%s%s [%%w0], %s, %%d1, ",
		c->ws ? ".ws" : "", c->sparse ? ".sp" : "", c->pair ? 2 : 1, names[c->kind],
		c->vec ? ".block_scale" : "",
		!c->vec ? "" : c->vec == 4 && below(2) ? ".scale_vec::4X"
			: sizes[c->vec < 3 ? below(2) : 1][c->vec], c->ashift ? ".ashift" : "",
		c->ashift ? "" : c->ws ? b_use[below(5)] : a_use[below(5)],
		c->a_tmem ? "[%w1]" : "%d0");
	if (c->sparse)
		text_printf(&t, "[%%w2], ");
	text_printf(&t, "%%w5, ");
	if (c->vec)
		text_printf(&t, "[%%w3], [%%w4], ");
	for (unsigned k = 0; k < c->ndisabled; k++)
		text_printf(&t, "%s%%w%u%s", k ? ", " : "{", 6 + k, k + 1 < c->ndisabled ? "" : "}, ");
	text_printf(&t, "%s", c->enable ? "%true" : "%false");
	if (c->masked)
		text_printf(&t, ", %%d2");
	if (c->scale_d)
		text_printf(&t, ", %u", c->scale_d);
	text_printf(&t, ";\n");
	return t.at;
}

static uint32_t idesc_of(const struct mma *c)
{
	const uint32_t common = (uint32_t)c->sparse << 2 | c->fa->code << 7 | c->fb->code << 10
		| (uint32_t)c->negate_a << 13 | (uint32_t)c->negate_b << 14 | (uint32_t)c->a.mn << 15
		| (uint32_t)c->b.mn << 16 | c->n / 8 << 17;

	if (c->vec)
		return common | c->id[1] << 4 | (uint32_t)c->ue8m0 << 23 | c->m / 128 << 27
			| c->id[0] << 29 | (uint32_t)(c->k == 96) << 31;
	return common | c->selector | (uint32_t)c->saturate << 3 | c->m / 16 << 24
		| (c->kind == I8 ? 2u : c->half_d ? 0u : 1u) << 4;
}

static void multiply(struct mma *c)
{
	const unsigned ctas = c->pair ? 2 : 1;
	struct memory *m = calloc(ctas, sizeof *m);
	struct consan_err e = { 0 };
	char *code = instruction(c);
	unsigned bad = 0;

	for (unsigned h = 0; h < ctas; h++)
		for (unsigned l = 0; l < LANES; l++)
			for (unsigned k = 0; k < COLUMNS; k++)
				m[h].before[l][k] = below(1u << 31);
	fill(c, m);
	for (unsigned r = 0; r < c->m; r++)
		for (unsigned k = 0; k < c->n; k++)
			*d_cell(c, m, false, r, k) = cell_of(c, c->kind == I8 && c->saturate && below(4) == 0
				? INT32_MAX : (double)below(9) - 4);
	m->d[0] = descriptor(&c->a);
	m->d[1] = descriptor(&c->b);
	m->d[2] = c->mask;
	m->w[0] = D_AT | c->lane << 16;
	m->w[1] = A_AT | c->lane << 16;
	m->w[2] = META_AT | c->lane << 16;
	m->w[3] = SFA_AT;
	m->w[4] = SFB_AT;
	m->w[5] = idesc_of(c);
	memcpy(m->w + 6, c->disabled, sizeof c->disabled);
	cr_assert_eq(run_code(code, c->pair, m, &e), CONSAN_OK, "%s\n%s", e.text, code);
	for (unsigned r = 0; r < c->m; r++)
		for (unsigned k = 0; k < c->n; k++) {
			uint32_t *was = d_cell(c, m, false, r, k), *is = d_cell(c, m, true, r, k);
			const unsigned lane = (unsigned)(was - m[r / rows_of(c)].before[0]) / COLUMNS;
			const unsigned bit = r / rows_of(c) * LANES + lane;
			double want = product(c, r, k)
				+ (c->enable ? ldexp(number(c, *was), -(int)c->scale_d) : 0);

			if (c->kind == I8 && c->saturate && want > INT32_MAX)
				want = INT32_MAX;
			if (c->ndisabled && c->disabled[bit / 32] >> bit % 32 & 1)
				want = number(c, *was);
			bad += number(c, *is) != want;
			*is = *was; /* seen */
		}
	for (unsigned h = 0; h < ctas; h++)
		bad += memcmp(m[h].before, m[h].after, sizeof m[h].before) != 0;
	cr_expect_eq(bad, 0, "%u wrong: M %u, N %u, K %u, A type %u in %s, %s, swizzle %u, B type %u, "
		"%s, swizzle %u, idesc 0x%x, %s", bad, c->m, c->n, c->k, c->fa->code,
		c->a_tmem ? "tensor memory" : "shared memory", c->a.mn ? "M-major" : "K-major",
		c->a.swizzle, c->fb->code, c->b.mn ? "N-major" : "K-major", c->b.swizzle, idesc_of(c),
		code);
	free(code);
	free(m);
}

/* ---- legal cases (ISA, "Matrix Shape") ---- */

static const struct format *any_format(enum kind kind)
{
	const struct format *f;

	do
		f = &formats[kind][below(6)];
	while (!f->bits);
	return f;
}

static unsigned any_n(const struct mma *c)
{
	const bool bytes = c->kind == F8F6F4 || c->kind == I8 || c->kind == MXF8F6F4;
	unsigned step = c->pair ? 16 : 8;

	if (c->ws)
		return 64u << below(c->sparse ? 2 : 3);
	if (bytes && (c->kind == I8 || c->b.mn))
		step *= 2;
	return step * (1 + below(256 / step));
}

static void any_mask(struct mma *c)
{
	const unsigned skip = below(20), use = below(20);

	c->masked = true;
	c->shift = below(2) ? below(c->m == 32 ? 17 : 33) : 0;
	c->mask = (uint64_t)(below(8) > 0) << 39 | (uint64_t)skip << 40 | (uint64_t)use << 48
		| (uint64_t)c->shift << 56;
	for (unsigned i = 0; i < 4; i++) {
		const bool first = below(2);

		c->mask |= (uint64_t)first << (32 + i) | (uint64_t)below((first ? skip : use) + 1) << 8 * i;
	}
}

static void any_scales(struct mma *c)
{
	static const unsigned k96[] = { 0, 0, 3, 0, 6 };

	c->vec = c->kind == MXF8F6F4 ? 1 : c->kind == MXF4 ? 2 : below(2) ? 2 : 4;
	c->ue8m0 = c->kind != MXF4NVF4 || c->vec == 2 || below(2);
	for (unsigned i = 0; i < 2; i++)
		c->id[i] = c->vec == 1 ? below(4) : c->vec == 2 ? 2 * below(2) : 0;
	if (!c->sparse && c->kind != MXF8F6F4 && below(2)) {
		c->k = 96;
		for (unsigned i = 0; i < 2; i++)
			c->id[i] = c->vec == 2 ? below(4) : 2 * below(2);
		c->vec = k96[c->vec];
	}
	c->block = c->k / c->vec;
}

static void any_case(struct mma *c, enum kind kind, bool pair, bool ws, bool sparse)
{
	static const unsigned ks[KINDS] = { 16, 8, 32, 32, 32, 64, 64 };
	const bool mx = kind >= MXF8F6F4;
	unsigned bytes_a, bytes_b;

	*c = (struct mma){ .kind = kind, .pair = pair, .ws = ws, .sparse = sparse,
		.k = ks[kind] * (sparse ? 2 : 1), .fa = any_format(kind), .enable = below(4) > 0,
		.a_tmem = below(2), .own_copies = below(2), .negate_a = kind != I8 && below(2), .negate_b = kind != I8 && below(2),
		.saturate = kind == I8 && below(2), .selector = kind <= TF32 ? below(4) : 0 };
	c->fb = kind == F16 ? c->fa : any_format(kind);
	c->half_d = (kind == F8F6F4 || (kind == F16 && !c->fa->code)) && below(2);
	if (!sparse)
		c->selector = 0;
	c->infinite = sparse && c->fb->exponent >= 5 && below(2);
	c->m = mx ? (pair ? (sparse || below(2) ? 256 : 128) : 128) : ws ? 32u << below(3)
		: (pair ? 128u : 64u) << below(2);
	c->a.mn = kind < MXF4 && !c->a_tmem && below(2);
	c->b.mn = kind < MXF4 && below(2);
	c->n = any_n(c);
	if (mx)
		any_scales(c);
	if (ws && below(2))
		any_mask(c);
	if (c->a_tmem && c->m >= 128 && !mx && !ws && below(2))
		c->ashift = true;
	c->lane = is_half(c) && below(2) ? 16 : 0;
	if (!mx && !ws && below(2))
		c->ndisabled = pair ? 8 : 4;
	for (unsigned i = 0; i < c->ndisabled; i++)
		c->disabled[i] = below(1u << 16) << 16 | below(1u << 16);
	if (kind <= TF32 && !ws && below(2))
		c->scale_d = below(c->half_d ? 3 : 16);
	bytes_a = c->k == 96 ? 48 : 32;
	bytes_b = sparse ? 64 : bytes_a;
	c->a = any_place(c, c->fa, c->a.mn, A_BYTE, rows_of(c), bytes_a, A_BYTE + SECOND);
	c->b = any_place(c, c->fb, c->b.mn, B_BYTE, (pair ? c->n / 2 : c->n) + (c->shift + 15) / 16 * 16,
		bytes_b, B_BYTE + SECOND_B);
}

static void cases(enum kind kind, unsigned n)
{
	struct mma *c = malloc(sizeof *c);

	state = 1000 + kind;
	for (unsigned i = 0; i < n; i++) {
		const bool ws = kind < MXF8F6F4 && i % 3 == 2;

		any_case(c, kind, i % 3 == 1, ws, i / 3 % 2);
		multiply(c);
	}
	free(c);
}

/* TCGEN05_CASES: how many of each kind */
#define CASES(kind) (getenv("TCGEN05_CASES") ? (unsigned)atoi(getenv("TCGEN05_CASES")) : 24)
Test(tcgen05_mma, f16) { cases(F16, CASES(F16)); }
Test(tcgen05_mma, tf32) { cases(TF32, CASES(TF32)); }
Test(tcgen05_mma, f8f6f4) { cases(F8F6F4, CASES(F8F6F4)); }
Test(tcgen05_mma, i8) { cases(I8, CASES(I8)); }
Test(tcgen05_mma, mxf8f6f4) { cases(MXF8F6F4, CASES(MXF8F6F4)); }
Test(tcgen05_mma, mxf4) { cases(MXF4, CASES(MXF4)); }
Test(tcgen05_mma, mxf4nvf4) { cases(MXF4NVF4, CASES(MXF4NVF4)); }
