/* perfetto: the histories of the findings as a trace in Perfetto's format, for ui.perfetto.dev.
 *
 * The native format, because its tracks nest (finding, CTA, warp) and have the names and the order
 * that we give them; Chrome's JSON trace knows processes and threads only. A history has an order
 * and no times: each step takes 1 us.
 *
 *   finding           an instant where the checker reported, with cause, fix and hint
 *     CTA
 *       warp          slices: from the begin of a wait to its return; instants: all other steps
 *       TMA, ...      slices: asynchronous operations in flight
 *       mbarrier      slices: phases, from the first arrival to completion; completions of copies
 *
 * Flows lead from arrivals to the waits that they complete, and from the earlier access to the
 * later one. What had not ended at the finding has no end. */
#include "reports/protobuf.h"
#include "reports/reports.h"
#include "reports/steps.h"

#include <stdlib.h>

#define STEP_NS 1000u
#define MAX_CAUSES 4u    /* flows into one wait */
#define NEVER UINT32_MAX

/* Field numbers of Perfetto's protos/perfetto/trace/ (trace_packet.proto, track_event/). */
enum { TRACE_PACKET = 1 };
enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_TRACK_EVENT = 11, PACKET_FLAGS = 13,
	PACKET_TRACK_DESCRIPTOR = 60 };
enum { FLAG_STATE_CLEARED = 1 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_CHILD_ORDER = 11, TRACK_RANK = 12 };
enum { ORDER_EXPLICIT = 3 };
enum { EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_CATEGORY = 22, EVENT_NAME = 23,
	EVENT_FLOW = 47, EVENT_FLOW_END = 48 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };
enum { ANNOTATION_STRING = 6, ANNOTATION_NAME = 10 };

enum lane_kind { LANE_WARP, LANE_ENGINE, LANE_MBARRIER };

/* A track of one CTA. Slices of a track must nest: where two overlap, a second one has the same
 * name, and the viewer joins both. */
struct lane {
	enum lane_kind kind;
	uint16_t cta;
	uint32_t id;         /* warp, engine, or address */
	uint64_t uuid;
	uint32_t busy;       /* until this step; NEVER: no end */
};

struct flow {
	uint32_t from, to;   /* steps */
};

struct trace {
	FILE *out;
	struct text packet, message, annotation; /* messages being built */
	uint64_t uuid;       /* last one given, of tracks and of flows */
	/* of the current finding */
	const struct finding *f;
	const struct history *y;
	uint64_t root;
	VEC(struct lane) lane;
	VEC(struct lane) cta; /* kind and id not used */
	VEC(struct flow) flow;
	uint64_t first_flow; /* the id of flow.at[0] */
};

/* ---- packets ---- */

static void put_packet(struct trace *t, unsigned field)
{
	struct text all = { 0 };

	pb_message(&t->packet, field, &t->message);
	pb_uint(&t->packet, PACKET_SEQUENCE, 1);
	pb_message(&all, TRACE_PACKET, &t->packet);
	fwrite(all.at, 1, all.n, t->out);
	text_free(&all);
}

static uint64_t add_track(struct trace *t, uint64_t parent, unsigned rank, const char *name)
{
	struct text *m = &t->message;

	pb_uint(m, TRACK_UUID, ++t->uuid);
	pb_string(m, TRACK_NAME, name);
	if (parent)
		pb_uint(m, TRACK_PARENT, parent);
	pb_uint(m, TRACK_CHILD_ORDER, ORDER_EXPLICIT);
	pb_uint(m, TRACK_RANK, rank);
	put_packet(t, PACKET_TRACK_DESCRIPTOR);
	return t->uuid;
}

/* An event follows: its annotations and flows, and then end_event(). */
static void begin_event(struct trace *t, unsigned type, uint64_t track, uint32_t step,
	const char *category, const char *name)
{
	pb_uint(&t->packet, PACKET_TIMESTAMP, (uint64_t)(step + 1) * STEP_NS);
	pb_uint(&t->message, EVENT_TYPE, type);
	pb_uint(&t->message, EVENT_TRACK, track);
	if (type == SLICE_END)
		return;
	pb_string(&t->message, EVENT_CATEGORY, category);
	pb_string(&t->message, EVENT_NAME, name);
}

