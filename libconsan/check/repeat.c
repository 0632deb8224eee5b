/* repeat: see repeat.h. */
#include "global.h"
#include "libconsan/finding/rule_codes.h"

#include <stdlib.h>
#include <string.h>

#define MOST_STREAMS 64u
#define MOST_BYTES   (64ull << 20) /* of the streams of a launch */
#define FEWEST       2u            /* clusters of a launch that is worth it */
/* Clusters that may differ, beyond those that do not: at most this many, and one of REPEATED, as to
 * record a cluster pays when some others repeat it. */
#define MOST_FAILED  32u
#define REPEATED     4u
#define KEPT         1024u
#define MOST_ANSWERS 64u          /* of a step; they are searched one by one */

struct note { uint32_t key[3]; size_t step; }; /* a finding, which was counted */

struct answer { struct repeat_question q; enum repeat_answer is; };

struct extra {                   /* of a few steps */
	struct repeat_stamp stamp;
	bool stamped;
	uint32_t unwritten;      /* ACCESS: what the checker told the producer */
	size_t note, notes, answer, answers;
};

struct step {
	struct event e;          /* its memory is the stream's */
	uint32_t extra;          /* index + 1, or 0 */
};

/* Constant once it is published. */
struct stream {
	const struct stream *parent; /* NULL: the root, which has no steps */
	size_t from;             /* the step of the parent in whose place the first one comes */
	uint32_t nctas;
	bool ended;              /* the cluster ended with the last step */
	struct check_stats stats; /* of the whole cluster */
	struct recorded *steps;  /* and its last steps; NULL: not kept */
	VEC(struct step) step;
	VEC(struct extra) extra;
	VEC(struct note) note;
	VEC(struct answer) answer;
	struct arena memory;
	size_t bytes;
	struct kept { const void *at; size_t bytes; } *kept; /* while it is recorded: a hash */
};

struct repeats {
	pthread_mutex_t lock;
	VEC(struct stream *) stream;
	size_t bytes;
	uint32_t whole, failed;  /* clusters; atomic */
	bool full;
};

struct repeats *repeats_open(void)
{
	struct repeats *r = base_alloc(sizeof *r);

	pthread_mutex_init(&r->lock, NULL);
	return r;
}

static void free_stream(struct stream *s)
{
	free(s->step.at);
	free(s->extra.at);
	free(s->note.at);
	free(s->answer.at);
	free(s->kept);
	recorded_put(s->steps);
	arena_free(&s->memory);
	free(s);
}

void repeats_close(struct repeats *r)
{
	for (size_t i = 0; i < r->stream.n; i++)
		free_stream(r->stream.at[i]);
	free(r->stream.at);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* ---- are two events equal, but for what they access in global memory? ---- */

#define SMALL static inline __attribute__((always_inline))

SMALL bool same_number(uint64_t x, uint64_t y, const struct event *e)
{
	(void)e;
	return x == y;
}

SMALL bool same_lanes(struct ev_lanes x, struct ev_lanes y, const struct event *e)
{
	if (!x.lane != !y.lane || x.halves != y.halves)
		return false;
	if (!x.lane)
		return (x.base == y.base) & (x.stride == y.stride);
	if (memcmp(x.lane, y.lane, 32 * sizeof *x.lane) == 0)
		return true;
	for (uint32_t m = e->lanes; m; m &= m - 1)
		if (x.lane[__builtin_ctz(m)] != y.lane[__builtin_ctz(m)])
			return false;
	return true;
}

/* cp.async's are in global memory, those of bulk copies in shared memory. */
SMALL bool same_sources(const uint64_t *x, const uint64_t *y, const struct event *e)
{
	if (e->kind == EV_CP_ASYNC)
		return true;
	if (!x || !y)
		return x == y;
	return same_lanes((struct ev_lanes){ .lane = x }, (struct ev_lanes){ .lane = y }, e);
}

SMALL bool same_spans(struct ev_spans x, struct ev_spans y, const struct event *e)
{
	(void)e;
	return x.n == y.n && (!x.n || memcmp(x.at, y.at, x.n * sizeof *x.at) == 0);
}

SMALL bool same_gspans(struct ev_gspans x, struct ev_gspans y, const struct event *e)
{
	(void)x, (void)y, (void)e;
	return true;
}

SMALL bool same_areas(struct ev_areas x, struct ev_areas y, const struct event *e)
{
	(void)e;
	return x.n == y.n && (!x.n || memcmp(x.at, y.at, x.n * sizeof *x.at) == 0);
}

SMALL bool same_regs(struct ev_regs x, struct ev_regs y, const struct event *e)
{
	(void)e;
	return x.n == y.n && (!x.n || memcmp(x.at, y.at, x.n * sizeof *x.at) == 0);
}

SMALL bool same_parts(struct ev_parts x, struct ev_parts y, const struct event *e)
{
	(void)e;
	return memcmp(&x, &y, sizeof x) == 0;
}

SMALL bool same_text(const char *x, const char *y, const struct event *e)
{
	(void)e;
	return !x && !y;
}

SMALL bool same_unwritten(uint32_t *x, uint32_t *y, const struct event *e)
{
	(void)e;
	return !x == !y;
}

/* Values count only where lanes or stores race, which is no part of a stream. */
SMALL bool same_stored(const struct ev_stored *x, const struct ev_stored *y, const struct event *e)
{
	(void)x, (void)y, (void)e;
	return true;
}

#define SAME(x, y, e) _Generic((x), struct ev_lanes: same_lanes, const uint64_t *: same_sources, \
	struct ev_spans: same_spans, struct ev_gspans: same_gspans, struct ev_areas: same_areas, \
	struct ev_regs: same_regs, struct ev_parts: same_parts, const char *: same_text, \
	uint32_t *: same_unwritten, const struct ev_stored *: same_stored, \
	default: same_number)(x, y, e)

