/* array: see array.h. Arrays have the layout of pitched memory. */
#include "array.h"

#include <stdlib.h>

unsigned array_format_bytes(CUarray_format f)
{
	switch (f) {
	case CU_AD_FORMAT_UNSIGNED_INT8: case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16: case CU_AD_FORMAT_SIGNED_INT16: case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32: case CU_AD_FORMAT_SIGNED_INT32: case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

static const struct { CUarray_format format; enum cudaChannelFormatKind kind; int bits; } formats[] = {
	{ CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8 },
	{ CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16 },
	{ CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32 },
	{ CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8 },
	{ CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16 },
	{ CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32 },
	{ CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16 },
	{ CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32 },
};

bool array_format(const struct cudaChannelFormatDesc *d, CUarray_format *f, unsigned *channels)
{
	const int bits[4] = { d->x, d->y, d->z, d->w };
	unsigned n = 0;

	while (n < 4 && bits[n])
		n++;
	for (unsigned k = 0; k < 4; k++)
		if (bits[k] != (k < n ? d->x : 0))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].kind == d->f && formats[i].bits == d->x) {
			*f = formats[i].format;
			*channels = n;
			return n == 1 || n == 2 || n == 4;
		}
	return false;
}

struct cudaChannelFormatDesc array_channels(CUarray_format f, unsigned channels)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].format == f) {
			const int bits = formats[i].bits;

			return (struct cudaChannelFormatDesc){ .x = bits, .y = channels > 1 ? bits : 0,
				.z = channels > 2 ? bits : 0, .w = channels > 3 ? bits : 0,
				.f = formats[i].kind };
		}
	return (struct cudaChannelFormatDesc){ .f = cudaChannelFormatKindNone };
}

unsigned array_element(const struct array *a)
{
	return array_format_bytes(a->desc.Format) * a->desc.NumChannels;
}

/* "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide */
static bool too_large(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	if (d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))
		return d->Width > 32768 || d->Height > 32768 || d->Depth > 2048;
	if (d->Depth)
		return d->Width > 16384 || d->Height > 16384 || d->Depth > 16384;
	return d->Width > 131072 || d->Height > 65536;
}

/* NULL: the array can be emulated. */
static const char *why_not(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	static const struct { unsigned flag; const char *why; } no[] = {
		{ CUDA_ARRAY3D_SPARSE, "sparse arrays are not emulated" },
		{ CUDA_ARRAY3D_DEFERRED_MAPPING, "arrays whose memory is mapped later are not emulated" },
		{ CUDA_ARRAY3D_DEPTH_TEXTURE, "depth textures are not emulated: how they compare is not documented" },
		{ CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, "arrays for video are not emulated" },
	};
	const unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP
		| CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;

	if (!array_format_bytes(d->Format))
		return "arrays of this format (planar, block-compressed, normalized) are not emulated";
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (d->Flags & no[i].flag)
			return no[i].why;
	return d->Flags & ~known ? "a flag of it is not known" : NULL;
}

/* "cuArray3DCreate" of the CUDA Driver API */
static int check(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	const bool layered = d->Flags & CUDA_ARRAY3D_LAYERED, cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;
	const char *why = why_not(d);

	if (why) {
		remark_refused("the creation of an array", why);
		return cudaErrorNotSupported;
	}
	if ((d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4) || !d->Width
			|| (d->Depth && !d->Height && !layered) || (layered && !d->Depth))
		return cudaErrorInvalidValue;
	if (cube && (d->Width != d->Height || d->Depth % 6 || !d->Depth || (!layered && d->Depth != 6)))
		return cudaErrorInvalidValue;
	return too_large(d) ? cudaErrorInvalidValue : 0;
}

/* The description is right. */
static int make(struct array **out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	struct array *a = base_alloc(sizeof *a);
	void *at;
	int error;

	a->desc = *d;
	a->row = d->Width * array_element(a);
	error = mem_alloc_pitch(&at, &a->pitch, a->row, array_rows(a) * array_planes(a));
	if (error) {
		free(a);
		return error;
	}
	a->at = at;
	a->slice = a->pitch * array_rows(a);
	handle_put(a, HANDLE_ARRAY, a);
	*out = a;
	return 0;
}

int array_new(void **out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	struct array *a;
	int error = device_ready();

	if (!error)
		error = out && d ? check(d) : cudaErrorInvalidValue;
	if (!error)
		error = make(&a, d);
	if (!error)
		*out = a;
	return error;
}

struct array *array_of(const void *handle)
{
	return handle_get(handle, HANDLE_ARRAY);
}

