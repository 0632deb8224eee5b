/* Part of devices.cu: kernels of two devices that wait for each other. */

/* ---- scopes: a signal from one device to the other ---- */

template <bool System> __global__ void produce(int *flag, int *data)
{
	data[threadIdx.x] = threadIdx.x;
	__syncthreads();
	if (!threadIdx.x && System)
		asm volatile("st.release.sys.global.s32 [%0], 1;" : : "l"(flag) : "memory");
	else if (!threadIdx.x)
		asm volatile("st.release.gpu.global.s32 [%0], 1;" : : "l"(flag) : "memory");
}
template <bool System> __global__ void consume(int *flag, const int *data, int *to)
{
	int v = 0;
	while (!threadIdx.x && !v)
		if (System)
			asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
		else
			asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	__syncthreads();
	to[threadIdx.x] = data[threadIdx.x];
}

/* The load after the first fence.sc comes before the store before the second one, so the first fence is
 * before the second, if the scopes of both have both threads. */
template <bool System> __global__ void before_fence(int *flag, int *data)
{
	int v;
	*data = 1;
	if (System) asm volatile("fence.sc.sys;" : : : "memory");
	else asm volatile("fence.sc.gpu;" : : : "memory");
	asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	do
		asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag + 1) : "memory");
	while (!v);
}
template <bool System> __global__ void behind_fence(int *flag, const int *data, int *to)
{
	asm volatile("st.relaxed.sys.global.s32 [%0], 1;" : : "l"(flag) : "memory");
	if (System) asm volatile("fence.sc.sys;" : : : "memory");
	else asm volatile("fence.sc.gpu;" : : : "memory");
	*to = *data;
	asm volatile("st.relaxed.sys.global.s32 [%0], 1;" : : "l"(flag + 1) : "memory");
}

template <bool System> static void fences()
{
	int *data = array(0, 1024), *result = array(1, 32);
	OK(cudaSetDevice(0));
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	before_fence<System><<<1, 1>>>(data + 512, data);
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	behind_fence<System><<<1, 1>>>(data + 512, data, result);
	OK(cudaSetDevice(0));
	OK(cudaDeviceSynchronize()); /* the first kernel runs first */
	OK(cudaSetDevice(1));
	OK(cudaDeviceSynchronize());
}

template <bool System> static void signal()
{
	int *data = array(0, 1024), *result = array(1, 32);
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(0));
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	consume<System><<<1, 32>>>(data + 512, data, result);
	OK(cudaSetDevice(0));
	produce<System><<<1, 32>>>(data + 512, data);
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(1));
	OK(cudaDeviceSynchronize());
	CHECK(value(result + 3) == 3);
}

/* Bulk reductions of two devices run at the same time. Their elements are atomic at scope gpu only, so one
 * has to be complete before the other begins (Ordered). */
template <bool Ordered> __global__ void add_bulk(bool second, int *flag, int *sum)
{
	__shared__ alignas(128) int part[32];
	int v = 0;
	part[threadIdx.x] = threadIdx.x;
	asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
	__syncwarp();
	if (threadIdx.x)
		return;
	if (!Ordered)
		atomicAdd_system(flag, 1);
	while (Ordered ? second && v < 1 : v < 2)
		asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	asm volatile("fence.proxy.async;\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 128;\n"
		"cp.async.bulk.commit_group;\n"
		"cp.async.bulk.wait_group 0;" : : "l"(sum), "r"((unsigned)__cvta_generic_to_shared(part))
		: "memory");
	if (Ordered)
		asm volatile("st.release.sys.global.s32 [%0], 1;" : : "l"(flag) : "memory");
}

template <bool Ordered> static void reductions()
{
	int *data = array(0, 1024);
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	add_bulk<Ordered><<<1, 32>>>(true, data + 512, data);
	OK(cudaSetDevice(0));
	add_bulk<Ordered><<<1, 32>>>(false, data + 512, data);
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(1));
	OK(cudaDeviceSynchronize());
	CHECK(value(data + 3) == 6);
}

