/* reads: see reads.h. Locations, their messages, and the accesses to them. */
#include "reads.h"

#include "internal.h"

#include <stdlib.h>

#define OVERLOOKED 4096u /* loads of the location after which a message is visible to all */
#define LOCATIONS 131072u
#define LIVE 1024u     /* locations with more than one message */
#define MARKS 65536u

struct reads {
	enum exec_reads which;
	uint64_t rng;
	uint32_t time, event;
	bool off;                /* too many or too large locations: from now on the newest value */
	VEC(struct reads_location) location;
	VEC(uint32_t) floor;     /* by location: see view.h */
	uint32_t *bucket, nbuckets; /* by 16 bytes: 1 + the first location there, or 0 */
	uint64_t mark[MARKS / 64]; /* by 16 bytes: may there be locations? */
	uint32_t live[LIVE], nlive; /* a ring */
	struct view *sc;         /* of fence.sc at gpu scope or wider */
	uint64_t value[LANES][READS_ELEMENTS]; /* of the newest load */
	/* lanes of one instruction mostly have the same view and change it in the same way */
	struct { struct view *from, *to; uint32_t location, time; } newest;
};

/* ---- views of a thread ---- */

void reads_join(struct reads *r, struct view **to, struct view *from)
{
	*to = view_join(*to, from, r->floor.at);
}

static void raise(struct reads *r, struct view **v, uint32_t location, uint32_t time)
{
	struct view *was = view_get(*v);

	if (r->newest.location == location && r->newest.time == time && r->newest.from == was) {
		view_put(*v);
		*v = view_get(r->newest.to);
		view_put(was);
		return;
	}
	*v = view_raise(*v, location, time, r->floor.at);
	view_put(r->newest.from);
	view_put(r->newest.to);
	r->newest.from = was;
	r->newest.to = view_get(*v);
	r->newest.location = location;
	r->newest.time = time;
}

void reads_sc(struct reads *r, struct reads_cluster *k, struct thread *t, enum ev_scope scope)
{
	t->sc = true;
	reads_join(r, &t->now, k->sc);
	if (reads_reach(scope) == 2) {
		reads_join(r, &t->now, r->sc);
		reads_join(r, &r->sc, t->now);
	}
	reads_join(r, &k->sc, t->now);
}

void reads_clear(struct thread *t)
{
	view_put(t->now);
	for (unsigned d = 0; d < READS_DISTANCES; d++) {
		view_put(t->seen[d]);
		view_put(t->released[d]);
	}
	*t = (struct thread){ 0 };
}

/* ---- locations ---- */

static uint64_t hash(uint64_t at)
{
	return (at / 16) * 0x9e3779b97f4a7c15ull;
}

static bool marked(const struct reads *r, uint64_t at)
{
	const uint64_t i = hash(at) >> 48;

	return r->mark[i / 64] >> i % 64 & 1;
}

/* The number in the bucket is that of a location of these 16 bytes. */
static uint32_t *bucket_of(const struct reads *r, uint64_t at)
{
	uint64_t i = hash(at) >> 32;

	for (;; i++) {
		uint32_t *b = &r->bucket[i & (r->nbuckets - 1)];

		if (!*b || r->location.at[*b - 1].at / 16 == at / 16)
			return b;
	}
}

static void grow(struct reads *r)
{
	uint32_t *was = r->bucket, n = r->nbuckets;

	r->nbuckets = n ? 2 * n : 256;
	r->bucket = base_alloc(r->nbuckets * sizeof *r->bucket);
	for (uint32_t i = 0; i < n; i++)
		if (was[i])
			*bucket_of(r, r->location.at[was[i] - 1].at) = was[i];
	free(was);
}

/* 1 + the first location of the 16 bytes; 0: none */
static uint32_t first_at(const struct reads *r, uint64_t at)
{
	return r->nbuckets && marked(r, at) ? *bucket_of(r, at) : 0;
}

