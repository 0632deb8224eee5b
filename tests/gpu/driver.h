/* driver: what the files of the driver of no GPU agree on. */
#ifndef CONSAN_TESTS_GPU_DRIVER_H
#define CONSAN_TESTS_GPU_DRIVER_H

#include <cuda.h>
#include <cupti.h>
#include <stdbool.h>
#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define API __attribute__((visibility("default")))

unsigned long long surroundings(const char *name, unsigned long long otherwise);
CUresult run_kernel(CUfunction f, CUstream s);
void note_kernel(const char *name, uint32_t call); /* it ran; CUPTI's number of the call */
/* A kernel with these struct record_params began; *dead: the GPU stopped it. */
void start_recording(const void *params, CUstream s, bool *dead);
/* Is there one in this stream? wait: until there is none. */
bool still_recording(CUstream s, bool wait);
void tell(CUpti_ApiCallbackSite site, CUpti_CallbackId id, const char *name, const void *params,
	const char *symbol, CUresult *r);

/* Callbacks around `what`, which finds its arguments in a. */
#define AROUND_OF(name, symbol, what, ...) do { \
		name##_params a = { __VA_ARGS__ }; \
		CUresult r = CUDA_SUCCESS; \
		tell(CUPTI_API_ENTER, CUPTI_DRIVER_TRACE_CBID_##name, #name, &a, symbol, &r); \
		r = what; \
		tell(CUPTI_API_EXIT, CUPTI_DRIVER_TRACE_CBID_##name, #name, &a, symbol, &r); \
		return r; \
	} while (0)
#define AROUND(name, what, ...) AROUND_OF(name, NULL, what, __VA_ARGS__)

#endif
