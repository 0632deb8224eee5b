/* explore: see explore.h. Findings are sent through a pipe as they are in memory: both ends
 * are the same program with the same site table. */
#include "explore.h"

#include "libconsan/finding/finding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool put(int fd, const void *at, size_t n)
{
	const char *p = at;

	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

static bool get(int fd, void *at, size_t n)
{
	char *p = at;

	while (n) {
		ssize_t k = read(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

static bool put_history(int fd, const struct history *h)
{
	return !h || (put(fd, h, sizeof *h) && put(fd, h->step, h->nsteps * sizeof *h->step)
		&& put(fd, h->mbarrier, h->nmbarriers * sizeof *h->mbarrier)
		&& put(fd, h->buffer, h->nbuffers * sizeof *h->buffer));
}

/* NULL: the pipe ended early. */
static struct history *get_history(int fd)
{
	struct history *h = base_alloc(sizeof *h);

	if (!get(fd, h, sizeof *h)) {
		free(h);
		return NULL;
	}
	h->references = 0;
	h->step = base_alloc((h->nsteps + 1) * sizeof *h->step);
	h->mbarrier = base_alloc((h->nmbarriers + 1) * sizeof *h->mbarrier);
	h->buffer = base_alloc((h->nbuffers + 1) * sizeof *h->buffer);
	if (get(fd, h->step, h->nsteps * sizeof *h->step)
		&& get(fd, h->mbarrier, h->nmbarriers * sizeof *h->mbarrier)
		&& get(fd, h->buffer, h->nbuffers * sizeof *h->buffer))
		return h;
	history_drop(h);
	return NULL;
}

static bool put_findings(int fd, const struct finding *const *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!put(fd, f[i], sizeof **f)
			|| !put(fd, f[i]->waiter, f[i]->nwaiters * sizeof *f[i]->waiter)
			|| !put_history(fd, f[i]->history))
			return false;
	/* a finding without a rule ends the list */
	return put(fd, &(struct finding){ .rule = RULE_NONE }, sizeof **f);
}

/* False: the copy of the process ended early. */
static bool get_findings(int fd, struct explored *out)
{
	struct finding f;

	while (get(fd, &f, sizeof f)) {
		const bool history = f.history;

		if (f.rule == RULE_NONE)
			return true;
		f.history = NULL;
		f.waiter = f.nwaiters ? base_alloc(f.nwaiters * sizeof *f.waiter) : NULL;
		if (get(fd, f.waiter, f.nwaiters * sizeof *f.waiter)
			&& (!history || (f.history = get_history(fd)))) {
			vec_push(&out->finding, f);
			continue;
		}
		finding_free(&f);
		return false;
	}
	return false;
}

static bool put_steps(int fd, const struct exec_steps *s)
{
	return put(fd, s, sizeof *s) && put(fd, s->step.at, s->step.n * sizeof *s->step.at)
		&& put(fd, s->ready.at, s->ready.n * sizeof *s->ready.at);
}

static bool get_steps(int fd, struct exec_steps *s)
{
	struct exec_steps sent;

	if (!get(fd, &sent, sizeof sent))
		return false;
	s->n = sent.n;
	vec_reserve(&s->step, sent.step.n + 1);
	vec_reserve(&s->ready, sent.ready.n + 1);
	s->step.n = sent.step.n;
	s->ready.n = sent.ready.n;
	return get(fd, s->step.at, s->step.n * sizeof *s->step.at)
		&& get(fd, s->ready.at, s->ready.n * sizeof *s->ready.at);
}

bool explore_one(const struct explorer *x, uint64_t seed, struct exec_control *control,
	struct explored *out)
{
	struct exec_steps *steps = control ? control->steps : NULL;
	const struct finding *const *found;
	bool ok;
	int fd[2];
	pid_t pid;

	if (pipe(fd)) {
		out->lost++;
		return false;
	}
	pid = fork();
	if (!pid) {
		size_t count;

		close(fd[0]);
		count = x->run(x->user, seed, control, &found);
		/* without exit handlers of the program, and without flushing its streams twice */
		_exit(!put_findings(fd[1], found, count) || (steps && !put_steps(fd[1], steps)));
	}
	close(fd[1]);
	ok = pid > 0 && get_findings(fd[0], out) && (!steps || get_steps(fd[0], steps));
	out->lost += !ok;
	close(fd[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return ok;
}

void explore_seeds(const struct explorer *x, uint64_t n, struct explored *out)
{
	for (uint64_t k = 1; k <= n; k++)
		explore_one(x, x->seed + k, NULL, out);
	out->seeds += n;
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
