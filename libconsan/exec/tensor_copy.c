/* tensor_copy: moves boxes of a tensor between global memory and their dense, swizzled image in
 * shared memory, row by row of the innermost dimension. Does not handle barriers or events. */
#include "machine.h"
#include "tensormap.h"

#include <string.h>

#include "num.h"

static const uint8_t bits_of[TT_COUNT] = {
#define TENSOR_TYPE(id, bits, class, name, code, elemtype) bits,
#include "tensormap.def"
};

#define MAX_ROW 8192u /* 256 elements of 32 bytes */

uint32_t tensor_swizzle(enum tensor_swizzle s, uint32_t at)
{
	switch (s) {
	case TSW_NONE: return at;
	case TSW_32: return at ^ (at >> 3 & 0x10);
	case TSW_64: return at ^ (at >> 3 & 0x30);
	case TSW_128: return at ^ (at >> 3 & 0x70);
	case TSW_128_ATOM32: return at ^ (at >> 2 & 0x60);
	/* also swaps the 8-byte halves in every other row */
	case TSW_128_ATOM32_FLIP8: return at ^ (at >> 2 & 0x60) ^ (at >> 4 & 8);
	case TSW_128_ATOM64: return at ^ (at >> 1 & 0x40);
	case TSW_COUNT: break;
	}
	return at;
}

/* Measured on an H200, where the manuals do not specify it:
 *  - In an interleaved layout the element of dimension 0 is a slice of 16 or 32 bytes, whatever the
 *    type, and a box is one element thick in the dimension before the last (the slices of channels
 *    in NC/8HWC8).
 *  - Under a swizzle a row takes at least the swizzle's span of shared memory; the part it does not
 *    fill is unchanged.
 *  - Without interleave, a first coordinate that is no multiple of 16 bytes is an illegal
 *    instruction, and so are a negative coordinate of a store and an im2col coordinate outside the
 *    pixel box.
 *  - Outside the tensor, the NaN of every type consists of halves of 0x7ff7.
 *  - A store writes whole units of 16 bytes at the inner edge of a tiled tensor: columns 6 and 7 of
 *    a box of 8 words where the tensor has 6. Assumed of im2col and scatter4, too, which have not
 *    been measured, and not of reductions (tests/gpu/tensor_edge.c).
 *  - .tf32 rounds to nearest, subnormals included, and a NaN is 0x7fffe000. */

/* Bits of an element of dimension 0. */
static uint32_t unit_bits(const struct tensormap *m)
{
	return m->interleave ? 128u * m->interleave : bits_of[m->type];
}

/* The same in shared memory. */
static uint32_t shared_bits(const struct tensormap *m)
{
	return tensor_padded(m->type) ? 8 : unit_bits(m);
}

uint32_t tensor_element_bits(const struct tensormap *m)
{
	return bits_of[m->type];
}

uint32_t tensor_box_count(const struct tensormap *m, unsigned i)
{
	unsigned step = i || m->interleave ? m->elem_stride[i] : 1, n = m->box[i];

	if (m->interleave && i + 2u == m->rank)
		return 1;
	return (n + step - 1) / step;
}

uint32_t tensor_box_row(const struct tensormap *m)
{
	return tensor_box_count(m, 0) * shared_bits(m) / 8;
}

uint32_t tensor_box_pitch(const struct tensormap *m)
{
	uint32_t n = tensor_box_row(m);
	uint32_t span = m->swizzle == TSW_NONE ? 0 : m->swizzle == TSW_32 ? 32
		: m->swizzle == TSW_64 ? 64 : 128;

	return n < span && !m->interleave ? span : n;
}

/* Of .im2col::w::128: a halo follows each group of pixels. */
enum { WIDE_PIXELS = 128, WIDE_GROUP = 32, WIDE_GROUPS = WIDE_PIXELS / WIDE_GROUP };

static uint32_t box_rows(const struct tensor_copy *c)
{
	const struct tensormap *m = c->map;
	uint32_t n = 1;

	if (c->rows)
		return 4;
	switch (m->mode) {
	case TM_IM2COL: return m->pixels;
	case TM_WIDE: return m->pixels + c->offset[0];
	case TM_WIDE_128: return WIDE_PIXELS + WIDE_GROUPS * c->offset[0];
	}
	for (unsigned i = 1; i < m->rank; i++)
		n *= tensor_box_count(m, i);
	return n;
}

