/* Tests of cuda: under consan-run, programs behave as on a GPU, however they are linked;
 * failures are reported and no finding is lost. Also tests of the fatbin reader and of the
 * linker of PTX. The programs are in tests/cuda/. Long because it has a test for each way to link and to
 * fail. */
#include "tests/common/ended.h"
#include "tests/common/limits.h"
#include "tests/common/sanitized.h"
#include "tests/common/skip.h"
#include "libconsan/ptx/ptx.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <elf.h>
#include <fcntl.h>
#include <lz4.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

/* ---- running ---- */

/* Runs `consan-run words` in the folder of the programs; returns its exit status. */
static int run(const char *words)
{
	return shell("cd %s/tests/cuda && exec " LIMITED "../../consan-run %s 2>&1", build_dir(), words);
}

/* Asserts the exit status, and a part of the output unless it is NULL. */
static void expect(const char *words, int status, const char *piece)
{
	expect_ended(words, run(words), status, piece);
}

/* ---- the API ---- */

/* functions: launches that are refused, as on a GPU, count as not checked. */
static const struct { const char *name; int status; } api[] = {
	{ "launch", 0 }, { "memory", 0 }, { "variables", 0 }, { "streams", 0 }, { "graphs", 0 }, { "graph-edits", 0 },
	{ "functions", 67 },
};

Test(cuda, runtime_static, .timeout = TEST_LIMIT)
{
	for (size_t i = 0; i < ARRAY_SIZE(api); i++) {
		char words[64];

		snprintf(words, sizeof words, "./static %s", api[i].name);
		expect(words, api[i].status, "0 errors");
	}
}

Test(cuda, runtime_shared, .timeout = TEST_LIMIT)
{
	for (size_t i = 0; i < ARRAY_SIZE(api); i++) {
		char words[64];

		snprintf(words, sizeof words, "./shared %s", api[i].name);
		expect(words, api[i].status, "0 errors");
	}
}

/* A static runtime without symbols, found by its bytes. */
Test(cuda, runtime_stripped, .timeout = TEST_LIMIT)
{
	for (size_t i = 0; i < ARRAY_SIZE(api); i++) {
		char words[64];

		snprintf(words, sizeof words, "./stripped %s", api[i].name);
		expect(words, api[i].status, "0 errors");
	}
	cr_assert_not(has(output, "libcudart_static"), "%s", output);
}

Test(cuda, linked_against_ours)
{
	expect("./ours", 0, "0 errors");
	cr_assert_not(has(output, "stripped"), "%s", output);
}

Test(cuda, device)
{
	expect("./static device", 67, "unsupported call: cudaArrayGetPlane");
	expect("--allow-unchecked ./static device", 0, NULL);
}

/* Each error that cuda.h documents. */
Test(cuda, wrong_arguments)
{
	static const char *const group[] = { "uninitialised", "streams", "events", "values", "capture",
		"allocations", "attributes", "copies", "fills", "hints", "pools", "kernel_nodes",
		"other_nodes", "any_node", "edges", "whole_graphs" };
	char words[100];

	for (size_t i = 0; i < ARRAY_SIZE(group); i++) {
		snprintf(words, sizeof words, "--devices=2 --allow-unchecked ./refused %s", group[i]);
		expect(words, 0, NULL);
	}
}

/* What the Python package asks. */
Test(cuda, package)
{
	expect("--error-exitcode=0 --allow-unchecked ./package asks", 0, "a remark of the package");
	expect("--print-level=info --allow-unchecked ./package operators", 0,
		"10 ATen operators ran on the CPU, unchecked, in 55 calls: op9, op8");
	cr_expect(has(output, "1 Other operator ran on the CPU, unchecked, in 1 call: op9"), "%s", output);
	expect("--allow-unchecked ./package races", 66, "aten::add_");
	expect("--allow-unchecked ./package ordered", 0, NULL);
	expect("--allow-unchecked ./package both", 0, NULL);
}

Test(cuda, driver)
{
	expect("./driver module", 0, "1 of 1 kernel checked");
	expect("./driver library", 0, NULL);
	expect("--allow-unchecked ./driver nvml", 0, NULL);
	expect("--devices=3 --allow-unchecked env CUDA_VISIBLE_DEVICES=2,0 ./driver nvml", 0, NULL);
	expect("--allow-unchecked ./driver streams-memory", 0, NULL);
	expect("./driver busy-query", 0, "1 of 1 kernel checked");
	expect("--allow-unchecked ./driver entry", 0, "unsupported call: cuArrayGetPlane");
	expect("--allow-unchecked ./driver tensormap", 0, "cuTensorMapEncodeTiled");
}

