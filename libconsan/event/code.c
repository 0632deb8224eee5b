/* code: see code.h. */
#include "code.h"
#include "fields.h"

#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

void code_put(struct text *t, uint64_t v)
{
	char b[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		b[n++] = (char)(v | 0x80);
	b[n++] = (char)v;
	text_add(t, b, n);
}

static void code_put_signed(struct text *t, int64_t v)
{
	code_put(t, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

void code_put_string(struct text *t, const char *s)
{
	size_t n = s ? strlen(s) : 0;

	code_put(t, n);
	text_add(t, s ? s : "", n);
}

uint64_t code_get(struct code_reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (r->at == r->end)
			break;
		v |= (uint64_t)(*r->at & 0x7f) << shift;
		if (!(*r->at++ & 0x80))
			return v;
	}
	r->bad = true;
	return 0;
}

static int64_t code_get_signed(struct code_reader *r)
{
	uint64_t v = code_get(r);

	return (int64_t)(v >> 1 ^ -(v & 1));
}

/* The next n bytes, as text that can be printed: a file may come from any source. */
static void text_string(struct text *t, struct code_reader *r, size_t n)
{
	visible_add(t, (const char *)r->at, n);
	text_add(t, "", 0);
	r->at += n;
}

const char *code_get_string(struct code_reader *r, struct arena *a)
{
	uint64_t n = code_get(r);
	struct text shown = { 0 };
	const char *s;

	if (n > (size_t)(r->end - r->at)) {
		r->bad = true;
		return "";
	}
	text_string(&shown, r, n);
	s = arena_strndup(a, shown.at, shown.n);
	text_free(&shown);
	return s;
}

/* The number of elements that follow; each takes at least one byte. */
static uint32_t get_count(struct code_reader *r, uint32_t most)
{
	uint64_t n = code_get(r);

	if (n > most || n > (size_t)(r->end - r->at)) {
		r->bad = true;
		return 0;
	}
	return (uint32_t)n;
}

/* ---- encoding ----
 * The kind; a mask of the fields that follow, the header's first: numbers that differ from the
 * last event of this kind, and arrays; these fields in order, numbers as the difference. */

static void put_lanes(struct text *t, const uint64_t *at, uint32_t lanes)
{
	uint64_t last = 0;

	for (unsigned l = 0; l < 32; l++) {
		if (!(lanes >> l & 1))
			continue;
		code_put_signed(t, (int64_t)(at[l] - last));
		last = at[l];
	}
}

/* What follows of struct ev_lanes. */
enum { LANES_LIST = 1, LANES_STRIDE = 2, LANES_BASE = 4 };

static void put_addresses(struct text *t, const struct ev_lanes *at, const struct ev_lanes *last,
	uint32_t lanes)
{
	const unsigned what = (at->lane ? LANES_LIST : 0)
		| (at->stride != last->stride ? LANES_STRIDE : 0)
		| (at->base != last->base ? LANES_BASE : 0);

	code_put(t, what);
	if (what & LANES_STRIDE)
		code_put_signed(t, (int64_t)at->stride - last->stride);
	if (what & LANES_BASE)
		code_put_signed(t, (int64_t)(at->base - last->base));
	if (what & LANES_LIST)
		put_lanes(t, at->lane, lanes);
}

static void put_spans(struct text *t, const struct ev_spans *s)
{
	code_put(t, s->n);
	for (size_t i = 0; i < s->n; i++) {
		code_put_signed(t, (int64_t)s->at[i].addr - (i ? (int64_t)s->at[i - 1].addr : 0));
		code_put(t, s->at[i].bytes);
	}
}

static void put_gspans(struct text *t, const struct ev_gspans *s)
{
	code_put(t, s->n);
	for (size_t i = 0; i < s->n; i++) {
		code_put_signed(t, (int64_t)(s->at[i].addr - (i ? s->at[i - 1].addr : 0)));
		code_put(t, s->at[i].bytes);
	}
}

static void put_areas(struct text *t, const struct ev_areas *s)
{
	code_put(t, s->n);
	for (size_t i = 0; i < s->n; i++) {
		for (unsigned k = 0; k < 4; k++)
			code_put_signed(t, (int32_t)s->at[i].lanes[k]);
		code_put(t, s->at[i].column);
		code_put(t, s->at[i].columns);
		code_put(t, s->at[i].ctas);
		code_put(t, s->at[i].mode | (unsigned)s->at[i].operand << 2);
	}
}

static void put_regs(struct text *t, const struct ev_regs *regs)
{
	code_put(t, regs->n);
	for (size_t i = 0; i < regs->n; i++)
		code_put_signed(t, (int64_t)regs->at[i] - (i ? (int64_t)regs->at[i - 1] : 0));
}

static void put_parts(struct text *t, const struct ev_parts *parts)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts->at); i++)
		code_put(t, parts->at[i]);
}

