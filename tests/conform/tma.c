/* Tensor copies: tile and im2col, all ranks, swizzles, element strides, edges, fills, reductions.
 * References: ISA 5.5 (tensors), 9.7.9.25.5, and the description of cuTensorMapEncodeTiled and
 * cuTensorMapEncodeIm2col. gather4 and scatter4 copy four rows of a matrix. In an interleaved
 * layout an element of dimension 0 is a slice of 16 or 32 bytes, whatever the type, and a box has
 * one element in the dimension before the last (measured on an H200; the manuals do not say it).
 *
 * Loads: the tensor is in the input, the box in shared memory goes to the output. Stores: shared
 * memory comes from the input, the tensor is the output. */
#include "matrix.h"
#include "real.h"
#include "redop.h"
#include "tma.h"

#include <stdio.h>
#include <string.h>

/* CUtensorMapDataType */
const struct tma_type tma_types[TMA_TYPES] = { { T_u8, 0 }, { T_u16, 0 }, { T_u32,
	0 },
	{ T_s32, 0 }, { T_u64, 0 }, { T_s64, 0 }, { T_f16, 0 }, { T_f32, 0 }, { T_f64, 0 },
	{ T_bf16, 0 }, { T_f32, 1 } };

static unsigned rows_of(const struct item *i)
{
	const struct map *m = map_of(i);
	unsigned n = 1;

	if (copy_of(i)->rows)
		return 4;
	if (m->args.im2col)
		return m->args.pixels;
	for (unsigned d = 1; d < m->args.rank; d++)
		n *= count(m, d);
	return n;
}

static unsigned row_bytes(const struct item *i)
{
	if (slice(map_of(i)))
		return count(map_of(i), 0) * slice(map_of(i));
	return (map_of(i)->args.im2col ? map_of(i)->args.channels : map_of(i)->box[0]) * size_of(i);
}

/* Coordinates of the first element of row n of the box */
static void row_at(const struct item *i, unsigned n, int64_t *at)
{
	const struct map *m = map_of(i);
	const struct copy *c = copy_of(i);

	for (unsigned d = 0; d < m->args.rank; d++)
		at[d] = c->at[d];
	if (c->rows) {
		at[1] = c->at[1 + n];
		return;
	}
	if (!m->args.im2col) {
		for (unsigned d = 1; d < m->args.rank; d++) {
			at[d] += (int64_t)(n % count(m, d)) * m->elem_stride[d];
			n /= count(m, d);
		}
		return;
	}
	/* pixel after pixel through the bounding box, W first, then the next image */
	const unsigned last = m->args.rank - 1;
	while (n-- > 0) {
		unsigned d = 1;
		for (; d < last; d++) {
			at[d] += m->elem_stride[d];
			if (at[d] <= (int64_t)m->dim[d] - 1 + m->upper[d - 1])
				break;
			at[d] = m->lower[d - 1];
		}
		if (d == last)
			at[last]++;
	}
	for (unsigned d = 1; d < last; d++)
		at[d] += c->offset[d - 1];
}

/* Offset in the tensor, or -1 outside */
static int64_t address(const struct item *i, const int64_t *at, unsigned k)
{
	const struct map *m = map_of(i);
	const unsigned per = slice(m) ? slice(m) / size_of(i) : 1; /* in an element of dimension 0 */
	const int64_t x = at[0] + (int64_t)(k / per) * (slice(m) ? m->elem_stride[0] : 1);
	int64_t a = (x * per + k % per) * size_of(i);

	if (x < 0 || x >= (int64_t)m->dim[0])
		return -1;
	for (unsigned d = 1; d < m->args.rank; d++) {
		if (at[d] < 0 || at[d] >= (int64_t)m->dim[d])
			return -1;
		a += at[d] * (int64_t)m->stride[d - 1];
	}
	return a;
}

/* Offset of element k of a row that is beyond the end of dimension 0, but in the last 16 bytes that
 * hold a part of the tensor; else -1. The manual says that stores and reductions do not write it,
 * hardware (H200) does. */
static int64_t padding(const struct item *i, const int64_t *at, unsigned k)
{
	const struct map *m = map_of(i);
	const int64_t size = size_of(i), end = (int64_t)m->dim[0];
	int64_t first[5], a;

	if (slice(m) || at[0] >= end || at[0] + k < end
			|| (at[0] + k) * size >= (end * size + 15) / 16 * 16)
		return -1;
	memcpy(first, at, sizeof first);
	first[0] = 0;
	a = address(i, first, 0);
	return a < 0 ? -1 : a + (at[0] + k) * size;
}

static unsigned swizzled(const struct item *i, unsigned at)
{
	static const unsigned bits[] = { 0, 0x10, 0x30, 0x70 };

	return at ^ (at >> 3 & bits[map_of(i)->args.swizzle]);
}