uint32_t tensor_box_bytes(const struct tensor_copy *c)
{
	return tensor_box_count(c->map, 0) * unit_bits(c->map) / 8 * box_rows(c);
}

uint32_t tensor_box_extent(const struct tensor_copy *c)
{
	return tensor_box_pitch(c->map) * (box_rows(c) - 1) + tensor_box_row(c->map);
}

bool tensor_box_dense(const struct tensor_copy *c)
{
	return tensor_box_row(c->map) == tensor_box_pitch(c->map) || box_rows(c) == 1;
}

uint32_t tensor_box_align(const struct tensormap *m)
{
	(void)m;
	/* a swizzle acts on address bits, so any 128-byte boundary is sufficient */
	return 128;
}

/* ---- the walk over rows ---- */

struct rows {
	uint32_t bytes;            /* bytes of a row */
	uint32_t pitch;            /* distance of rows in shared memory */
	uint32_t step;             /* 0: a row is contiguous in global memory, else the distance
				      of elements in bytes */
	uint32_t unit;             /* bytes of an element, if step */
	uint32_t packed;           /* bytes of 16 elements of a padded type in global memory, or 0 */
	uint32_t lo, hi;           /* bytes [lo, hi) of each row are inside dimension 0; with `packed`
				      in global memory: all or none */
	int64_t first;             /* byte offset in dimension 0 of the row's byte 0 */
};

static struct rows rows_of(const struct tensor_copy *c)
{
	const struct tensormap *m = c->map;
	int64_t bits = unit_bits(m), n = tensor_box_count(m, 0);
	int64_t by = m->interleave ? m->elem_stride[0] : 1;
	int64_t left = ((int64_t)m->dim[0] + by - c->at[0]) / by;
	int64_t lo = c->at[0] < 0 ? (-(int64_t)c->at[0] + by - 1) / by : 0;
	struct rows r = { .bytes = tensor_box_row(m), .pitch = tensor_box_pitch(m),
		.first = c->at[0] * bits / 8 };

	r.packed = tensor_padded(m->type) ? (uint32_t)bits * 2 : 0;
	r.unit = (uint32_t)(bits / 8);
	r.step = by > 1 ? (uint32_t)(by * bits / 8) : 0;
	left = left < 0 || c->at[0] > (int64_t)m->dim[0] ? 0 : left < n ? left : n;
	lo = lo < left ? lo : left;
	r.lo = (uint32_t)(lo * bits / 8);
	r.hi = (uint32_t)(left * bits / 8);
	return r;
}

/* Bytes beside the tensor up to the end of the unit of 16 bytes. */
static uint32_t padding_of(const struct rows *r)
{
	const uint32_t n = -r->hi & 15;

	return r->step || r->packed || r->lo >= r->hi ? 0 : n < r->bytes - r->hi ? n : r->bytes - r->hi;
}

/* Visits each row of the box: each(user, k, base, inside) with the address of the row's dimension 0
 * origin. Rows outside the tensor have inside false. */
typedef bool (*row_fn)(void *user, uint32_t k, uint64_t base, bool inside);

static inline __attribute__((always_inline))
bool each_tile_row(const struct tensor_copy *c, row_fn each, void *user)
{
	const struct tensormap *m = c->map;
	uint32_t n[TENSOR_RANKS] = { 1, 1, 1, 1, 1 }, i[TENSOR_RANKS] = { 0 }, k = 0;

	for (unsigned d = 1; d < m->rank; d++)
		n[d] = tensor_box_count(m, d);
	for (i[4] = 0; i[4] < n[4]; i[4]++)
	for (i[3] = 0; i[3] < n[3]; i[3]++)
	for (i[2] = 0; i[2] < n[2]; i[2]++) {
		uint64_t base = m->address;
		bool in = true;

		for (unsigned d = 2; d < m->rank; d++) {
			int64_t x = c->at[d] + (int64_t)i[d] * m->elem_stride[d];

			in &= x >= 0 && x <= m->dim[d];
			base += (uint64_t)x * m->stride[d - 1];
		}
		for (i[1] = 0; i[1] < n[1]; i[1]++) {
			int64_t x = m->rank > 1 ? c->at[1] + (int64_t)i[1] * m->elem_stride[1] : 0;
			uint64_t at = base + (uint64_t)x * m->stride[0];

			if (!each(user, k++, at, in && x >= 0 && x <= m->dim[1]))
				return false;
		}
	}
	return true;
}

