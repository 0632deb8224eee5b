/* history: the table of steps, and reference counting. */
#include "history.h"

#include "libconsan/base/base.h"

#include <stdlib.h>

static const struct {
	const char *id, *text;
	enum step_family family;
	enum step_on on;
} step[] = {
#define STEP(id, family, on, text) [STEP_##id] = { #id, text, FAMILY_##family, ON_##on },
#include "libconsan/event/step.def"
#undef STEP
};

const char *step_text(enum step_kind k)
{
	return k < STEP_COUNT ? step[k].text : "";
}

const char *step_id(enum step_kind k)
{
	return k < STEP_COUNT ? step[k].id : "";
}

enum step_family step_family(enum step_kind k)
{
	return k < STEP_COUNT ? step[k].family : FAMILY_OBJECT;
}

enum step_on step_on(enum step_kind k)
{
	return k < STEP_COUNT ? step[k].on : ON_NOTHING;
}

struct history *history_keep(struct history *h)
{
	if (h)
		__atomic_add_fetch(&h->references, 1, __ATOMIC_RELAXED);
	return h;
}

void history_drop(struct history *h)
{
	if (!h || __atomic_fetch_sub(&h->references, 1, __ATOMIC_ACQ_REL))
		return;
	free(h->step);
	free(h->mbarrier);
	free(h->buffer);
	free(h);
}

const struct history_mbarrier *history_mbarrier(const struct history *h, unsigned peer,
	uint32_t addr)
{
	for (uint32_t i = 0; i < h->nmbarriers; i++)
		if (h->mbarrier[i].peer == peer && h->mbarrier[i].addr == addr)
			return &h->mbarrier[i];
	return NULL;
}

bool step_is_signal(enum step_kind k)
{
	return k == STEP_signal || k == STEP_tc_signal;
}
