/* results: reads the records of many processes and merges them. */
#include "results.h"

#include "libconsan/event/event.h"
#include "libconsan/finding/group.h"
#include "libconsan/finding/history.h"
#include "json.h"
#include "live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A hash table of indices into a vector. */
struct index {
	struct { uint64_t hash; size_t at; } *slot; /* at: index + 1; 0: empty */
	size_t cap, n;
};

static void index_put(struct index *x, uint64_t hash, size_t at)
{
	struct index old = *x;

	if (2 * (x->n + 1) > x->cap) {
		x->cap = old.cap ? 2 * old.cap : 64;
		x->slot = base_alloc(x->cap * sizeof *x->slot);
		x->n = 0;
		for (size_t i = 0; i < old.cap; i++)
			if (old.slot[i].at)
				index_put(x, old.slot[i].hash, old.slot[i].at - 1);
		free(old.slot);
	}
	for (size_t i = hash;; i++)
		if (!x->slot[i & (x->cap - 1)].at) {
			x->slot[i & (x->cap - 1)].hash = hash;
			x->slot[i & (x->cap - 1)].at = at + 1;
			x->n++;
			return;
		}
}

/* The next element with this hash; SIZE_MAX if there is none. *i is the state of the search, 0 at
 * its start. */
static size_t index_next(const struct index *x, uint64_t hash, size_t *i)
{
	while (x->cap) {
		const size_t k = (hash + (*i)++) & (x->cap - 1);

		if (!x->slot[k].at)
			break;
		if (x->slot[k].hash == hash)
			return x->slot[k].at - 1;
	}
	return SIZE_MAX;
}

static void index_clear(struct index *x)
{
	free(x->slot);
	*x = (struct index){ 0 };
}