/* Hardware gives a row the span of the swizzle at least (the manual does not say so). */
static unsigned pitch(const struct item *i)
{
	static const unsigned span[] = { 0, 32, 64, 128 };
	unsigned least = span[map_of(i)->args.swizzle];

	if (slice(map_of(i)))
		return row_bytes(i);
	return row_bytes(i) > least ? row_bytes(i) : least;
}

static void expect_load(const struct item *i, const void *inputs, const void *out, struct want *w)
{
	const unsigned size = size_of(i), n = row_bytes(i) / size;
	const enum type t = tma_types[map_of(i)->args.type].t;
	const char *tensor = inputs;

	(void)out;
	for (unsigned k = 0; k < BOX / size; k++)
		w[k].v = 0xeeeeeeeeeeeeeeee & type_mask(t);
	for (unsigned row = 0; row < rows_of(i); row++) {
		int64_t at[5];
		row_at(i, row, at);
		for (unsigned k = 0; k < n; k++) {
			struct want *x = &w[swizzled(i,
				copy_of(i)->shared + row * pitch(i) + k * size) / size];
			int64_t a = address(i, at, k);
			x->type = t;
			if (a >= 0) {
				x->v = 0;
				memcpy(&x->v, tensor + a, size);
				/* the manual does not say what f32.ftz flushes */
				if (tma_types[map_of(i)->args.type].flush && real_is_subnormal(t, x->v))
					x->how = WANT_ANY;
			} else if (map_of(i)->args.oob)
				x->how = WANT_NAN;
			else
				x->v = 0;
		}
	}
}

static void expect_store(const struct item *i, const void *inputs, const void *before,
	struct want *w)
{
	const unsigned size = size_of(i), n = row_bytes(i) / size;
	const char *box = inputs, *tensor = before;

	for (unsigned k = 0; k < TENSOR / size; k++) {
		w[k].v = 0;
		memcpy(&w[k].v, tensor + k * size, size);
	}
	for (unsigned row = 0; row < rows_of(i); row++) {
		int64_t at[5];
		row_at(i, row, at);
		for (unsigned k = 0; k < n; k++) {
			int64_t a = address(i, at, k);
			uint64_t b = 0;
			if (a < 0)
				a = padding(i, at, k);
			if (a < 0)
				continue;
			memcpy(&b, box + swizzled(i,
				copy_of(i)->shared + row * pitch(i) + k * size), size);
			redop_apply((enum redop)copy_of(i)->op, tma_types[map_of(i)->args.type].t,
				SUBNORMALS_OPEN, w[a / size].v, b, 0, &w[a / size]);
		}
	}
}

static void fill_tma(const struct item *i, struct rng *r, void *inputs, void *out)
{
	const enum type t = tma_types[map_of(i)->args.type].t;
	const unsigned size = size_of(i);

	for (unsigned k = 0; k < i->in_bytes * CTA_THREADS / size; k++) {
		uint64_t v = type_pick(r, t);
		memcpy((char *)inputs + k * size, &v, size);
	}
	for (unsigned k = 0; k < i->out_bytes * CTA_THREADS / size && !copy_of(i)->load; k++) {
		uint64_t v = type_pick(r, t);
		memcpy((char *)out + k * size, &v, size);
	}
}

/* ---- text ---- */

static void coordinates(struct text *p, const struct item *i)
{
	const struct copy *c = copy_of(i);

	text_printf(p, "[%%map, {");
	for (unsigned d = 0; d < (c->rows ? 5 : map_of(i)->args.rank); d++)
		text_printf(p, "%s%d", d ? ", " : "", c->at[d]);
	text_printf(p, "}]");
}

static void field(struct text *p, const char *name, int ordinal, const char *type, uint64_t v)
{
	char at[16] = "";

	if (ordinal >= 0)
		snprintf(at, sizeof at, " %d,", ordinal);
	text_printf(p, "\t@first tensormap.replace.tile.%s.shared::cta.b1024.%s [v1],%s %lu;\n",
		name,
		type, at, v);
}

