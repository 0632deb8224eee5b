/* Tests of slice and external: a kernel is cut out of its module with all that it can reach, and uses
 * the module's variables by their addresses. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/rewrite/rewrite.h"
#include "libconsan/session/gpu.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static const char text[] = HEAD
	".file 1 \"a.cu\"\n"
	".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
	".global .align 4 .u32 used; // not_used\n"
	".global .align 4 .u32 not_used;\n"
	".visible .global .align 8 .u64 pointer[2] = {generic(pointed), 0};\n"
	".global .align 4 .b8 pointed[4] = {1, 2, 3, 4};\n"
	".const .align 4 .u32 scale = 3;\n"
	".func (.param .b32 r) twice(.param .b32 x);\n"
	".func (.param .b32 r) twice(.param .b32 x)\n{\n"
	"\t.reg .b32 %a;\n\tld.param.b32 %a, [x];\n\tadd.u32 %a, %a, %a;\n\tst.param.b32 [r], %a;\n"
	"\tret;\n}\n"
	".func other_function()\n{\n\tret;\n}\n"
	".visible .entry first(.param .u64 to)\n.maxntid 32, 1, 1\n{\n"
	"\t.reg .b32 %a, %c;\n\t.reg .b64 %d;\n\t.reg .pred %p;\n"
	"\t.loc 1 7 1\n"
	"\tld.global.u32 %a, [used+4];\n"
	"\tld.const.u32 %c, [scale];\n"
	"\tsetp.eq.u32 %p, %a, %c;\n"
	"\t@!%p mov.u64 %d, pointer+8;\n"
	"\t@%p st.global.u32 [used], %c;\n"
	"\t{ .param .b32 x; .param .b32 r; st.param.b32 [x], %a; call (r), twice, (x); }\n"
	"\tret;\n}\n"
	".visible .entry second()\n{\n\tret; /* used */\n}\n";

static char *cut(const char *kernel, size_t *n)
{
	struct slices *s = slices_open(text, sizeof text - 1);
	char *part = slices_cut(s, kernel, n);

	slices_close(s);
	return part;
}

Test(slice, has_what_a_kernel_reaches)
{
	static const char *const with[] = { ".version 8.0", ".file 1", " used;", "pointer[2]", "pointed[4]",
		"scale = 3", "twice(.param .b32 x);", "add.u32 %a, %a, %a", "entry first" };
	static const char *const without[] = { " not_used;", "other_function", "second", "vprintf" };
	size_t n;
	char *part = cut("first", &n);

	cr_assert_not_null(part);
	cr_assert_eq(n, strlen(part));
	for (size_t k = 0; k < ARRAY_SIZE(with); k++)
		cr_expect(strstr(part, with[k]), "no %s in %s", with[k], part);
	for (size_t k = 0; k < ARRAY_SIZE(without); k++)
		cr_expect(!strstr(part, without[k]), "%s in %s", without[k], part);
	free(part);
	part = cut("second", &n);
	cr_expect(part && !strstr(part, "used;") && !strstr(part, "first"), "%s", part);
	free(part);
	cr_expect_null(cut("third", &n));
	cr_expect_null(cut("twice", &n), "a function is no kernel");
}

static unsigned lines_before(const char *in, const char *what)
{
	unsigned n = 0;

	for (const char *at = strstr(in, what); at-- > in;)
		n += *at == '\n';
	return n;
}

Test(slice, keeps_lines)
{
	size_t n;
	char *part = cut("second", &n);

	cr_expect_eq(lines_before(part, "ret; /* used */"), lines_before(text, "ret; /* used */"));
	free(part);
}

Test(slice, lists_kernels)
{
	struct slices *s = slices_open(text, sizeof text - 1);

	cr_expect_str_eq(slices_kernel(s, 0), "first");
	cr_expect_str_eq(slices_kernel(s, 1), "second");
	cr_expect_null(slices_kernel(s, 2));
	slices_close(s);
}

/* A declaration that makes sense alone */
Test(slice, declares_a_variable)
{
	struct slices *s = slices_open(text, sizeof text - 1);
	struct text t = { 0 };

	slices_declaration(s, "pointed", &t);
	cr_expect_str_eq(t.at, HEAD ".visible .global .align 4 .b8 pointed[4] = {1, 2, 3, 4};");
	text_free(&t);
	slices_declaration(s, "nothing", &t);
	cr_expect_null(t.at);
	slices_close(s);
}

/* The instrumented text names no variable in global memory, and is the same each time. */
Test(slice, variables_by_address)
{
	static const char *const with[] = { "ld.global.u32 %a, [%cs_x0+4];",
		"ld.const.b64 %cs_x0, [consan_gpu_0+32];", "add.s64 %cs_x0, %cs_x0, 8;",
		"@!%p\tmov.b64 %d, %cs_x0;", "@%p st.global.u32 [%cs_x0], %c;", "ld.const.u32 %c, [scale];",
		"consan_gpu_0[56]" };
	struct slices *s = slices_open(text, sizeof text - 1);
	struct consan_err e = { 0 };
	struct gpu_module *m = gpu_module_cut("k.ptx", s, "first", false, false, false, &e),
		*again = gpu_module_cut("k.ptx", s, "first", false, false, false, &e);
	size_t n;
	const char *is;

	cr_assert(m && again, "%s", e.text);
	is = gpu_module_text(m, &n);
	for (size_t k = 0; k < ARRAY_SIZE(with); k++)
		cr_expect(strstr(is, with[k]), "no %s in %s", with[k], is);
	cr_expect(!strstr(is, ".global .align") && !strstr(is, ".loc 1") && !strstr(is, ".file"), "%s", is);
	cr_expect_str_eq(is, gpu_module_text(again, &n));
	cr_expect_str_eq(gpu_module_global(m, 0), "used");
	cr_expect_str_eq(gpu_module_global(m, 1), "pointer");
	cr_expect_str_eq(gpu_module_const(m, 0), "scale");
	cr_expect_null(gpu_module_const(m, 1));
	cr_expect_null(gpu_module_cut("k.ptx", s, "third", false, false, false, &e));
	gpu_module_close(m);
	gpu_module_close(again);
	slices_close(s);
}

Test(slice, refuses)
{
	static const char *const bad[] = {
		"p: .callprototype _ ();", "t: .calltargets f;", "call cudaLaunchDevice;",
		".global .texref t;", "cvta.const.u64 %a, %b;", ".extern .global .u32 x;",
		".const .u32 c; .global .u64 p = generic(c);", ".const .u32 c; .global .u64 p[2] = {0, c};",
		".global .u32 x; .const .u64 p = generic(x);", ".version 8.0\n.target sm_90, debug\n",
	};
	static const char *const good[] = {
		".const .u32 c = 3; .global .u32 x; .global .u64 p = generic(x);", ".const .u32 c;",
		".global .u64 p = generic(x); .global .u32 x;",
	};

	for (size_t k = 0; k < ARRAY_SIZE(bad); k++)
		cr_expect(slice_refuses(bad[k]), "%s", bad[k]);
	for (size_t k = 0; k < ARRAY_SIZE(good); k++)
		cr_expect_null(slice_refuses(good[k]), "%s: %s", good[k], slice_refuses(good[k]));
	cr_expect_null(slice_refuses(text));
}
