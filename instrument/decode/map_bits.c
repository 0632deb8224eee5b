/* map_bits: learns the format of tensor maps; see map_bits.h. */
#include "map_bits.h"

#include <string.h>

#include "libconsan/base/base.h"

/* The address; then dimensions, boxes, element strides and strides. */
#define ALL_FIELDS (1 + 4 * MAP_RANKS)
#define MAP_BITS (8 * CONSAN_TENSORMAP_BYTES)

struct map_bits {
	struct map_args args;
	unsigned char bytes[CONSAN_TENSORMAP_BYTES];
	bool learned;
	struct { uint8_t field, bit; bool known; } at[MAP_BITS]; /* for each bit of the map */
};

const struct consan_tensormap_args *map_args_view(struct map_args *m)
{
	m->a.dim = m->dim;
	m->a.stride = m->stride;
	m->a.box = m->box;
	m->a.elem_stride = m->elem_stride;
	return &m->a;
}

struct map_bits *map_bits_open(const struct consan_tensormap_args *a, const void *bytes)
{
	struct map_bits *m = base_alloc(sizeof *m);

	m->args.a = *a;
	memcpy(m->args.dim, a->dim, a->rank * sizeof *a->dim);
	if (a->rank > 1)
		memcpy(m->args.stride, a->stride, (a->rank - 1) * sizeof *a->stride);
	memcpy(m->args.box, a->box, a->rank * sizeof *a->box);
	memcpy(m->args.elem_stride, a->elem_stride, a->rank * sizeof *a->elem_stride);
	memcpy(m->bytes, bytes, sizeof m->bytes);
	return m;
}

bool map_bits_fit(const struct map_bits *m, const struct consan_tensormap_args *a)
{
	const struct consan_tensormap_args *b = &m->args.a;

	return a->type == b->type && a->rank == b->rank && a->interleave == b->interleave &&
		a->swizzle == b->swizzle && a->l2 == b->l2 && a->oob == b->oob;
}

/* ---- fields ---- */

/* Number of bits of field f; 0: maps of this rank do not have it. */
static unsigned width(const struct map_args *m, unsigned f)
{
	const unsigned rank = m->a.rank, k = f ? (f - 1) % MAP_RANKS : 0;

	if (!f)
		return 64;
	if (k >= rank)
		return 0;
	switch ((f - 1) / MAP_RANKS) {
	case 0: return 32;
	case 1: return 8;
	case 2: return 3;
	default: return k + 1 < rank ? 40 : 0;
	}
}

/* Sizes are encoded as size - 1. */
static uint64_t get(const struct map_args *m, unsigned f)
{
	const unsigned k = f ? (f - 1) % MAP_RANKS : 0;

	if (!f)
		return m->a.address;
	switch ((f - 1) / MAP_RANKS) {
	case 0: return m->dim[k] - 1;
	case 1: return m->box[k] - 1;
	case 2: return m->elem_stride[k] - 1;
	default: return m->stride[k];
	}
}

static void put(struct map_args *m, unsigned f, uint64_t value)
{
	const unsigned k = f ? (f - 1) % MAP_RANKS : 0;

	if (!f) {
		m->a.address = value;
		return;
	}
	switch ((f - 1) / MAP_RANKS) {
	case 0: m->dim[k] = value + 1; return;
	case 1: m->box[k] = (uint32_t)value + 1; return;
	case 2: m->elem_stride[k] = (uint32_t)value + 1; return;
	default: m->stride[k] = value; return;
	}
}

/* ---- learning ---- */

/* The index of the only bit in which the two differ; MAP_BITS: none or several. */
static unsigned only_difference(const unsigned char *a, const unsigned char *b)
{
	unsigned at = MAP_BITS;

	for (unsigned k = 0; k < CONSAN_TENSORMAP_BYTES; k++) {
		const unsigned odd = a[k] ^ b[k];

		if (!odd)
			continue;
		if (at != MAP_BITS || odd & (odd - 1))
			return MAP_BITS;
		at = 8 * k + (unsigned)__builtin_ctz(odd);
	}
	return at;
}

/* Bits that the driver refuses to change must stay as they are in the first map. */
static void learn(struct map_bits *m, map_encode *encode)
{
	_Alignas(64) unsigned char bytes[CONSAN_TENSORMAP_BYTES];

	m->learned = true;
	for (unsigned f = 0; f < ALL_FIELDS; f++)
		for (unsigned b = 0; b < width(&m->args, f); b++) {
			struct map_args a = m->args;
			unsigned at;

			put(&a, f, get(&a, f) ^ 1ull << b);
			if (!encode(map_args_view(&a), bytes))
				continue;
			at = only_difference(bytes, m->bytes);
			if (at == MAP_BITS)
				continue;
			m->at[at].field = (uint8_t)f;
			m->at[at].bit = (uint8_t)b;
			m->at[at].known = true;
		}
}

bool map_bits_read(struct map_bits *m, const void *bytes, map_encode *encode, struct map_args *out)
{
	_Alignas(64) unsigned char again[CONSAN_TENSORMAP_BYTES];
	const unsigned char *now = bytes;

	if (!m->learned)
		learn(m, encode);
	*out = m->args;
	for (unsigned k = 0; k < MAP_BITS; k++) {
		if (!((now[k / 8] ^ m->bytes[k / 8]) >> k % 8 & 1))
			continue;
		if (!m->at[k].known)
			return false;
		put(out, m->at[k].field, get(out, m->at[k].field) ^ 1ull << m->at[k].bit);
	}
	map_args_view(out);
	return encode(&out->a, again) && !memcmp(again, now, CONSAN_TENSORMAP_BYTES);
}
