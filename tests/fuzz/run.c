/* run: loads a PTX module and runs each of its kernels, checked, with a buffer for each parameter. */
#include "fuzz.h"

#include "libconsan/consan.h"

enum { BUFFER = 4096, ENTRIES = 2 };

static void run(struct consan *c, const struct consan_kernel *k, void *buffer)
{
	uint64_t params[64];
	struct consan_kernel_info info;
	struct consan_err e = { 0 };
	struct consan_launch l = { .kernel = k, .grid = { 2, 1, 1 }, .block = { 64, 1, 1 },
		.shared_dynamic = 1024, .params = params };

	consan_kernel_info(k, &info);
	if (info.param_bytes > sizeof params)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(params); i++)
		params[i] = (uintptr_t)buffer;
	for (unsigned d = 0; d < 3; d++)
		l.grid[d] *= info.reqcluster[d] && info.reqcluster[d] < 16 ? info.reqcluster[d] : 1;
	if (info.max_threads < l.block[0])
		l.block[0] = info.max_threads;
	consan_launch(c, &l, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct consan *c;
	static void *buffer;
	struct consan_module *m;
	struct consan_err e = { 0 };
	const char *name;

	if (!c) {
		c = consan_open("jobs=1 timeout=0.5 verify-fixes=no", &e);
		FUZZ_CHECK(c);
		buffer = consan_malloc(c, BUFFER, CONSAN_MEM_DEVICE);
	}
	m = consan_load_ptx(c, "fuzz.ptx", (const char *)data, n, &e);
	for (size_t i = 0; i < ENTRIES && m && (name = consan_kernel_name(m, i)); i++) {
		const struct consan_kernel *k = consan_kernel(m, name, &e);

		if (k)
			run(c, k, buffer);
	}
	consan_unload(m);
	consan_clear(c);
	return 0;
}