/* The program ignores an error and exits with status 0: the run is not checked. */
Test(cuda, not_checked, .timeout = TEST_LIMIT)
{
	static const struct { const char *name, *piece; } lost[] = {
		{ "missing", "1 of 2 kernels checked" }, { "missing", "it was not found" },
		{ "refused", "0 of 1 kernel checked" }, { "refused", "the launch was refused" },
		{ "stale", "0 of 2 kernels checked" }, { "programmatic-event", "0 of 1 kernel checked" },
		{ "unknown-attribute", "launch attribute 63" },
		{ "newer-ptx", "1 of 1 kernel checked; NOT CHECKED: 1 module" },
		{ "no-ptx", "1 of 1 kernel checked; NOT CHECKED: 1 module" }, { "no-ptx", "only machine code" },
		{ "unknown-plugin", "unknown.so: its CUDA runtime is" }, { "no-file", "/nonexistent" }, { "unsupported", "cuArrayGetPlane" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
		char words[64];

		snprintf(words, sizeof words, "./driver %s", lost[i].name);
		expect(words, 67, lost[i].piece);
		snprintf(words, sizeof words, "--allow-unchecked ./driver %s", lost[i].name);
		expect(words, 0, NULL);
	}
	cr_assert_eq(shell("printf 'CS903\\n reason: a test\\nCS905\\n reason: a test\\n' "
		">%s/tests/cuda/faults", build_dir()), 0);
	expect("--suppressions faults ./static fault", 67, "ended early, by a fault");
	expect("-k kne=set ./driver missing", 0, "1 of 1 kernel checked");
}

Test(cuda, dependent_launches)
{
	expect("./dependent runtime", 66, "CS118");
	expect("./dependent driver", 66, "launch 0 (first(int*)) may still be running");
	expect("./dependent graph", 66, "CS118");
	expect("./dependent synced", 0, "2 of 2 kernels checked");
	expect("./dependent runtime wait", 0, "2 of 2 kernels checked");
	expect("./dependent graph wait", 0, "2 of 2 kernels checked");
	expect("--backend=gpu-emulated --gpu-global ./dependent runtime", 66, "CS118");
	expect("--backend=gpu-emulated --gpu-global ./dependent runtime wait", 0, "2 of 2 kernels checked");
}

/* ---- machine code whose PTX consan remembers ---- */

/* NVRTC and nvJitLink, however the program calls them. */
/* ---- cuBLAS and cuFFT ---- */

static const char *const libraries[] = { "libraries", "libraries_looked_up" };

/* With consan under AddressSanitizer, the dynamic linker sees AddressSanitizer's dlopen() as the caller, and
 * does not search the RUNPATH of the program that calls it. */
static void search_path(void)
{
#ifdef CONSAN_ASAN
	setenv("LD_LIBRARY_PATH", "fake", 1);
#endif
}

Test(libraries, results, .timeout = TEST_LIMIT)
{
	search_path();
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		char words[64];

		snprintf(words, sizeof words, "./%s", libraries[i]);
		expect(words, 67, "library calls ran on the CPU, unchecked: cublasZgemm_v2"); /* no kernel */
		cr_assert(!has(output, "is wrong"), "%s", output);
	}
}

/* What is not done must not be executed by the library's own code, whose handles are others. */
Test(libraries, refused, .timeout = TEST_LIMIT)
{
	search_path();
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		char words[64];

		snprintf(words, sizeof words, "./%s refused", libraries[i]);
		expect(words, 67, "unsupported call: cublasSgetrfBatched");
		cr_assert(has(output, "cufftXtMalloc"), "%s", output);
	}
}

Test(libraries, out_of_bounds, .timeout = TEST_LIMIT)
{
	expect("./libraries bounds", 67, "cublasDscal_v2 writes 808 B");
}

/* What a call accesses, to the byte: between columns, one half of a matrix, matrices in an array. */
Test(libraries, races, .timeout = TEST_LIMIT)
{
	static const char *const racy[] = { "gemm", "batched", "triangle", "read" };
	static const char *const clean[] = { "fixed gemm", "fixed batched", "fixed triangle", "fixed read",
		"race between", "race lower" };
	char words[64];

	for (size_t i = 0; i < ARRAY_SIZE(racy); i++) {
		snprintf(words, sizeof words, "./libraries race %s", racy[i]);
		expect(words, 66, "CS1002");
		cr_assert(has(output, "by cublasD"), "%s", output);
	}
	for (size_t i = 0; i < ARRAY_SIZE(clean); i++) {
		snprintf(words, sizeof words, "--allow-unchecked ./libraries %s", clean[i]);
		expect(words, 0, "0 errors, 0 warnings");
	}
}

Test(makers, in_process, .timeout = TEST_LIMIT)
{
	static const char *const how[] = { "nvrtc", "link-ptx", "link-lto", "link-mixed",
		"driver-ptx", "driver-mixed" };
	static const char *const program[] = { "makers", "makers_lazy", "makers_looked_up" };
	char words[128];

	if (shell("test -e %s/tests/cuda/makers", build_dir()))
		SKIP_TEST("the toolkit has no NVRTC or nvJitLink");
	for (size_t k = 0; k < ARRAY_SIZE(program); k++)
		for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
			snprintf(words, sizeof words, "--code-cache=none ./%s %s", program[k], how[i]);
			expect(words, 0, "1 of 1 kernel checked");
		}
}

