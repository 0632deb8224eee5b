/* event_print: one event as one line of text (consan dump), by the tables of fields.h. */
#include "fields.h"
#include "io.h"
#include "site.h"

#include <string.h>

static void add_place(struct text *out, uint32_t site)
{
	const char *file, *slash;
	uint32_t line;

	if (!site)
		return;
	site_where(site, &file, &line);
	slash = strrchr(file, '/');
	text_printf(out, " %s:%u", slash ? slash + 1 : file, line);
}

/* ---- names of values ---- */

struct names {
	const char *const *at;
	unsigned n;
};

#define RETURN_NAMES(...) do { \
		static const char *const names[] = { __VA_ARGS__ }; \
		return (struct names){ names, ARRAY_SIZE(names) }; \
	} while (0)

/* The names of an enumeration's values, or of the bits of a set of flags. */
static struct names names_of(enum event_type type)
{
	switch (type) {
	case TYPE_space: RETURN_NAMES("any", "shared", "global", "local", "const", "param", "tmem");
	case TYPE_mode: RETURN_NAMES("none", "read", "write", "rmw");
	case TYPE_access_flags: RETURN_NAMES("noncoherent", "matrix", "reduction", "followed", "flag",
		"stale");
	case TYPE_arrive_flags: RETURN_NAMES("drop", "no_complete", "expect_tx");
	case TYPE_test_flags: RETURN_NAMES("true", "parity", "try", "suspended");
	case TYPE_bar: RETURN_NAMES("sync", "arrive", "red");
	case TYPE_proxy: RETURN_NAMES("async", "async_release", "async_acquire", "alias",
		"tensormap_release", "tensormap_acquire");
	case TYPE_wait: RETURN_NAMES("mbarrier", "bar", "cluster", "warp", "warpgroup",
		"setmaxnreg", "tmem", "spin");
	case TYPE_tc: RETURN_NAMES("mma", "cp", "shift");
	case TYPE_collector: RETURN_NAMES("none", "fill", "use", "lastuse", "discard");
	case TYPE_hang: RETURN_NAMES("deadlock", "livelock", "timeout", "lost");
	default: return (struct names){ 0 };
	}
}

static void add_name(struct text *out, enum event_type type, uint64_t value)
{
	const struct names names = names_of(type);

	text_printf(out, " %s", value < names.n ? names.at[value] : "?");
}

static void add_flags(struct text *out, enum event_type type, uint64_t flags)
{
	for (; flags; flags &= flags - 1)
		add_name(out, type, (uint64_t)__builtin_ctzll(flags));
}

/* ---- arrays ---- */

#define SHOWN 4u /* of a list of spans */

static void add_lanes(struct text *out, const char *name, const struct ev_lanes *at, uint32_t lanes)
{
	const unsigned first = (unsigned)__builtin_ctz(lanes);

	text_printf(out, " %s=%#llx", name, (unsigned long long)lane_addr(at, first));
	if (!at->lane && at->stride)
		text_printf(out, "%+dl", at->stride);
	for (unsigned l = first + 1; at->lane && l < 32; l++)
		if (lanes >> l & 1)
			text_printf(out, ",%#llx", (unsigned long long)at->lane[l]);
}

static void add_spans(struct text *out, const char *name, const struct ev_spans *s)
{
	if (s->n)
		text_printf(out, " %s=", name);
	for (unsigned i = 0; i < s->n && i < SHOWN; i++)
		text_printf(out, "%s%#x+%u", i ? "," : "", s->at[i].addr,
			s->at[i].bytes);
	if (s->n > SHOWN)
		text_printf(out, ",...(%u)", s->n);
}

static void add_gspans(struct text *out, const char *name, const struct ev_gspans *s)
{
	if (s->n)
		text_printf(out, " %s=", name);
	for (unsigned i = 0; i < s->n && i < SHOWN; i++)
		text_printf(out, "%s%#llx+%llu", i ? "," : "",
			(unsigned long long)s->at[i].addr, (unsigned long long)s->at[i].bytes);
	if (s->n > SHOWN)
		text_printf(out, ",...(%u)", s->n);
}

