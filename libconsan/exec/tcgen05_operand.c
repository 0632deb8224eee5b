/* tcgen05_operand: see tcgen05_operand.h. */
#include "tcgen05_operand.h"

#include "num.h"

#include "libconsan/ptx/ptx.h"

/* ---- the instruction descriptor (ISA, "Instruction descriptor") ---- */

static unsigned field(uint32_t idesc, unsigned at, unsigned bits)
{
	return idesc >> at & ((1u << bits) - 1);
}

static bool is_mx(enum tc_kind k)
{
	return k >= K_mxf8f6f4;
}

static bool is_fp4(enum tc_kind k)
{
	return k == K_mxf4 || k == K_mxf4nvf4;
}

/* -1: not a type of this kind */
static int type_of(enum tc_kind k, unsigned code, bool tmem)
{
	static const int8_t f8f6f4[8] = { TC_e4m3, TC_e5m2, -1, TC_e2m3_x, TC_e3m2_x, TC_e2m1_x, -1,
		-1 };
	int t;

	switch (k) {
	case K_f16: return code == 0 ? TC_f16 : code == 1 ? TC_bf16 : -1;
	case K_tf32: return code == 2 ? TC_tf32 : -1;
	case K_i8: return code == 0 ? TC_u8 : code == 1 ? TC_s8 : -1;
	case K_f8f6f4: case K_mxf8f6f4:
		t = f8f6f4[code];
		return tmem && t >= TC_e3m2_x && t <= TC_e2m1_x ? t - TC_e3m2_x + TC_e3m2_b : t;
	case K_mxf4: case K_mxf4nvf4: return code == 1 ? TC_e2m1 : -1;
	}
	return -1;
}

/* -1: not a type of D of this kind */
static int acc_of(enum tc_kind k, unsigned code, unsigned a_type)
{
	if (is_mx(k))
		return TC_ACC_f32;
	if (k == K_i8)
		return code == 2 ? TC_ACC_s32 : -1;
	if (code == 0)
		return k == K_f8f6f4 || (k == K_f16 && a_type == TC_f16) ? TC_ACC_f16 : -1;
	return code == 1 ? TC_ACC_f32 : -1;
}

/* ISA, "Matrix Shape" */
static bool valid_m(const struct tc_form *f, unsigned m)
{
	if (f->ws)
		return !f->pair && !is_mx(f->kind) && (m == 32 || m == 64 || m == 128);
	if (f->pair)
		return m == 256 || (m == 128 && !(is_mx(f->kind) && f->sparse));
	return m == 128 || (m == 64 && !is_mx(f->kind));
}

static bool valid_n(const struct tc_form *f, unsigned n, bool b_mn)
{
	const bool bytes = f->kind == K_f8f6f4 || f->kind == K_i8 || f->kind == K_mxf8f6f4;
	unsigned step = f->pair ? 16 : 8;

	if (f->ws)
		return n == 64 || n == 128 || (n == 256 && !f->sparse);
	if ((bytes && b_mn) || (f->kind == K_i8 && (f->pair || n > 32)))
		step *= 2;
	return n >= step && n <= TC_N && n % step == 0;
}

static unsigned k_of(const struct tc_form *f, uint32_t idesc)
{
	unsigned k = 32;

	if (is_fp4(f->kind) && field(idesc, 31, 1))
		return 96;
	if (f->kind == K_tf32)
		k = 8;
	else if (f->kind == K_f16)
		k = 16;
	else if (is_fp4(f->kind))
		k = 64;
	return f->sparse ? 2 * k : k;
}

static bool wrong(const char **why, const char *format, uint32_t *value, uint32_t v)
{
	*why = format;
	*value = v;
	return false;
}

