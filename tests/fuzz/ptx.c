/* ptx: the front end on any bytes. What it accepts satisfies ir.h, and what it prints parses again. */
#include "fuzz.h"

#include "libconsan/ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct consan_err e = { 0 };
	struct ptx_module *m = ptx_parse("fuzz.ptx", (const char *)data, n, &e);
	struct text t = { 0 };

	FUZZ_CHECK(m || e.code);
	if (!m)
		return 0;
	FUZZ_CHECK(ptx_verify(m, &e));
	ptx_print(m, &t);
	ptx_free(m);
	text_free(&t);
	return 0;
}
