/* fake_gpu: commands that use the fake driver (tests/gpu/fake_driver.c), for tests of GPU mode.
 * Header-only. */
#ifndef CONSAN_TESTS_FAKE_GPU_H
#define CONSAN_TESTS_FAKE_GPU_H

#include "tests/common/shell.h"
#include "tests/common/skip.h"

#include <criterion/criterion.h>

/* Skips the test if there is no GPU mode. */
static inline void needs_gpu_mode(void)
{
	if (shell("test -e %s/libconsan-gpu.so", build_dir()))
		SKIP_TEST("consan was built without CUPTI");
}

/* The begin of a shell command, before further variables: `env' with the fake driver. It assembles, as
 * it does not run what ptxas makes. folder: of the driver, "driver" or "old". Valid until the next call.
 * Criterion's BXFI_MAP would make consan-run a test. */
static inline const char *fake_gpu(const char *folder)
{
	static char at[9000];
	const char *dir = build_dir();

	snprintf(at, sizeof at, "unset BXFI_MAP; env LD_LIBRARY_PATH=%s/tests/gpu/%s CONSAN_PTXAS=/nowhere "
		"CONSAN_NVJITLINK=/nowhere CONSAN_CUPTI=%s/tests/gpu/driver/libcuda.so.1", dir, folder, dir);
	return at;
}

#endif