static void layout(const struct tc_form *f, uint32_t idesc, unsigned ctas, struct tc_shape *s)
{
	s->ctas = (uint8_t)ctas;
	s->rows = s->m / (f->pair ? 2 : 1);
	s->b_rows = s->n / (f->pair ? 2 : 1);
	s->half = s->rows == 64 && !f->ws && !(f->pair && !f->sparse);
	s->groups = (uint8_t)(s->half ? 1 : TMEM_LANES / s->rows);
	s->k = (uint16_t)k_of(f, idesc);
	s->a_bytes = s->k == 96 ? 48 : 32;
	s->b_bytes = (uint8_t)(f->sparse ? 64 : s->a_bytes);
	s->scales = s->k != 96 ? f->scale_vec : f->scale_vec == 4 ? 6 : 3;
}

bool tc_shape_of(const struct tc_form *f, uint32_t idesc, unsigned ctas, struct tc_shape *s,
	const char **why, uint32_t *value)
{
	const unsigned k96 = is_fp4(f->kind) && field(idesc, 31, 1);
	int a, b, acc;

	*s = (struct tc_shape){ .m = (uint16_t)(16 * field(idesc, 24, 5)),
		.n = (uint16_t)(8 * field(idesc, 17, 6)), .a_mn = field(idesc, 15, 1) && !f->a_tmem,
		.b_mn = field(idesc, 16, 1), .negate_a = field(idesc, 13, 1) && f->kind != K_i8,
		.negate_b = field(idesc, 14, 1) && f->kind != K_i8,
		.satfinite = f->kind == K_i8 && field(idesc, 3, 1),
		.scale_id = { (uint8_t)field(idesc, 29, 2), (uint8_t)field(idesc, 4, 2) },
		.ue8m0 = field(idesc, 23, 1), .selector = (uint8_t)field(idesc, 0, 2) };
	if (field(idesc, 2, 1) != f->sparse)
		return wrong(why, f->sparse ? "the instruction descriptor 0x%x is of a dense matrix"
			: "the instruction descriptor 0x%x is of a sparse matrix", value, idesc);
	if (!valid_m(f, s->m))
		return wrong(why, "M of %u in the instruction descriptor", value, s->m);
	if (!valid_n(f, s->n, s->b_mn))
		return wrong(why, "N of %u in the instruction descriptor", value, s->n);
	if (k96 && f->sparse)
		return wrong(why, "K of 96 with a sparse matrix in the instruction descriptor 0x%x", value,
			idesc);
	a = type_of(f->kind, field(idesc, 7, 3), f->a_tmem);
	b = type_of(f->kind, field(idesc, 10, is_fp4(f->kind) ? 2 : 3), false);
	acc = a < 0 ? -1 : acc_of(f->kind, field(idesc, 4, 2), (unsigned)a);
	if (a < 0 || b < 0 || acc < 0 || (f->kind == K_f16 && acc == TC_ACC_f16 && b != TC_f16))
		return wrong(why, "the types in the instruction descriptor 0x%x", value, idesc);
	if (is_fp4(f->kind) && (s->a_mn || s->b_mn))
		return wrong(why, "transposed matrices of 4-bit elements in the instruction descriptor 0x%x",
			value, idesc);
	if (f->ashift && s->m < 128)
		return wrong(why, ".ashift with M of %u", value, s->m);
	s->a_type = (uint8_t)a;
	s->b_type = (uint8_t)b;
	s->acc = (uint8_t)acc;
	layout(f, idesc, ctas, s);
	if (is_mx(f->kind) || s->a_type >= TC_e4m3)
		s->selector = 0; /* ISA, "Sparsity selector" */
	return true;
}

/* ---- A and B ---- */

/* Bytes of an element: 4- and 6-bit ones fill a byte here, as only dense fp4, which has no MN-major
 * form, does not. */
static unsigned bytes_of(unsigned type)
{
	return type == TC_tf32 ? 4 : type <= TC_bf16 ? 2 : 1;
}

/* rows: a multiple of 8; mn: k rows of `rows` elements */
static unsigned pieces(uint64_t word, bool mn, unsigned rows, unsigned bytes, unsigned type,
	uint32_t *out)
{
	const struct tc_desc d = tc_desc_decode(word);

	if (!mn) {
		tc_desc_k_pieces(&d, rows, bytes / 16, out);
		return rows * bytes / 16;
	}
	tc_desc_mn_pieces(&d, bytes / bytes_of(type), rows * bytes_of(type) / 16, out);
	return bytes / bytes_of(type) * (rows * bytes_of(type) / 16);
}