static struct reads_location *find(struct reads *r, uint64_t at, unsigned size)
{
	for (uint32_t i = first_at(r, at); i; i = r->location.at[i - 1].next) {
		struct reads_location *l = &r->location.at[i - 1];

		if (l->at == at && l->size == size)
			return l;
	}
	return NULL;
}

static uint32_t number_of(const struct reads *r, const struct reads_location *l)
{
	return (uint32_t)(l - r->location.at);
}

static void message_clear(struct message *m)
{
	for (unsigned d = 0; d < READS_DISTANCES; d++)
		view_put(m->released[d]);
	*m = (struct message){ 0 };
}

static void drop_oldest(struct reads *r, struct reads_location *l, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		message_clear(&l->m[i]);
	memmove(l->m, l->m + n, (l->n - n) * sizeof *l->m);
	l->n -= (uint8_t)n;
	r->floor.at[number_of(r, l)] = l->m[0].time;
}

static void keep_newest(struct reads *r, struct reads_location *l)
{
	if (l->n > 1)
		drop_oldest(r, l, l->n - 1u);
}

static void now_live(struct reads *r, const struct reads_location *l)
{
	uint32_t *slot = &r->live[r->nlive++ % LIVE];

	if (r->nlive > LIVE)
		keep_newest(r, &r->location.at[*slot]);
	*slot = number_of(r, l);
}

static bool overlap(const struct reads_location *l, uint64_t at, uint64_t bytes)
{
	return l->at < at + bytes && at < l->at + l->size;
}

/* Of overlapping locations of different sizes only the newest value is read. */
static bool mixed(struct reads *r, uint64_t at, unsigned size)
{
	bool any = false;

	for (uint32_t i = first_at(r, at); i; i = r->location.at[i - 1].next) {
		struct reads_location *l = &r->location.at[i - 1];

		if (!overlap(l, at, size) || (l->at == at && l->size == size))
			continue;
		keep_newest(r, l);
		any = l->newest_only = true;
	}
	return any;
}

/* NULL: from now on everything is read as it is. */
static struct reads_location *make(struct reads *r, uint64_t at, unsigned size)
{
	const bool newest_only = mixed(r, at, size);
	struct reads_location *l = find(r, at, size);
	uint64_t i = hash(at) >> 48;
	uint32_t *b;

	if (l) {
		l->newest_only |= newest_only;
		return l;
	}
	if (r->location.n == LOCATIONS || size > 8) {
		r->off = true;
		return NULL;
	}
	if (2 * (r->location.n + 1) > r->nbuckets)
		grow(r);
	r->mark[i / 64] |= 1ull << i % 64;
	b = bucket_of(r, at);
	vec_push(&r->floor, 0);
	vec_push(&r->location, ((struct reads_location){ .at = at, .size = (uint8_t)size,
		.next = *b, .newest_only = newest_only, .n = 1 }));
	*b = (uint32_t)r->location.n;
	return &r->location.at[r->location.n - 1];
}

/* A new message, whose value will be in memory */
static struct message *push(struct reads *r, struct reads_location *l)
{
	if (l->event == r->event) /* by another lane: values in between are not known */
		return &l->m[l->n - 1];
	l->event = r->event;
	memcpy(&l->m[l->n - 1].value, (const void *)(uintptr_t)l->at, l->size);
	if (l->n == ARRAY_SIZE(l->m))
		drop_oldest(r, l, 1);
	l->m[l->n++] = (struct message){ 0 };
	if (l->newest_only)
		keep_newest(r, l);
	else if (l->n == 2)
		now_live(r, l);
	return &l->m[l->n - 1];
}

/* ---- all locations of a range ---- */

typedef void (*location_fn)(struct reads *r, struct reads_location *l, struct thread *t);

static void each_in(struct reads *r, uint64_t at, uint64_t bytes, location_fn f, struct thread *t)
{
	if (bytes / 16 > r->location.n) {
		for (size_t i = 0; i < r->location.n; i++)
			if (overlap(&r->location.at[i], at, bytes))
				f(r, &r->location.at[i], t);
		return;
	}
	for (uint64_t p = at; p < at + bytes; p = (p | 15) + 1)
		for (uint32_t i = first_at(r, p); i; i = r->location.at[i - 1].next)
			if (overlap(&r->location.at[i - 1], at, bytes))
				f(r, &r->location.at[i - 1], t);
}

