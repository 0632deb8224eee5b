/* tensormap: makes and checks tensor maps, and what copies do with them. Their bytes are in
 * tensormap_bits.c, the copies in tensor_copy.c. Conditions are those of the driver API's reference
 * for cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col and cuTensorMapEncodeIm2colWide, in its order.
 * The reference also says that a 32-byte interleave needs swizzle 32B, but no driver enforces it. */
#include "tensormap.h"

#include <string.h>

#include "exec.h"

static const struct { uint8_t bits; char class; const char *name; } types[TT_COUNT] = {
#define TENSOR_TYPE(id, bits, class, name, code, elemtype) { bits, class, name },
#include "tensormap.def"
};


static unsigned swizzle_span(uint32_t s)
{
	return s == TSW_NONE ? 0 : s == TSW_32 ? 32 : s == TSW_64 ? 64 : 128;
}

#define REFUSE(...) return err_set(e, CONSAN_ERR_TENSORMAP, 0, 0, __VA_ARGS__)
#define LONGS(x) (unsigned long long)(x)

static bool check_tensor(const struct consan_tensormap_args *a, struct consan_err *e)
{
	uint32_t align;

	if (a->type >= TT_COUNT)
		REFUSE("tensorDataType %u is not a CUtensorMapDataType", a->type);
	if (a->rank < 1 || a->rank > TENSOR_RANKS)
		REFUSE("tensorRank is %u, not 1 to 5", a->rank);
	if (a->interleave > 2)
		REFUSE("interleave %u is not a CUtensorMapInterleave", a->interleave);
	if (a->rank < 3 && (a->interleave || a->im2col))
		REFUSE("tensorRank is %u, %s needs at least 3", a->rank,
			a->im2col ? "im2col" : "an interleaved layout");
	align = a->interleave == 2 || tensor_padded(a->type) ? 32 : 16;
	if (a->address >> 57) /* H200 */
		REFUSE("globalAddress 0x%llx is not below 2^57", LONGS(a->address));
	if (a->address % align)
		REFUSE("globalAddress 0x%llx is not %u-byte aligned", LONGS(a->address), align);
	for (uint32_t i = 0; i < a->rank; i++)
		if (!a->dim[i] || a->dim[i] > 1ull << 32)
			REFUSE("globalDim[%u] is %llu, not 1 to 2^32", i, LONGS(a->dim[i]));
	if (tensor_padded(a->type) && a->dim[0] % 128)
		REFUSE("globalDim[0] is %llu, not a multiple of 128", LONGS(a->dim[0]));
	if (a->type == TT_u4x16 && a->dim[0] % 2)
		REFUSE("globalDim[0] is %llu, not a multiple of 2", LONGS(a->dim[0]));
	for (uint32_t i = 0; i + 1 < a->rank; i++)
		if (a->stride[i] % align || a->stride[i] >= 1ull << 40)
			REFUSE("globalStrides[%u] is %llu, not a multiple of %u below 2^40",
				i, LONGS(a->stride[i]), align);
	for (uint32_t i = 0; i < a->rank; i++)
		if (!a->elem_stride[i] || a->elem_stride[i] > 8)
			REFUSE("elementStrides[%u] is %u, not 1 to 8", i, a->elem_stride[i]);
	return true;
}

static bool check_pattern(const struct consan_tensormap_args *a, uint64_t inner,
	struct consan_err *e)
{
	uint32_t s = a->swizzle;

