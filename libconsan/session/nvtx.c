/* nvtx: names that the program gives to streams by NVTX. The header-only library calls
 * InitializeInjectionNvtx2() of the library that NVTX_INJECTION64_PATH names (nvtx3/nvtxDetail), which
 * passes its argument on to consan_nvtx(); the few types of it that are needed are repeated here. */
#include "internal.h"

#include <stdio.h>
#include <wchar.h>

typedef void function(void);
struct callbacks {
	size_t bytes;
	int (*functions)(uint32_t module, function ***table[], unsigned *n);
};
enum { TABLE_CALLBACKS = 1, MODULE_CUDA = 2, MODULE_CUDART = 4 };
enum { CUDA_STREAM_A = 5, CUDA_STREAM_W = 6, CUDART_STREAM_A = 3, CUDART_STREAM_W = 4 };

static void (*stream_named)(const void *stream, const char *line);

static void name_stream(const void *handle, const char *name)
{
	char text[64];

	if (!name)
		return;
	snprintf(text, sizeof text, "stream \"%.50s\"", name);
	stream_named(handle, text);
}

static void name_stream_wide(const void *handle, const wchar_t *name)
{
	char text[64];

	if (name && snprintf(text, sizeof text, "%ls", name) > 0)
		name_stream(handle, text);
}

static void set(function ***table, unsigned n, unsigned at, function *f)
{
	if (at < n && table[at])
		*table[at] = f;
}

int consan_nvtx(const void *(*get)(uint32_t id), void (*named)(const void *stream, const char *line))
{
	const struct callbacks *c = get(TABLE_CALLBACKS);
	function ***table;
	unsigned n;

	if (!c || c->bytes < sizeof *c)
		return 0;
	stream_named = named;
	if (c->functions(MODULE_CUDA, &table, &n)) {
		set(table, n, CUDA_STREAM_A, (function *)name_stream);
		set(table, n, CUDA_STREAM_W, (function *)name_stream_wide);
	}
	if (c->functions(MODULE_CUDART, &table, &n)) {
		set(table, n, CUDART_STREAM_A, (function *)name_stream);
		set(table, n, CUDART_STREAM_W, (function *)name_stream_wide);
	}
	return 1;
}
