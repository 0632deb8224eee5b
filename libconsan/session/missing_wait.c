/* missing_wait: see missing_wait.h.
 *
 * The checker knows for which phase of which mbarrier the thread did not wait the first time. In a
 * loop it must wait for the next one each time, of all mbarriers of a ring in turn. So the wait
 * counts its executions: number k is for mbarrier k % n and phase k / n. A thread that fills
 * buffers waits from the second round on, which is the parity of the phase before phase 0 in the
 * first one. An instruction may use the same buffer several times, in copies that the compiler made
 * of it or in a loop of its own: the wait then stands before that loop, or k advances with the last
 * of them. */
#include "missing_wait.h"

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

static void put_name(struct text *t, const struct finding_need *x, unsigned i)
{
	if (*x->name[i])
		demangle_symbol(t, x->name[i]);
	else
		text_printf(t, "shared+0x%x", x->first + i * (x->n - 1) * x->stride);
}

static void put_words(struct place *p, const struct finding_need *x, bool counts, unsigned uses)
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
	if (uses > 1)
		text_printf(&t, " (the next one after each %u)", uses);
	snprintf(p->words, sizeof p->words, "%s", t.at);
	text_free(&t);
}

/* For the phase that was missed first, wherever this is executed. */
static void put_once(struct place *p, const struct finding_need *x)
{
	snprintf(p->ptx, sizeof p->ptx, "{ .reg .pred %%w; " TRY "%%w, [%u], %u; " RETRY " }",
		x->first + x->index * x->stride, (unsigned)(x->phase & 1));
	put_words(p, x, false, 1);
}

/* Each execution, or each `uses` of them, for the next phase. */
static void put_counted(struct place *p, const struct finding_need *x, unsigned uses)
{
	const uint32_t name = p->insn->line;
	struct text t = { 0 };

	text_printf(&t, "{ .reg .pred %%w; .reg .b32 %%a, %%p; ");
	if (uses > 1)
		text_printf(&t, "div.u32 %%p, %%wait%u, %u; ", name, uses);
	else
		text_printf(&t, "mov.b32 %%p, %%wait%u; ", name);
	if (x->n > 1)
		text_printf(&t, "rem.u32 %%a, %%p, %u; mad.lo.u32 %%a, %%a, %u, %u; div.u32 %%p, %%p, %u; ",
			x->n, x->stride, x->first, x->n);
	else
		text_printf(&t, "mov.b32 %%a, %u; ", x->first);
	text_printf(&t, "and.b32 %%p, %%p, 1; " TRY "%%w, [%%a], %%p; " RETRY
		" add.u32 %%wait%u, %%wait%u, 1; }", name, name);
	snprintf(p->ptx, sizeof p->ptx, "%s", t.at);
	text_free(&t);
	put_words(p, x, true, uses);
}

static struct place counter(const struct place *wait, uint64_t start)
{
	struct place p = { .func = wait->func, .insn = wait->func->insn, .kind = EDIT_BEFORE,
		.words = "a counter of these waits" };

	snprintf(p.ptx, sizeof p.ptx, ".reg .b32 %%wait%u; mov.u32 %%wait%u, %u;",
		wait->insn->line, wait->insn->line, (unsigned)start);
	return p;
}

static void add_counted(struct waits *w, const struct place *at, unsigned uses, unsigned order)
{
	const struct finding_need *x = &w->f->need;
	const uint64_t first = x->phase * x->n + x->index;
	const uint64_t start[] = { 0, x->n, first, first + x->n };

	for (size_t k = 0; k < (first ? 4 : 2) && w->n < MISSING_WAITS; k++) {
		struct candidate *c = &w->to[w->n++];

		*c = (struct candidate){ { *at, counter(at, start[k] * uses) }, 2, 0,
			order + (unsigned)k, 0, true };
		put_counted(&c->place[0], x, uses);
	}
}

static void add_once(struct waits *w, const struct place *at, unsigned order)
{
	struct candidate *c = &w->to[w->n];

	if (w->n == MISSING_WAITS)
		return;
	w->n++;
	*c = (struct candidate){ { *at }, 1, 0, order, 0, true };
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
		add_once(&w, &at[k], 1);
		add_counted(&w, &at[k], 1, 2);
		for (unsigned uses = 2; uses <= 8 && !k; uses *= 2)
			add_counted(&w, &at[k], uses, UNSURE);
		if (!at[k].copies)
			continue;
		add_counted(&w, &at[k], at[k].copies + 1, 2);
		if (k)
			continue;
		alone = at[k];
		alone.copies = 0;
		add_once(&w, &alone, 4);
		add_counted(&w, &alone, 1, 6);
	}
	n = place_outside(p, &e, at);
	for (size_t k = 0; k < n; k++) {
		add_once(&w, &at[k], 1);
		add_counted(&w, &at[k], 1, 2);
	}
	return w.n;
}
