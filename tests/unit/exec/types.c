/* Tests of exec: no instruction accesses a register as of another type than it has. Valid statements, in which one
 * register or one type after the other is replaced by each other one. What decoding does not refuse is run; ASan
 * detects accesses beyond a register (slot_gap.c). */
#include "libconsan/base/base.h"
#include "libconsan/exec/exec.h"
#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statement { const char *setup, *text, *also; } statements[] = {
#define CASE(setup, text, also) { setup, text, also },
#include "types_cases.def"
#undef CASE
};

/* ---- the kernel around a statement ---- */

enum { BYTES = 8192, LINE = 1024, EXTENT = 8 };
#define MULTICAST (UINT64_C(1) << 50)

/* Registers with a value of their own; all others are 0. */
static const struct { const char *name, *init; } values[] = {
	{ "%r1", "mov.u32 %r1, a;" }, { "%d1", "ld.param.u64 %d1, [out];" },
	{ "%r10", "mov.u32 %r10, bar;" }, { "%d10", "cvta.shared.u64 %d10, bar;" },
	{ "%r11", "mov.u32 %r11, 128;" }, { "%r12", "mov.u32 %r12, 160;" }, { "%r13", "mov.u32 %r13, -1;" },
	{ "%r14", "mov.u32 %r14, 0x44444444;" }, { "%r15", "mov.u32 %r15, 16;" }, { "%r16", "mov.u32 %r16, 16;" },
	{ "%r17", "mov.u32 %r17, a+256;" }, { "%r18", "mov.u32 %r18, 32;" },
	{ "%d11", "ld.param.u64 %d11, [tex];" }, { "%d12", "ld.param.u64 %d12, [surf];" },
	{ "%d13", "ld.param.u64 %d13, [multi];" },
};

/* Is this register named? %r1 is not in "%r10". */
static bool names(const char *text, const char *reg)
{
	const size_t n = strlen(reg);

	for (const char *at = strstr(text, reg); at; at = strstr(at + n, reg))
		if (!isdigit((unsigned char)at[n]))
			return true;
	return false;
}

static void kernel(struct text *t, const char *setup, const char *statement)
{
	const bool bar = strstr(statement, "%r10]") || strstr(statement, "%d10]");

	text_printf(t, ".version 9.1\n.target sm_100a\n.address_size 64\n.global .align 128 .b8 g[%d];\n"
		".const .align 8 .b8 k[64];\n.func f() { ret; }\n"
		".visible .entry e(.param .u64 out, .param .u64 tex, .param .u64 surf, .param .u64 multi)\n{\n"
		".reg .pred %%p<22>, %%first; .reg .b8 %%c<22>; .reg .b16 %%h<22>; .reg .b32 %%r<22>;\n"
		".reg .b64 %%d<22>; .reg .b128 %%q<22>;\n.shared .align 1024 .b8 a[%d]; .shared .align 8 .b64 bar;\n"
		".local .align 16 .b8 l[64];\n", BYTES, BYTES);
	for (size_t k = 0; k < ARRAY_SIZE(values); k++)
		if (names(statement, values[k].name))
			text_printf(t, "%s\n", values[k].init);
	if (bar || !strncmp(statement, "tcgen05.", 8))
		text_printf(t, "mov.u32 %%r20, %%tid.x; setp.lt.u32 %%first, %%r20, 32;\n");
	if (bar)
		text_printf(t, "@%%first mbarrier.init.shared.b64 [bar], 64;\n");
	if (!strncmp(statement, "tcgen05.", 8))
		text_printf(t, "mov.u32 %%r20, a;\n"
			"@%%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%%r20], 32;\n");
	text_printf(t, "bar.sync 0;\n%s\n%s\nend: ret;\n}\n", setup, statement);
}

static unsigned char memory[BYTES] __attribute__((aligned(128)));
static uint32_t texels[EXTENT][EXTENT];
static uint64_t param[4];
static struct exec_multicast *multicast;

static void begin(void)
{
	struct consan_texture t = { .level = { { (uintptr_t)texels, sizeof texels[0], sizeof texels } },
		.width = EXTENT, .height = EXTENT, .format = CONSAN_TEXEL_U32, .channels = 1 };

	param[0] = (uintptr_t)memory;
	param[1] = exec_texture_add(&t);
	t.surface = true;
	param[2] = exec_texture_add(&t);
	param[3] = MULTICAST;
	exec_mem_add(memory, sizeof memory, MEM_DEVICE, false);
	exec_mem_add(texels, sizeof texels, MEM_DEVICE, false);
	multicast = base_alloc(sizeof *multicast + sizeof multicast->bound[0]);
	multicast->devices = 1;
	multicast->bound[multicast->n++] = (struct exec_binding){ MULTICAST, BYTES, (uintptr_t)memory, 0 };
	exec_mem_put(&(struct exec_mem){ MULTICAST, BYTES, MEM_DEVICE, false, 0, NULL, false, multicast });
}

static void end(void)
{
	exec_mem_remove((void *)(uintptr_t)MULTICAST);
	exec_mem_remove(memory);
	exec_mem_remove(texels);
	exec_texture_remove(param[1]);
	exec_texture_remove(param[2]);
	free(multicast);
}

