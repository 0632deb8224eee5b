// Pairs for the rules CS10xx: order CASE racy|fixed. A comment after each case names the rule of the
// racy form; the fixed form has no finding.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

enum { N = 2000, BYTES = N * 4 };

__global__ void set(int *a, int v) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) a[i] = v; }
__global__ void add(const int *a, int *b) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) b[i] += a[N - 1 - i]; }
__global__ void even(int *a, int from) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (2 * i + from < N) a[2 * i + from] = i; }
__global__ void count(int *n) { atomicAdd(n, 1); }
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

#define CASE(name, rule) static void name()

CASE(kernels, CS1002) { SET(a, 1, s); if (fixed) join(s, t); ADD(a, b, t); }
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
CASE(host_function, CS1002)
{
	SET(a, 1, s);
	cudaLaunchHostFunc(s, function, nullptr);
	if (fixed) join(s, t);
	ADD(a, b, t);
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

static const struct { const char *name; void (*run)(); } cases[] = {
#define C(name) { #name, name }
	C(kernels), C(kernels_write), C(write_after_read), C(halves), C(host_sync), C(event_sync), C(event_early),
	C(event_unrecorded), C(event_again), C(transitive), C(copy_kernel), C(kernel_copy), C(copy_copy),
	C(copy_plane), C(fill_kernel), C(fill_non_blocking), C(legacy), C(legacy_first), C(legacy_between),
	C(legacy_sync), C(per_thread), C(host_reads), C(host_writes_source), C(host_reads_source), C(host_half),
	C(host_managed), C(host_copies), C(host_system_call), C(host_query), C(host_before), C(host_function),
	C(free_in_use), C(use_after_free), C(use_before_allocation), C(graph_branches), C(graph_stream),
	C(graph_nodes), C(capture_unjoined), C(device_scope), C(staged_copy), C(flag),
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
