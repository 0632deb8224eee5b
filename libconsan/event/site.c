/* site: see site.h. Adding a site takes a lock, looking one up does not. Sites are never
 * removed. */
#include "site.h"

#include "libconsan/base/base.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Ids are dense; chunks never move, so that a reader needs no lock. */
#define CHUNK_BITS 12
#define CHUNK_SITES (1u << CHUNK_BITS)
#define MAX_CHUNKS 2048 /* shadow/cell.h has 23 bits for a site */

static struct site *_Atomic chunk[MAX_CHUNKS];
static atomic_uint nsites = 1; /* id 0: unknown */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* under the lock: interned strings, places and sites */
static struct arena arena;

struct hash {
	const void **at; /* NULL: free */
	size_t n, cap;   /* cap: 2^k or 0 */
};
static struct hash strings, locs, interned;

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
	const unsigned char *c = p;

	for (uint64_t word; n >= sizeof word; n -= sizeof word, c += sizeof word) {
		memcpy(&word, c, sizeof word);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	for (; n; n--)
		h = (h ^ *c++) * 0x100000001b3u;
	return h;
}

static uint64_t hash_string(const void *p)
{
	return hash_bytes(0xcbf29ce484222325u, p, strlen(p));
}

static bool same_string(const void *a, const void *b)
{
	return strcmp(a, b) == 0;
}

/* the strings of a place in the table are interned: pointers are identity */
static uint64_t hash_loc(const void *p)
{
	const struct site_loc *l = p;
	uint64_t h = hash_bytes(0xcbf29ce484222325u, &l->file, sizeof l->file);

	h = hash_bytes(h, &l->line, sizeof l->line);
	h = hash_bytes(h, &l->col, sizeof l->col);
	h = hash_bytes(h, &l->function, sizeof l->function);
	h = hash_bytes(h, &l->offset, sizeof l->offset);
	return hash_bytes(h, &l->inlined_at, sizeof l->inlined_at);
}

static bool same_loc(const void *p, const void *q)
{
	const struct site_loc *a = p, *b = q;

	return a->file == b->file && a->line == b->line && a->col == b->col
		&& a->function == b->function && a->inlined_at == b->inlined_at
		&& a->offset == b->offset;
}

static uint64_t hash_site(const void *p)
{
	const struct site *s = p;
	uint64_t h = hash_bytes(0xcbf29ce484222325u, &s->kernel, sizeof s->kernel);

	h = hash_bytes(h, &s->module, sizeof s->module);
	h = hash_bytes(h, &s->ptx_line, sizeof s->ptx_line);
	h = hash_bytes(h, &s->ptx_col, sizeof s->ptx_col);
	h = hash_bytes(h, &s->ptx, sizeof s->ptx);
	return hash_bytes(h, &s->loc, sizeof s->loc);
}

static bool same_site(const void *p, const void *q)
{
	const struct site *a = p, *b = q;

	return a->kernel == b->kernel && a->module == b->module
		&& a->ptx_line == b->ptx_line && a->ptx_col == b->ptx_col && a->ptx == b->ptx
		&& a->loc == b->loc;
}

/* The slot that holds an equal of `key`, or the free one where it belongs. */
static const void **hash_slot(struct hash *t, const void *key,
	uint64_t (*hash)(const void *), bool (*same)(const void *, const void *))
{
	size_t i;

	if (2 * (t->n + 1) > t->cap) {
		struct hash old = *t;

		t->cap = old.cap ? 2 * old.cap : 256;
		t->at = base_alloc(t->cap * sizeof *t->at);
		for (i = 0; i < old.cap; i++)
			if (old.at[i])
				*hash_slot(t, old.at[i], hash, same) = old.at[i];
		free(old.at);
	}
	for (i = hash(key) * 0x9e3779b97f4a7c15u >> 20;; i++) {
		const void **slot = &t->at[i & (t->cap - 1)];

		if (!*slot || same(*slot, key))
			return slot;
	}
}

/* Strings in the table are visible. */
static const char *copy_string(const char *s)
{
	struct text shown = { 0 };
	const void **slot;

	if (!s)
		return NULL;
	slot = hash_slot(&strings, s, hash_string, same_string);
	if (*slot)
		return *slot;
	if (!visible_is(s, strlen(s))) {
		visible_add(&shown, s, strlen(s));
		s = copy_string(shown.at);
		text_free(&shown);
		return s;
	}
	*slot = arena_strndup(&arena, s, strlen(s));
	strings.n++;
	return *slot;
}

static const struct site_loc *copy_loc(const struct site_loc *l)
{
	struct site_loc key, *copy;
	const void **slot;

	if (!l)
		return NULL;
	key = (struct site_loc){
		.file = copy_string(l->file), .line = l->line, .col = l->col,
		.function = copy_string(l->function),
		.inlined_at = copy_loc(l->inlined_at), .offset = l->offset,
	};
	slot = hash_slot(&locs, &key, hash_loc, same_loc);
	if (!*slot) {
		copy = arena_alloc(&arena, sizeof *copy);
		*copy = key;
		*slot = copy;
		locs.n++;
	}
	return *slot;
}

