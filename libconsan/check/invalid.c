/* invalid: accesses to shared memory that are wrong without another one: reads of bytes that no
 * thread wrote, accesses to live mbarrier objects, lanes of one store that write the same bytes. */
#include "libconsan/event/event.h"
#include "libconsan/finding/rule_codes.h"
#include "race_report.h"

/* Tensor cores read whole tiles with their padding: kernels that mask the result do not clear it
 * first (A31: the value is undefined, no race). */
static bool reads_tile(const struct view *v)
{
	const struct event *e = v->c->now;

	return v->role == ROLE_WGMMA || v->role == ROLE_TC || (e->kind == EV_ACCESS && e->access.flags & ACCESS_MATRIX);
}

/* %reserved_smem_offset_*: behind the kernel's own memory, on a GPU before it; code that uses it
 * clears what it needs, as cooperative groups do bit by bit. */
static bool reserved(const struct cluster *c, uint64_t addr)
{
	const struct launch_info *l = c->info.launch;
	bool before = l->nsymbols;

	for (size_t i = 0; i < l->nsymbols; i++)
		before &= addr < l->symbols[i].addr;
	return before || addr >= ((l->shared_static + l->shared_dynamic + 15) & ~15u);
}

/* Sets the bits of the lanes that load it: the executor sends LOAD_USED if the value is used. */
static void mark_unwritten(uint32_t of_lanes, const struct event_access *a, uint32_t granule,
	uint32_t bytes)
{
	for (uint32_t m = a->unwritten ? of_lanes : 0; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);
		uint64_t from = lane_addr(&a->at, l);

		for (uint32_t b = bytes; b; b &= b - 1)
			if ((uint64_t)granule * CELL_BYTES + (unsigned)__builtin_ctz(b) - from < a->bytes)
				*a->unwritten |= 1u << l;
	}
}

void on_load_used(struct cluster *c, const struct event *e)
{
	const struct event_load_used *u = &e->load_used;
	struct finding *f = report_new(c, CS901, rule_severity(CS901), e->site, u->load_site);
	struct warp *w = warp_of(c, e);
	const unsigned lane = (unsigned)__builtin_ctz(e->lanes);

	if (!f)
		return;
	report_side(c, f, w->index, (int)lane, e->site, "use of the value");
	report_side(c, f, w->index, (int)lane, u->load_site, "read");
	report_memory(c, f, 1, u->owner, lane_addr(&u->at, lane), u->bytes);
	report_edge(f, "no thread of this CTA wrote these bytes before");
	report_send(c, f);
}

void race_invalid(struct shadow_view *s, const struct cell_entry *now,
	uint32_t granule, uint32_t bytes, unsigned why)
{
	const struct cell_entry local = race_here(now, granule);
	struct view *v = (struct view *)s;
	struct cluster *c = v->c;
	unsigned byte = (unsigned)__builtin_ctz(bytes);
	uint64_t addr = (uint64_t)granule * CELL_BYTES + byte;
	uint32_t site = now->what & CELL_SITE_MASK;
	unsigned rule = why == SHADOW_GUARDED ? CS206 : CS901;
	enum severity sev = rule_severity(rule);
	struct mbar *m = NULL;
	struct finding *f;
	struct accessor d;

	if (why == SHADOW_GUARDED) {
		m = mbar_of(c, v->peer, (uint32_t)addr & ~7u);
		if (!m || (now->agent == v->w->index && c->now->kind == EV_MBARRIER_INIT))
			return; /* a second init is CS204 */
	} else if (reserved(c, addr) || report_unread_load(site)) {
		return;
	} else if (c->now->kind == EV_ACCESS && c->now->access.flags & ACCESS_FOLLOWED) {
		mark_unwritten(c->now->lanes, &c->now->access, granule, bytes);
		return;
	} else if (v->role == ROLE_BULK_STORE) {
		sev = SEV_NOTE; /* the bytes may lie outside the tensor, clipped */
	} else if (reads_tile(v) && !c->check->config.policy.uninitialised_tile) {
		sev = SEV_NOTE;
	}
	f = report_new(c, rule, sev, site, m ? m->init.site : 0);
	if (!f)
		return;
	d = race_accessor(c, &local, byte);
	if (v->role == ROLE_BULK_LOAD || v->role == ROLE_TC) {
		d.warp = v->w->index;
		d.lane = only_lane(v->lanes);
	}
	report_side(c, f, d.warp, d.lane, site, d.what);
	report_memory(c, f, 0, v->peer, addr, (uint32_t)__builtin_ctz(~(bytes >> byte)));
	if (m) {
		report_side(c, f, m->init.warp, only_lane(m->init.lanes), m->init.site, "mbarrier.init");
		report_memory(c, f, 1, v->peer, m->addr, 8);
		report_mbar(c, f, m);
		report_edge(f, "the object is live: mbarrier.inval must come before its bytes are used for "
			"another purpose");
	} else {
		report_edge(f, "no thread of this CTA wrote these bytes before");
		if (sev == SEV_NOTE)
			report_hint(f, HINT(tile_padding));
		else if (c->now->kind == EV_ACCESS && c->now->access.mode == MODE_READ)
			report_hint(f, HINT(value_used));
	}
	report_send(c, f);
}

/* Lanes of one instruction that write the same bytes. The CUDA guide allows it: one of the writes
 * is performed, unspecified which. Library code stores one value from all lanes, which is a note;
 * if the values differ, the result is undefined. */
void race_one_instruction(struct cluster *c, const struct lanes_access *a, uint32_t lanes,
	uint64_t addr)
{
	const struct event *e = a->e;
	const uint32_t lost = a->overwritten & lanes;
	const uint32_t kept = lanes & ~lost ? lanes & ~lost : lanes & (lanes - 1);
	const unsigned lane = (unsigned)__builtin_ctz(lost ? lost : lanes);
	const unsigned other = (unsigned)__builtin_ctz(lost ? kept : lanes & (lanes - 1));
	struct warp *w = warp_of(c, e);
	struct finding *f = report_new(c, CS103, lost ? SEV_WARNING : SEV_NOTE, e->site,
		lost ? 0 : e->site);

	if (!f)
		return;
	report_side(c, f, w->index, (int)lane, e->site, "write");
	report_memory(c, f, 0, a->owner, addr, a->bytes);
	if (lost) {
		report_edge(f, "lanes %u and %u write different values to the same bytes in one "
			"instruction: which value remains is undefined", lane, other);
		report_send(c, f);
		return;
	}
	report_side(c, f, w->index, (int)other, e->site, "write");
	report_memory(c, f, 1, a->owner, addr, a->bytes);
	report_edge(f, "lanes %u and %u write the same bytes in one instruction", lane, other);
	report_hint(f, HINT(same_instruction));
	report_send(c, f);
}
