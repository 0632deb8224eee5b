/* events: saved events, replayed. The corpus has whole files; a mutation unpacks one chunk, changes its
 * bytes and packs it with a valid checksum, as an attacker would. */
#include "fuzz.h"

#include "libconsan/event/chunk.h"
#include "libconsan/event/event.h"
#include "libconsan/options/options.h"
#include "libconsan/session/session.h"

#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct consan_err e = { 0 };
	struct options o;
	int status;

	options_init(&o);
	FUZZ_CHECK(options_parse(&o, "log-file=/dev/null bank-conflicts strict", &e));
	consan_replay(&o, fuzz_file(data, n), &status, &e);
	options_free(&o);
	return 0;
}

#ifdef FUZZ_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);

enum { MAX_CHUNKS = 64, RAW = 1 << 18 };

/* Offsets of the chunks, by their heads alone. */
static unsigned find_chunks(const uint8_t *data, size_t n, size_t at[MAX_CHUNKS])
{
	unsigned found = 0;
	size_t i = 0;

	while (found < MAX_CHUNKS && n - i >= sizeof(struct chunk_head)) {
		struct chunk_head h;

		memcpy(&h, data + i, sizeof h);
		if (h.magic != EVENT_MAGIC || h.packed > n - i - sizeof h)
			break;
		at[found++] = i;
		i += sizeof h + h.packed;
	}
	return found;
}

/* Sometimes, a number of the head instead of the payload. */
static void mutate_head(struct chunk_head *h, unsigned seed)
{
	const uint32_t few = seed >> 8 & 3;

	switch (seed >> 4 & 15) {
	case 0: h->launch = few; break;
	case 1: h->cluster = few; break;
	case 2: h->part = few; break;
	case 3: h->type = (uint8_t)few; break;
	case 4: h->session ^= few; break;
	case 5: h->raw ^= few; break;
	default: break;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
	static uint8_t raw[RAW], packed[ZSTD_COMPRESSBOUND(RAW)];
	size_t at[MAX_CHUNKS], end, bytes, k;
	const unsigned chunks = find_chunks(data, n, at);
	struct chunk_head h;

	if (!chunks || seed % 32 == 0)
		return LLVMFuzzerMutate(data, n, max);
	k = at[seed / 32 % chunks];
	memcpy(&h, data + k, sizeof h);
	end = k + sizeof h + h.packed;
	bytes = ZSTD_decompress(raw, sizeof raw, data + k + sizeof h, h.packed);
	if (ZSTD_isError(bytes))
		return LLVMFuzzerMutate(data, n, max);
	bytes = LLVMFuzzerMutate(raw, bytes, sizeof raw);
	h.raw = (uint32_t)bytes;
	h.packed = (uint32_t)ZSTD_compress(packed, sizeof packed, raw, bytes, 1);
	if (n - (end - k) + sizeof h + h.packed > max)
		return LLVMFuzzerMutate(data, n, max);
	mutate_head(&h, seed * 2654435761u);
	h.sum = chunk_sum(h, packed);
	memmove(data + k + sizeof h + h.packed, data + end, n - end);
	memcpy(data + k, &h, sizeof h);
	memcpy(data + k + sizeof h, packed, h.packed);
	return n - (end - k) + sizeof h + h.packed;
}
#endif