/* What a grid has done counts for those behind it in the stream, which signal it to another device; whether
 * the other grid polls already (Early), and whether all have one shape. */
template <bool Early, int Threads, bool Behind> static void relay()
{
	int *data = array(0, 1024), *result = array(1, 1024);
	cudaStream_t s[2];
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(0));
	OK(cudaDeviceSynchronize());
	OK(cudaStreamCreateWithFlags(&s[0], cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&s[1], cudaStreamNonBlocking));
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	if (Early)
		consume<true><<<1, 32>>>(data + 512, data, result);
	OK(cudaSetDevice(0));
	fill<<<1, Threads, 0, s[0]>>>(data, 7);
	produce<true><<<1, 32, 0, s[!Behind]>>>(data + 512, data + 256);
	OK(cudaSetDevice(1));
	if (!Early)
		consume<true><<<1, 32>>>(data + 512, data, result);
	OK(cudaDeviceSynchronize());
	CHECK(!Behind || value(result + 3) == 10);
	OK(cudaSetDevice(0));
	OK(cudaDeviceSynchronize());
}

/* ---- barriers of all devices, whose waits have time-outs ---- */

enum { LATE = -1 };
enum fence { NONE, GPU, SYSTEM };
static const long long LIMIT = 200000000000; /* clocks */

/* Each device adds to the other one's word and waits for its own. Warp 0 hands the value on to warp 1 in
 * each iteration, which waits for it as well. To LATE if the time is over. */
template <int Kind> __device__ void fence()
{
	if (Kind == SYSTEM)
		__threadfence_system();
	else if (Kind == GPU)
		__threadfence();
}

template <int Release, int Acquire> __global__ void meet(int *mine, int *other, int *data, const int *from, int *to)
{
	__shared__ volatile int seen;
	const long long begin = clock64();
	int v = 0;
	data[threadIdx.x] = threadIdx.x;
	if (!threadIdx.x)
		seen = 0;
	fence<Release>();
	__syncthreads();
	if (!threadIdx.x)
		atomicAdd_system(other, 1);
	while (v <= 0 && clock64() - begin < LIMIT)
		if (threadIdx.x < 32) {
			asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(v) : "l"(mine) : "memory");
			if (!threadIdx.x)
				seen = v;
		} else {
			v = seen;
		}
	if (v <= 0) {
		to[threadIdx.x] = LATE;
		return;
	}
	fence<Acquire>();
	__syncthreads();
	to[threadIdx.x] = from[threadIdx.x];
}

/* Looks at the clock, too, but has no time-out. */
__global__ void endless(const volatile int *word, long long *to)
{
	long long sum = 0;
	while (!*word)
		sum ^= clock64();
	*to = sum;
}

static void waits_for_nothing()
{
	int *word = array(0, 4);
	OK(cudaMemset(word, 0, 16));
	endless<<<1, 32>>>(word, (long long *)(word + 2));
	CHECK(cudaDeviceSynchronize());
}

template <int Release, int Acquire, int Devices> static void meeting()
{
	int *word[2], *data[2], *to[2];
	for (int d = 0; d < 2; d++) {
		word[d] = array(d, 1);
		data[d] = array(d, 64);
		to[d] = array(d, 64);
		OK(cudaMemset(word[d], 0, 4));
		OK(cudaDeviceEnablePeerAccess(!d, 0));
		OK(cudaDeviceSynchronize());
	}
	for (int d = 0; d < Devices; d++) {
		OK(cudaSetDevice(d));
		meet<Release, Acquire><<<1, 64>>>(word[d], word[!d], data[d], data[!d], to[d]);
	}
	for (int d = 0; d < Devices; d++) {
		OK(cudaSetDevice(d));
		OK(cudaDeviceSynchronize());
		CHECK(Devices == 2 ? value(to[d] + 40) == 40 : value(to[d]) == LATE);
	}
}