#define FIELD(type, name, meaning) & SAME(x->name, y->name, e)
#define EV_LIKE(id, member, like_id, like, meaning)
#define EV(id, member, meaning, fields) \
	SMALL bool same_##member(const struct event_##member *x, const struct event_##member *y, \
		const struct event *e) \
	{ \
		(void)x, (void)y, (void)e; \
		return true fields; \
	}
#include "libconsan/event/event.def"
#undef EV_LIKE
#undef EV
#undef FIELD

SMALL bool same_global_access(const struct event_access *x, const struct event_access *y)
{
	return (x->bytes == y->bytes) & (x->element_bytes == y->element_bytes) & (x->space == y->space)
		& (x->mode == y->mode) & (x->sem == y->sem) & (x->scope == y->scope)
		& (x->flags == y->flags) & (x->owner == y->owner);
}

static bool same_event(const struct event *x, const struct event *y)
{
	if ((x->kind != y->kind) | (x->cta != y->cta) | (x->warp != y->warp) | (x->lanes != y->lanes)
		| (x->site != y->site))
		return false;
	if (x->kind == EV_ACCESS && x->access.space == SP_GLOBAL)
		return same_global_access(&x->access, &y->access);
	if (x->kind == EV_CTA_BEGIN) /* not the CTA's number in the grid */
		return x->cta_begin.threads == y->cta_begin.threads
			&& x->cta_begin.shared_bytes == y->cta_begin.shared_bytes;
	switch (x->kind) {
#define EV(id, member, meaning, fields) \
	case EV_##id: return same_##member(&x->member, &y->member, y);
#define EV_LIKE(id, member, like_id, like, meaning) \
	case EV_##id: return same_##like(&x->like, &y->like, y);
#include "libconsan/event/event.def"
#undef EV_LIKE
#undef EV
	case EV_COUNT: break;
	}
	return false;
}

/* May the event be in a stream? Not if it has to do with other clusters, or with the end of a launch
 * that failed. */
static bool repeatable(const struct event *e)
{
	switch (e->kind) {
	case EV_OBSERVED: case EV_TENSOR_MAP: case EV_HEAP: case EV_GRID_LAUNCH: case EV_GRIDDEPCONTROL:
	case EV_FAULT: case EV_BLOCKED: case EV_HANG:
		return false;
	case EV_ACCESS:
		return e->access.space != SP_GLOBAL || !access_is_strong(&e->access);
	case EV_FENCE:
		return e->fence.sem != SEM_SC;
	case EV_FENCE_PROXY:
		return e->fence_proxy.proxy < PROXY_TENSORMAP_RELEASE;
	default:
		return true;
	}
}

/* ---- recording ---- */

