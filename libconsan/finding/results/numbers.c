/* numbers: refuses files with numbers that their readers could not hold (numbers.def). */
#include "json.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define COUNT32_MAX (UINT32_MAX - 1) /* one more is shown */

static struct number {
	const char *list, *key;
	int64_t least, most; /* most < least: it is no number there */
} numbers[] = {
#define NUMBER(list, key, least, most) { list, key, least, most },
#include "numbers.def"
#undef NUMBER
};
static pthread_once_t sorted = PTHREAD_ONCE_INIT;

static int by_place(const void *a, const void *b)
{
	const struct number *x = a, *y = b;
	const int d = strcmp(x->key, y->key);

	return d ? d : strcmp(x->list, y->list);
}

static void sort(void)
{
	qsort(numbers, ARRAY_SIZE(numbers), sizeof *numbers, by_place);
}

/* Where a value is: in a member of an object (key), or an element of an array. */
struct place {
	const struct place *up;
	const char *key; /* NULL: an element */
	size_t index;
};

static const struct number *find_in(const char *list, const char *key)
{
	return bsearch(&(struct number){ .list = list, .key = key }, numbers, ARRAY_SIZE(numbers), sizeof *numbers,
		by_place);
}

static const struct number *find(const char *list, const char *key)
{
	const struct number *n = find_in(list, key);

	return n ? n : find_in("", key);
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
	pthread_once(&sorted, sort);
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