/* ---- strong accesses of one lane ---- */

struct reader {
	struct reads_cluster *k;
	struct thread *t;
	uint32_t cluster;
	uint16_t cta;
	unsigned reach;
	bool acquires;
};

static struct reader reader_of(struct reads_cluster *k, unsigned cta, unsigned warp, unsigned lane,
	enum ev_sem sem, enum ev_scope scope)
{
	return (struct reader){ .k = k, .cluster = k->cluster->info.id, .cta = (uint16_t)cta,
		.t = &k->thread[(cta * k->cluster->info.warps_per_cta + warp) * LANES + lane],
		.reach = reads_reach(scope), .acquires = sem_acquires(sem) };
}

static void reads_message(const struct reader *x, const struct reads_location *l, unsigned i)
{
	struct reads *r = x->k->reads;
	const struct message *m = &l->m[i];
	const unsigned distance = m->chain ? 0 : m->cluster != x->cluster ? 2 : m->cta != x->cta;

	raise(r, &x->t->now, number_of(r, l), m->time);
	x->t->releases |= m->hands_over;
	reads_join(r, x->acquires && distance <= x->reach ? &x->t->now : &x->t->seen[distance],
		m->released[distance]);
	for (unsigned d = 0; x->acquires && d <= x->reach; d++)
		reads_join(r, &x->t->now, x->t->seen[d]); /* acquire pattern 2 */
}

static void write_lane(const struct reader *x, const struct event_access *a, uint64_t at,
	unsigned size)
{
	const bool rmw = a->mode == MODE_RMW;
	struct reads *r = x->k->reads;
	struct reads_location *l = make(r, at, size);
	struct message before = { 0 }, *m;

	if (!l)
		return;
	if (rmw && !(a->flags & ACCESS_REDUCTION))
		reads_message(x, l, l->n - 1u);
	if (rmw || l->event == r->event) {
		before = l->m[l->n - 1];
		for (unsigned d = 0; d < READS_DISTANCES; d++)
			view_get(before.released[d]);
	}
	m = push(r, l);
	m->time = ++r->time;
	m->cluster = x->cluster;
	m->cta = x->cta;
	raise(r, &x->t->now, number_of(r, l), m->time);
	for (unsigned d = 0; sem_releases(a->sem) && d <= x->reach; d++)
		reads_join(r, &x->t->released[d], x->t->now);
	x->t->releases |= sem_releases(a->sem);
	m->hands_over = x->t->releases || before.hands_over;
	m->chain = before.hands_over;
	for (unsigned d = 0; d < READS_DISTANCES; d++) {
		reads_join(r, &m->released[d], x->t->released[d]);
		reads_join(r, &m->released[d], before.released[d]);
		view_put(before.released[d]);
	}
	if (l->n == 1)
		r->floor.at[number_of(r, l)] = m->time;
}

uint64_t reads_shared(const struct reads_cluster *k, unsigned cta, uint64_t at)
{
	return (uintptr_t)k->cluster->cta[cta].shared + at;
}

static uint64_t place(const struct reads_cluster *k, const struct event_access *a, unsigned lane)
{
	const uint64_t at = lane_addr(&a->at, lane);

	return a->space == SP_SHARED ? reads_shared(k, a->owner, at) : at;
}

void reads_write(struct reads_cluster *k, const struct event *e)
{
	const struct event_access *a = &e->access;
	const unsigned size = a->element_bytes ? a->element_bytes : a->bytes;

	k->reads->event++;
	for EACH_LANE(l, e->lanes) {
		const struct reader x = reader_of(k, e->cta, e->warp, l, a->sem, a->scope);

		for (unsigned at = 0; at < a->bytes; at += size)
			write_lane(&x, a, place(k, a, l) + at, size);
	}
}

