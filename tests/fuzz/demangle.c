/* demangle: names of kernels and variables. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *name = base_strndup((const char *)data, n);
	struct text t = { 0 };

	for (int how = NAME_FULL; how <= NAME_BARE; how++) {
		char *s = demangle(name, how);

		FUZZ_CHECK(s);
		free(s);
	}
	free(demangle_variable(name));
	demangle_symbol(&t, name);
	text_free(&t);
	free(name);
	return 0;
}
