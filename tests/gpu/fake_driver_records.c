/* fake_driver_records: kernels of the fake driver that write records as the first thread of an
 * instrumented kernel does; the other threads do nothing.
 *   DRIVER_CHUNKS  how many chunks to write; 0: no records
 *   DRIVER_END     hang: the kernel does not end; fault: the GPU stops it */
#include "fake_driver.h"

#include "instrument/record/record.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct kernel {
	struct record_params at;
	uint32_t clock;
	CUstream stream;
	bool *dead;
	pthread_t thread;
	bool began, over;
} kernel;

static void *in_pool(uint64_t at)
{
	return (void *)(uintptr_t)(kernel.at.pool + at);
}

/* Waits for the k-th chunk that the host has returned; 0: the kernel must not wait any more. */
static uint32_t returned_chunk(uint32_t k)
{
	const uint64_t *entry = in_pool(RECORD_RING_AT(kernel.at.chunks) +
		8 * (uint64_t)(k % RECORD_RING));
	const struct record_head *head = in_pool(0);

	while (__atomic_load_n(&head->wait_cycles, __ATOMIC_RELAXED)) {
		const uint64_t e = __atomic_load_n(entry, __ATOMIC_ACQUIRE);

		if ((uint32_t)e == k)
			return (uint32_t)(e >> 32);
		usleep(10);
	}
	return 0;
}

static void close_chunk(uint32_t chunk)
{
	uint32_t *mark = in_pool(RECORD_RING_AT(kernel.at.chunks) + RECORD_MARKS_AT);

	if (chunk)
		__atomic_add_fetch(&mark[chunk + 1], 1, __ATOMIC_RELEASE);
}

/* Closes the last chunk and starts the next one; 0: there is none. */
static uint32_t next_chunk(uint32_t last)
{
	struct record_head *head = in_pool(0);
	uint32_t chunk;

	close_chunk(last);
	chunk = __atomic_fetch_add(&head->next, 1, __ATOMIC_RELAXED);
	if (chunk > kernel.at.chunks)
		chunk = returned_chunk(chunk - kernel.at.chunks);
	if (chunk)
		*(struct record_chunk *)in_pool((uint64_t)chunk * RECORD_CHUNK_BYTES) =
			(struct record_chunk){ .clock_lo = ++kernel.clock };
	if (!chunk) {
		__atomic_add_fetch(&head->dropped, 1, __ATOMIC_RELAXED);
		*(uint32_t *)in_pool(RECORD_INCOMPLETE_AT) = 1;
	}
	return chunk;
}

/* Writes a record of one unit, of all lanes. */
static void record(uint32_t chunk, uint32_t unit, uint32_t site, uint32_t flags, uint32_t last)
{
	uint32_t *at = in_pool((uint64_t)chunk * RECORD_CHUNK_BYTES + (uint64_t)unit * RECORD_UNIT);

	at[1] = UINT32_MAX;
	at[2] = ++kernel.clock;
	at[3] = last;
	at[0] = site << RECORD_SITE_SHIFT | flags;
}

/* Site 1 is a load from shared memory, site 2 the end of the kernel. */
static void *run(void *end)
{
	const unsigned long long n = setting("DRIVER_CHUNKS", 0);
	uint32_t chunk = 0;

	for (unsigned long long k = 0; k < n; k++) {
		chunk = next_chunk(chunk);
		for (uint32_t unit = 1; chunk && unit < 5; unit++)
			record(chunk, unit, 1, RECORD_AFFINE | RECORD_STRIDE_BIAS, 1024);
	}
	while (end && !strcmp(end, "hang"))
		pause();
	if (end && !strcmp(end, "fault"))
		*kernel.dead = true;
	if (chunk)
		record(chunk, 5, 2, 0, 0);
	close_chunk(chunk);
	__atomic_store_n(&kernel.over, true, __ATOMIC_RELEASE);
	return NULL;
}

void start_recording(const void *params, CUstream s, bool *dead)
{
	kernel = (struct kernel){ .stream = s, .dead = dead };
	memcpy(&kernel.at, params, sizeof kernel.at);
	if (!kernel.at.pool || !setting("DRIVER_CHUNKS", 0))
		return;
	kernel.began = !pthread_create(&kernel.thread, NULL, run, getenv("DRIVER_END"));
}

bool still_recording(CUstream s, bool wait)
{
	if (!kernel.began || s != kernel.stream)
		return false;
	if (!wait && !__atomic_load_n(&kernel.over, __ATOMIC_ACQUIRE))
		return true;
	pthread_join(kernel.thread, NULL);
	kernel.began = false;
	return false;
}