/* The messages that the lane may read, one bit each. */
static uint32_t candidates(const struct reader *x, const struct reads_location *l)
{
	const struct reads *r = x->k->reads;
	const uint32_t number = number_of(r, l), n = l->n - 1u;
	uint32_t from = view_from(x->t->now, number), allowed = 1u << n, lo = 0;

	if (x->t->sc) {
		const uint32_t cluster = view_from(x->k->sc, number), all = view_from(r->sc, number);

		from = cluster > from ? cluster : from;
		from = all > from ? all : from;
	}
	while (lo < n && (l->m[lo + 1].time <= from || l->m[lo + 1].overlooked > OVERLOOKED))
		lo++;
	for (uint32_t i = lo; i < n; i++)
		allowed |= (uint32_t)!l->m[i].hands_over << i;
	return allowed;
}

/* The message that the lane reads. */
static unsigned choose(const struct reader *x, struct reads_location *l)
{
	struct reads *r = x->k->reads;
	uint32_t allowed = candidates(x, l), pick = 0;
	unsigned i;

	r->rng = r->rng * 6364136223846793005u + 1442695040888963407u;
	if (r->which == READS_RANDOM)
		pick = (uint32_t)(r->rng >> 33) % (uint32_t)__builtin_popcount(allowed);
	while (pick--)
		allowed &= allowed - 1;
	i = (unsigned)__builtin_ctz(allowed);
	for (unsigned k = i + 1; k < l->n; k++)
		l->m[k].overlooked++;
	return i;
}

static void overlook(struct overlooked *o, uint32_t location)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (o->at[i] == location)
			return;
	if (o->n == ARRAY_SIZE(o->at))
		o->more = true;
	else
		o->at[o->n++] = location;
}

/* One element of a load by one lane */
struct element {
	struct reads_location *l;  /* NULL: no message is kept */
	uint64_t at;
	unsigned pick;             /* the message that it reads */
};

static bool is_old(const struct element *e)
{
	return e->l && e->pick < e->l->n - 1u;
}

/* The event of a load says of all its elements that they are older values, or of none. So if one of
 * them reads a newest value that a thread has written, all read the newest one. */
static void agree(struct element e[], unsigned n)
{
	bool newest = false;

	for (unsigned i = 0; i < n; i++)
		newest |= e[i].l && !is_old(&e[i]) && e[i].l->m[e[i].pick].time;
	for (unsigned i = 0; i < n && newest; i++)
		e[i].pick = e[i].l ? e[i].l->n - 1u : 0;
}

/* True: it reads older values. */
static bool load_lane(const struct reader *x, const struct warp *w, uint64_t at, unsigned size,
	unsigned n, uint64_t value[])
{
	struct reads *r = x->k->reads;
	struct element e[READS_ELEMENTS];
	bool old = false;

	for (unsigned i = 0; i < n; i++) {
		e[i].at = at + i * size;
		mixed(r, e[i].at, size);
		e[i].l = find(r, e[i].at, size);
		e[i].pick = !e[i].l ? 0 : r->off ? e[i].l->n - 1u : choose(x, e[i].l);
	}
	agree(e, n);
	for (unsigned i = 0; i < n; i++) {
		if (e[i].l)
			reads_message(x, e[i].l, e[i].pick);
		if (is_old(&e[i])) {
			value[i] = e[i].l->m[e[i].pick].value;
			overlook(&x->k->overlooked[w->cta->rank * x->k->cluster->info.warps_per_cta + w->id],
				number_of(r, e[i].l));
			old = true;
		} else if (n > 1) {
			value[i] = 0;
			memcpy(&value[i], (const void *)(uintptr_t)e[i].at, size);
		}
	}
	return old;
}

uint32_t reads_load(struct warp *w, uint32_t lanes, const uint64_t addr[LANES], unsigned size,
	unsigned elements, enum ev_sem sem, enum ev_scope scope)
{
	struct reads_cluster *k = w->cluster->reads;
	uint32_t old = 0;

	for EACH_LANE(lane, lanes) {
		const struct reader x = reader_of(k, w->cta->rank, w->id, lane, sem, scope);

		old |= (uint32_t)load_lane(&x, w, addr[lane], size, elements,
			k->reads->value[lane]) << lane;
	}
	return old;
}

