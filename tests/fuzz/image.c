/* image: fatbins, cubins and ELF files with device code. */
#include "fuzz.h"

#include "libconsan/consan.h"
#include "libconsan/ptx/ptx.h"

static void registers(void *user, const char *function, uint32_t n)
{
	size_t *sum = user;

	*sum += strlen(function) + n;
}

static void unpack(const uint8_t *data, size_t n)
{
	struct fatbin_image at;
	struct consan_err e = { 0 };
	size_t cursor = 0, length;

	while (fatbin_next(data, n, &cursor, &at, &e)) {
		char *text = fatbin_unpack(&at, &length, &e);

		FUZZ_CHECK(!text || strlen(text) == length);
		free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct consan *c;
	struct consan_err e = { 0 };
	size_t sum = 0;
	char suffix = 0;

	if (!c)
		c = consan_open("jobs=1", &e);
	FUZZ_CHECK(c);
	unpack(data, n);
	fatbin_newest(data, n, &suffix);
	fatbin_ptx_target((const char *)data, n, &suffix);
	fatbin_registers(data, n, 90, 'a', registers, &sum);
	cubin_registers(data, n, registers, &sum);
	FUZZ_CHECK(cubin_size(data, n) <= n);
	for (unsigned i = 0; i < consan_image_modules(data, n) && i < 4; i++) {
		struct consan_err why = { 0 };

		consan_unload(consan_load_image(c, "fuzz", data, n, i, &why));
	}
	return 0;
}
