/* event_code: see event_code.h. */
#include "code.h"

#include <stdlib.h>
#include <string.h>

/* Scalar members, the ones that change most first: their bits make the mask of
 * an event short. A new member goes to the end and bumps EVENT_VERSION. */
#define FIELDS(X) X(addr) X(warp) X(site) X(op) X(tx) X(lanes) X(cta) X(size) X(count) \
	X(stride) X(mode) X(flags) X(sem) X(scope) X(space) X(peer) X(mask) X(mbar) \
	X(mbar_peer) X(src_size)

enum {
#define X(id) BIT_##id,
	FIELDS(X)
#undef X
	BIT_LANE_ADDR, BIT_LANE_SRC, BIT_SPANS, BIT_GSPANS, BIT_REGS, BIT_PART, BIT_TEXT,
	BIT_COUNT
};
_Static_assert(BIT_COUNT <= 64, "the mask of an event is 64 bits");

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

const char *code_get_string(struct code_reader *r, struct arena *a)
{
	uint64_t n = code_get(r);
	const char *s;

	if (n > (size_t)(r->end - r->at)) {
		r->bad = true;
		return "";
	}
	s = arena_strndup(a, (const char *)r->at, n);
	r->at += n;
	return s;
}

/* how many elements follow; each takes a byte at least */
static uint16_t get_count(struct code_reader *r)
{
	uint64_t n = code_get(r);

	if (n > UINT16_MAX || n > (size_t)(r->end - r->at)) {
		r->bad = true;
		return 0;
	}
	return (uint16_t)n;
}

/* ---- encoding ---- */

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

static bool any_part(const struct event *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(e->part); i++)
		if (e->part[i])
			return true;
	return false;
}

