/* launch: launches with their parameters and limits, occupancy, function attributes. Refuses
 * what the emulated GPU would refuse, with the same error. */
#include "libconsan/event/event.h"
#include "queue.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRID_X_MAX = 0x7fffffff, GRID_YZ_MAX = 65535, BLOCK_MAX = 1024, BLOCK_Z_MAX = 64,
	CLUSTER_PORTABLE = 8 };

/* A block may end within the last parameter: NCCL passes the used part of one of 4096 bytes. */
static bool is_complete(const struct launch *l, size_t n)
{
	uint32_t offset = 0, bytes = 0;

	for (size_t i = 0; consan_kernel_param(l->func->kernel, i, &offset, &bytes); i++)
		;
	return n >= l->func->info.param_bytes || n > offset;
}

int launch_pack(struct launch *l, void **args, const void *block, size_t n)
{
	const struct consan_kernel_info *k = &l->func->info;
	uint32_t offset, bytes;
	size_t i;

	l->params = base_alloc(k->param_bytes + 1);
	if (block) {
		memcpy(l->params, block, n < k->param_bytes ? n : k->param_bytes);
		return is_complete(l, n) ? 0 : cudaErrorInvalidValue;
	}
	for (i = 0; consan_kernel_param(l->func->kernel, i, &offset, &bytes); i++) {
		if (!args || !args[i])
			return cudaErrorInvalidValue;
		memcpy((char *)l->params + offset, args[i], bytes);
	}
	return 0;
}

int launch_attributes(struct launch *l, const CUlaunchAttribute *a, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		switch (a[i].id) {
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
			l->cluster[0] = a[i].value.clusterDim.x;
			l->cluster[1] = a[i].value.clusterDim.y;
			l->cluster[2] = a[i].value.clusterDim.z;
			break;
		case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
			l->preferred[0] = a[i].value.preferredClusterDim.x;
			l->preferred[1] = a[i].value.preferredClusterDim.y;
			l->preferred[2] = a[i].value.preferredClusterDim.z;
			break;
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			l->cooperative = a[i].value.cooperative != 0;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
			l->programmatic = a[i].value.programmaticStreamSerializationAllowed != 0;
			break;
		case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
			l->started = a[i].value.launchCompletionEvent.event;
			if (!cuda_event_of(l->started))
				return cudaErrorInvalidResourceHandle;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
			remark(REMARK_CALL_UNSUPPORTED, "launch attribute: programmatic event");
			return cudaErrorNotSupported;
		case CU_LAUNCH_ATTRIBUTE_IGNORE: /* and hints: scheduling, priority, caching */
		case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
			break;
		case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		default:
			remark(REMARK_CALL_UNSUPPORTED, "launch attribute %d", (int)a[i].id);
			return cudaErrorNotSupported;
		}
	}
	return 0;
}

static uint64_t volume(const uint32_t d[3])
{
	return (uint64_t)d[0] * d[1] * d[2];
}

/* Returns the error, with the reason in l. */
static int refuse(struct launch *l, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int refuse(struct launch *l, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->reason, sizeof l->reason, fmt, ap);
	va_end(ap);
	return error;
}

static int check_shape(struct launch *l)
{
	const uint32_t *g = l->grid, *b = l->block;

	if (!volume(g) || g[0] > GRID_X_MAX || g[1] > GRID_YZ_MAX || g[2] > GRID_YZ_MAX)
		return refuse(l, cudaErrorInvalidConfiguration, "the grid is (%u,%u,%u); possible are "
			"(1,1,1) to (%u,%u,%u)", g[0], g[1], g[2], GRID_X_MAX, GRID_YZ_MAX, GRID_YZ_MAX);
	if (!volume(b) || b[0] > BLOCK_MAX || b[1] > BLOCK_MAX || b[2] > BLOCK_Z_MAX
			|| volume(b) > BLOCK_MAX)
		return refuse(l, cudaErrorInvalidConfiguration, "the block is (%u,%u,%u), %llu threads; "
			"possible are 1 to %u threads, and at most %u in z", b[0], b[1], b[2],
			(unsigned long long)volume(b), BLOCK_MAX, BLOCK_Z_MAX);
	if (volume(b) > l->func->info.max_threads)
		return refuse(l, cudaErrorLaunchOutOfResources, "the block has %llu threads; the kernel is "
			"compiled for at most %u (__launch_bounds__)", (unsigned long long)volume(b),
			l->func->info.max_threads);
	return 0;
}

