/* A kernel under the checker from plain C: link with `pkg-config --libs consan`.
 * Exit status 1: the kernel has a bug; 2: it was not checked. */
#include <consan/consan.h>

#include <stdio.h>

/* Each thread stores its number and loads that of a thread of another warp. */
static const char ptx[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".visible .entry exchange(.param .u64 out)\n{\n"
	".reg .b32 %r<6>; .reg .b64 %rd<4>;\n"
	".shared .align 4 .b8 tile[256];\n"
	"mov.u32 %r1, %tid.x;\n"
	"mov.u32 %r2, tile;\n"
	"shl.b32 %r3, %r1, 2;\n"
	"add.u32 %r4, %r2, %r3;\n"
	"st.shared.u32 [%r4], %r1;\n"
	"xor.b32 %r3, %r3, 128;\n"     /* the barrier is missing here */
	"add.u32 %r4, %r2, %r3;\n"
	"ld.shared.u32 %r5, [%r4];\n"
	"ld.param.u64 %rd1, [out];\n"
	"mul.wide.u32 %rd2, %r1, 4;\n"
	"add.u64 %rd1, %rd1, %rd2;\n"
	"st.global.u32 [%rd1], %r5;\n"
	"ret;\n}\n";

int main(void)
{
	struct consan_err e = { 0 };
	struct consan *c = consan_open("", &e);
	struct consan_module *m = c ? consan_load_ptx(c, "exchange.ptx", ptx, sizeof ptx - 1, &e)
		: NULL;
	const struct consan_kernel *k = m ? consan_kernel(m, "exchange", &e) : NULL;
	uint32_t *out;
	int bad = 0;

	if (!k) {
		fprintf(stderr, "%s: %s\n", consan_err_name(e.code), e.text);
		return 2;
	}
	out = consan_malloc(c, 64 * sizeof *out, CONSAN_MEM_DEVICE);
	const void *args[] = { &out };
	struct consan_launch l = { .kernel = k, .grid = { 1, 1, 1 }, .block = { 64, 1, 1 },
		.args = args };
	if (consan_launch(c, &l, &e) != CONSAN_OK) {
		fprintf(stderr, "%s\n", e.text);
		bad = 2; /* nothing was checked: not a success */
	}
	for (size_t i = 0, n = consan_findings(c); i < n; i++) {
		char text[4096];

		consan_describe(consan_finding(c, i), text, sizeof text);
		puts(text);
	}
	if (!bad && consan_errors(c))
		bad = 1;
	consan_free(c, out);
	consan_unload(m);
	consan_close(c);
	return bad;
}
