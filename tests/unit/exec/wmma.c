/* wmma: every shape and type, all orders of A and B, against plain loops. The PTX
 * loads from global memory and stores transposed. */
#include "libconsan/base/base.h"
#include "libconsan/consan.h"

#include <criterion/criterion.h>
#include <string.h>

struct shape {
	const char *shape, *type, *result, *mma; /* mma: the types of wmma.mma */
	unsigned m, n, k, na, nb, nc; /* registers */
	const char *op;
};

static const struct shape shapes[] = {
	{ "m16n16k16", "f16", "f32", "f32.f32", 16, 16, 16, 8, 8, 8, "" },
	{ "m16n16k16", "f16", "f16", "f16.f16", 16, 16, 16, 8, 8, 4, "" },
	{ "m32n8k16", "f16", "f32", "f32.f32", 32, 8, 16, 8, 8, 8, "" },
	{ "m8n32k16", "f16", "f16", "f16.f16", 8, 32, 16, 8, 8, 4, "" },
	{ "m8n32k16", "f16", "f32", "f32.f32", 8, 32, 16, 8, 8, 8, "" },
	{ "m16n16k16", "bf16", "f32", "f32.bf16.bf16.f32", 16, 16, 16, 4, 4, 8, "" },
	{ "m32n8k16", "bf16", "f32", "f32.bf16.bf16.f32", 32, 8, 16, 8, 2, 8, "" },
	{ "m8n32k16", "bf16", "f32", "f32.bf16.bf16.f32", 8, 32, 16, 2, 8, 8, "" },
	{ "m16n16k8", "tf32", "f32", "f32.tf32.tf32.f32", 16, 16, 8, 4, 4, 8, "" },
	{ "m8n8k4", "f64", "f64", "f64.f64.f64.f64", 8, 8, 4, 1, 1, 2, "" },
	{ "m16n16k16", "s8", "s32", "s32.s8.s8.s32", 16, 16, 16, 2, 2, 8, "" },
	{ "m32n8k16", "u8", "s32", "s32.u8.u8.s32", 32, 8, 16, 4, 1, 8, "" },
	{ "m8n32k16", "s8", "s32", "s32.s8.s8.s32", 8, 32, 16, 1, 4, 8, "" },
	{ "m8n8k32", "s4", "s32", "s32.s4.s4.s32", 8, 8, 32, 1, 1, 2, "" },
	{ "m8n8k128", "b1", "s32", "s32.b1.b1.s32", 8, 8, 128, 1, 1, 2, ".xor.popc" },
	{ "m8n8k128", "b1", "s32", "s32.b1.b1.s32", 8, 8, 128, 1, 1, 2, ".and.popc" },
};

static unsigned bits_of(const char *type)
{
	return (unsigned)atoi(type + strcspn(type, "0123456789"));
}

/* Small whole numbers as any of the types. */
static void put(void *to, const char *type, size_t at, int v)
{
	unsigned bits = bits_of(type), shift = 0;
	float f = (float)v;
	double d = v;
	uint32_t word;
	uint16_t half;

	memcpy(&word, &f, 4);
	half = (uint16_t)(v ? (word >> 16 & 0x8000) | ((word >> 13 & 0x3fc00) - (112 << 10)) |
		(word >> 13 & 0x3ff) : 0);
	if (!strcmp(type, "bf16"))
		half = (uint16_t)(word >> 16);
	if (type[0] == 's' || type[0] == 'u')
		word = (uint32_t)v;
	switch (bits) {
	case 64: memcpy((double *)to + at, &d, 8); return;
	case 32: memcpy((uint32_t *)to + at, &word, 4); return;
	case 16: memcpy((uint16_t *)to + at, &half, 2); return;
	case 8: memcpy((char *)to + at, &v, 1); return;
	default:
		shift = (unsigned)(at * bits % 8);
		((unsigned char *)to)[at * bits / 8] |=
			(unsigned char)((v & ((1 << bits) - 1)) << shift);
	}
}

static double get(const void *from, const char *type, size_t at)
{
	uint16_t half;
	double d;
	float f;

	if (!strcmp(type, "s32"))
		return ((const int32_t *)from)[at];
	if (!strcmp(type, "f64"))
		return memcpy(&d, (const double *)from + at, 8), d;
	if (!strcmp(type, "f32"))
		return memcpy(&f, (const float *)from + at, 4), (double)f;
	memcpy(&half, (const uint16_t *)from + at, 2);
	return half & 0x7fff ? (half & 0x8000 ? -1 : 1) * (1 + (half & 0x3ff) / 1024.0) *
		(double)(1ull << (half >> 10 & 31)) / 32768 : 0;
}

static void registers(struct text *t, const char *name, unsigned n)
{
	text_printf(t, "{");
	for (unsigned k = 0; k < n; k++)
		text_printf(t, "%s%%%s%u", k ? ", " : "", name, k);
	text_printf(t, "}");
}

static void load(struct text *t, const struct shape *s, char which, const char *order, unsigned n)
{
	text_printf(t, "\twmma.load.%c.sync.aligned.%s.%s.global.%s ", which, order, s->shape,
		which == 'c' ? s->result : s->type);
	registers(t, (char[]){ which, 0 }, n);
	text_printf(t, ", [%%p%u];\n", (unsigned)(which - 'a'));
}