	if (s >= TSW_COUNT)
		REFUSE("swizzle %u is not a CUtensorMapSwizzle", s);
	if (!a->interleave && s && inner > swizzle_span(s))
		REFUSE("the box's inner dimension is %llu bytes, more than the swizzle's %u",
			LONGS(inner), swizzle_span(s));
	if (tensor_padded(a->type) && (a->interleave || s == TSW_32 || s == TSW_64 ||
			s == TSW_128_ATOM32_FLIP8 || (s == TSW_128_ATOM64 && a->type == TT_u4x16_p64)))
		REFUSE("swizzle or interleave not allowed with type %s", types[a->type].name);
	if (a->l2 > 3)
		REFUSE("l2Promotion %u is not a CUtensorMapL2promotion", a->l2);
	if (a->oob > 1)
		REFUSE("oobFill %u is not a CUtensorMapFloatOOBfill", a->oob);
	if (a->oob && types[a->type].class != 'f')
		REFUSE("oobFill NAN with type %s, which is not a floating-point type",
			types[a->type].name);
	return true;
}

/* The shared memory of an SM (H200); a dimension counts without its last step if that is not whole. */
#define BOX_BYTES (228u << 10)

static bool check_tiled(const struct consan_tensormap_args *a, struct consan_err *e)
{
	uint64_t inner, bytes = types[a->type].bits;

	for (uint32_t i = 0; i < a->rank; i++)
		if (!a->box[i] || a->box[i] > 256)
			REFUSE("boxDim[%u] is %u, not 1 to 256", i, a->box[i]);
	inner = (uint64_t)a->box[0] * types[a->type].bits / 8;
	if (inner % 16 || a->box[0] * types[a->type].bits % 8)
		REFUSE("boxDim[0] spans %llu bytes, not a multiple of 16", LONGS(inner));
	if (tensor_padded(a->type) && a->box[0] != 128)
		REFUSE("boxDim[0] is %u, not 128", a->box[0]);
	for (uint32_t i = 0; i < a->rank; i++)
		bytes *= a->box[i] / a->elem_stride[i];
	if (bytes / 8 > BOX_BYTES)
		REFUSE("the box has %llu bytes, more than %u", LONGS(bytes / 8), BOX_BYTES);
	return check_pattern(a, inner, e);
}

static bool check_corners(const struct consan_tensormap_args *a, struct consan_err *e)
{
	/* rank 3, and wide: one corner of 16 bits, rank 4: two of 8, rank 5: three of 5 */
	const int bits = a->wide || a->rank == 3 ? 16 : a->rank == 4 ? 8 : 5;
	const int32_t low = -(1 << (bits - 1)), high = (1 << (bits - 1)) - 1;
	/* of an interleaved layout, dimension 0 is W */
	const uint64_t *dim = a->dim + !a->interleave;

	for (uint32_t i = 0; i < (a->wide ? 1 : a->rank - 2); i++) {
		if (a->lower[i] < low || a->lower[i] > high)
			REFUSE("pixelBoxLowerCorner[%u] is %d, not %d to %d", i,
				a->lower[i], low, high);
		if (a->upper[i] < low || a->upper[i] > high)
			REFUSE("pixelBoxUpperCorner[%u] is %d, not %d to %d", i,
				a->upper[i], low, high);
		/* the driver computes it in int (H200) */
		if (a->lower[i] >= (int64_t)(int32_t)dim[i] + a->upper[i])
			REFUSE("the pixel box is empty along %c", "WHD"[i]);
	}
	return true;
}

static bool check_im2col(const struct consan_tensormap_args *a, struct consan_err *e)
{
	uint64_t inner;

	if (!check_corners(a, e))
		return false;
	if (!a->channels || a->channels > 256)
		REFUSE("channelsPerPixel is %u, not 1 to 256", a->channels);
	if (!a->pixels || a->pixels > 1024)
		REFUSE("pixelsPerColumn is %u, not 1 to 1024", a->pixels);
	inner = (uint64_t)a->channels * types[a->type].bits / 8;
	if (inner % 16)
		REFUSE("channelsPerPixel spans %llu bytes, not a multiple of 16", LONGS(inner));
	if (a->wide > 2)
		REFUSE("mode %u is not a CUtensorMapIm2ColWideMode", a->wide - 1);
	if (a->wide && a->interleave)
		REFUSE("interleave with an im2col::w layout");
	if (a->wide && a->swizzle != TSW_64 && a->swizzle != TSW_128 && a->swizzle != TSW_128_ATOM32)
		REFUSE("swizzle %u not allowed with an im2col::w layout", a->swizzle);
	return check_pattern(a, inner, e);
}

