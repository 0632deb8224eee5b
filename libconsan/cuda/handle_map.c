/* handle_map: an open-addressing hash table under one lock. */
#include "handle_map.h"

#include <pthread.h>
#include <stdlib.h>

struct slot {
	const void *key;
	enum handle_kind kind;  /* HANDLE_NONE: free, or dropped if key is not NULL */
	void *value;
};

static struct {
	pthread_mutex_t lock;
	struct slot *slot;
	size_t cap, used, live; /* used: with dropped slots */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t hash(const void *key, enum handle_kind kind)
{
	uint64_t h = ((uint64_t)(uintptr_t)key ^ (uint64_t)kind << 56) * UINT64_C(0x9E3779B97F4A7C15);

	return (size_t)(h >> 20);
}

static struct slot *find(const void *key, enum handle_kind kind)
{
	size_t i;

	if (!table.cap)
		return NULL;
	for (i = hash(key, kind);; i++) {
		struct slot *s = &table.slot[i & (table.cap - 1)];

		if (s->kind == kind && s->key == key)
			return s;
		if (s->kind == HANDLE_NONE && !s->key)
			return NULL;
	}
}

static void insert(const void *key, enum handle_kind kind, void *value)
{
	size_t i = hash(key, kind);

	while (table.slot[i & (table.cap - 1)].key)
		i++;
	table.slot[i & (table.cap - 1)] = (struct slot){ key, kind, value };
	table.used++;
}

/* Removes dropped slots; the table grows only if the live ones need it. */
static void rehash(void)
{
	struct slot *old = table.slot;
	size_t n = table.cap, i;

	table.cap = !n ? 256 : 4 * table.live > n ? 2 * n : n;
	table.slot = base_alloc(table.cap * sizeof *table.slot);
	table.used = 0;
	for (i = 0; i < n; i++)
		if (old[i].kind != HANDLE_NONE)
			insert(old[i].key, old[i].kind, old[i].value);
	free(old);
}

void handle_put(const void *key, enum handle_kind kind, void *value)
{
	struct slot *s;

	pthread_mutex_lock(&table.lock);
	s = find(key, kind);
	if (s) {
		s->value = value;
	} else {
		if (2 * (table.used + 1) > table.cap)
			rehash();
		insert(key, kind, value);
		table.live++;
	}
	pthread_mutex_unlock(&table.lock);
}

void *handle_get(const void *key, enum handle_kind kind)
{
	struct slot *s;
	void *value;

	pthread_mutex_lock(&table.lock);
	s = find(key, kind);
	value = s ? s->value : NULL;
	pthread_mutex_unlock(&table.lock);
	return value;
}

bool handle_drop(const void *key, enum handle_kind kind)
{
	struct slot *s;

	pthread_mutex_lock(&table.lock);
	s = find(key, kind);
	if (s) {
		s->kind = HANDLE_NONE;
		table.live--;
	}
	pthread_mutex_unlock(&table.lock);
	return s != NULL;
}

void handle_each(enum handle_kind kind, void (*call)(void *value, void *user), void *user)
{
	pthread_mutex_lock(&table.lock);
	for (size_t i = 0; i < table.cap; i++)
		if (table.slot[i].kind == kind)
			call(table.slot[i].value, user);
	pthread_mutex_unlock(&table.lock);
}
