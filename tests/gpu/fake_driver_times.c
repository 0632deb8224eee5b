/* fake_driver_times: activity records of kernels, as of a CUPTI that is older than its header. Each
 * kernel takes a millisecond; a thread has 42 registers and 16 bytes of local memory.
 *   DRIVER_ACTIVITY  error of cuptiActivityEnable() */
#include "fake_driver.h"

#include <stdio.h>

static CUpti_BuffersCallbackRequestFunc requested;
static CUpti_BuffersCallbackCompleteFunc completed;
static bool recorded;
static struct { char name[64]; uint32_t call; } kernel[64];
static size_t nkernels;
static uint64_t ms = 1;

void add_kernel_time(const char *name, uint32_t call)
{
	if (!recorded || nkernels == COUNT(kernel))
		return;
	snprintf(kernel[nkernels].name, sizeof kernel->name, "%s", name);
	kernel[nkernels++].call = call;
}

API CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
	CUpti_BuffersCallbackCompleteFunc complete)
{
	requested = request;
	completed = complete;
	return CUPTI_SUCCESS;
}

API CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	const CUptiResult r = (CUptiResult)setting("DRIVER_ACTIVITY", 0);

	recorded = !r && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	return r;
}

API CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	CUpti_ActivityKernel9 *r;
	uint8_t *buffer;
	size_t size, most;

	(void)flag;
	if (!nkernels)
		return CUPTI_SUCCESS;
	requested(&buffer, &size, &most);
	r = (CUpti_ActivityKernel9 *)(void *)buffer;
	for (size_t k = 0; k < nkernels; k++, ms++)
		r[k] = (CUpti_ActivityKernel9){ .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
			.registersPerThread = 42, .localMemoryPerThread = 16, .start = ms * 1000000,
			.end = (ms + 1) * 1000000, .correlationId = kernel[k].call, .name = kernel[k].name };
	completed(NULL, 0, buffer, size, nkernels * sizeof *r);
	nkernels = 0;
	return CUPTI_SUCCESS;
}

API CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
	uint8_t *next = *record ? (uint8_t *)*record + sizeof(CUpti_ActivityKernel9) : buffer;

	*record = (CUpti_Activity *)(void *)next;
	return next < buffer + valid ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
}
