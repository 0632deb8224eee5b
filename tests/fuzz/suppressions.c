/* suppressions: a file of suppressions, applied to a finding. */
#include "fuzz.h"

#include "libconsan/finding/finding.h"
#include "libconsan/event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static uint32_t site;
	struct results r = { 0 };
	struct consan_err e = { 0 };
	struct finding f = { .rule = rule_by_code("CS102"), .nsides = 1, .seen = 1,
		.kernel = "_Z6kernelIfEvPT_i" };

	if (n > 4096) /* matching costs the product of the lengths */
		return 0;
	if (!site)
		site = site_add(&(struct site){ .kernel = f.kernel, .module = "m", .ptx_line = 3, .ptx = "x;",
			.loc = &(struct site_loc){ .file = "/src/a/kernel.cu", .line = 12, .function = "_Z1fv" } });
	f.side[0].site = site;
	strcpy(f.side[0].variable, "tile+0x80");
	results_add_finding(&r, &f);
	results_finish(&r);
	if (suppress_read(&r, fuzz_file(data, n), &e))
		suppress_apply(&r);
	else
		FUZZ_CHECK(e.code);
	results_free(&r);
	return 0;
}