static int cluster_error(struct launch *l)
{
	const uint32_t *c = l->cluster, *g = l->grid;

	return refuse(l, cudaErrorInvalidClusterSize, "the cluster is (%u,%u,%u) for a grid of (%u,%u,%u); "
		"it has at most %u CTAs and divides the grid", c[0], c[1], c[2], g[0], g[1], g[2],
		l->func->non_portable ? device_info()->max_cluster : CLUSTER_PORTABLE);
}

/* The cluster size comes from the launch, or else from the kernel: PTX ISA
 * .reqnctapercluster, .explicitcluster; CUDA's required cluster attributes. */
static int check_cluster(struct launch *l)
{
	const struct func *f = l->func;
	const uint32_t *fixed = f->info.reqcluster[0] ? f->info.reqcluster
		: f->cluster[0] ? f->cluster : NULL;
	uint64_t n;
	unsigned d;

	if (fixed && volume(l->cluster) && memcmp(fixed, l->cluster, sizeof l->cluster))
		return cudaErrorInvalidClusterSize;
	if (fixed)
		memcpy(l->cluster, fixed, sizeof l->cluster);
	n = volume(l->cluster);
	if (!n)
		return f->cluster_must ? cudaErrorInvalidClusterSize : 0;
	if (n > (f->non_portable ? device_info()->max_cluster : CLUSTER_PORTABLE))
		return cudaErrorInvalidClusterSize;
	for (d = 0; d < 3; d++)
		if (l->grid[d] % l->cluster[d])
			return cudaErrorInvalidClusterSize;
	/* a preferred cluster is a multiple of the regular one and divides the grid */
	for (d = 0; volume(l->preferred) && d < 3; d++)
		if (l->preferred[d] % l->cluster[d] || l->grid[d] % l->preferred[d])
			return cudaErrorInvalidClusterSize;
	if (volume(l->preferred) > n)
		n = volume(l->preferred);
	if (n > (f->non_portable ? device_info()->max_cluster : CLUSTER_PORTABLE))
		return cudaErrorInvalidClusterSize;
	return n > 1 && device_info()->sm < 90 ? cudaErrorNotSupported : 0;
}

int launch_check(struct launch *l)
{
	int error, blocks;

	error = check_shape(l);
	if (!error)
		error = check_cluster(l);
	if (error == cudaErrorInvalidClusterSize)
		return cluster_error(l);
	if (error)
		return error;
	if (l->shared > l->func->max_dynamic)
		return refuse(l, cudaErrorInvalidValue, "it asks for %zu B of dynamic shared memory; the limit "
			"of the kernel is %u B (cudaFuncAttributeMaxDynamicSharedMemorySize)", l->shared,
			l->func->max_dynamic);
	error = func_occupancy(l->func, (int)volume(l->block), l->shared, &blocks);
	if (error)
		return error;
	if (!blocks)
		return refuse(l, cudaErrorLaunchOutOfResources, "a block does not fit on an SM: %llu threads, "
			"%zu B of shared memory, %u registers a thread", (unsigned long long)volume(l->block),
			l->shared + l->func->info.shared_static, l->func->info.nregs);
	if (l->cooperative && volume(l->grid) > (uint64_t)blocks * device_info()->sm_count)
		return refuse(l, cudaErrorCooperativeLaunchTooLarge, "%llu blocks cannot be resident at once; "
			"%llu can", (unsigned long long)volume(l->grid),
			(unsigned long long)blocks * device_info()->sm_count);
	return 0;
}

