/* Tests of libconsan/cuda/access.h: what the handler of a fault does in place of an instruction is what the processor
 * does. Each instruction is run on memory that it may access, and on a page that is protected. */
#include "libconsan/cuda/access.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 3, AT = 1024 };

struct registers {
	uint64_t a, c, d, flags;
	uint64_t source, destination;  /* rsi, rdi; when it begins: the memory */
	uint8_t vector[2][64];
	uint64_t mask;
};

static unsigned char *page;
static struct instruction last;
static unsigned faults, failed;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	const uintptr_t at = (uintptr_t)info->si_addr;
	const bool ours[2] = { true, true };

	(void)signal;
	if (at - (uintptr_t)page >= PAGES * PAGE)
		_exit(1);
	faults++;
	last = access_decode(context, at);
	if (access_run(&last, context, ours))
		return;
	failed++;
	mprotect(page, PAGES * PAGE, PROT_READ | PROT_WRITE);
}

typedef void run_fn(struct registers *r);

/* The memory operand is by rsi, rdi and rbx, which is 3. */
#define ASM(name, load, code, store) \
	static void do_##name(struct registers *r) \
	{ \
		register struct registers *at __asm__("r12") = r; \
		__asm__ volatile( \
			load \
			"mov 0(%%r12), %%rax\n mov 8(%%r12), %%rcx\n mov 16(%%r12), %%rdx\n mov $3, %%rbx\n" \
			"mov 32(%%r12), %%rsi\n mov 40(%%r12), %%rdi\n" \
			"mov %%rdx, %%r9\n mov %%rcx, %%r14\n" \
			"cmp $1000, %%eax\n" \
			code "\n" \
			"mov %%rax, 0(%%r12)\n lahf\n seto %%al\n movzwl %%ax, %%eax\n mov %%rax, 24(%%r12)\n" \
			"mov %%rcx, 8(%%r12)\n mov %%rdx, 16(%%r12)\n mov %%rsi, 32(%%r12)\n mov %%rdi, 40(%%r12)\n" \
			store \
			: : "r"(at) : "rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r14", "xmm0", "xmm1", \
				"mm0", "memory", "cc"); \
	}
#define GENERAL(name, code) ASM(name, "", code, "")
#define SSE(name, code) ASM(name, "movups 48(%%r12), %%xmm0\n movups 112(%%r12), %%xmm1\n", code, \
	"movups %%xmm0, 48(%%r12)\n movups %%xmm1, 112(%%r12)\n")
#define AVX(name, code) ASM(name, "vmovups 48(%%r12), %%ymm0\n vmovups 112(%%r12), %%ymm1\n", code, \
	"vmovups %%ymm0, 48(%%r12)\n vmovups %%ymm1, 112(%%r12)\n vzeroupper\n")
#define AVX512(name, code) ASM(name, "vmovups 48(%%r12), %%zmm0\n vmovups 112(%%r12), %%zmm1\n kmovw 176(%%r12), %%k1\n", \
	code, "vmovups %%zmm0, 48(%%r12)\n vmovups %%zmm1, 112(%%r12)\n vzeroupper\n")
#include "access.def"
#undef GENERAL
#undef SSE
#undef AVX
#undef AVX512

enum level { PLAIN, WITH_AVX, WITH_AVX512 };
static const struct { const char *name; run_fn *run; enum level level; } tests[] = {
#define GENERAL(name, code) { #name, do_##name, PLAIN },
#define SSE(name, code) { #name, do_##name, PLAIN },
#define AVX(name, code) { #name, do_##name, WITH_AVX },
#define AVX512(name, code) { #name, do_##name, WITH_AVX512 },
#include "access.def"
};

static bool is_supported(enum level level)
{
	return level == PLAIN || (level == WITH_AVX ? __builtin_cpu_supports("avx2")
		: __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
			&& __builtin_cpu_supports("avx512vl"));
}

