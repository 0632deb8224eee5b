/* callback: handlers of the driver's calls, as CUPTI reports them. */
#ifndef CONSAN_INSTRUMENT_INJECT_CALLBACK_H
#define CONSAN_INSTRUMENT_INJECT_CALLBACK_H

#include <cupti.h>

#include "internal.h"

struct inject_call {
	CUpti_CallbackId id;
	const char *name, *symbol; /* of the call; of the kernel, for a launch */
	const void *params;        /* struct NAME_params of generated_cuda_meta.h; what is
				      changed at the call's beginning is what the driver gets */
	bool enter, succeeded;     /* this is the beginning of the call; it is the end of a call
				      that succeeded */
	CUresult *result;          /* its result, at its end; else NULL */
};

struct inject_handler {
	CUpti_CallbackId id;
	void (*on)(const struct inject_call *c);
};
void inject_runtime_call(const CUpti_CallbackData *d); /* calls.c: at both ends of a call */
#define INJECT_HANDLER(name, on) { CUPTI_DRIVER_TRACE_CBID_##name, on },

/* Tables of handlers; the last element has no function. */
extern const struct inject_handler inject_handlers[];
extern const struct inject_handler inject_memory_handlers[]; /* with --gpu-global only */
extern const struct inject_handler inject_graph_handlers[];
extern const struct inject_handler inject_operation_handlers[]; /* called after the others */
extern const struct inject_handler inject_link_handlers[];

#endif
