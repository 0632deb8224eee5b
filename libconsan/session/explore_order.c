/* explore_order: other orders of the operations that streams have queued (cuda/host_wait.c), each in a copy of
 * the process, from the moment on at which the host begins to wait for them. */
#include "explore.h"
#include "internal.h"

#include "libconsan/event/event.h"

struct ordering {
	struct consan *c;
	void (*run)(void *user);
	void *user;
	uint32_t sites;              /* that the process has: the copy's further ones mean nothing there */
	VEC(const struct finding *) found;
};

static void keep_sites(struct finding *f, uint32_t n)
{
	for (unsigned i = 0; i < f->nsides; i++) {
		if (f->side[i].site >= n)
			f->side[i].site = 0;
		if (f->side[i].call >= n)
			f->side[i].call = 0;
	}
	if (f->host >= n)
		f->host = 0;
}

/* Runs in a copy of the process. */
static size_t try_order(void *user, uint64_t seed, const struct exec_control *control,
	const struct finding *const **found, enum explore_end *end)
{
	struct ordering *x = user;
	struct consan *c = x->c;
	const size_t before = c->findings.n;

	(void)control;
	(void)end;
	c->opt.seed = seed;
	c->opt.explore = 0;
	c->opt.verify_fixes = OPT_VERIFY_FIXES_NO;
	c->progress = NULL;
	session_mute(c);
	x->run(x->user);
	for (size_t i = before; i < c->findings.n; i++) {
		struct finding *f = &c->findings.at[i]->f;

		keep_sites(f, x->sites);
		f->seed = seed;
		vec_push(&x->found, f);
	}
	*found = x->found.at;
	return x->found.n;
}

bool consan_explores(const struct consan *c)
{
	return c->opt.explore && !*c->opt.schedule;
}

void consan_explore_order(struct consan *c, void (*run)(void *user), void *user)
{
	const uint64_t mine = c->opt.explore / c->parts + (c->part <= c->opt.explore % c->parts);
	struct ordering order = { .c = c, .run = run, .user = user, .sites = site_count() };
	const struct explorer x = { try_order, &order, session_found, c, c->opt.seed, c->part, c->parts };
	struct explored out = { 0 };

	explore_seeds(&x, mine, &out);
	session_take_explored(c, &out);
	explored_free(&out);
}

bool consan_shares_memory(void)
{
	return explore_shares_memory();
}
