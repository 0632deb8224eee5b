/* compute_sanitizer: options of compute-sanitizer that have another name here, or no equal. */
#include "internal.h"

#include <string.h>

#define ACCEPT ""
#define REFUSE NULL
static const struct habit {
	const char *id;
	bool takes_value;
	const char *value, *to, *answer;
} habits[] = {
#define HABIT(name, takes_value, value, to, answer) { #name, takes_value, value, to, answer },
#include "compute_sanitizer.def"
#undef HABIT
};

const char *habit_name(size_t k, bool *takes_value)
{
	if (k >= ARRAY_SIZE(habits))
		return NULL;
	*takes_value = habits[k].takes_value;
	return habits[k].id;
}

static const struct habit *find(const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(habits); i++)
		if (opt_same_name(habits[i].id, name) && (!value || !*habits[i].value
				|| !strcmp(habits[i].value, value)))
			return &habits[i];
	return NULL;
}

bool habit_known(const char *name)
{
	return find(name, NULL);
}

bool habit_set(struct options *o, const char *name, const char *value, struct consan_err *e)
{
	const struct habit *h = find(name, value ? value : "");
	const char *equals = value ? "=" : "";
	char id[40];

	if (!h)
		h = find(name, NULL);
	opt_spell(h->id, id, sizeof id);
	value = value ? value : "";
	if (!h->to)
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s%s%s: %s", id, equals, value, h->answer);
	if (*h->answer)
		text_printf(&o->said, "--%s%s%s: %s\n", id, equals, value, h->answer);
	return !*h->to || options_set(o, h->to, value, e);
}
