/* rt_launch: launches, function attributes and occupancy of the runtime API. */
#include "internal.h"

#include <string.h>

static void set3(uint32_t to[3], struct dim3 from)
{
	to[0] = from.x;
	to[1] = from.y;
	to[2] = from.z;
}

/* Fills *l from the arguments that all launch calls have. */
static int begin(struct launch *l, const void *func, struct dim3 grid, struct dim3 block,
	size_t shared)
{
	*l = (struct launch){ .shared = shared };
	set3(l->grid, grid);
	set3(l->block, block);
	return func_find(func, &l->func);
}

static int go(struct launch *l, void **args, cudaStream_t stream)
{
	struct op op = { .kind = OP_LAUNCH };
	int error = launch_check_on(l, stream);

	if (!error)
		error = launch_pack(l, args, NULL, 0);
	op.launch = *l;
	if (!error)
		return stream_issue(stream, &op, false);
	op_free(&op);
	return launch_refused(NULL, l, error);
}

static cudaError_t launch(struct launch *l, const void *func, int error, void **args,
	cudaStream_t stream)
{
	return rt(error ? launch_refused(func, l, error) : go(l, args, stream));
}

cudaError_t cudaLaunchKernel(const void *func, struct dim3 grid, struct dim3 block,
	void **args, size_t shared, cudaStream_t stream)
{
	struct launch l;
	int error = begin(&l, func, grid, block, shared);

	return launch(&l, func, error, args, stream);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, struct dim3 grid, struct dim3 block,
	void **args, size_t shared, cudaStream_t stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, struct dim3 grid, struct dim3 block,
	void **args, size_t shared, cudaStream_t stream)
{
	struct launch l;
	int error = begin(&l, func, grid, block, shared);

	l.cooperative = true;
	return launch(&l, func, error, args, stream);
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute),
	"both APIs use one layout for launch attributes");

static int begin_config(struct launch *l, const void *func, const cudaLaunchConfig_t *c)
{
	int error;

	if (!c)
		return cudaErrorInvalidValue;
	error = begin(l, func, c->gridDim, c->blockDim, c->dynamicSmemBytes);
	return error ? error
		: launch_attributes(l, (const CUlaunchAttribute *)c->attrs, c->numAttrs);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	struct launch l = { 0 };
	int error = begin_config(&l, func, config);

	return launch(&l, func, error, args, config ? config->stream : NULL);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *user)
{
	struct op op = { .kind = OP_HOST, .host = { .call = call, .user = user } };

	return rt(call ? stream_issue(stream, &op, false) : cudaErrorInvalidValue);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void *user,
	unsigned flags)
{
	return rt(flags ? cudaErrorInvalidValue : stream_callback(stream, call, NULL, user));
}

/* ---- kernel<<<...>>>: the configuration is pushed here and popped by the host stub ---- */

struct configuration {
	struct dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
};
static _Thread_local struct { struct configuration at[16]; unsigned n; } pushed;

unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared,
	cudaStream_t stream)
{
	if (pushed.n == ARRAY_SIZE(pushed.at)) {
		remark(REMARK_CALL_UNSUPPORTED, "kernel<<<...>>> nested %zu deep in its own arguments",
			ARRAY_SIZE(pushed.at));
		return 1;
	}
	pushed.at[pushed.n++] = (struct configuration){ grid, block, shared, stream };
	return 0;
}

cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared,
	void *stream)
{
	const struct configuration *c;

	if (!pushed.n)
		return rt(cudaErrorMissingConfiguration);
	api_configured();
	c = &pushed.at[--pushed.n];
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	*(cudaStream_t *)stream = c->stream;
	return cudaSuccess;
}

/* ---- functions ---- */

static cudaError_t find(const void *func, void **out)
{
	struct func *f;
	int error = out ? func_find(func, &f) : cudaErrorInvalidValue;

	if (error)
		return rt(lookup_failed(NULL, func, error));
	*out = f;
	return rt(0);
}

