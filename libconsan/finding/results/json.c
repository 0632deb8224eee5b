/* json: see json.h. */
#include "json.h"

#include "libconsan/event/event.h"
#include "libconsan/finding/edit.h"

#include <stdlib.h>
#include <string.h>

const char *const rj_state_name[3] = {
	[LAUNCH_RUNNING] = "running", [LAUNCH_DONE] = "done",
	[LAUNCH_ENDED_EARLY] = "ended early",
};

const char *const rj_remark_name[RESULT_REMARK_COUNT] = {
#define X(id) #id,
	RESULT_REMARKS(X)
#undef X
};

/* ---- small pieces ---- */

json_t *rj_string(const char *s)
{
	json_t *j = json_string(s);
	char *copy;

	if (j || !s)
		return j ? j : json_string("");
	copy = base_strdup(s);
	for (char *c = copy; *c; c++)
		if (*c & 0x80)
			*c = '?';
	j = json_string(copy);
	free(copy);
	return j;
}

json_t *rj_visible(json_t *j)
{
	struct text shown = { 0 };
	const char *key;
	json_t *of;
	size_t i;

	if (json_is_object(j)) {
		json_object_foreach(j, key, of)
			rj_visible(of);
	} else if (json_is_array(j)) {
		json_array_foreach(j, i, of)
			rj_visible(of);
	} else if (json_is_string(j) && !visible_is(json_string_value(j), json_string_length(j))) {
		visible_add(&shown, json_string_value(j), json_string_length(j));
		json_string_set(j, shown.at);
		text_free(&shown);
	}
	return j;
}

uint64_t rj_number(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

const char *rj_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

void rj_triple(const json_t *o, const char *key, uint32_t to[3])
{
	const json_t *a = json_object_get(o, key);

	for (size_t i = 0; i < 3; i++)
		to[i] = (uint32_t)json_integer_value(json_array_get(a, i));
}

json_t *rj_from_triple(const uint32_t at[3])
{
	return json_pack("[III]", (json_int_t)at[0], (json_int_t)at[1], (json_int_t)at[2]);
}

void rj_put_text(json_t *o, const char *key, const char *s)
{
	if (s && *s)
		json_object_set_new(o, key, rj_string(s));
}

void rj_put_number(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer((json_int_t)n));
}

static void get_text(const json_t *o, const char *key, char *to, size_t n)
{
	snprintf(to, n, "%s", rj_text(o, key));
}

/* ---- findings ---- */

static const char *const space_name[] = {
	[SP_ANY] = "", [SP_SHARED] = "shared", [SP_GLOBAL] = "global",
	[SP_LOCAL] = "local", [SP_CONST] = "const", [SP_PARAM] = "param",
	[SP_TMEM] = "tmem",
};

static json_t *from_side(const struct finding_side *s, struct rj_sites *t)
{
	json_t *o = json_object();

	rj_put_text(o, "what", s->what);
	json_object_set_new(o, "site", rj_from_site(t, s->site));
	if (s->host)
		json_object_set_new(o, "host", json_true());
	rj_put_text(o, "actor", s->actor);
	rj_put_text(o, "api", s->api);
	if (s->call)
		json_object_set_new(o, "call", rj_from_site(t, s->call));
	json_object_set_new(o, "block", rj_from_triple(s->ctaid));
	rj_put_number(o, "cta", s->cta);
	rj_put_number(o, "warp", s->warp);
	json_object_set_new(o, "lane", json_integer(s->lane));
	if (s->lane >= 0)
		json_object_set_new(o, "thread", rj_from_triple(s->thread));
	if (!s->bytes)
		return o;
	rj_put_text(o, "space", s->space < ARRAY_SIZE(space_name) ? space_name[s->space] : "");
	rj_put_number(o, "peer", s->peer);
	rj_put_number(o, "addr", s->addr);
	rj_put_number(o, "bytes", s->bytes);
	rj_put_text(o, "variable", s->variable);
	if (s->cells.columns)
		json_object_set_new(o, "cells", json_pack("{si si s[IIII]}", "column", s->cells.column,
			"columns", s->cells.columns, "lanes", (json_int_t)s->cells.lanes[0],
			(json_int_t)s->cells.lanes[1], (json_int_t)s->cells.lanes[2],
			(json_int_t)s->cells.lanes[3]));
	if (s->buffer_bytes)
		json_object_set_new(o, "buffer", json_pack("{sI sI}", "addr", (json_int_t)s->buffer,
			"bytes", (json_int_t)s->buffer_bytes));
	return o;
}

static void get_cells(const json_t *o, struct finding_cells *c)
{
	const json_t *lanes = json_object_get(o, "lanes");

	c->column = (uint16_t)rj_number(o, "column");
	c->columns = (uint16_t)rj_number(o, "columns");
	for (size_t k = 0; k < ARRAY_SIZE(c->lanes); k++)
		c->lanes[k] = (uint32_t)json_integer_value(json_array_get(lanes, k));
}

