/* event: names of kinds, faults, orders and scopes. */
#include "event.h"

#include "libconsan/base/base.h"

const char *event_name(enum ev_kind kind)
{
	static const char *const name[] = {
#define EV(id, member, meaning, fields) #id,
#define EV_LIKE(id, member, like_id, like, meaning) #id,
#include "event.def"
#undef EV_LIKE
#undef EV
	};

	return (unsigned)kind < ARRAY_SIZE(name) ? name[kind] : "?";
}

static const struct {
	const char *rule, *text;
	bool passed;
} fault[] = {
#define FAULT(id, rule, text) { #rule, text, false },
#define FAULT_PASSED(id, rule, text) { #rule, text, true },
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

bool event_fault_passed(unsigned f)
{
	return f < ARRAY_SIZE(fault) && fault[f].passed;
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
