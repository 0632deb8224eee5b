/* array: CUDA arrays, and texture and surface objects. An array is device memory with padded rows,
 * whose address the program does not get. */
#ifndef CONSAN_CUDA_ARRAY_H
#define CONSAN_CUDA_ARRAY_H

#include "internal.h"

#include "libconsan/texture_args.h"

/* What a cudaArray_t and a CUarray name. */
struct array {
	CUDA_ARRAY3D_DESCRIPTOR desc; /* as it was created */
	char *at;
	size_t row;                /* bytes of a row without padding */
	size_t pitch, slice;       /* bytes from row to row, from plane or layer to the next one */
	bool of_mipmapped;         /* a level, which is released with the whole */
};
int array_new(void **out, const CUDA_ARRAY3D_DESCRIPTOR *d);
struct array *array_of(const void *handle); /* NULL: no such array */
int array_free(const void *handle);         /* waits for all work */
unsigned array_element(const struct array *a); /* bytes */
static inline size_t array_rows(const struct array *a)
{
	return a->desc.Height ? a->desc.Height : 1;
}
/* Planes, or layers. */
static inline size_t array_planes(const struct array *a)
{
	return a->desc.Depth ? a->desc.Depth : 1;
}
/* What a cudaMipmappedArray_t and a CUmipmappedArray name: level 0, and each other of half its size. */
struct mipmapped { unsigned n; struct array *level[CONSAN_MOST_LEVELS]; };
int mipmapped_new(void **out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels);
struct mipmapped *mipmapped_of(const void *handle); /* NULL: no such array */
int mipmapped_level(const void *handle, unsigned level, void **out);
int mipmapped_free(const void *handle);
/* Bytes of a channel of this format; 0: it is not supported. */
unsigned array_format_bytes(CUarray_format f);
/* Format and channels of the runtime's description; false: not supported. And back. */
bool array_format(const struct cudaChannelFormatDesc *d, CUarray_format *f, unsigned *channels);
struct cudaChannelFormatDesc array_channels(CUarray_format f, unsigned channels);

/* Source or destination of a copy: a box at byte x of row y of plane z. */
struct place { char *at; size_t pitch, slice; };
int array_place(const void *handle, size_t x, size_t y, size_t z, size_t width, size_t rows,
	size_t planes, struct place *p);
/* A copy between an array, from byte x of row y on, row after row, and contiguous memory, in at most
 * three parts. */
enum { ARRAY_PARTS = 3 };
int array_linear(const void *handle, size_t x, size_t y, void *memory, size_t bytes, bool to_array,
	enum cudaMemcpyKind kind, struct copy part[ARRAY_PARTS], unsigned *n);

/* ---- texture and surface objects (texture.c) ---- */

struct object {
	bool surface;
	uint64_t handle;
	bool of_runtime;           /* its descriptions are the runtime's */
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC view;
	struct cudaResourceDesc rt_resource;
	struct cudaTextureDesc rt_texture;
	struct cudaResourceViewDesc rt_view;
	bool has_view;
};
/* Makes the object that o describes; sets o->handle. call: the name of the call, for remarks. */
int object_new(const struct object *o, const char *call, uint64_t *handle);
const struct object *object_of(uint64_t handle, bool surface); /* NULL: none */
int object_free(uint64_t handle, bool surface);

#endif
