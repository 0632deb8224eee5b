/* Tests of cuda: arrays, texture and surface objects (tests/cuda/textures.cu). */
#include "tests/common/ended.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>

/* Asserts the exit status of `consan-run words`, and a part of the output unless it is NULL. */
static void expect(const char *words, int status, const char *piece)
{
	int is = shell("cd %s/tests/cuda && " LIMITED "../../consan-run %s 2>&1", build_dir(), words);

	expect_ended(words, is, status, piece);
}

/* The programs compare what they read with the formulas of the CUDA C++ Programming Guide. */
Test(textures, values)
{
	expect("./textures fetches", 0, "13 of 13 kernels checked");
	expect("./textures more", 0, "0 errors");
	expect("--backend=gpu-emulated ./textures fetches", 0, "13 of 13 kernels checked");
}

Test(textures, of_the_same_kernel)
{
	expect("./textures written", 66, "CS125");
	expect("./textures written-elsewhere", 0, "1 of 1 kernel checked");
	expect("--backend=gpu-emulated ./textures written", 0, "to global memory are not checked");
	expect("--backend=gpu-emulated --gpu-global=no ./textures written", 0, "1 of 1 kernel checked");
	expect("--backend=gpu-emulated --gpu-global ./textures written", 67,
		"access to textures and surfaces is not recorded");
}

Test(textures, of_several_operations)
{
	expect("./textures streams", 66, "CS1002");
	expect("./textures streams-ordered", 0, "1 of 1 kernel checked");
	expect("./textures level", 66, "CS1002");
	expect("./textures level-ordered", 0, "2 of 2 kernels checked");
	expect("./textures level-above", 0, "2 of 2 kernels checked");
	expect("./textures reduced", 66, "CS1002");
	expect("./textures reduced-ordered", 0, "2 of 2 kernels checked");
	expect("./textures box", 66, "CS1002");
	expect("./textures box-ordered", 0, "1 of 1 kernel checked");
}

Test(textures, refused)
{
	expect("./textures destroyed", 66, "CS910");
	expect("./textures refused", 67, "sparse arrays");
	cr_assert(has(output, "conversion from sRGB is documented for bytes"), "%s", output);
	cr_assert(has(output, "texels of another size") && has(output, "block-compressed data"), "%s", output);
	expect("./textures freed-twice", 67, "no kernel was launched");
}
