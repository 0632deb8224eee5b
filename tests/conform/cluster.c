/* Shared memory of the other CTA of a cluster: loads, stores, reductions, bulk copies, multicast.
 * References: ISA 9.7.9, 9.7.13.5 and 9.7.9.25.4.
 *
 * A CTA sends what it reads from the other's input, and so finds its own input in its own results:
 * the reference needs one CTA. */
#include "conform.h"
#include "redop.h"

#include <string.h>

enum { P_OP, P_TYPE, P_FROM, P_TO, P_BYTES };
enum { SLOT = 32, ALL = SLOT * CTA_THREADS, MBAR = 3 * ALL };

/* own: this thread's slot, far: the same slot of the other CTA, theirs: its input */
static void head(struct item *i)
{
	struct text *p = &i->ptx;

	text_printf(p, "\t.reg .b32 own, far, z, other, m, v<4>;\n\t.reg .b64 theirs, l<4>;\n"
		"\t.reg .pred first, done;\n\tmov.u32 z, %%cluster_ctarank;\n\txor.b32 z, z, 1;\n"
		"\tmul.lo.u32 other, z, %u;\n\tsub.u32 other, other, %u;\n"
		"\tcvt.s64.s32 theirs, other;\n\tadd.s64 theirs, theirs, %%src;\n"
		"\tmov.u32 own, smem;\n\tmad.lo.u32 own, %%thr, %d, own;\n"
		"\tmapa.shared::cluster.u32 far, own, z;\n\tsetp.eq.u32 first, %%thr, 0;\n"
		"\tbar.sync 0;\n", 2 * CTA_THREADS * i->in_bytes, CTA_THREADS * i->in_bytes, SLOT);
}

static void meet(struct text *p)
{
	text_printf(p, "\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;\n");
}

/* 32 bytes between global memory and the own slot */
static void fill_slot(struct text *p, const char *from, unsigned slot)
{
	for (unsigned k = 0; k < 4; k++)
		text_printf(p, "\tld.global.b64 l0, [%s+%u];\n\tst.shared.b64 [own+%u], l0;\n",
			from, 8 * k,
			slot + 8 * k);
}
static void keep_slot(struct text *p, unsigned slot)
{
	for (unsigned k = 0; k < 4; k++)
		text_printf(p, "\tld.shared.b64 l0, [own+%u];\n\tst.global.b64 [%%dst+%u], l0;\n",
			slot + 8 * k, 8 * k);
}

/* ---- each thread ---- */

static void expect_own(const struct item *i, const void *inputs, const void *before, struct want *w)
{
	const enum type t = (enum type)i->p[P_TYPE];
	const unsigned bytes = type_bits(t) / 8, n = SLOT / bytes;

	for (unsigned k = 0; k < CTA_THREADS * n; k++) {
		uint64_t o = 0, b = 0;
		memcpy(&o, (const char *)before + k * bytes, bytes);
		memcpy(&b, (const char *)inputs + k * bytes, bytes);
		w[k].v = o;
		if (k % n * bytes < (unsigned)i->p[P_BYTES])
			redop_apply((enum redop)i->p[P_OP], t, SUBNORMALS_KEPT, o, b, 0, &w[k]);
	}
}

static void fill_typed(const struct item *i, struct rng *r, void *inputs, void *out)
{
	const enum type t = (enum type)i->p[P_TYPE];
	const unsigned bytes = type_bits(t) / 8;

	for (unsigned k = 0; k < ALL / bytes; k++) {
		uint64_t a = type_pick(r, t), b = type_pick(r, t);
		memcpy((char *)inputs + k * bytes, &a, bytes);
		memcpy((char *)out + k * bytes, &b, bytes);
	}
}

static void list(struct text *p, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		text_printf(p, "%sb%u%s", k ? ", " : n > 1 ? "{" : "", k, k + 1 == n && n > 1 ? "}"
			: "");
}

static void load_or_store(struct item *i, struct rng *r, bool load)
{
	struct text *p = &i->ptx;
	const enum type t = (enum type)i->p[P_TYPE];
	const unsigned bits = type_bits(t), n = 1u << rng_below(r, bits == 64 ? 2 : 3);
	const char *vec = n == 1 ? "" : n == 2 ? ".v2" : ".v4";

	i->p[P_BYTES] = (int)(n * bits / 8);
	head(i);
	text_printf(p, "\t.reg .b%u b<4>;\n", bits);
	if (load)
		fill_slot(p, "theirs", 0);
	else
		fill_slot(p, "%dst", 0);
	meet(p);
	if (load)
		text_printf(p, "/**/\tld.shared::cluster%s.%s ", vec, type_name(t));
	for (unsigned k = 0; !load && k < n; k++)
		text_printf(p, "\tld.global.b%u b%u, [theirs+%u];\n", bits, k, k * bits / 8);
	if (!load)
		text_printf(p, "/**/\tst.shared::cluster%s.%s [far], ", vec, type_name(t));
	list(p, n);
	text_printf(p, load ? ", [far];\n" : ";\n");
	for (unsigned k = 0; load && k < n; k++)
		text_printf(p, "\tst.global.b%u [%%dst+%u], b%u;\n", bits, k * bits / 8, k);
	meet(p);
	if (!load)
		keep_slot(p, 0);
}

