/* inject: the library that --backend=gpu brings into a program, with a fake driver
 * (tests/gpu/fake_driver.c): contexts and modules are created and destroyed, and the environment
 * has faults. The program continues in all cases, and the report names what was not done. */
#include "tests/common/fake_gpu.h"
#include "tests/common/limits.h"
#include "tests/common/skip.h"
#include "libconsan/origin/origin.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Global memory is recorded if the options say so. env: arguments of `env`; options: of consan-run;
 * driver: the driver's folder; args: the program's arguments. */
static int driven(const char *env, const char *options, const char *driver, const char *args)
{
	const char *dir = build_dir();

	needs_gpu_mode();
	return shell("%s %s %s/consan-run --backend=gpu --gpu-global=no "
		"--no-source --print-level=info %s %s/tests/gpu/driver_client %s 2>&1",
		fake_gpu(driver), env, dir, options, dir, args);
}

static unsigned times(const char *what)
{
	unsigned n = 0;

	for (const char *at = output; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* Lines may be folded: any white space matches a blank. */
static bool says(const char *what)
{
	static char flat[sizeof output];
	size_t n = 0;

	for (const char *at = output; *at; at++)
		if (!strchr(" \n", *at))
			flat[n++] = *at;
		else if (n && flat[n - 1] != ' ')
			flat[n++] = ' ';
	flat[n] = 0;
	return strstr(flat, what);
}

#define SAYS(what) cr_expect(says(what), "no \"%s\" in:\n%s", what, output)
#define RUNS(status, ...) cr_expect_eq(driven(__VA_ARGS__), status, "%s", output)

/* A launch that the driver refuses is a finding of the host, and its kernel is not checked. */
Test(inject, refused_launch, .timeout = TEST_LIMIT)
{
	RUNS(67, "", "", "driver", "refused");
	SAYS("refused: 1");
	SAYS("warning CS951 launch refused");
	SAYS("at cuLaunchKernel by the host");
	SAYS("driver_client.c:");
	SAYS(" in refused ");
	RUNS(67, "", "--report-api-errors=no", "driver", "refused");
	cr_expect_not(says("CS951"), "%s", output);
}

/* Lines of the host in a program without .debug_aranges, as clang compiles it. */
Test(inject, lines_without_aranges, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();

	needs_gpu_mode();
	cr_assert_eq(shell("objcopy -R .debug_aranges %s/tests/gpu/driver_client %s/tests/gpu/no_aranges 2>&1", dir, dir), 0,
		"%s", output);
	cr_expect_eq(shell("%s %s/consan-run --backend=gpu --gpu-global=no %s/tests/gpu/no_aranges refused 2>&1",
		fake_gpu("driver"), dir, dir), 67, "%s", output);
	SAYS("driver_client.c:");
	SAYS(" in refused ");
}

/* The other calls that fail, as on the CPU. */
Test(inject, failed_calls, .timeout = TEST_LIMIT)
{
	RUNS(67, "", "", "driver", "lookup");
	SAYS("warning CS952 kernel or variable not found");
	SAYS("at cuModuleGetFunction by the host");
	SAYS(" in lookup ");
	SAYS("it was not found");
	RUNS(67, "", "", "driver", "no-code");
	SAYS("warning CS952");
	SAYS("at cudaLaunchKernel by the host");
	cr_expect_eq(times("CS952  "), 1, "%s", output);
	cr_expect_not(says("cuModuleGetFunction"), "%s", output);
	driven("", "--allow-unchecked", "driver", "failed");
	SAYS("note CS953");
	SAYS("at cuMemAlloc by the host");
	driven("", "--allow-unchecked", "driver", "failed-runtime");
	SAYS("at cudaMalloc by the host");
	cr_expect_eq(times("CS953  "), 1, "%s", output);
	RUNS(67, "", "", "driver", "ignored");
	SAYS("warning CS951 launch refused");
	SAYS("at cudaLaunchKernel by the host");
	SAYS("no later call of cudaGetLastError() asked for this error");
	RUNS(67, "", "", "driver", "asked");
	SAYS("warning CS951");
	cr_expect_not(says("no later call"), "%s", output);
	driven("", "--report-api-errors=no", "driver", "ignored");
	cr_expect_not(says("CS95"), "%s", output);
}

/* Each context has one pool, which it keeps; the second context of a device has a smaller one. A
 * second stream makes room for launches that do not end: 3/32 of the pool. Two devices share a counter, which
 * has 2 MiB. */
Test(inject, contexts, .timeout = TEST_LIMIT)
{
	RUNS(0, "", "", "driver", "two");
	cr_expect_eq(times("in context 0: 1022 MiB, 1580 MiB in use"), 2, "%s", output);
	cr_expect_eq(times("in context 1: 181 MiB, 1580 MiB in use"), 4, "%s", output);
	SAYS("7 7 7");
	SAYS("driver_client on fake GPU 0 ");
	RUNS(0, "DRIVER_DEVICES=2", "", "driver", "two");
	cr_expect_eq(times("in context 0: 1022 MiB, 2190 MiB in use"), 2, "%s", output);
	cr_expect_eq(times("in context 1: 732 MiB, 2190 MiB in use"), 4, "%s", output);
}

/* A new object may have the handle of a destroyed one. No records are lost. */
Test(inject, reused_handles, .timeout = TEST_LIMIT)
{
	static const char *const mode[] = { "again", "reset", "release", "unload", "unload-library" };

	for (size_t k = 0; k < sizeof mode / sizeof *mode; k++) {
		RUNS(0, "", "", "driver", mode[k]);
		cr_expect_eq(times("in context 0: 1022 MiB, 1156 MiB in use"), 4, "%s: %s", mode[k], output);
		SAYS("1 of 1 kernel checked");
	}
}

/* Each allocation has a guard region, which the program does not see and which does not make
 * an allocation fail. */
Test(inject, guards, .timeout = TEST_LIMIT)
{
	static const char *const options[] = { "", "--gpu-global" };

	for (size_t k = 0; k < 2; k++) {
		RUNS(67, "", options[k], "driver", "sizes");
		SAYS("plain: 4000 4000 managed: 6000 6000 async: 5000 5000 pitched: 3072 3072 "
			"nothing: 1, too much: 2");
		cr_expect_eq(says("guards: yes"), k == 1);
		SAYS("left: 0");
	}
}

Test(inject, environment, .timeout = TEST_LIMIT)
{
	char args[4096];

	RUNS(67, "", "", "old", "one");
	SAYS("the CUDA driver is too old for --backend=gpu, so nothing is checked");
	RUNS(67, "DRIVER_CUPTI=39", "", "driver", "one");
	SAYS("another tool in this process uses it, so nothing is checked");
	RUNS(67, "CONSAN_CUPTI=/nowhere.so", "", "driver", "one");
	SAYS("/nowhere.so");
	SAYS("so nothing is checked");
	RUNS(1, "DRIVER_DEVICES=0", "", "driver", "one");
	SAYS("cuInit(0): error 100");
	SAYS("no kernel was launched");
	RUNS(0, "CUDA_INJECTION64_PATH=/other/tool.so", "", "driver", "one");
	SAYS("/other/tool.so is not loaded");
	SAYS("1 of 1 kernel checked");
	/* PTX for a newer GPU */
	RUNS(1, "DRIVER_SM=80", "", "driver", "one");
	SAYS("error 218");
	snprintf(args, sizeof args, "container %s/tests/gpu/sm_90a.fatbin", build_dir());
	RUNS(67, "DRIVER_SM=80", "", "driver", args);
	SAYS("no PTX for sm_80 (it holds compute_90a)");
	SAYS("loaded: 218");
}

/* A kernel without PTX runs unrecorded. Those of a library may be outside of the check; here the
 * program has the name of one. */
Test(inject, library_kernels, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();

	RUNS(67, "", "", "driver", "cubin");
	SAYS("NOT CHECKED: its module holds no PTX");
	RUNS(67, "", "--library-kernels=ignore", "driver", "cubin");
	cr_assert_eq(shell("cp %s/tests/gpu/driver_client %s/tests/gpu/libcublas_client", dir, dir), 0);
	for (unsigned ignored = 0; ignored < 2; ignored++)
		cr_expect_eq(shell("%s %s/consan-run --backend=gpu %s "
			"%s/tests/gpu/libcublas_client cubin 2>&1", fake_gpu("driver"), dir,
			ignored ? "--library-kernels=ignore" : "", dir), ignored ? 0 : 67, "%s", output);
}

/* A cubin whose PTX is in the store is instrumented. */
Test(inject, remembered, .timeout = TEST_LIMIT)
{
	static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.entry kernel()\n{\nret;\n}\n";
	const Elf64_Ehdr cubin = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 }, .e_machine = EM_CUDA,
		.e_shentsize = sizeof(Elf64_Shdr) };
	char path[5100], args[5200], dir[5000];
	FILE *f;

	snprintf(dir, sizeof dir, "%.4000s/tests/gpu/store", build_dir());
	snprintf(path, sizeof path, "%s/cubin", dir);
	cr_assert_eq(shell("rm -rf %s && mkdir -p %s", dir, dir), 0);
	f = fopen(path, "wb");
	cr_assert(f && fwrite(&cubin, sizeof cubin, 1, f) == 1 && !fclose(f));
	snprintf(args, sizeof args, "container %s", path);
	snprintf(path, sizeof path, "--code-cache=%s", dir);
	driven("", path, "driver", args);
	SAYS("machine code only");
	setenv(ORIGIN_ENV, dir, 1);
	origin_put(&cubin, sizeof cubin, ptx, strlen(ptx));
	driven("", path, "driver", args);
	SAYS("loaded: 0");
	cr_expect_not(says("machine code only"), "%s", output);
}