static void get_side(const json_t *o, const struct rj_known *k, struct finding_side *s)
{
	get_text(o, "what", s->what, sizeof s->what);
	s->site = rj_site(json_object_get(o, "site"), k);
	s->host = json_is_true(json_object_get(o, "host"));
	get_text(o, "actor", s->actor, sizeof s->actor);
	get_text(o, "api", s->api, sizeof s->api);
	s->call = json_object_get(o, "call") ? rj_site(json_object_get(o, "call"), k) : 0;
	rj_triple(o, "block", s->ctaid);
	s->cta = (uint16_t)rj_number(o, "cta");
	s->warp = (uint16_t)rj_number(o, "warp");
	s->lane = json_object_get(o, "lane") ? (int16_t)rj_number(o, "lane") : -1;
	rj_triple(o, "thread", s->thread);
	for (size_t i = 0; i < ARRAY_SIZE(space_name); i++)
		if (!strcmp(space_name[i], rj_text(o, "space")))
			s->space = (uint8_t)i;
	s->peer = (uint16_t)rj_number(o, "peer");
	s->addr = rj_number(o, "addr");
	s->bytes = (uint32_t)rj_number(o, "bytes");
	get_text(o, "variable", s->variable, sizeof s->variable);
	get_cells(json_object_get(o, "cells"), &s->cells);
	s->buffer = rj_number(json_object_get(o, "buffer"), "addr");
	s->buffer_bytes = rj_number(json_object_get(o, "buffer"), "bytes");
}

static json_t *from_barrier(const struct finding_barrier *b)
{
	json_t *o = json_object();

	rj_put_text(o, "kind", b->kind);
	rj_put_text(o, "name", b->name);
	rj_put_number(o, "peer", b->peer);
	rj_put_number(o, "addr", b->addr);
	rj_put_number(o, "phase", b->phase);
	rj_put_number(o, "expected", b->expected);
	rj_put_number(o, "pending", b->pending);
	rj_put_number(o, "tx", (uint64_t)b->tx);
	return o;
}

static void get_barrier(const json_t *o, struct finding_barrier *b)
{
	get_text(o, "kind", b->kind, sizeof b->kind);
	get_text(o, "name", b->name, sizeof b->name);
	b->peer = (uint16_t)rj_number(o, "peer");
	b->addr = rj_number(o, "addr");
	b->phase = rj_number(o, "phase");
	b->expected = (uint32_t)rj_number(o, "expected");
	b->pending = (uint32_t)rj_number(o, "pending");
	b->tx = (int64_t)rj_number(o, "tx");
}

static json_t *from_edit(const struct finding_edit *e, struct rj_sites *t)
{
	json_t *o = json_object();
	char cuda[64];

	rj_put_text(o, "kind", edit_name(e->kind));
	json_object_set_new(o, "site", rj_from_site(t, e->site));
	if (e->until)
		json_object_set_new(o, "until", rj_from_site(t, e->until));
	rj_put_text(o, "ptx", e->ptx);
	rj_put_text(o, "cuda", edit_cuda(e->ptx, cuda, sizeof cuda));
	rj_put_text(o, "verified", edit_verified_name(e->verified));
	rj_put_text(o, "what", *e->ptx ? e->words : e->form);
	if (e->untried)
		rj_put_text(o, "untried", edit_untried_name(e->untried));
	if (e->left)
		rj_put_number(o, "left", e->left);
	if (e->others)
		rj_put_number(o, "others", e->others);
	if (e->copies)
		rj_put_number(o, "copies", e->copies);
	return o;
}

static void get_edit(const json_t *o, const struct rj_known *k, struct finding_edit *e)
{
	e->kind = (uint8_t)edit_by_name(rj_text(o, "kind"));
	e->site = rj_site(json_object_get(o, "site"), k);
	e->until = rj_site(json_object_get(o, "until"), k);
	e->verified = (uint8_t)edit_verified_by_name(rj_text(o, "verified"));
	e->untried = (uint8_t)edit_untried_by_name(rj_text(o, "untried"));
	e->left = (uint32_t)rj_number(o, "left");
	e->others = (uint32_t)rj_number(o, "others");
	e->copies = (uint32_t)rj_number(o, "copies");
	get_text(o, "ptx", e->ptx, sizeof e->ptx);
	if (*e->ptx)
		get_text(o, "what", e->words, sizeof e->words);
	else
		get_text(o, "what", e->form, sizeof e->form);
}