static void reduce(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;
	const enum type t = (enum type)i->p[P_TYPE];
	const unsigned bits = type_bits(t);
	const bool half = type_element(t) == T_f16 || type_element(t) == T_bf16;

	i->p[P_BYTES] = (int)bits / 8;
	head(i);
	text_printf(p, "\t.reg .b%u b, d;\n\tld.global.b%u b, [theirs];\n", bits, bits);
	fill_slot(p, "%dst", 0);
	meet(p);
	bool red = rng_once_in(r, 2);
	text_printf(p, "/**/\t%s.shared::cluster.%s%s.%s %s[far], b;\n", red ? "red" : "atom",
		redop_name((enum redop)i->p[P_OP]), half ? ".noftz" : "", type_name(t), red ? ""
			: "d, ");
	meet(p);
	keep_slot(p, 0);
}

void class_cluster_memory(struct item *i, struct rng *r)
{
	static const enum type plain[] = { T_b16, T_b32, T_b64, T_f32, T_f64 };
	static const enum type adds[] = { T_u32, T_s32, T_u64, T_f32, T_f64, T_f16x2, T_bf16x2 };
	static const enum type orders[] = { T_u32, T_s32, T_u64, T_s64 };
	int kind = (int)rng_below(r, 3), op = kind < 2 ? RED_NONE : RED_ADD + (int)rng_below(r, 8);
	enum type t = op == RED_NONE ? RNG_OF(r, plain) : op == RED_ADD ? RNG_OF(r, adds)
		: op <= RED_MAX ? RNG_OF(r, orders) : op <= RED_DEC ? T_u32 : T_b32;

	i->p[P_OP] = op;
	i->p[P_TYPE] = (int)t;
	item_block(i, SLOT, SLOT, SLOT * 8 / type_bits(t), type_bits(t), expect_own);
	i->fill = fill_typed;
	if (kind < 2)
		load_or_store(i, r, kind == 0);
	else
		reduce(i, r);
}

/* ---- bulk copies ---- */

static void expect_bytes(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const unsigned to = (unsigned)i->p[P_TO], n = (unsigned)i->p[P_BYTES];

	for (unsigned k = 0; k < ALL; k++)
		w[k].v = ((const unsigned char *)(k >= to && k < to + n
			? (const char *)inputs + i->p[P_FROM] - to : before))[k];
}

/* From shared memory, where the other's input is, into the other CTA */
static void bulk_peer(struct item *i)
{
	struct text *p = &i->ptx;

	fill_slot(p, "theirs", ALL);
	text_printf(p, "\tfence.proxy.async;\n");
	meet(p);
	text_printf(p, "\tmov.u32 v0, smem;\n\tmapa.shared::cluster.u32 v1, v0, z;\n"
		"/**/\t@first cp.async.bulk.shared::cluster.shared::cta"
		".mbarrier::complete_tx::bytes "
		"[v1+%d], [v0+%d], %d, [v1+%d];\n", i->p[P_TO], ALL + i->p[P_FROM], i->p[P_BYTES],
			MBAR);
}

/* From global memory to the CTA of the mask, issued by one of the two for both */
static void bulk_multicast(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;
	const unsigned issuer = rng_below(r, 2);

	/* the input of CTA 0 */
	text_printf(p, "\t.reg .pred issue;\n\tmov.u32 v2, %%cluster_ctarank;\n"
		"\tmad.lo.u32 v3, v2, %u, %%thr;\n\tmul.wide.u32 l1, v3, %u;\n\tsub.u64 l1, %%src, "
			"l1;\n"
		"\tsetp.eq.and.u32 issue, v2, %u, first;\n\tmov.u32 v0, smem;\n", CTA_THREADS, SLOT,
			issuer);
	meet(p);
	for (unsigned c = 0; c < 2; c++)
		text_printf(p, "\t.reg .b16 k%u;\n\tmov.u16 k%u, %u;\n"
			"/**/\t@issue cp.async.bulk.shared::cluster.global"
			".mbarrier::complete_tx::bytes"
			".multicast::cluster [v0+%d], [l1+%u], %d, [v0+%d], k%u;\n", c, c, 1u << c,
				i->p[P_TO],
			(unsigned)i->p[P_FROM] + c * ALL, i->p[P_BYTES], MBAR, c);
}

void class_cluster_bulk(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;
	unsigned pieces = 1 + rng_below(r, ALL / 16), label = (unsigned)(rng_bits(r) >> 34);
	bool multicast = rng_once_in(r, 2);

	i->p[P_TYPE] = T_u8;
	i->p[P_BYTES] = (int)(16 * pieces);
	i->p[P_FROM] = (int)(16 * rng_below(r, ALL / 16 - pieces + 1));
	i->p[P_TO] = (int)(16 * rng_below(r, ALL / 16 - pieces + 1));
	item_block(i, SLOT, SLOT, SLOT, 8, expect_bytes);
	i->fill = fill_typed;
	head(i);
	fill_slot(p, "%dst", 0);
	text_printf(p, "\tmov.u32 m, smem;\n\tadd.u32 m, m, %d;\n"
		"\t@first mbarrier.init.shared.b64 [m], 1;\n"
			"\tfence.mbarrier_init.release.cluster;\n"
		"\tfence.proxy.async;\n\t@first mbarrier.arrive.expect_tx.shared.b64 _, [m], %d;\n",
			MBAR,
		i->p[P_BYTES]);
	if (multicast)
		bulk_multicast(i, r);
	else
		bulk_peer(i);
	text_printf(p, "L%u:\n\tmbarrier.try_wait.parity.shared.b64 done, [m], 0;\n\t@!done bra "
		"L%u;\n",
		label, label);
	keep_slot(p, 0);
	meet(p);
	text_printf(p, "\t@first mbarrier.inval.shared.b64 [m];\n");
}