/* From CUPTI's activity records; those of our own kernels are counted apart. */
Test(inject, gpu_times, .timeout = TEST_LIMIT)
{
	RUNS(0, "", "", "driver", "one");
	cr_expect(!says("GPU's clock") && !says("on the GPU"), "%s", output);
	RUNS(0, "", "--gpu-times", "driver", "one");
	SAYS("by the GPU's clock: kernel 1.000 ms, ours ");
	SAYS("; a thread has 42 registers, 16 bytes of local memory");
	cr_expect(!says("ours 0.000 ms"), "%s", output);
	SAYS("1.000 ms on the GPU with recording, in 1 launch ");
	RUNS(0, "", "--gpu-times", "driver", "two");
	cr_expect_eq(times("clock: kernel 1.000 ms, ours "), 7, "%s", output);
	SAYS("7.000 ms on the GPU with recording, in 7 launches ");
	RUNS(0, "DRIVER_ACTIVITY=35", "--gpu-times", "driver", "two");
	cr_expect_eq(times("cannot record how long kernels run (CUPTI_ERROR_OF_A_TEST)"), 1, "%s", output);
	cr_expect_eq(times("times of kernel: prepare"), 7, "%s", output);
	cr_expect(!says("on the GPU with recording"), "%s", output);
}

Test(inject, little_memory, .timeout = TEST_LIMIT)
{
	RUNS(0, "DRIVER_MIB=80", "", "driver", "one");
	SAYS("records have 20 MiB of device memory, as there was no more");
	SAYS("1 of 1 kernel checked");
	RUNS(67, "DRIVER_MIB=20", "", "driver", "one");
	SAYS("NOT CHECKED: no device memory for its records");
	SAYS("waited: 0");
	RUNS(0, "", "--gpu-memory=1", "driver", "one");
	SAYS("--gpu-memory: 16 to 61440 MiB are of use");
	SAYS("1 of 1 kernel checked");
	RUNS(0, "", "--gpu-memory=17", "driver", "one");
	cr_expect(times("17 MiB, 146 MiB in use") == 1 && !says("no more"), "%s", output);
	RUNS(0, "DRIVER_MIB=100", "--gpu-memory=4000", "driver", "one");
	SAYS("as there was no more");
	SAYS("1 of 1 kernel checked");
}

