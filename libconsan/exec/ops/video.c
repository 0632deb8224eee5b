/* video: the video instructions (ISA 9.7.18). A scalar instruction has one part of 32 bits, the SIMD
 * ones have two halves or four bytes; selectors choose which parts of the sources are computed with,
 * a mask or selector of the destination which parts of it change. */
#include "libconsan/exec/internal.h"
#include "libconsan/exec/lane.h"

#include <string.h>

enum video_op { VIDEO_add, VIDEO_sub, VIDEO_avrg, VIDEO_absdiff, VIDEO_min, VIDEO_max, VIDEO_shl,
	VIDEO_shr, VIDEO_set };

struct video_part { uint8_t at, bits; };

struct video {
	enum video_op op;
	enum ptx_mod mode;         /* VIDEO_set: comparison; shifts: .wrap or .clamp */
	unsigned n;                /* parts */
	bool sa, sb, sd, sat;
	enum ptx_mod second;       /* .add, .min, .max with c; MOD_NONE: merged into c */
	struct video_part a[4], b[4]; /* of the 64 bits b:a */
	struct video_part d[4];    /* of the destination */
	unsigned parts;            /* mask: parts that the destination takes */
	uint32_t keep;             /* bits of c that the destination takes, without a second operation */
};

static inline int64_t extend(uint64_t v, unsigned bits, bool is_signed)
{
	return is_signed ? (int64_t)(v << (64 - bits)) >> (64 - bits)
		: (int64_t)(v & (UINT64_MAX >> (64 - bits)));
}

static inline bool compare(enum ptx_mod mode, int64_t a, int64_t b)
{
	switch ((int)mode) {
	case MOD_eq: return a == b;
	case MOD_ne: return a != b;
	case MOD_lt: return a < b;
	case MOD_le: return a <= b;
	case MOD_gt: return a > b;
	default: return a >= b;
	}
}

/* The result has 34 bits, which only a shift exceeds. */
static inline int64_t first(const struct video *m, int64_t a, int64_t b)
{
	const int64_t by = m->mode == MOD_wrap ? b & 31 : b > 32 ? 32 : b;

	switch (m->op) {
	case VIDEO_add: return a + b;
	case VIDEO_sub: return a - b;
	case VIDEO_avrg: return (a + b + (a + b >= 0)) >> 1;
	case VIDEO_absdiff: return a < b ? b - a : a - b;
	case VIDEO_min: return a < b ? a : b;
	case VIDEO_max: return a < b ? b : a;
	case VIDEO_shl: return extend((uint64_t)a << by, 34, true);
	case VIDEO_shr: return a >> by;
	case VIDEO_set: return compare(m->mode, a, b);
	}
	return 0;
}

static inline __int128 clamp(__int128 v, unsigned bits, bool is_signed)
{
	const __int128 top = ((__int128)1 << (bits - is_signed)) - 1, low = is_signed ? -top - 1 : 0;

	return v > top ? top : v < low ? low : v;
}

static inline uint32_t video(uint32_t a, uint32_t b, uint32_t c, const struct video *m)
{
	const uint64_t pool = (uint64_t)b << 32 | a;
	const int64_t wide_c = extend(c, 32, m->sd);
	uint32_t merged = c & m->keep, sum = c;
	int64_t v = 0;

	for (unsigned k = 0; k < m->n; k++) {
		if (!(m->parts >> k & 1))
			continue;
		v = first(m, extend(pool >> m->a[k].at, m->a[k].bits, m->sa),
			extend(pool >> m->b[k].at, m->b[k].bits, m->sb));
		if (m->sat)
			v = (int64_t)clamp(v, m->d[k].bits, m->sd);
		sum += (uint32_t)v;
		merged |= ((uint32_t)v & UINT32_MAX >> (32 - m->d[k].bits)) << m->d[k].at;
	}
	v = extend((uint64_t)v, 32, m->sd); /* its sign depends on the destination's type */
	switch ((int)m->second) {
	case MOD_add: return sum;
	case MOD_min: return (uint32_t)(v < wide_c ? v : wide_c);
	case MOD_max: return (uint32_t)(v > wide_c ? v : wide_c);
	default: return merged;
	}
}
LANE_SLOW(video_32, l32, l32, l32, l32, video(A, B, C, x->i.p))

/* ---- vmad ---- */

struct vmad {
	struct video_part a, b;
	bool sa, sb, minus, minus_c, plus_one, sat;
	bool final_signed;
	unsigned shift;
};

static inline uint32_t vmad(uint32_t a, uint32_t b, uint32_t c, const struct vmad *m)
{
	const uint64_t pool = (uint64_t)b << 32 | a;
	__int128 v = (__int128)extend(pool >> m->a.at, m->a.bits, m->sa) *
		extend(pool >> m->b.at, m->b.bits, m->sb);

	v = m->minus ? ~v : v;
	v += extend(m->minus_c ? ~c : c, 32, m->final_signed);
	v = (v + (m->plus_one || m->minus || m->minus_c)) >> m->shift;
	return (uint32_t)(m->sat ? clamp(v, 32, m->final_signed) : v);
}
LANE_SLOW(vmad_32, l32, l32, l32, l32, vmad(A, B, C, x->i.p))

/* ---- decoding ---- */

