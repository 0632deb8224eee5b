/* texture: texture and surface objects, in the driver's terms. */
#include "array.h"
#include "queue.h"

#include "libconsan/texture_args.h"

#include <pthread.h>
#include <stdlib.h>

static const void *key(uint64_t handle)
{
	return (const void *)(uintptr_t)handle;
}

static enum handle_kind kind_of(bool surface)
{
	return surface ? HANDLE_SURFACE : HANDLE_TEXTURE;
}

static uint8_t texel_of(CUarray_format f)
{
	switch (f) {
	case CU_AD_FORMAT_UNSIGNED_INT8: return CONSAN_TEXEL_U8;
	case CU_AD_FORMAT_UNSIGNED_INT16: return CONSAN_TEXEL_U16;
	case CU_AD_FORMAT_UNSIGNED_INT32: return CONSAN_TEXEL_U32;
	case CU_AD_FORMAT_SIGNED_INT8: return CONSAN_TEXEL_S8;
	case CU_AD_FORMAT_SIGNED_INT16: return CONSAN_TEXEL_S16;
	case CU_AD_FORMAT_SIGNED_INT32: return CONSAN_TEXEL_S32;
	case CU_AD_FORMAT_HALF: return CONSAN_TEXEL_F16;
	default: return CONSAN_TEXEL_F32;
	}
}

/* ---- resources ---- */

static struct consan_level level_of(const struct array *a)
{
	return (struct consan_level){ (uintptr_t)a->at, a->pitch, a->slice };
}

static int of_array(const struct array *a, bool surface, struct consan_texture *t)
{
	const unsigned flags = a ? a->desc.Flags : 0;

	if (!a || (surface && !(flags & CUDA_ARRAY3D_SURFACE_LDST)))
		return cudaErrorInvalidValue;
	t->level[0] = level_of(a);
	t->width = (uint32_t)a->desc.Width;
	t->height = (uint32_t)a->desc.Height;
	t->cube = flags & CUDA_ARRAY3D_CUBEMAP;
	t->layered = flags & CUDA_ARRAY3D_LAYERED;
	if (flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))
		t->layers = (uint32_t)a->desc.Depth;
	else
		t->depth = (uint32_t)a->desc.Depth;
	t->format = texel_of(a->desc.Format);
	t->channels = (uint8_t)a->desc.NumChannels;
	return 0;
}

static int of_mipmapped(const struct mipmapped *m, bool surface, struct consan_texture *t)
{
	const int error = m && !surface ? of_array(m->level[0], false, t) : cudaErrorInvalidValue;

	if (error)
		return error;
	for (unsigned k = 0; k < m->n; k++)
		t->level[k] = level_of(m->level[k]);
	t->levels = m->n;
	return 0;
}

/* A format and channels that the program passes for memory. */
static int set_format(CUarray_format f, unsigned channels, struct consan_texture *t)
{
	if (!array_format_bytes(f) || (channels != 1 && channels != 2 && channels != 4))
		return cudaErrorInvalidValue;
	t->format = texel_of(f);
	t->channels = (uint8_t)channels;
	return 0;
}

/* Memory of textures must be aligned as the device's attributes say. */
static bool aligned(uint64_t at, int attribute)
{
	int unit;

	return !device_attribute(device_now(), attribute, &unit) && at % (unsigned)unit == 0;
}

static int of_memory(const CUDA_RESOURCE_DESC *r, struct consan_texture *t)
{
	const bool linear = r->resType == CU_RESOURCE_TYPE_LINEAR;
	const uint64_t at = linear ? r->res.linear.devPtr : r->res.pitch2D.devPtr;
	const size_t bytes = linear ? r->res.linear.sizeInBytes
		: r->res.pitch2D.pitchInBytes * r->res.pitch2D.height;
	int error = linear ? set_format(r->res.linear.format, r->res.linear.numChannels, t)
		: set_format(r->res.pitch2D.format, r->res.pitch2D.numChannels, t);
	unsigned texel;

	if (error)
		return error;
	texel = consan_texel_bytes(t->format) * t->channels;
	if (!bytes || !aligned(at, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)
			|| mem_check((const void *)(uintptr_t)at, linear ? bytes : 1))
		return cudaErrorInvalidValue;
	t->level[0].at = at;
	if (linear) {
		t->linear_memory = true;
		t->width = (uint32_t)(bytes / texel);
		t->level[0].pitch = t->level[0].slice = bytes;
		return bytes / texel > 1 << 28 || !t->width ? cudaErrorInvalidValue : 0;
	}
	t->width = (uint32_t)r->res.pitch2D.width;
	t->height = (uint32_t)r->res.pitch2D.height;
	t->level[0].pitch = t->level[0].slice = r->res.pitch2D.pitchInBytes;
	return t->level[0].pitch < (uint64_t)t->width * texel || !t->width
		|| !aligned(t->level[0].pitch, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) ? cudaErrorInvalidPitchValue : 0;
}

