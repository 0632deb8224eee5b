/* numbers: refuses files with numbers that their readers could not hold (numbers.def). */
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define COUNT32_MAX (UINT32_MAX - 1) /* one more is shown */

static const struct number {
	const char *list, *key;
	int64_t least, most; /* most < least: it is no number there */
} numbers[] = {
#define NUMBER(list, key, least, most) { list, key, least, most },
#include "numbers.def"
#undef NUMBER
};

/* Where a value is: in a member of an object (key), or an element of an array. */
struct place {
	const struct place *up;
	const char *key; /* NULL: an element */
	size_t index;
};

static const struct number *find(const char *list, const char *key)
{
	const struct number *any = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (strcmp(numbers[i].key, key))
			continue;
		if (!strcmp(numbers[i].list, list))
			return &numbers[i];
		if (!*numbers[i].list)
			any = &numbers[i];
	}
	return any;
}

static void add_place(struct text *t, const struct place *p)
{
	if (!p)
		return;
	add_place(t, p->up);
	if (p->key)
		text_printf(t, "%s%s", t->n ? "." : "", p->key);
	else
		text_printf(t, "[%zu]", p->index);
}

static bool refuse(const json_t *j, const struct number *n, const struct place *at, struct text *why)
{
	char *value = json_dumps(j, JSON_ENCODE_ANY);

	add_place(why, at);
	text_printf(why, ": %.40s is no whole number from %lld to %lld", value ? value : "?", (long long)n->least,
		(long long)n->most);
	free(value);
	return false;
}

/* key: of the innermost member that j is in; list: of the one around that. */
static bool check(const json_t *j, const char *list, const char *key, const struct place *at, struct text *why)
{
	const struct number *n;
	const char *member;
	json_t *of;
	size_t i;

	if (json_is_object(j)) {
		json_object_foreach((json_t *)j, member, of)
			if (!check(of, key, member, &(struct place){ at, member, 0 }, why))
				return false;
		return true;
	}
	if (json_is_array(j)) {
		json_array_foreach(j, i, of)
			if (!check(of, list, key, &(struct place){ at, NULL, i }, why))
				return false;
		return true;
	}
	n = find(list, key);
	return !n || n->most < n->least || (json_is_integer(j) && json_integer_value(j) >= n->least
		&& json_integer_value(j) <= n->most) || refuse(j, n, at, why);
}

bool rj_numbers(const json_t *j, struct text *why)
{
	return check(j, "", "", NULL, why);
}

void results_sum(uint64_t *count, uint64_t n)
{
	*count = n > INT64_MAX || *count > INT64_MAX - n ? INT64_MAX : *count + n;
}

void rj_add32(uint32_t *count, uint32_t n)
{
	*count = n > COUNT32_MAX || *count > COUNT32_MAX - n ? COUNT32_MAX : *count + n;
}