static void annotate(struct trace *t, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	pb_string(&t->annotation, ANNOTATION_NAME, name);
	pb_string(&t->annotation, ANNOTATION_STRING, text);
	pb_message(&t->message, EVENT_ANNOTATION, &t->annotation);
}

static void end_event(struct trace *t)
{
	put_packet(t, PACKET_TRACK_EVENT);
}

/* ---- tracks ---- */

static uint64_t cta_track(struct trace *t, uint16_t cta)
{
	struct text name = { 0 };
	struct lane l = { .cta = cta };

	for (size_t i = 0; i < t->cta.n; i++)
		if (t->cta.at[i].cta == cta)
			return t->cta.at[i].uuid;
	describe_cta(&name, t->f, cta);
	l.uuid = add_track(t, t->root, cta, name.at);
	text_free(&name);
	vec_push(&t->cta, l);
	return l.uuid;
}

static void name_lane(struct text *name, const struct trace *t, enum lane_kind kind, uint16_t cta,
	uint32_t id)
{
	const struct history_mbarrier *m;

	switch (kind) {
	case LANE_WARP:
		if (id == HISTORY_OTHERS)
			text_printf(name, "other warps");
		else
			text_printf(name, "warp %u", id);
		return;
	case LANE_ENGINE:
		text_printf(name, "%s", engine_name[id]);
		return;
	case LANE_MBARRIER:
		m = history_mbarrier(t->y, cta, id);
		text_printf(name, "mbarrier ");
		if (m)
			demangle_symbol(name, m->name);
		else
			text_printf(name, "shared+0x%x", id);
		return;
	}
}

/* The track for an event at this step: the first one of its kind, or, for a slice that ends at
 * step `to`, one without an open slice. */
static uint64_t lane_track(struct trace *t, enum lane_kind kind, uint16_t cta, uint32_t id,
	uint32_t at, uint32_t to)
{
	struct lane l = { kind, cta, id, 0, to };
	struct text name = { 0 };

	for (size_t i = 0; i < t->lane.n; i++) {
		struct lane *have = &t->lane.at[i];

		if (have->kind != kind || have->cta != cta || have->id != id
				|| (to != at && have->busy > at))
			continue;
		if (to != at)
			have->busy = to;
		return have->uuid;
	}
	name_lane(&name, t, kind, cta, id);
	l.uuid = add_track(t, cta_track(t, cta), kind * 0x100000u + id, name.at);
	text_free(&name);
	vec_push(&t->lane, l);
	return l.uuid;
}

static uint64_t warp_track(struct trace *t, const struct history_step *s, uint32_t at, uint32_t to)
{
	if (step_is_signal((enum step_kind)s->kind))
		return lane_track(t, LANE_MBARRIER, s->peer, s->addr, at, at);
	return lane_track(t, LANE_WARP, s->cta, s->warp, at, to);
}

/* ---- slices ---- */

static bool same_warp(const struct history_step *a, const struct history_step *b)
{
	return a->cta == b->cta && a->warp == b->warp && a->peer == b->peer && a->addr == b->addr
		&& step_on((enum step_kind)a->kind) == step_on((enum step_kind)b->kind);
}

/* Does a wait of this warp begin here? */
static bool begins_wait(const struct history_step *s)
{
	return s->kind == STEP_poll || s->kind == STEP_bar_arrive || s->kind == STEP_cluster_arrive;
}

/* The step at which the wait that begins at step i returns, or NEVER. */
static uint32_t wait_end(const struct history *y, uint32_t i)
{
	for (uint32_t k = i + 1; k < y->nsteps; k++)
		if (same_warp(&y->step[i], &y->step[k]) && y->step[k].kind != STEP_poll
				&& step_family((enum step_kind)y->step[k].kind) == FAMILY_ACQUIRE)
			return k;
	return NEVER;
}

static uint32_t flight_end(const struct history *y, uint32_t i)
{
	for (uint32_t k = i + 1; k < y->nsteps; k++)
		if (step_ends(&y->step[i], &y->step[k]))
			return k;
	return NEVER;
}

