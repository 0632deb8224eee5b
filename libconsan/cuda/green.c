/* green: green contexts, which have a part of a device's multiprocessors. As operations never wait for resources
 * here, they are contexts with streams of their own; only the numbers of multiprocessors are kept. */
#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of GPUs since Hopper ("cuDevSmResourceSplitByCount"); with IGNORE_SM_COSCHEDULING the second. */
enum { PARTITION = 8, LEAST_PARTITION = 2 };

/* What a resource is of, in its padding. */
struct origin { int device; uint64_t split; };
/* What a CUdevResourceDesc points to. */
struct resources { int device; unsigned sms; };
struct green {
	struct context *context;
	struct resources has;
	struct stream *own;          /* its events are recorded here, and it waits for what the context waits for */
	struct cuda_event *mark;
};

static _Atomic uint64_t splits = 1;

/* ---- resources ---- */

static CUdevResource resource(int device, unsigned sms, uint64_t split)
{
	const struct origin of = { device, split };
	CUdevResource r = { .type = sms ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID };

	_Static_assert(sizeof of <= sizeof r._internal_padding, "it fits");
	memcpy(r._internal_padding, &of, sizeof of);
	r.sm = (CUdevSmResource){ sms, PARTITION, PARTITION };
	return r;
}

static struct origin origin_of(const CUdevResource *r)
{
	struct origin of;

	memcpy(&of, r->_internal_padding, sizeof of);
	return of;
}

static CUresult get_resource(int device, unsigned sms, CUdevResource *out, CUdevResourceType type)
{
	int all;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (!sms && !device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &all))
		sms = (unsigned)all;
	*out = resource(device, sms, splits++);
	return CUDA_SUCCESS;
}

static struct green *green_of(CUgreenCtx handle)
{
	return handle_get(handle, HANDLE_GREEN);
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *out, CUdevResourceType type)
{
	int error = device_check(device);

	return error ? drv(error) : get_resource(device, 0, out, type);
}

CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource *out, CUdevResourceType type)
{
	const struct context *c = cuda_context_of(handle);

	return c ? get_resource(c->device, c->green ? c->green->has.sms : 0, out, type) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *out, CUdevResourceType type)
{
	const struct green *g = green_of(handle);

	return g ? get_resource(g->has.device, g->has.sms, out, type) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned *groups, const CUdevResource *from,
	CUdevResource *remaining, unsigned flags, unsigned least)
{
	const unsigned unit = flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING ? LEAST_PARTITION : PARTITION;
	const uint64_t split = splits++;
	unsigned size, n;

	if (!groups || !from)
		return CUDA_ERROR_INVALID_VALUE;
	if (from->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (least > from->sm.smCount)
		return CUDA_ERROR_INVALID_VALUE;
	size = ((least ? least : 1) + unit - 1) / unit * unit;
	n = from->sm.smCount / size;
	if (result && n > *groups)
		n = *groups;
	if (result && !n)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	*groups = n;
	for (unsigned k = 0; result && k < n; k++)
		result[k] = resource(origin_of(from).device, size, split);
	if (remaining)
		*remaining = resource(origin_of(from).device, from->sm.smCount - n * size, split);
	return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *r, unsigned n)
{
	struct resources *all;

	if (!out || !r || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned k = 0; k < n; k++) {
		if (r[k].type != CU_DEV_RESOURCE_TYPE_SM)
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		if (origin_of(&r[k]).split != origin_of(r).split)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	}
	all = base_alloc(sizeof *all);
	*all = (struct resources){ .device = origin_of(r).device };
	for (unsigned k = 0; k < n; k++)
		all->sms += r[k].sm.smCount;
	handle_put(all, HANDLE_RESOURCES, all); /* there is no call that releases it */
	*out = (CUdevResourceDesc)all;
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

static int new_green(struct green **out, const struct resources *has)
{
	struct green *g = base_alloc(sizeof *g);
	char name[64];
	int error;

	g->has = *has;
	g->context = cuda_context_new(has->device, 0);
	cuda_context_push(g->context);
	error = stream_new(&g->own, cudaStreamNonBlocking, 0);
	if (!error)
		error = cuda_event_new(&g->mark, cudaEventDisableTiming);
	cuda_context_pop(NULL);
	if (error) {
		cuda_context_free(g->context);
		free(g);
		return error;
	}
	snprintf(name, sizeof name, "green context %llu", g->context->id);
	order_line_name(hb(), hb_line(g->own), name);
	g->context->green = g;
	handle_put(g, HANDLE_GREEN, g);
	*out = g;
	return 0;
}

CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice device, unsigned flags)
{
	const struct resources *has = handle_get(desc, HANDLE_RESOURCES);
	int error = drv_ready();

	if (!error)
		error = device_check(device);
	if (error)
		return drv(error);
	if (!out || !has || flags != CU_GREEN_CTX_DEFAULT_STREAM || has->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	return drv(new_green((struct green **)out, has));
}

CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx handle)
{
	const struct green *g = green_of(handle);

	if (!g || !out)
		return g ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
	*out = (CUcontext)g->context;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx handle, unsigned long long *id)
{
	const struct green *g = green_of(handle);

	if (!g || !id)
		return g ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
	*id = g->context->id;
	return CUDA_SUCCESS;
}

/* ---- streams ---- */

struct own_streams { struct green *of; VEC(struct stream *) all; bool capturing; };

static void collect(void *stream, void *user)
{
	struct own_streams *o = user;
	struct stream *s = stream;

	if (s->green != o->of)
		return;
	o->capturing |= s->capture != NULL;
	vec_push(&o->all, s);
}

void green_stream(struct stream *s)
{
	struct green *g = cuda_context_now() ? cuda_context_now()->green : NULL;

	if (!g)
		return;
	s->green = g;
	if (!cuda_event_record(g->mark, g->own, false))
		stream_wait(s, g->mark, false);
}

static void leave(void *stream, void *user)
{
	struct stream *s = stream;

	if (s->green == user)
		s->green = NULL;
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle)
{
	struct green *g = green_of(handle);

	if (!g)
		return CUDA_ERROR_INVALID_CONTEXT;
	handle_drop(g, HANDLE_GREEN);
	handle_each(HANDLE_STREAM, leave, g);
	stream_free(g->own);
	cuda_event_free(g->mark);
	cuda_context_free(g->context);
	free(g);
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx handle, unsigned flags, int priority)
{
	struct green *g = green_of(handle);
	int error = drv_ready();

	if (error)
		return drv(error);
	if (!g)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!out || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	cuda_context_push(g->context);
	error = stream_new((struct stream **)out, flags, priority);
	cuda_context_pop(NULL);
	return drv(error);
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *out)
{
	const struct stream *s = stream_of(handle);

	if (!s || !out)
		return s ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	*out = (CUgreenCtx)s->green;
	return CUDA_SUCCESS;
}

/* The event is recorded behind what all streams of the context have. */
static int record(struct green *g, const void *event)
{
	struct own_streams own = { .of = g };
	int error;

	handle_each(HANDLE_STREAM, collect, &own);
	error = own.capturing ? cudaErrorStreamCaptureUnsupported : 0;
	for (size_t i = 0; i < own.all.n && !error; i++) {
		error = cuda_event_record(g->mark, own.all.at[i], false);
		if (!error)
			error = stream_wait(g->own, g->mark, false);
	}
	vec_free(&own.all);
	return error ? error : cuda_event_record(event, g->own, false);
}

static int wait(struct green *g, const void *event)
{
	struct own_streams own = { .of = g };
	int error;

	handle_each(HANDLE_STREAM, collect, &own);
	error = own.capturing ? cudaErrorStreamCaptureUnsupported : stream_wait(g->own, event, false);
	for (size_t i = 0; i < own.all.n && !error; i++)
		error = stream_wait(own.all.at[i], event, false);
	vec_free(&own.all);
	return error;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event)
{
	return green_of(handle) ? drv(record(green_of(handle), event)) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event)
{
	return green_of(handle) ? drv(wait(green_of(handle), event)) : CUDA_ERROR_INVALID_CONTEXT;
}
