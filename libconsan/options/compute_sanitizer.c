/* compute_sanitizer: options of compute-sanitizer that have another name here, or no equal. */
#include "internal.h"

#include <string.h>

#define ACCEPT ""
#define REFUSE NULL
static const struct row {
	const char *id;
	bool takes_value;
	const char *value, *to, *answer;
} rows[] = {
#define SANITIZER(name, takes_value, value, to, answer) { #name, takes_value, value, to, answer },
#include "compute_sanitizer.def"
#undef SANITIZER
};

const char *sanitizer_option(size_t k, bool *takes_value)
{
	if (k >= ARRAY_SIZE(rows))
		return NULL;
	*takes_value = rows[k].takes_value;
	return rows[k].id;
}

static const struct row *find(const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (opt_same_name(rows[i].id, name) && (!value || !*rows[i].value
				|| !strcmp(rows[i].value, value)))
			return &rows[i];
	return NULL;
}

bool sanitizer_known(const char *name)
{
	return find(name, NULL);
}

bool sanitizer_set(struct options *o, const char *name, const char *value, struct consan_err *e)
{
	const struct row *h = find(name, value ? value : "");
	const char *equals = value ? "=" : "";
	char id[40];

	if (!h)
		h = find(name, NULL);
	opt_spell(h->id, id, sizeof id);
	value = value ? value : "";
	if (!h->to)
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s%s%s: %s", id, equals, value, h->answer);
	if (*h->answer)
		text_printf(&o->remarks, "--%s%s%s: %s\n", id, equals, value, h->answer);
	return !*h->to || options_set(o, h->to, value, e);
}
