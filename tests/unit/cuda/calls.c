/* Tests of cuda: the table of calls has every call of the toolkit's headers, and a reason for each that
 * is not supported. */
#include "tests/common/skip.h"
#include "libconsan/base/base.h"

#include <criterion/criterion.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

enum { IMPLEMENTED, NOT_SUPPORTED };
static const struct { const char *name; int how; } calls[] = {
#define RT(name) { #name, IMPLEMENTED },
#define RT_AS(name, as) { #name, IMPLEMENTED },
#define RT_PT(name, as) { #name, IMPLEMENTED },
#define RT_NONE(name) { #name, NOT_SUPPORTED },
#define DRV(name, since) { #name, IMPLEMENTED },
#define DRV_AS(name, since, as) { #name, IMPLEMENTED },
#define DRV_PT(name, since, as) { #name, IMPLEMENTED },
#define DRV_NONE(name, since) { #name, NOT_SUPPORTED },
#include "libconsan/cuda/cuda.def"
};
static const struct { const char *pattern, *why; } reasons[] = {
#define REFUSED(pattern, why) { pattern, why },
#include "libconsan/cuda/refused.def"
#undef REFUSED
};

static bool known(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (!strncmp(calls[i].name, name, n) && !calls[i].name[n])
			return true;
	return false;
}

/* The functions that a header declares: the names behind this macro. */
static unsigned check_header(const char *path, const char *macro)
{
	struct text t = { 0 };
	struct consan_err e = { 0 };
	unsigned n = 0;

	if (!text_read(&t, path, &e))
		SKIP_TEST("%s", e.text);
	for (char *at = t.at; (at = strstr(at, macro));) {
		size_t length;

		at += strlen(macro);
		at += strspn(at, " \t\n");
		length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
		if (!length || strncmp(at, "cu", 2) || at[length + strspn(at + length, " ")] != '(')
			continue;
		cr_expect(known(at, length), "%.*s is not in cuda.def", (int)length, at);
		n++;
	}
	text_free(&t);
	return n;
}

Test(calls, of_the_headers)
{
	cr_expect_gt(check_header(CUDA_INCLUDE "/cuda_runtime_api.h", "CUDARTAPI "), 300);
	cr_expect_gt(check_header(CUDA_INCLUDE "/cuda.h", "CUDAAPI "), 500);
}

Test(calls, refused_with_reasons)
{
	bool used[ARRAY_SIZE(reasons)] = { false };

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		size_t k = 0;

		if (calls[i].how == IMPLEMENTED)
			continue;
		while (k < ARRAY_SIZE(reasons) && fnmatch(reasons[k].pattern, calls[i].name, 0))
			k++;
		cr_expect(k < ARRAY_SIZE(reasons), "refused.def has no reason for %s", calls[i].name);
		if (k < ARRAY_SIZE(reasons))
			used[k] = true;
	}
	for (size_t k = 0; k < ARRAY_SIZE(reasons); k++)
		cr_expect(used[k], "%s in refused.def fits no call", reasons[k].pattern);
}