static int release(struct array *a)
{
	const int error = mem_free(a->at);

	if (error)
		return error;
	handle_drop(a, HANDLE_ARRAY);
	free(a);
	return 0;
}

int array_free(const void *handle)
{
	struct array *a = array_of(handle);

	return a && !a->of_mipmapped ? release(a) : cudaErrorInvalidResourceHandle;
}

/* ---- mipmapped arrays ---- */

static size_t half(size_t n)
{
	return n > 1 ? n / 2 : n;
}

/* "cuMipmappedArrayCreate" of the CUDA Driver API: as many as there are until all sizes are 1 */
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	const size_t depth = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) ? 0 : d->Depth;
	const size_t most = d->Width > d->Height ? d->Width : d->Height;
	unsigned n = 0;

	for (size_t k = most > depth ? most : depth; k; k >>= 1)
		n++;
	return n;
}

int mipmapped_new(void **out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	CUDA_ARRAY3D_DESCRIPTOR level;
	struct mipmapped *m;
	int error = device_ready();

	if (!error)
		error = out && d ? check(d) : cudaErrorInvalidValue;
	if (error)
		return error;
	level = *d;
	m = base_alloc(sizeof *m);
	handle_put(m, HANDLE_MIPMAPPED, m);
	levels = levels < 1 ? 1 : levels > most_levels(d) ? most_levels(d) : levels;
	while (m->n < levels) {
		error = make(&m->level[m->n], &level);
		if (error) {
			mipmapped_free(m);
			return error;
		}
		m->level[m->n++]->of_mipmapped = true;
		level.Width = half(level.Width);
		level.Height = half(level.Height);
		if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
			level.Depth = half(level.Depth);
	}
	*out = m;
	return 0;
}

struct mipmapped *mipmapped_of(const void *handle)
{
	return handle_get(handle, HANDLE_MIPMAPPED);
}

int mipmapped_level(const void *handle, unsigned level, void **out)
{
	const struct mipmapped *m = mipmapped_of(handle);

	if (!m)
		return cudaErrorInvalidResourceHandle;
	if (!out || level >= m->n)
		return cudaErrorInvalidValue;
	*out = m->level[level];
	return 0;
}

int mipmapped_free(const void *handle)
{
	struct mipmapped *m = mipmapped_of(handle);

	if (!m)
		return cudaErrorInvalidResourceHandle;
	while (m->n) {
		const int error = release(m->level[m->n - 1]);

		if (error)
			return error;
		m->n--;
	}
	handle_drop(m, HANDLE_MIPMAPPED);
	free(m);
	return 0;
}

/* ---- copies ---- */

static bool inside(size_t from, size_t n, size_t limit)
{
	return from <= limit && n <= limit - from;
}

int array_place(const void *handle, size_t x, size_t y, size_t z, size_t width, size_t rows,
	size_t planes, struct place *p)
{
	const struct array *a = array_of(handle);

	if (!a)
		return cudaErrorInvalidResourceHandle;
	if (!inside(x, width, a->row) || !inside(y, rows, array_rows(a)) || !inside(z, planes, array_planes(a))
			|| x % array_element(a) || width % array_element(a))
		return cudaErrorInvalidValue;
	*p = (struct place){ a->at + z * a->slice + y * a->pitch + x, a->pitch, a->slice };
	return 0;
}

int array_linear(const void *handle, size_t x, size_t y, void *memory, size_t bytes, bool to_array,
	enum cudaMemcpyKind kind, struct copy part[ARRAY_PARTS], unsigned *n)
{
	const struct array *a = array_of(handle);
	char *at = memory;

	*n = 0;
	if (!a)
		return cudaErrorInvalidResourceHandle;
	if (!inside(x, 0, a->row) || (bytes && !inside(y, (x + bytes + a->row - 1) / a->row, array_rows(a)))
			|| x % array_element(a) || bytes % array_element(a))
		return cudaErrorInvalidValue;
	while (bytes) {
		const bool whole = !x && bytes >= a->row;
		const size_t rows = whole ? bytes / a->row : 1;
		const size_t width = whole ? a->row : bytes < a->row - x ? bytes : a->row - x;
		char *in = a->at + y * a->pitch + x;

		part[(*n)++] = to_array ? copy_plane(in, a->pitch, at, width, width, rows, kind)
			: copy_plane(at, width, in, a->pitch, width, rows, kind);
		at += width * rows;
		bytes -= width * rows;
		y += rows;
		x = 0;
	}
	return 0;
}
