/* tc_shape: see tc_shape.h. */
#include "tc_shape.h"

/* ---- the instruction descriptor (ISA, "Instruction descriptor") ---- */

static unsigned field(uint32_t idesc, unsigned at, unsigned bits)
{
	return idesc >> at & ((1u << bits) - 1);
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
	if (k >= K_mxf8f6f4)
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
		return !f->pair && !tc_is_mx(f) && (m == 32 || m == 64 || m == 128);
	if (f->pair)
		return m == 256 || (m == 128 && !(tc_is_mx(f) && f->sparse));
	return m == 128 || (m == 64 && !tc_is_mx(f));
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

	if (tc_is_fp4(f) && field(idesc, 31, 1))
		return 96;
	if (f->kind == K_tf32)
		k = 8;
	else if (f->kind == K_f16)
		k = 16;
	else if (tc_is_fp4(f))
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
	const unsigned k96 = tc_is_fp4(f) && field(idesc, 31, 1);
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
	b = type_of(f->kind, field(idesc, 10, tc_is_fp4(f) ? 2 : 3), false);
	acc = a < 0 ? -1 : acc_of(f->kind, field(idesc, 4, 2), (unsigned)a);
	if (a < 0 || b < 0 || acc < 0 || (f->kind == K_f16 && acc == TC_ACC_f16 && b != TC_f16))
		return wrong(why, "the types in the instruction descriptor 0x%x", value, idesc);
	if (tc_is_fp4(f) && (s->a_mn || s->b_mn))
		return wrong(why, "transposed matrices of 4-bit elements in the instruction descriptor 0x%x",
			value, idesc);
	if (f->ashift && s->m < 128)
		return wrong(why, ".ashift with M of %u", value, s->m);
	s->a_type = (uint8_t)a;
	s->b_type = (uint8_t)b;
	s->acc = (uint8_t)acc;
	layout(f, idesc, ctas, s);
	if (tc_is_mx(f) || s->a_type >= TC_e4m3)
		s->selector = 0; /* ISA, "Sparsity selector" */
	return true;
}

/* ---- metadata and scales ---- */

unsigned tc_meta_columns(const struct tc_shape *s)
{
	return tc_is_wide(s) ? 1u + s->selector : 2;
}

unsigned tc_scale_columns(const struct tc_shape *s, unsigned which, unsigned *groups)
{
	const unsigned rows = (which ? s->n : s->rows) / tc_scale_groups(s, which);
	const unsigned cells = (s->scale_id[which] + s->scales + 3u) / 4;

	*groups = tc_scale_groups(s, which);
	return (cells - 1) * tc_scale_stride(s, which) + (rows + TC_SCALE_LANES - 1) / TC_SCALE_LANES;
}