/* A copy that the stream owns. Loops have the same addresses again and again. */
static const void *keep_bytes(struct stream *s, const void *at, size_t bytes)
{
	uint64_t hash = bytes;
	struct kept *k;
	void *copy;

	if (!bytes || !at)
		return NULL;
	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		uint64_t word;

		memcpy(&word, (const char *)at + i, sizeof word);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	k = &s->kept[hash % KEPT];
	if (k->bytes == bytes && memcmp(k->at, at, bytes) == 0)
		return k->at;
	copy = arena_alloc(&s->memory, bytes);
	memcpy(copy, at, bytes);
	s->bytes += bytes;
	*k = (struct kept){ copy, bytes };
	return copy;
}

static void keep_number(struct stream *s, void *field)
{
	(void)s, (void)field;
}

static void keep_lanes(struct stream *s, void *field)
{
	struct ev_lanes *x = field;

	x->lane = keep_bytes(s, x->lane, 32 * sizeof *x->lane);
}

static void keep_sources(struct stream *s, void *field)
{
	const uint64_t **x = field;

	*x = keep_bytes(s, *x, 32 * sizeof **x);
}

static void keep_spans(struct stream *s, void *field)
{
	struct ev_spans *x = field;

	x->at = keep_bytes(s, x->at, x->n * sizeof *x->at);
}

static void keep_gspans(struct stream *s, void *field)
{
	(void)s;
	*(struct ev_gspans *)field = (struct ev_gspans){ 0 };
}

static void keep_areas(struct stream *s, void *field)
{
	struct ev_areas *x = field;

	x->at = keep_bytes(s, x->at, x->n * sizeof *x->at);
}

static void keep_regs(struct stream *s, void *field)
{
	struct ev_regs *x = field;

	x->at = keep_bytes(s, x->at, x->n * sizeof *x->at);
}

static void keep_stored(struct stream *s, void *field)
{
	(void)s;
	*(const struct ev_stored **)field = NULL;
}

#define KEEP(x) _Generic((x), struct ev_lanes: keep_lanes, const uint64_t *: keep_sources, \
	struct ev_spans: keep_spans, struct ev_gspans: keep_gspans, struct ev_areas: keep_areas, \
	struct ev_regs: keep_regs, const struct ev_stored *: keep_stored, \
	default: keep_number)(s, &(x))

#define FIELD(type, name, meaning) KEEP(x->name);
#define EV_LIKE(id, member, like_id, like, meaning)
#define EV(id, member, meaning, fields) \
	static void keep_##member(struct stream *s, struct event_##member *x) \
	{ \
		(void)s, (void)x; \
		fields \
	}
#include "libconsan/event/event.def"
#undef EV_LIKE
#undef EV
#undef FIELD

static void keep_event(struct stream *s, struct event *e)
{
	if (e->kind == EV_ACCESS && e->access.space == SP_GLOBAL)
		e->access.at.lane = NULL;
	if (e->kind == EV_CP_ASYNC)
		e->cp_async.source = NULL;
	switch (e->kind) {
#define EV(id, member, meaning, fields) case EV_##id: keep_##member(s, &e->member); break;
#define EV_LIKE(id, member, like_id, like, meaning) case EV_##id: keep_##like(s, &e->like); break;
#include "libconsan/event/event.def"
#undef EV_LIKE
#undef EV
	case EV_COUNT: break;
	}
}

static struct extra *extra_of(struct stream *s)
{
	struct step *last = &s->step.at[s->step.n - 1];

	if (!last->extra) {
		vec_push(&s->extra, ((struct extra){ .note = s->note.n, .answer = s->answer.n }));
		s->bytes += sizeof(struct extra);
		last->extra = (uint32_t)s->extra.n;
	}
	return &s->extra.at[last->extra - 1];
}

void repeat_access(struct cluster *c, const struct warp *w, uint32_t lanes,
	const struct repeat_stamp *s)
{
	struct repeat *r = &c->repeat;
	bool together = false;
	struct extra *x;

	if (r->state != REPEAT_RECORDS)
		return;
	for (unsigned i = 0; i < w->ngroups; i++)
		together |= !(lanes & ~w->group[i].lanes);
	x = extra_of(r->stream);
	r->broken |= !together || x->stamped;
	x->stamp = *s;
	x->stamped = true;
}

