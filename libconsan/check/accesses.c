/* accesses: what a launch did to global memory, for the comparison with other operations. */
#include "global.h"
#include "host.h"

struct visit {
	const struct check *check;
	uint32_t first;          /* cluster of this launch */
	void (*each)(void *user, const struct check_range *r);
	void *user;
};

/* The bytes of `mask` in each of the granules. */
static void on_record(void *user, const struct global_record *r, uint64_t addr, uint32_t granules,
	uint16_t mask)
{
	const struct visit *v = user;
	struct check_range x = { .site = r->site, .write = r->flags & GR_WRITE,
		.strong = r->flags & GR_STRONG && r->scope >= 2,
		.part = { .cluster = r->cluster, .epoch = r->epoch, .lanes = r->lanes,
			.agent = r->agent, .met = r->met,
			.stored = (r->flags & (GR_ASYNC | GR_WRITE)) == (GR_ASYNC | GR_WRITE) } };

	if (r->cluster < v->first || beside_other(v->check, r->cluster))
		return;
	x.part.host = host_noted(v->check->global->beside, r);
	x.system = x.strong && r->flags & GR_SYSTEM;
	x.observes = x.strong && (!(r->flags & GR_WRITE) || r->flags & GR_RMW)
		&& !(r->flags & (GR_UNREAD | GR_ASYNC));
	if (mask == UINT16_MAX) {
		x.addr = addr;
		x.bytes = (uint64_t)granules * GRANULE;
		v->each(v->user, &x);
		return;
	}
	for (uint32_t i = 0; i < granules; i++)
		for (unsigned from = 0, to; from < GRANULE; from = to + 1) {
			for (to = from; to < GRANULE && mask >> to & 1; to++)
				;
			x.addr = addr + i * GRANULE + from;
			x.bytes = to - from;
			if (x.bytes)
				v->each(v->user, &x);
		}
}

void check_accesses(struct check *k, void (*each)(void *user, const struct check_range *r), void *user)
{
	struct visit v = { .check = k, .each = each, .user = user };

	if (!k->global)
		return;
	v.first = k->global->base;
	global_shadow_each(k->global->shadow, on_record, &v);
}