/* ptxas and nvcc in one run, the module in a later one, as from a compiler's cache on disk. */
Test(makers, child_processes, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();

	if (shell("test -e %s/tests/cuda/makers", dir))
		SKIP_TEST("the toolkit has no NVRTC or nvJitLink");
#ifdef CONSAN_ASAN
	SKIP_TEST("nvcc's cicc crashes if AddressSanitizer's runtime is preloaded, also without consan");
#endif
	cr_assert_eq(shell("cd %s/tests/cuda && rm -rf made && mkdir made && cat >made/set.cu <<'E'\n"
		"extern \"C\" __global__ void set(int *to, int value) { to[threadIdx.x] = value + 1; }\nE\n"
		"cat >made/make <<'E'\nset -e\ncd made\nnvcc -arch=sm_90a --cubin -o set.cubin set.cu\n"
		"nvcc -gencode arch=compute_90a,code=sm_90a --fatbin -o set.fatbin set.cu\n"
		"nvcc -arch=sm_90a -ptx -o set.ptx set.cu\nptxas --gpu-name=sm_90a -o ptxas.cubin set.ptx\n"
		"rm set.ptx\nptxas --version\nE\n", dir), 0, "%s", output);
	expect("--code-cache=made/cache --allow-unchecked sh made/make", 0, "consan remembers");
	expect("--code-cache=made/cache ./makers made/set.cubin", 0, "1 of 1 kernel checked");
	expect("--code-cache=made/cache ./makers made/set.fatbin", 0, "1 of 1 kernel checked");
	expect("--code-cache=made/cache ./makers made/ptxas.cubin", 0, "1 of 1 kernel checked");
	expect("--code-cache=none ./makers made/set.cubin", 1, "only machine code");
	/* what failed is not remembered */
	expect("--code-cache=none sh -c 'ptxas --gpu-name=sm_10 made/set.cu -o made/ptxas.cubin; "
		"./makers made/ptxas.cubin'", 1, "only machine code");
}

/* However ptxas gets PTX and says where the machine code goes. */
Test(makers, forms_of_ptxas, .timeout = TEST_LIMIT)
{
	static const char *const form[] = {
		"ptxas -arch=sm_90a form.ptx && mv elf.o out", "ptxas -o=out -arch sm_90a form.ptx",
		"ptxas --output-file out --gpu-name=sm_90a form.ptx", "ptxas --options-file=options",
		"ptxas -optf options", "cat form.ptx | ptxas -arch=sm_90a -o out -",
		"ptxas -arch=sm_90a -o out /dev/stdin <form.ptx", "bash -c 'ptxas -arch=sm_90a -o out <(cat form.ptx)'",
		"ptxas -arch=sm_90a -o out -ias \"$(cat form.ptx)\"", ("ptxas -c -arch=sm_90a -o out form.ptx && "
		"nvlink -arch=sm_90a -o linked out"),
	};
	const char *dir = build_dir();
	char words[128];

	if (shell("test -e %s/tests/cuda/makers", dir))
		SKIP_TEST("the toolkit has no NVRTC or nvJitLink");
	cr_assert_eq(shell("cd %s/tests/cuda && rm -rf forms && mkdir forms && cd forms && cat >form.cu <<'E'\n"
		"extern \"C\" __global__ void set(int *to, int value) { to[threadIdx.x] = value + 1; }\nE\n"
		"nvcc -arch=sm_90a -ptx -o form.ptx form.cu && "
		"printf -- '-arch=sm_90a -o \"out\"\\n form.ptx' >options", dir), 0, "%s", output);
	for (size_t i = 0; i < ARRAY_SIZE(form); i++) {
		cr_assert_eq(shell("cd %s/tests/cuda/forms && rm -rf cache out && cat >make <<'E'\ncd forms\n%s\nE",
			dir, form[i]), 0, "%s", output);
		expect("--code-cache=forms/cache --allow-unchecked sh forms/make", 0, NULL);
		snprintf(words, sizeof words, "--code-cache=forms/cache ./makers forms/out");
		expect(words, 0, "1 of 1 kernel checked");
	}
	/* nothing was assembled: what was there before is not this PTX */
	cr_assert_eq(shell("cd %s/tests/cuda/forms && rm -rf cache && "
		"echo 'ptxas -arch=compute_90a -o forms/out forms/form.ptx' >make", dir), 0);
	expect("--code-cache=forms/cache --allow-unchecked sh forms/make", 0, NULL);
	expect("--code-cache=forms/cache ./makers forms/out", 1, "only machine code");
}

Test(cuda, plugin)
{
	expect("./driver plugin", 0, "1 of 1 kernel checked");
	expect("./driver crowded", 0, "1 of 1 kernel checked");
	expect("./driver plugin", 0, "H100"); /* libraries do not choose the GPU */
}

Test(cuda, separate_compilation)
{
	expect("./linked", 0, "2 of 2 kernels checked");
}

Test(cuda, nvrtc)
{
	int status = run("./driver nvrtc");

	if (status == 77)
		SKIP_TEST("NVRTC is not installed");
	cr_assert_eq(status, 0, "%s", output);
}

/* ---- replaced PTX ---- */

