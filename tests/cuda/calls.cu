// Calls that fail, and launches with findings: the report has the host's call stack. Each line that
// must be named ends in a comment with its mark.
#include <cuda.h>
#include <cstdio>
#include <cstring>

__global__ void racy(int *out)
{
	__shared__ int tile[64];
	tile[threadIdx.x] = (int)threadIdx.x;
	out[threadIdx.x] = tile[threadIdx.x ^ 32];
}

static int *memory;

static __attribute__((noinline)) void run(unsigned threads)
{
	racy<<<1, threads>>>(memory); // launch
	asm volatile("");
}

template<typename T> static void launch_by(T threads)
{
	run(threads); // wrapper
	asm volatile("");
}

static void refused(bool ask)
{
	launch_by(2000u); // refused
	if (ask && cudaGetLastError() != cudaErrorInvalidConfiguration) printf("another error\n");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	cudaMalloc(&memory, 4096);
	if (!strcmp(mode, "race")) launch_by(64u); // race
	if (!strcmp(mode, "ignored")) refused(false); // ignored
	if (!strcmp(mode, "asked")) refused(true);
	if (!strcmp(mode, "shared")) {
		racy<<<1, 32, 1 << 20>>>(memory); // shared
		cudaGetLastError();
	}
	if (!strcmp(mode, "copy")) {
		for (int i = 0; i < 3; i++) cudaMemcpy(memory, memory, 1 << 20, cudaMemcpyDeviceToDevice); // copy
	}
	if (!strcmp(mode, "lookup")) {
		CUmodule module = nullptr;
		CUfunction function;
		static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
			".visible .entry here()\n{\nret;\n}\n";
		cuModuleLoadData(&module, ptx);
		cuModuleGetFunction(&function, module, "elsewhere"); // lookup
	}
	if (!strcmp(mode, "answers")) {
		// a query, and a call after a fault, are no failures of their own
		cudaStreamQuery(0);
		racy<<<1, 64>>>((int *)8);
		cudaDeviceSynchronize();
		cudaMemset(memory, 0, 4);
		cudaGetLastError();
	}
	return 0;
}