/* Is there anything to write of this field? */
static bool is_new(const struct event *e, const struct event *last, const struct event_field *f)
{
	static const struct ev_parts no_parts;
	const void *now = event_field(e, f);
	const struct ev_lanes *at = now, *was = event_field(last, f);
	const struct ev_spans *spans = now;
	const struct ev_gspans *gspans = now;
	const struct ev_areas *areas = now;
	const struct ev_regs *regs = now;
	const uint64_t *const *sources = now;
	const char *const *text = now;

	switch ((enum event_type)f->type) {
	case TYPE_lanes: return at->lane || at->base != was->base || at->stride != was->stride;
	case TYPE_sources: return *sources;
	case TYPE_spans: return spans->n;
	case TYPE_gspans: return gspans->n;
	case TYPE_areas: return areas->n;
	case TYPE_regs: return regs->n;
	case TYPE_text: return *text && **text;
	case TYPE_parts: return memcmp(now, &no_parts, sizeof no_parts) != 0;
	case TYPE_unwritten: case TYPE_stored: return false;
	default: return event_number(e, f) != event_number(last, f);
	}
}

static void put_field(struct text *t, const struct event *e, const struct event *last,
	const struct event_field *f)
{
	const void *now = event_field(e, f);
	const uint64_t *const *sources = now;
	const char *const *text = now;

	switch ((enum event_type)f->type) {
	case TYPE_lanes: put_addresses(t, now, event_field(last, f), e->lanes); break;
	case TYPE_sources: put_lanes(t, *sources, e->lanes); break;
	case TYPE_spans: put_spans(t, now); break;
	case TYPE_gspans: put_gspans(t, now); break;
	case TYPE_areas: put_areas(t, now); break;
	case TYPE_regs: put_regs(t, now); break;
	case TYPE_text: code_put_string(t, *text); break;
	case TYPE_parts: put_parts(t, now); break;
	default: code_put_signed(t, (int64_t)(event_number(e, f) - event_number(last, f)));
	}
}

void event_encode(struct text *t, struct event_past *past, const struct event *e)
{
	struct event *last = &past->last[e->kind];
	const struct event_fields *k = event_fields(e->kind);
	const unsigned nheader = event_header.n;
	uint64_t bits = 0;

	for (unsigned i = 0; i < nheader; i++)
		bits |= (uint64_t)is_new(e, last, &event_header.at[i]) << i;
	for (unsigned i = 0; i < k->n; i++)
		bits |= (uint64_t)is_new(e, last, &k->at[i]) << (nheader + i);
	code_put(t, e->kind);
	code_put(t, bits);
	for (uint64_t left = bits; left; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);

		put_field(t, e, last, i < nheader ? &event_header.at[i] : &k->at[i - nheader]);
	}
	*last = *e;
}

/* ---- decoding ---- */

static void get_lanes(struct code_reader *r, uint64_t at[32], uint32_t lanes)
{
	uint64_t last = 0;

	for (unsigned l = 0; l < 32; l++) {
		at[l] = 0;
		if (lanes >> l & 1)
			at[l] = last += (uint64_t)code_get_signed(r);
	}
}

static void get_addresses(struct code_reader *r, struct event_arrays *a, uint32_t lanes,
	struct ev_lanes *at)
{
	const uint64_t what = code_get(r);

	if (what & LANES_STRIDE)
		at->stride = (int32_t)((uint64_t)at->stride + (uint64_t)code_get_signed(r));
	if (what & LANES_BASE)
		at->base += (uint64_t)code_get_signed(r);
	if (what & LANES_LIST) {
		get_lanes(r, a->lanes, lanes);
		at->lane = a->lanes;
	}
}

static void get_spans(struct code_reader *r, struct event_arrays *a, struct ev_spans *s)
{
	s->n = get_count(r, UINT32_MAX);
	a->spans.n = 0;
	for (uint64_t i = 0, addr = 0; i < s->n && !r->bad; i++) {
		addr += (uint64_t)code_get_signed(r);
		vec_push(&a->spans, ((struct ev_span){ (uint32_t)addr, (uint32_t)code_get(r) }));
	}
	s->at = a->spans.at;
}

static void get_gspans(struct code_reader *r, struct event_arrays *a, struct ev_gspans *s)
{
	s->n = get_count(r, UINT32_MAX);
	a->gspans.n = 0;
	for (uint64_t i = 0, addr = 0; i < s->n && !r->bad; i++) {
		addr += (uint64_t)code_get_signed(r);
		vec_push(&a->gspans, ((struct ev_gspan){ addr, code_get(r) }));
	}
	s->at = a->gspans.at;
}