Test(inject, program_behaviour, .timeout = TEST_LIMIT)
{
	RUNS(67, "DRIVER_FAULT=1", "", "driver", "one");
	SAYS("waited: 700");
	SAYS("NOT CHECKED: the GPU reported CUDA_ERROR_ILLEGAL_ADDRESS in this launch, and its records "
		"could not be saved");
	RUNS(67, "", "", "driver", "grid");
	SAYS("NOT CHECKED: launched by cuLaunchGrid, which --backend=gpu does not support");
	/* a fork without exec: the launches of the child are its own */
	RUNS(0, "", "", "driver", "forks");
	SAYS("child: 0");
	SAYS("kernel 2 2 2");
}

/* 80 MB of records with a pool of 16 MB. */
Test(inject, drained, .timeout = TEST_LIMIT)
{
	static const char small[] = "--gpu-memory=16 --gpu-times",
		drain[] = "--gpu-drain --gpu-memory=16 --gpu-times",
		hangs[] = "--gpu-drain --gpu-memory=16 --gpu-times --timeout=1",
		hopeless[] = "--gpu-drain --gpu-memory=16 --gpu-host-memory=4 --timeout=1";

	RUNS(67, "DRIVER_CHUNKS=20000", small, "driver", "one");
	SAYS("so that 1 of 1 clusters were not checked; --gpu-memory gives more, --gpu-drain empties it");
	RUNS(0, "DRIVER_CHUNKS=20000", drain, "driver", "one");
	SAYS("seen 80,000 occurrences, 1 cluster");
	SAYS("(80000 KiB of 80000; ");
	cr_expect(says(" KiB while it ran; ") && !says(" 0 KiB while it ran; "), "%s", output);
	/* less than the pool holds: as without the option */
	RUNS(0, "DRIVER_CHUNKS=2000", drain, "driver", "one");
	SAYS("seen 8,000 occurrences, 1 cluster");
	cr_expect(!says("while it ran"), "%s", output);
	/* each launch of a graph's kernels, and each context */
	RUNS(0, "DRIVER_CHUNKS=6000", drain, "driver", "graph run");
	cr_expect_eq(times(" KiB while it ran; "), 4, "%s", output);
	RUNS(0, "DRIVER_CHUNKS=6000", drain, "driver", "two");
	cr_expect_eq(times(" KiB while it ran; "), 7, "%s", output);
	RUNS(66, "DRIVER_CHUNKS=20000 DRIVER_END=hang", hangs, "driver", "one");
	SAYS("still ran after --timeout=1 seconds");
	SAYS("seen 80,000 occurrences, 1 cluster");
	/* for a cluster that lacks records only a hang is reported */
	RUNS(66, "DRIVER_CHUNKS=20000 DRIVER_END=hang", hopeless, "driver", "one");
	SAYS("KiB of records that were drained while the kernel ran did not fit into the host's memory, "
		"so that 1 of 1 clusters were not checked; --gpu-host-memory gives more");
	SAYS("SUMMARY consan: 1 error, 0 warnings, 0 notes (CS705); 0 of 1 kernel checked");
	RUNS(67, "DRIVER_CHUNKS=20000 DRIVER_END=fault", drain, "driver", "one");
	SAYS("waited: 700");
	SAYS("and its records could not be saved");
}

