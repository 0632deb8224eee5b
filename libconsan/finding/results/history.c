/* history: converts a history (history.h) to JSON and back. Steps refer to sites by number: in a
 * file of records by that of the session, else by their index in the history's "sites". Fields
 * that are 0 are left out. */
#include "libconsan/finding/history.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

/* Limits for reading a file; further elements are ignored. Recorders write fewer: for the rows of a file that
 * are small, memory stays in proportion, and so does the time of what compares all buffers. */
#define MAX_STEPS 200000u
#define MAX_MBARRIERS 512u
#define MAX_BUFFERS 256u

static const char *const buffer_kind[] = {
	[BUFFER_VARIABLE] = "variable", [BUFFER_DYNAMIC] = "dynamic", [BUFFER_STAGE] = "stage",
	[BUFFER_COLUMNS] = "columns",
};

static void put(json_t *o, const char *key, uint64_t n)
{
	if (n)
		json_object_set_new(o, key, json_integer((json_int_t)n));
}

/* ---- writing ---- */

struct numbering {
	struct rj_sites *t;     /* or NULL */
	json_t *sites;          /* not in a file of records: those that were needed so far */
	uint32_t *ids;          /* and their ids */
};

static json_t *site_number(struct numbering *by, uint32_t site)
{
	const size_t n = json_array_size(by->sites);
	size_t i = 0;

	if (by->t && !by->t->whole)
		return rj_from_site(by->t, site);
	while (i < n && by->ids[i] != site)
		i++;
	if (i == n) {
		by->ids[n] = site;
		json_array_append_new(by->sites, rj_from_site(by->t, site));
	}
	return json_integer((json_int_t)i);
}

static json_t *from_step(const struct history_step *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "do", json_string(step_id((enum step_kind)s->kind)));
	put(o, "at", s->at);
	put(o, "cta", s->cta);
	if (s->warp == HISTORY_OTHERS)
		json_object_set_new(o, "others", json_true());
	else
		put(o, "warp", s->warp);
	put(o, "lanes", s->lanes);
	put(o, "peer", s->peer);
	put(o, "addr", s->addr);
	put(o, "bytes", s->bytes);
	put(o, "count", s->count);
	put(o, "tx", (uint64_t)s->tx);
	put(o, "op", s->op);
	put(o, "phase", s->phase);
	put(o, "repeat", s->repeat);
	if (s->completes)
		json_object_set_new(o, "completes", json_true());
	return o;
}

static json_t *from_mbarrier(const struct history_mbarrier *m)
{
	json_t *o = json_object(), *phases = json_array(), *arrived;
	const uint64_t first = m->phase < HISTORY_PHASES ? 0 : m->phase - HISTORY_PHASES + 1;

	json_object_set_new(o, "name", rj_string(m->name));
	put(o, "peer", m->peer);
	put(o, "addr", m->addr);
	put(o, "count", m->count);
	put(o, "pending", m->pending);
	put(o, "tx", (uint64_t)m->tx);
	put(o, "phase", m->phase);
	if (m->live)
		json_object_set_new(o, "live", json_true());
	for (uint64_t k = first; k <= m->phase; k++) {
		const struct history_phase *p = &m->recent[k % HISTORY_PHASES];
		json_t *row;

		if (p->phase != k)
			continue;
		row = json_object();
		put(row, "phase", k);
		put(row, "arrivals", p->arrivals);
		if (p->commits) {
			put(row, "commits", p->commits);
			put(row, "committers", p->committers);
		}
		put(row, "expected", (uint64_t)p->expected);
		put(row, "landed", (uint64_t)p->completed);
		json_array_append_new(phases, row);
	}
	json_object_set_new(o, "phases", phases);
	if (!m->narrivers)
		return o;
	arrived = json_array();
	for (uint32_t i = 0; i < m->narrivers; i++)
		json_array_append_new(arrived, json_pack("[ii]", m->arriver[i].cta,
			m->arriver[i].warp));
	json_object_set_new(o, "arrived", arrived);
	return o;
}

