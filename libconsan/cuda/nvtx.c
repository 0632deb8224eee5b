/* nvtx: names that the program gives to streams by NVTX. The header-only library calls
 * InitializeInjectionNvtx2() of the library that NVTX_INJECTION64_PATH names (nvtx3/nvtxDetail); the
 * few types of it that are needed are repeated here. */
#include "internal.h"

#include <stdio.h>
#include <wchar.h>

#define VISIBLE __attribute__((visibility("default")))

typedef const void *get_export_table(uint32_t id);
typedef void function(void);
struct callbacks {
	size_t bytes;
	int (*functions)(uint32_t module, function ***table[], unsigned *n);
};
enum { TABLE_CALLBACKS = 1, MODULE_CUDA = 2, MODULE_CUDART = 4 };
enum { CUDA_STREAM_A = 5, CUDA_STREAM_W = 6, CUDART_STREAM_A = 3, CUDART_STREAM_W = 4 };

static void name_stream(const void *handle, const char *name)
{
	struct stream *s = name ? stream_of(handle) : NULL;
	char text[64];

	if (!s || device_ready())
		return;
	snprintf(text, sizeof text, "stream \"%.50s\"", name);
	order_line_name(hb(), hb_line(s), text);
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

/* Returns 1: the program's calls of NVTX come here. */
VISIBLE int InitializeInjectionNvtx2(get_export_table *get);
VISIBLE int InitializeInjectionNvtx2(get_export_table *get)
{
	const struct callbacks *c = get(TABLE_CALLBACKS);
	function ***table;
	unsigned n;

	if (!c || c->bytes < sizeof *c)
		return 0;
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
