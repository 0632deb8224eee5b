/* heap: memory for malloc in kernels. One region of the CUDA runtime's default size, in the memory
 * map as one allocation. First fit; neighbours are merged when freed. Overruns from one block into
 * another are not detected. */
#include "internal.h"

#include <stdlib.h>

#define HEAP_BYTES (8u << 20)
#define GRAIN 16u

/* header of every block; blocks follow each other without gaps */
struct block { uint32_t bytes, used; uint64_t pad; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *heap;

static struct block *first(void)
{
	return (struct block *)heap;
}

static struct block *after(struct block *b)
{
	unsigned char *n = (unsigned char *)(b + 1) + b->bytes;

	return n < heap + HEAP_BYTES ? (struct block *)n : NULL;
}

static void start(void)
{
	heap = aligned_alloc(256, HEAP_BYTES);
	if (!heap)
		base_die("no memory for the kernels' heap");
	memset(heap, 0, HEAP_BYTES);
	*first() = (struct block){ HEAP_BYTES - sizeof(struct block), 0, 0 };
	exec_mem_add(heap, HEAP_BYTES, MEM_MODULE, false);
}

bool exec_in_heap(uint64_t addr)
{
	bool in;

	pthread_mutex_lock(&lock);
	in = heap && addr - (uintptr_t)heap < HEAP_BYTES;
	pthread_mutex_unlock(&lock);
	return in;
}

void *heap_malloc(size_t bytes)
{
	void *at = NULL;
	uint32_t need;

	if (!bytes || bytes > HEAP_BYTES / 2)
		return NULL;
	need = ((uint32_t)bytes + GRAIN - 1) & ~(GRAIN - 1);
	pthread_mutex_lock(&lock);
	if (!heap)
		start();
	for (struct block *b = first(); b && !at; b = after(b)) {
		if (b->used || b->bytes < need)
			continue;
		if (b->bytes >= need + sizeof *b + GRAIN) {
			struct block *rest = (struct block *)((unsigned char *)(b + 1) + need);

			*rest = (struct block){ b->bytes - need - (uint32_t)sizeof *b, 0, 0 };
			b->bytes = need;
		}
		b->used = 1;
		at = b + 1;
	}
	pthread_mutex_unlock(&lock);
	return at;
}

uint32_t heap_bytes(const void *at)
{
	uint32_t bytes = 0;

	pthread_mutex_lock(&lock);
	for (struct block *b = heap ? first() : NULL; b && !bytes; b = after(b))
		if (b + 1 == at && b->used)
			bytes = b->bytes;
	pthread_mutex_unlock(&lock);
	return bytes;
}

bool heap_free(void *at)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (struct block *b = heap ? first() : NULL; b; b = after(b)) {
		struct block *n = after(b);

		if (b + 1 == at && b->used) {
			b->used = 0;
			found = true;
		}
		while (!b->used && n && !n->used) {
			b->bytes += (uint32_t)sizeof *n + n->bytes;
			n = after(b);
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}
