/* tensormap_bits: the fields of a tensor map to its bytes and back, by the table in
 * tensormap_bits.def. */
#include "tensormap.h"

#include <stddef.h>
#include <string.h>

/* What the bits hold, in their own numbering where struct tensormap has another one. */
struct fields {
	struct tensormap m;
	uint8_t im2col;            /* not tiled */
	uint8_t code, tf32;        /* the type: TENSOR_TYPE's code, and its bit 4 */
	uint8_t span, span96;      /* swizzle: none, 32, 64, 128 bytes; 96 bytes, of sm_103 */
	uint8_t atoms;             /* .swizzle_atomicity */
	uint8_t bit65, bit85;      /* ignored */
};

/* Sets of modes and of ranks. */
#define TILE (1u << TM_TILE)
#define IM2COL (1u << TM_IM2COL)
#define WIDE (1u << TM_WIDE | 1u << TM_WIDE_128)
#define PIXELS (IM2COL | WIDE)
#define ALL (TILE | PIXELS)
#define RANK(n) (1u << (n))
#define ANY 0xffu

static const struct part {
	uint8_t modes, ranks;
	uint16_t at;               /* the member's offset in struct fields, */
	uint8_t size, n;           /* bytes of an element, and elements */
	bool is_signed;
	uint16_t bit;
	uint8_t next, width, drop, less;
} parts[] = {
#define MEMBER(name) (((struct fields *)0)->name)
/* an element of an array, or a member that is none */
#define ELEMENT(name) _Generic(&MEMBER(name), \
	uint64_t *: 8, uint32_t *: 4, uint16_t *: 2, uint8_t *: 1, \
	uint64_t (*)[4]: 8, uint32_t (*)[5]: 4, uint16_t (*)[5]: 2, int16_t (*)[3]: 2, \
	uint8_t (*)[5]: 1)
#define MAP_BITS(modes, ranks, member, n, bit, next, width, drop, less) \
	{ modes, ranks, offsetof(struct fields, member), ELEMENT(member), n, \
		_Generic(&MEMBER(member), int16_t (*)[3]: true, default: false), \
		bit, next, width, drop, less },
#include "tensormap_bits.def"
};

static const struct { uint8_t bits, code, elemtype; } types[TT_COUNT] = {
#define TENSOR_TYPE(id, bits, class, name, code, elemtype) { bits, code, elemtype },
#include "tensormap.def"
};

/* ---- bits ---- */

enum { USED_BITS = 512, WORD_BITS = 64 };

static uint64_t mask_of(unsigned width)
{
	return width < 64 ? (1ull << width) - 1 : UINT64_MAX;
}

/* No field crosses a word of 64 bits. */
static uint64_t get(const void *bytes, unsigned bit, unsigned width)
{
	uint64_t word;

	memcpy(&word, (const char *)bytes + bit / WORD_BITS * 8, sizeof word);
	return word >> bit % WORD_BITS & mask_of(width);
}

static void put(void *bytes, unsigned bit, unsigned width, uint64_t v)
{
	char *at = (char *)bytes + bit / WORD_BITS * 8;
	const uint64_t mask = mask_of(width) << bit % WORD_BITS;
	uint64_t word;

	memcpy(&word, at, sizeof word);
	word = (word & ~mask) | (v << bit % WORD_BITS & mask);
	memcpy(at, &word, sizeof word);
}

static uint64_t member(const struct fields *f, const struct part *p, unsigned i)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)f + p->at + i * p->size, p->size);
	return v;
}

static void set_member(struct fields *f, const struct part *p, unsigned i, uint64_t v)
{
	memcpy((char *)f + p->at + i * p->size, &v, p->size);
}

static bool applies(const struct part *p, unsigned mode, unsigned rank)
{
	return p->modes >> mode & 1 && p->ranks >> rank & 1;
}

/* ---- pack ---- */

/* What the driver writes behind the part that TMA reads, for its own use: the bytes of a box, its
 * partial steps not counted, and the alignment of the shared address. */
static void put_notes(const struct tensormap *m, void *bytes)
{
	static const uint16_t align[] = { 16, 256, 512, 1024, 1024, 1024, 1024 };
	uint64_t n = m->mode == TM_TILE ? 1 : (uint64_t)m->box[0] * m->pixels;

	for (unsigned i = 0; m->mode == TM_TILE && i < m->rank; i++)
		n *= m->box[i] / m->elem_stride[i];
	put(bytes, 512, 32, n * types[m->type].bits / 8);
	put(bytes, 576, 32, align[m->swizzle]);
}

void tensormap_pack(const struct tensormap *m, void *bytes)
{
	struct fields f = { *m, .im2col = m->mode != TM_TILE, .code = types[m->type].code & 15,
		.tf32 = types[m->type].code >> 4 };

	f.span = m->swizzle < TSW_128 ? m->swizzle : TSW_128;
	f.atoms = m->swizzle - f.span;
	memset(bytes, 0, CONSAN_TENSORMAP_BYTES);
	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		const struct part *p = &parts[k];

		for (unsigned i = 0; applies(p, m->mode, m->rank) && i < p->n; i++)
			put(bytes, p->bit + i * p->next, p->width, (member(&f, p, i) - p->less) >> p->drop);
	}
	put_notes(m, bytes);
}

/* ---- unpack ---- */