static char *program(const struct shape *s, bool a_col, bool b_row)
{
	const char *a = a_col ? "col" : "row", *b = b_row ? "row" : "col";
	bool wide = !strcmp(s->type, "f64");
	struct text t = { 0 };

	text_printf(&t, ".version 8.0\n.target sm_90\n.address_size 64\n"
		".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n"
		"\t.reg .b%u %%a<8>, %%b<8>;\n\t.reg .b%u %%c<8>, %%d<8>;\n\t.reg .b64 %%p<4>;\n",
		wide ? 64 : 32, wide ? 64 : 32);
	for (unsigned k = 0; k < 4; k++)
		text_printf(&t, "\tld.param.u64 %%p%u, [%c];\n", k, "abcd"[k]);
	load(&t, s, 'a', a, s->na);
	load(&t, s, 'b', b, s->nb);
	load(&t, s, 'c', "row", s->nc);
	text_printf(&t, "\twmma.mma%s.sync.aligned.%s.%s.%s.%s ", s->op, a, b, s->shape, s->mma);
	registers(&t, "d", s->nc);
	text_printf(&t, ", ");
	registers(&t, "a", s->na);
	text_printf(&t, ", ");
	registers(&t, "b", s->nb);
	text_printf(&t, ", ");
	registers(&t, "c", s->nc);
	text_printf(&t, ";\n\twmma.store.d.sync.aligned.col.%s.global.%s [%%p3], ", s->shape,
		s->result);
	registers(&t, "d", s->nc);
	text_printf(&t, ", %u;\n\tret;\n}\n", s->m + 16); /* stride longer than a column */
	return t.at;
}

static int value(const char *type, unsigned k)
{
	return type[0] == 'b' && type[1] == '1' ? (int)(k * 2654435761u >> 13 & 1)
		: (int)(k * 2654435761u >> 13) % 7 - (type[0] == 'u' ? 0 : 3);
}

static double expected(const struct shape *s, unsigned i, unsigned j)
{
	double sum = value(s->result, 7 + i * s->n + j);

	for (unsigned q = 0; q < s->k; q++) {
		int a = value(s->type, i * s->k + q), b = value(s->type, 5 + q * s->n + j);

		sum += !*s->op ? a * b : s->op[1] == 'x' ? a ^ b : a & b;
	}
	return sum;
}

static void try(struct consan *c, const struct shape *s, bool a_col, bool b_row)
{
	struct consan_err e = { 0 };
	char *text = program(s, a_col, b_row);
	struct consan_module *m = consan_load_ptx(c, s->shape, text, strlen(text), &e);
	void *at[4];
	struct consan_launch l = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .params = at };
	unsigned bad = 0;

	cr_assert(m, "%s: %s\n%s", s->shape, e.text, text);
	for (unsigned k = 0; k < 4; k++) {
		at[k] = consan_malloc(c, 16384, CONSAN_MEM_DEVICE);
		memset(at[k], 0, 16384);
	}
	for (unsigned i = 0; i < s->m; i++)
		for (unsigned q = 0; q < s->k; q++)
			put(at[0], s->type, a_col ? q * s->m + i : i * s->k + q,
				value(s->type, i * s->k + q));
	for (unsigned q = 0; q < s->k; q++)
		for (unsigned j = 0; j < s->n; j++)
			put(at[1], s->type, b_row ? q * s->n + j : j * s->k + q,
				value(s->type, 5 + q * s->n + j));
	for (unsigned i = 0; i < s->m * s->n; i++)
		put(at[2], s->result, i, value(s->result, 7 + i));
	l.kernel = consan_kernel(m, "k", &e);
	cr_assert(l.kernel, "%s", e.text);
	cr_assert_eq(consan_launch(c, &l, &e), CONSAN_OK, "%s %s: line %d: %s\n%s", s->shape,
		s->mma, e.line, e.text, text);
	for (unsigned i = 0; i < s->m; i++)
		for (unsigned j = 0; j < s->n; j++)
			bad += get(at[3], s->result, j * (s->m + 16) + i) != expected(s, i, j);
	cr_expect_eq(bad, 0, "%s %s%s, A by %s, B by %s: %u elements", s->shape, s->mma, s->op,
		a_col ? "columns" : "rows", b_row ? "rows" : "columns", bad);
	for (unsigned k = 0; k < 4; k++)
		consan_free(c, at[k]);
	consan_unload(m);
	free(text);
}

static void all(const char *options)
{
	struct consan_err e = { 0 };
	struct consan *c = consan_open(options, &e);

	cr_assert(c, "%s", e.text);
	for (size_t k = 0; k < ARRAY_SIZE(shapes); k++)
		for (unsigned order = 0; order < 4; order++)
			if (bits_of(shapes[k].type) >= 8 || !order) /* otherwise .row.col only */
				try(c, &shapes[k], order & 1, order & 2);
	cr_expect_eq(consan_errors(c), 0);
	consan_close(c);
}

Test(wmma, shapes) { all(""); }
Test(wmma, emulated) { all("backend=gpu-emulated gpu-global=1"); }