/* Is it the first arrival of a phase? */
static bool begins_phase(const struct history *y, uint32_t i)
{
	const struct history_step *s = &y->step[i];
	const enum step_family family = step_family((enum step_kind)s->kind);

	if (step_on((enum step_kind)s->kind) != ON_MBARRIER || s->phase == HISTORY_NO_PHASE
			|| (family != FAMILY_RELEASE && family != FAMILY_COMPLETE))
		return false;
	for (uint32_t k = 0; k < i; k++)
		if (step_same_phase(&y->step[k], s) && y->step[k].kind != STEP_poll)
			return false;
	return true;
}

static uint32_t phase_end(const struct history *y, uint32_t i)
{
	for (uint32_t k = i; k < y->nsteps; k++)
		if (step_same_phase(&y->step[k], &y->step[i]) && y->step[k].completes)
			return k;
	return NEVER;
}

static void annotate_step(struct trace *t, const struct history_step *s)
{
	const struct site *site = site_get(s->site);
	struct text x = { 0 };
	char value[40];

	describe_place(&x, s->site);
	annotate(t, "source", x.at);
	text_free(&x);
	annotate(t, "ptx", site->ptx);
	snprintf(value, sizeof value, "%llu", (unsigned long long)s->at);
	annotate(t, "step of the cluster", value);
	if (s->lanes) {
		snprintf(value, sizeof value, "0x%08x", s->lanes);
		annotate(t, "lanes", value);
	}
	if (s->tx) {
		snprintf(value, sizeof value, "%lld B", (long long)s->tx);
		annotate(t, "bytes of the phase", value);
	}
}

static void put_slice(struct trace *t, uint64_t track, uint32_t from, uint32_t to,
	const char *category, const char *name)
{
	begin_event(t, SLICE_BEGIN, track, from, category, name);
	annotate_step(t, &t->y->step[from]);
	end_event(t);
	if (to == NEVER)
		return;
	begin_event(t, SLICE_END, track, to, NULL, NULL);
	end_event(t);
}

static void put_slices(struct trace *t, uint32_t i)
{
	const struct history_step *s = &t->y->step[i];
	struct text name = { 0 };
	char phase[40];
	uint32_t to;

	if (begins_wait(s)) {
		text_printf(&name, s->kind == STEP_poll ? "wait " : s->kind == STEP_bar_arrive
			? "wait at barrier " : "wait at the cluster barrier");
		describe_step_object(&name, t->y, s);
		to = wait_end(t->y, i);
		if (to != NEVER || s->kind == STEP_poll)
			put_slice(t, warp_track(t, s, i, to), i, to, "wait", name.at);
	}
	name.n = 0;
	if (step_is_issue(s) && s->warp != HISTORY_OTHERS) {
		describe_step(&name, t->f, s);
		to = flight_end(t->y, i);
		put_slice(t, lane_track(t, LANE_ENGINE, s->cta, step_engine(s), i, to), i, to,
			"async", name.at);
	}
	if (begins_phase(t->y, i) && (to = phase_end(t->y, i)) != i) {
		snprintf(phase, sizeof phase, "phase %llu (parity %u)", (unsigned long long)s->phase,
			(unsigned)(s->phase & 1));
		put_slice(t, lane_track(t, LANE_MBARRIER, s->peer, s->addr, i, to), i, to, "mbarrier",
			phase);
	}
	text_free(&name);
}

/* ---- steps ---- */

static void find_flows(struct trace *t)
{
	const struct history *y = t->y;

	for (uint32_t i = 0; i < y->nsteps; i++) {
		unsigned n = 0;

		if (!step_is_wait(&y->step[i]))
			continue;
		for (uint32_t k = i; k-- > 0 && n < MAX_CAUSES;) {
			const enum step_family family = step_family((enum step_kind)y->step[k].kind);

			if ((family != FAMILY_RELEASE && family != FAMILY_COMPLETE)
					|| !step_same_phase(&y->step[k], &y->step[i]))
				continue;
			vec_push(&t->flow, ((struct flow){ k, i }));
			n++;
		}
	}
	if (t->f->nsides == 2 && y->side[0] >= 0 && y->side[1] >= 0)
		vec_push(&t->flow, ((struct flow){ (uint32_t)y->side[1], (uint32_t)y->side[0] }));
	t->first_flow = t->uuid + 1;
	t->uuid += t->flow.n;
}

