/* save: the writing half of io.h. */
#include "libconsan/base/base.h"
#include "chunk.h"
#include "code.h"
#include "fields.h"
#include "io.h"
#include "site.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define CHUNK_RAW (1u << 20) /* an EVENTS chunk is closed beyond this many bytes */
#define LEVEL 1

struct event_writer {
	struct append out;
	int error;              /* errno of the first write that failed, which was the last one */
	VEC(uint64_t) written;  /* bitmap of the sites in the file */
	struct saver *strong;   /* the one with strong accesses to global memory not yet written */
};

struct saver {                  /* the sink of one cluster */
	struct event_sink sink; /* first: a saver is a sink */
	struct event_sink *next;
	struct event_writer *w;
	pthread_mutex_t lock;   /* of what follows; taken after the writer's */
	struct cluster_info info;
	uint32_t launch, part;
	uint64_t events;
	struct text body;
	struct event_past *past;
	VEC(uint32_t) sites;    /* used in this chunk; may contain a site more than once */
	uint32_t last_site;
};

struct event_writer *event_writer_open(const char *path, struct consan_err *e)
{
	struct event_writer *w = base_alloc(sizeof *w);

	if (append_open(&w->out, path, e))
		return w;
	free(w);
	return NULL;
}

bool event_writer_close(struct event_writer *w, struct consan_err *e)
{
	int error = append_close(&w->out);

	if (w->error)
		error = w->error;
	vec_free(&w->written);
	free(w);
	return !error || err_set(e, CONSAN_ERR_IO, 0, 0, "events not saved: %s", strerror(error));
}

/* Head and payload in one block of memory; put_chunk() sets the session. */
static unsigned char *pack(struct chunk_head *head, const struct text *payload)
{
	size_t bound = ZSTD_compressBound(payload->n);
	unsigned char *chunk = base_alloc(sizeof *head + bound);
	size_t n = ZSTD_compress(chunk + sizeof *head, bound, payload->n ? payload->at : "",
		payload->n, LEVEL);

	if (ZSTD_isError(n))
		base_die("zstd: %s", ZSTD_getErrorName(n));
	head->magic = EVENT_MAGIC;
	head->version = EVENT_VERSION;
	head->raw = (uint32_t)payload->n;
	head->packed = (uint32_t)n;
	return chunk;
}

/* Under the lock. */
static void put_chunk(struct event_writer *w, struct chunk_head *head, unsigned char *chunk)
{
	size_t n = sizeof *head + head->packed;

	head->session = w->out.session;
	head->sum = chunk_sum(*head, chunk + sizeof *head);
	memcpy(chunk, head, sizeof *head);
	if (!w->error)
		w->error = append_write(&w->out, chunk, n);
	free(chunk);
}

/* Under the lock. A child after fork() starts anew in the same file. */
static void check_fork(struct event_writer *w)
{
	if (append_forked(&w->out))
		w->written.n = 0;
}

static bool mark_written(struct event_writer *w, uint32_t id)
{
	bool was;

	while (w->written.n <= id / 64)
		vec_push(&w->written, (uint64_t)0);
	was = w->written.at[id / 64] >> id % 64 & 1;
	w->written.at[id / 64] |= (uint64_t)1 << id % 64;
	return was;
}

/* Under the lock: the sites of s->sites that are not in the file yet. */
static void put_sites(struct saver *s)
{
	struct chunk_head head = { .type = CHUNK_SITES, .launch = s->launch };
	struct text body = { 0 };
	unsigned char *chunk;

	for (size_t i = 0; i < s->sites.n; i++) {
		const struct site *at = site_get(s->sites.at[i]);
		unsigned depth = 0;

		if (mark_written(s->w, s->sites.at[i]))
			continue;
		code_put(&body, s->sites.at[i]);
		code_put_string(&body, at->kernel);
		code_put_string(&body, at->module);
		code_put(&body, at->ptx_line);
		code_put_string(&body, at->ptx);
		code_put(&body, (uint64_t)at->constant);
		code_put(&body, at->value);
		code_put(&body, at->unread);
		code_put(&body, at->unread_load);
		code_put(&body, at->ticket);
		code_put(&body, at->texture);
		for (const struct site_loc *l = at->loc; l; l = l->inlined_at)
			depth++;
		code_put(&body, depth);
		for (const struct site_loc *l = at->loc; l; l = l->inlined_at) {
			code_put_string(&body, l->file);
			code_put(&body, l->line);
			code_put(&body, l->col);
			code_put_string(&body, l->function);
		}
	}
	s->sites.n = 0;
	if (!body.n)
		return;
	chunk = pack(&head, &body);
	put_chunk(s->w, &head, chunk);
	text_free(&body);
}

/* Under both locks. */
static void flush(struct saver *s, bool last)
{
	struct chunk_head head = { .type = CHUNK_EVENTS, .launch = s->launch,
		.cluster = s->info.id, .part = s->part++ };
	struct text body = { 0 };
	unsigned char *chunk;

	code_put(&body, s->info.nctas);
	code_put(&body, s->info.warps_per_cta);
	code_put(&body, last);
	code_put(&body, s->events);
	text_add(&body, s->body.n ? s->body.at : "", s->body.n);
	chunk = pack(&head, &body);
	check_fork(s->w);
	put_sites(s);
	put_chunk(s->w, &head, chunk);
	text_free(&body);
	if (s->w->strong == s)
		s->w->strong = NULL;
	s->body.n = 0;
	s->last_site = 0;
	memset(s->past, 0, sizeof *s->past);
}