/* Dimensions 1 to rank - 2 are W, H, D; the last is N. The base pixel iterates over the box [lower,
 * dim + upper); the offsets are added to get the pixel read. */
static inline __attribute__((always_inline))
bool each_im2col_row(const struct tensor_copy *c, row_fn each, void *user)
{
	const struct tensormap *m = c->map;
	unsigned last = m->rank - 1u;
	int64_t x[TENSOR_RANKS];

	for (unsigned d = 1; d <= last; d++)
		x[d] = c->at[d];
	for (uint32_t k = 0; k < m->pixels; k++) {
		uint64_t at = m->address;
		bool in = true;

		for (unsigned d = 1; d <= last; d++) {
			int64_t y = x[d] + (d < last ? c->offset[d - 1] : 0);

			in &= y >= 0 && y <= m->dim[d];
			at += (uint64_t)y * m->stride[d - 1];
		}
		if (!each(user, k, at, in))
			return false;
		for (unsigned d = 1; d <= last; d++) {
			x[d] += m->elem_stride[d];
			if (d == last || x[d] < (int64_t)m->dim[d] + 1 + m->upper[d - 1])
				break;
			x[d] = m->lower[d - 1];
		}
	}
	return true;
}

/* The place in the walk of the k-th row of a wide copy. The halo of .im2col::w comes last. The one
 * of .im2col::w::128 comes in planes behind the 128 pixels, which have one pixel for each group: the
 * ISA has this in figures only, and it has not been measured. */
static int64_t wide_place(const struct tensormap *m, uint32_t k)
{
	const uint32_t halo = k - WIDE_PIXELS;

	if (m->mode == TM_WIDE || k < WIDE_PIXELS)
		return k;
	return WIDE_GROUP * (halo % WIDE_GROUPS + 1) + halo / WIDE_GROUPS;
}

/* ISA 5.5.5: a walk along W, from image to image, at the same D and H. It may begin to the left of
 * the box. */
static inline __attribute__((always_inline))
bool each_wide_row(const struct tensor_copy *c, row_fn each, void *user)
{
	const struct tensormap *m = c->map;
	const unsigned last = m->rank - 1u;
	const int64_t by = m->elem_stride[1], end = tensor_wide_end(m);
	const int64_t first = (end - c->at[1] + by - 1) / by; /* pixels of the first image */
	const int64_t line = (end - m->lower[0] + by - 1) / by;

	for (uint32_t k = 0; k < box_rows(c); k++) {
		const int64_t place = wide_place(m, k) - first;
		int64_t x[TENSOR_RANKS];
		uint64_t at = m->address;
		bool in = true;

		for (unsigned d = 2; d <= last; d++)
			x[d] = c->at[d];
		x[1] = place < 0 ? c->at[1] + (place + first) * by : m->lower[0] + place % line * by;
		x[1] += c->offset[1];
		x[last] += place < 0 ? 0 : 1 + place / line;
		for (unsigned d = 1; d <= last; d++) {
			in &= x[d] >= 0 && x[d] <= m->dim[d];
			at += (uint64_t)x[d] * m->stride[d - 1];
		}
		if (!each(user, k, at, in))
			return false;
	}
	return true;
}

static inline __attribute__((always_inline))
bool each_row(const struct tensor_copy *c, row_fn each, void *user)
{
	const struct tensormap *m = c->map;

	if (c->rows) {
		for (uint32_t k = 0; k < 4; k++) {
			int64_t x = c->at[1 + k];

			if (!each(user, k, m->address + (uint64_t)x * m->stride[0],
					x >= 0 && x <= m->dim[1]))
				return false;
		}
		return true;
	}
	switch (m->mode) {
	case TM_TILE: return each_tile_row(c, each, user);
	case TM_IM2COL: return each_im2col_row(c, each, user);
	default: return each_wide_row(c, each, user);
	}
}

/* ---- shared memory side ---- */

static inline __attribute__((always_inline))
void put_row(unsigned char *shared, uint32_t at, const unsigned char *from, uint32_t n,
	enum tensor_swizzle s)
{
	if (s == TSW_NONE) {
		memcpy(shared + at, from, n);
	} else if (s != TSW_128_ATOM32_FLIP8) {
		for (uint32_t i = 0; i < n; i += 16)
			memcpy(shared + tensor_swizzle(s, at + i), from + i, 16);
	} else {
		for (uint32_t i = 0; i < n; i += 8)
			memcpy(shared + tensor_swizzle(s, at + i), from + i, 8);
	}
}