void event_encode(struct text *t, struct event_past *past, const struct event *e)
{
	struct event *last = &past->last[e->kind];
	size_t nregs = (size_t)e->nregs_d + e->nregs_a;
	uint64_t bits = 0;

#define X(id) bits |= (uint64_t)(e->id != last->id) << BIT_##id;
	FIELDS(X)
#undef X
	bits |= (uint64_t)(e->lane_addr != NULL) << BIT_LANE_ADDR;
	bits |= (uint64_t)(e->lane_src != NULL) << BIT_LANE_SRC;
	bits |= (uint64_t)(e->spans && e->nspans) << BIT_SPANS;
	bits |= (uint64_t)(e->gspans && e->ngspans) << BIT_GSPANS;
	bits |= (uint64_t)(e->regs && nregs) << BIT_REGS;
	bits |= (uint64_t)any_part(e) << BIT_PART;
	bits |= (uint64_t)(e->text && *e->text) << BIT_TEXT;

	code_put(t, e->kind);
	code_put(t, bits);
#define X(id) \
	if (bits >> BIT_##id & 1) \
		code_put_signed(t, (int64_t)((uint64_t)e->id - (uint64_t)last->id));
	FIELDS(X)
#undef X
	if (e->lane_addr)
		put_lanes(t, e->lane_addr, e->lanes);
	if (e->lane_src)
		put_lanes(t, e->lane_src, e->lanes);
	if (bits >> BIT_SPANS & 1) {
		code_put(t, e->nspans);
		for (size_t i = 0; i < e->nspans; i++) {
			code_put_signed(t, (int64_t)e->spans[i].addr
				- (i ? (int64_t)e->spans[i - 1].addr : 0));
			code_put(t, e->spans[i].bytes);
		}
	}
	if (bits >> BIT_GSPANS & 1) {
		code_put(t, e->ngspans);
		for (size_t i = 0; i < e->ngspans; i++) {
			code_put_signed(t, (int64_t)(e->gspans[i].addr
				- (i ? e->gspans[i - 1].addr : 0)));
			code_put(t, e->gspans[i].bytes);
		}
	}
	if (bits >> BIT_REGS & 1) {
		code_put(t, e->nregs_d);
		code_put(t, e->nregs_a);
		for (size_t i = 0; i < nregs; i++)
			code_put_signed(t, (int64_t)e->regs[i] - (i ? (int64_t)e->regs[i - 1] : 0));
	}
	if (bits >> BIT_PART & 1)
		for (size_t i = 0; i < ARRAY_SIZE(e->part); i++)
			code_put(t, e->part[i]);
	if (bits >> BIT_TEXT & 1)
		code_put_string(t, e->text);
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

static void get_arrays(struct code_reader *r, uint64_t bits, struct event_room *room,
	struct event *e)
{
	if (bits >> BIT_LANE_ADDR & 1) {
		get_lanes(r, room->lane_addr, e->lanes);
		e->lane_addr = room->lane_addr;
	}
	if (bits >> BIT_LANE_SRC & 1) {
		get_lanes(r, room->lane_src, e->lanes);
		e->lane_src = room->lane_src;
	}
	if (bits >> BIT_SPANS & 1) {
		e->nspans = get_count(r);
		room->spans.n = 0;
		for (uint64_t i = 0, addr = 0; i < e->nspans && !r->bad; i++) {
			addr += (uint64_t)code_get_signed(r);
			vec_push(&room->spans, ((struct ev_span){ (uint32_t)addr,
				(uint32_t)code_get(r) }));
		}
		e->spans = room->spans.at;
	}
	if (bits >> BIT_GSPANS & 1) {
		e->ngspans = get_count(r);
		room->gspans.n = 0;
		for (uint64_t i = 0, addr = 0; i < e->ngspans && !r->bad; i++) {
			addr += (uint64_t)code_get_signed(r);
			vec_push(&room->gspans, ((struct ev_gspan){ addr, code_get(r) }));
		}
		e->gspans = room->gspans.at;
	}
	if (bits >> BIT_REGS & 1) {
		e->nregs_d = get_count(r);
		e->nregs_a = get_count(r);
		room->regs.n = 0;
		for (uint64_t i = 0, reg = 0; i < (uint64_t)e->nregs_d + e->nregs_a && !r->bad; i++) {
			reg += (uint64_t)code_get_signed(r);
			vec_push(&room->regs, (uint32_t)reg);
		}
		e->regs = room->regs.at;
	}
	if (bits >> BIT_PART & 1)
		for (size_t i = 0; i < ARRAY_SIZE(e->part); i++) {
			e->part[i] = (uint16_t)code_get(r);
			r->bad |= e->part[i] > e->nspans || (i && e->part[i] < e->part[i - 1]);
		}
	if (bits >> BIT_TEXT & 1) {
		uint64_t n = code_get(r);

		if (n > (size_t)(r->end - r->at)) {
			r->bad = true;
			return;
		}
		room->text.n = 0;
		text_add(&room->text, (const char *)r->at, n);
		r->at += n;
		e->text = room->text.at;
	}
}

bool event_decode(struct code_reader *r, struct event_past *past,
	struct event_room *room, struct event *e)
{
	uint64_t kind = code_get(r), bits = code_get(r);

	if (r->bad || kind >= EV_COUNT || bits >> BIT_COUNT)
		return false;
	*e = past->last[kind];
	e->kind = (uint8_t)kind;
	e->lane_addr = e->lane_src = NULL;
	e->spans = NULL;
	e->gspans = NULL;
	e->regs = NULL;
	e->text = NULL;
	e->nspans = e->ngspans = e->nregs_d = e->nregs_a = 0;
	memset(e->part, 0, sizeof e->part);
#define X(id) \
	if (bits >> BIT_##id & 1) \
		e->id += (uint64_t)code_get_signed(r);
	FIELDS(X)
#undef X
	get_arrays(r, bits, room, e);
	if (r->bad || !e->lanes)
		return false;
	past->last[kind] = *e;
	return true;
}

void event_room_free(struct event_room *room)
{
	vec_free(&room->spans);
	vec_free(&room->gspans);
	vec_free(&room->regs);
	text_free(&room->text);
}
