/* event_chunk: the format of a chunk of an event file; private to save.c and
 * load.c. Numbers are little-endian.
 *
 *   chunk  = head, payload compressed with zstd
 *   LAUNCH = grid block cluster shared regs sm seed queue programmatic kernel symbols
 *   SITES  = (id, kernel, module, line, text, places)*
 *   EVENTS = nctas, warps per CTA, 1 if the cluster ends here, events so far,
 *            events (code.h)
 *   LAUNCH_END = last cluster that counts, why the events are not the whole launch
 *
 * Strong accesses to global memory, by which clusters synchronize, are in the file in the
 * order in which they took place, across clusters. */
#ifndef CONSAN_EVENT_CHUNK_H
#define CONSAN_EVENT_CHUNK_H

#include <stddef.h>
#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "heads are not converted");

#define EVENT_MAGIC 0x56455343u /* "CSEV" */

enum chunk_type { CHUNK_LAUNCH, CHUNK_SITES, CHUNK_EVENTS, CHUNK_LAUNCH_END, CHUNK_COUNT };

struct chunk_head {
	uint32_t magic;
	uint8_t version, type;
	uint16_t zero;
	uint64_t session;       /* one for each process */
	uint32_t launch, cluster, part;
	uint32_t raw, packed;   /* bytes of payload */
	uint32_t sum;           /* of the head with sum = 0, and the payload */
};
_Static_assert(sizeof(struct chunk_head) == 40, "a head is 40 bytes");

static inline uint32_t sum_bytes(uint32_t h, const void *p, size_t n)
{
	const unsigned char *c = p;

	for (; n; n--)
		h = (h ^ *c++) * 0x01000193u;
	return h;
}

static inline uint32_t chunk_sum(struct chunk_head head, const void *payload)
{
	head.sum = 0;
	return sum_bytes(sum_bytes(0x811c9dc5u, &head, sizeof head), payload, head.packed);
}

#endif
