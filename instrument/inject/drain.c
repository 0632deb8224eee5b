/* drain: gives decode/drain.c access to the pool of a GPU whose kernel runs. All of it goes
 * through one stream and through copy engines only. A kernel of ours (a memset is one, too)
 * might be queued behind the program's kernel, which may wait for chunks: a deadlock. */
#include "instrument/decode/decode.h"
#include "context_records.h"

#include <stdlib.h>
#include <string.h>

/* Offsets in the pinned memory, which is used for nothing else while the kernel runs. */
#define PEEK_AT ((size_t)DRAIN_CHUNKS * RECORD_CHUNK_BYTES)
#define WRITE_AT (PEEK_AT + DRAIN_PEEK)
#define ZERO_AT (WRITE_AT + DRAIN_PEEK)
#define ZERO_BYTES (1u << 20)
_Static_assert(ZERO_AT + ZERO_BYTES <= STAGE_BYTES, "pinned memory");

struct inject_drain {
	struct context_records *records;
	struct drain *drain;
	const char *at;            /* the pool's memory after a fault, or NULL */
	char *packed;              /* DRAIN_CHUNKS, copied from there */
};

static bool copied(const struct context_records *p)
{
	return !cu.p_cuStreamSynchronize(p->side);
}

static const void *peek(void *user, uint64_t at, size_t bytes)
{
	const struct context_records *p = ((const struct inject_drain *)user)->records;
	char *to = p->pinned + PEEK_AT;

	return !cu.p_cuMemcpyDtoHAsync(to, p->pool.at + at, bytes, p->side) &&
		copied(p) ? to : NULL;
}

static const void *fetch(void *user, const struct drain_run *run, uint32_t n)
{
	const struct context_records *p = ((const struct inject_drain *)user)->records;
	char *to = p->pinned;

	for (uint32_t k = 0; k < n; k++) {
		CUdeviceptr at = p->pool.at + (uint64_t)run[k].first * RECORD_CHUNK_BYTES;
		size_t bytes = (size_t)run[k].n * RECORD_CHUNK_BYTES;

		if (cu.p_cuMemcpyDtoHAsync(to, at, bytes, p->side))
			return NULL;
		to += bytes;
	}
	return copied(p) ? p->pinned : NULL;
}

/* Waits for the copies, as the next copies of this stream, which give the chunks back, may
 * overlap with them. */
static bool clear(void *user, const struct drain_run *run, uint32_t n)
{
	const struct context_records *p = ((const struct inject_drain *)user)->records;

	for (uint32_t k = 0; k < n; k++) {
		CUdeviceptr at = p->pool.at + (uint64_t)run[k].first * RECORD_CHUNK_BYTES;
		size_t left = (size_t)run[k].n * RECORD_CHUNK_BYTES;

		for (size_t bytes; left; left -= bytes, at += bytes) {
			bytes = left < ZERO_BYTES ? left : ZERO_BYTES;
			if (cu.p_cuMemcpyHtoDAsync(at, p->pinned + ZERO_AT, bytes, p->side))
				return false;
		}
	}
	return copied(p);
}

static bool write_pool(void *user, uint64_t at, const void *from, size_t bytes)
{
	const struct context_records *p = ((const struct inject_drain *)user)->records;
	const char *staged = memcpy(p->pinned + WRITE_AT, from, bytes);

	return !cu.p_cuMemcpyHtoDAsync(p->pool.at + at, staged, bytes, p->side) && copied(p);
}

/* ---- the pool's memory after a fault ---- */

static const void *peek_saved(void *user, uint64_t at, size_t bytes)
{
	(void)bytes;
	return ((const struct inject_drain *)user)->at + at;
}

static const void *fetch_saved(void *user, const struct drain_run *run, uint32_t n)
{
	const struct inject_drain *d = user;

	drain_pack(d->packed, d->at, run, n);
	return d->packed;
}

/* ---- the launch ---- */

bool inject_is_full(const struct inject_pool *pool)
{
	struct inject_drain d = { .records = context_records(pool) };
	const struct record_head *head = peek(&d, 0, sizeof *head);

	return head && head->next > pool->chunks - pool->chunks / 4;
}

static struct drain_pool running_pool(struct inject_drain *d)
{
	return (struct drain_pool){ .user = d, .chunks = d->records->pool.chunks, .peek = peek,
		.fetch = fetch, .clear = clear, .write = write_pool };
}

struct inject_drain *inject_drain_open(const struct inject_pool *pool, const struct gpu_launch *l)
{
	struct inject_drain *d = base_alloc(sizeof *d);
	struct drain_pool p;

	d->records = context_records(pool);
	p = running_pool(d);
	memset(d->records->pinned + ZERO_AT, 0, ZERO_BYTES);
	d->drain = gpu_drain(inject_session(), l, &p, gpu_workers(inject_session()));
	return d;
}

void inject_drain_close(struct inject_drain *d)
{
	if (!d)
		return;
	drain_close(d->drain);
	free(d->packed);
	free(d);
}

bool inject_drain(struct inject_drain *d)
{
	return drain_turn(d->drain);
}

bool inject_drain_end(struct inject_drain *d, bool ended, const void *at, struct gpu_launch *l,
	struct drained *r)
{
	struct drain_pool p = running_pool(d);

	if (at) {
		d->at = at;
		d->packed = base_alloc((size_t)DRAIN_CHUNKS * RECORD_CHUNK_BYTES);
		p.peek = peek_saved;
		p.fetch = fetch_saved;
	}
	if (!drain_end(d->drain, &p, ended, r))
		return false;
	gpu_take_drained(l, d->drain, r);
	return true;
}
