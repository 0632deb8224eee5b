// Pairs for the rules CS10xx: order CASE racy|fixed. A comment after each case names the rule of the
// racy form; the fixed form has no finding.
#include <cuda.h>
#include <cuda_runtime.h>
#if __has_include(<nvtx3/nvToolsExtCudaRt.h>)
#include <nvtx3/nvToolsExtCudaRt.h>
#else
#define nvtxNameCudaStreamA(stream, name)
#endif
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csignal>
#include <emmintrin.h>
#include <thread>
#include <unistd.h>

enum { N = 2000, BYTES = N * 4 };

__global__ void set(int *a, int v) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) a[i] = v; }
__global__ void add(const int *a, int *b) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) b[i] += a[N - 1 - i]; }
__global__ void even(int *a, int from) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (2 * i + from < N) a[2 * i + from] = i; }
__global__ void count(int *n) { atomicAdd(n, 1); }
__global__ void tell(int *a, bool system)
{
	a[0] = 5;
	__threadfence_system();
	if (system) atomicExch_system(a + 1, 1); else atomicExch(a + 1, 1);
}
__global__ void publish(int *a, int *flag)
{
	a[threadIdx.x] = 1;
	__threadfence();
	__syncthreads();
	if (!threadIdx.x) atomicExch(flag, 1);
}
__global__ void subscribe(const int *a, int *b, int *flag)
{
	if (!threadIdx.x) while (!atomicAdd(flag, 0)) ;
	__syncthreads();
	__threadfence();
	b[threadIdx.x] = a[threadIdx.x];
}

/* Two grids of two streams meet twice: at START, and at END. Between them, if there is a `from`, its
 * values are read; `read` 0: before START; 2: after END. The signals of START and END order other
 * accesses, or not. */
__device__ static void meet(int *flag, int me, bool orders)
{
	int other;

	__syncthreads();
	if (!threadIdx.x) {
		if (orders) asm volatile("st.release.gpu.u32 [%0], 1;" :: "l"(flag + me) : "memory");
		else asm volatile("st.relaxed.gpu.u32 [%0], 1;" :: "l"(flag + me) : "memory");
		do {
			if (orders) asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(other) : "l"(flag + !me) : "memory");
			else asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(other) : "l"(flag + !me) : "memory");
		} while (!other);
	}
	__syncthreads();
}
__global__ void gather(const int *from, int *to, int *flags, int me, int read, bool start, bool end)
{
	if (from && read == 0) to[threadIdx.x] = from[threadIdx.x];
	meet(flags, me, start);
	if (from && read == 1) to[threadIdx.x] = from[threadIdx.x];
	meet(flags + 2, me, end);
	if (from && read == 2) to[threadIdx.x] = from[threadIdx.x];
}

/* Grids of different shapes: the first one may omit the release, the others the acquire. */
__device__ void hand_over(int *a, int n, int *flag, bool release)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x) a[i] = 1;
	__syncthreads();
	if (release) __threadfence();
	__syncthreads();
	if (!threadIdx.x) atomicExch(flag, 1);
}
__device__ void take_over(const int *a, int *b, int n, int *flag, bool acquire)
{
	if (!threadIdx.x) while (!atomicAdd(flag, 0)) ;
	__syncthreads();
	if (acquire) __threadfence();
	const int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) b[i] = a[i];
}
__global__ void give(int *a, int n, int *flag, bool release) { hand_over(a, n, flag, release); }
__global__ void take(const int *a, int *b, int n, int *flag, bool acquire) { take_over(a, b, n, flag, acquire); }
__global__ void __cluster_dims__(2, 1, 1) take_in_clusters(const int *a, int *b, int n, int *flag, bool acquire)
{
	take_over(a, b, n, flag, acquire);
}

/* Has no atomics and no strong stores: its blocks do not synchronize with each other, but acquire what the grid
 * beside it has released. Each thread reads several times. */