/* Of races of two writes the severity depends on the values. */
void repeat_finding(struct cluster *c, const uint32_t key[3])
{
	struct repeat *r = &c->repeat;
	struct note note;

	if (r->state != REPEAT_RECORDS || (!r->noted && !r->ending))
		return;
	r->broken |= r->ending || key[0] == CS101 || key[0] == CS103;
	if (r->broken)
		return;
	extra_of(r->stream)->notes++;
	note = (struct note){ .step = r->stream->step.n - 1 };
	memcpy(note.key, key, sizeof note.key);
	vec_push(&r->stream->note, note);
	r->stream->bytes += sizeof note;
}

bool repeat_keeps_answers(const struct cluster *c)
{
	return c->repeat.state == REPEAT_RECORDS && !c->repeat.ending;
}

static struct answer *find_answer(const struct stream *s, const struct extra *x,
	const struct repeat_question *q)
{
	for (size_t i = 0; i < x->answers; i++) {
		struct answer *a = &s->answer.at[x->answer + i];

		if (a->q.old_agent == q->old_agent && a->q.old_epoch == q->old_epoch && a->q.plane == q->plane
			&& a->q.now_agent == q->now_agent && a->q.now_epoch == q->now_epoch)
			return a;
	}
	return NULL;
}

void repeat_answered(struct cluster *c, const struct repeat_question *q, enum repeat_answer is)
{
	struct stream *s = c->repeat.stream;
	struct answer *a;
	struct extra *x;

	if (!repeat_keeps_answers(c))
		return;
	x = extra_of(s);
	a = find_answer(s, x, q);
	if (a && a->is != is)
		a->is = REPEAT_UNANSWERED;
	if (a || x->answers == MOST_ANSWERS)
		return;
	vec_push(&s->answer, ((struct answer){ *q, is }));
	x->answers++;
	s->bytes += sizeof(struct answer);
}

static bool has_twin(const struct repeats *k, const struct stream *s)
{
	for (size_t i = 0; i < k->stream.n; i++) {
		const struct stream *t = k->stream.at[i];

		if (t->parent == s->parent && t->from == s->from && t->step.n
			&& same_event(&t->step.at[0].e, &s->step.at[0].e))
			return true;
	}
	return false;
}

/* Other clusters may follow what was recorded, up to here. */
static void publish(struct cluster *c, bool ended)
{
	struct repeats *k = c->check->repeats;
	struct stream *s = c->repeat.stream;

	c->repeat.state = REPEAT_NOT;
	c->repeat.stream = NULL;
	free(s->kept);
	s->kept = NULL;
	s->ended = ended;
	pthread_mutex_lock(&k->lock);
	if (s->step.n && k->stream.n < MOST_STREAMS && k->bytes + s->bytes <= MOST_BYTES && !has_twin(k, s)) {
		vec_push(&k->stream, s);
		k->bytes += s->bytes;
		s = NULL;
	}
	k->full |= k->stream.n == MOST_STREAMS || k->bytes > MOST_BYTES / 2;
	pthread_mutex_unlock(&k->lock);
	if (s)
		free_stream(s);
}

static bool is_worth_it(const struct cluster *c)
{
	const struct check *k = c->check;
	const struct repeats *r = k->repeats;
	const uint64_t clusters = cluster_whole(&k->config.launch);
	const uint64_t most = clusters < MOST_FAILED * REPEATED ? clusters / REPEATED : MOST_FAILED;

	if (!k->config.repeat || !k->config.launch.apart || clusters < FEWEST)
		return false;
	if (k->global && (k->global->grids.n || k->global->start))
		return false;
	return __atomic_load_n(&r->failed, __ATOMIC_RELAXED)
		<= __atomic_load_n(&r->whole, __ATOMIC_RELAXED) + most;
}

/* From this step of the stream that was followed on. */
static void record_from(struct cluster *c, const struct stream *parent, size_t from)
{
	struct repeats *k = c->check->repeats;
	struct stream *s;
	bool full;

	if (!is_worth_it(c))
		return;
	pthread_mutex_lock(&k->lock);
	full = k->full;
	pthread_mutex_unlock(&k->lock);
	if (full)
		return;
	s = base_alloc(sizeof *s);
	s->parent = parent;
	s->from = from;
	s->nctas = c->nctas;
	s->kept = base_alloc(KEPT * sizeof *s->kept);
	c->repeat.stream = s;
	c->repeat.state = REPEAT_RECORDS;
}