bool exec_tensormap(const struct consan_tensormap_args *a, void *map, struct consan_err *e)
{
	struct tensormap m = { 0 };

	if (!map || (uintptr_t)map % 64)
		REFUSE("tensorMap %p is not 64-byte aligned", map);
	if (!check_tensor(a, e) || !(a->im2col ? check_im2col(a, e) : check_tiled(a, e)))
		return false;
	m.mode = (uint8_t)(a->wide ? TM_WIDE + a->wide - 1 : a->im2col ? TM_IM2COL : TM_TILE);
	m.type = (uint8_t)a->type;
	m.rank = (uint8_t)a->rank;
	m.interleave = (uint8_t)a->interleave;
	m.swizzle = (uint8_t)a->swizzle;
	m.l2 = (uint8_t)a->l2;
	m.oob = (uint8_t)a->oob;
	m.address = a->address;
	m.pixels = (uint16_t)(a->im2col ? a->pixels : 1);
	for (uint32_t i = 0; i < TENSOR_RANKS; i++) {
		const bool in = i < a->rank;

		m.dim[i] = in ? (uint32_t)(a->dim[i] - 1) : 0;
		m.box[i] = in && !a->im2col ? (uint16_t)a->box[i] : 1;
		m.elem_stride[i] = in ? (uint8_t)a->elem_stride[i] : 1;
		if (i && in)
			m.stride[i - 1] = a->stride[i - 1];
	}
	if (a->im2col)
		m.box[0] = (uint16_t)a->channels;
	for (uint32_t i = 0; a->im2col && i < (a->wide ? 1 : a->rank - 2); i++) {
		m.lower[i] = (int16_t)a->lower[i];
		m.upper[i] = (int16_t)a->upper[i];
	}
	tensormap_pack(&m, map);
	return true;
}

bool exec_tensormap_address(void *map, uint64_t address, struct consan_err *e)
{
	struct tensormap m;
	const char *why;

	why = tensormap_unpack(&m, map, TM_IM2COL);
	if (!why)
		why = tensormap_check(&m);
	if (why)
		REFUSE("tensorMap is %s", why);
	if (address % (m.interleave == 2 || tensor_padded(m.type) ? 32 : 16))
		REFUSE("globalAddress 0x%llx is not aligned", LONGS(address));
	return !tensormap_replace(map, TF_ADDRESS, 0, address);
}

const char *tensormap_check(const struct tensormap *m)
{
	if (m->mode && m->rank < 3)
		return "an im2col map of less than 3 dimensions";
	/* ISA 5.5.5 and 5.5.6 */
	if (m->mode >= TM_WIDE && (m->interleave || m->swizzle == TSW_NONE ||
			m->swizzle == TSW_128_ATOM32_FLIP8))
		return "a map with an interleaved layout or a swizzle that .im2col::w does not allow";
	if (m->mode >= TM_WIDE && m->lower[0] >= tensor_wide_end(m))
		return "an im2col::w map whose pixel box is empty";
	/* possible only in maps that no encoder made */
	if (tensor_padded(m->type) && (m->interleave || m->box[0] != 128))
		return "a tensor map of a padded type whose inner box dimension is not 128";
	if (!m->interleave && m->box[0] * types[m->type].bits % 128)
		return "a tensor map whose inner box dimension is not a multiple of 16 bytes";
	if (m->address % 16)
		return "a tensor map with a misaligned global address";
	for (unsigned i = 0; i + 1 < m->rank; i++)
		if (m->stride[i] % 16)
			return "a tensor map with a stride that is not a multiple of 16";
	return NULL;
}

