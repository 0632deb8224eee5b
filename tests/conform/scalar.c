/* Register-to-register instructions: operands from the input, results to the output, one by one in
 * each thread. */
#include "conform.h"
#include "real.h"

#include <stdio.h>
#include <string.h>

/* What a thread reads and writes; every value in a word of 64 bits. */
struct lane_in { uint64_t src[SRC_MAX], old[DST_MAX], guard; };

static const char *const src_name[SRC_MAX] = { "a", "b", "c", "e", "f" };
static const char *const dst_name[DST_MAX] = { "d", "q", "v", "w" };

static uint64_t pick(const struct item *i, struct rng *r, unsigned k)
{
	return i->position >> k & 1 && !rng_once_in(r, 5) ? rng_below(r, 80)
		: type_pick(r, i->src[k]);
}

/* -a * b in each element, or the next value */
static uint64_t opposite_product(enum type t, const uint64_t *s)
{
	const enum type e = type_element(t);
	uint64_t v = 0;

	for (unsigned k = 0; k < type_elements(t); k++) {
		unsigned at = k * type_bits(e);
		struct real p = real_mul(real_of(e, s[0] >> at), real_of(e, s[1] >> at));
		v |= (real_round(e, real_negate(p), RZ, true) ^ (s[0] >> at & 1)) << at;
	}
	return v;
}

static void fill_lanes(const struct item *i, struct rng *r, void *in, void *out)
{
	struct lane_in *x = in;

	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++, x++) {
		for (unsigned k = 0; k < i->nsrc; k++) {
			x->src[k] = pick(i, r, k);
			/* equal operands, and operands of equal magnitude */
			if (k && i->src[k] == i->src[k - 1] && rng_once_in(r, 12))
				x->src[k] = x->src[k - 1];
			else if (k && type_kind(i->src[k]) == KIND_FLOAT
					&& i->src[k] == i->src[0] && rng_once_in(r, 12))
				x->src[k] = x->src[0] ^ 1ull << (type_bits(i->src[k]) - 1);
		}
		if (i->cancels && rng_once_in(r, 6))
			x->src[2] = opposite_product(i->src[0], x->src);
		for (unsigned k = 0; k < i->ndst; k++)
			x->old[k] = type_pick(r, i->dst[k]);
		x->guard = rng_bits(r) & 1;
	}
}

static void expect_lanes(const struct item *i, const void *in, const void *out, struct want *w)
{
	const struct lane_in *x = in;

	(void)out;
	for (unsigned t = 0; t < CTA_THREADS; t++, x++, w += i->nout) {
		uint64_t src[SRC_MAX];

		for (unsigned k = 0; k < i->ndst; k++)
			w[k].type = i->dst[k];
		if (i->guard && (x->guard != 0) != (i->guard > 0)) {
			for (unsigned k = 0; k < i->ndst; k++)
				w[k].v = x->old[k];
			continue;
		}
		for (unsigned k = 0; k < i->nsrc; k++)
			src[k] = i->immediate >> k & 1 ? i->value[k] : x->src[k];
		i->lane(i, src, w);
		for (unsigned k = 0; k < i->ndst; k++)
			w[k].v &= type_mask(i->dst[k]);
	}
}

static const char *reg_type(enum type t)
{
	return t == T_pred ? "pred" : type_bits(t) <= 16 ? "b16" : type_bits(t) == 32 ? "b32"
		: "b64";
}

/* The registers: values of 8 bits lie in registers of 16. */
static void declare(struct text *p, const char *name, enum type t, unsigned offset)
{
	text_printf(p, "\t.reg .%s %s;\n", reg_type(t), name);
	if (t == T_pred)
		text_printf(p, "\tld.global.u32 %%t, [%%src+%u];\n\tsetp.ne.u32 %s, %%t, 0;\n",
			offset, name);
	else
		text_printf(p, "\tld.global.%s%u %s, [%%src+%u];\n", type_bits(t) < 16 ? "u" : "b",
			type_bits(t) < 8 ? 8 : type_bits(t), name, offset);
}

static void store(struct text *p, const char *name, enum type t, unsigned offset)
{
	if (t == T_pred)
		text_printf(p, "\tselp.b64 %%x, 1, 0, %s;\n", name);
	else if (type_bits(t) <= 16)
		text_printf(p, "\tcvt.u64.u16 %%x, %s;\n", name);
	else if (type_bits(t) == 32)
		text_printf(p, "\tcvt.u64.u32 %%x, %s;\n", name);
	else
		text_printf(p, "\tmov.b64 %%x, %s;\n", name);
	text_printf(p, "\tst.global.b64 [%%dst+%u], %%x;\n", offset);
}

