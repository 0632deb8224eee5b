/* Tests of a kernel with Criterion: EXCHANGE is a fatbin made by
 * nvcc -lineinfo -fatbin exchange.cu. */
#include <consan/criterion.h>

static enum consan_status exchange(struct consan *c, int wait, int out[64])
{
	struct consan_err e = { 0 };
	struct consan_module *m = consan_load_file(c, EXCHANGE, 0, &e);
	int *device = consan_malloc(c, 64 * sizeof *device, CONSAN_MEM_DEVICE);
	const void *args[] = { &device, &wait };
	struct consan_launch l = { .grid = { 1, 1, 1 }, .block = { 64, 1, 1 }, .args = args };
	enum consan_status status;

	cr_assert(m, "%s", e.text);
	l.kernel = consan_kernel(m, "exchange", &e);
	status = consan_launch(c, &l, &e);
	for (int i = 0; i < 64; i++)
		out[i] = device[i];
	consan_free(c, device);
	consan_unload(m);
	return status;
}

Test(exchange, waits)
{
	struct consan_err e = { 0 };
	struct consan *c = consan_open("strict", &e);
	int out[64];

	cr_assert_eq(exchange(c, 1, out), CONSAN_OK);
	cr_assert_consan_clean(c);
	for (int i = 0; i < 64; i++)
		cr_assert_eq(out[i], i ^ 32);
	consan_close(c);
}

Test(exchange, is_caught_without_its_barrier)
{
	struct consan_err e = { 0 };
	struct consan *c = consan_open("", &e);
	int out[64];

	cr_assert_eq(exchange(c, 0, out), CONSAN_OK);
	cr_assert_consan_finds(c, "CS102", "exchange.cu", 6);
	consan_close(c);
}