/* Fixes the race of ./static in its PTX: inserts the missing barrier before each load from
 * shared memory. */
Test(cuda, replace_ptx)
{
	char dir[] = "/tmp/consan-ptx-XXXXXX", words[256];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(words, sizeof words, "--dump-ptx=%s ./static race", dir);
	expect(words, 66, NULL);
	snprintf(words, sizeof words, "--replace-ptx=%s/0.ptx ./static race", dir);
	expect(words, 66, "replaced by");
	snprintf(words, sizeof words, "sed -i 's/^\\(.*ld.shared.*\\)$/bar.sync 0; \\1/' %s/0.ptx", dir);
	cr_assert_eq(shell("%s", words), 0);
	snprintf(words, sizeof words, "--replace-ptx=%s/0.ptx ./static race", dir);
	expect(words, 0, "0 errors");
	snprintf(words, sizeof words, "echo '.version 8.0\n.target sm_90\n.address_size 64' >%s/0.ptx",
		dir);
	cr_assert_eq(shell("%s", words), 0);
	snprintf(words, sizeof words, "--replace-ptx=%s/0.ptx ./static race", dir);
	expect(words, 66, "which lacks kernel");
	snprintf(words, sizeof words, "rm -r %s", dir);
	cr_assert_eq(shell("%s", words), 0);
	expect("--replace-ptx=/nowhere.ptx ./static launch", 64, "/nowhere.ptx: cannot be read");
	expect("--dump-ptx=/nowhere/at/all ./static launch", 64, "/nowhere/at/all: cannot be written");
}

/* ---- findings reach the report, however the program ends ---- */

Test(cuda, finds)
{
	expect("./static race", 66, "runtime.cu");
	expect("--error-exitcode 9 ./static race", 9, NULL);
	expect("--error-exitcode 0 ./static race", 0, NULL);
	expect("./static fault", 66, "CS903");
	/* what comes after a fault or a hang is not checked */
	expect("--error-exitcode 0 ./static fault", 67, "CS905");
	expect("--error-exitcode 0 ./static hang", 67, "CS70");
	cr_assert(has(output, "clusters ended"), "%s", output);
}

Test(cuda, ends)
{
	static const char *const how[] = { "_exit", "abort", "kill", "exec", "return" };

	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		char words[64];

		snprintf(words, sizeof words, "./static race-then %s", how[i]);
		expect(words, 66, "1 of 1 kernel checked");
	}
	expect("--error-exitcode 0 ./static race-then _exit", 3, NULL);
	expect("--error-exitcode 0 ./static race-then return", 5, NULL);
	expect("--halt-on-error --error-exitcode 9 ./static race-then return", 9, "halt-on-error");
	expect("--halt-on-error --error-exitcode 0 ./static race-then return", 1, "CS102");
	expect("--halt-on-error --kernel-name=kne=other --allow-unchecked ./static race-then return", 5,
		NULL);
	expect("--error-exitcode 0 ./static race-then kill", 128 + SIGKILL, "killed by signal 9");
	expect("--error-exitcode 0 ./static race-then abort", 128 + SIGABRT, NULL);
}

Test(cuda, forks)
{
	expect("./static forks", 66, "1 of 1 kernel checked");
}

Test(cuda, hangs)
{
	expect("--timeout 20 ./static hang", 66, "CS70");
}

/* Ctrl-C: the signal goes to all processes in the foreground. */
Test(cuda, interrupt)
{
	char run_path[4200], program[4200];
	int pipe_out[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	snprintf(run_path, sizeof run_path, "%s/consan-run", build_dir());
	snprintf(program, sizeof program, "%s/tests/cuda/static", build_dir());
	cr_assert_eq(pipe(pipe_out), 0);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		signal(SIGINT, SIG_DFL); /* a shell that runs this in the background ignores it */
		dup2(pipe_out[1], 1);
		dup2(pipe_out[1], 2);
		close(pipe_out[0]);
		execl(run_path, "consan-run", program, "race-then", "pause", (char *)NULL);
		_exit(99);
	}
	close(pipe_out[1]);
	while (!strstr(output, "ready") && (got = read(pipe_out[0], output + n, 100)) > 0)
		n += (size_t)got;
	kill(-pid, SIGINT);
	while (n < sizeof output - 100 && (got = read(pipe_out[0], output + n, 100)) > 0)
		n += (size_t)got;
	waitpid(pid, &status, 0);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 66, "%x %s", status, output);
	cr_assert(strstr(output, "1 error"), "%s", output);
}

/* ---- bad input ---- */

Test(cuda, bad_programs)
{
	expect("./nothing-here", 127, "no such program");
	expect("nothing-here", 127, "no such program");
	expect("/etc/passwd", 126, "not executable");
	expect("$(t=$(mktemp); echo text > $t; chmod +x $t; echo $t)", 126, "not a program");
	expect("", 64, "no program to run");
	expect("--nonsense ./static", 64, "unknown option");
	expect("--log-file /nonexistent/log ./static race", 64, "cannot be written");
	expect("--report /nonexistent/r.json ./static race", 64, "cannot be written");
	expect("/bin/true", 67, "never called CUDA");
	expect("./static nothing", 67, "never called CUDA");
	expect("--allow-unchecked /bin/sh -c 'exit 7'", 7, NULL);
}

