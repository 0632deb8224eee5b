/* dependent: two kernels in one stream; the second may start before the first has ended.
 * Arguments: how it is launched (runtime, driver, graph, or synced: with a wait by the host in
 * between), and `wait` if the second kernel waits for the first. Exit status 2: with a wait, it
 * did not read what the first one wrote. */
#include <cstdio>
#include <cstring>
#include <cuda.h>

__global__ void first(int *a)
{
	a[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
	cudaTriggerProgrammaticLaunchCompletion();
}

__global__ void second(int *a, int wait)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (wait)
		cudaGridDependencySynchronize();
	a[4096 + i] = a[i] + 1;
}

static void by_driver(cudaStream_t stream, int *a, int wait)
{
	CUlaunchAttribute at = {};
	CUlaunchConfig c = {};
	void *args[] = { &a, &wait };
	cudaFunction_t f;

	at.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
	at.value.programmaticStreamSerializationAllowed = 1;
	c.gridDimX = 8;
	c.blockDimX = 96;
	c.gridDimY = c.gridDimZ = c.blockDimY = c.blockDimZ = c.numAttrs = 1;
	c.hStream = stream;
	c.attrs = &at;
	cudaGetFuncBySymbol(&f, (void *)second);
	cuLaunchKernelEx(&c, (CUfunction)f, args, 0);
}

static void by_runtime(cudaStream_t stream, int *a, int wait)
{
	cudaLaunchAttribute at = {};
	cudaLaunchConfig_t c = {};

	at.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	at.val.programmaticStreamSerializationAllowed = 1;
	c.gridDim = 8;
	c.blockDim = 96;
	c.stream = stream;
	c.attrs = &at;
	c.numAttrs = 1;
	cudaLaunchKernelEx(&c, second, a, wait);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "runtime";
	const int wait = argc > 2 && !strcmp(argv[2], "wait");
	const bool graph = !strcmp(how, "graph");
	cudaStream_t stream;
	cudaGraph_t g;
	cudaGraphExec_t x;
	int *a;

	cudaMalloc(&a, 1 << 16);
	cudaStreamCreate(&stream);
	if (graph)
		cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
	first<<<4, 192, 0, stream>>>(a);
	if (!strcmp(how, "synced"))
		cudaStreamSynchronize(stream);
	if (!strcmp(how, "driver"))
		by_driver(stream, a, wait);
	else
		by_runtime(stream, a, wait);
	if (graph) {
		cudaStreamEndCapture(stream, &g);
		cudaGraphInstantiate(&x, g, 0);
		cudaGraphLaunch(x, stream);
	}
	if (cudaDeviceSynchronize() != cudaSuccess)
		return 1;
	static int sum[768];
	cudaMemcpy(sum, a + 4096, sizeof sum, cudaMemcpyDeviceToHost);
	for (int i = 0; i < 768 && (wait || !strcmp(how, "synced")); i++)
		if (sum[i] != i % 192 + 1)
			return 2;
	return 0;
}