unsigned tc_a_pieces(const struct tc_shape *s, uint64_t desc, uint32_t *out)
{
	return pieces(desc, s->a_mn, s->rows, s->a_bytes, s->a_type, out);
}

unsigned tc_b_pieces(const struct tc_shape *s, uint64_t desc, unsigned more, uint32_t *out)
{
	return pieces(desc, s->b_mn, s->b_rows + more, s->b_bytes, s->b_type, out);
}

static void gather(unsigned char *to, const struct cta *c, const uint32_t *piece, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		memcpy(to + 16 * i, c->shared + piece[i], 16);
}

/* The row of the matrix in memory that is row r of A. .ashift: each row has the place of the one
 * before it, and the last one stays (ISA, tcgen05.mma; CUTLASS refreshes the last lanes after a
 * shift). */
static unsigned row_in_memory(const struct tc_form *f, const struct tc_shape *s, unsigned r)
{
	return f->ashift && r + 1u < s->rows ? r + 1 : r;
}

void tc_gather_a(const struct tc_form *f, const struct tc_shape *s, uint64_t a, const struct cta *c,
	struct tc_scratch *x)
{
	if (!f->a_tmem) {
		gather(x->image_a, c, x->piece, tc_a_pieces(s, a, x->piece));
		return;
	}
	/* each group of columns of D has a copy of A: the first one is read */
	for (unsigned r = 0; r < s->rows; r++)
		memcpy(x->image_a + s->a_bytes * r, &c->async->tmem.cell[((uint32_t)a >> 16)
			+ tc_lane(s, row_in_memory(f, s, r))][a & 0xffff], s->a_bytes);
}

void tc_gather_b(const struct tc_shape *s, uint64_t desc, unsigned more, struct cta *const cta[2],
	struct tc_scratch *x)
{
	const unsigned n = tc_b_pieces(s, desc, more, x->piece);
	const unsigned nk = s->b_bytes / bytes_of(s->b_type), row = n / nk;

	for (unsigned h = 0; h < s->ctas; h++) {
		if (!s->b_mn) {
			gather(x->image_b + h * 16 * n, cta[h], x->piece, n);
			continue;
		}
		for (unsigned k = 0; k < nk; k++) /* the columns of both CTAs next to each other */
			gather(x->image_b + 16 * row * (k * s->ctas + h), cta[h],
				x->piece + k * row, row);
	}
}

/* ---- sparse matrices ---- */

static bool is_wide(const struct tc_shape *s)
{
	return s->a_type <= TC_tf32;
}

unsigned tc_meta_columns(const struct tc_shape *s)
{
	return is_wide(s) ? 1u + s->selector : 2;
}

/* The metadata of a row, lowest k first: 64 bits, or 32 for elements of 16 and 32 bits. Those are in
 * lanes as the rows of mma.sp's fragments: lanes 0 to 7 of 16 have the first half of K, lanes 8 to
 * 15 the second; the halves of a cell are rows r and r + 8. */
static uint64_t metadata(const struct tc_shape *s, uint32_t meta, const struct cta *c, unsigned r)
{
	uint32_t (*cell)[TMEM_STRIDE] = c->async->tmem.cell + (meta >> 16);
	const unsigned column = meta & 0xffff, at = tc_lane(s, r / 16 * 16) + r % 8;
	const unsigned half = r & 8 ? 16 : 0;

	if (!is_wide(s))
		return cell[tc_lane(s, r)][column]
			| (uint64_t)cell[tc_lane(s, r)][column + 1] << 32;
	return (cell[at][column + s->selector] >> half & 0xffff)
		| (cell[at + 8][column + s->selector] >> half & 0xffff) << 16;
}