static void put_step(struct trace *t, uint32_t i)
{
	static const char *const category[] = { [FAMILY_ACCESS] = "access",
		[FAMILY_RELEASE] = "release", [FAMILY_ACQUIRE] = "acquire", [FAMILY_FENCE] = "fence",
		[FAMILY_ISSUE] = "async", [FAMILY_COMPLETE] = "async", [FAMILY_OBJECT] = "lifetime",
		[FAMILY_SYNC] = "syncwarp" };
	const struct history_step *s = &t->y->step[i];
	const bool side = history_is_side(t->y, i);
	struct text name = { 0 };

	if (side)
		text_printf(&name, "%s: ", side_label(t->f, t->y->side[0] != (int32_t)i));
	describe_step(&name, t->f, s);
	begin_event(t, INSTANT, warp_track(t, s, i, i), i, side ? "finding"
		: category[step_family((enum step_kind)s->kind)], name.at);
	annotate_step(t, s);
	for (size_t k = 0; k < t->flow.n; k++) {
		if (t->flow.at[k].from == i)
			pb_fixed64(&t->message, EVENT_FLOW, t->first_flow + k);
		if (t->flow.at[k].to == i)
			pb_fixed64(&t->message, EVENT_FLOW_END, t->first_flow + k);
	}
	end_event(t);
	text_free(&name);
}

/* ---- findings ---- */

static void put_headline(struct trace *t)
{
	const struct rule_info *rule = rule_get(t->f->rule);
	const uint32_t at = t->y && t->y->side[0] >= 0 ? (uint32_t)t->y->side[0] : 0;
	struct text name = { 0 }, x = { 0 };

	text_printf(&name, "%s %s", rule->code, rule->title);
	begin_event(t, INSTANT, t->root, at, "finding", name.at);
	annotate(t, "missing", t->f->edge);
	describe_edit(&x, &t->f->edit);
	annotate(t, "change", x.n ? x.at : NULL);
	x.n = 0;
	if (*t->f->barrier.kind) {
		describe_barrier(&x, &t->f->barrier);
		annotate(t, "barrier", x.at);
	}
	annotate(t, "why", rule->why);
	annotate(t, "fix", finding_fix(t->f));
	annotate(t, "hint", t->f->hint);
	end_event(t);
	text_free(&name);
	text_free(&x);
}

static void put_finding(struct trace *t, const struct finding *f, unsigned number)
{
	char *kernel = demangle(f->kernel, NAME_SIMPLE);
	struct text name = { 0 };

	t->f = f;
	t->y = f->history;
	text_printf(&name, "#%u %s %s ", number, severity_text[f->severity], rule_get(f->rule)->code);
	describe_places(&name, f);
	text_printf(&name, " in %s, launch %u", kernel, f->launch);
	t->root = add_track(t, 0, number, name.at);
	text_free(&name);
	free(kernel);
	put_headline(t);
	if (!t->y)
		return;
	find_flows(t);
	for (uint32_t i = 0; i < t->y->nsteps; i++) {
		put_slices(t, i);
		if (t->y->step[i].kind != STEP_poll)
			put_step(t, i);
	}
	t->lane.n = t->cta.n = t->flow.n = 0;
}

void report_perfetto(const struct results *r, FILE *out)
{
	struct trace t = { .out = out };

	pb_uint(&t.packet, PACKET_FLAGS, FLAG_STATE_CLEARED);
	for (size_t i = 0; i < r->finding.n; i++)
		put_finding(&t, &r->finding.at[i], (unsigned)i + 1);
	text_free(&t.packet);
	text_free(&t.message);
	text_free(&t.annotation);
	vec_free(&t.lane);
	vec_free(&t.cta);
	vec_free(&t.flow);
}
