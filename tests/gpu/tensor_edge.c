/* tensor_edge: which bytes a tensor store or reduction writes where its box reaches beyond the inner
 * edge of the tensor, which no manual says. A CUDA program that does not depend on consan: it prints
 * one line for each case, on a GPU what the hardware writes, under consan-run what the executor
 * writes. `make check-gpu` compares the two. */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, PITCH = 256, ALL = 4096, TILE = 8192 };
enum mode { TILED, INTERLEAVED_16, INTERLEAVED_32, IM2COL };

static const char *const mode_name[] = { "tiled", "interleave 16", "interleave 32", "im2col" };
static const struct { CUtensorMapDataType type; unsigned bytes; const char *name; } types[] = {
	{ CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, "u8" }, { CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, "f16" },
	{ CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, "u32" }, { CU_TENSOR_MAP_DATA_TYPE_UINT64, 8, "u64" },
};
static const unsigned swizzle_bytes[] = { 0, 32, 64, 128 };

static void must(CUresult error, const char *what)
{
	const char *name = NULL;

	if (!error)
		return;
	cuGetErrorName(error, &name);
	printf("tensor_edge: %s: %s\n", what, name ? name : "unknown error");
	exit(1);
}
#define MUST(call, ...) must(call(__VA_ARGS__), #call)

/* ---- the kernels: one thread stores the box at the origin ---- */