int launch_check_on(struct launch *l, const void *stream)
{
	const struct stream *s = stream_of(stream);

	if (!s)
		return cudaErrorInvalidResourceHandle;
	if (s->device != l->func->device)
		return refuse(l, cudaErrorInvalidResourceHandle, "the stream is of device %d, but device %d "
			"is current", s->device, l->func->device);
	return launch_check(l);
}

/* The error that a program on a GPU gets after this fault from its next call that waits for
 * the device. */
static int fault_error(unsigned fault)
{
	switch (fault) {
	case FAULT_SHARED_OOB:
	case FAULT_GLOBAL_OOB:
	case FAULT_PEER:
	case FAULT_MULTICAST:
	case FAULT_LOCAL_OOB:
	case FAULT_CONST_WRITE:
		return cudaErrorIllegalAddress;
	case FAULT_MISALIGNED:
	case FAULT_MB_PLACE:
		return cudaErrorMisalignedAddress;
	case FAULT_ASSERT:
		return cudaErrorAssert;
	case FAULT_STACK:
		return cudaErrorHardwareStackError;
	case FAULT_TRAP:
	case FAULT_TARGET:
		return cudaErrorLaunchFailure;
	}
	return cudaErrorIllegalInstruction;
}

static void report(const char *kernel, bool launched, const char *what, int error)
{
	const struct error_row *row = error_find(error);
	char why[160];

	snprintf(why, sizeof why, "%s: %s (%s)", what, row && row->text ? row->text : "error",
		row && row->rt ? row->rt : row && row->drv ? row->drv : "unknown");
	unchecked(kernel, launched, why);
}

/* The name of the host stub at this address, as the dynamic linker knows it. */
static const char *name_of(const void *handle)
{
	Dl_info info;

	return dladdr(handle, &info) && info.dli_sname && info.dli_saddr == handle ? info.dli_sname
		: "(unknown kernel)";
}

int launch_refused(const void *handle, const struct launch *l, int error)
{
	const char *kernel = l->func ? l->func->name : name_of(handle);

	report(kernel, true, "the launch was refused", error);
	api_refused("CS951", kernel, error, l->reason);
	return error;
}

int launch_refused_inside(const struct launch *l, int error)
{
	const char *kernel = l->func ? l->func->name : "(unknown kernel)";

	report(kernel, true, "a launch by a kernel was refused", error);
	api_refused_inside(kernel, error, l->reason);
	return error;
}

int lookup_failed(const char *name, const void *handle, int error)
{
	const char *kernel = name ? name : name_of(handle);

	report(kernel, false, "it was not found", error);
	api_refused("CS952", kernel, error, "");
	return error;
}

int launch_run(const struct launch *l, struct order_op *op)
{
	struct consan_launch x = { .kernel = l->func->kernel,
		.shared_dynamic = (uint32_t)l->shared, .params = l->params,
		.cooperative = l->cooperative, .programmatic = l->programmatic, .queue = l->queue };
	struct consan_err e = { 0 };
	const int device = l->func->device;
	int error = device_broken(device);

	if (error)
		return error;
	memcpy(x.grid, l->grid, sizeof x.grid);
	memcpy(x.block, l->block, sizeof x.block);
	memcpy(x.cluster, l->cluster, sizeof x.cluster);
	memcpy(x.preferred, l->preferred, sizeof x.preferred);
	switch (device_launch(&x, op, l->launched, &e)) {
	case CONSAN_OK:
		return 0;
	case CONSAN_FAULT:
		device_fault(device, fault_error(consan_fault(device_session())));
		return 0;
	case CONSAN_STOPPED:
		if (leave_wanted())
			return 0;
		/* fall through */
	case CONSAN_HANG:
		device_fault(device, cudaErrorLaunchTimeout);
		return 0;
	case CONSAN_UNCHECKED:
		return cudaErrorNotSupported;
	case CONSAN_BAD_LAUNCH:
		return cudaErrorInvalidConfiguration;
	}
	return cudaErrorUnknown;
}

/* ---- occupancy ---- */

