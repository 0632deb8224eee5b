/* One kernel of many items. Each CTA and thread has its own part of every item's buffers. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

const struct class classes[] = {
#define CLASS(name, rows, sm, ctas, cluster, share) \
	{ #name, rows, class_##name, sm, ctas, cluster, share },
#include "class.def"
#undef CLASS
};
const unsigned nclasses = ARRAY_SIZE(classes);

static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

static void fill_random(const struct item *i, struct rng *r, void *in, void *out)
{
	(void)out;
	for (unsigned k = 0; k < i->in_bytes * CTA_THREADS / 8; k++)
		((uint64_t *)in)[k] = rng_bits(r);
}

void item_block(struct item *i, unsigned in_bytes, unsigned out_bytes, unsigned nout,
	unsigned element_bits, expect_fn *expect)
{
	i->in_bytes = in_bytes;
	i->out_bytes = out_bytes;
	i->nout = nout;
	i->element_bits = element_bits;
	i->expect = expect;
	i->fill = fill_random;
}

static void print(struct program *p)
{
	struct text *t = &p->ptx;

	text_printf(t, ".version %s\n.target sm_%ua\n.address_size 64\n",
		p->class->sm == 90 ? "8.6" : "9.0", p->class->sm);
	text_printf(t, ".visible .entry conform(.param .u64 in, .param .u64 out, .param .u64 "
		"maps)\n"
		".maxntid %d\n%s{\n"
		".reg .b32 %%thr, %%cta, %%i, %%lane;\n.reg .b64 %%in, %%out, %%maps, %%map, "
			"%%src, %%dst;\n"
		".shared .align 1024 .b8 smem[40960];\n"
		"ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\nld.param.u64 %%maps, "
			"[maps];\n"
		"cvta.to.global.u64 %%in, %%in;\ncvta.to.global.u64 %%out, %%out;\n"
		"mov.u32 %%thr, %%tid.x;\nmov.u32 %%cta, %%ctaid.x;\n"
		"and.b32 %%lane, %%thr, 31;\n"
		"mad.lo.u32 %%i, %%cta, %d, %%thr;\n", CTA_THREADS,
		p->class->cluster == 1 ? "" : ".reqnctapercluster 2\n", CTA_THREADS);
	for (unsigned k = 0; k < p->n; k++) {
		struct item *i = &p->item[k];
		text_printf(t, "{ // item %u\n\tmad.wide.u32 %%src, %%i, %u, %%in;\n"
			"\tadd.u64 %%src, %%src, %lu;\n\tmad.wide.u32 %%dst, %%i, %u, %%out;\n"
			"\tadd.u64 %%dst, %%dst, %lu;\n", k, i->in_bytes, i->in_at,
			i->out_bytes, i->out_at);
		if (i->map)
			text_printf(t, "\tadd.u64 %%map, %%maps, %u;\n",
				CONSAN_TENSORMAP_BYTES * i->map_index);
		text_add(t, i->ptx.at, i->ptx.n);
		text_printf(t, "}\n");
	}
	text_printf(t, "ret;\n}\n");
}

void program_make(struct program *p, const struct class *c, uint64_t seed, unsigned items)
{
	*p = (struct program){ .class = c, .seed = seed, .n = items, .ctas = c->ctas };
	p->item = base_alloc(items * sizeof *p->item);
	for (unsigned k = 0; k < items; k++) {
		struct item *i = &p->item[k];
		struct rng r = rng_start(seed, c->name, k);
		c->emit(i, &r);
		i->in_at = p->in_bytes;
		i->out_at = p->out_bytes;
		i->map_index = p->nmaps;
		p->nmaps += i->map != NULL;
		p->in_bytes += round_up((uint64_t)i->in_bytes * CTA_THREADS * p->ctas, 1024);
		p->out_bytes += round_up((uint64_t)i->out_bytes * CTA_THREADS * p->ctas, 1024);
	}
	p->in = base_alloc_aligned(1024, p->in_bytes);
	p->out = base_alloc_aligned(1024, p->out_bytes);
	memset(p->out, 0xee, p->out_bytes);
	for (unsigned k = 0; k < items; k++) {
		struct item *i = &p->item[k];
		struct rng r = rng_start(seed ^ 0x5eed, c->name, k);
		for (unsigned cta = 0; cta < p->ctas; cta++)
			i->fill(i, &r, p->in + i->in_at + (uint64_t)cta * CTA_THREADS * i->in_bytes,
				p->out + i->out_at + (uint64_t)cta * CTA_THREADS * i->out_bytes);
	}
	print(p);
}

void item_free(struct item *i)
{
	text_free(&i->ptx);
	free(i->map);
	free(i->data);
}

void program_free(struct program *p)
{
	for (unsigned k = 0; k < p->n; k++)
		item_free(&p->item[k]);
	free(p->item);
	free(p->in);
	free(p->out);
	text_free(&p->ptx);
}
