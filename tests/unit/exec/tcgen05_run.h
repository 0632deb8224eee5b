/* tcgen05_run: runs one tcgen05 operation on given images of shared and tensor memory. */
#ifndef TCGEN05_RUN_H
#define TCGEN05_RUN_H

#include "libconsan/base/base.h"
#include "libconsan/consan.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED = 112 * 1024, LANES = 128, COLUMNS = 512, TMEM_WORDS = LANES * COLUMNS };

/* A CTA before the operation and after it; the second CTA of a pair follows the first one. */
struct memory {
	unsigned char shared[SHARED];
	uint32_t before[LANES][COLUMNS], after[LANES][COLUMNS];
	/* registers of the thread that issues the operation; %e: the image's address in 16 bytes */
	uint64_t d[3];             /* %d0, %d1: descriptors, relative to the image; %d2: a value */
	uint32_t w[16];            /* %w0 to %w15; w[0] to w[4] are relative to the allocation */
};

static const char head[] =
	".version 8.8\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n"
	".visible .entry k(.param .u64 p)\n{\n"
	".reg .b32 %th, %warp, %rank, %t, %x, %i, %s, %v<33>, %w<17>;\n.reg .b64 %p, %q, %e, %d<3>;\n"
	".reg .b16 %both;\n.reg .pred %one, %c, %true, %false;\n"
	".shared .align 8 .b64 bar;\n.shared .b32 at;\n"
	"ld.param.u64 %p, [p];\nmov.u32 %th, %tid.x;\nshr.u32 %warp, %th, 5;\n"
	"mov.u32 %rank, %cluster_ctarank;\nmul.wide.u32 %q, %rank, ";

static void vector(struct text *t)
{
	for (unsigned k = 0; k < 32; k++)
		text_printf(t, "%s%%v%u", k ? ", " : "{", k);
	text_printf(t, "}");
}

/* Each warp moves its 32 lanes, 32 columns at a time. */
static void all_columns(struct text *t, char label, bool store, size_t from)
{
	text_printf(t, "mul.wide.u32 %%q, %%th, 2048;\nadd.u64 %%q, %%q, %%p;\n"
		"shl.b32 %%x, %%warp, 21;\nadd.u32 %%x, %%x, %%t;\nmov.u32 %%i, 0;\n%c:\n", label);
	if (!store) {
		text_printf(t, "tcgen05.ld.sync.aligned.32x32b.x32.b32 ");
		vector(t);
		text_printf(t, ", [%%x];\ntcgen05.wait::ld.sync.aligned;\nadd.u64 %%e, %%q, %zu;\n",
			from);
		for (unsigned k = 0; k < 32; k++)
			text_printf(t, "st.global.b32 [%%e+%u], %%v%u;\n", 4 * k, k);
	} else {
		text_printf(t, "add.u64 %%e, %%q, %zu;\n", from);
		for (unsigned k = 0; k < 32; k++)
			text_printf(t, "ld.global.b32 %%v%u, [%%e+%u];\n", k, 4 * k);
		text_printf(t, "tcgen05.st.sync.aligned.32x32b.x32.b32 [%%x], ");
		vector(t);
		text_printf(t, ";\ntcgen05.wait::st.sync.aligned;\n");
	}
	text_printf(t, "add.u64 %%q, %%q, 128;\nadd.u32 %%x, %%x, 32;\nadd.u32 %%i, %%i, 1;\n"
		"setp.lt.u32 %%c, %%i, 16;\n@%%c bra %c;\n", label);
}

/* `code` is executed by one thread, of the first CTA: it may use %d0, %d1, %d2, %w0 to %w15, %true
 * and %false. */