static void immediate(struct text *p, enum type t, uint64_t v)
{
	if (t == T_f32)
		text_printf(p, "0f%08x", (uint32_t)v);
	else if (t == T_f64)
		text_printf(p, "0d%016lx", v);
	else if (type_signed(t))
		text_printf(p, "%ld", type_extend(t, v));
	else
		text_printf(p, "0x%lx", v);
}

static bool can_be_immediate(enum type t)
{
	return t == T_f32 || t == T_f64 || (t != T_pred && type_kind(t) != KIND_FLOAT
		&& type_bits(t) >= 16 && type_elements(t) == 1);
}

static enum type type_of_word(const char *s, size_t n)
{
	for (unsigned t = 1; t < T_COUNT; t++)
		if (strlen(type_name(t)) == n && !memcmp(s, type_name(t), n))
			return t;
	base_die("conform: no type %.*s", (int)n, s);
}

/* Sets *fixed to the operands that end with !, *position to those that end with ~. */
static unsigned parse_types(const char *s, enum type *out, unsigned max, unsigned *fixed,
	uint8_t *position)
{
	unsigned n = 0;

	while (*s) {
		size_t len = strcspn(s, " !~");
		if (n == max)
			base_die("conform: too many operands: %s", s);
		out[n] = type_of_word(s, len);
		s += len;
		if (*s == '!')
			*fixed |= 1u << n;
		if (*s == '~')
			*position |= (uint8_t)(1u << n);
		s += *s == '!' || *s == '~';
		n++;
		s += *s == ' ';
	}
	return n;
}

void item_scalar(struct item *i, struct rng *r, lane_fn *lane, const char *dst, const char *src,
	const char *text, ...)
{
	char op[512];
	unsigned fixed = 0;
	va_list ap;
	struct text *p = &i->ptx;

	va_start(ap, text);
	vsnprintf(op, sizeof op, text, ap);
	va_end(ap);
	i->lane = lane;
	i->fill = fill_lanes;
	i->expect = expect_lanes;
	i->ndst = parse_types(dst, i->dst, DST_MAX, &fixed, &i->position);
	fixed = i->position = 0;
	i->nsrc = parse_types(src, i->src, SRC_MAX, &fixed, &i->position);
	i->in_bytes = sizeof(struct lane_in);
	i->nout = i->ndst;
	i->element_bits = 64;
	i->out_bytes = 8 * i->nout;

	bool statements = strchr(op, ';');
	i->guard = statements || !rng_once_in(r, 4) ? 0 : rng_once_in(r, 2) ? 1 : -1;
	if (!statements && rng_once_in(r, 4)) {
		unsigned k = rng_below(r, i->nsrc);
		if (!(fixed >> k & 1) && can_be_immediate(i->src[k])) {
			i->immediate = (uint8_t)(1u << k);
			i->value[k] = i->position >> k & 1 ? rng_below(r, 80)
				: type_pick(r, i->src[k]);
		}
	}
	text_printf(p, "\t.reg .b32 %%t;\n\t.reg .b64 %%x;\n");
	for (unsigned k = 0; k < i->nsrc; k++)
		if (!(i->immediate >> k & 1))
			declare(p, src_name[k], i->src[k], 8 * k);
	for (unsigned k = 0; k < i->ndst; k++)
		declare(p, dst_name[k], i->dst[k],
			(unsigned)(offsetof(struct lane_in, old) + 8 * k));
	if (i->guard)
		text_printf(p, "\t.reg .pred %%on;\n\tld.global.u32 %%t, [%%src+%zu];\n"
			"\tsetp.ne.u32 %%on, %%t, 0;\n", offsetof(struct lane_in, guard));
	text_printf(p, "/**/\t%s%s", i->guard > 0 ? "@%on " : i->guard < 0 ? "@!%on " : "", op);
	if (!statements) {
		text_printf(p, " d%s", i->ndst == 2 ? "|q" : "");
		for (unsigned k = 0; k < i->nsrc; k++) {
			text_printf(p, ", ");
			if (i->immediate >> k & 1)
				immediate(p, i->src[k], i->value[k]);
			else
				text_printf(p, "%s", src_name[k]);
		}
		text_printf(p, ";");
	}
	text_printf(p, "\n");
	for (unsigned k = 0; k < i->ndst; k++)
		store(p, dst_name[k], i->dst[k], 8 * k);
}
