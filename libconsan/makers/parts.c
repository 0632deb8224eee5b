/* parts: see parts.h. */
#include "parts.h"

#include "libconsan/origin/origin.h"
#include "libconsan/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

void parts_add_ptx(struct parts *p, const char *ptx, size_t n)
{
	vec_push(&p->ptx, base_strndup(ptx, strnlen(ptx, n)));
}

bool parts_add(struct parts *p, const void *input, size_t n)
{
	char suffix, *ptx;
	size_t bytes;

	if (fatbin_ptx_target(input, n, &suffix)) {
		parts_add_ptx(p, input, n);
		return true;
	}
	ptx = origin_get(input, n, &bytes);
	if (ptx)
		vec_push(&p->ptx, ptx);
	p->lost |= !ptx;
	return ptx;
}

void parts_put(const struct parts *p, const void *cubin, size_t bytes)
{
	struct consan_err e = { 0 };
	char *ptx;

	if (p->lost || !p->ptx.n)
		return;
	ptx = p->ptx.n == 1 ? base_strdup(p->ptx.at[0])
		: link_ptx((const char *const *)p->ptx.at, p->ptx.n, &e);
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