static json_t *from_buffer(const struct history_buffer *b, struct numbering *by)
{
	json_t *o = json_object();

	json_object_set_new(o, "kind", json_string(buffer_kind[b->kind]));
	if (*b->name)
		json_object_set_new(o, "name", rj_string(b->name));
	put(o, "addr", b->addr);
	put(o, "bytes", b->bytes);
	put(o, "peer", b->peer);
	if (b->site)
		json_object_set_new(o, "site", site_number(by, b->site));
	return o;
}

json_t *rj_from_history(const struct history *h, struct rj_sites *t)
{
	json_t *o = json_object(), *steps = json_array();
	json_t *mbarriers = json_array(), *buffers = json_array();
	const bool numbered = t && !t->whole;
	struct numbering by = { t, numbered ? NULL : json_array(),
		base_alloc((h->nsteps + h->nbuffers + 1) * sizeof *by.ids) };

	put(o, "before", h->before);
	put(o, "shared", h->shared);
	put(o, "other", h->other);
	json_object_set_new(o, "sides", json_pack("[ii]", (int)h->side[0], (int)h->side[1]));
	for (uint32_t i = 0; i < h->nsteps; i++) {
		json_t *s = from_step(&h->step[i]);

		if (h->step[i].site)
			json_object_set_new(s, "site", site_number(&by, h->step[i].site));
		json_array_append_new(steps, s);
	}
	for (uint32_t i = 0; i < h->nmbarriers; i++)
		json_array_append_new(mbarriers, from_mbarrier(&h->mbarrier[i]));
	for (uint32_t i = 0; i < h->nbuffers; i++)
		json_array_append_new(buffers, from_buffer(&h->buffer[i], &by));
	if (!numbered)
		json_object_set_new(o, "sites", by.sites);
	json_object_set_new(o, "steps", steps);
	json_object_set_new(o, "mbarriers", mbarriers);
	json_object_set_new(o, "buffers", buffers);
	free(by.ids);
	return o;
}

/* ---- reading ---- */

struct sites {
	const struct rj_known *k; /* of a file of records, or NULL */
	uint32_t *id;
	size_t n;
};

static uint32_t site_of(const struct sites *sites, const json_t *o)
{
	const json_t *j = json_object_get(o, "site");
	const uint64_t i = (uint64_t)json_integer_value(j);

	if (sites->k)
		return rj_site(j, sites->k);
	return j && i < sites->n ? sites->id[i] : 0;
}

static size_t rows(const json_t *array, size_t max)
{
	const size_t n = json_array_size(array);

	return n < max ? n : max;
}

static enum step_kind step_by_id(const char *id)
{
	enum step_kind k = 0;

	while (k < STEP_COUNT && strcmp(step_id(k), id))
		k++;
	return k;
}

static void get_step(const json_t *o, const struct sites *sites, struct history_step *s)
{
	*s = (struct history_step){
		.at = rj_number(o, "at"), .phase = rj_number(o, "phase"),
		.tx = (int64_t)rj_number(o, "tx"), .site = site_of(sites, o),
		.lanes = (uint32_t)rj_number(o, "lanes"), .count = (uint32_t)rj_number(o, "count"),
		.op = (uint32_t)rj_number(o, "op"), .addr = (uint32_t)rj_number(o, "addr"),
		.bytes = (uint32_t)rj_number(o, "bytes"),
		.repeat = (uint32_t)rj_number(o, "repeat"),
		.cta = (uint16_t)rj_number(o, "cta"), .peer = (uint16_t)rj_number(o, "peer"),
		.warp = json_is_true(json_object_get(o, "others")) ? HISTORY_OTHERS
			: (uint16_t)rj_number(o, "warp"),
		.kind = (uint8_t)step_by_id(rj_text(o, "do")),
		.completes = json_is_true(json_object_get(o, "completes")),
	};
}