static void record(struct cluster *c, const struct event *e)
{
	struct repeat *r = &c->repeat;
	struct stream *s = r->stream;

	if (!repeatable(e) || s->bytes > MOST_BYTES) {
		publish(c, false);
		check_event(c, e);
		return;
	}
	vec_push(&s->step, ((struct step){ .e = *e }));
	s->bytes += sizeof(struct step);
	keep_event(s, &s->step.at[s->step.n - 1].e);
	check_flush(c, e);
	r->noted = true;
	check_handle(c, e);
	r->noted = false;
	if (r->broken) {
		s->step.n--;
		while (s->note.n && s->note.at[s->note.n - 1].step == s->step.n)
			s->note.n--;
		publish(c, false);
	} else if (e->kind == EV_ACCESS && e->access.unwritten && *e->access.unwritten) {
		extra_of(s)->unwritten = *e->access.unwritten;
	}
}

/* ---- following ---- */

/* The stream that continues this one here with this event; NULL: none. */
static struct stream *branch_of(struct repeats *k, const struct stream *s, size_t at,
	const struct event *e)
{
	struct stream *found = NULL;

	pthread_mutex_lock(&k->lock);
	for (size_t i = 0; i < k->stream.n && !found; i++) {
		struct stream *t = k->stream.at[i];

		if (t->parent == s && t->from == at && t->step.n && same_event(&t->step.at[0].e, e))
			found = t;
	}
	pthread_mutex_unlock(&k->lock);
	return found;
}

static const struct step *next_step(struct cluster *c, const struct event *e)
{
	struct repeat *r = &c->repeat;
	struct stream *s = r->stream;

	if (r->at < s->step.n && same_event(&s->step.at[r->at].e, e))
		return &s->step.at[r->at];
	s = branch_of(c->check->repeats, s, r->at, e);
	if (!s)
		return NULL;
	r->stream = s;
	r->at = 0;
	return &s->step.at[0];
}

/* The launch's examples of these findings are of lower clusters, so that one more is only counted. */
static bool are_known(struct cluster *c, const struct stream *s, const struct extra *x)
{
	struct check *k = c->check;
	bool known = true;

	if (!x->notes)
		return true;
	pthread_mutex_lock(&k->lock);
	for (size_t i = 0; i < x->notes; i++)
		known &= report_is_of_lower(k, s->note.at[x->note + i].key, c->info.id);
	pthread_mutex_unlock(&k->lock);
	return known;
}

enum repeat_answer repeat_ask(const struct cluster *c, const struct repeat_question *q)
{
	const struct repeat *r = &c->repeat;
	const struct stream *s = r->stream;
	const struct answer *a;

	if (r->state != REPEAT_FOLLOWS || r->at == s->step.n || !s->step.at[r->at].extra)
		return REPEAT_UNANSWERED;
	a = find_answer(s, &s->extra.at[s->step.at[r->at].extra - 1], q);
	return a ? a->is : REPEAT_UNANSWERED;
}

static void access_global(struct cluster *c, const struct event *e, const struct repeat_stamp *stamp)
{
	struct warp *w = warp_of(c, e);

	c->repeat.stamp = stamp;
	c->repeat.inside = e;
	if (e->kind == EV_ACCESS)
		global_access(c, e);
	else if (e->kind == EV_CP_ASYNC)
		global_copy(c, e);
	else if (e->bulk.multicast || e->bulk.mode & MODE_WRITE)
		global_load(c, e, w, (unsigned)__builtin_ctz(e->lanes), 0);
	else
		global_store(c, e, w, (unsigned)__builtin_ctz(e->lanes));
	c->repeat.stamp = NULL;
	c->repeat.inside = NULL;
}

/* False: the event is left to be handled. */
static bool follow(struct cluster *c, const struct event *e, const struct step *x)
{
	struct repeat *r = &c->repeat;
	const struct extra *more = x->extra ? &r->stream->extra.at[x->extra - 1] : NULL;

	if (more && !are_known(c, r->stream, more))
		repeat_leave(c);
	check_flush(c, e);
	if (r->state != REPEAT_FOLLOWS)
		return false;
	if (more && more->stamped && c->global)
		access_global(c, e, &more->stamp);
	if (r->state != REPEAT_FOLLOWS)
		return true; /* with the rest of the event */
	if (more && more->unwritten)
		*e->access.unwritten |= more->unwritten;
	r->at++;
	return true;
}

