/* parts: see parts.h. */
#include "origin.h"

#include "libconsan/ptx/ptx.h"

#include <ar.h>
#include <stdlib.h>
#include <string.h>

void parts_add_ptx(struct parts *p, const char *ptx, size_t n)
{
	vec_push(&p->ptx, base_strndup(ptx, strnlen(ptx, n)));
}

static char *ptx_of_fatbin(const void *fatbin, size_t n, unsigned sm, char suffix)
{
	struct fatbin_image best;
	struct consan_err e = { 0 };
	struct text has = { 0 };
	char *ptx = NULL;
	size_t bytes;

	if (sm && fatbin_choose(fatbin, n, sm, suffix, false, &best, &has, &e))
		ptx = fatbin_unpack(&best, &bytes, &e);
	text_free(&has);
	return ptx;
}

bool parts_add(struct parts *p, const void *input, size_t n, unsigned sm, char suffix)
{
	char target_suffix, *ptx;
	size_t bytes;

	if (n >= SARMAG && !memcmp(input, ARMAG, SARMAG))
		return true;
	if (!fatbin_is(input, n) && !cubin_size(input, n) && fatbin_ptx_target(input, n, &target_suffix)) {
		parts_add_ptx(p, input, n);
		return true;
	}
	ptx = fatbin_is(input, n) ? ptx_of_fatbin(input, n, sm, suffix) : NULL;
	if (!ptx)
		ptx = origin_find(input, n, sm, suffix, &bytes);
	if (ptx)
		vec_push(&p->ptx, ptx);
	p->lost |= !ptx;
	return ptx;
}

bool parts_add_file(struct parts *p, const char *path, unsigned sm, char suffix)
{
	struct text all = { 0 };
	struct consan_err e = { 0 };

	p->lost |= !text_read(&all, path, &e) || !all.n || !parts_add(p, all.at, all.n, sm, suffix);
	text_free(&all);
	return !p->lost;
}

char *parts_join(const struct parts *p, struct consan_err *e)
{
	if (p->lost || !p->ptx.n)
		return NULL;
	return p->ptx.n == 1 ? base_strdup(p->ptx.at[0])
		: link_ptx((const char *const *)p->ptx.at, p->ptx.n, e);
}

void parts_put(const struct parts *p, const void *cubin, size_t bytes)
{
	struct consan_err e = { 0 };
	char *ptx = parts_join(p, &e);

	if (ptx)
		origin_put(cubin, bytes, ptx, strlen(ptx));
	free(ptx);
}

void parts_free(struct parts *p)
{
	for (size_t k = 0; k < p->ptx.n; k++)
		free(p->ptx.at[k]);
	vec_free(&p->ptx);
}