uint64_t reads_value(const struct warp *w, unsigned lane, unsigned element)
{
	return w->cluster->reads->reads->value[lane][element];
}

static bool show_newest(struct reads_cluster *k, uint32_t warp, uint32_t location)
{
	struct reads *r = k->reads;
	const struct reads_location *l = &r->location.at[location];

	for (unsigned lane = 0; l->n > 1 && lane < LANES; lane++)
		raise(r, &k->thread[warp * LANES + lane].now, location, l->m[l->n - 1].time);
	return l->n > 1;
}

bool reads_spun(struct warp *w)
{
	struct reads_cluster *k = w->cluster->reads;
	const uint32_t warp = k ? w->cta->rank * k->cluster->info.warps_per_cta + w->id : 0;
	struct overlooked o;
	bool any = false;

	if (!k || !k->overlooked[warp].n)
		return false;
	o = k->overlooked[warp];
	k->overlooked[warp] = (struct overlooked){ 0 };
	for (uint32_t i = 0; i < o.n; i++)
		any |= show_newest(k, warp, o.at[i]);
	for (uint32_t i = 0; o.more && i < k->reads->location.n; i++)
		any |= show_newest(k, warp, i);
	return any;
}

/* ---- weak accesses and other owners ---- */

static void read_weakly(struct reads *r, struct reads_location *l, struct thread *t)
{
	raise(r, &t->now, number_of(r, l), l->m[l->n - 1].time);
}

static void write_weakly(struct reads *r, struct reads_location *l, struct thread *t)
{
	keep_newest(r, l);
	read_weakly(r, l, t);
}

/* What a weak access reads or writes is the newest value, and the thread has seen it. After a
 * write, older values are not read any more. */
void reads_weak(struct reads_cluster *k, const struct event *e)
{
	const struct event_access *a = &e->access;

	if (a->flags & ACCESS_NONCOHERENT || !k->reads->location.n)
		return;
	for EACH_LANE(l, e->lanes)
		each_in(k->reads, place(k, a, l), a->bytes,
			a->mode & MODE_WRITE ? write_weakly : read_weakly,
			reader_of(k, e->cta, e->warp, l, a->sem, a->scope).t);
}

static void forget(struct reads *r, struct reads_location *l, struct thread *t)
{
	(void)t;
	keep_newest(r, l);
	l->newest_only = true;
}

void reads_forget(struct reads_cluster *k, uint64_t at, uint64_t bytes)
{
	each_in(k->reads, at, bytes, forget, NULL);
}

static void renew(struct reads *r, struct reads_location *l, struct thread *t)
{
	(void)t;
	keep_newest(r, l);
	message_clear(&l->m[0]);
	r->floor.at[number_of(r, l)] = r->time;
	l->newest_only = false;
}

void reads_renew(struct reads *r, uint64_t at, uint64_t bytes)
{
	each_in(r, at, bytes, renew, NULL);
}

/* ---- a launch ---- */

struct reads *reads_open(const struct exec_launch *l, uint64_t id)
{
	struct reads *r;

	if (l->reads == READS_NEWEST)
		return NULL;
	r = base_alloc(sizeof *r);
	r->which = l->reads;
	r->rng = (l->seed + 1) * 0x9e3779b97f4a7c15ull ^ id * 0xbf58476d1ce4e5b9ull;
	return r;
}

bool reads_given_up(const struct reads *r)
{
	return r->off;
}

void reads_close(struct reads *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->location.n; i++)
		for (unsigned k = 0; k < r->location.at[i].n; k++)
			message_clear(&r->location.at[i].m[k]);
	view_put(r->newest.from);
	view_put(r->newest.to);
	view_put(r->sc);
	vec_free(&r->location);
	vec_free(&r->floor);
	free(r->bucket);
	free(r);
}