static int refuse(const char *call, const char *why)
{
	remark_refused(call, why);
	return cudaErrorNotSupported;
}

static int set_resource(const struct object *o, const char *call, struct consan_texture *t)
{
	const CUDA_RESOURCE_DESC *r = &o->resource;

	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		return of_array(array_of(r->res.array.hArray), o->surface, t);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return of_mipmapped(mipmapped_of(r->res.mipmap.hMipmappedArray), o->surface, t);
	case CU_RESOURCE_TYPE_LINEAR:
	case CU_RESOURCE_TYPE_PITCH2D:
		return o->surface ? cudaErrorInvalidValue : of_memory(r, t);
	default:
		return cudaErrorInvalidValue;
	}
}

/* ---- how texels are read ---- */

static int set_reading(const struct object *o, const char *call, struct consan_texture *t)
{
	const CUDA_TEXTURE_DESC *d = &o->texture;
	const bool integers = t->format < CONSAN_TEXEL_F16;

	if (d->flags & CU_TRSF_SRGB && (t->format != CONSAN_TEXEL_U8 || d->flags & CU_TRSF_READ_AS_INTEGER))
		return refuse(call, "conversion from sRGB is documented for bytes that are read as floats only");
	if (t->levels && !(d->flags & CU_TRSF_NORMALIZED_COORDINATES))
		return refuse(call, "coordinates of mipmapped arrays must be normalized");
	if (d->flags & CU_TRSF_SEAMLESS_CUBEMAP && t->cube)
		return refuse(call, "filtering across the faces of cubemaps is not emulated");
	t->linear = d->filterMode == CU_TR_FILTER_MODE_LINEAR && !t->linear_memory;
	t->normalized = d->flags & CU_TRSF_NORMALIZED_COORDINATES || t->cube;
	t->srgb = d->flags & CU_TRSF_SRGB;
	t->level_linear = d->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
	t->bias = d->mipmapLevelBias;
	t->least = d->minMipmapLevelClamp;
	t->most = d->maxMipmapLevelClamp;
	t->as_float = integers && !(d->flags & CU_TRSF_READ_AS_INTEGER);
	/* 32-bit integers are never read as floats; the runtime's call fails */
	if (t->format == CONSAN_TEXEL_U32 || t->format == CONSAN_TEXEL_S32) {
		if (t->as_float && o->of_runtime)
			return cudaErrorInvalidNormSetting;
		t->as_float = false;
	}
	if (t->linear && integers && !t->as_float)
		return cudaErrorInvalidFilterSetting;
	for (unsigned k = 0; k < 4; k++) {
		t->border[k] = d->borderColor[k];
		if (k < 3)
			t->address[k] = (uint8_t)d->addressMode[k];
		if (d->borderColor[k] && integers && !t->as_float)
			return refuse(call, "border colours of textures that are read as integers are not "
				"emulated");
	}
	if (t->linear_memory)
		t->address[0] = CONSAN_ADDRESS_BORDER;
	return 0;
}

/* ---- views ---- */