/* Under s's lock. True: the chunk is large enough to be written. */
static bool add(struct saver *s, const struct event *e)
{
	const uint32_t *other_site = event_other_site((struct event *)e);

	if (e->site && e->site != s->last_site) {
		vec_push(&s->sites, e->site);
		s->last_site = e->site;
	}
	if (other_site)
		vec_push(&s->sites, *other_site);
	if (e->kind == EV_ACCESS && e->access.stored) {
		struct event known = *e;

		known.access.unchanged = access_unchanged(&e->access);
		event_encode(&s->body, s->past, &known);
	} else {
		event_encode(&s->body, s->past, e);
	}
	s->events++;
	return s->body.n >= CHUNK_RAW;
}

/* Writes another cluster's strong accesses to the file before this one. */
static bool add_strong(struct saver *s, const struct event *e)
{
	struct event_writer *w = s->w;
	struct saver *other;
	bool full;

	pthread_mutex_lock(&w->out.lock);
	other = w->strong;
	if (other && other != s) {
		pthread_mutex_lock(&other->lock);
		flush(other, false);
		pthread_mutex_unlock(&other->lock);
	}
	w->strong = s;
	pthread_mutex_lock(&s->lock);
	full = add(s, e);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&w->out.lock);
	return full;
}

static bool is_strong_global(const struct event_access *a)
{
	return a->space == SP_GLOBAL && access_is_strong(a);
}

static void save(struct event_sink *sink, const struct event *e)
{
	struct saver *s = (struct saver *)sink;
	bool full;

	if ((e->kind == EV_ACCESS && is_strong_global(&e->access))
		|| (e->kind == EV_OBSERVED && is_strong_global(&e->observed))) {
		full = add_strong(s, e);
	} else {
		pthread_mutex_lock(&s->lock);
		full = add(s, e);
		pthread_mutex_unlock(&s->lock);
	}
	if (full) {
		pthread_mutex_lock(&s->w->out.lock);
		pthread_mutex_lock(&s->lock);
		flush(s, false);
		pthread_mutex_unlock(&s->lock);
		pthread_mutex_unlock(&s->w->out.lock);
	}
	if (s->next)
		s->next->event(s->next, e);
}

struct event_sink *event_writer_begin(struct event_writer *w,
	const struct cluster_info *c, struct event_sink *next)
{
	struct saver *s = base_alloc(sizeof *s);

	s->sink.event = save;
	s->sink.want_global = !next || next->want_global;
	s->next = next;
	s->w = w;
	pthread_mutex_init(&s->lock, NULL);
	s->info = *c;
	s->launch = c->launch->id;
	s->past = base_alloc(sizeof *s->past);
	return &s->sink;
}

struct event_sink *event_writer_end(struct event_sink *sink)
{
	struct saver *s = (struct saver *)sink;
	struct event_sink *next = s->next;

	pthread_mutex_lock(&s->w->out.lock);
	pthread_mutex_lock(&s->lock);
	flush(s, true);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&s->w->out.lock);
	pthread_mutex_destroy(&s->lock);
	text_free(&s->body);
	vec_free(&s->sites);
	free(s->past);
	free(s);
	return next;
}

static void put_triple(struct text *t, const uint32_t at[3])
{
	for (unsigned i = 0; i < 3; i++)
		code_put(t, at[i]);
}

void event_writer_launch(struct event_writer *w, const struct launch_info *l)
{
	struct chunk_head head = { .type = CHUNK_LAUNCH, .launch = l->id };
	struct text body = { 0 };
	unsigned char *chunk;

	put_triple(&body, l->grid);
	put_triple(&body, l->block);
	put_triple(&body, l->cluster);
	code_put(&body, l->shared_static);
	code_put(&body, l->shared_dynamic);
	code_put(&body, l->regs_per_thread);
	code_put(&body, l->sm);
	code_put(&body, l->device);
	code_put(&body, l->seed);
	code_put(&body, l->reads);
	code_put(&body, l->queue);
	code_put(&body, l->programmatic | l->apart << 1 | l->tensor << 2 | l->clustered << 3);
	code_put_string(&body, l->kernel);
	code_put(&body, l->nsymbols);
	for (size_t i = 0; i < l->nsymbols; i++) {
		code_put_string(&body, l->symbols[i].name);
		code_put(&body, l->symbols[i].addr);
		code_put(&body, l->symbols[i].bytes);
	}
	chunk = pack(&head, &body);
	pthread_mutex_lock(&w->out.lock);
	check_fork(w);
	put_chunk(w, &head, chunk);
	pthread_mutex_unlock(&w->out.lock);
	text_free(&body);
}

void event_writer_launch_end(struct event_writer *w, const struct launch_info *l,
	uint32_t last, const char *unchecked)
{
	struct chunk_head head = { .type = CHUNK_LAUNCH_END, .launch = l->id };
	struct text body = { 0 };
	unsigned char *chunk;

	code_put(&body, last);
	code_put_string(&body, unchecked);
	chunk = pack(&head, &body);
	text_free(&body);
	pthread_mutex_lock(&w->out.lock);
	check_fork(w);
	put_chunk(w, &head, chunk);
	pthread_mutex_unlock(&w->out.lock);
}