/* The parts that a selector names, from the right; without one those at `from` onwards. */
static bool source(struct decoder *d, const struct ptx_operand *o, unsigned n, unsigned from,
	struct video_part *part)
{
	const unsigned bits = 32 / n;

	if (o->part_bits && (o->nparts != n || (n > 1 && o->part_bits != bits)))
		return dec_unsupported(d, "this selector of a video instruction");
	for (unsigned k = 0; k < n; k++) {
		part[k] = (struct video_part){ (uint8_t)(from + bits * k), (uint8_t)bits };
		if (!o->part_bits)
			continue;
		part[k].bits = o->part_bits;
		part[k].at = (uint8_t)(o->part_bits * (o->parts >> 4 * k & 15) + (n == 1 ? from : 0));
	}
	return true;
}

static bool destination(struct decoder *d, const struct ptx_insn *i, struct video *m)
{
	const struct ptx_operand *o = &i->operand[0];
	const unsigned bits = 32 / m->n;
	unsigned at = 0;

	for (unsigned k = 0; k < m->n; k++)
		m->d[k] = (struct video_part){ (uint8_t)(bits * k), (uint8_t)bits };
	m->parts = (1u << m->n) - 1;
	if (m->n == 1 && o->part_bits) {
		if (o->nparts != 1 || m->second || i->noperands != 4)
			return dec_unsupported(d, "this selector of a video instruction");
		m->d[0] = (struct video_part){ (uint8_t)(o->part_bits * (o->parts & 15)), o->part_bits };
	} else if (o->part_bits) {
		if (o->part_bits != bits)
			return dec_unsupported(d, "this mask of a video instruction");
		m->parts = 0;
		for (unsigned k = 0; k < o->nparts; k++) {
			at = o->parts >> 4 * k & 15;
			if (at >= m->n || m->parts >> at)
				return dec_unsupported(d, "this mask of a video instruction");
			m->parts |= 1u << at;
		}
	}
	m->keep = UINT32_MAX;
	for (unsigned k = 0; k < m->n; k++)
		if (m->parts >> k & 1)
			m->keep &= ~(UINT32_MAX >> (32 - m->d[k].bits) << m->d[k].at);
	return true;
}

static bool decode_video(struct decoder *d, const struct ptx_insn *i, struct xop *x,
	enum video_op op, unsigned n)
{
	const unsigned first_type = op == VIDEO_set ? 0 : 1;
	struct video *m = dec_alloc(d, sizeof *m);

	*m = (struct video){ .op = op, .n = n, .sd = op != VIDEO_set && ptx_type_of(i, 0) == TY_s32,
		.mode = op == VIDEO_set ? ptx_pick(i, MG_cmp) : ptx_pick(i, MG_overflow),
		.sa = ptx_type_of(i, first_type) == TY_s32,
		.sb = ptx_type_of(i, first_type + 1) == TY_s32,
		.sat = ptx_has(i, MOD_sat), .second = ptx_pick(i, MG_redop) };
	if (m->second && (i->noperands != 4 || (n > 1 && m->second != MOD_add)))
		return dec_unsupported(d, "this secondary operation of a video instruction");
	if (n == 1 && i->noperands == 4 && !m->second && !i->operand[0].part_bits)
		return dec_unsupported(d, "a video instruction with a third source that has no use");
	if (!source(d, &i->operand[1], n, 0, m->a) || !source(d, &i->operand[2], n, 32, m->b) ||
			!destination(d, i, m))
		return false;
	x->i.p = m;
	return i->noperands == 4 ? LANE_DECODE(video_32, TY_b32, TY_b32, TY_b32, TY_b32)
		: LANE_DECODE(video_32, TY_b32, TY_b32, TY_b32);
}

DECODER(vmad)
{
	const struct ptx_operand *o = i->operand;
	struct vmad *m = dec_alloc(d, sizeof *m);

	*m = (struct vmad){ .sa = ptx_type_of(i, 1) == TY_s32, .sb = ptx_type_of(i, 2) == TY_s32,
		.minus = o[1].minus != o[2].minus, .minus_c = o[3].minus,
		.plus_one = ptx_has(i, MOD_po), .sat = ptx_has(i, MOD_sat),
		.shift = ptx_has(i, MOD_shr7) ? 7 : ptx_has(i, MOD_shr15) ? 15 : 0 };
	m->final_signed = m->sa || m->sb || m->minus || m->minus_c;
	if (m->plus_one + m->minus + m->minus_c > 1 || (m->plus_one && o[1].minus))
		return dec_unsupported(d, "these negations of vmad");
	if (!source(d, &o[1], 1, 0, &m->a) || !source(d, &o[2], 1, 32, &m->b))
		return false;
	x->i.p = m;
	return LANE_DECODE(vmad_32, TY_b32, TY_b32, TY_b32, TY_b32);
}

#define VIDEO1(op) DECODER(v##op) { return decode_video(d, i, x, VIDEO_##op, 1); }
#define VIDEO24(op) \
DECODER(v##op##2) { return decode_video(d, i, x, VIDEO_##op, 2); } \
DECODER(v##op##4) { return decode_video(d, i, x, VIDEO_##op, 4); }
#define VIDEO(op) VIDEO1(op) VIDEO24(op)
VIDEO(add)
VIDEO(sub)
VIDEO24(avrg)
VIDEO(absdiff)
VIDEO(min)
VIDEO(max)
VIDEO1(shl)
VIDEO1(shr)
VIDEO(set)