/* "format specifies how the data [...] should be interpreted": texels of the same size. */
static int set_view_format(const CUDA_RESOURCE_VIEW_DESC *v, const char *call, struct consan_texture *t)
{
	static const struct { CUresourceViewFormat of_one; CUarray_format format; } known[] = {
		{ CU_RES_VIEW_FORMAT_UINT_1X8, CU_AD_FORMAT_UNSIGNED_INT8 },
		{ CU_RES_VIEW_FORMAT_UINT_1X16, CU_AD_FORMAT_UNSIGNED_INT16 },
		{ CU_RES_VIEW_FORMAT_UINT_1X32, CU_AD_FORMAT_UNSIGNED_INT32 },
		{ CU_RES_VIEW_FORMAT_SINT_1X8, CU_AD_FORMAT_SIGNED_INT8 },
		{ CU_RES_VIEW_FORMAT_SINT_1X16, CU_AD_FORMAT_SIGNED_INT16 },
		{ CU_RES_VIEW_FORMAT_SINT_1X32, CU_AD_FORMAT_SIGNED_INT32 },
		{ CU_RES_VIEW_FORMAT_FLOAT_1X16, CU_AD_FORMAT_HALF },
		{ CU_RES_VIEW_FORMAT_FLOAT_1X32, CU_AD_FORMAT_FLOAT },
	};
	const unsigned texel = consan_texel_bytes(t->format) * t->channels;

	if (v->format == CU_RES_VIEW_FORMAT_NONE)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		for (unsigned channels = 1; channels <= 4; channels *= 2) {
			/* of 1, 2 and 4 channels one after the other */
			if (v->format != (CUresourceViewFormat)(known[i].of_one + channels / 2))
				continue;
			if (array_format_bytes(known[i].format) * channels != texel)
				return refuse(call, "views with texels of another size are not emulated");
			t->format = texel_of(known[i].format);
			t->channels = (uint8_t)channels;
			return 0;
		}
	return refuse(call, "views of block-compressed data are not emulated");
}

/* "CUDA_RESOURCE_VIEW_DESC": levels of a mipmapped array, layers of a layered one. */
static int set_view(const CUDA_RESOURCE_VIEW_DESC *v, struct consan_texture *t)
{
	const unsigned last_level = t->levels ? t->levels - 1 : 0, last_layer = t->layers ? t->layers - 1 : 0;

	if (t->linear_memory || v->firstMipmapLevel > v->lastMipmapLevel || v->lastMipmapLevel > last_level
			|| v->firstLayer > v->lastLayer || v->lastLayer > last_layer
			|| (v->width && (v->width != t->width || v->height != t->height)))
		return cudaErrorInvalidValue;
	t->width = consan_texture_size(t->width, v->firstMipmapLevel);
	t->height = consan_texture_size(t->height, v->firstMipmapLevel);
	t->depth = consan_texture_size(t->depth, v->firstMipmapLevel);
	for (unsigned k = v->firstMipmapLevel; k <= v->lastMipmapLevel; k++) {
		t->level[k - v->firstMipmapLevel] = t->level[k];
		t->level[k - v->firstMipmapLevel].at += v->firstLayer * t->level[k].slice;
	}
	if (t->levels)
		t->levels = v->lastMipmapLevel - v->firstMipmapLevel + 1;
	if (t->layers && !t->cube)
		t->layers = v->lastLayer - v->firstLayer + 1;
	return 0;
}

/* ---- objects ---- */

/* Work that was issued before may still use objects that the program has destroyed. */
static struct {
	pthread_mutex_t lock;
	VEC(uint64_t) all;
} destroyed = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void forget_destroyed(void)
{
	if (engine_pending())
		return;
	pthread_mutex_lock(&destroyed.lock);
	for (size_t i = 0; i < destroyed.all.n; i++)
		consan_texture_remove(destroyed.all.at[i]);
	destroyed.all.n = 0;
	pthread_mutex_unlock(&destroyed.lock);
}

int object_new(const struct object *o, const char *call, uint64_t *handle)
{
	struct consan_texture t = { .surface = o->surface };
	struct object *own;
	int error = set_resource(o, call, &t);

	if (!error && o->has_view)
		error = set_view_format(&o->view, call, &t);
	if (!error && !o->surface)
		error = set_reading(o, call, &t);
	if (!error && o->has_view)
		error = set_view(&o->view, &t);
	if (error)
		return error;
	forget_destroyed();
	own = base_alloc(sizeof *own);
	*own = *o;
	own->handle = *handle = consan_texture_add(&t);
	handle_put(key(own->handle), kind_of(o->surface), own);
	return 0;
}

const struct object *object_of(uint64_t handle, bool surface)
{
	return handle ? handle_get(key(handle), kind_of(surface)) : NULL;
}

int object_free(uint64_t handle, bool surface)
{
	struct object *o = handle ? handle_get(key(handle), kind_of(surface)) : NULL;

	if (!o)
		return handle ? cudaErrorInvalidValue : 0;
	handle_drop(key(handle), kind_of(surface));
	free(o);
	pthread_mutex_lock(&destroyed.lock);
	vec_push(&destroyed.all, handle);
	pthread_mutex_unlock(&destroyed.lock);
	forget_destroyed();
	return 0;
}