static void get_row(unsigned char *to, const unsigned char *shared, uint32_t at, uint32_t n,
	enum tensor_swizzle s)
{
	uint32_t step = s == TSW_128_ATOM32_FLIP8 ? 8 : 16;

	if (s == TSW_NONE) {
		memcpy(to, shared + at, n);
		return;
	}
	for (uint32_t i = 0; i < n; i += step)
		memcpy(to + i, shared + tensor_swizzle(s, at + i), step);
}

/* ---- load ---- */

/* Two bytes of the fill value for places outside the tensor. */
static uint16_t fill_of(const struct tensormap *m)
{
	return m->oob ? 0x7ff7 : 0;
}

struct load {
	const struct tensor_copy *c;
	struct rows r;
	bool convert;              /* values are converted (.tf32) */
	unsigned char fill[MAX_ROW]; /* a row of fill values */
};

/* The .tf32 types. On an H200 .ftz leaves subnormals unchanged. */
static void convert_row(unsigned char *row, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 4) {
		uint32_t u;

		memcpy(&u, row + i, 4);
		if ((u & 0x7fffffff) > 0x7f800000)
			u = 0x7fffe000;
		else
			u = num_to_tf32(u, NUM_RN, false);
		memcpy(row + i, &u, 4);
	}
}

/* Copies what lies inside from global memory to its place in the row. */
static void take(unsigned char *row, const unsigned char *from, const struct rows *r)
{
	if (!r->step) {
		memcpy(row + r->lo, from + r->lo, r->hi - r->lo);
		return;
	}
	for (uint32_t i = r->lo; i < r->hi; i += r->unit)
		memcpy(row + i, from + i / r->unit * r->step, r->unit);
}

/* 16 elements of a padded type at the start of each 16 bytes; the rest is 0. */
static void unpack(unsigned char *row, const unsigned char *from, const struct rows *r)
{
	memset(row, 0, r->bytes);
	for (uint32_t i = 0; i < r->bytes / 16; i++)
		memcpy(row + 16 * i, from + i * r->packed, r->packed);
}

static inline __attribute__((always_inline))
bool load_row(void *user, uint32_t k, uint64_t base, bool inside, enum tensor_swizzle s)
{
	const struct load *l = user;
	const struct tensor_copy *c = l->c;
	const struct rows *r = &l->r;
	uint32_t at = c->dst + k * r->pitch;
	const unsigned char *from = l->fill;
	unsigned char row[MAX_ROW];

	if (inside && r->lo < r->hi) {
		from = (const unsigned char *)(uintptr_t)(base + (uint64_t)r->first);
		if (r->packed) {
			unpack(row, from, r);
			from = row;
		} else if (l->convert || r->step || r->lo || r->hi < r->bytes) {
			memcpy(row, l->fill, r->lo);
			take(row, from, r);
			memcpy(row + r->hi, l->fill, r->bytes - r->hi);
			if (l->convert)
				convert_row(row + r->lo, r->hi - r->lo);
			from = row;
		}
	}
	put_row(c->shared, at, from, r->bytes, s);
	return true;
}

#define LOAD_ROW(id) \
static bool load_row_##id(void *user, uint32_t k, uint64_t base, bool inside) \
{ \
	return load_row(user, k, base, inside, id); \
}
LOAD_ROW(TSW_NONE)
LOAD_ROW(TSW_32)
LOAD_ROW(TSW_64)
LOAD_ROW(TSW_128)
LOAD_ROW(TSW_128_ATOM32)
LOAD_ROW(TSW_128_ATOM32_FLIP8)
LOAD_ROW(TSW_128_ATOM64)

void tensor_load(const struct tensor_copy *c)
{
	static const row_fn by_swizzle[TSW_COUNT] = { load_row_TSW_NONE, load_row_TSW_32,
		load_row_TSW_64, load_row_TSW_128, load_row_TSW_128_ATOM32,
		load_row_TSW_128_ATOM32_FLIP8, load_row_TSW_128_ATOM64 };
	enum tensor_type t = c->map->type;
	struct load l;
	uint16_t fill = fill_of(c->map);

	l.c = c;
	l.r = rows_of(c);
	l.convert = t == TT_tf32 || t == TT_tf32_ftz;
	if (!fill)
		memset(l.fill, 0, l.r.bytes);
	for (uint32_t i = 0; fill && i < l.r.bytes; i += 2)
		memcpy(l.fill + i, &fill, 2);
	each_row(c, by_swizzle[c->map->swizzle], &l);
}