static const char head[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
static const char body[] =
	".visible .entry %s(.param .align 64 .b8 map[128])\n{\n"
	"	.reg .pred %%p<4>;\n	.reg .b32 %%r<8>;\n	.reg .b64 %%d<4>;\n"
	"	.shared .align 1024 .b8 tile[8192];\n"
	"	mov.b64 %%d1, map;\n	cvta.param.u64 %%d1, %%d1;\n"
	"	mov.u32 %%r1, %%tid.x;\n	setp.eq.u32 %%p1, %%r1, 0;\n	mov.u32 %%r2, tile;\n"
	"	shl.b32 %%r3, %%r1, 2;\n	add.u32 %%r3, %%r3, %%r2;\n	mov.u32 %%r4, %%r1;\n"
	"fill:\n	st.shared.u32 [%%r3], 0x01010101;\n	add.u32 %%r3, %%r3, 512;\n"
	"	add.u32 %%r4, %%r4, 128;\n	setp.lt.u32 %%p2, %%r4, 2048;\n	@%%p2 bra fill;\n"
	"	fence.proxy.async;\n	bar.sync 0;\n	mov.u32 %%r5, 0;\n	@!%%p1 bra done;\n"
	"	%s [%%d1, {%s}], [tile];\n"
	"	cp.async.bulk.commit_group;\n	cp.async.bulk.wait_group 0;\ndone:\n	ret;\n}\n";

static const struct { const char *name, *instruction, *at; } kernels[2][2][2] = {
	{ { { "store2", "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", "%r5, %r5" },
		{ "store3", "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group",
			"%r5, %r5, %r5" } },
	  { { "add2", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
			"%r5, %r5" },
		{ "add3", "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group",
			"%r5, %r5, %r5" } } },
	{ { { "", "", "" }, { "store_im2col",
		"cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group",
			"%r5, %r5, %r5" } },
	  { { "", "", "" }, { "add_im2col",
		"cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.im2col_no_offs.bulk_group",
			"%r5, %r5, %r5" } } },
};

static CUmodule load(void)
{
	static char text[16384];
	size_t n = (size_t)snprintf(text, sizeof text, "%s", head);
	CUmodule module;

	for (unsigned k = 0; k < 8; k++)
		if (*kernels[k / 4][k / 2 % 2][k % 2].name)
			n += (size_t)snprintf(text + n, sizeof text - n, body,
				kernels[k / 4][k / 2 % 2][k % 2].name,
				kernels[k / 4][k / 2 % 2][k % 2].instruction,
				kernels[k / 4][k / 2 % 2][k % 2].at);
	MUST(cuModuleLoadData, &module, text);
	return module;
}

/* ---- one case ---- */

struct edge_case { unsigned type, width, box, swizzle; enum mode mode; bool add; };

/* The tensor has ROWS - 1 rows, the box ROWS. False: the driver refuses the map. */
static bool encode(const struct edge_case *k, CUdeviceptr at, CUtensorMap *map)
{
	const unsigned rank = k->mode == TILED ? 2 : 3;
	const cuuint64_t dim[] = { k->width, ROWS - 1, 1 }, stride[] = { PITCH, PITCH * ROWS };
	const cuuint32_t box[] = { k->box, k->mode == IM2COL || k->mode == TILED ? ROWS : 1, 1 };
	const cuuint32_t step[] = { 1, 1, 1 };
	const int corner[] = { 0 };
	const CUtensorMapInterleave interleave = k->mode == INTERLEAVED_16
		? CU_TENSOR_MAP_INTERLEAVE_16B : k->mode == INTERLEAVED_32
		? CU_TENSOR_MAP_INTERLEAVE_32B : CU_TENSOR_MAP_INTERLEAVE_NONE;

	if (k->mode == IM2COL)
		return !cuTensorMapEncodeIm2col(map, types[k->type].type, rank, (void *)at, dim, stride,
			corner, corner, k->box, ROWS, step, interleave, (CUtensorMapSwizzle)k->swizzle,
			CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	return !cuTensorMapEncodeTiled(map, types[k->type].type, rank, (void *)at, dim, stride, box,
		step, interleave, (CUtensorMapSwizzle)k->swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* Prints the bytes that changed as ranges: "0-31 256-287". */
static void print_written(const unsigned char *at)
{
	for (unsigned i = 0; i < ALL; i++) {
		unsigned end = i;

		while (end < ALL && at[end])
			end++;
		if (end > i)
			printf(" %u-%u", i, end - 1);
		i = end > i ? end : i;
	}
	printf("\n");
}

static void run(const struct edge_case *k, CUmodule module, CUdeviceptr at)
{
	static unsigned char back[ALL];
	CUtensorMap map;
	void *args[] = { &map };
	CUfunction f;

	printf("%s %s %s width %u box %u swizzle %u:", k->add ? "add" : "store", mode_name[k->mode],
		types[k->type].name, k->width, k->box, swizzle_bytes[k->swizzle]);
	MUST(cuMemsetD8, at, 0, ALL);
	if (!encode(k, at, &map)) {
		printf(" no such map\n");
		return;
	}
	MUST(cuModuleGetFunction, &f, module,
		kernels[k->mode == IM2COL][k->add][k->mode != TILED].name);
	MUST(cuLaunchKernel, f, 1, 1, 1, 128, 1, 1, 0, NULL, args, NULL);
	MUST(cuCtxSynchronize);
	MUST(cuMemcpyDtoH, back, at, ALL);
	print_written(back);
}

int main(void)
{
	CUcontext context;
	CUdevice device;
	CUmodule module;
	CUdeviceptr at;

	MUST(cuInit, 0);
	MUST(cuDeviceGet, &device, 0);
	MUST(cuCtxCreate, &context, NULL, 0, device);
	MUST(cuMemAlloc, &at, ALL);
	module = load();
	for (unsigned n = 0; n < 2 * 4 * 4 * 4; n++) {
		struct edge_case k = { .type = n % 4, .swizzle = n / 4 % 4, .mode = (enum mode)(n / 16 % 4),
			.add = n / 64 };
		const unsigned bytes = types[k.type].bytes;

		if (k.add && bytes == 1)
			continue; /* there is no such reduction */
		/* a swizzled row is at most as long as the swizzle's span */
		k.box = (k.swizzle == 1 ? 32 : 64) / bytes;
		for (k.width = 1; k.width <= k.box; k.width += k.width < 20 || k.width + 7 > k.box ? 1 : 7)
			run(&k, module, at);
	}
	return 0;
}
