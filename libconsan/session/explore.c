/* explore: see explore.h. Findings are sent through a pipe as they are in memory: both ends
 * are the same program with the same site table. */
#include "explore.h"

#include "copy.h"

#include "libconsan/finding/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool put_history(int fd, const struct history *h)
{
	return !h || (copy_put(fd, h, sizeof *h) && copy_put(fd, h->step, h->nsteps * sizeof *h->step)
		&& copy_put(fd, h->mbarrier, h->nmbarriers * sizeof *h->mbarrier)
		&& copy_put(fd, h->buffer, h->nbuffers * sizeof *h->buffer));
}

/* NULL: the pipe ended early. */
static struct history *get_history(int fd)
{
	struct history *h = base_alloc(sizeof *h);

	if (!copy_get(fd, h, sizeof *h, 0)) {
		free(h);
		return NULL;
	}
	h->references = 0;
	h->step = base_alloc((h->nsteps + 1) * sizeof *h->step);
	h->mbarrier = base_alloc((h->nmbarriers + 1) * sizeof *h->mbarrier);
	h->buffer = base_alloc((h->nbuffers + 1) * sizeof *h->buffer);
	if (copy_get(fd, h->step, h->nsteps * sizeof *h->step, 0)
		&& copy_get(fd, h->mbarrier, h->nmbarriers * sizeof *h->mbarrier, 0)
		&& copy_get(fd, h->buffer, h->nbuffers * sizeof *h->buffer, 0))
		return h;
	history_drop(h);
	return NULL;
}

bool explore_put(int fd, const struct finding *const *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!copy_put(fd, f[i], sizeof **f)
			|| !copy_put(fd, f[i]->waiter, f[i]->nwaiters * sizeof *f[i]->waiter)
			|| !put_history(fd, f[i]->history))
			return false;
	/* a finding without a rule ends the list */
	return copy_put(fd, &(struct finding){ .rule = RULE_NONE }, sizeof **f);
}

/* Many schedules have the same findings. Takes ownership of *f. */
static void keep(struct explored *out, struct finding *f)
{
	for (size_t i = 0; i < out->finding.n; i++)
		if (finding_same(&out->finding.at[i], f)) {
			finding_free(f);
			return;
		}
	vec_push(&out->finding, *f);
}

bool explore_get(int fd, struct explored *out)
{
	struct finding f;

	while (copy_get(fd, &f, sizeof f, 0)) {
		const bool history = f.history;

		if (f.rule == RULE_NONE)
			return true;
		f.history = NULL;
		f.waiter = f.nwaiters ? base_alloc(f.nwaiters * sizeof *f.waiter) : NULL;
		if (copy_get(fd, f.waiter, f.nwaiters * sizeof *f.waiter, 0)
			&& (!history || (f.history = get_history(fd)))) {
			keep(out, &f);
			continue;
		}
		finding_free(&f);
		return false;
	}
	return false;
}

static bool put_steps(int fd, const struct exec_steps *s)
{
	return copy_put(fd, s, sizeof *s) && copy_put(fd, s->step.at, s->step.n * sizeof *s->step.at)
		&& copy_put(fd, s->ready.at, s->ready.n * sizeof *s->ready.at);
}

static bool get_steps(int fd, struct exec_steps *s)
{
	struct exec_steps sent;

	if (!copy_get(fd, &sent, sizeof sent, 0))
		return false;
	s->n = sent.n;
	vec_reserve(&s->step, sent.step.n + 1);
	vec_reserve(&s->ready, sent.ready.n + 1);
	s->step.n = sent.step.n;
	s->ready.n = sent.ready.n;
	return copy_get(fd, s->step.at, s->step.n * sizeof *s->step.at, 0)
		&& copy_get(fd, s->ready.at, s->ready.n * sizeof *s->ready.at, 0);
}

/* The last word of a copy, behind all else. */
static bool get_end(int fd, enum explore_end *end)
{
	return copy_get(fd, end, sizeof *end, 0);
}

bool explore_one(const struct explorer *x, uint64_t seed, struct exec_control *control,
	struct explored *out)
{
	struct exec_steps *steps = control ? control->steps : NULL;
	const size_t before = out->finding.n;
	const struct finding *const *found;
	enum explore_end end = EXPLORE_ENDED;
	bool ok;
	int fd[2];
	pid_t pid;

	if (pipe(fd)) {
		out->lost++;
		return false;
	}
	pid = copy_fork();
	if (!pid) {
		size_t count;

		close(fd[0]);
		count = x->run(x->user, seed, control, &found, &end);
		/* without exit handlers of the program, and without flushing its streams twice */
		_exit(!explore_put(fd[1], found, count) || (steps && !put_steps(fd[1], steps))
			|| !copy_put(fd[1], &end, sizeof end));
	}
	close(fd[1]);
	ok = pid > 0 && explore_get(fd[0], out) && (!steps || get_steps(fd[0], steps))
		&& get_end(fd[0], &end);
	for (size_t i = before; x->found && i < out->finding.n; i++)
		x->found(x->taker, &out->finding.at[i]);
	out->lost += !ok;
	out->waited += end != EXPLORE_ENDED;
	out->limited |= end == EXPLORE_LIMIT;
	close(fd[0]);
	if (pid > 0)
		copy_reap(pid);
	return ok && end == EXPLORE_ENDED;
}

void explore_seeds(const struct explorer *x, uint64_t n, struct explored *out)
{
	for (uint64_t k = 0; k < n && !out->limited; k++)
		out->seeds += explore_one(x, x->seed + x->part + k * x->parts, NULL, out);
}

bool explore_shares_memory(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long long from, to;
	struct exec_mem m;
	char line[512], how[8];
	bool shared = !f;

	while (f && !shared && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%llx-%llx %7s", &from, &to, how) != 3 || how[3] != 's')
			continue;
		for (size_t k = 0; exec_mem_at(k, &m) && !shared; k++)
			shared = m.at < to && m.at + m.bytes > from;
	}
	if (f)
		fclose(f);
	return shared;
}

void explored_free(struct explored *x)
{
	for (size_t i = 0; i < x->finding.n; i++)
		finding_free(&x->finding.at[i]);
	vec_free(&x->finding);
}