/* Runs it, unless decoding refuses it. seen: the instructions of the kernel, or NULL. */
static bool runs(const struct statement *s, const char *text, uint8_t *seen)
{
	struct exec_launch l = { .device = exec_device_for(100), .grid = { 1, 1, 1 }, .block = { 128, 1, 1 },
		.cluster = { 1, 1, 1 }, .params = param, .jobs = 1, .timeout = 20 };
	struct exec_kernel_info info;
	struct consan_err e = { 0 };
	struct exec_module *module;
	struct ptx_module *p;
	struct exec_result r;
	struct text ptx = { 0 };
	const struct ptx_func *f;

	kernel(&ptx, s->setup, text);
	p = ptx_parse("test.ptx", ptx.at, ptx.n, &e);
	text_free(&ptx);
	if (!p)
		return false;
	f = ptx_find(p, "e");
	for (size_t k = 0; seen && k < f->ninsn; k++)
		seen[f->insn[k].op] = true;
	module = exec_load(p, &e);
	cr_assert(module, "%s: %s", text, e.text);
	l.kernel = exec_kernel(module, "e", &e);
	cr_assert(l.kernel, "%s: %s", text, e.text);
	exec_kernel_info(l.kernel, &info);
	memset(memory, 0, sizeof memory);
	if (!info.nunsupported)
		exec_run(&l, &r);
	exec_unload(module);
	return !info.nunsupported;
}

/* ---- tests ---- */

Test(types, valid_statements, .init = begin, .fini = end)
{
	static const char *const operands[OP_COUNT] = {
#define OP(id, name, mods, operands, effect, doc) [OP_##id] = operands,
#include "libconsan/ptx/ptx.def"
#undef OP
	};
	uint8_t seen[OP_COUNT] = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(statements); k++)
		cr_expect(runs(&statements[k], statements[k].text, seen), "%s", statements[k].text);
	for (unsigned op = 1; op < OP_COUNT; op++)
		cr_expect(seen[op] || !*operands[op], "no statement for %s", ptx_op_name(op));
}

/* Does this list of registers without % have the one at `reg`? */
static bool listed(const char *list, const char *reg)
{
	const size_t n = 1 + strspn(reg + 1, "0123456789");

	for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (strcspn(at, " ") == n && !strncmp(at, reg, n))
			return true;
	return false;
}

static const char classes[] = "pchrdq";

static bool is_register(const char *at)
{
	return *at == '%' && strchr(classes, at[1]) && isdigit((unsigned char)at[2]);
}

/* Each register by one of each other class. What is listed must not be refused. */
Test(types, other_registers, .init = begin, .fini = end)
{
	for (size_t k = 0; k < ARRAY_SIZE(statements); k++) {
		const struct statement *s = &statements[k];
		char text[LINE];

		cr_assert_lt(snprintf(text, sizeof text, "%s", s->text), LINE);
		for (char *at = text; *at; at++) {
			const char was = at[1];

			if (!is_register(at))
				continue;
			for (const char *c = classes; *c; c++) {
				at[1] = *c;
				if (*c != was)
					cr_expect(runs(s, text, NULL) || !listed(s->also, at + 1), "%s", text);
			}
			at[1] = was;
		}
	}
}

static char class_of(unsigned bits)
{
	return bits == 1 ? 'p' : bits <= 8 ? 'c' : bits <= 16 ? 'h' : bits <= 32 ? 'r' : bits <= 64 ? 'd' : 'q';
}

static const struct type { const char *name; unsigned bits; } types[] = {
#define TYPE(id, bits, class) { #id, bits },
#include "libconsan/ptx/types.def"
#undef TYPE
};

/* The type at `at`, behind a dot; NULL: it is none. */
static const struct type *type_at(const char *at, size_t n)
{
	for (size_t k = 0; k < ARRAY_SIZE(types); k++)
		if (strlen(types[k].name) == n && !strncmp(types[k].name, at, n))
			return &types[k];
	return NULL;
}

/* Registers of one class become those of another, except addresses (numbers 1 and from 10 on). */
static void reclass(char *text, char from, char to)
{
	for (char *at = text; *at; at++)
		if (is_register(at) && at[1] == from && at[2] != '1')
			at[1] = to;
}

/* Each type by each other one, also with the registers of this width. */
Test(types, other_types, .init = begin, .fini = end)
{
	for (size_t k = 0; k < ARRAY_SIZE(statements); k++) {
		const struct statement *s = &statements[k];
		const char *end_of_name = s->text + strcspn(s->text, " ");

		for (const char *at = strchr(s->text, '.'); at && at < end_of_name; at = strchr(at + 1, '.')) {
			const size_t n = strcspn(at + 1, ". ;");
			const struct type *was = type_at(at + 1, n);

			for (size_t t = 0; was && t < ARRAY_SIZE(types); t++) {
				char text[LINE];

				snprintf(text, sizeof text, "%.*s.%s%s", (int)(at - s->text), s->text, types[t].name,
					at + 1 + n);
				runs(s, text, NULL);
				if (class_of(types[t].bits) == class_of(was->bits))
					continue;
				reclass(text, class_of(was->bits), class_of(types[t].bits));
				runs(s, text, NULL);
			}
		}
	}
}