/* operand, mode, the words of the mask of lanes, first column and number of columns */
static void add_areas(struct text *out, const char *name, const struct ev_areas *s)
{
	static const char *const operand[] = { "", "d:", "a:", "scales:", "metadata:" };

	if (s->n)
		text_printf(out, " %s=", name);
	for (unsigned i = 0; i < s->n && i < SHOWN; i++) {
		const struct ev_area *a = &s->at[i];

		text_printf(out, "%s%s%s:", i ? "," : "", operand[a->operand],
			a->mode == MODE_READ ? "r" : a->mode == MODE_WRITE ? "w" : "rw");
		for (unsigned k = 0; k < 4; k++)
			text_printf(out, "%s%x", k ? "." : "", a->lanes[k]);
		text_printf(out, "x%u+%u", a->column, a->columns);
	}
	if (s->n > SHOWN)
		text_printf(out, ",...(%u)", s->n);
}

static void add_array(struct text *out, const struct event *e, const struct event_field *f)
{
	const void *at = event_field(e, f);
	const struct ev_regs *regs = at;
	const uint64_t *const *sources = at;
	const char *const *text = at;

	switch ((enum event_type)f->type) {
	case TYPE_lanes: add_lanes(out, f->name, at, e->lanes); break;
	case TYPE_sources:
		if (*sources)
			add_lanes(out, f->name, &(struct ev_lanes){ .lane = *sources }, e->lanes);
		break;
	case TYPE_spans: add_spans(out, f->name, at); break;
	case TYPE_gspans: add_gspans(out, f->name, at); break;
	case TYPE_areas: add_areas(out, f->name, at); break;
	case TYPE_regs:
		if (regs->n)
			text_printf(out, " %s=%u", f->name, regs->n);
		break;
	case TYPE_text:
		if (*text && **text)
			text_printf(out, " \"%s\"", *text);
		break;
	default: break;
	}
}

/* ---- numbers ---- */

static void add_number(struct text *out, const struct event *e, const struct event_field *f)
{
	const uint64_t v = event_number(e, f);
	const enum event_type type = (enum event_type)f->type;

	switch (type) {
	case TYPE_flag:
		if (v)
			text_printf(out, " %s", f->name);
		break;
	case TYPE_offset:
		if (v != EV_NO_MBARRIER)
			text_printf(out, " %s=%#llx", f->name, (unsigned long long)v);
		break;
	case TYPE_tx:
		if (v)
			text_printf(out, " %s=%lld", f->name, (long long)v);
		break;
	case TYPE_address:
		if (v)
			text_printf(out, " %s=%#llx", f->name, (unsigned long long)v);
		break;
	case TYPE_mask:
		if (v)
			text_printf(out, " %s=%08llx", f->name, (unsigned long long)v);
		break;
	case TYPE_cta:
		if (v != e->cta)
			text_printf(out, " %s=%llu", f->name, (unsigned long long)v);
		break;
	case TYPE_site: add_place(out, (uint32_t)v); break;
	case TYPE_sem:
		if (v)
			text_printf(out, " %s", event_sem_name((enum ev_sem)v));
		break;
	case TYPE_scope:
		if (v)
			text_printf(out, " %s", event_scope_name((enum ev_scope)v));
		break;
	case TYPE_space:
		if (v)
			add_name(out, type, v);
		break;
	case TYPE_fault:
		text_printf(out, " %s (%s)", event_fault_rule((unsigned)v), event_fault_text((unsigned)v));
		break;
	case TYPE_access_flags: case TYPE_arrive_flags: case TYPE_test_flags:
		add_flags(out, type, v);
		break;
	case TYPE_collector:
		if (v)
			add_name(out, type, v);
		break;
	case TYPE_mode: case TYPE_bar: case TYPE_proxy: case TYPE_wait: case TYPE_hang: case TYPE_tc:
		add_name(out, type, v);
		break;
	default:
		if (v)
			text_printf(out, " %s=%llu", f->name, (unsigned long long)v);
	}
}

/* ---- an event ---- */

void event_print(const struct event *e, struct text *out)
{
	const struct event_fields *k = event_fields(e->kind);

	text_printf(out, "%-22s cta=%u warp=%u lanes=%08x", event_name(e->kind), e->cta, e->warp,
		e->lanes);
	for (unsigned i = k->narrays; i < k->n; i++)
		add_number(out, e, &k->at[i]);
	for (unsigned i = 0; i < k->narrays; i++)
		add_array(out, e, &k->at[i]);
	add_place(out, e->site);
}
