/* api: CUDA's declarations under their exact symbol names.
 *
 * __CUDA_API_VERSION_INTERNAL stops cuda.h from defining cuMemAlloc as cuMemAlloc_v2 and the
 * like, so that a function written here has the name of the exported symbol. The functions
 * that the headers declare are exported; all others are hidden. */
#ifndef CONSAN_CUDA_API_H
#define CONSAN_CUDA_API_H

#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cuda_runtime_api.h>

/* Called by the host code that nvcc generates; crt/host_runtime.h declares them only for
 * C++. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, void *bdim, void *gdim, int *wsize);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name,
	int ext, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name,
	int ext, size_t size, int constant, int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared,
	cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared,
	void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, struct dim3 grid, struct dim3 block,
	void **args, size_t shared, cudaStream_t stream);
cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end);
/* The version of CUDA 12, with its own struct (prop.def). */
cudaError_t cudaGetDeviceProperties_v2(void *properties, int device);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
#pragma GCC visibility pop

#endif
