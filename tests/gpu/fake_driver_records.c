/* fake_driver_records: kernels of the fake driver that write records as the first thread of an
 * instrumented kernel does; the other threads do nothing.
 *   DRIVER_CHUNKS  how many chunks to write; 0: no records
 *   DRIVER_END     hang: the kernel does not end; fault: the GPU stops it; peer: the first one ends when another
 *                  kernel has begun; host: when the client has called fake_flag(); later: all but the first do not end */
#include "fake_driver.h"

#include "instrument/record/record.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By number; others do not run. */
static struct kernel {
	uint64_t after;            /* kernels that must be over before, a bit each */
	struct record_params at;
	uint32_t clock;
	CUstream stream;
	bool *dead;
	pthread_t thread;
	bool began;
	unsigned number;
} kernels[64];
static unsigned launched, launches; /* kernels: launched; begun */
static uint64_t over;              /* a bit for each kernel */
static bool flag;
static uint64_t touched;           /* what kernels record a read of; 0: they do not */

uint64_t *fake_behind(CUstream s)
{
	static struct { CUstream stream; uint64_t behind; } known[64];
	size_t k = 0;

	while (k < COUNT(known) - 1 && known[k].stream != s && (k == 0 || known[k].stream))
		k++;
	known[k].stream = s;
	return &known[k].behind;
}

bool fake_over(uint64_t which)
{
	return !(which & ~__atomic_load_n(&over, __ATOMIC_ACQUIRE));
}

API void fake_flag(void)
{
	__atomic_store_n(&flag, true, __ATOMIC_RELEASE);
}

API void fake_touch(CUdeviceptr at)
{
	touched = at;
}

API unsigned fake_begun(void)
{
	return __atomic_load_n(&launches, __ATOMIC_ACQUIRE);
}

static void *in_pool(const struct kernel *k, uint64_t at)
{
	return (void *)(uintptr_t)(k->at.pool + at);
}

/* Waits for the k-th chunk that the host has returned; 0: the kernel must not wait any more. */
static uint32_t returned_chunk(const struct kernel *of, uint32_t k)
{
	const uint64_t *entry = in_pool(of, RECORD_RING_AT(of->at.chunks) +
		8 * (uint64_t)(k % RECORD_RING));
	const struct record_head *head = in_pool(of, 0);

	while (__atomic_load_n(&head->wait_cycles, __ATOMIC_RELAXED)) {
		const uint64_t e = __atomic_load_n(entry, __ATOMIC_ACQUIRE);

		if ((uint32_t)e == k)
			return (uint32_t)(e >> 32);
		usleep(10);
	}
	return 0;
}

static void close_chunk(const struct kernel *k, uint32_t chunk)
{
	uint32_t *mark = in_pool(k, RECORD_RING_AT(k->at.chunks) + RECORD_MARKS_AT);

	if (chunk)
		__atomic_add_fetch(&mark[chunk + 1], 1, __ATOMIC_RELEASE);
}

/* Closes the last chunk and starts the next one; 0: there is none. */
static uint32_t next_chunk(struct kernel *k, uint32_t last)
{
	struct record_head *head = in_pool(k, 0);
	uint32_t chunk;

	close_chunk(k, last);
	chunk = __atomic_fetch_add(&head->next, 1, __ATOMIC_RELAXED);
	if (chunk > k->at.chunks)
		chunk = returned_chunk(k, chunk - k->at.chunks);
	if (chunk)
		*(struct record_chunk *)in_pool(k, (uint64_t)chunk * RECORD_CHUNK_BYTES) =
			(struct record_chunk){ .clock_lo = ++k->clock };
	if (!chunk) {
		__atomic_add_fetch(&head->dropped, 1, __ATOMIC_RELAXED);
		*(uint32_t *)in_pool(k, RECORD_INCOMPLETE_AT) = 1;
	}
	return chunk;
}

/* Writes a record of one unit, of all lanes. */
static void record(struct kernel *k, uint32_t chunk, uint32_t unit, uint32_t site, uint32_t flags, uint32_t last)
{
	uint32_t *at = in_pool(k, (uint64_t)chunk * RECORD_CHUNK_BYTES + (uint64_t)unit * RECORD_UNIT);

	at[1] = UINT32_MAX;
	at[2] = ++k->clock;
	at[3] = last;
	at[0] = site << RECORD_SITE_SHIFT | flags;
}