__global__ void read_only_after(const int *a, int *b, int n, const int *flag, bool early)
{
	int sum = early ? a[threadIdx.x] : 0, seen;

	if (!threadIdx.x) do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory"); while (!seen);
	__syncthreads();
	for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[i];
	b[threadIdx.x] = sum;
}

static int *a, *b, *host, *managed;
static cudaStream_t s, t, s_free, t_free;
static cudaEvent_t e, f;
static bool fixed;
#define SET(at, v, stream) set<<<8, 256, 0, stream>>>(at, v)
#define ADD(from, to, stream) add<<<8, 256, 0, stream>>>(from, to)

static void join(cudaStream_t from, cudaStream_t to)
{
	cudaEventRecord(e, from);
	cudaStreamWaitEvent(to, e, 0);
}

static void CUDART_CB function(void *) {}
static volatile bool called;
static void CUDART_CB mark(void *) { called = true; usleep(100000); } // the host goes on before it returns
static void CUDART_CB change(void *) { for (int i = 0; i < N; i++) host[i] = host[i] + 1; }

#define CASE(name, rule) static void name()

CASE(kernels, CS1002) { SET(a, 1, s); if (fixed) join(s, t); ADD(a, b, t); }
CASE(named, CS1002) { nvtxNameCudaStreamA(s, "producer"); SET(a, 1, s); if (fixed) join(s, t); ADD(a, b, t); }
CASE(kernels_write, CS1001) { SET(a, 1, s); if (fixed) join(s, t); SET(a, 2, t); }
CASE(write_after_read, CS1002) { ADD(a, b, s); if (fixed) join(s, t); SET(a, 2, t); }
CASE(halves, CS1001) { even<<<8, 256, 0, s>>>(a, 0); even<<<8, 256, 0, t>>>(a, fixed); }
CASE(host_sync, CS1002) { SET(a, 1, s); fixed ? cudaStreamSynchronize(s) : cudaStreamSynchronize(t); ADD(a, b, t); }
CASE(event_sync, CS1002) { SET(a, 1, s); cudaEventRecord(e, s); if (fixed) cudaEventSynchronize(e); ADD(a, b, t); }
CASE(event_early, CS1002)
{
	if (!fixed) cudaEventRecord(e, s);
	SET(a, 1, s);
	if (fixed) cudaEventRecord(e, s);
	cudaStreamWaitEvent(t, e, 0);
	ADD(a, b, t);
}
CASE(event_unrecorded, CS1002)
{
	SET(a, 1, s);
	if (fixed) cudaEventRecord(e, s);
	cudaStreamWaitEvent(t, e, 0);
	cudaEventRecord(e, s);
	ADD(a, b, t);
}
CASE(event_again, CS1002) // a wait is for the newest record before it
{
	cudaEventRecord(e, s);
	if (fixed) { SET(a, 1, s); cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0); }
	else { cudaStreamWaitEvent(t, e, 0); SET(a, 1, s); cudaEventRecord(e, s); }
	ADD(a, b, t);
}
CASE(transitive, CS1001)
{
	SET(a, 1, s);
	cudaEventRecord(e, s);
	cudaStreamWaitEvent(t, e, 0);
	if (!fixed) cudaStreamWaitEvent(t_free, e, 0);
	ADD(a, b, t);
	cudaEventRecord(f, t);
	if (fixed) cudaStreamWaitEvent(t_free, f, 0);
	SET(b, 3, t_free);
}
CASE(copy_kernel, CS1002) { cudaMemcpyAsync(a, host, BYTES, cudaMemcpyHostToDevice, s); if (fixed) join(s, t); ADD(a, b, t); }
CASE(kernel_copy, CS1002) { SET(a, 1, s); if (fixed) join(s, t); cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, t); }
CASE(copy_copy, CS1001)
{
	cudaMemcpyAsync(a, host, BYTES, cudaMemcpyHostToDevice, s);
	cudaMemcpyAsync(fixed ? b : a, host, BYTES, cudaMemcpyHostToDevice, t);
}
CASE(copy_plane, CS1001) // columns of one matrix
{
	cudaMemcpy2DAsync(a, 80, host, 80, 40, 50, cudaMemcpyHostToDevice, s);
	cudaMemcpy2DAsync(a + (fixed ? 10 : 9), 80, host, 80, 40, 50, cudaMemcpyHostToDevice, t);
}
CASE(fill_kernel, CS1002) { cudaMemsetAsync(a, 0, BYTES, s); if (fixed) join(s, t); ADD(a, b, t); }
CASE(fill_non_blocking, CS1002) { cudaMemset(a, 0, BYTES); ADD(a, b, fixed ? t : t_free); }
CASE(legacy, CS1002) { SET(a, 1, fixed ? s : s_free); ADD(a, b, 0); }
CASE(legacy_first, CS1002) { SET(a, 1, 0); ADD(a, b, fixed ? s : s_free); }
CASE(legacy_between, CS1002) { SET(a, 1, s); if (fixed) SET(b, 1, 0); ADD(a, b, t); }
CASE(legacy_sync, CS1003) { SET(managed, 1, fixed ? s : s_free); cudaStreamSynchronize(0); if (managed[5] == 7) puts("seven"); }
CASE(per_thread, CS1002) { SET(a, 1, cudaStreamPerThread); ADD(a, b, fixed ? cudaStreamPerThread : s_free); }
CASE(host_reads, CS1003)
{
	cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, s);
	if (fixed) cudaStreamSynchronize(s);
	if (host[100] == 7) puts("seven");
}
CASE(host_writes_source, CS1003)
{
	cudaMemcpyAsync(a, host, BYTES, cudaMemcpyHostToDevice, s);
	if (fixed) cudaStreamSynchronize(s);
	host[100] = 7;
}
CASE(host_reads_source, CS1003) // two readers
{
	cudaMemcpyAsync(a, host, BYTES, cudaMemcpyHostToDevice, s);
	if (!fixed) host[3] = 1;
	if (host[100] == 7) puts("seven");
}
CASE(host_half, CS1003) // the other half of the page
{
	cudaMemcpyAsync(host, a, 1024, cudaMemcpyDeviceToHost, s);
	for (int i = fixed ? 256 : 255; i < 512; i++) host[i] = i;
}
CASE(host_managed, CS1003) { SET(managed, 1, s); if (fixed) cudaDeviceSynchronize(); managed[7] = 3; }
CASE(host_copies, CS1003) // by a function of the C library
{
	static int to[N];
	SET(managed, 1, s);
	if (fixed) cudaStreamSynchronize(s);
	memcpy(to, managed, BYTES);
}
CASE(host_system_call, CS1003)
{
	int fd[2];
	if (pipe(fd)) exit(2);
	SET(managed, 1, s);
	if (fixed) cudaStreamSynchronize(s);
	if (write(fd[1], managed, 4000) != 4000) exit(2);
	cudaDeviceSynchronize();
	if (read(fd[0], managed, 4000) != 4000) exit(2);
}
CASE(host_query, CS1003)
{
	SET(managed, 1, s);
	if (fixed) while (cudaStreamQuery(s) != cudaSuccess) ;
	if (managed[5] == 7) puts("seven");
}
CASE(host_before, CS1003) // what the host does before it issues the kernel is before it
{
	if (fixed) managed[5] = 7;
	ADD(managed, b, s);
	if (!fixed) managed[5] = 7;
}
CASE(host_scope, CS1003) // a flag for the host needs the scope of the system
{
	tell<<<1, 1, 0, s>>>(managed, fixed);
	while (!((volatile int *)managed)[1]) ;
	if (managed[0] != 5) puts("not five");
}
CASE(host_function, CS1002)
{
	SET(a, 1, s);
	cudaLaunchHostFunc(s, function, nullptr);
	if (fixed) join(s, t);
	ADD(a, b, t);
}
CASE(host_function_data, CS1002)
{
	cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, s);
	cudaLaunchHostFunc(s, change, nullptr);
	if (fixed) join(s, t);
	cudaMemcpyAsync(b, host, BYTES, cudaMemcpyHostToDevice, t);
}
CASE(host_function_feeds, CS1002) // with nothing before it that the other stream could race with
{
	if (!fixed) cudaEventRecord(e, s);
	cudaLaunchHostFunc(s, change, nullptr);
	if (fixed) cudaEventRecord(e, s);
	cudaStreamWaitEvent(t, e, 0);
	ADD(host, b, t);
}
static void CUDART_CB change_too(cudaStream_t, cudaError_t, void *) { change(nullptr); }
CASE(host_callback, CS1002) { cudaStreamAddCallback(s_free, change_too, nullptr, 0); ADD(host, b, fixed ? s_free : t_free); }
CASE(host_function_told, CS1002) // by a flag of the host, which is not seen
{
	cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, s);
	cudaLaunchHostFunc(s, mark, nullptr);
	if (fixed) while (!called) usleep(1000);
	cudaMemcpyAsync(b, host, BYTES, cudaMemcpyHostToDevice, t);
}
CASE(free_in_use, CS1004)
{
	int *x;
	cudaMallocAsync(&x, BYTES, s);
	join(s, t);
	SET(x, 1, t);
	if (fixed) join(t, s);
	cudaFreeAsync(x, s);
}
CASE(use_after_free, CS1005)
{
	int *x;
	cudaMallocAsync(&x, BYTES, s);
	if (fixed) SET(x, 1, s);
	cudaFreeAsync(x, s);
	if (!fixed) SET(x, 1, s);
}
CASE(use_before_allocation, CS1006)
{
	int *x;
	cudaMallocAsync(&x, BYTES, s);
	if (fixed) join(s, t);
	SET(x, 1, t);
	cudaDeviceSynchronize();
	cudaFreeAsync(x, t);
}
CASE(graph_branches, CS1002)
{
	cudaGraph_t g;
	cudaGraphExec_t x;
	cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
	join(s, t);
	SET(a, 1, s);
	if (fixed) join(s, t);
	ADD(a, b, t);
	join(t, s);
	cudaStreamEndCapture(s, &g);
	cudaGraphInstantiate(&x, g, 0);
	cudaGraphLaunch(x, s);
	cudaGraphLaunch(x, s);
}
CASE(graph_stream, CS1002)
{
	cudaGraph_t g;
	cudaGraphExec_t x;
	cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
	SET(a, 1, s);
	cudaStreamEndCapture(s, &g);
	cudaGraphInstantiate(&x, g, 0);
	cudaGraphLaunch(x, s);
	if (fixed) join(s, t);
	ADD(a, b, t);
}
CASE(graph_nodes, CS1001)
{
	cudaGraph_t g;
	cudaGraphExec_t x;
	cudaGraphNode_t one, two;
	cudaMemsetParams p = { a, 0, 0, 4, N, 1 };
	cudaGraphCreate(&g, 0);
	cudaGraphAddMemsetNode(&one, g, nullptr, 0, &p);
	cudaGraphAddMemsetNode(&two, g, &one, fixed, &p);
	cudaGraphInstantiate(&x, g, 0);
	cudaGraphLaunch(x, s);
}
CASE(capture_unjoined, CS1008)
{
	cudaGraph_t g;
	cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
	join(s, t);
	SET(a, 1, t);
	if (fixed) join(t, s);
	cudaStreamEndCapture(s, &g);
}
CASE(device_scope, CS1001) // atomics of two kernels exclude each other, plain writes do not
{
	count<<<4, 64, 0, s>>>(a);
	if (fixed) count<<<4, 64, 0, t>>>(a); else SET(a, 1, t);
}
CASE(staged_copy, CS1009) // with --knob=documented_order=1
{
	static int from[N];
	cudaMemcpy(a, from, BYTES, cudaMemcpyHostToDevice);
	if (fixed) cudaDeviceSynchronize();
	ADD(a, b, s_free);
}
CASE(flag, CS1002) // two kernels that run at once: memory orders them
{
	if (fixed) { publish<<<1, 64, 0, s>>>(a, b + N - 1); subscribe<<<1, 64, 0, t>>>(a, b, b + N - 1); }
	else { SET(a, 1, s); subscribe<<<1, 64, 0, t>>>(a, b, host); }
}