/* The rows of finding.timeline */
static json_t *from_timeline(const char *rows)
{
	char *text = base_strdup(rows), *rest = text, *row;
	json_t *a = json_array();

	while ((row = strsep(&rest, "\n")) && *row) {
		json_t *o = json_object();

		rj_put_text(o, "line", strsep(&row, "\t"));
		rj_put_text(o, "mark", strsep(&row, "\t"));
		rj_put_text(o, "call", row);
		json_array_append_new(a, o);
	}
	free(text);
	return a;
}

/* As many rows as there is room for. */
static void get_timeline(const json_t *a, char *to, size_t room)
{
	const json_t *o;
	size_t i;

	json_array_foreach(a, i, o) {
		const int n = snprintf(to, room, "%s\t%s\t%s\n", rj_text(o, "line"), rj_text(o, "mark"),
			rj_text(o, "call"));

		if (n < 0 || (size_t)n >= room)
			break;
		to += n;
		room -= (size_t)n;
	}
	*to = 0;
}

static const char *const severity_name[] = {
	[SEV_NOTE] = "note", [SEV_WARNING] = "warning", [SEV_ERROR] = "error",
};

json_t *rj_from_finding(const struct finding *f, struct rj_sites *t)
{
	json_t *o = json_object(), *sides = json_array(), *waiters, *edit;

	rj_put_text(o, "rule", rule_get(f->rule)->code);
	rj_put_text(o, "severity", severity_name[f->severity]);
	rj_put_text(o, "kernel", f->kernel);
	rj_put_number(o, "group", f->group);
	rj_put_number(o, "rank", f->rank);
	rj_put_number(o, "launch", f->launch);
	rj_put_number(o, "order", f->order);
	for (unsigned i = 0; i < f->nsides && i < FINDING_SIDES; i++)
		json_array_append_new(sides, from_side(&f->side[i], t));
	json_object_set_new(o, "sides", sides);
	if (*f->barrier.kind)
		json_object_set_new(o, "barrier", from_barrier(&f->barrier));
	if (*f->timeline)
		json_object_set_new(o, "timeline", from_timeline(f->timeline));
	rj_put_text(o, "edge", f->edge);
	rj_put_text(o, "hint_id", hint_name(f->hint_id));
	rj_put_text(o, "hint", f->hint);
	if (f->edit.kind != EDIT_NONE) {
		json_object_set_new(o, "edit", edit = from_edit(&f->edit, t));
		if (f->also.kind != EDIT_NONE)
			json_object_set_new(edit, "also", from_edit(&f->also, t));
	}
	if (f->nwaiters) {
		waiters = json_array();
		for (unsigned i = 0; i < f->nwaiters; i++) {
			json_t *w = json_object();

			json_object_set_new(w, "who", from_side(&f->waiter[i].who, t));
			json_object_set_new(w, "on", from_barrier(&f->waiter[i].on));
			rj_put_text(w, "text", f->waiter[i].text);
			json_array_append_new(waiters, w);
		}
		json_object_set_new(o, "waiters", waiters);
	}
	if (f->history)
		json_object_set_new(o, "history", rj_from_history(f->history, t));
	if (f->folded)
		rj_put_number(o, "folded", f->folded);
	rj_put_number(o, "seen", f->seen);
	rj_put_number(o, "clusters", f->clusters);
	rj_put_number(o, "seed", f->seed);
	if (f->host)
		json_object_set_new(o, "host", rj_from_site(t, f->host));
	if (*f->schedule)
		rj_put_text(o, "schedule", f->schedule);
	if (f->reads)
		rj_put_text(o, "reads", finding_reads(f));
	if (f->backends)
		rj_put_number(o, "backends", f->backends);
	return o;
}

static bool is_waiter(const json_t *w)
{
	return json_is_object(json_object_get(w, "who")) && json_is_object(json_object_get(w, "on"));
}

#define MAX_WAITERS 16384u /* the threads of a cluster; further ones are ignored */

/* They are large: what lacks their parts takes no memory. */
static void get_waiters(const json_t *waiters, const struct rj_known *k, struct finding *f)
{
	unsigned n = 0;
	const json_t *w;
	size_t i;

	json_array_foreach(waiters, i, w)
		n += is_waiter(w) && n < MAX_WAITERS;
	if (n)
		f->waiter = base_alloc(n * sizeof *f->waiter);
	json_array_foreach(waiters, i, w) {
		struct finding_waiter *to;

		if (!is_waiter(w) || f->nwaiters == n)
			continue;
		to = &f->waiter[f->nwaiters++];
		get_side(json_object_get(w, "who"), k, &to->who);
		get_barrier(json_object_get(w, "on"), &to->on);
		get_text(w, "text", to->text, sizeof to->text);
	}
}