/* The kernels of two launches of a graph; why: the reason why they are not recorded; NULL:
 * they are. */
static const struct { const char *env, *mode, *first, *second, *why; } graph_row[] = {
	{ "", "run", "kernel other end", "kernel other end", NULL },
	{ "", "kernel", "kernel other end", "kernel kernel end", NULL },
	{ "", "off", "kernel other end", "kernel end", NULL },
	{ "", "update", "kernel other end", "kernel kernel end", NULL },
	{ "", "again", "kernel other end", "other other end", NULL },
	{ "", "reset", "kernel other end", "kernel other end", NULL },
	{ "", "memory", "kernel other end", "kernel other end", "it allocates memory" },
	{ "", "device", "kernel other end", "kernel other end", "kernels may launch it" },
	{ "DRIVER_EMPTY=801", "run", "kernel other end", "kernel other end",
		"the driver cannot launch an empty graph" },
	{ "DRIVER_CLONE=801", "run", "kernel other end", "kernel other end",
		"the driver cannot clone it (CUDA_ERROR)" },
};
/* The same from the second launch on. */
static const struct { const char *mode, *why; } lost_row[] = {
	{ "child", "changed by cuGraphExecChildGraphNodeSetParams" },
	{ "off-update", "nodes of it were disabled before cuGraphExecUpdate" },
};

/* The program's lines, which are the name of a kernel and what it found, joined to one. */
static const char *ran(bool *recorded)
{
	static char all[1000];
	size_t n = 0;
	unsigned without = 0;

	for (char *at = output, *end; (end = strchr(at, '\n')); at = end + 1) {
		const char *in = memmem(at, (size_t)(end - at), " in context", 11);

		if (!in && strncmp(at, "end\n", 4))
			continue;
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%.*s", n ? " " : "",
			(int)((in ? in : end) - at), at);
		without += in && memmem(at, (size_t)(end - at), ": 0 MiB", 7);
	}
	all[n] = 0;
	*recorded = !without;
	return all;
}

Test(inject, graphs, .timeout = TEST_LIMIT)
{
	char args[64], want[200];
	bool recorded;

	for (size_t k = 0; k < sizeof graph_row / sizeof *graph_row; k++) {
		snprintf(args, sizeof args, "graph %s", graph_row[k].mode);
		snprintf(want, sizeof want, "%s %s", graph_row[k].first, graph_row[k].second);
		RUNS(graph_row[k].why ? 67 : 0, graph_row[k].env, "", "driver", args);
		cr_expect_str_eq(ran(&recorded), want, "%s: %s", args, output);
		cr_expect_eq(recorded, !graph_row[k].why, "%s: %s", args, output);
		if (graph_row[k].why)
			SAYS(graph_row[k].why);
	}
	for (size_t k = 0; k < sizeof lost_row / sizeof *lost_row; k++) {
		snprintf(args, sizeof args, "graph %s", lost_row[k].mode);
		RUNS(67, "", "", "driver", args);
		SAYS(lost_row[k].why);
		ran(&recorded);
		cr_expect_not(recorded, "%s: %s", args, output);
	}
}

