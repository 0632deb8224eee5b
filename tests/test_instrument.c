/* instrument: the PTX that --backend=gpu would run on a GPU runs on the
 * executor, and what it records leads to the findings of the cpu backend. */
#include <criterion/criterion.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../instrument/decode.h"
#include "../libconsan/gpu.h"

static char output[1 << 18];

static int twins(const char *program)
{
	char self[PATH_MAX] = "", command[3 * PATH_MAX], *dir;
	size_t n;
	FILE *in;
	int rc;

	cr_assert_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
	dir = dirname(self);
	snprintf(command, sizeof command, "%s/gpu/twins %s/.. rehearse %s 2>&1", dir, dir, program);
	in = popen(command, "r");
	cr_assert_not_null(in);
	n = fread(output, 1, sizeof output - 1, in);
	output[n] = 0;
	rc = pclose(in);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

Test(instrument, ring, .timeout = 300) { cr_assert_eq(twins("ring/"), 0, "%s", output); }
Test(instrument, hgemm, .timeout = 300) { cr_assert_eq(twins("hgemm/"), 0, "%s", output); }
Test(instrument, wgmma, .timeout = 300) { cr_assert_eq(twins("wgmma_gemm/"), 0, "%s", output); }
Test(instrument, attention, .timeout = 300) { cr_assert_eq(twins("fa2_split_q"), 0, "%s", output); }
Test(instrument, hopper, .timeout = 300) { cr_assert_eq(twins("attention/hopper"), 0, "%s", output); }
Test(instrument, mesh, .timeout = 300) { cr_assert_eq(twins("attention/mesh"), 0, "%s", output); }

static int shell(const char *fmt, const char *dir, const char *arg)
{
	char command[3 * PATH_MAX];
	size_t n;
	FILE *in;
	int rc;

	snprintf(command, sizeof command, fmt, dir, dir, arg);
	in = popen(command, "r");
	cr_assert_not_null(in);
	n = fread(output, 1, sizeof output - 1, in);
	output[n] = 0;
	rc = pclose(in);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

/* A launch of one cluster is checked by several threads, each for a part of shared
 * memory: together they find what one finds. */
Test(instrument, shares, .timeout = 300)
{
	static const char *const bug[][2] = { { "no_empty_wait", "CS107" },
		{ "early_release", "CS106" }, { "no_syncwarp", "CS106" }, { "no_proxy_fence", "CS110" },
		{ "partial_unsynced", "CS105" }, { "too_few_releases", "CS701" } };
	char self[PATH_MAX] = "", *dir;

	cr_assert_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
	dir = dirname(self);
	cr_assert_eq(shell("%s/../consan-run --backend=rehearse --jobs=16 %s/../kernels/ring/ring --ctas=1 "
		"--rows=256 %s 2>&1", dir, ""), 0, "%s", output);
	for (size_t k = 0; k < sizeof bug / sizeof *bug; k++) {
		cr_assert_eq(shell("%s/../consan-run --backend=rehearse --jobs=16 %s/../kernels/ring/ring "
			"--ctas=1 --rows=256 --bug=%s 2>&1", dir, bug[k][0]), 66, "%s", output);
		cr_assert_not_null(strstr(output, bug[k][1]), "%s: %s", bug[k][0], output);
	}
}

static const char kernel[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".shared .align 16 .b8 tile[256];\n"
	".func helper() { .reg .b32 %r; mov.b32 %r, tile; st.shared.u32 [%r], 1; ret; }\n"
	".visible .entry plain(.param .u64 p)\n{\n\t.reg .b32 %r<4>;\n\t.reg .pred %p;\n"
	"L: mov.u32 %r1, tile;\n\tld.shared.u32 %r2, [%r1+4];\n\tsetp.eq.u32 %p, %r2, 0;\n"
	"\t{ .reg .b32 %r1; mov.u32 %r1, 5; @%p st.shared.u32 [tile+8], %r1; }\n"
	"\t@!%p bra L;\n\tret;\n}\n"
	".visible .entry calls()\n{\n\tcall helper, ();\n\tret;\n}\n";

/* What was put in reads like what was there: labels, scopes, guards stay. */
Test(instrument, rewritten)
{
	struct err e = { 0 };
	struct gpu_module *m = gpu_module_open("k.ptx", kernel, sizeof kernel - 1, false, &e);
	struct ptx_module *again;
	const struct ptx_func *f;
	const char *text;
	size_t n, stores = 0;

	cr_assert_not_null(m, "%s", e.text);
	text = gpu_module_text(m, &n);
	again = ptx_parse("again.ptx", text, n, &e);
	cr_assert_not_null(again, "%s\n%s", e.text, text);
	cr_assert(ptx_verify(again, &e), "%s", e.text);
	cr_assert_not_null(strstr(text, gpu_module_variable(m)));
	f = ptx_find(again, "plain");
	for (size_t k = 0; k < f->ninsn; k++)
		stores += f->insn[k].op == OP_st && ptx_has(&f->insn[k], MOD_shared);
	cr_assert_eq(stores, 1);
	ptx_free(again);
	gpu_module_close(m);
}

/* A device function that touches shared memory is not looked into: said. */
Test(instrument, refused)
{
	struct err e = { 0 };
	struct ptx_module *m = ptx_parse("k.ptx", kernel, sizeof kernel - 1, &e);
	struct rewrite *r;

	cr_assert_not_null(m, "%s", e.text);
	r = rewrite_module(m, 7, false);
	cr_assert_null(rewrite_find(r, "plain")->refused);
	cr_assert_eq(rewrite_find(r, "plain")->sites, 2);
	cr_assert_eq(rewrite_find(r, "plain")->recorded, 3, "ret counts, too");
	cr_assert_not_null(strstr(rewrite_find(r, "calls")->refused, "helper"));
	cr_assert_null(rewrite_find(r, "none"));
	rewrite_free(r);
	ptx_free(m);
}

static struct record_digest digest(uint32_t cta, uint32_t lane, uint32_t count, uint64_t sum)
{
	return (struct record_digest){ cta, lane | count << 16, (uint32_t)sum, (uint32_t)(sum >> 32) };
}

/* Clusters are alike if each lane's records are, however they fill chunks. */
Test(instrument, alike)
{
	struct launch_info i = { .grid = { 4, 1, 1 }, .block = { 64, 1, 1 }, .cluster = { 1, 1, 1 } };
	uint64_t a = 11, b = 13, c = 17, base = RECORD_DIGEST_BASE;
	struct record_digest d[] = {
		digest(0, 0, 3, (a * base + b) * base + c), digest(0, 32, 1, a),
		digest(1, 0, 1, a), digest(1, 32, 1, a), digest(1, 0, 2, b * base + c),
		digest(2, 0, 3, (b * base + a) * base + c), digest(2, 32, 1, a),
		digest(3, 32, 3, (a * base + b) * base + c), digest(3, 0, 1, a),
	};
	uint64_t signature[4];
	uint8_t skip[4];
	uint32_t rank;

	cr_assert_eq(decode_alike(&i, d, sizeof d / sizeof *d, signature, skip), 1);
	cr_assert(signature[0] == signature[1] && signature[0] != signature[2]);
	cr_assert(!skip[0] && skip[1] && !skip[2] && !skip[3]);
	i.cluster[0] = 2;
	cr_assert_eq(decode_cluster_of(&i, 3, &rank), 1);
	cr_assert_eq(rank, 1);
}