/* A kernel in each stream; that of t reads a. */
static void gathers(int read, bool start, bool end)
{
	int *flags = b + N - 4;
	gather<<<1, 64, 0, s>>>(nullptr, b, flags, 0, read, start, end);
	gather<<<1, 64, 0, t>>>(a, b, flags, 1, read, start, end);
}
// what is before a grid that released is before what is after the acquire of another one
CASE(met_start, CS1002) { SET(a, 1, s); gathers(1, fixed, false); }
CASE(met_start_copy, CS1002) { cudaMemsetAsync(a, 1, BYTES, s); gathers(1, fixed, false); }
CASE(met_read_early, CS1002) { SET(a, 1, s); gathers(fixed, true, true); }
CASE(met_end, CS1002) { gathers(1, false, fixed); SET(a, 1, s); }
CASE(met_end_copy, CS1002) { gathers(1, false, fixed); cudaMemsetAsync(a, 1, BYTES, s); }
CASE(met_read_late, CS1002) { gathers(fixed ? 1 : 2, true, true); SET(a, 1, s); }
CASE(met_way, CS1002)
{
	SET(a, 1, s);
	gather<<<1, 64, 0, s>>>(nullptr, b, b + N - 4, 0, 1, fixed, false);
	gather<<<1, 64, 0, t>>>(nullptr, b, b + N - 4, 1, 1, fixed, false);
	ADD(a, managed, t);
}
CASE(met_way_back, CS1002) { gathers(1, true, true); SET(a, 1, s); if (fixed) join(s, t); ADD(a, managed, t); }
CASE(met_ahead, CS1002) // the grid that wrote and the one that signals are two, both beside the reader
{
	gather<<<1, 64, 0, t>>>(a, managed, b + N - 4, 1, 1, fixed, true);
	set<<<1, 64, 0, s>>>(a, 1);
	gather<<<1, 64, 0, s>>>(nullptr, b, b + N - 4, 0, 1, fixed, true);
}
CASE(met_twice, CS1002)
{
	SET(a, 1, s);
	gathers(1, true, true);
	cudaMemsetAsync(b + N - 4, 0, 4, s); // resets a flag: ordered after both grids
	SET(a, 2, s);
	gather<<<1, 64, 0, s>>>(nullptr, b, b + N - 8, 0, 1, true, true);
	gather<<<1, 64, 0, t>>>(a, b, b + N - 8, 1, fixed, true, true);
}
CASE(flag_blocks, CS1002)
{
	take<<<4, 128, 0, t>>>(a, b, 512, b + N - 1, true);
	give<<<1, 64, 0, s>>>(a, 512, b + N - 1, fixed);
}
CASE(flag_wider, CS117) // the block that takes has fewer warps than the one that gives
{
	take<<<16, 32, 0, t>>>(a, b, 512, b + N - 1, fixed);
	give<<<1, 256, 0, s>>>(a, 512, b + N - 1, true);
}
CASE(flag_clusters, CS1002)
{
	take_in_clusters<<<4, 128, 0, t>>>(a, b, 512, b + N - 1, true);
	give<<<1, 96, 0, s>>>(a, 512, b + N - 1, fixed);
}
CASE(flag_three, CS117) // one of the takers does not acquire
{
	take<<<2, 64, 0, t>>>(a, b, 128, b + N - 1, true);
	take_in_clusters<<<2, 32, 0, t_free>>>(a + 256, b + 256, 64, b + N - 1, false);
	give<<<1, 160, 0, s>>>(a, fixed ? 128 : 300, b + N - 1, true);
}
CASE(flag_loop, CS1002) // no read of the loop counts as made before the flag was seen
{
	read_only_after<<<1, 64, 0, t>>>(a, b, 512, b + N - 1, !fixed);
	give<<<1, 64, 0, s>>>(a, 512, b + N - 1, true);
}

