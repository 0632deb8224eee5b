/* findings: the findings and the coverage that a session keeps. */
#include "internal.h"

#include "libconsan/finding/finding.h"

#include <stdlib.h>
#include <string.h>

static int by_finding(const void *a, const void *b)
{
	return finding_compare(*(const struct finding *const *)a,
		*(const struct finding *const *)b);
}

size_t session_sort(struct consan *c)
{
	c->sorted.n = 0;
	for (size_t i = 0; i < c->findings.n; i++)
		if (c->findings.at[i]->f.seen)
			vec_push(&c->sorted, &c->findings.at[i]->f);
	if (c->sorted.n)
		qsort(c->sorted.at, c->sorted.n, sizeof *c->sorted.at, by_finding);
	return c->sorted.n;
}

size_t consan_raw_findings(struct consan *c, const struct finding *const **out)
{
	size_t n;

	pthread_mutex_lock(&c->lock);
	n = session_sort(c);
	*out = c->sorted.at;
	pthread_mutex_unlock(&c->lock);
	return n;
}

uint64_t consan_errors_seen(struct consan *c)
{
	uint64_t n = 0;

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->findings.n; i++)
		if (c->findings.at[i]->f.severity == SEV_ERROR && !c->findings.at[i]->suppressed)
			n += c->findings.at[i]->f.seen;
	pthread_mutex_unlock(&c->lock);
	return n;
}

bool consan_halted(struct consan *c, int *exit_status)
{
	if (!c->opt.halt_on_error || !consan_errors(c))
		return false;
	*exit_status = c->opt.error_exitcode ? (int)c->opt.error_exitcode : 1;
	return true;
}

void consan_in_region(struct consan *c, bool inside)
{
	pthread_mutex_lock(&c->launching);
	c->in_region = inside;
	pthread_mutex_unlock(&c->launching);
}

size_t consan_raw_coverage(struct consan *c, const struct coverage **out)
{
	*out = c->coverage.at;
	return c->coverage.n;
}

struct coverage *session_coverage(struct consan *c, const char *kernel)
{
	struct coverage v = { 0 };

	finding_set_kernel(v.kernel, kernel);
	for (size_t i = 0; i < c->coverage.n; i++)
		if (!strcmp(c->coverage.at[i].kernel, v.kernel))
			return &c->coverage.at[i];
	vec_push(&c->coverage, v);
	return &c->coverage.at[c->coverage.n - 1];
}

static void keep_finding(struct consan *c, struct session_finding *s, const struct finding *f)
{
	results_copy_finding(&s->f, f);
	if (!s->f.backends && c->opt.gpu_then_cpu && (c->opt.backend == OPT_BACKEND_GPU
			|| c->opt.backend == OPT_BACKEND_GPU_EMULATED))
		s->f.backends = SEEN_ON_GPU;
	s->suppressed = suppress_match(&c->suppressions, f) < c->suppressions.suppression.n;
}

/* The session's finding that is the same; if there is none, *key is where it belongs. */
static struct session_finding *find_same(const struct consan *c, const struct finding *f,
	uint64_t *key)
{
	const uint32_t a = f->side[0].site, b = f->side[1].site;
	uint64_t i;

	*key = ((uint64_t)f->rule << 50 ^ (uint64_t)(a < b ? a : b) << 26 ^ (a < b ? b : a)) << 1 | 1;
	for (; (i = number_map_get(&c->identity, *key)) != 0; *key += 2)
		if (finding_same(&c->findings.at[i - 1]->f, f))
			return c->findings.at[i - 1];
	return NULL;
}

/* Will a report show notes? */
static bool shows_notes(const struct options *o)
{
	return o->print_level == PRINT_INFO || o->report.n || *o->shard_dir;
}

/* Of findings that reports show as one, the first has the history; notes that none shows have none, as to
 * write and read one takes a millisecond. */
void session_record_finding(struct consan *c, size_t i)
{
	struct finding f = c->findings.at[i]->f;
	const uint64_t hash = results_hash_bug(&f) | 1, first = number_map_get(&c->bug, hash);

	if (!first)
		number_map_put(&c->bug, hash, i + 1);
	else if (first <= i && results_same_bug(&c->findings.at[first - 1]->f, &f))
		f.history = NULL;
	if (f.severity == SEV_NOTE && !shows_notes(&c->opt))
		f.history = NULL;
	results_finding(c->records, (uint32_t)i + 1, &f);
}

/* The session's copy of a launch's finding, updated and recorded. */
static void take_finding(struct consan *c, const struct finding *f, bool launch_over)
{
	struct session_finding *s;
	uint64_t key;
	bool first;

	pthread_mutex_lock(&c->lock);
	s = find_same(c, f, &key);
	if (!s) {
		s = base_alloc(sizeof *s);
		keep_finding(c, s, f);
		s->index = c->findings.n;
		vec_push(&c->findings, s);
		number_map_put(&c->identity, key, c->findings.n);
		if (!s->suppressed)
			progress_finding(c->progress);
	}
	first = !s->before && launch_over;
	if (first) { /* a copy made during the launch depends on the timing of threads */
		finding_free(&s->f);
		keep_finding(c, s, f);
		if (!s->f.history)
			s->f.history = recorders_history(c->recorders, &s->f);
		if (c->stack && !s->f.host && !s->f.side[0].host && !*s->f.side[0].actor)
			s->f.host = c->stack();
	}
	s->f.seen = s->before + f->seen;
	s->f.clusters = s->clusters_before + f->clusters;
	if (launch_over) {
		s->before = s->f.seen;
		s->clusters_before = s->f.clusters;
	}
	/* Written again only when the count has doubled: a bug may occur in each of many launches.
	 * consan_close() writes the final count. */
	if (first || s->f.seen >= 2 * s->recorded) {
		session_record_finding(c, s->index);
		s->recorded = s->f.seen;
	}
	pthread_mutex_unlock(&c->lock);
}

void session_take(struct consan *c, const struct finding *f)
{
	take_finding(c, f, true);
}

void session_found(void *user, const struct finding *f)
{
	take_finding(user, f, false);
}

/* The sites of the executor's module are others than those of the instrumented one, in the same places. */
void session_take_replayed(struct consan *c, struct explored *x)
{
	for (size_t k = 0; k < x->finding.n; k++) {
		struct finding *f = &x->finding.at[k];
		bool known = false;

		f->backends = SEEN_IN_REPLAY;
		pthread_mutex_lock(&c->lock);
		for (size_t i = 0; i < c->findings.n && !known; i++) {
			struct finding *have = &c->findings.at[i]->f;

			known = have->seen && results_same_bug(have, f);
			if (!known || have->backends & SEEN_IN_REPLAY)
				continue;
			have->backends |= SEEN_IN_REPLAY;
			session_record_finding(c, i);
		}
		pthread_mutex_unlock(&c->lock);
		if (!known)
			session_take(c, f);
	}
}