/* No driver at all: the program is not run. */
Test(inject, no_driver, .timeout = TEST_LIMIT)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY);

	if (driver) {
		cr_skip("there is a driver on this machine");
		return;
	}
	cr_expect_eq(shell("unset BXFI_MAP; %s/consan-run --backend=gpu echo it ran 2>&1",
		build_dir()), 64, "%s", output);
	SAYS("--backend=gpu: no NVIDIA driver");
	cr_expect_not(strstr(output, "it ran"));
}

/* A driver that the program does not use. */
Test(inject, unused_driver, .timeout = TEST_LIMIT)
{
	cr_expect_eq(shell("unset BXFI_MAP; LD_LIBRARY_PATH=%s/tests/gpu/driver %s/consan-run "
		"--backend=gpu true 2>&1", build_dir(), build_dir()), 67, "%s", output);
	SAYS("/true never used the NVIDIA driver");
}

/* How often an assembler ran, which copies its input and prints the kernel that it has. */
static unsigned assembled(const char *mode)
{
	static const char script[] = "#!/bin/sh\ncase $1 in --version) echo release 13.0;; *) grep -o 'entry _Z[a-zA-Z0-9]*' "
		"/proc/self/fd/3 >>$0.log; cat /proc/self/fd/3 >/proc/self/fd/4;; esac\n";
	const char *dir = build_dir();
	char path[5000];
	FILE *f;

	snprintf(path, sizeof path, "%.4000s/tests/gpu/ptxas", dir);
	f = fopen(path, "w");
	cr_assert(f && fputs(script, f) >= 0 && !fclose(f));
	cr_assert_eq(shell("chmod +x %s && : >%s.log", path, path), 0);
	cr_expect_eq(shell("%s CONSAN_PTXAS=%s %s/consan-run --backend=gpu --code-cache=none --allow-unchecked "
		"%s/tests/gpu/early_client %s 2>&1", fake_gpu("driver"), path, dir, dir, mode), 0, "%s", output);
	shell("cat %s.log", path);
	return times("_Z3setPi");
}

/* Kernels of the program's own file are assembled from cuInit() on, each once. */
Test(inject, early, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();
	char mode[9000];

	needs_gpu_mode();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP_TEST("there is one processor, so nothing is assembled ahead");
	snprintf(mode, sizeof mode, "await-file %.4000s/tests/gpu/ptxas.log", dir);
	cr_expect_eq(assembled(mode), 1, "it loads no module:\n%s", output);
	snprintf(mode, sizeof mode, "container-and-file %.4000s/tests/gpu/arch.fatbin %.4000s/tests/gpu/ptxas.log", dir, dir);
	cr_expect_eq(assembled(mode), 1, "it loads this one:\n%s", output);
}

/* Kernels are assembled without a GPU, and the store has them. */
Test(inject, prepare, .timeout = TEST_LIMIT)
{
	const char *dir = build_dir();
	const char *const run = "%s/consan-run --gpu-prepare --code-cache=/tmp/consan-prepare-%d %s "
		"%s/tests/gpu/sm_90a.fatbin 2>&1";
	const int id = (int)getpid();

	if (shell("test -e %s/libconsan-gpu.so", dir))
		SKIP_TEST("consan was built without CUPTI");
	if (!shell(run, dir, id, "--arch=sm_90a", dir))
		cr_expect(!shell("ls /tmp/consan-prepare-%d/*.code.zst", id), "%s", output);
	else
		SAYS("neither ptxas nor libnvJitLink.so was found");
	cr_expect_eq(shell(run, dir, id, "--arch=sm_80", dir), 70);
	cr_expect(says("no PTX for this GPU") || says("neither ptxas nor libnvJitLink.so was found"), "%s", output);
	/* what is wrong with a file is printed, as that an image claims to be of 0x7f000000 bytes */
	cr_expect_eq(shell("cp %s/tests/gpu/sm_90a.fatbin /tmp/consan-prepare-%d/f && "
		"printf '\\0\\0\\0\\177' | dd of=/tmp/consan-prepare-%d/f bs=1 seek=72 conv=notrunc 2>&1", dir, id, id), 0,
		"%s", output);
	cr_expect_eq(shell("%s/consan-run --gpu-prepare --code-cache=/tmp/consan-prepare-%d --arch=sm_90a "
		"/tmp/consan-prepare-%d/f 2>&1", dir, id, id), 70, "%s", output);
	cr_expect(says("claims to unpack to 2130706432") || says("neither ptxas nor libnvJitLink.so was found"), "%s", output);
	shell("rm -rf /tmp/consan-prepare-%d", id);
}