/* Does not load the image: a program may have stubs of kernels that it never launches. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	*kernel = handle_get(host, HANDLE_STUB);
	return *kernel ? cudaSuccess : rt(lookup_failed(NULL, host, cudaErrorInvalidDeviceFunction));
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	return find(host, (void **)kernel);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *func, const void *host)
{
	return find(host, (void **)func);
}

cudaError_t cudaFuncGetName(const char **name, const void *func)
{
	struct func *f;
	int error = func_find(func, &f);

	if (!error && name)
		*name = f->name;
	return rt(error ? error : name ? 0 : cudaErrorInvalidValue);
}

cudaError_t cudaFuncGetParamInfo(const void *func, size_t i, size_t *offset, size_t *bytes)
{
	struct func *f;
	uint32_t at, n;
	int error = func_find(func, &f);

	if (error)
		return rt(error);
	if (!offset || !consan_kernel_param(f->kernel, i, &at, &n))
		return rt(cudaErrorInvalidValue);
	*offset = at;
	if (bytes)
		*bytes = n;
	return cudaSuccess;
}

static int attribute_of(struct func *f, CUfunction_attribute a)
{
	int value = 0;

	func_get_attribute(f, a, &value);
	return value;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *func)
{
	struct func *f;
	int error = a ? func_find(func, &f) : cudaErrorInvalidValue;

	if (error)
		return rt(error);
	*a = (struct cudaFuncAttributes){
		.sharedSizeBytes = f->info.shared_static,
		.constSizeBytes = f->info.const_bytes,
		.localSizeBytes = f->info.local_bytes,
		.maxThreadsPerBlock = (int)f->info.max_threads,
		.numRegs = (int)f->info.nregs,
		.ptxVersion = attribute_of(f, CU_FUNC_ATTRIBUTE_PTX_VERSION),
		.binaryVersion = attribute_of(f, CU_FUNC_ATTRIBUTE_BINARY_VERSION),
		.maxDynamicSharedSizeBytes = (int)f->max_dynamic,
		.preferredShmemCarveout = f->carveout,
		.clusterDimMustBeSet = attribute_of(f, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET),
		.requiredClusterWidth = attribute_of(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
		.requiredClusterHeight = attribute_of(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
		.requiredClusterDepth = attribute_of(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH),
		.clusterSchedulingPolicyPreference = f->cluster_policy,
		.nonPortableClusterSizeAllowed = f->non_portable,
	};
	return cudaSuccess;
}

/* cudaFuncAttribute has the numbers of CUfunction_attribute. */
cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute a, int value)
{
	struct func *f;
	int error = func_find(func, &f);

	return rt(error ? error : func_set_attribute(f, (CUfunction_attribute)a, value));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute a,
	int value, int device)
{
	struct func *f;
	int error = device_check(device);

	if (!error)
		error = func_find_on(kernel, device, &f);
	return rt(error ? error : func_set_attribute(f, (CUfunction_attribute)a, value));
}

cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config)
{
	struct func *f;

	return rt(func_find(func, &f));
}

cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
	struct func *f;

	return rt(func_find(func, &f));
}

/* ---- occupancy ---- */

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func,
	int threads, size_t shared)
{
	struct func *f;
	int error = func_find(func, &f);

	return rt(error ? error : func_occupancy(f, threads, shared, blocks));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
	const void *func, int threads, size_t shared, unsigned flags)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, func, threads, shared);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *shared, const void *func,
	int blocks, int threads)
{
	struct func *f;
	int error = func_find(func, &f);

	return rt(error ? error : func_available_shared(f, blocks, threads, shared));
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *func,
	const cudaLaunchConfig_t *config)
{
	struct launch l;
	int error = begin_config(&l, func, config);

	return rt(error ? error : func_max_cluster_size(&l, size));
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *func,
	const cudaLaunchConfig_t *config)
{
	struct launch l;
	int error = begin_config(&l, func, config);

	return rt(error ? error : func_max_clusters(&l, clusters));
}