/* Copies the map to shared memory, or zeros, replaces every field, and publishes it where it was. */
static void replace(struct item *i, unsigned label, bool zeros)
{
	/* values of .elemtype for each row of types */
	static const unsigned elemtype[] = { 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8 };
	struct text *p = &i->ptx;
	const struct map *m = map_of(i);
	const unsigned rank = m->args.rank;

	text_printf(p, "\t.reg .b64 g;\n\t.reg .pred warp0;\n\tcvta.to.global.u64 g, %%map;\n"
		"\tmov.u32 v1, smem;\n\tadd.u32 v1, v1, %d;\n\tsetp.lt.u32 warp0, %%thr, 32;\n"
		"\tmul.wide.u32 %%x, %%lane, 4;\n\tadd.u64 %%x, %%x, g;\n"
		"\tmad.lo.u32 v2, %%lane, 4, v1;\n\t@warp0 %s;\n"
		"\t@warp0 st.shared.b32 [v2], v3;\n\tbar.sync 0;\n", MBAR + 1024,
		zeros ? "mov.b32 v3, 0" : "ld.global.b32 v3, [%x]");
	text_printf(p, "\tmul.wide.u32 %%x, %%thr, %u;\n\tsub.u64 %%x, %%src, %%x;\n"
		"\tcvta.global.u64 %%x, %%x;\n"
		"\t@first tensormap.replace.tile.global_address.shared::cta.b1024.b64 [v1], %%x;\n",
		i->in_bytes);
	field(p, "rank", -1, "b32", rank - 1);
	for (unsigned d = 0; d < rank; d++) {
		field(p, "box_dim", (int)d, "b32", m->box[d]);
		field(p, "global_dim", (int)d, "b32", m->dim[d]);
		field(p, "element_stride", (int)d, "b32", m->elem_stride[d]);
		if (d + 1 < rank)
			field(p, "global_stride", (int)d, "b64", m->stride[d]);
	}
	field(p, "elemtype", -1, "b32", elemtype[m->args.type]);
	field(p, "interleave_layout", -1, "b32", 0);
	field(p, "swizzle_mode", -1, "b32", m->args.swizzle);
	field(p, "fill_mode", -1, "b32", m->args.oob);
	text_printf(p, "\tbar.sync 0;\n\t@!warp0 bra N%u;\n"
		"\ttensormap.cp_fenceproxy.global.shared::cta.tensormap::generic"
		".release.gpu.sync.aligned"
		" [g], [v1], 128;\n"
		"\tfence.proxy.tensormap::generic.acquire.gpu [%%map], 128;\nN%u:\n", label, label);
}

static void print(struct item *i, struct rng *r)
{
	struct text *p = &i->ptx;
	const struct copy *c = copy_of(i);
	const struct consan_tensormap_args *a = &map_of(i)->args;
	const unsigned bytes = row_bytes(i) * rows_of(i);
	const char *mode = c->rows ? c->load ? ".tile::gather4" : ".tile::scatter4"
		: a->im2col ? c->load ? ".im2col" : ".im2col_no_offs"
		: rng_once_in(r, 2) ? ".tile" : "";
	unsigned label = (unsigned)(rng_bits(r) >> 34);

	text_printf(p, "\t.reg .b32 s, m, v<4>;\n\t.reg .b64 %%x;\n\t.reg .pred first, done;\n"
		"\tmov.u32 m, smem;\n"
		"\tmad.lo.u32 s, %%thr, 64, m;\n\tadd.u32 m, m, %d;\n"
		"\tsetp.eq.u32 first, %%thr, 0;\n\tbar.sync 0;\n", MBAR);
	for (unsigned k = 0; k < 64; k += 16) {
		if (c->load)
			text_printf(p, "\tmov.b32 v0, 0xeeeeeeee;\n"
				"\tst.shared.v4.b32 [s+%u], {v0, v0, v0, v0};\n", k);
		else
			text_printf(p, "\tld.global.v4.b32 {v0, v1, v2, v3}, [%%src+%u];\n"
				"\tst.shared.v4.b32 [s+%u], {v0, v1, v2, v3};\n", k, k);
	}
	text_printf(p, "\tfence.proxy.async;\n");
	if (c->replaced)
		replace(i, label, label % 2);
	else /* an earlier kernel may have used a map at this address */
		text_printf(p, "\t@first fence.proxy.tensormap::generic.acquire.sys [%%map], "
			"128;\n");
	if (!c->load) {
		text_printf(p, "\tmov.u32 v0, smem;\n\tadd.u32 v0, v0, %u;\n\tbar.sync 0;\n"
			"/**/\t@first cp%s.async.bulk.tensor.%ud.global.shared::cta"
			"%s%s%s.bulk_group ",
			c->shared, c->op ? ".reduce" : "", a->rank, c->op ? "." : "",
			redop_name((enum redop)c->op), mode);
		coordinates(p, i);
		text_printf(p, ", [v0];\n\tcp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group "
			"0;\n"
			"\tbar.sync 0;\n");
		return;
	}
	text_printf(p, "\t@first mbarrier.init.shared.b64 [m], 1;\n"
		"\tfence.mbarrier_init.release.cluster;\n\tbar.sync 0;\n"
		"\t@first mbarrier.arrive.expect_tx.shared.b64 _, [m], %u;\n"
		"\tmov.u32 v0, smem;\n\tadd.u32 v0, v0, %u;\n"
		"/**/\t@first cp.async.bulk.tensor.%ud.shared::cluster.global%s"
		".mbarrier::complete_tx::bytes "
		"[v0], ", bytes, c->shared, a->rank, mode);
	coordinates(p, i);
	text_printf(p, ", [m]");
	for (unsigned d = 0; a->im2col && d < a->rank - 2; d++)
		text_printf(p, "%s%d%s", d ? ", " : ", {", c->offset[d], d == a->rank - 3 ? "}"
			: "");
	text_printf(p, ";\nL%u:\n\tmbarrier.try_wait.parity.shared.b64 done, [m], 0;\n\t@!done bra "
		"L%u;\n",
		label, label);
	for (unsigned k = 0; k < 64; k += 16)
		text_printf(p, "\tld.shared.v4.b32 {v0, v1, v2, v3}, [s+%u];\n"
			"\tst.global.v4.b32 [%%dst+%u], {v0, v1, v2, v3};\n", k, k);
	text_printf(p, "\tbar.sync 0;\n\t@first mbarrier.inval.shared.b64 [m];\n");
}

