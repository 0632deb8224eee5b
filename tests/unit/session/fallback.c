/* fallback: clusters of two sizes in one launch, and the verdict of
 * --cluster-fallback on kernels that are invariant and kernels that are not. */
#include "tests/common/limits.h"
#include "tests/common/shell.h"
#include "libconsan/event/event.h"
#include "libconsan/exec/exec.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Every CTA is in exactly one cluster, whichever the seed splits. */
Test(fallback, clusters_tile_the_grid)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct launch_info l = { .grid = { 8, 6, 2 }, .cluster = { 4, 2, 1 },
			.fallback = { 2, 1, 1 } };
		const struct exec_launch x = { .fallback = { 2, 1, 1 }, .seed = seed };
		const uint32_t whole = cluster_whole(&l);
		unsigned seen[8][6][2] = { 0 }, split = 0;
		uint32_t id[3];

		cr_assert_eq(whole, 12);
		for (uint32_t k = 0; k < whole; k++) {
			split += exec_splits(&x, k, whole);
			for (unsigned r = 0; r < 8; r++) {
				const struct cluster_info c = { .launch = &l, .id = k };

				cluster_ctaid(&c, r, id);
				seen[id[0]][id[1]][id[2]]++;
			}
		}
		cr_assert(split > 0 && split < whole);
		for (uint32_t k = whole; k < whole + 48; k++)
			for (unsigned r = 0; r < 2; r++) {
				const struct cluster_info c = { .launch = &l, .id = k };

				cluster_ctaid(&c, r, id);
				seen[id[0]][id[1]][id[2]] += 10;
			}
		for (unsigned i = 0; i < 96; i++)
			cr_assert_eq(((unsigned *)seen)[i], 11);
	}
}

/* The remark that holds the verdict: its kind, and its text in `text`. */
static void verdict(const char *options, const char *program, char kind[64], char text[4096])
{
	char out[] = "/tmp/consan-fallback-XXXXXX.json";
	const char *build = build_dir();
	json_t *report, *remarks;
	int status;

	close(mkstemps(out, 5));
	status = shell("%s/consan-run --quiet --log-file=/dev/null --report=%s %s -- %s/kernels/%s 2>&1",
		build, out, options, build, program);
	cr_assert_eq(status, 0, "%s %s: %d\n%s", options, program, status, output);
	report = json_load_file(out, 0, NULL);
	unlink(out);
	cr_assert_not_null(report);
	remarks = json_object_get(report, "remarks");
	*kind = *text = 0;
	for (size_t i = 0; i < json_array_size(remarks); i++) {
		const json_t *m = json_array_get(remarks, i);
		const char *k = json_string_value(json_object_get(m, "kind"));

		if (strncmp(k, "fallback_", 9))
			continue;
		cr_assert(!*kind, "two verdicts");
		snprintf(kind, 64, "%s", k);
		snprintf(text, 4096, "%s", json_string_value(json_object_get(m, "text")));
	}
	json_decref(report);
}

static void expect(const char *options, const char *program, const char *kind, const char *says)
{
	char is[64], text[4096];

	verdict(options, program, is, text);
	cr_expect_str_eq(is, kind, "%s %s: %s %s", options, program, is, text);
	cr_expect(strstr(text, says), "%s %s: %s, not: %s", options, program, text, says);
}

#define INVARIANT "fallback_invariant"
#define BREAKS "fallback_not_invariant"

/* The matmul derives parts, masks and counts from the cluster it is in. */
Test(fallback, multicast_matmul, .timeout = TEST_LIMIT)
{
	static const char *const options[] = { "--cluster-fallback=1", "--cluster-fallback=2",
		"--cluster-fallback=2 --seed=3", "--cluster-fallback=1 --async=early" };

	for (unsigned i = 0; i < 4; i++)
		expect(options[i], "wgmma_gemm/wgmma_gemm --cluster=2x2 --m=264 --n=1032 --k=200",
			INVARIANT, "multicast at wgmma_gemm.cu:");
	expect("--cluster-fallback=2", 
		"wgmma_gemm/wgmma_gemm --cluster=4x1 --fallback=2x1 --m=1024 --k=128", INVARIANT, "of 1x4x1 and");
	expect("--cluster-fallback=2", "wgmma_gemm/wgmma_gemm --cluster=1x4 --n=2048 --k=128", INVARIANT,
		"2 clusters of 4x1x1 and 4 of 2x1x1");
}

Test(fallback, forms, .timeout = TEST_LIMIT)
{
#define FORM(name) "fallback/fallback --form=" name
	expect("--cluster-fallback=2", FORM("multicast"), INVARIANT, "multicast at fallback.cu:");
	expect("--cluster-fallback=1", FORM("counted"), INVARIANT, "remote arrive at fallback.cu:");
	expect("--cluster-fallback=2", FORM("scratch"), BREAKS,
		"data is exchanged through global memory across a cluster barrier at fallback.cu:");
	expect("--cluster-fallback=2 --seed=9", FORM("scratch"), BREAKS, "global memory across");
	expect("--cluster-fallback=2", FORM("dsmem"), BREAKS, "DSMEM access at fallback.cu:");
	expect("--cluster-fallback=2", FORM("atomic"), BREAKS,
		"atomic on global memory at fallback.cu:");
	expect("--cluster-fallback=1", FORM("rank"), BREAKS,
		"remote arrive to a rank built from the preferred size: fallback.cu:");
	expect("--cluster-fallback=2", FORM("count"), BREAKS, "a wait counts on the preferred size");
	expect("--cluster-fallback=2", FORM("mask"), BREAKS,
		"multicast mask built from the preferred size: fallback.cu:");
	expect("--cluster-fallback=2", FORM("mask --least=2"), BREAKS, "of 4x1x1 and");
}

/* The sharded attention cuts its tiles for the cluster of the launch, the mesh
 * passes K and V on from rank to rank. */
Test(fallback, attention, .timeout = TEST_LIMIT)
{
	expect("--cluster-fallback=1", "attention/hopper --cluster=2 --n=512", BREAKS,
		"a wait counts on the preferred size: hopper.cu:");
	expect("--cluster-fallback=2", "attention/mesh_kv --ranks=4", BREAKS, "");
}

Test(fallback, not_tried)
{
	expect("--cluster-fallback=4", FORM("multicast"), "fallback_not_tried", "cannot be split");
	expect("--cluster-fallback=3", FORM("multicast"), "fallback_not_tried", "cannot be split");
	expect("--cluster-fallback=1", "hgemm/hgemm", "fallback_not_tried", "a cluster of 1");
}