/* Writes what the chunk has before the end of the kernel. Returns the next unit. */
static uint32_t fill(struct kernel *k, uint32_t chunk)
{
	uint32_t unit = 1;

	if (touched) { /* all lanes, the same address */
		record(k, chunk, unit, 1, RECORD_AFFINE | RECORD_STRIDE_BIAS, (uint32_t)touched);
		memcpy(in_pool(k, (uint64_t)chunk * RECORD_CHUNK_BYTES + 2 * RECORD_UNIT),
			(uint32_t[]){ (uint32_t)(touched >> 32), 0, 0, 5 }, RECORD_UNIT);
		return 3;
	}
	for (; unit < 5; unit++)
		record(k, chunk, unit, 1, RECORD_AFFINE | RECORD_STRIDE_BIAS, 1024);
	return unit;
}

/* Does it wait for what DRIVER_END says? */
static bool waits(const struct kernel *k)
{
	const char *end = getenv("DRIVER_END");

	if (end && !strcmp(end, "peer"))
		return !k->number && __atomic_load_n(&launches, __ATOMIC_ACQUIRE) == 1;
	if (end && !strcmp(end, "host"))
		return !__atomic_load_n(&flag, __ATOMIC_ACQUIRE);
	return end && (!strcmp(end, "hang") || (!strcmp(end, "later") && k->number));
}

/* Site 1 is a load from shared memory, or of fake_touch(), site 2 the end of the kernel. */
static void *run(void *user)
{
	const unsigned long long n = setting("DRIVER_CHUNKS", 0);
	const char *end = getenv("DRIVER_END");
	struct kernel *of = user;
	uint32_t chunk = 0, unit = 1;

	while (!fake_over(of->after))
		usleep(100);
	__atomic_add_fetch(&launches, 1, __ATOMIC_ACQ_REL);
	for (unsigned long long k = 0; k < n; k++) {
		chunk = next_chunk(of, chunk);
		if (chunk)
			unit = fill(of, chunk);
	}
	while (waits(of))
		usleep(100);
	if (end && !strcmp(end, "fault"))
		*of->dead = true;
	if (chunk)
		record(of, chunk, unit, 2, 0, 0);
	close_chunk(of, chunk);
	__atomic_or_fetch(&over, 1ull << of->number, __ATOMIC_ACQ_REL);
	return NULL;
}

void start_recording(const void *params, CUstream s, bool *dead)
{
	const unsigned number = __atomic_fetch_add(&launched, 1, __ATOMIC_ACQ_REL);
	uint64_t *behind = fake_behind(s);
	struct kernel *k = &kernels[number % COUNT(kernels)];

	if (!setting("DRIVER_CHUNKS", 0) || number >= COUNT(kernels))
		return;
	*k = (struct kernel){ .after = *behind, .stream = s, .dead = dead, .number = number };
	memcpy(&k->at, params, sizeof k->at);
	*behind = 1ull << number;
	k->began = k->at.pool && !pthread_create(&k->thread, NULL, run, k);
	if (k->began)
		return;
	/* one that records nothing is over at once */
	__atomic_add_fetch(&launches, 1, __ATOMIC_ACQ_REL);
	__atomic_or_fetch(&over, *behind, __ATOMIC_ACQ_REL);
}

void await_kernels(const bool *dead)
{
	for (size_t i = 0; i < COUNT(kernels); i++)
		while (kernels[i].began && kernels[i].dead == dead && !fake_over(1ull << i))
			usleep(100);
}

bool still_recording(CUstream s, bool wait)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool still = false;

	for (size_t i = 0; i < COUNT(kernels); i++) {
		struct kernel *k = &kernels[i];

		pthread_mutex_lock(&lock);
		while (wait && k->began && k->stream == s && !fake_over(1ull << i)) {
			pthread_mutex_unlock(&lock);
			usleep(100);
			pthread_mutex_lock(&lock);
		}
		if (k->began && k->stream == s && fake_over(1ull << i)) {
			pthread_join(k->thread, NULL);
			k->began = false;
		}
		still |= k->began && k->stream == s;
		pthread_mutex_unlock(&lock);
	}
	return still;
}