/* ---- classes ---- */

static void emit(struct item *i, struct rng *r, bool load, int op, draw_fn *draw, bool replaced)
{
	struct copy *c = i->data = base_alloc(sizeof *c);
	const struct map *m = i->map; /* the type is the same in both */
	unsigned bits;

	c->load = load;
	c->op = op;
	draw(i, r, c);
	if (replaced) { /* the item's own map is any other one, of the largest rank */
		c->target = *i->map;
		do
			draw_tile(i, r, &(struct copy){ .load = true });
		while (i->map->args.rank < 5);
		c->replaced = true;
	}
	c->shared = rng_once_in(r, 2) ? 1024 : 0;
	(replaced ? &c->target : i->map)->args.oob = load && rng_once_in(r, 2)
		&& type_kind(tma_types[m->args.type].t) == KIND_FLOAT;
	finish_map(i->map);
	finish_map(&c->target);
	i->map_out = !load;
	bits = type_bits(tma_types[m->args.type].t);
	if (load)
		item_block(i, TENSOR / CTA_THREADS, BOX / CTA_THREADS, BOX * 8 / bits / CTA_THREADS,
			bits,
			expect_load);
	else
		item_block(i, BOX / CTA_THREADS, TENSOR / CTA_THREADS,
			TENSOR * 8 / bits / CTA_THREADS,
			bits, expect_store);
	i->fill = fill_tma;
	print(i, r);
}

void class_tma_load(struct item *i, struct rng *r)
{
	i->map = base_alloc(sizeof *i->map);
	i->map->args.type = rng_below(r, TMA_TYPES);
	emit(i, r, true, RED_NONE, draw_tile, false);
}

void class_tma_store(struct item *i, struct rng *r)
{
	i->map = base_alloc(sizeof *i->map);
	i->map->args.type = rng_below(r, TMA_TYPES - 1);
	emit(i, r, false, RED_NONE, draw_tile, false);
}

void class_tma_reduce(struct item *i, struct rng *r)
{
	static const enum type adds[] = { T_u32, T_s32, T_u64, T_f16, T_f32, T_bf16 };
	static const enum type orders[] = { T_u32, T_s32, T_u64, T_s64, T_f16, T_bf16 };
	static const enum type bits[] = { T_u32, T_u64 };
	int op = 1 + (int)rng_below(r, 8);
	enum type t = op == RED_ADD ? RNG_OF(r, adds) : op <= RED_MAX ? RNG_OF(r, orders)
		: op <= RED_DEC ? T_u32 : RNG_OF(r, bits);

	i->map = base_alloc(sizeof *i->map);
	while (tma_types[i->map->args.type].t != t)
		i->map->args.type++;
	emit(i, r, false, op, rng_once_in(r, 4) ? draw_im2col : draw_tile, false);
}

void class_tma_im2col(struct item *i, struct rng *r)
{
	bool load = !rng_once_in(r, 3);

	i->map = base_alloc(sizeof *i->map);
	i->map->args.type = rng_below(r, TMA_TYPES - 1);
	emit(i, r, load, RED_NONE, draw_im2col, false);
}

void class_tma_replace(struct item *i, struct rng *r)
{
	i->map = base_alloc(sizeof *i->map);
	i->map->args.type = rng_below(r, TMA_TYPES);
	emit(i, r, true, RED_NONE, draw_tile, true);
}

void class_tma_rows(struct item *i, struct rng *r)
{
	i->map = base_alloc(sizeof *i->map);
	i->map->args.type = rng_below(r, TMA_TYPES - 1);
	emit(i, r, !rng_once_in(r, 3), RED_NONE, draw_rows, false);
}

void class_tma_interleave(struct item *i, struct rng *r)
{
	i->map = base_alloc(sizeof *i->map);
	i->map->args.type = rng_below(r, TMA_TYPES - 1);
	emit(i, r, !rng_once_in(r, 3), RED_NONE, draw_interleaved, false);
}