/* ---- store and reduce ---- */

struct store {
	const struct tensor_copy *c;
	struct rows r;
	enum tensor_red red;
};

static void put_memory(const struct store *s, unsigned char *to, const unsigned char *from, uint64_t n)
{
	if (s->red == RED_NONE)
		memcpy(to, from, n);
	else
		tensor_reduce(s->red, s->c->map->type, to, from, n);
}

struct piece { const struct store *s; const unsigned char *from; };

static void put_piece(void *user, uint64_t at, uint64_t from, uint64_t n)
{
	const struct piece *p = user;

	put_memory(p->s, (unsigned char *)(uintptr_t)at, p->from + from, n);
}

static void put(const struct store *s, unsigned char *to, const unsigned char *from, uint32_t n)
{
	if (s->c->multimem)
		multicast_each(s->c->multimem, (uintptr_t)to, n, put_piece, &(struct piece){ s, from });
	else
		put_memory(s, to, from, n);
}

static bool store_row(void *user, uint32_t k, uint64_t base, bool inside)
{
	const struct store *s = user;
	const struct tensor_copy *c = s->c;
	const struct rows *r = &s->r;
	unsigned char row[MAX_ROW];
	unsigned char *to = (unsigned char *)(uintptr_t)(base + (uint64_t)r->first);
	uint32_t pad;

	if (!inside || r->lo >= r->hi)
		return true;
	get_row(row, c->shared, c->dst + k * r->pitch, r->bytes, c->map->swizzle);
	if (r->packed) {
		for (uint32_t i = 0; i < r->bytes / 16; i++)
			put(s, to + i * r->packed, row + 16 * i, r->packed);
		return true;
	}
	if (!r->step) {
		put(s, to + r->lo, row + r->lo, r->hi - r->lo);
		pad = padding_of(r);
		if (pad && (uintptr_t)to + r->hi + pad <= c->pad_end)
			put(s, to + r->hi, row + r->hi, pad);
		return true;
	}
	for (uint32_t i = r->lo; i < r->hi; i += r->unit)
		put(s, to + i / r->unit * r->step, row + i, r->unit);
	return true;
}

void tensor_store(const struct tensor_copy *c, enum tensor_red red)
{
	struct store s = { .c = c, .r = rows_of(c), .red = red };

	each_row(c, store_row, &s);
}

/* ---- spans ---- */

struct spans {
	struct rows r;
	tensor_span each;
	void *user;
	uint64_t addr, bytes;      /* span collected so far */
};

static bool span_row(void *user, uint32_t k, uint64_t base, bool inside)
{
	struct spans *s = user;
	uint64_t at = base + (uint64_t)s->r.first + s->r.lo;
	uint64_t n = s->r.hi - s->r.lo;
	bool ok = true;

	if (s->r.step && n) {
		/* from the first element to the last, gaps included */
		at = base + (uint64_t)s->r.first + s->r.lo / s->r.unit * s->r.step;
		n = (n / s->r.unit - 1) * s->r.step + s->r.unit;
	}

	(void)k;
	if (!inside || s->r.lo >= s->r.hi)
		return true;
	if (s->bytes && s->addr + s->bytes == at) {
		s->bytes += n;
		return true;
	}
	if (s->bytes)
		ok = s->each(s->user, s->addr, s->bytes);
	s->addr = at;
	s->bytes = n;
	return ok;
}

bool tensor_spans(const struct tensor_copy *c, tensor_span each, void *user)
{
	struct spans s = { .r = rows_of(c), .each = each, .user = user };

	return each_row(c, span_row, &s) && (!s.bytes || each(user, s.addr, s.bytes));
}

struct padding {
	struct rows r;
	tensor_span each;
	void *user;
	uint64_t end;
};

static bool padding_row(void *user, uint32_t k, uint64_t base, bool inside)
{
	const struct padding *p = user;
	const uint64_t at = base + (uint64_t)p->r.first + p->r.hi;
	const uint32_t n = padding_of(&p->r);

	(void)k;
	return !inside || at + n > p->end || p->each(p->user, at, n);
}

bool tensor_padding(const struct tensor_copy *c, tensor_span each, void *user)
{
	struct padding p = { rows_of(c), each, user, c->pad_end };

	return !padding_of(&p.r) || each_row(c, padding_row, &p);
}