void tc_gather_slots(const struct tc_form *f, const struct tc_shape *s, uint32_t meta,
	const struct cta *c, struct tc_scratch *x)
{
	const unsigned half = s->k / 2;

	for (unsigned r = 0; r < s->rows; r++) {
		uint8_t *slot = x->slot + r * half;
		uint64_t bits = metadata(s, meta, c, row_in_memory(f, s, r));

		for (unsigned i = 0; i < half; bits >>= 4) {
			const unsigned first = bits & 3, second = bits >> 2 & 3;

			if (s->a_type == TC_tf32) { /* 1:2: 0b0100 or 0b1110 */
				slot[i] = (uint8_t)(2 * i + (first >> 1));
				i++;
			} else if (is_fp4(f->kind)) { /* 4:8, in pairs */
				for (unsigned k = 0; k < 4; k++)
					slot[i + k] = (uint8_t)(2 * i + 2 * (k < 2 ? first : second) + k % 2);
				i += 4;
			} else { /* 2:4 */
				slot[i] = (uint8_t)(2 * i + first);
				slot[i + 1] = (uint8_t)(2 * i + second);
				i += 2;
			}
		}
	}
}

/* ---- scales ---- */

enum { SCALE_LANES = 32 };

/* B's scales for layout B: the lanes of each group of columns of D have its scales only. */
static unsigned scale_groups(const struct tc_shape *s, unsigned which)
{
	return which && s->ctas == 2 ? s->groups : 1;
}

/* Four scales of a row are in a cell. K = 96: the next ones are in the cell behind those of 128
 * rows, of 256 if B has more than 128 (ISA, "Scale Factor B ID"). */
static unsigned scale_stride(const struct tc_shape *s, unsigned which)
{
	return which && s->n > 128 ? 8 : 4;
}

unsigned tc_scale_columns(const struct tc_shape *s, unsigned which, unsigned *groups)
{
	const unsigned rows = (which ? s->n : s->rows) / scale_groups(s, which);
	const unsigned cells = (s->scale_id[which] + s->scales + 3u) / 4;

	*groups = scale_groups(s, which);
	return (cells - 1) * scale_stride(s, which) + (rows + SCALE_LANES - 1) / SCALE_LANES;
}

void tc_gather_scales(const struct tc_shape *s, unsigned which, uint32_t addr, const struct cta *c,
	float *out)
{
	const unsigned n = which ? s->n : s->rows, groups = scale_groups(s, which);

	for (unsigned r = 0; r < n; r++) {
		const unsigned group = r / (n / groups), row = r % (n / groups);
		const unsigned lane = group * (TMEM_LANES / groups) + row % SCALE_LANES;

		for (unsigned j = 0; j < s->scales; j++) {
			const unsigned at = s->scale_id[which] + j;
			const uint32_t cell = c->async->tmem.cell[lane][(addr & 0xffff) + row / SCALE_LANES
				+ at / 4 * scale_stride(s, which)];
			const uint8_t byte = (uint8_t)(cell >> 8 * (at % 4));

			*out++ = s->ue8m0 ? num_from_ue8m0(byte) : num_from_e4m3(byte & 0x7f);
		}
	}
}

/* ---- the zero-column mask ---- */

/* Spans of used and of zeroed columns alternate; a sub-mask begins inside its first span. The
 * examples of the ISA (and CUTLASS) have it that the skip span is the zeroed one. */
unsigned tc_zero_mask(const struct tc_shape *s, uint64_t desc, uint64_t *mask)
{
	const unsigned skip = (unsigned)(desc >> 40 & 255) + 1, use = (unsigned)(desc >> 48 & 255) + 1;
	const unsigned n = s->n / (128 / s->m);

	memset(mask, 0, TC_N / 8);
	for (unsigned i = 0; desc >> 39 & 1 && i < 128u / s->m; i++) {
		bool zero = desc >> (32 + i) & 1;
		unsigned left = zero ? skip : use, start = (unsigned)(desc >> 8 * i & 255);

		left -= start < left ? start : left;
		for (unsigned c = i * n; c < (i + 1) * n; c++) {
			while (!left) {
				zero = !zero;
				left = zero ? skip : use;
			}
			mask[c / 64] |= (uint64_t)zero << c % 64;
			left--;
		}
	}
	return (unsigned)(desc >> 56 & 63);
}