/* Are the bits that have no meaning in this mode 0? */
static bool rest_is_zero(const void *bytes, unsigned mode, unsigned rank)
{
	uint64_t used[USED_BITS / WORD_BITS] = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		const struct part *p = &parts[k];

		for (unsigned i = 0; applies(p, mode, rank) && i < p->n; i++)
			put(used, p->bit + i * p->next, p->width, UINT64_MAX);
	}
	for (unsigned k = 0; k < USED_BITS / WORD_BITS; k++)
		if (get(bytes, k * WORD_BITS, WORD_BITS) & ~used[k])
			return false;
	return true;
}

static const char *name_fields(struct fields *f)
{
	struct tensormap *m = &f->m;

	if (m->interleave > 2)
		return "a tensor map with an unknown interleave layout";
	while (m->type < TT_COUNT && types[m->type].code != (f->code | f->tf32 << 4))
		m->type++;
	if (m->type == TT_COUNT)
		return "a tensor map with an unknown element type";
	if (f->span96 && (f->span || f->atoms))
		return "a tensor map with an unknown swizzle";
	if (f->atoms && (f->span != TSW_128 || f->atoms >= TSW_COUNT - TSW_128))
		return "a tensor map with a swizzle atomicity that its swizzle does not have";
	m->swizzle = (uint8_t)(f->span96 ? TSW_96 : f->span + f->atoms);
	return NULL;
}

const char *tensormap_unpack(struct tensormap *m, const void *bytes, enum tensor_mode as)
{
	const enum tensor_mode mode = !get(bytes, 64, 1) ? TM_TILE : as == TM_TILE ? TM_IM2COL : as;
	const unsigned rank = 1 + (unsigned)get(bytes, 68, 3);
	struct fields f;
	const char *why;

	memset(&f, 0, sizeof f); /* with its padding */
	*m = f.m;
	if (rank > TENSOR_RANKS)
		return "a tensor map of a rank beyond 5";
	f.m.mode = (uint8_t)mode;
	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		const struct part *p = &parts[k];

		for (unsigned i = 0; applies(p, mode, rank) && i < p->n; i++) {
			const uint64_t v = get(bytes, p->bit + i * p->next, p->width);
			const uint64_t sign = p->is_signed ? v >> (p->width - 1) << p->width : 0;

			set_member(&f, p, i, (member(&f, p, i) | (v - sign) << p->drop) + p->less);
		}
	}
	why = name_fields(&f);
	f.m.unknown = !rest_is_zero(bytes, mode, rank);
	*m = f.m;
	return why;
}

uint64_t tensormap_hash(const struct tensormap *m)
{
	const unsigned char *at = (const void *)m;
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < sizeof *m; i++)
		hash = (hash ^ at[i]) * 0x100000001b3ull;
	return hash;
}

bool tensormap_same(const void *a, const void *b)
{
	uint64_t ignored[USED_BITS / WORD_BITS] = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(parts); k++)
		if (parts[k].at == offsetof(struct fields, bit65)
				|| parts[k].at == offsetof(struct fields, bit85))
			put(ignored, parts[k].bit, 1, 1);
	for (unsigned k = 0; k < USED_BITS / WORD_BITS; k++)
		if ((get(a, k * WORD_BITS, WORD_BITS) ^ get(b, k * WORD_BITS, WORD_BITS)) & ~ignored[k])
			return false;
	return true;
}

/* ---- tensormap.replace ---- */

/* Writes the bits of element i of the member at this offset. */
static void store(void *bytes, size_t at, unsigned i, uint64_t v)
{
	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		const struct part *p = &parts[k];

		if (p->at == at && i < p->n)
			put(bytes, p->bit + i * p->next, p->width, (v - p->less) >> p->drop);
	}
}
#define STORE(member, i, v) store(bytes, offsetof(struct fields, member), i, v)

static const char *replace_type(void *bytes, uint64_t value)
{
	unsigned type = 0;

	while (type < TT_COUNT && types[type].elemtype != value)
		type++;
	if (type == TT_COUNT)
		return "an unknown element type";
	STORE(code, 0, types[type].code & 15);
	if (types[type].code >> 4) /* no other type clears it (H200) */
		STORE(tf32, 0, 1);
	return NULL;
}

const char *tensormap_replace(void *bytes, enum tensor_field f, unsigned ord, uint64_t value)
{
	if (ord >= TENSOR_RANKS - (f == TF_STRIDE))
		return "an ordinal beyond the rank";
	switch (f) {
	case TF_ADDRESS:
		STORE(m.address, 0, value);
		return NULL;
	case TF_RANK:
		STORE(m.rank, 0, value + 1);
		return value < TENSOR_RANKS ? NULL : "a rank beyond 5";
	case TF_BOX:
		STORE(m.box, ord, value);
		return value - 1 < 256 ? NULL : "a box dimension that is not 1 to 256";
	case TF_DIM:
		STORE(m.dim, ord, value - 1);
		return NULL;
	case TF_STRIDE:
		STORE(m.stride, ord, value);
		return NULL;
	case TF_ELEM_STRIDE:
		STORE(m.elem_stride, ord, value);
		return value - 1 < 8 ? NULL : "an element stride that is not 1 to 8";
	case TF_TYPE:
		return replace_type(bytes, value);
	case TF_INTERLEAVE:
		STORE(m.interleave, 0, value);
		return value < 3 ? NULL : "an unknown interleave layout";
	case TF_SWIZZLE:
		STORE(span, 0, value);
		STORE(span96, 0, value >> 2);
		return value < 5 ? NULL : "an unknown swizzle mode";
	case TF_FILL:
		STORE(m.oob, 0, value);
		return value < 2 ? NULL : "an unknown fill mode";
	case TF_ATOMICITY:
		STORE(atoms, 0, value);
		return value < 4 ? NULL : "an unknown swizzle atomicity";
	}
	return "an unknown field";
}
