// Tests of a kernel with GoogleTest: EXCHANGE is a fatbin made by
// nvcc -lineinfo -fatbin exchange.cu.
#include <consan/consan.h>

#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace {

struct close { void operator()(consan *c) const { consan_close(c); } };
using session = std::unique_ptr<consan, close>;

testing::AssertionResult clean(const session &c)
{
	std::string all;
	bool good = true;

	for (size_t i = 0, n = consan_findings(c.get()); i < n; i++) {
		const struct consan_finding *f = consan_finding(c.get(), i);
		char text[4096];
		consan_describe(f, text, sizeof text);
		all += std::string("\n") + text;
		good &= f->severity == CONSAN_NOTE;
	}
	return (good ? testing::AssertionSuccess() : testing::AssertionFailure()) << all;
}

void run_exchange(const session &c, int wait)
{
	struct consan_err e = {};
	consan_module *m = consan_load_file(c.get(), EXCHANGE, 0, &e);
	ASSERT_TRUE(m) << e.text;
	void *out = consan_malloc(c.get(), 64 * sizeof(int), CONSAN_MEM_DEVICE);
	const void *args[] = { &out, &wait };
	struct consan_launch l = {};
	l.kernel = consan_kernel(m, "exchange", &e);
	l.grid[0] = l.grid[1] = l.grid[2] = 1;
	l.block[0] = 64;
	l.block[1] = l.block[2] = 1;
	l.args = args;
	EXPECT_EQ(consan_launch(c.get(), &l, &e), CONSAN_OK) << e.text;
	consan_free(c.get(), out);
	consan_unload(m);
}

TEST(Exchange, Waits)
{
	struct consan_err e = {};
	session c(consan_open("strict", &e));
	run_exchange(c, 1);
	EXPECT_TRUE(clean(c));
}

TEST(Exchange, IsCaughtWithoutItsBarrier)
{
	struct consan_err e = {};
	session c(consan_open("", &e));
	run_exchange(c, 0);
	EXPECT_FALSE(clean(c));
	EXPECT_TRUE(consan_finds(c.get(), "CS102", "exchange.cu", 6));
}

} // namespace