bool rj_finding(const json_t *o, const struct rj_known *k, struct finding *f)
{
	const json_t *sides = json_object_get(o, "sides");
	const json_t *waiters = json_object_get(o, "waiters");
	const uint64_t clusters = rj_number(o, "clusters"); /* of coverage it has 64 bits */

	*f = (struct finding){ .rule = rule_by_code(rj_text(o, "rule")) };
	if (f->rule == RULE_NONE)
		return false;
	f->severity = rule_get(f->rule)->severity;
	for (size_t i = 0; i < ARRAY_SIZE(severity_name); i++)
		if (!strcmp(severity_name[i], rj_text(o, "severity")))
			f->severity = (enum severity)i;
	get_text(o, "kernel", f->kernel, sizeof f->kernel);
	f->launch = (uint32_t)rj_number(o, "launch");
	f->order = rj_number(o, "order");
	f->nsides = json_array_size(sides) < FINDING_SIDES
		? (unsigned)json_array_size(sides) : FINDING_SIDES;
	for (unsigned i = 0; i < f->nsides; i++)
		get_side(json_array_get(sides, i), k, &f->side[i]);
	get_barrier(json_object_get(o, "barrier"), &f->barrier);
	get_timeline(json_object_get(o, "timeline"), f->timeline, sizeof f->timeline);
	get_text(o, "edge", f->edge, sizeof f->edge);
	f->hint_id = (uint16_t)hint_by_name(rj_text(o, "hint_id"));
	get_text(o, "hint", f->hint, sizeof f->hint);
	get_edit(json_object_get(o, "edit"), k, &f->edit);
	get_edit(json_object_get(json_object_get(o, "edit"), "also"), k, &f->also);
	get_waiters(waiters, k, f);
	f->history = rj_history(json_object_get(o, "history"), k);
	f->folded = (unsigned)rj_number(o, "folded");
	f->seen = rj_number(o, "seen");
	f->clusters = clusters < UINT32_MAX ? (uint32_t)clusters : UINT32_MAX;
	f->seed = rj_number(o, "seed");
	f->host = rj_site(json_object_get(o, "host"), k);
	get_text(o, "schedule", f->schedule, sizeof f->schedule);
	f->backends = (uint8_t)rj_number(o, "backends");
	for (f->reads = 2; f->reads && strcmp(finding_reads(f), rj_text(o, "reads")); f->reads--)
		;
	return true;
}

/* ---- bank conflicts ---- */

json_t *rj_from_bank_use(const struct bank_use *u, struct rj_sites *t)
{
	json_t *o = json_object();

	json_object_set_new(o, "site", rj_from_site(t, u->site));
	rj_put_number(o, "accesses", u->accesses);
	rj_put_number(o, "wavefronts", u->wavefronts);
	rj_put_number(o, "least", u->least);
	rj_put_number(o, "worst", u->worst);
	return o;
}

json_t *results_bank_use_json(const struct bank_use *u)
{
	return rj_from_bank_use(u, NULL);
}

bool rj_bank_use(const json_t *o, const struct rj_known *k, struct bank_use *u)
{
	*u = (struct bank_use){
		.site = rj_site(json_object_get(o, "site"), k),
		.worst = (uint32_t)rj_number(o, "worst"), .accesses = rj_number(o, "accesses"),
		.wavefronts = rj_number(o, "wavefronts"), .least = rj_number(o, "least"),
	};
	if (u->least > u->wavefronts)
		u->least = u->wavefronts;
	return u->accesses > 0;
}

/* ---- coverage ---- */

#define COVERAGE_NUMBERS(X) X(launches) X(checked) X(skipped) X(clusters) X(ctas) \
	X(events) X(dropped) X(sites) X(sites_executed) X(warp_ops) X(gpu_timed) X(gpu_ns) \
	X(explored) X(explored_shards) X(explored_part) X(schedules) X(seeds) \
	X(hidden) X(replayed) X(replay_ctas) X(replayed_ctas)

json_t *results_coverage_json(const struct coverage *c)
{
	json_t *o = json_object();

	json_object_set_new(o, "kernel", rj_string(c->kernel));
#define X(id) rj_put_number(o, #id, c->id);
	COVERAGE_NUMBERS(X)
#undef X
	if (*c->not_replayed)
		rj_put_text(o, "not_replayed", c->not_replayed);
	rj_put_text(o, "unchecked", c->unchecked);
	return o;
}

bool rj_coverage(const json_t *o, struct coverage *c)
{
	*c = (struct coverage){ 0 };
	get_text(o, "kernel", c->kernel, sizeof c->kernel);
#define X(id) c->id = rj_number(o, #id);
	COVERAGE_NUMBERS(X)
#undef X
	get_text(o, "not_replayed", c->not_replayed, sizeof c->not_replayed);
	get_text(o, "unchecked", c->unchecked, sizeof c->unchecked);
	return *c->kernel != 0;
}