static void replay(struct cluster *c, const struct stream *s, size_t n)
{
	uint32_t told = 0;

	if (s->parent)
		replay(c, s->parent, s->from);
	for (size_t i = 0; i < n; i++) {
		struct event e = s->step.at[i].e;

		if (e.kind == EV_ACCESS && e.access.unwritten)
			e.access.unwritten = &told;
		c->stats.events++;
		c->now = &e;
		recorder_event(c->info.recorder, &e);
		check_handle(c, &e);
	}
}

void repeat_leave(struct cluster *c)
{
	struct repeat *r = &c->repeat;
	const struct event *now = c->now, *inside = r->inside;
	const uint64_t events = c->stats.events;

	if (r->state != REPEAT_FOLLOWS)
		return;
	r->state = REPEAT_REPLAYS;
	r->untouched = false;
	r->stamp = NULL;
	r->inside = NULL;
	c->stats = (struct check_stats){ 0 };
	replay(c, r->stream, r->at);
	c->stats.events = events;
	c->now = now;
	if (inside) {
		recorder_event(c->info.recorder, inside);
		check_handle(c, inside);
	}
	r->state = REPEAT_NOT;
	__atomic_fetch_add(&c->check->repeats->failed, 1, __ATOMIC_RELAXED);
}

void repeat_event(struct cluster *c, const struct event *e)
{
	struct repeat *r = &c->repeat;
	const struct step *x;

	if (r->state == REPEAT_FOLLOWS) {
		x = next_step(c, e);
		if (x && follow(c, e, x))
			return;
		if (!x) {
			const struct stream *s = r->stream;
			const size_t at = r->at;

			repeat_leave(c);
			record_from(c, s, at);
		}
	}
	recorder_event(c->info.recorder, e);
	if (r->state == REPEAT_RECORDS)
		record(c, e);
	else
		check_event(c, e);
}

/* ---- clusters ---- */

static struct stream *root_of(struct repeats *k, uint32_t nctas)
{
	struct stream *s = NULL;

	pthread_mutex_lock(&k->lock);
	for (size_t i = 0; i < k->stream.n && !s; i++)
		if (!k->stream.at[i]->parent && k->stream.at[i]->nctas == nctas)
			s = k->stream.at[i];
	if (!s) {
		s = base_alloc(sizeof *s);
		s->nctas = nctas;
		vec_push(&k->stream, s);
	}
	pthread_mutex_unlock(&k->lock);
	return s;
}

void repeat_begin(struct cluster *c)
{
	struct repeat *r = &c->repeat;

	r->state = REPEAT_NOT;
	r->broken = r->noted = r->ending = false;
	r->untouched &= is_worth_it(c);
	if (!r->untouched)
		return;
	r->state = REPEAT_FOLLOWS;
	r->stream = root_of(c->check->repeats, c->nctas);
	r->at = 0;
}

static void count_findings(struct cluster *c, const struct stream *s, size_t steps)
{
	if (s->parent)
		count_findings(c, s->parent, s->from);
	for (size_t i = 0; i < s->note.n && s->note.at[i].step < steps; i++)
		report_one_more(c, s->note.at[i].key);
}

bool repeat_whole(struct cluster *c)
{
	struct repeat *r = &c->repeat;

	r->ending = true;
	if (r->state != REPEAT_FOLLOWS)
		return false;
	if (!r->stream->ended || r->at < r->stream->step.n) {
		repeat_leave(c);
		return false;
	}
	count_findings(c, r->stream, r->at);
	c->stats = r->stream->stats;
	c->space.joins = r->stream->stats.joins;
	__atomic_fetch_add(&c->check->repeats->whole, 1, __ATOMIC_RELAXED);
	return true;
}

void repeat_end(struct cluster *c)
{
	struct repeat *r = &c->repeat;
	struct recorded *same = r->state == REPEAT_FOLLOWS ? r->stream->steps : NULL;
	struct recorded *steps = recorder_end(c->info.recorder, c->global, same,
		r->state == REPEAT_RECORDS);

	c->info.recorder = NULL;
	if (r->state != REPEAT_RECORDS)
		return;
	r->stream->steps = steps;
	r->stream->stats = c->stats;
	r->stream->stats.joins = c->space.joins;
	for (uint32_t i = 0; i < c->nctas; i++)
		r->stream->stats.granules += c->cta[i].shadow.visits + c->cta[i].tmem.visits;
	publish(c, !r->broken);
}