static void get_mbarrier(const json_t *o, struct history_mbarrier *m)
{
	const json_t *phases = json_object_get(o, "phases");
	const json_t *arrived = json_object_get(o, "arrived");

	*m = (struct history_mbarrier){
		.peer = (uint16_t)rj_number(o, "peer"), .addr = (uint32_t)rj_number(o, "addr"),
		.count = (uint32_t)rj_number(o, "count"),
		.pending = (uint32_t)rj_number(o, "pending"), .tx = (int64_t)rj_number(o, "tx"),
		.phase = rj_number(o, "phase"), .live = json_is_true(json_object_get(o, "live")),
	};
	snprintf(m->name, sizeof m->name, "%s", rj_text(o, "name"));
	for (size_t i = 0; i < rows(phases, HISTORY_PHASES); i++) {
		const json_t *p = json_array_get(phases, i);
		const uint64_t k = rj_number(p, "phase");

		m->recent[k % HISTORY_PHASES] = (struct history_phase){
			.phase = k, .arrivals = (uint32_t)rj_number(p, "arrivals"),
			.commits = (uint32_t)rj_number(p, "commits"),
			.committers = (uint16_t)rj_number(p, "committers"),
			.expected = (int64_t)rj_number(p, "expected"),
			.completed = (int64_t)rj_number(p, "landed"),
		};
	}
	for (size_t i = 0; i < rows(arrived, HISTORY_ARRIVERS); i++) {
		const json_t *by = json_array_get(arrived, i);

		m->arriver[m->narrivers++] = (struct history_arriver){
			(uint16_t)json_integer_value(json_array_get(by, 0)),
			(uint16_t)json_integer_value(json_array_get(by, 1)),
		};
	}
}

static void get_buffer(const json_t *o, const struct sites *sites, struct history_buffer *b)
{
	*b = (struct history_buffer){
		.addr = (uint32_t)rj_number(o, "addr"), .bytes = (uint32_t)rj_number(o, "bytes"),
		.peer = (uint16_t)rj_number(o, "peer"), .site = site_of(sites, o),
	};
	for (size_t k = 0; k < ARRAY_SIZE(buffer_kind); k++)
		if (!strcmp(buffer_kind[k], rj_text(o, "kind")))
			b->kind = (uint8_t)k;
	snprintf(b->name, sizeof b->name, "%s", rj_text(o, "name"));
}

struct history *rj_history(const json_t *o, const struct rj_known *k)
{
	const json_t *steps = json_object_get(o, "steps"), *sides = json_object_get(o, "sides");
	const json_t *mbarriers = json_object_get(o, "mbarriers");
	const json_t *buffers = json_object_get(o, "buffers"), *at = json_object_get(o, "sites");
	struct sites sites = { .k = at ? NULL : k, .n = json_array_size(at) };
	struct history *h;

	if (!json_is_object(o))
		return NULL;
	h = base_alloc(sizeof *h);
	sites.id = base_alloc((sites.n + 1) * sizeof *sites.id);
	for (size_t i = 0; i < sites.n; i++)
		sites.id[i] = rj_site(json_array_get(at, i), k);
	h->before = rj_number(o, "before");
	h->shared = (uint32_t)rj_number(o, "shared");
	h->other = (uint16_t)rj_number(o, "other");
	h->step = base_alloc((rows(steps, MAX_STEPS) + 1) * sizeof *h->step);
	for (size_t i = 0; i < rows(steps, MAX_STEPS); i++) {
		get_step(json_array_get(steps, i), &sites, &h->step[h->nsteps]);
		/* steps of an unknown kind are skipped */
		h->nsteps += h->step[h->nsteps].kind < STEP_COUNT;
	}
	for (unsigned i = 0; i < FINDING_SIDES; i++) {
		const json_t *j = json_array_get(sides, i);
		const json_int_t at_step = json_integer_value(j);

		h->side[i] = j && at_step >= 0 && at_step < (json_int_t)h->nsteps
			? (int32_t)at_step : -1;
	}
	h->mbarrier = base_alloc((rows(mbarriers, MAX_MBARRIERS) + 1) * sizeof *h->mbarrier);
	for (size_t i = 0; i < rows(mbarriers, MAX_MBARRIERS); i++)
		get_mbarrier(json_array_get(mbarriers, i), &h->mbarrier[h->nmbarriers++]);
	h->buffer = base_alloc((rows(buffers, MAX_BUFFERS) + 1) * sizeof *h->buffer);
	for (size_t i = 0; i < rows(buffers, MAX_BUFFERS); i++)
		get_buffer(json_array_get(buffers, i), &sites, &h->buffer[h->nbuffers++]);
	free(sites.id);
	return h;
}
