/* fake_driver: what the files of the fake CUDA driver share. */
#ifndef CONSAN_TESTS_GPU_FAKE_DRIVER_H
#define CONSAN_TESTS_GPU_FAKE_DRIVER_H

#include <cuda.h>
#include <cupti.h>
#include <stdbool.h>
#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define API __attribute__((visibility("default")))

/* The number in environment variable `name`; `otherwise` if it is not set. */
unsigned long long setting(const char *name, unsigned long long otherwise);
CUresult run_kernel(CUfunction f, CUstream s);
/* For the client: one end of a call of the CUDA runtime, which there is not. */
void fake_runtime(const char *name, const char *symbol, bool ends, int error);
/* A kernel ran. call: CUPTI's correlation id */
void add_kernel_time(const char *name, uint32_t call);
/* For the client: the kernel that waits for it may end. */
void fake_flag(void);
/* For the client: kernels record a read of this byte of global memory. */
void fake_touch(CUdeviceptr at);
/* For the client: how many kernels have begun. */
unsigned fake_begun(void);
/* For the client: the k-th of 272 places where device memory can be; 0: there is none. */
CUdeviceptr fake_memory(unsigned k);
/* The next block, if it is small, lies 32 KiB before this one. */
void fake_before(CUdeviceptr at);
/* A kernel with these struct record_params starts. Sets *dead if the GPU stops it. */
void start_recording(const void *params, CUstream s, bool *dead);
/* The kernels that the next one of the stream comes after, a bit each; and are these over? */
uint64_t *fake_behind(CUstream s);
bool fake_over(uint64_t which);
/* Does a kernel run in this stream? wait: waits until none does. */
bool still_recording(CUstream s, bool wait);
/* Waits for all kernels of the context that has this word: a driver loads nothing while one runs. */
void await_kernels(const bool *dead);
/* Calls CUPTI's callback for a driver call, if it is enabled. */
void call_back(CUpti_ApiCallbackSite site, CUpti_CallbackId id, const char *name,
	const void *params, const char *symbol, CUresult *r);

/* Evaluates `what`, a driver call whose parameters are in a, between its two callbacks. */
#define AROUND_OF(name, symbol, what, ...) do { \
		name##_params a = { __VA_ARGS__ }; \
		CUresult r = CUDA_SUCCESS; \
		call_back(CUPTI_API_ENTER, CUPTI_DRIVER_TRACE_CBID_##name, #name, &a, symbol, &r); \
		r = what; \
		call_back(CUPTI_API_EXIT, CUPTI_DRIVER_TRACE_CBID_##name, #name, &a, symbol, &r); \
		return r; \
	} while (0)
#define AROUND(name, what, ...) AROUND_OF(name, NULL, what, __VA_ARGS__)

#endif
