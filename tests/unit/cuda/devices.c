/* Tests of cuda: programs that use several devices (tests/cuda/devices.cu) behave as on GPUs. */
#include "tests/common/ended.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>

/* Asserts the exit status of `consan-run words`, and a part of the output unless it is NULL. */
static void expect(const char *words, int status, const char *piece)
{
	int is = shell("cd %s/tests/cuda && env -u CUDA_VISIBLE_DEVICES " LIMITED "../../consan-run %s 2>&1",
		build_dir(), words);

	expect_ended(words, is, status, piece);
}

Test(devices, several)
{
	expect("--allow-unchecked ./devices numbers", 0, NULL);
	expect("--allow-unchecked --devices=4 env DEVICES=4 ./devices numbers", 0, NULL);
	expect("--allow-unchecked env CUDA_VISIBLE_DEVICES=1,0,3 ./devices numbers", 0, NULL);
	expect("--allow-unchecked --devices=8 env CUDA_VISIBLE_DEVICES=1,0,3 DEVICES=3 ./devices numbers", 0,
		NULL);
	expect("--devices=0 ./devices numbers", 64, "--devices=0: can be 1 to 16");
	expect("--devices=17 ./devices numbers", 64, "--devices=17: can be 1 to 16");
	expect("--allow-unchecked ./devices contexts", 0, NULL);
	expect("./devices streams", 0, "1 of 1 kernel checked");
	expect("./devices wrong-stream", 67, "the stream is of device 0, but device 1 is current");
}

Test(devices, memory)
{
	expect("--allow-unchecked ./devices variables", 0, "0 errors");
	expect("./devices peers", 0, "0 errors");
	expect("./devices everywhere", 0, "0 errors");
	expect("./devices pool-access", 0, "0 errors");
	expect("--backend=gpu-emulated ./devices peers", 0, "0 errors");
}

Test(devices, no_access)
{
	expect("./devices no-peer", 66, "memory of device 0, to which device 1 has no access");
	cr_assert(has(output, "CS908") && has(output, "1 error"), "%s", output);
	expect("--error-exitcode=0 ./devices no-peer", 67, NULL);
	expect("./devices pool-no-access", 66, "CS908");
}

Test(devices, driver_begins)
{
	expect("--allow-unchecked ./devices driver-begins", 0, NULL);
}

Test(devices, virtual_memory)
{
	expect("./devices mapping", 0, "0 errors");
	expect("./devices mapping-without-access", 66, "memory of device 0, to which device 0 has no access");
}

Test(devices, multicast)
{
	expect("./devices multicast", 0, "2 of 2 kernels checked");
	expect("./devices multicast-plain", 66, "only multimem instructions may access multicast addresses");
	cr_assert(has(output, "CS909"), "%s", output);
	expect("./devices multicast-unbound", 66, "not each of the 2 devices has bound memory there");
	expect("--backend=gpu-emulated ./devices multicast", 0, "to global memory are not checked");
	expect("--backend=gpu-emulated --gpu-drain ./devices multicast", 0, "with --gpu-drain unless");
	expect("--backend=gpu-emulated --gpu-global ./devices multicast", 67, "multicast memory is not recorded");
}

Test(devices, green_contexts)
{
	expect("./devices green", 0, "0 errors, 0 warnings");
	expect("./devices green-racy", 66, "CS1001");
}

Test(devices, processes, .timeout = TEST_LIMIT)
{
	expect("--allow-unchecked ./devices forged", 0, NULL);
	expect("--allow-unchecked ./devices killed", 0, NULL);
	expect("./devices ipc", 0, "memory is shared with another process");
	expect("./devices piped", 0, "0 errors, 0 warnings");
	expect("./devices piped-copy", 0, "0 errors, 0 warnings");
	expect("./devices piped-racy", 66, "of process");
	cr_assert(has(output, "CS1001") || has(output, "CS1002"), "%s", output);
	expect("./devices shared", 0, "0 errors");
	expect("./devices piped-pool", 0, "0 errors, 0 warnings");
	expect("./devices piped-pool-racy", 66, "of process");
	expect("./devices piped-mapping", 0, "0 errors, 0 warnings");
	expect("./devices piped-mapping-racy", 66, "of process");
}

/* A release at scope gpu is none for a thread of another device. */
Test(devices, scopes)
{
	expect("./devices signal-sys", 0, "0 errors");
	expect("./devices fences-sys", 0, "0 errors, 0 warnings");
	expect("./devices fences-gpu", 66, "CS1002");
	expect("./devices signal-gpu", 66, "CS222");
	cr_assert(has(output, "threads of two devices need .sys scope"), "%s", output);
}

Test(devices, bulk_reductions)
{
	expect("./devices reductions", 0, "0 errors");
	expect("./devices reductions-racy", 66, "orders the bulk reduction of the one and the bulk reduction of");
	cr_assert(has(output, "CS1001") && !has(output, "CS107"), "%s", output);
}

/* What a grid did is handed on by one behind it, which signals to a third one. */
Test(devices, signal_of_a_later_grid)
{
	expect("./devices relay-early", 0, "0 errors");
	expect("./devices relay-late", 0, "0 errors");
	expect("./devices relay-shapes", 0, "0 errors");
	expect("./devices relay-apart", 66, "CS1002");
}

/* Waits that read the clock let the other grid run at once. If there is none, their time passes. */
Test(devices, waits_with_a_time_limit)
{
	expect("./devices meeting", 0, "0 errors");
	expect("--seed=3 ./devices meeting", 0, "0 errors");
	expect("./devices meeting-alone", 0, "1 of 1 kernel checked");
	expect("--launch-blocking ./devices meeting-alone", 0, "1 of 1 kernel checked");
	expect("./devices endless", 66, "CS702");
	expect("./devices meeting-without-acquire", 66, "put __threadfence_system() (fence.acq_rel.sys) after");
	cr_assert(has(output, "CS117") && !has(output, "CS222"), "%s", output);
}

/* Every thread executes a fence; one thread writes the flag. Of another device that counts at system scope. */
Test(devices, fences_of_other_threads)
{
	expect("./devices meeting-gpu-release", 66, "threads of two devices need .sys scope");
	cr_assert(has(output, "CS222"), "%s", output);
	expect("./devices meeting-gpu-acquire", 66, "threads of two devices need .sys scope");
	cr_assert(has(output, "CS222"), "%s", output);
}
