/* event: names of what event.h enumerates, and the place of a CTA in the grid. */
#include "event.h"

#include "libconsan/base/base.h"

const char *event_name(enum ev_kind kind)
{
	static const char *const name[] = {
#define EV(id, fields, meaning) #id,
#include "event.def"
#undef EV
	};

	return (unsigned)kind < ARRAY_SIZE(name) ? name[kind] : "?";
}

static const struct {
	const char *rule, *text;
} fault[] = {
#define FAULT(id, rule, text) { #rule, text },
#include "fault.def"
#undef FAULT
};

const char *event_fault_text(unsigned f)
{
	return f < ARRAY_SIZE(fault) ? fault[f].text : "?";
}

const char *event_fault_rule(unsigned f)
{
	return f < ARRAY_SIZE(fault) ? fault[f].rule : "";
}

const char *event_sem_name(enum ev_sem s)
{
	switch (s) {
	case SEM_WEAK: return "weak";
	case SEM_RELAXED: return "relaxed";
	case SEM_ACQUIRE: return "acquire";
	case SEM_RELEASE: return "release";
	case SEM_ACQ_REL: return "acq_rel";
	case SEM_SC: return "sc";
	case SEM_VOLATILE: return "volatile";
	case SEM_MMIO: return "mmio";
	}
	return "?";
}

const char *event_scope_name(enum ev_scope s)
{
	switch (s) {
	case SCOPE_NONE: return "none";
	case SCOPE_CTA: return "cta";
	case SCOPE_CLUSTER: return "cluster";
	case SCOPE_GPU: return "gpu";
	case SCOPE_SYS: return "sys";
	}
	return "?";
}

/* Ranks and cluster ids count x fastest, as %cluster_ctarank and %clusterid do. */
uint32_t cluster_whole(const struct launch_info *l)
{
	uint32_t n = 1;

	for (unsigned d = 0; d < 3; d++)
		n *= l->grid[d] / (l->cluster[d] ? l->cluster[d] : 1);
	return n;
}

void cluster_dims(const struct cluster_info *c, uint32_t dims[3])
{
	const struct launch_info *l = c->launch;
	const bool split = l->fallback[0] && c->id >= cluster_whole(l);

	for (unsigned d = 0; d < 3; d++)
		dims[d] = split ? l->fallback[d] : l->cluster[d] ? l->cluster[d] : 1;
}

void cluster_ctaid(const struct cluster_info *c, unsigned rank, uint32_t id[3])
{
	const struct launch_info *l = c->launch;
	uint32_t at = c->id, in = rank, size[3];

	cluster_dims(c, size);
	if (l->fallback[0] && at >= cluster_whole(l))
		at -= cluster_whole(l);
	for (unsigned d = 0; d < 3; d++) {
		uint32_t n = l->grid[d] / size[d];

		if (!n)
			n = 1;
		id[d] = at % n * size[d] + in % size[d];
		at /= n;
		in /= size[d];
	}
}