Test(cuda, bad_images)
{
	cr_assert_neq(run("./unknown race"), 0);
	cr_assert(has(output, "link with -cudart shared"), "%s", output);
	cr_assert_neq(run("./sass"), 0);
	cr_assert(has(output, "code=compute_90a"), "%s", output);
	cr_assert(has(output, "cudaErrorNoKernelImageForDevice"), "%s", output);
	cr_assert_neq(run("--arch sm_80 ./static race"), 0);
	cr_assert(has(output, "no PTX for the emulated sm_80"), "%s", output);
	expect("--allow-unchecked ./driver bad", 0, "neither a fatbin nor PTX");
}

/* ---- fatbins ---- */

static void put16(uint8_t *p, unsigned v) { p[0] = (uint8_t)v; p[1] = (uint8_t)(v >> 8); }
static void put32(uint8_t *p, uint32_t v) { memcpy(p, &v, sizeof v); }
static void put64(uint8_t *p, uint64_t v) { memcpy(p, &v, sizeof v); }

static const char text[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
	"// some text that repeats, some text that repeats, some text that repeats\n";

/* Writes a fatbin with `text` uncompressed, as LZ4 and as ZSTD, for sm_90a, sm_90 and sm_80. */
static size_t make(uint8_t *to, size_t cap)
{
	static const struct { uint32_t sm; uint64_t flags; } image[] = {
		{ 90, 0x100000 }, { 90, 0x2000 }, { 80, 0x8000 },
	};
	size_t at = 16, i;

	memset(to, 0, cap);
	for (i = 0; i < ARRAY_SIZE(image); i++) {
		uint8_t *h = to + at, *body = h + 64;
		size_t n = strlen(text);

		if (image[i].flags & 0x2000)
			n = (size_t)LZ4_compress_default(text, (char *)body, (int)strlen(text), 1000);
		else if (image[i].flags & 0x8000)
			n = ZSTD_compress(body, 1000, text, strlen(text), 3);
		else
			memcpy(body, text, n);
		put16(h, 1);
		put16(h + 2, 0x101);
		put32(h + 4, 64);
		put64(h + 8, (n + 7) / 8 * 8);
		put32(h + 16, image[i].flags & 0xa000 ? (uint32_t)n : 0);
		put32(h + 28, image[i].sm);
		put64(h + 40, image[i].flags | 0x11);
		put64(h + 56, image[i].flags & 0xa000 ? strlen(text) : 0);
		at += 64 + (n + 7) / 8 * 8;
	}
	put32(to, 0xBA55ED50);
	put16(to + 4, 1);
	put16(to + 6, 16);
	put64(to + 8, at - 16);
	return at;
}

static unsigned images(const uint8_t *bytes, size_t n, unsigned *texts, struct consan_err *e)
{
	struct fatbin_image image;
	size_t cursor = 0, length;
	unsigned count = 0;

	while (fatbin_next(bytes, n, &cursor, &image, e)) {
		struct consan_err e2 = { 0 };
		char *unpacked = image.unpacked < 1 << 20 ? fatbin_unpack(&image, &length, &e2) : NULL;

		count++;
		*texts += unpacked && !strcmp(unpacked, text);
		free(unpacked);
	}
	return count;
}

Test(fatbin, reads)
{
	uint8_t bytes[4096];
	size_t n = make(bytes, sizeof bytes), cursor = 0;
	struct fatbin_image image;
	struct consan_err e = { 0 };
	unsigned texts = 0;

	cr_assert(fatbin_is(bytes, n));
	cr_assert_eq(fatbin_size(bytes), n);
	cr_assert_eq(images(bytes, n, &texts, &e), 3);
	cr_assert_eq(texts, 3);
	cr_assert_eq(e.code, 0);
	cr_assert(fatbin_next(bytes, n, &cursor, &image, &e));
	cr_assert_eq(image.sm, 90);
	cr_assert_eq(image.suffix, 'a');
	cr_assert_eq(image.kind, FATBIN_PTX);
}

/* ---- registers of cubins ---- */

enum { CUBIN = 1024 };

/* A cubin with the sections that matter: 1 names, 2 symbol names, 3 symbols, 4 .nv.info. */
static void make_cubin(uint8_t *to)
{
	static const char names[] = "\0.nv.info", symbols[] = "\0first\0second";
	static const uint8_t info[] = { 4, 0x2f, 8, 0, 1, 0, 0, 0, 168, 0, 0, 0, /* first: 168 */
		3, 0x36, 4, 0, 4, 0x11, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, /* others */
		4, 0x2f, 8, 0, 2, 0, 0, 0, 40, 0, 0, 0, /* second: 40 */
		4, 0x2f, 8, 0, 9, 0, 0, 0, 40, 0, 0, 0 /* no such symbol */ };
	const Elf64_Sym symbol[3] = { { 0 }, { .st_name = 1 }, { .st_name = 7 } };
	const Elf64_Shdr section[5] = { { 0 },
		{ .sh_type = SHT_STRTAB, .sh_offset = 512, .sh_size = sizeof names },
		{ .sh_type = SHT_STRTAB, .sh_offset = 544, .sh_size = sizeof symbols },
		{ .sh_type = SHT_SYMTAB, .sh_offset = 576, .sh_size = sizeof symbol, .sh_link = 2 },
		{ .sh_name = 1, .sh_type = 0x70000000, .sh_offset = 704, .sh_size = sizeof info } };
	const Elf64_Ehdr head = { .e_ident = "\177ELF\2\1\1", .e_machine = EM_CUDA, .e_shoff = 64,
		.e_shentsize = sizeof *section, .e_shnum = 5, .e_shstrndx = 1 };

	memset(to, 0, CUBIN);
	memcpy(to, &head, sizeof head);
	memcpy(to + 64, section, sizeof section);
	memcpy(to + 512, names, sizeof names);
	memcpy(to + 544, symbols, sizeof symbols);
	memcpy(to + 576, symbol, sizeof symbol);
	memcpy(to + 704, info, sizeof info);
}

static void add_registers(void *user, const char *function, uint32_t n)
{
	text_printf(user, "%s=%u ", function, n);
}

Test(cubin, registers)
{
	uint8_t cubin[CUBIN], fatbin[16 + 64 + CUBIN] = { 0 };
	struct text t = { 0 };

	make_cubin(cubin);
	cubin_registers(cubin, CUBIN, add_registers, &t);
	cr_assert_str_eq(t.at, "first=168 second=40 ");
	put32(fatbin, 0xBA55ED50);
	put16(fatbin + 4, 1);
	put16(fatbin + 6, 16);
	put64(fatbin + 8, 64 + CUBIN);
	put16(fatbin + 16, 2);
	put32(fatbin + 16 + 4, 64);
	put64(fatbin + 16 + 8, CUBIN);
	put32(fatbin + 16 + 28, 90);
	put64(fatbin + 16 + 40, 0x100000);
	memcpy(fatbin + 80, cubin, CUBIN);
	t.n = 0;
	fatbin_registers(fatbin, sizeof fatbin, 100, 'a', add_registers, &t);
	cr_assert_eq(t.n, 0, "machine code of another generation does not run");
	fatbin_registers(fatbin, sizeof fatbin, 90, 'a', add_registers, &t);
	cr_assert_str_eq(t.at, "first=168 second=40 ");
	text_free(&t);
}

/* Never a read out of bounds: each copy has exactly its size, for the sanitizers. */
Test(cubin, damaged)
{
	uint8_t whole[CUBIN];
	unsigned seed = 1;

	make_cubin(whole);
	for (unsigned k = 0; k < 4000; k++) {
		const size_t n = k < CUBIN ? k : CUBIN;
		uint8_t *part = malloc(n ? n : 1);
		struct text t = { 0 };

		memcpy(part, whole, n);
		for (unsigned flips = k < CUBIN ? 0 : 1 + k % 4; flips; flips--)
			part[rand_r(&seed) % 800] = (uint8_t)rand_r(&seed);
		cubin_registers(part, n, add_registers, &t);
		cr_assert_leq(cubin_size(part, n), n);
		text_free(&t);
		free(part);
	}
}

/* What nothing fits: generic PTX of the oldest newer architecture, if that is wanted. */
Test(fatbin, newer)
{
	static const struct { unsigned kind, sm; uint64_t flags; } image[] = {
		{ 2, 90, 0 }, { 1, 120, 0 }, { 1, 110, 0 }, { 1, 100, 0x100000 }, { 1, 103, 0x200000 },
	};
	uint8_t fatbin[16 + 64 * ARRAY_SIZE(image)] = { 0x50, 0xed, 0x55, 0xba };
	struct fatbin_image best = { 0 };
	struct consan_err e = { 0 };
	struct text has = { 0 };

	put16(fatbin + 4, 1);
	put16(fatbin + 6, 16);
	put64(fatbin + 8, sizeof fatbin - 16);
	for (size_t k = 0; k < ARRAY_SIZE(image); k++) {
		put16(fatbin + 16 + 64 * k, image[k].kind);
		put32(fatbin + 16 + 64 * k + 4, 64);
		put32(fatbin + 16 + 64 * k + 28, image[k].sm);
		put64(fatbin + 16 + 64 * k + 40, image[k].flags);
	}
	cr_assert_not(fatbin_choose(fatbin, sizeof fatbin, 90, 'a', false, &best, &has, &e));
	cr_assert(fatbin_choose(fatbin, sizeof fatbin, 90, 'a', true, &best, &has, &e));
	cr_assert_eq(best.sm, 110);
	cr_assert(fatbin_choose(fatbin, sizeof fatbin, 100, 'a', true, &best, &has, &e));
	cr_assert(best.sm == 100 && best.suffix == 'a', "what fits comes first");
	cr_assert(fatbin_choose(fatbin, sizeof fatbin, 121, 'a', true, &best, &has, &e));
	cr_assert_eq(best.sm, 120);
	text_free(&has);
}

Test(fatbin, ranks)
{
	cr_assert_gt(fatbin_rank(90, 'a', 90, 'a'), fatbin_rank(90, 0, 90, 'a'));
	cr_assert_gt(fatbin_rank(90, 0, 90, 'a'), fatbin_rank(80, 0, 90, 'a'));
	cr_assert_eq(fatbin_rank(90, 'a', 100, 'a'), 0);
	cr_assert_eq(fatbin_rank(90, 'a', 90, 0), 0);
	cr_assert_eq(fatbin_rank(100, 0, 90, 'a'), 0);
	cr_assert_gt(fatbin_rank(100, 'f', 103, 'a'), fatbin_rank(100, 0, 103, 'a'));
	cr_assert_eq(fatbin_rank(100, 'f', 120, 'a'), 0);
	cr_assert_eq(fatbin_rank(103, 'f', 100, 'a'), 0);
	cr_assert_eq(fatbin_rank(100, 'a', 103, 'a'), 0);
	cr_assert_eq(fatbin_rank(100, 'f', 110, 'a'), 0);
	cr_assert_gt(fatbin_rank(120, 'f', 121, 'a'), 0);
	cr_assert_gt(fatbin_rank(90, 0, 120, 'a'), 0);
}

/* Truncated and corrupted fatbins lead to an end or an error, never to a read out of bounds.
 * The bytes are in a heap block of exactly their size, for the sanitizers. */
Test(fatbin, damaged, .timeout = TEST_LIMIT)
{
	uint8_t whole[4096], *part;
	size_t n = make(whole, sizeof whole), k;
	unsigned texts, seed = 1;

	for (k = 0; k < n; k++) {
		struct consan_err e = { 0 };

		part = malloc(k ? k : 1);
		memcpy(part, whole, k);
		texts = 0;
		cr_assert_eq(images(part, k, &texts, &e), 0, "cut at %zu", k);
		cr_assert_neq(e.code, 0, "cut at %zu", k);
		free(part);
	}
	for (k = 0; k < 20000; k++) {
		struct consan_err e = { 0 };

		part = malloc(n);
		memcpy(part, whole, n);
		for (unsigned flips = 1 + k % 3; flips; flips--)
			part[rand_r(&seed) % n] = (uint8_t)rand_r(&seed);
		texts = 0;
		images(part, n, &texts, &e);
		free(part);
	}
}

/* ---- linking ---- */

static const char unit1[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
	"// a comment; with { things\n"
	".extern .func (.param .b32 r) twice\n(\n.param .b32 x\n)\n;\n"
	".visible .global .align 4 .u32 common = 1;\n"
	".weak .global .u32 both;\n"
	".global .align 1 .b8 $str[4] = {1, 2, 3, 0};\n"
	".file\t1 \"a.cu\"\n"
	".visible .entry a()\n{\n.loc 1 2 3\nmov.u64 %rd1, $str;\nret;\n}\n";
static const char unit2[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
	".extern .global .align 4 .u32 common;\n"
	".weak .global .u32 both;\n"
	".global .align 1 .b8 $str[4] = {4, 5, 6, 0};\n"
	".file\t1 \"b.cu\"\n"
	".visible .func (.param .b32 r) twice(.param .b32 x)\n{\n.loc 1 7 8\n"
	"mov.u64 %rd1, $str;\nret;\n}\n";

Test(link, joins)
{
	const char *const both[] = { unit1, unit2 };
	struct consan_err e = { 0 };
	char *out = link_ptx(both, 2, &e);

	cr_assert_not_null(out, "%s", e.text);
	cr_assert_eq(count(out, ".version"), 1);
	cr_assert_eq(count(out, ".u32 common"), 1);
	cr_assert_eq(count(out, ".u32 both"), 1);
	cr_assert_eq(count(out, ".extern"), 0);
	cr_assert_eq(count(out, "$str$unit1"), 2);
	cr_assert_eq(count(out, ".loc 2 7 8"), 1);
	cr_assert_eq(count(out, ".loc 1 2 3"), 1);
	cr_assert_eq(count(out, ".file\t2 \"b.cu\""), 1);
	free(out);
}

Test(link, twice)
{
	const char *const both[] = { unit2, unit2 };
	struct consan_err e = { 0 };

	cr_assert_null(link_ptx(both, 2, &e));
	cr_assert_eq(e.code, CONSAN_ERR_PTX_SYMBOL);
}

Test(link, damaged)
{
	for (size_t k = 0; k <= strlen(unit1); k++) {
		char *part = base_strndup(unit1, k), *out;
		const char *const both[] = { part, unit2 };
		struct consan_err e = { 0 };

		out = link_ptx(both, 2, &e);
		cr_assert(out || e.code);
		free(out);
		free(part);
	}
}

/* ---- call stacks of the host, and calls that failed ---- */

/* The line of tests/cuda/calls.cu that ends in this mark. */
static unsigned marked(const char *mark)
{
	char line[400], end[40];
	unsigned n = 0, found = 0;
	FILE *in = fopen("tests/cuda/calls.cu", "r");

	cr_assert_not_null(in);
	snprintf(end, sizeof end, "// %s\n", mark);
	while (fgets(line, sizeof line, in)) {
		n++;
		if (strstr(line, end))
			found = n;
	}
	fclose(in);
	cr_assert(found, "no mark %s", mark);
	return found;
}

/* The frames that the JSON report has for a finding of this rule: "file:line file:line ...". what:
 * "host", the launch, or "sides", the call. */
static const char *stack(const char *words, int status, const char *rule, const char *what)
{
	static char frames[2000];
	char command[400];
	int is;

	snprintf(command, sizeof command, "--print-level=info --report=calls%ld.json %s", (long)getpid(),
		words);
	is = run(command);
	cr_assert_eq(is, status, "%s: status %d, expected %d\n%s", words, is, status, output);
	shell("python3 -c '\nimport json, sys\nfor f in json.load(open(sys.argv[1]))[\"findings\"]:\n"
		" if f[\"rule\"] == \"%s\":\n"
		"  s = f[\"sides\"][0][\"site\"] if \"%s\" == \"sides\" else f.get(\"host\") or {}\n"
		"  print(f[\"seen\"], *[\"%%s:%%d\" %% (x.get(\"file\", \"\").split(\"/\")[-1], x[\"line\"]) "
		"for x in s.get(\"source\", [])])' %s/tests/cuda/calls%ld.json; rm -f %s/tests/cuda/calls%ld.json",
		rule, what, build_dir(), (long)getpid(), build_dir(), (long)getpid());
	snprintf(frames, sizeof frames, "%.*s", (int)strcspn(output, "\n"), output);
	return frames;
}

static const char *at(const char *a, const char *b, const char *c)
{
	static char places[200];
	const char *const mark[] = { a, b, c };
	size_t n = 0;

	places[0] = 0;
	for (size_t i = 0; i < 3 && mark[i]; i++)
		n += (size_t)snprintf(places + n, sizeof places - n, " calls.cu:%u", marked(mark[i]));
	return places;
}

Test(cuda, launches_have_call_stacks, .timeout = TEST_LIMIT)
{
	const char *is = stack("./calls race", 66, "CS102", "host");

	cr_expect_str_eq(strchrnul(is, ' '), at("launch", "wrapper", "race"));
	is = stack("--show-backtrace=no ./calls race", 66, "CS102", "host");
	cr_expect_str_eq(strchrnul(is, ' '), "");
	expect("--report=-.xml ./calls race", 66, "launched:\n    ");
	expect("--report=-.sarif ./calls race", 66, "\"stacks\": [");
	expect("--report=-.html ./calls race", 66, ">launched<");
	expect("--show-backtrace=no --report=-.xml ./calls race", 66, "SUMMARY");
	cr_expect_not(has(output, "launched:"), "%s", output);
	is = stack("--backend=gpu-emulated ./calls race", 66, "CS102", "host");
	cr_expect_str_eq(strchrnul(is, ' '), at("launch", "wrapper", "race"));
	/* what nvcc generates for a launch is inlined into the program's function here */
	is = stack("../../kernels/ring/ring --rows=256 --bug=no_syncwarp", 66, "CS106", "host");
	is = strchrnul(is, ' ');
	cr_expect(!strncmp(is, " launch.h:", 10) && has(is, " ring.cu:") && !has(is, ".stub.c"), "%s", is);
	cr_assert_eq(run("./calls_plain race"), 66);
	cr_expect(has(output, "run in calls_plain") && has(output, "main in calls_plain"), "%s", output);
}

Test(cuda, failed_calls_are_reported, .timeout = TEST_LIMIT)
{
	const char *is = stack("./calls ignored", 67, "CS951", "sides");
	const char *expected = at("launch", "wrapper", "refused");

	cr_expect(!strncmp(strchrnul(is, ' '), expected, strlen(expected)), "%s, not %s", is, expected);
	expect("./calls ignored", 67, "2000 threads");
	cr_expect(has(output, "no later call of cudaGetLastError() asked"), "%s", output);
	expect("./calls asked", 67, "launch refused");
	cr_expect_not(has(output, "no later call of cudaGetLastError() asked"), "%s", output);
	is = stack("./calls shared", 67, "CS951", "sides");
	cr_expect_str_eq(strchrnul(is, ' '), at("shared", NULL, NULL));
	is = stack("./calls copy", 67, "CS953", "sides");
	cr_expect_str_eq(strchrnul(is, ' '), at("copy", NULL, NULL));
	cr_expect_eq(strtol(is, NULL, 10), 3, "equal calls are one finding: %s", is);
	is = stack("./calls lookup", 67, "CS952", "sides");
	cr_expect_str_eq(strchrnul(is, ' '), at("lookup", NULL, NULL));
	expect("--report-api-errors=no ./calls ignored", 67, "0 warnings");
	expect("--print-level=info ./calls answers", 66, "CS903");
	cr_expect_not(has(output, "CS95"), "%s", output);
}
