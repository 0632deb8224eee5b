/* inject_watch: which calls of the driver somebody wants to hear of. */
#ifndef CONSAN_INSTRUMENT_INJECT_WATCH_H
#define CONSAN_INSTRUMENT_INJECT_WATCH_H

#include <cupti.h>

#include "internal.h"

struct inject_call {
	CUpti_CallbackId id;
	const char *name, *symbol; /* of the call; of the kernel that it launches */
	const void *params;        /* by the call: generated_cuda_meta.h; what is written
				      there at its beginning the driver gets */
	bool enter, good;          /* its beginning; its end, and nothing went wrong */
	CUresult *result;          /* at its end, else NULL */
};

struct inject_watch {
	CUpti_CallbackId id;
	void (*on)(const struct inject_call *c);
};
#define INJECT_WATCH(name, on) { CUPTI_DRIVER_TRACE_CBID_##name, on },

/* inject_graph_calls.c: ends with a row of no function. */
extern const struct inject_watch inject_graph_watch[];

#endif