static struct site copy_site(const struct site *s)
{
	return (struct site){
		.kernel = copy_string(s->kernel ? s->kernel : ""),
		.module = copy_string(s->module ? s->module : ""),
		.ptx_line = s->ptx_line,
		.ptx = copy_string(s->ptx ? s->ptx : ""),
		.loc = copy_loc(s->loc),
		.constant = s->constant,
		.value = s->value,
		.unread = s->unread,
		.unread_load = s->unread_load,
		.ticket = s->ticket,
		.texture = s->texture,
	};
}

static uint32_t append(const struct site *copy)
{
	uint32_t id = atomic_load_explicit(&nsites, memory_order_relaxed);
	struct site *at;

	if (id >> CHUNK_BITS >= MAX_CHUNKS)
		return 0; /* the table is full at 16 M instructions: later ones have id 0 */
	at = atomic_load_explicit(&chunk[id >> CHUNK_BITS], memory_order_relaxed);
	if (!at) {
		at = base_alloc(CHUNK_SITES * sizeof *at);
		atomic_store_explicit(&chunk[id >> CHUNK_BITS], at, memory_order_release);
	}
	at[id & (CHUNK_SITES - 1)] = *copy;
	atomic_store_explicit(&nsites, id + 1, memory_order_release);
	return id;
}

uint32_t site_count(void)
{
	return atomic_load_explicit(&nsites, memory_order_acquire);
}

uint32_t site_add(const struct site *s)
{
	struct site copy;
	uint32_t id;

	pthread_mutex_lock(&lock);
	copy = copy_site(s);
	id = append(&copy);
	pthread_mutex_unlock(&lock);
	return id;
}

uint32_t site_intern(const struct site *s)
{
	struct entry {
		struct site site; /* first: the hash compares sites */
		uint32_t id;
	} *entry;
	struct site copy;
	const void **slot;
	uint32_t id;

	pthread_mutex_lock(&lock);
	copy = copy_site(s);
	slot = hash_slot(&interned, &copy, hash_site, same_site);
	if (!*slot) {
		entry = arena_alloc(&arena, sizeof *entry);
		entry->site = copy;
		entry->id = append(&copy);
		*slot = entry;
		interned.n++;
	}
	id = ((const struct entry *)*slot)->id;
	pthread_mutex_unlock(&lock);
	return id;
}

const struct site *site_get(uint32_t id)
{
	static const struct site unknown = { .kernel = "", .module = "", .ptx = "" };

	if (!id || id >= atomic_load_explicit(&nsites, memory_order_acquire))
		return &unknown;
	return &atomic_load_explicit(&chunk[id >> CHUNK_BITS],
		memory_order_acquire)[id & (CHUNK_SITES - 1)];
}

void site_where(uint32_t id, const char **file, uint32_t *line)
{
	const struct site *s = site_get(id);

	*file = s->loc ? s->loc->file : s->module;
	*line = s->loc ? s->loc->line : s->ptx_line;
}

static const char *const libraries[] = {
#define LIBRARY(part, what) part,
#include "libraries.def"
#undef LIBRARY
};

/* Replaced as a whole, never freed: readers take no lock. */
struct patterns {
	size_t n;
	char *at[];
};
static struct patterns *_Atomic further;

void site_libraries(const char *const *pattern, size_t n)
{
	struct patterns *p = base_alloc(sizeof *p + n * sizeof *p->at);

	p->n = n;
	for (size_t i = 0; i < n; i++)
		p->at[i] = base_strdup(pattern[i]);
	atomic_store_explicit(&further, p, memory_order_release);
}

static bool matches(const char *pattern, const char *file)
{
	return strpbrk(pattern, "*?[") ? !fnmatch(pattern, file, 0) : strstr(file, pattern) != NULL;
}

bool site_in_library(const char *file)
{
	const struct patterns *p = atomic_load_explicit(&further, memory_order_acquire);

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		if (matches(libraries[i], file))
			return true;
	for (size_t i = 0; p && i < p->n; i++)
		if (*p->at[i] && matches(p->at[i], file))
			return true;
	return false;
}

static bool is_cu(const char *file)
{
	const size_t n = strlen(file);

	return n > 3 && !strcmp(file + n - 3, ".cu");
}

const struct site_loc *site_headline(const struct site_loc *l)
{
	const struct site_loc *own = NULL;

	for (const struct site_loc *k = l; k; k = k->inlined_at) {
		if (site_in_library(k->file))
			continue;
		if (is_cu(k->file))
			return k;
		own = own ? own : k;
	}
	return own ? own : l;
}