const char *tensormap_unsupported(const struct tensormap *m)
{
	return m->unknown ? "a tensor map with bits of unknown meaning"
		: m->swizzle == TSW_96 ? "the 96-byte swizzle"
		: m->mode && m->interleave ? "an im2col map of an interleaved layout" : NULL;
}

/* ---- the use of a map ---- */

const char *tensor_copy_check(const struct tensor_copy *c, bool load)
{
	const struct tensormap *m = c->map;

	if (c->rows && (m->rank != 2 || m->mode != TM_TILE))
		return "gather4 and scatter4 need a 2-dimensional tiled map";
	if (!m->interleave && c->at[0] * (int64_t)types[m->type].bits % 128)
		return "the first coordinate is not a multiple of 16 bytes";
	if (tensor_padded(m->type) && c->at[0] % 128)
		return "the first coordinate is not a multiple of 128";
	if (m->type == TT_u4x16_p64 && !load)
		return "a store with a map of type b4x16_p64";
	if (m->swizzle == TSW_128_ATOM64 && m->type == TT_u6x16_p32 && load)
		return "a load of type b6x16_p32 with a swizzle of atoms of 64 bytes";
	for (unsigned i = 0; i < (c->rows ? TENSOR_RANKS : m->rank) && !load; i++)
		if (c->at[i] < 0)
			return "a negative coordinate of a store";
	for (unsigned i = 1; m->mode == TM_IM2COL && i + 1u < m->rank; i++)
		if (c->at[i] < m->lower[i - 1] ||
				c->at[i] > (int64_t)m->dim[i] + 1 + m->upper[i - 1])
			return "an im2col coordinate outside the map's pixel box";
	if (m->mode < TM_WIDE)
		return NULL;
	/* ISA 5.5.5.1, and the ranges of im2colInfo in 9.7.9.27.1.2 */
	if (c->at[1] >= tensor_wide_end(m))
		return "the first coordinate along W is to the right of the map's pixel box";
	if (c->offset[0] >= (m->mode == TM_WIDE ? 512 : 32) || c->offset[1] >= 32)
		return "wHalo or wOffset out of range";
	return NULL;
}

static const char *const mode_name[TM_COUNT] = { "a tiled", "an im2col", "an im2col::w",
	"an im2col::w::128" };

enum tensor_mode tensor_mode_of(enum ptx_mod mode)
{
	switch (mode) {
	case MOD_im2col: case MOD_im2col_no_offs: return TM_IM2COL;
	case MOD_im2col_w: return TM_WIDE;
	case MOD_im2col_w_128: return TM_WIDE_128;
	default: return TM_TILE;
	}
}

bool tensor_refused(struct refusal *r, enum ev_space space, uint64_t addr,
	const struct tensor_copy *c, const struct tensor_use *u)
{
	const struct tensormap *m = c->map;
	const char *why = tensormap_check(m);

	if (why)
		return refusal_set(r, FAULT_TENSORMAP, space, addr, CONSAN_TENSORMAP_BYTES, "%s", why);
	if (u->ncoords != (c->rows ? TENSOR_RANKS : m->rank))
		return refusal_set(r, FAULT_TENSOR_OPERAND, space, addr, CONSAN_TENSORMAP_BYTES,
			"%u coordinates for a map of rank %u", u->ncoords, m->rank);
	if (u->load && !u->prefetch && !c->rows && (tensor_mode_of(u->mode) != m->mode ||
			u->noffsets != (m->mode == TM_IM2COL ? m->rank - 2u : m->mode ? 2 : 0)))
		return refusal_set(r, FAULT_TENSOR_OPERAND, space, addr, CONSAN_TENSORMAP_BYTES,
			"%s map in another mode", mode_name[m->mode]);
	why = u->placed ? tensor_copy_check(c, u->load) : NULL;
	return why && refusal_set(r, FAULT_TENSOR_OPERAND, space, addr, CONSAN_TENSORMAP_BYTES, "%s",
		why);
}