static uint64_t mix(uint64_t hash, uint64_t n)
{
	hash = (hash ^ n) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* Records that a later record of the same session may replace. */
struct results_merge {
	struct index record, bug; /* of finding[]; of results.finding[] */
	VEC(struct { int64_t session; uint32_t id; struct finding f; }) finding;
	VEC(struct { int64_t session; struct coverage c; }) coverage;
	VEC(struct { int64_t session; uint32_t id; struct bank_use u; }) bank;
	VEC(int64_t) launch;  /* session of results.launch[i] */
	VEC(int64_t) process; /* session of results.process[i] */
	VEC(struct { int64_t session; struct rj_known known; }) sites;
};

static struct results_merge *merge_of(struct results *r)
{
	if (!r->merge)
		r->merge = base_alloc(sizeof *r->merge);
	return r->merge;
}

/* What the session's earlier records have. Valid until the next call. */
static struct rj_known *known_of(struct results *r, int64_t session)
{
	struct results_merge *m = merge_of(r);

	for (size_t i = m->sites.n; i-- > 0;)
		if (m->sites.at[i].session == session)
			return &m->sites.at[i].known;
	vec_reserve(&m->sites, m->sites.n + 1);
	m->sites.at[m->sites.n].session = session;
	m->sites.at[m->sites.n].known = (struct rj_known){ .site = { .n = 0 } };
	return &m->sites.at[m->sites.n++].known;
}

static void read_process(struct results *r, int64_t session, const json_t *o)
{
	struct results_merge *m = merge_of(r);
	struct result_process p = {
		.pid = (int64_t)rj_number(o, "pid"),
		.program = base_strdup(rj_text(o, "program")),
		.device = base_strdup(rj_text(o, "device")),
	};

	for (size_t i = 0; i < r->process.n; i++) {
		if (m->process.at[i] != session)
			continue;
		free(r->process.at[i].program);
		free(r->process.at[i].device);
		r->process.at[i] = p;
		return;
	}
	vec_push(&m->process, session);
	vec_push(&r->process, p);
}

static void read_launch(struct results *r, int64_t session, const json_t *o)
{
	struct results_merge *m = merge_of(r);
	struct result_launch l = {
		.pid = (int64_t)rj_number(o, "pid"),
		.id = (uint32_t)rj_number(o, "id"),
		.kernel = base_strdup(rj_text(o, "kernel")),
		.seed = rj_number(o, "seed"),
		.status = base_strdup(rj_text(o, "status")),
	};

	for (size_t k = 0; k < ARRAY_SIZE(rj_state_name); k++)
		if (!strcmp(rj_state_name[k], rj_text(o, "state")))
			l.state = (enum launch_state)k;
	rj_triple(o, "grid", l.grid);
	rj_triple(o, "block", l.block);
	rj_triple(o, "cluster", l.cluster);
	for (size_t i = l.state == LAUNCH_RUNNING ? 0 : r->launch.n; i-- > 0;) {
		if (m->launch.at[i] != session || r->launch.at[i].id != l.id)
			continue;
		free(r->launch.at[i].kernel);
		free(r->launch.at[i].status);
		r->launch.at[i] = l;
		return;
	}
	vec_push(&m->launch, session);
	vec_push(&r->launch, l);
}

void results_add_run(struct results *r, struct result_run n)
{
	vec_push(&r->run, n);
}

void results_add_process(struct results *r, struct result_process p)
{
	vec_push(&merge_of(r)->process, 0);
	vec_push(&r->process, p);
}

void results_add_launch(struct results *r, struct result_launch l)
{
	vec_push(&merge_of(r)->launch, 0);
	vec_push(&r->launch, l);
}

static bool read_finding(struct results *r, int64_t session, const json_t *o)
{
	struct results_merge *m = merge_of(r);
	uint32_t id = (uint32_t)rj_number(o, "id");
	const uint64_t hash = mix((uint64_t)session, id);
	size_t step = 0, i;
	struct finding f;

	if (!rj_finding(o, known_of(r, session), &f))
		return false;
	while ((i = index_next(&m->record, hash, &step)) != SIZE_MAX) {
		if (m->finding.at[i].session != session || m->finding.at[i].id != id)
			continue;
		finding_free(&m->finding.at[i].f);
		m->finding.at[i].f = f;
		return true;
	}
	index_put(&m->record, hash, m->finding.n);
	vec_reserve(&m->finding, m->finding.n + 1);
	m->finding.at[m->finding.n].session = session;
	m->finding.at[m->finding.n].id = id;
	m->finding.at[m->finding.n++].f = f;
	return true;
}

static bool read_coverage(struct results *r, int64_t session, const json_t *o)
{
	struct results_merge *m = merge_of(r);
	struct coverage c;

	if (!rj_coverage(o, &c))
		return false;
	for (size_t i = 0; i < m->coverage.n; i++) {
		if (m->coverage.at[i].session != session
				|| strcmp(m->coverage.at[i].c.kernel, c.kernel))
			continue;
		m->coverage.at[i].c = c;
		return true;
	}
	vec_reserve(&m->coverage, m->coverage.n + 1);
	m->coverage.at[m->coverage.n].session = session;
	m->coverage.at[m->coverage.n++].c = c;
	return true;
}

static bool read_bank_use(struct results *r, int64_t session, const json_t *o)
{
	struct results_merge *m = merge_of(r);
	const uint32_t id = (uint32_t)rj_number(o, "id");
	struct bank_use u;

	if (!rj_bank_use(o, known_of(r, session), &u))
		return false;
	for (size_t i = 0; i < m->bank.n; i++) {
		if (m->bank.at[i].session != session || m->bank.at[i].id != id)
			continue;
		m->bank.at[i].u = u;
		return true;
	}
	vec_reserve(&m->bank, m->bank.n + 1);
	m->bank.at[m->bank.n].session = session;
	m->bank.at[m->bank.n].id = id;
	m->bank.at[m->bank.n++].u = u;
	return true;
}

void results_add_remarks(struct results *r, enum result_remark_kind kind, const char *text,
	uint64_t count)
{
	struct result_remark remark = { .kind = kind, .count = count };

	for (size_t i = 0; i < r->remark.n; i++) {
		if (r->remark.at[i].kind == kind && !strcmp(r->remark.at[i].text, text)) {
			results_sum(&r->remark.at[i].count, count);
			return;
		}
	}
	remark.text = base_strdup(text);
	vec_push(&r->remark, remark);
}

void results_add_remark(struct results *r, enum result_remark_kind kind, const char *text)
{
	results_add_remarks(r, kind, text, 1);
}

static void read_remark(struct results *r, const json_t *o)
{
	enum result_remark_kind kind = RESULT_REMARK_note;

	for (size_t k = 0; k < RESULT_REMARK_COUNT; k++)
		if (!strcmp(rj_remark_name[k], rj_text(o, "kind")))
			kind = (enum result_remark_kind)k;
	results_add_remarks(r, kind, rj_text(o, "text"), json_object_get(o, "count") ? rj_number(o, "count") : 1);
}

/* False if the line is not a record. *newer: it is one of a newer version. */
static bool read_line(struct results *r, const char *line, size_t n, bool *newer)
{
	json_t *o = rj_visible(json_loadb(line, n, 0, NULL));
	const char *type = rj_text(o, "type");
	int64_t session = (int64_t)rj_number(o, "session");
	struct text why = { 0 };
	bool ok = json_is_object(o) && rj_number(o, "consan") > 0;

	*newer = ok && rj_number(o, "consan") > RESULTS_VERSION;
	ok = ok && (*newer || rj_numbers(o, &why));
	text_free(&why);
	if (ok && !*newer)
		rj_get_sites(known_of(r, session), o);
	if (!ok || *newer)
		ok = false;
	else if (!strcmp(type, "process"))
		read_process(r, session, o);
	else if (!strcmp(type, "launch"))
		read_launch(r, session, o);
	else if (!strcmp(type, "finding"))
		ok = read_finding(r, session, o);
	else if (!strcmp(type, "coverage"))
		ok = read_coverage(r, session, o);
	else if (!strcmp(type, "banks"))
		ok = read_bank_use(r, session, o);
	else if (!strcmp(type, "remark"))
		read_remark(r, o);
	else
		ok = false;
	json_decref(o);
	return ok;
}

/* What the process left next to its records: it did not end as it should, or the disk was full. */
static void read_live(struct results *r, const char *path)
{
	struct results_merge *m = merge_of(r);
	struct live_left left;
	struct text why = { 0 };

	if (!live_read(path, &left))
		return;
	results_sum(&r->cut, left.lost);
	if (left.waiting) {
		text_printf(&why, "%llu launch%s issued, but had not begun when the process ended",
			(unsigned long long)left.waiting, left.waiting == 1 ? " was" : "es were");
		results_add_remarks(r, RESULT_REMARK_not_seen, why.at, 1);
		text_free(&why);
	}
	for (size_t i = 0; i < r->launch.n; i++)
		for (unsigned k = 0; k < left.n; k++)
			if (m->launch.at[i] == (int64_t)left.session
				&& r->launch.at[i].state == LAUNCH_RUNNING
				&& r->launch.at[i].id == left.launch[k].launch) {
				r->launch.at[i].done = left.launch[k].done;
				r->launch.at[i].whole = left.launch[k].whole;
			}
}

bool results_read(struct results *r, const char *path, struct consan_err *e)
{
	FILE *in = fopen(path, "re");
	size_t cap = 0, good = 0, bad = 0;
	bool newer = false, whole = false; /* the last line is complete */
	char *line = NULL;
	ssize_t n;

	if (!in)
		return err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", path, strerror(errno));
	while (!newer && (n = getline(&line, &cap, in)) > 0) {
		if (read_line(r, line, (size_t)n, &newer))
			good++;
		else
			bad++;
		whole = line[n - 1] == '\n';
	}
	free(line);
	fclose(in);
	if (newer)
		return err_set(e, CONSAN_ERR_FORMAT, 0, 0, "%s: written by a newer consan", path);
	if (bad && !good && whole)
		return err_set(e, CONSAN_ERR_FORMAT, 0, 0, "%s: not a file of consan records", path);
	results_sum(&r->cut, bad + (!good && !bad)); /* each process writes at least a process record */
	read_live(r, path);
	return true;
}

static void map_host(struct finding *f, uint32_t (*map)(void *user, uint32_t site), void *user)
{
	f->host = map(user, f->host);
	for (unsigned i = 0; i < f->nsides; i++) {
		f->side[i].call = map(user, f->side[i].call);
		if (f->side[i].host)
			f->side[i].site = map(user, f->side[i].site);
	}
}

void results_map_hosts(struct results *r, uint32_t (*map)(void *user, uint32_t site), void *user)
{
	struct results_merge *m = merge_of(r);

	for (size_t i = 0; i < m->finding.n; i++)
		map_host(&m->finding.at[i].f, map, user);
}

void results_copy_finding(struct finding *to, const struct finding *from)
{
	*to = *from;
	history_keep(to->history);
	if (!from->nwaiters)
		return;
	to->waiter = base_alloc(from->nwaiters * sizeof *to->waiter);
	memcpy(to->waiter, from->waiter, from->nwaiters * sizeof *to->waiter);
}

/* Locations and names of the site table are interned, so that pointers can be compared. */
static bool same_place(uint32_t a, uint32_t b)
{
	const struct site *s = site_get(a), *t = site_get(b);

	return a == b || (s->loc && s->loc == t->loc && s->kernel == t->kernel);
}

uint64_t results_hash_bug(const struct finding *f)
{
	uint64_t hash = mix((uint64_t)f->rule << 8 | f->severity, f->nsides);

	for (unsigned i = 0; i < f->nsides; i++) {
		const struct site *s = site_get(f->side[i].site);

		hash = mix(hash, s->loc ? (uintptr_t)s->loc : f->side[i].site);
	}
	for (const char *c = f->kernel; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	return hash;
}

bool results_same_bug(const struct finding *a, const struct finding *b)
{
	if (a->rule != b->rule || a->severity != b->severity || a->nsides != b->nsides)
		return false;
	for (unsigned i = 0; i < a->nsides; i++)
		if (!same_place(a->side[i].site, b->side[i].site))
			return false;
	return !strcmp(a->kernel, b->kernel);
}

void results_add_finding(struct results *r, const struct finding *f)
{
	struct index *x = &merge_of(r)->bug;
	const uint64_t hash = results_hash_bug(f);
	struct finding copy;
	size_t step = 0, i;

	if (x->n != r->finding.n) { /* findings were reordered or removed since */
		index_clear(x);
		for (i = 0; i < r->finding.n; i++)
			index_put(x, results_hash_bug(&r->finding.at[i]), i);
	}
	while ((i = index_next(x, hash, &step)) != SIZE_MAX) {
		struct finding *have = &r->finding.at[i];

		if (!results_same_bug(have, f))
			continue;
		results_sum(&have->seen, f->seen);
		have->backends |= f->backends;
		if (finding_same(have, f)) {
			rj_add32(&have->clusters, f->clusters);
		} else {
			rj_add32(&have->folded, 1 + f->folded);
			if (have->clusters < f->clusters)
				have->clusters = f->clusters;
		}
		return;
	}
	results_copy_finding(&copy, f);
	index_put(x, hash, r->finding.n);
	vec_push(&r->finding, copy);
}

void results_add_coverage(struct results *r, const struct coverage *c)
{
	struct coverage *have;

	for (size_t i = 0; i < r->coverage.n; i++) {
		have = &r->coverage.at[i];
		if (strcmp(have->kernel, c->kernel))
			continue;
		results_sum(&have->launches, c->launches);
		results_sum(&have->checked, c->checked);
		results_sum(&have->skipped, c->skipped);
		results_sum(&have->clusters, c->clusters);
		results_sum(&have->ctas, c->ctas);
		results_sum(&have->events, c->events);
		results_sum(&have->dropped, c->dropped);
		results_sum(&have->warp_ops, c->warp_ops);
		results_sum(&have->gpu_timed, c->gpu_timed);
		results_sum(&have->gpu_ns, c->gpu_ns);
		results_sum(&have->explored, c->explored);
		results_sum(&have->explored_shards, c->explored_shards);
		results_sum(&have->explored_part, c->explored_part);
		results_sum(&have->schedules, c->schedules);
		results_sum(&have->seeds, c->seeds);
		have->hidden |= c->hidden;
		results_sum(&have->replayed, c->replayed);
		results_sum(&have->replay_ctas, c->replay_ctas);
		results_sum(&have->replayed_ctas, c->replayed_ctas);
		if (!*have->not_replayed)
			memcpy(have->not_replayed, c->not_replayed, sizeof have->not_replayed);
		if (have->sites < c->sites)
			have->sites = c->sites;
		if (have->sites_executed < c->sites_executed)
			have->sites_executed = c->sites_executed;
		if (!*have->unchecked)
			memcpy(have->unchecked, c->unchecked, sizeof have->unchecked);
		return;
	}
	vec_push(&r->coverage, *c);
}

void results_add_bank_use(struct results *r, const struct bank_use *u)
{
	for (size_t i = 0; i < r->bank.n; i++) {
		struct bank_use *have = &r->bank.at[i];

		if (!same_place(have->site, u->site))
			continue;
		results_sum(&have->accesses, u->accesses);
		results_sum(&have->wavefronts, u->wavefronts);
		results_sum(&have->least, u->least);
		if (have->worst < u->worst)
			have->worst = u->worst;
		return;
	}
	vec_push(&r->bank, *u);
}

/* Counts a launch that began and did not end because its process ended. */
static void add_interrupted(struct results *r, struct result_launch *l)
{
	struct coverage c = { .launches = 1, .clusters = l->done };
	int n;

	l->state = LAUNCH_ENDED_EARLY;
	finding_set_kernel(c.kernel, l->kernel);
	n = snprintf(c.unchecked, sizeof c.unchecked, "launch %u did not finish: its process "
		"ended or was stopped while it ran", l->id);
	if (l->whole && !strcmp(l->status, RESULT_RECORDED))
		snprintf(c.unchecked + n, sizeof c.unchecked - (size_t)n, ": 0 of %llu clusters were checked, as "
			"their records are read when the kernel has ended", (unsigned long long)l->whole);
	else if (l->whole)
		snprintf(c.unchecked + n, sizeof c.unchecked - (size_t)n, ": %llu of %llu clusters ended",
			(unsigned long long)l->done, (unsigned long long)l->whole);
	results_add_coverage(r, &c);
}

static int by_finding(const void *a, const void *b)
{
	return finding_compare(a, b);
}

static int by_conflicts(const void *a, const void *b)
{
	const struct bank_use *u = a, *v = b;
	const uint64_t n = u->wavefronts - u->least, k = v->wavefronts - v->least;

	if (n != k)
		return n < k ? 1 : -1;
	return site_get(u->site)->ptx_line < site_get(v->site)->ptx_line ? -1 : 1;
}

void results_finish(struct results *r)
{
	struct results_merge *m = merge_of(r);

	for (size_t i = 0; i < m->coverage.n; i++)
		results_add_coverage(r, &m->coverage.at[i].c);
	for (size_t i = 0; i < r->launch.n; i++)
		if (r->launch.at[i].state == LAUNCH_RUNNING)
			add_interrupted(r, &r->launch.at[i]);
	for (size_t i = 0; i < m->finding.n; i++) {
		if (m->finding.at[i].f.seen)
			results_add_finding(r, &m->finding.at[i].f);
		finding_free(&m->finding.at[i].f);
	}
	for (size_t i = 0; i < m->bank.n; i++)
		results_add_bank_use(r, &m->bank.at[i].u);
	vec_free(&m->finding);
	vec_free(&m->coverage);
	vec_free(&m->bank);
	index_clear(&m->record);
	index_clear(&m->bug);
	if (r->bank.n)
		qsort(r->bank.at, r->bank.n, sizeof *r->bank.at, by_conflicts);
	if (r->finding.n)
		qsort(r->finding.at, r->finding.n, sizeof *r->finding.at, by_finding);
	group_findings(r->finding.at, r->finding.n);
}

void results_free(struct results *r)
{
	struct results_merge *m = merge_of(r);

	for (size_t i = 0; i < r->run.n; i++) {
		free(r->run.at[i].command);
		free(r->run.at[i].options);
		free(r->run.at[i].version);
		free(r->run.at[i].date);
	}
	for (size_t i = 0; i < r->process.n; i++) {
		free(r->process.at[i].program);
		free(r->process.at[i].device);
	}
	for (size_t i = 0; i < r->launch.n; i++) {
		free(r->launch.at[i].kernel);
		free(r->launch.at[i].status);
	}
	for (size_t i = 0; i < r->finding.n; i++)
		finding_free(&r->finding.at[i]);
	for (size_t i = 0; i < r->suppressed.n; i++)
		finding_free(&r->suppressed.at[i].f);
	for (size_t i = 0; i < r->suppression.n; i++) {
		struct result_suppression *s = &r->suppression.at[i];

		free(s->rule);
		free(s->kernel);
		free(s->source);
		free(s->symbol);
		free(s->reason);
		free(s->where);
	}
	for (size_t i = 0; i < r->remark.n; i++)
		free(r->remark.at[i].text);
	for (size_t i = 0; i < m->finding.n; i++)
		finding_free(&m->finding.at[i].f);
	index_clear(&m->record);
	index_clear(&m->bug);
	for (size_t i = 0; i < m->sites.n; i++)
		rj_known_clear(&m->sites.at[i].known);
	vec_free(&m->sites);
	vec_free(&m->finding);
	vec_free(&m->coverage);
	vec_free(&m->bank);
	vec_free(&m->launch);
	vec_free(&m->process);
	vec_free(&r->run);
	vec_free(&r->process);
	vec_free(&r->launch);
	vec_free(&r->finding);
	vec_free(&r->coverage);
	vec_free(&r->bank);
	vec_free(&r->remark);
	vec_free(&r->suppression);
	vec_free(&r->suppressed);
	free(m);
	r->merge = NULL;
}
