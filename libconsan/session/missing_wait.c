/* missing_wait: see missing_wait.h.
 *
 * The checker knows for which phase of which mbarrier the thread did not wait the first time. In a
 * loop it must wait for the next one each time, of all mbarriers of a ring in turn. So the wait
 * counts its executions: number k is for mbarrier k % n and phase k / n. A thread that fills buffers
 * waits from the second round on, which is the parity of the phase before phase 0 in the first one.
 * An instruction may use the same buffer several times, in copies that the compiler made of it or in
 * a loop of its own: the wait then stands before that loop, or k advances with the last of them. */
#include "missing_wait.h"

#include "libconsan/base/demangle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
#define RETRY "@!%%w bra again;"

struct waits {
	struct placer *placer;
	const struct finding *f;
	struct candidate *to;
	size_t n;
};

/* "full" of "_ZZ4ringE4full" */
static void put_name(struct text *t, const struct finding_need *x, unsigned i)
{
	const char *name = x->name[i];
	const size_t n = strcspn(name, "+[");
	char *bare = base_strndup(name, n), *own = demangle_variable(bare);

	if (*name)
		text_printf(t, "%s%s", own, name + n);
	else
		text_printf(t, "shared+0x%x", x->first + i * (x->n - 1) * x->stride);
	free(own);
	free(bare);
}

static void put_words(struct place *p, const struct finding_need *x, bool counts)
{
	struct text t = { 0 };

	text_printf(&t, "a wait for ");
	if (!counts) {
		text_printf(&t, "phase %llu of ", (unsigned long long)x->phase);
		put_name(&t, x, x->index * 2 >= x->n);
	} else {
		text_printf(&t, x->n > 1 ? "" : "each phase of ");
		put_name(&t, x, 0);
	}
	if (counts && x->n > 1) {
		text_printf(&t, " to ");
		put_name(&t, x, 1);
		text_printf(&t, " in turn");
	}
	snprintf(p->form, sizeof p->form, "%s", t.at);
	text_free(&t);
}

/* For the phase that was missed first, wherever this is executed. */
static void put_once(struct place *p, const struct finding_need *x)
{
	snprintf(p->ptx, sizeof p->ptx, "{ .reg .pred %%w; " TRY "%%w, [%u], %u; " RETRY " }",
		x->first + x->index * x->stride, (unsigned)(x->phase & 1));
	put_words(p, x, false);
}

/* Each execution, or each `uses` of them, for the next phase. */
static void put_counted(struct place *p, const struct finding_need *x, unsigned uses)
{
	struct text t = { 0 };

	text_printf(&t, "{ .reg .pred %%w; .reg .b32 %%a, %%p; ");
	if (uses > 1)
		text_printf(&t, "div.u32 %%p, %%wait%u, %u; ", x->first, uses);
	else
		text_printf(&t, "mov.b32 %%p, %%wait%u; ", x->first);
	if (x->n > 1)
		text_printf(&t, "rem.u32 %%a, %%p, %u; mad.lo.u32 %%a, %%a, %u, %u; div.u32 %%p, %%p, %u; ",
			x->n, x->stride, x->first, x->n);
	else
		text_printf(&t, "mov.b32 %%a, %u; ", x->first);
	text_printf(&t, "and.b32 %%p, %%p, 1; " TRY "%%w, [%%a], %%p; " RETRY
		" add.u32 %%wait%u, %%wait%u, 1; }", x->first, x->first);
	snprintf(p->ptx, sizeof p->ptx, "%s", t.at);
	text_free(&t);
	put_words(p, x, true);
}

static struct place counter(const struct place *wait, const struct finding_need *x, uint64_t start)
{
	struct place p = { .func = wait->func, .insn = wait->func->insn, .kind = EDIT_BEFORE,
		.form = "a counter of these waits" };

	snprintf(p.ptx, sizeof p.ptx, ".reg .b32 %%wait%u; mov.u32 %%wait%u, %u;", x->first, x->first,
		(unsigned)start);
	return p;
}

static void add_counted(struct waits *w, const struct place *at, unsigned uses)
{
	const struct finding_need *x = &w->f->need;
	const uint64_t first = x->phase * x->n + x->index;
	const uint64_t start[] = { 0, x->n, first, first + x->n };

	for (size_t k = 0; k < (first ? 4 : 2) && w->n < MISSING_WAITS; k++) {
		struct candidate *c = &w->to[w->n++];

		*c = (struct candidate){ { *at, counter(at, x, start[k] * uses) }, 2, 0,
			(unsigned)(2 + k), true };
		put_counted(&c->place[0], x, uses);
	}
}

static void add_once(struct waits *w, const struct place *at)
{
	struct candidate *c = &w->to[w->n];

	if (w->n == MISSING_WAITS)
		return;
	w->n++;
	*c = (struct candidate){ { *at }, 1, 0, 1, true };
	put_once(&c->place[0], &w->f->need);
}

size_t missing_wait(struct placer *p, const struct finding *f, struct candidate to[MISSING_WAITS])
{
	struct waits w = { p, f, to, 0 };
	struct finding_edit e = { .kind = EDIT_BEFORE, .site = f->side[0].site, .ptx = "wait" };
	struct place at[PLACES], alone;
	size_t n;

	if (!f->need.init)
		return 0;
	n = place_edit(p, &e, 2, at);
	for (size_t k = 0; k < n; k++) {
		add_once(&w, &at[k]);
		add_counted(&w, &at[k], 1);
		if (!at[k].copies)
			continue;
		add_counted(&w, &at[k], at[k].copies + 1);
		alone = at[k];
		alone.copies = 0;
		add_counted(&w, &alone, 1);
	}
	n = place_outside(p, &e, at);
	for (size_t k = 0; k < n; k++) {
		add_once(&w, &at[k]);
		add_counted(&w, &at[k], 1);
	}
	return w.n;
}