int func_occupancy(struct func *f, int threads, size_t shared, int *blocks)
{
	if (threads <= 0 || !blocks)
		return cudaErrorInvalidValue;
	*blocks = 0;
	if (threads <= BLOCK_MAX && shared + f->info.shared_static
			<= device_info()->shared_per_cta_optin)
		*blocks = (int)consan_occupancy(f->kernel, (uint32_t)threads, (uint32_t)shared);
	return 0;
}

int func_max_clusters(const struct launch *l, int *clusters)
{
	uint64_t n = volume(l->cluster) ? volume(l->cluster) : 1;
	int blocks, error;

	error = func_occupancy(l->func, (int)volume(l->block), l->shared, &blocks);
	if (error)
		return error;
	*clusters = (int)((uint64_t)blocks * device_info()->sm_count / n);
	return 0;
}

/* The greatest dynamic shared memory with which this number of blocks fits on an SM. */
int func_available_shared(struct func *f, int blocks, int threads, size_t *shared)
{
	size_t low = 0, high = device_info()->shared_per_cta_optin, middle;
	int fit, error;

	if (!shared || blocks <= 0)
		return cudaErrorInvalidValue;
	while (low < high) {
		middle = (low + high + 1) / 2;
		error = func_occupancy(f, threads, middle, &fit);
		if (error)
			return error;
		if (fit >= blocks)
			low = middle;
		else
			high = middle - 1;
	}
	*shared = low;
	return 0;
}

int func_max_cluster_size(const struct launch *l, int *size)
{
	int blocks, error = func_occupancy(l->func, (int)volume(l->block), l->shared, &blocks);

	if (error)
		return error;
	if (!size)
		return cudaErrorInvalidValue;
	*size = !blocks ? 0 : device_info()->sm < 90 ? 1
		: l->func->non_portable ? (int)device_info()->max_cluster : CLUSTER_PORTABLE;
	return 0;
}

/* ---- attributes ---- */

int func_get_attribute(struct func *f, CUfunction_attribute a, int *value)
{
	const struct consan_kernel_info *k = &f->info;
	const uint32_t *cluster = k->reqcluster[0] ? k->reqcluster : f->cluster;

	if (!value)
		return cudaErrorInvalidValue;
	switch (a) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = (int)k->max_threads;
		return 0;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*value = (int)k->shared_static;
		return 0;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		*value = (int)k->const_bytes;
		return 0;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*value = (int)k->local_bytes;
		return 0;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = (int)k->nregs;
		return 0;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = (int)(a == CU_FUNC_ATTRIBUTE_PTX_VERSION ? k->sm : device_info()->sm);
		return 0;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
		*value = 0;
		return 0;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = (int)f->max_dynamic;
		return 0;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*value = f->carveout;
		return 0;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		*value = f->cluster_must || k->reqcluster[0];
		return 0;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		*value = (int)cluster[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
		return 0;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*value = f->non_portable;
		return 0;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*value = f->cluster_policy;
		return 0;
	case CU_FUNC_ATTRIBUTE_MAX:
		break;
	}
	return cudaErrorInvalidValue;
}

static int set_max_dynamic(struct func *f, int value)
{
	uint32_t limit = device_info()->shared_per_cta_optin;

	if (value < 0 || (uint32_t)value + f->info.shared_static > limit)
		return cudaErrorInvalidValue;
	f->max_dynamic = (uint32_t)value;
	return 0;
}

int func_set_attribute(struct func *f, CUfunction_attribute a, int value)
{
	switch (a) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		return set_max_dynamic(f, value);
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return cudaErrorInvalidValue;
		f->carveout = value;
		return 0;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		f->cluster_must = value != 0;
		return 0;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		if (value < 0)
			return cudaErrorInvalidValue;
		f->cluster[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = (uint32_t)value;
		return 0;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		f->non_portable = value != 0;
		return 0;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		f->cluster_policy = value;
		return 0;
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
	case CU_FUNC_ATTRIBUTE_MAX:
		break;
	}
	return cudaErrorInvalidValue;
}
