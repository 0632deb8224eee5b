/* Tests of base: text, vectors, arenas, errors, demangling; of sites and names of events. */
#include "libconsan/base/base.h"
#include "libconsan/base/demangle.h"
#include "libconsan/event/event.h"
#include "libconsan/event/site.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

Test(base, text_grows)
{
	struct text t = { 0 };

	for (int i = 0; i < 1000; i++)
		text_printf(&t, "%d,", i);
	cr_assert_eq(strncmp(t.at, "0,1,2,", 6), 0);
	cr_assert_eq(strlen(t.at), t.n);
	text_free(&t);
	cr_assert_null(t.at);
}

Test(base, vector_grows)
{
	VEC(uint32_t) v = { 0 };

	for (uint32_t i = 0; i < 1000; i++)
		vec_push(&v, i * i);
	cr_assert_eq(v.n, 1000);
	cr_assert_eq(v.at[999], 999u * 999u);
	vec_free(&v);
	cr_assert_eq(v.cap, 0);
}

/* FIPS 180-4's examples, and lengths around those at which padding needs a second block. */
Test(base, sha256)
{
	static const struct { const char *text, *hex; } known[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};
	static const struct { size_t n; const char *hex; } of_a[] = {
		{ 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
		{ 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
		{ 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
		{ 1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3" },
	};
	char hex[SHA256_HEX], a[1000];

	for (size_t k = 0; k < ARRAY_SIZE(known); k++) {
		sha256_hex(known[k].text, strlen(known[k].text), hex);
		cr_assert_str_eq(hex, known[k].hex);
	}
	memset(a, 'a', sizeof a);
	for (size_t k = 0; k < ARRAY_SIZE(of_a); k++) {
		sha256_hex(a, of_a[k].n, hex);
		cr_assert_str_eq(hex, of_a[k].hex);
	}
}

Test(base, grown_table_is_zero)
{
	uint32_t *at = NULL;
	size_t cap = 0;

	for (size_t want = 1; want < 5000; want = want * 3 + 1) {
		const size_t was = cap;

		vec_grow_zero((void **)&at, &cap, want, sizeof *at);
		cr_assert_geq(cap, want);
		for (size_t i = 0; i < cap; i++)
			cr_assert_eq(at[i], i < was ? 7u : 0u);
		for (size_t i = 0; i < cap; i++)
			at[i] = 7;
	}
	free(at);
}

Test(base, number_map)
{
	struct number_map m = { 0 };

	cr_assert_eq(number_map_get(&m, 1), 0);
	for (uint64_t round = 1; round < 3; round++) /* the second replaces */
		for (uint64_t i = 1; i < 2000; i++)
			number_map_put(&m, i << 20, i * round);
	cr_assert_eq(m.n, 1999);
	for (uint64_t i = 1; i < 2000; i++)
		cr_assert_eq(number_map_get(&m, i << 20), 2 * i);
	cr_assert_eq(number_map_get(&m, 1), 0);
	number_map_free(&m);
	cr_assert_eq(number_map_get(&m, 1 << 20), 0);
}

Test(base, arena_is_aligned_and_zeroed)
{
	struct arena a = { 0 };

	for (size_t n = 1; n < 100000; n = n * 3 + 1) {
		unsigned char *p = arena_alloc(&a, n);

		cr_assert_eq((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < n; i++)
			cr_assert_eq(p[i], 0);
		memset(p, 0xff, n);
	}
	cr_assert_str_eq(arena_strndup(&a, "abcdef", 3), "abc");
	arena_free(&a);
}

Test(base, first_error_wins)
{
	struct consan_err e = { 0 };

	cr_assert_not(err_set(&e, CONSAN_ERR_IO, 3, 4, "first %d", 1));
	err_set(&e, CONSAN_ERR_FORMAT, 5, 6, "second");
	cr_assert_eq(e.code, CONSAN_ERR_IO);
	cr_assert_eq(e.line, 3);
	cr_assert_str_eq(e.text, "first 1");
	cr_assert_not(err_set(NULL, CONSAN_ERR_IO, 0, 0, "not recorded"));
	cr_assert_str_not_empty(consan_err_name(CONSAN_ERR_IO));
}

static const struct site_loc caller = { .file = "a.cu", .line = 40, .col = 3 };
static const struct site_loc callee = { "b.h", 7, 9, "wait", &caller, 0 };

Test(site, copies_and_names)
{
	char kernel[] = "k", ptx[] = "bar.sync 0;";
	struct site s = { .kernel = kernel, .module = "m.ptx", .ptx_line = 12, .ptx = ptx,
		.loc = &callee };
	uint32_t id = site_add(&s), line;
	const char *file;

	kernel[0] = ptx[0] = '?';
	cr_assert_neq(id, 0);
	cr_assert_str_eq(site_get(id)->kernel, "k");
	cr_assert_str_eq(site_get(id)->ptx, "bar.sync 0;");
	cr_assert_str_eq(site_get(id)->loc->inlined_at->file, "a.cu");
	site_where(id, &file, &line);
	cr_assert_str_eq(file, "b.h");
	cr_assert_eq(line, 7);
	s.loc = NULL;
	site_where(site_add(&s), &file, &line);
	cr_assert_str_eq(file, "m.ptx");
	cr_assert_eq(line, 12);
}

Test(site, unknown_is_not_null)
{
	cr_assert_not_null(site_get(0));
	cr_assert_not_null(site_get(123456789)->kernel);
}

Test(site, interned_by_content)
{
	struct site s = { .kernel = "k", .module = "m", .ptx_line = 1, .ptx = "ret;",
		.loc = &callee };
	uint32_t id = site_intern(&s);
	struct site_loc again_caller = caller, again = callee;

	again.inlined_at = &again_caller;
	s.loc = &again;
	cr_assert_eq(site_intern(&s), id);
	again_caller.line++;
	cr_assert_neq(site_intern(&s), id);
}

static void *add_many(void *arg)
{
	uint32_t *id = arg;

	for (unsigned i = 0; i < 20000; i++) {
		struct site s = { .kernel = "many", .module = "m", .ptx_line = i, .ptx = "x" };

		id[i] = site_add(&s);
		cr_assert_eq(site_get(id[i])->ptx_line, i);
	}
	return NULL;
}

Test(site, from_several_threads)
{
	static uint32_t id[2][20000];
	pthread_t t[2];

	for (int k = 0; k < 2; k++)
		pthread_create(&t[k], NULL, add_many, id[k]);
	for (int k = 0; k < 2; k++)
		pthread_join(t[k], NULL);
	for (unsigned i = 0; i < 20000; i++) {
		cr_assert_neq(id[0][i], id[1][i]);
		cr_assert_eq(site_get(id[1][i])->ptx_line, i);
	}
}

Test(event, names)
{
	cr_assert_str_eq(event_name(EV_MBARRIER_ARRIVE), "MBARRIER_ARRIVE");
	cr_assert_str_eq(event_fault_rule(FAULT_GLOBAL_OOB), "CS903");
	cr_assert_str_eq(event_fault_text(9999), "?");
	cr_assert_str_eq(event_sem_name(SEM_ACQ_REL), "acq_rel");
	cr_assert_str_eq(event_scope_name(SCOPE_CLUSTER), "cluster");
}

Test(event, ctaid_counts_x_fastest)
{
	struct launch_info l = { .grid = { 8, 4, 2 }, .cluster = { 2, 2, 1 } };
	struct cluster_info c = { .launch = &l, .id = 0, .nctas = 4 };
	uint32_t id[3];

	cluster_ctaid(&c, 3, id);
	cr_assert(id[0] == 1 && id[1] == 1 && id[2] == 0);
	c.id = 5; /* 4 x 2 x 2 clusters: (1, 1, 0) */
	cluster_ctaid(&c, 1, id);
	cr_assert(id[0] == 3 && id[1] == 2 && id[2] == 0);
	c.id = 8;
	cluster_ctaid(&c, 0, id);
	cr_assert(id[0] == 0 && id[1] == 0 && id[2] == 1);
	l.cluster[0] = l.cluster[1] = l.cluster[2] = 0; /* no clusters */
	c.id = 9;
	cluster_ctaid(&c, 0, id);
	cr_assert(id[0] == 1 && id[1] == 1 && id[2] == 0);
}

Test(demangle, names)
{
	char *s = demangle("_Z6reducePfi", NAME_FULL);

	cr_assert_eq(strncmp(s, "reduce", 6), 0);
	free(s);
	s = demangle("_Z6reducePfi", NAME_SIMPLE);
	cr_assert_str_eq(s, "reduce");
	free(s);
	s = demangle("_Z6reducePfi", NAME_RAW);
	cr_assert_str_eq(s, "_Z6reducePfi");
	free(s);
	s = demangle("_ZN3abc3runIfLi4EEEvPT_", NAME_BARE);
	cr_assert(!strcmp(s, "abc::run") || !strcmp(s, "abc::run<...>"), "%s", s);
	free(s);
	s = demangle("_Z11gemm_deviceIN4cute5tup~0123abcd", NAME_FULL);
	cr_assert_str_eq(s, "gemm_device<...> ~0123abcd");
	free(s);
	s = demangle("_ZN40_INTERNAL_dc378730_13_wgmma_gemm_cu_main7produceEv", NAME_BARE);
	cr_assert(!strcmp(s, "produce"), "%s", s);
	free(s);
	/* Numba's tags; without the runtime library, they do not appear */
	s = demangle("_ZN8__main__5shiftB2v1B5cw51cEif", NAME_BARE);
	cr_assert_eq(strncmp(s, "__main__::shift", 15), 0, "%s", s);
	cr_assert_not(strstr(s, "abi:"), "%s", s);
	free(s);
	/* what the runtime library refuses: here, a template parameter without an argument */
	s = demangle("_ZN7cutlass6kernel4GemmIN4cute5tupleIJiiLi128EEEELNS_5StyleE2ELb1EvEclERKT7_Pc",
			NAME_FULL);
	cr_assert_str_eq(s, "cutlass::kernel::Gemm<...>::operator()");
	free(s);
	s = demangle("_ZN7cutlass6kernel4GemmIN4cute5tupleIJiiLi128EEEELNS_5StyleE2ELb1EvEclERKT7_Pc",
			NAME_BARE);
	cr_assert_str_eq(s, "cutlass::kernel::Gemm::operator()");
	free(s);
	s = demangle("_ZN2ns5Tile2IZNS_1fEvEUlvE0_X4sizeIT_EEE3runIiEEvT9_", NAME_FULL);
	cr_assert_str_eq(s, "ns::Tile2<...>::run<...>");
	free(s);
	s = demangle("_ZN2ns5Tile2IfEC1ERKT9_", NAME_FULL);
	cr_assert_str_eq(s, "ns::Tile2<...>::Tile2");
	free(s);
	s = demangle("_Z3runIN4cute5tupleIJiEEEEvT9_", NAME_SIMPLE);
	cr_assert_str_eq(s, "run<...>");
	free(s);
	s = demangle_variable("_ZZ6reducePKfPfiE1s");
	cr_assert_str_eq(s, "s");
	free(s);
	s = demangle_variable("_ZZN4gemmIfLi128EE3runEvE4tile_0");
	cr_assert_str_eq(s, "tile");
	free(s);
	s = demangle_variable("_ZN2ns6bufferE");
	cr_assert_str_eq(s, "buffer");
	free(s);
	s = demangle_variable("smem");
	cr_assert_str_eq(s, "smem");
	free(s);
	s = demangle("plain_c", NAME_FULL);
	cr_assert_str_eq(s, "plain_c");
	free(s);
}

Test(similar, words)
{
	static const struct { const char *word, *best; } row[] = {
		{ "sede", "seed" }, { "SEED", "seed" }, { "kernel_nam", "kernel-name" },
		{ "kernelname", "kernel-name" }, { "jobs", "jobs" }, { "jbos", "jobs" },
		{ "x", NULL }, { "kind", NULL }, { "", NULL },
		{ "a-very-long-word-that-is-not-in-the-list-and-longer-than-any-row-of-the-table", NULL },
	};
	static const char *const candidate[] = { "jobs", "seed", "kernel-name", "save",
		"another-word-that-is-longer-than-the-sixty-three-bytes-of-a-row-" };

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct similar s = { .word = row[i].word };

		for (size_t k = 0; k < ARRAY_SIZE(candidate); k++)
			similar_try(&s, candidate[k]);
		if (row[i].best)
			cr_expect_str_eq(s.best ? s.best : "", row[i].best);
		else
			cr_expect_null(s.best, "%s: %s", row[i].word, s.best);
	}
}

/* ---- visible ---- */

static void expect_visible(const char *s, const char *shown)
{
	struct text t = { 0 };

	visible_add(&t, s, strlen(s));
	cr_expect_str_eq(t.at, shown);
	cr_expect_eq(visible_is(s, strlen(s)), !strcmp(s, shown), "%s", shown);
	cr_expect(visible_is(t.at, t.n));
	text_free(&t);
}

Test(text, endless)
{
	struct text t = { 0 };
	struct consan_err e = { 0 };

	cr_expect_not(text_read(&t, "/dev/zero", &e));
	cr_expect(strstr(e.text, "is no file"), "%s", e.text);
	text_free(&t);
}

Test(visible, control_characters)
{
	char message[] = "a\x1b[2Jb\n\tc\xc2\x9b";

	expect_visible("plain, \xc3\xa9 \xe2\x82\xac \xff", "plain, \xc3\xa9 \xe2\x82\xac \xff");
	expect_visible("a\x1b]0;x\ab\n\t\r\x7f", "a\\x1b]0;x\\x07b\\n\\t\\r\\x7f");
	expect_visible("\xc2\x9b" "31m", "\\u009b31m");
	expect_visible("\xe2\x80\xae\xe2\x81\xa6", "\\u202e\\u2066");
	expect_visible("\xe2\x80", "\xe2\x80");
	visible_in_place(message);
	cr_expect_str_eq(message, "a?[2Jb\n\tc??");
}