static void get_areas(struct code_reader *r, struct event_arrays *a, struct ev_areas *s)
{
	s->n = (uint16_t)get_count(r, UINT16_MAX);
	a->areas.n = 0;
	for (unsigned i = 0; i < s->n && !r->bad; i++) {
		struct ev_area x;
		uint64_t what;

		for (unsigned k = 0; k < 4; k++)
			x.lanes[k] = (uint32_t)code_get_signed(r);
		x.column = (uint16_t)code_get(r);
		x.columns = (uint16_t)code_get(r);
		x.ctas = (uint16_t)code_get(r);
		what = code_get(r);
		x.mode = (enum ev_mode)(what & 3);
		x.operand = (enum ev_operand)(what >> 2);
		r->bad |= what >> 2 > OPERAND_METADATA;
		vec_push(&a->areas, x);
	}
	s->at = a->areas.at;
}

static void get_regs(struct code_reader *r, struct event_arrays *a, struct ev_regs *regs)
{
	const unsigned list = a->nregs++ % ARRAY_SIZE(a->regs);

	regs->n = (uint16_t)get_count(r, UINT16_MAX);
	a->regs[list].n = 0;
	for (uint64_t i = 0, reg = 0; i < regs->n && !r->bad; i++) {
		reg += (uint64_t)code_get_signed(r);
		vec_push(&a->regs[list], (uint32_t)reg);
	}
	regs->at = a->regs[list].at;
}

static void get_parts(struct code_reader *r, struct ev_parts *parts)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts->at); i++) {
		parts->at[i] = (uint16_t)code_get(r);
		r->bad |= i && parts->at[i] < parts->at[i - 1];
	}
}

static const char *get_text(struct code_reader *r, struct text *t)
{
	uint64_t n = code_get(r);

	if (n > (size_t)(r->end - r->at)) {
		r->bad = true;
		return NULL;
	}
	t->n = 0;
	text_string(t, r, n);
	return t->at;
}

static void get_field(struct code_reader *r, struct event_arrays *a, struct event *e,
	const struct event_field *f)
{
	void *at = (char *)e + f->at;

	switch ((enum event_type)f->type) {
	case TYPE_lanes: get_addresses(r, a, e->lanes, at); break;
	case TYPE_sources:
		get_lanes(r, a->sources, e->lanes);
		*(const uint64_t **)at = a->sources;
		break;
	case TYPE_spans: get_spans(r, a, at); break;
	case TYPE_gspans: get_gspans(r, a, at); break;
	case TYPE_areas: get_areas(r, a, at); break;
	case TYPE_regs: get_regs(r, a, at); break;
	case TYPE_text: *(const char **)at = get_text(r, &a->text); break;
	case TYPE_parts: get_parts(r, at); break;
	case TYPE_unwritten: case TYPE_stored: r->bad = true; break;
	default: event_set_number(e, f, event_number(e, f) + (uint64_t)code_get_signed(r));
	}
}

/* The arrays of the previous event are not valid any more. */
static void clear_arrays(struct event *e, const struct event_fields *k)
{
	for (unsigned i = 0; i < k->narrays; i++) {
		void *at = (char *)e + k->at[i].at;

		if (k->at[i].type == TYPE_lanes)
			((struct ev_lanes *)at)->lane = NULL;
		else
			memset(at, 0, k->at[i].bytes);
	}
}

bool event_decode(struct code_reader *r, struct event_past *past, struct event_arrays *a,
	struct event *e)
{
	const uint64_t kind = code_get(r), bits = code_get(r);
	const unsigned nheader = event_header.n;
	const struct event_fields *k;

	if (r->bad || kind >= EV_COUNT)
		return false;
	k = event_fields((enum ev_kind)kind);
	if (bits >> (nheader + k->n))
		return false;
	*e = past->last[kind];
	e->kind = (enum ev_kind)kind;
	clear_arrays(e, k);
	a->nregs = 0;
	for (uint64_t left = bits; left; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);

		get_field(r, a, e, i < nheader ? &event_header.at[i] : &k->at[i - nheader]);
	}
	if (r->bad || !e->lanes)
		return false;
	past->last[kind] = *e;
	return true;
}

void event_arrays_free(struct event_arrays *a)
{
	vec_free(&a->spans);
	vec_free(&a->gspans);
	vec_free(&a->areas);
	for (unsigned i = 0; i < ARRAY_SIZE(a->regs); i++)
		vec_free(&a->regs[i]);
	text_free(&a->text);
}