static void fill(struct registers *r, unsigned from)
{
	mprotect(page, PAGES * PAGE, PROT_READ | PROT_WRITE);
	for (unsigned i = 0; i < PAGES * PAGE; i++)
		page[i] = (unsigned char)(i * 37 + (i >> 5));
	memset(r, 0, sizeof *r);
	*r = (struct registers){ 0x1122334455667788, 5, 0xfedcba9876543210, 0, (uintptr_t)page + from,
		(uintptr_t)page + from, { { 0 } }, 0xa5a5 };
	for (unsigned i = 0; i < sizeof r->vector; i++)
		r->vector[i / 64][i % 64] = (uint8_t)(i * 11 + 3);
}

static void compare(size_t i, unsigned from)
{
	static unsigned char expected[PAGES * PAGE];
	struct registers is, want;

	fill(&want, from);
	tests[i].run(&want);
	memcpy(expected, page, sizeof expected);
	fill(&is, from);
	faults = failed = 0;
	mprotect(page, PAGES * PAGE, PROT_NONE);
	tests[i].run(&is);
	mprotect(page, PAGES * PAGE, PROT_READ | PROT_WRITE);
	cr_expect(faults && !failed, "%s at %u: %u faults, %u failed", tests[i].name, from, faults, failed);
	cr_expect(!memcmp(&is, &want, sizeof is), "%s at %u: registers", tests[i].name, from);
	cr_expect(!memcmp(page, expected, sizeof expected), "%s at %u: memory", tests[i].name, from);
}

static void begin(void)
{
	struct sigaction a = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	page = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(page != MAP_FAILED);
	sigaction(SIGSEGV, &a, NULL);
}

Test(access, as_the_processor)
{
	begin();
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (is_supported(tests[i].level))
			compare(i, AT);
}

/* Operands in two pages. */
Test(access, across_pages)
{
	begin();
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (is_supported(tests[i].level) && !strstr(tests[i].name, "aligned"))
			compare(i, PAGE - 10);
}

struct expected { const char *name; size_t bytes; bool reads, writes; };

Test(access, what_is_accessed)
{
	static const struct expected all[] = {
		{ "load", 4, true, false }, { "store", 8, false, true }, { "store_byte", 1, false, true },
		{ "add_to", 4, true, true }, { "exchange", 4, true, true }, { "locked", 8, true, true },
		{ "compare_exchange", 4, true, true }, { "store_short", 2, false, true }, { "vector_load", 16, true, false },
		{ "vector_store", 16, false, true }, { "scalar_add", 8, true, false }, { "fill_string", 40, false, true },
		{ "load_scaled", 4, true, false },
	};

	begin();
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
			struct registers r;

			if (strcmp(tests[i].name, all[k].name))
				continue;
			fill(&r, AT);
			mprotect(page, PAGES * PAGE, PROT_NONE);
			tests[i].run(&r);
			cr_expect(last.access[0].bytes == all[k].bytes && last.access[0].reads == all[k].reads
				&& last.access[0].writes == all[k].writes, "%s: %zu bytes%s%s", all[k].name,
				last.access[0].bytes, last.access[0].reads ? ", reads" : "",
				last.access[0].writes ? ", writes" : "");
		}
}

/* What cannot be done is not done in part. */
ASM(divide, "", "xor %%edx, %%edx\n mov $7, %%eax\n divl (%%rdi)", "")
ASM(push, "", "push (%%rdi)\n pop %%rax", "")
ASM(compare_string, "", "mov $9, %%ecx\n repe cmpsb", "")

Test(access, left_to_the_processor)
{
	static run_fn *const run[] = { do_divide, do_push, do_compare_string };

	begin();
	for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
		struct registers is, want;

		fill(&want, AT);
		run[i](&want);
		fill(&is, AT);
		failed = 0;
		mprotect(page, PAGES * PAGE, PROT_NONE);
		run[i](&is);
		cr_expect(failed == 1 && !memcmp(&is, &want, sizeof is), "%zu: %u", i, failed);
	}
}