static char *program(const char *code, bool pair)
{
	const unsigned group = pair ? 2 : 1;
	const char *sync = pair ? "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
		: "bar.sync 0;\n";
	struct text t = { 0 };

	text_printf(&t, "%s%zu;\nadd.u64 %%p, %%p, %%q;\nsetp.eq.u32 %%true, %%th, %%th;\n"
		"setp.ne.u32 %%false, %%th, %%th;\nsetp.eq.u32 %%one, %%th, 0;\n"
		"@%%one mbarrier.init.shared.b64 [bar], 1;\n"
		"setp.ne.u32 %%c, %%warp, 0;\n@%%c bra A;\n"
		"tcgen05.alloc.cta_group::%u.sync.aligned.shared::cta.b32 [at], 512;\n"
		"tcgen05.relinquish_alloc_permit.cta_group::%u.sync.aligned;\nA:\n", head,
		sizeof(struct memory), group, group);
	text_printf(&t, "shl.b32 %%i, %%th, 2;\nB:\ncvt.u64.u32 %%q, %%i;\nadd.u64 %%q, %%q, %%p;\n"
		"ld.global.b32 %%v0, [%%q];\nmov.u32 %%s, tile;\nadd.u32 %%s, %%s, %%i;\n"
		"st.shared.b32 [%%s], %%v0;\nadd.u32 %%i, %%i, 512;\nsetp.lt.u32 %%c, %%i, %u;\n"
		"@%%c bra B;\nfence.proxy.async;\n%sld.shared.u32 %%t, [at];\n", SHARED, sync);
	all_columns(&t, 'C', true, offsetof(struct memory, before));
	text_printf(&t, "tcgen05.fence::before_thread_sync;\n%stcgen05.fence::after_thread_sync;\n"
		"setp.ne.u32 %%c, %%rank, 0;\nor.pred %%c, %%c, %%c;\n@%%c bra W;\n"
		"setp.ne.u32 %%c, %%th, 0;\n@%%c bra W;\nmov.u32 %%s, tile;\nshr.u32 %%s, %%s, 4;\n"
		"cvt.u64.u32 %%e, %%s;\n", sync);
	for (unsigned k = 0; k < 3; k++)
		text_printf(&t, "ld.global.b64 %%d%u, [%%p+%zu];\n", k, offsetof(struct memory, d[k]));
	text_printf(&t, "add.u64 %%d0, %%d0, %%e;\nadd.u64 %%d1, %%d1, %%e;\n");
	for (unsigned k = 0; k < 16; k++)
		text_printf(&t, "ld.global.b32 %%w%u, [%%p+%zu];\n", k, offsetof(struct memory, w[k]));
	for (unsigned k = 0; k < 5; k++)
		text_printf(&t, "add.u32 %%w%u, %%w%u, %%t;\n", k, k);
	text_printf(&t, "%smov.u16 %%both, 3;\n", code);
	text_printf(&t, "tcgen05.commit.cta_group::%u.mbarrier::arrive::one.shared::cluster%s.b64 "
		"[bar]%s;\nW:\nmbarrier.try_wait.parity.shared.b64 %%c, [bar], 0;\n@!%%c bra W;\n"
		"tcgen05.fence::after_thread_sync;\n", group, pair ? ".multicast::cluster" : "",
		pair ? ", %both" : "");
	all_columns(&t, 'D', false, offsetof(struct memory, after));
	text_printf(&t, "%ssetp.ne.u32 %%c, %%warp, 0;\n@%%c bra E;\n"
		"tcgen05.dealloc.cta_group::%u.sync.aligned.b32 %%t, 512;\nE:\nret;\n}\n", sync, group);
	return t.at;
}

/* Runs the code on m[0], and on m[1] if pair; fills `after`. Returns consan_launch()'s status. */
static enum consan_status run_code(const char *code, bool pair, struct memory *m,
	struct consan_err *e)
{
	const size_t bytes = (pair ? 2 : 1) * sizeof *m;
	struct consan *c = consan_open("", e);
	char *text = program(code, pair);
	struct consan_module *module = consan_load_ptx(c, "tcgen05", text, strlen(text), e);
	void *memory = consan_malloc(c, bytes, CONSAN_MEM_DEVICE);
	struct consan_launch l = { .grid = { pair ? 2 : 1, 1, 1 }, .block = { 128, 1, 1 },
		.cluster = { pair ? 2 : 1, 1, 1 }, .shared_dynamic = SHARED, .params = &memory };
	enum consan_status status;

	cr_assert(module, "%s\n%s", e->text, text);
	l.kernel = consan_kernel(module, "k", e);
	cr_assert(l.kernel, "%s", e->text);
	memcpy(memory, m, bytes);
	status = consan_launch(c, &l, e);
	memcpy(m, memory, bytes);
	cr_expect(status != CONSAN_OK || !consan_errors(c), "findings: %s", code);
	consan_unload(module);
	consan_free(c, memory);
	consan_close(c);
	free(text);
	return status;
}

#endif