// the host is slow, but not as slow as the kernel: it reads before the copy, not while it runs
__global__ void slow(int *a, int rounds = 3000)
{
	int x = threadIdx.x;
	for (int i = 0; i < rounds; i++) x = x * 3 + i;
	a[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
CASE(host_reads_slowly, CS1003)
{
	slow<<<16, 64, 0, s>>>(a);
	cudaMemcpyAsync(host, a, 4096, cudaMemcpyDeviceToHost, s);
	if (fixed) cudaStreamSynchronize(s);
	usleep(60000);
	if (host[5] == 7) printf("seven\n");
}

// the access waits for the kernel, longer by the clock than by the time that the process had
CASE(host_reads_stopped, CS1003)
{
	const pid_t me = getpid();

	slow<<<16, 64, 0, s>>>(managed, 300000);
	if (fixed) cudaStreamSynchronize(s);
	if (!fork()) {
		usleep(100000);
		kill(me, SIGSTOP);
		usleep(2500000);
		kill(me, SIGCONT);
		_exit(0);
	}
	if (managed[5] == 7) printf("seven\n");
}

// copies of a batch have no order among themselves
static void batch(int *to0, const int *from0, int *to1, const int *from1, size_t bytes,
	cudaMemcpySrcAccessOrder order = cudaMemcpySrcAccessOrderStream, cudaStream_t in = s_free)
{
	void *to[] = { to0, to1 };
	const void *from[] = { from0, from1 };
	size_t sizes[] = { bytes, bytes }, index = 0;
	cudaMemcpyAttributes how = {};

	how.srcAccessOrder = order;
	if (cudaMemcpyBatchAsync(to, from, sizes, 2, &how, &index, 1, in)) exit(3);
}
CASE(batch_writes, CS1001) { batch(a, b, a + (fixed ? 100 : 99), b + 500, 400); }
CASE(batch_reads, CS1002) { batch(a, b, b + 500, fixed ? a + 100 : a + 99, 400); }
CASE(batch_stream, CS1002) { SET(a, 1, s); batch(b, a, b + 100, a + 100, 400, cudaMemcpySrcAccessOrderStream, fixed ? s : t); }
CASE(batch_later, CS1002) { batch(b, a, b + 100, a + 100, 400, cudaMemcpySrcAccessOrderStream, s); SET(a, 1, fixed ? s : t); }
CASE(batch_boxes, CS1001) // of two columns
{
	cudaMemcpy3DBatchOp list[2] = {};

	for (int k = 0; k < 2; k++) {
		list[k].src.type = list[k].dst.type = cudaMemcpyOperandTypePointer;
		list[k].src.op.ptr.ptr = b;
		list[k].dst.op.ptr.ptr = (char *)a + k * (fixed ? 16 : 12);
		list[k].dst.op.ptr.rowLength = 64;
		list[k].extent = make_cudaExtent(16, 4, 2);
		list[k].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	}
	if (cudaMemcpy3DBatchAsync(2, list, 0, s_free)) exit(3);
}
CASE(batch_captured, CS1001)
{
	cudaGraph_t g;
	cudaGraphExec_t exec;

	cudaStreamBeginCapture(s_free, cudaStreamCaptureModeGlobal);
	batch(a, b, a + (fixed ? 100 : 99), b + 500, 400);
	SET(a, 1, s_free);
	cudaStreamEndCapture(s_free, &g);
	cudaGraphInstantiate(&exec, g, 0);
	cudaGraphLaunch(exec, s_free);
}
// a source that is read out of the order of the stream: after what is before the call
CASE(batch_source, CS1002)
{
	SET(a, 1, s_free);
	if (fixed) cudaStreamSynchronize(s_free);
	batch(b, a, b + 100, a + 100, 400, cudaMemcpySrcAccessOrderAny);
}
CASE(batch_source_in_call, CS1002)
{
	SET(a, 1, s_free);
	if (fixed) cudaStreamSynchronize(s_free);
	batch(b, a, b + 100, a + 100, 400, cudaMemcpySrcAccessOrderDuringApiCall);
	SET(a, 2, t_free); // it was read
}
CASE(batch_source_later, CS1002) // it may be read after the call, but not after the batch
{
	batch(b, a, b + 100, a + 100, 400, cudaMemcpySrcAccessOrderAny);
	SET(a, 2, fixed ? s_free : t_free);
}
CASE(batch_host, CS1003)
{
	batch(b, host, b + 100, host + 100, 400, fixed ? cudaMemcpySrcAccessOrderDuringApiCall : cudaMemcpySrcAccessOrderAny);
	host[150] = 3;
}

#include "order_served.cuh"
#include "order_threads.cuh"

static const struct { const char *name; void (*run)(); } cases[] = {
#define C(name) { #name, name }
	C(kernels), C(named), C(kernels_write), C(write_after_read), C(halves), C(host_sync), C(event_sync), C(event_early),
	C(event_unrecorded), C(event_again), C(transitive), C(copy_kernel), C(kernel_copy), C(copy_copy),
	C(copy_plane), C(fill_kernel), C(fill_non_blocking), C(legacy), C(legacy_first), C(legacy_between),
	C(legacy_sync), C(per_thread), C(host_reads), C(host_writes_source), C(host_reads_source), C(host_half),
	C(host_managed), C(host_copies), C(host_system_call), C(host_query), C(host_before), C(host_scope), C(host_function), C(host_function_data), C(host_function_feeds), C(host_callback), C(host_function_told),
	C(free_in_use), C(use_after_free), C(use_before_allocation), C(graph_branches), C(graph_stream),
	C(graph_nodes), C(capture_unjoined), C(device_scope), C(staged_copy), C(flag),
	C(met_start), C(met_start_copy), C(met_read_early), C(met_end), C(met_end_copy), C(met_read_late), C(met_way),
	C(met_way_back), C(met_ahead), C(met_twice),
	C(flag_blocks), C(flag_wider), C(flag_clusters), C(flag_three), C(flag_loop),
	C(host_reads_slowly), C(host_reads_stopped), C(batch_writes), C(batch_reads), C(batch_stream), C(batch_later), C(batch_boxes), C(batch_captured),
	C(batch_source), C(batch_source_in_call), C(batch_source_later), C(batch_host),
	SERVED_CASES
	THREADS_CASES
};

int main(int argc, char **argv)
{
	if (argc < 3) return 2;
	fixed = !strcmp(argv[2], "fixed");
	cudaStreamCreate(&s);
	cudaStreamCreate(&t);
	cudaStreamCreateWithFlags(&s_free, cudaStreamNonBlocking);
	cudaStreamCreateWithFlags(&t_free, cudaStreamNonBlocking);
	cudaEventCreate(&e);
	cudaEventCreate(&f);
	cudaMalloc(&a, BYTES);
	cudaMalloc(&b, BYTES);
	cudaMallocHost(&host, BYTES);
	cudaMallocManaged(&managed, BYTES);
	cudaMemset(a, 0, BYTES);
	cudaMemset(b, 0, BYTES);
	cudaMemset(managed, 0, BYTES);
	cudaDeviceSynchronize();
	memset(host, 0, BYTES);
	host[0] = 1;
	for (auto &c : cases)
		if (!strcmp(c.name, argv[1])) { c.run(); cudaDeviceSynchronize(); return 0; }
	return 2;
}
