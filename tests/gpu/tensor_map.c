/* tensor_map: the 128 bytes of tensor maps, which no manual describes. A CUDA program that does not
 * depend on consan: it prints one line for each case, on a GPU what the driver encodes and what
 * tensormap.replace changes, under consan-run what consan makes of the same. `make check-gpu`
 * compares the two. A map is printed as 32 words in hexadecimal notation, without trailing zeros. */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 5, WORDS = 32 };
enum mode { TILED, IM2COL, WIDE, WIDE_128, MODES };

/* What this GPU has: wide maps, types below 8 bits and swizzles of larger atoms from sm_100 on. */
static unsigned modes = WIDE, types = 13, swizzles = 4;

static const char *const mode_name[] = { "tiled", "im2col", "w", "w128" };
static const unsigned bits_of[] = { 8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6 };

static void must(CUresult error, const char *what)
{
	const char *name = NULL;

	if (!error)
		return;
	cuGetErrorName(error, &name);
	printf("tensor_map: %s: %s\n", what, name ? name : "unknown error");
	exit(1);
}
#define MUST(call, ...) must(call(__VA_ARGS__), #call)

/* ---- encoding ---- */

struct map_args {
	enum mode mode;
	unsigned type, rank, channels, pixels, interleave, swizzle, l2, fill;
	cuuint64_t address, dim[RANKS], stride[RANKS - 1];
	cuuint32_t box[RANKS], step[RANKS];
	int lower[3], upper[3];
};

static CUresult encode(const struct map_args *a, CUtensorMap *map)
{
	void *at = (void *)a->address;

	memset(map, 0, sizeof *map);
	if (a->mode == TILED)
		return cuTensorMapEncodeTiled(map, (CUtensorMapDataType)a->type, a->rank, at, a->dim,
			a->stride, a->box, a->step, (CUtensorMapInterleave)a->interleave,
			(CUtensorMapSwizzle)a->swizzle, (CUtensorMapL2promotion)a->l2,
			(CUtensorMapFloatOOBfill)a->fill);
	if (a->mode == IM2COL)
		return cuTensorMapEncodeIm2col(map, (CUtensorMapDataType)a->type, a->rank, at, a->dim,
			a->stride, a->lower, a->upper, a->channels, a->pixels, a->step,
			(CUtensorMapInterleave)a->interleave, (CUtensorMapSwizzle)a->swizzle,
			(CUtensorMapL2promotion)a->l2, (CUtensorMapFloatOOBfill)a->fill);
	return cuTensorMapEncodeIm2colWide(map, (CUtensorMapDataType)a->type, a->rank, at, a->dim,
		a->stride, *a->lower, *a->upper, a->channels, a->pixels, a->step,
		(CUtensorMapInterleave)a->interleave, (CUtensorMapIm2ColWideMode)(a->mode - WIDE),
		(CUtensorMapSwizzle)a->swizzle, (CUtensorMapL2promotion)a->l2,
		(CUtensorMapFloatOOBfill)a->fill);
}

static void print_list(const char *name, const cuuint64_t *at, unsigned n)
{
	printf(" %s=", name);
	for (unsigned k = 0; k < n; k++)
		printf("%s%llu", k ? "," : "", (unsigned long long)at[k]);
}

static void print_list32(const char *name, const void *at, unsigned n)
{
	printf(" %s=", name);
	for (unsigned k = 0; k < n; k++)
		printf("%s%d", k ? "," : "", ((const int *)at)[k]);
}

static void print_map(const void *map)
{
	unsigned word[WORDS], n = WORDS;

	memcpy(word, map, sizeof word);
	while (n && !word[n - 1])
		n--;
	for (unsigned k = 0; k < n; k++)
		printf(" %x", word[k]);
	printf("\n");
}

static void print_case(const struct map_args *a)
{
	CUtensorMap map;
	const CUresult error = encode(a, &map);

	printf("%s type=%u rank=%u at=%llx", mode_name[a->mode], a->type, a->rank,
		(unsigned long long)a->address);
	print_list("dim", a->dim, a->rank);
	print_list("stride", a->stride, a->rank - 1);
	print_list32("step", a->step, a->rank);
	if (a->mode == TILED) {
		print_list32("box", a->box, a->rank);
	} else {
		print_list32("lower", a->lower, a->mode == IM2COL ? a->rank - 2 : 1);
		print_list32("upper", a->upper, a->mode == IM2COL ? a->rank - 2 : 1);
		printf(" channels=%u pixels=%u", a->channels, a->pixels);
	}
	printf(" interleave=%u swizzle=%u l2=%u fill=%u:", a->interleave, a->swizzle, a->l2, a->fill);
	if (error)
		printf(" error %d\n", (int)error);
	else
		print_map(&map);
}

/* ---- the cases: one argument changes at a time ---- */

static struct map_args base_case(enum mode mode, unsigned type, unsigned rank)
{
	struct map_args a = { .mode = mode, .type = type, .rank = rank, .address = 0x700000000,
		.channels = type >= 13 ? 128 : 16, .pixels = 64, .swizzle = mode >= WIDE ? 3 : 0,
		.dim = { 128, 64, 32, 16, 8 }, .box = { type >= 13 ? 128 : 16, 8, 4, 2, 1 },
		.step = { 1, 1, 1, 1, 1 }, .stride = { 1024, 1 << 16, 1 << 21, 1 << 25 },
		.upper = { 2, 2, 2 } };

	return a;
}

#define BITS(a, field, value, from, to) do { \
	for (unsigned bit_ = (from); bit_ < (to); bit_++) { \
		struct map_args b_ = *(a); \
		b_.field = (__typeof__(b_.field))(value); \
		print_case(&b_); \
	} \
} while (0)
#define BIT (1ull << bit_)

static void one_bit_at_a_time(const struct map_args *a)
{
	print_case(a);
	BITS(a, address, BIT, 0, 64);
	for (unsigned k = 0; k < a->rank; k++) {
		BITS(a, dim[k], BIT, 0, 34);
		BITS(a, dim[k], BIT + 1, 0, 33);
		BITS(a, step[k], bit_, 0, 10);
		if (k + 1 < a->rank)
			BITS(a, stride[k], BIT, 0, 42);
		if (a->mode == TILED) {
			BITS(a, box[k], BIT, 0, 10);
			BITS(a, box[k], BIT + 1, 0, 8);
		}
	}
	if (a->rank > 1)
		BITS(a, stride[0], 0, 0, 1);
}

static void corners(const struct map_args *a)
{
	for (unsigned k = 0; k < (a->mode == IM2COL ? a->rank - 2 : 1); k++) {
		BITS(a, lower[k], BIT, 0, 16);
		BITS(a, lower[k], -(long)BIT, 0, 17);
		BITS(a, upper[k], BIT, 0, 17);
		BITS(a, upper[k], -(long)BIT, 0, 17);
	}
	BITS(a, channels, 16 * bit_, 0, 18);
	BITS(a, channels, BIT, 0, 10);
	BITS(a, pixels, BIT, 0, 12);
	BITS(a, pixels, BIT + 1, 0, 11);
	BITS(a, pixels, 0, 0, 1);
}

static void enumerations(enum mode mode, unsigned rank)
{
	for (unsigned type = 0; type < types; type++) {
		struct map_args a = base_case(mode, type, rank);

		print_case(&a);
		BITS(&a, fill, bit_, 1, 3);
		a.fill = type >= 6 && type < 13;
		BITS(&a, swizzle, bit_, 0, swizzles);
		BITS(&a, interleave, bit_, 0, 4);
		BITS(&a, l2, bit_, 0, 5);
	}
	for (unsigned k = 0; k < 4 * 4 * swizzles; k++) {
		struct map_args a = base_case(mode, 6, rank);

		a.interleave = k % 4;
		a.l2 = k / 4 % 4;
		a.swizzle = k / 16;
		print_case(&a);
	}
	for (unsigned k = 1; k <= 32; k++) { /* rows of the box of up to 512 bytes */
		struct map_args a = base_case(mode, 6, rank);

		a.box[0] = a.channels = 8 * k;
		BITS(&a, swizzle, bit_, 0, swizzles);
	}
}

static unsigned long long state = 1;
static unsigned draw(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((state >> 33) % n);
}

/* Numbers of all magnitudes, up to 2^bits */
static unsigned long long magnitude(unsigned bits)
{
	const unsigned long long v = (unsigned long long)draw(1u << 30) << 30 | draw(1u << 30);

	return 1 + (v & ((1ull << draw(bits + 1)) - 1));
}

static void random_case(enum mode mode)
{
	static const unsigned corner[] = { 0, 0, 0, 16, 8, 5 };
	struct map_args a = base_case(mode, draw(types), 1 + draw(RANKS));
	unsigned inner;

	if (mode != TILED && a.rank < 3)
		a.rank = 3 + draw(3);
	a.address = magnitude(57) & ~31ull;
	for (unsigned k = 0; k < RANKS; k++) {
		a.dim[k] = magnitude(32);
		a.box[k] = 1 + draw(256);
		a.step[k] = 1 + draw(8);
		if (k + 1 < RANKS)
			a.stride[k] = magnitude(40) & ~31ull;
	}
	if (a.type >= 13)
		a.dim[0] = a.dim[0] % (1u << 24) * 128;
	a.swizzle = draw(swizzles);
	if (!draw(4))
		a.interleave = draw(3);
	inner = a.type >= 13 ? 128 : 128 / bits_of[a.type] * (1 + draw(draw(2) ? 2 : 8));
	a.box[0] = a.channels = inner > 256 ? 256 : inner;
	a.pixels = 1 + draw(1024);
	a.l2 = draw(4);
	a.fill = a.type >= 6 && a.type < 13 && draw(2);
	for (unsigned k = 0; k < 3; k++) {
		const unsigned n = mode >= WIDE ? 1u << 16 : 1u << corner[a.rank];

		a.lower[k] = (int)draw(n) - (int)n / 2;
		a.upper[k] = (int)draw(n) - (int)n / 2;
	}
	print_case(&a);
}

/* ---- tensormap.replace ---- */

static const char text[] =
	".version 8.8\n.target sm_90a\n.address_size 64\n"
	".visible .entry change(.param .u64 map, .param .u64 value)\n{\n"
	"	.reg .b64 %%d<4>;\n	.reg .b32 %%r<2>;\n"
	"	ld.param.u64 %%d1, [map];\n	ld.param.u64 %%d2, [value];\n"
	"	cvta.to.global.u64 %%d1, %%d1;\n	cvt.u32.u64 %%r1, %%d2;\n"
	"	tensormap.replace.tile.%s.global.b1024.%s [%%d1], %s;\n	ret;\n}\n";

static void replace(const char *field, const char *type, const char *operands,
	const unsigned long long *value, unsigned n)
{
	static char ptx[1024];
	CUdeviceptr at;
	CUfunction f;
	CUmodule module;
	CUresult error;

	snprintf(ptx, sizeof ptx, text, field, type, operands);
	MUST(cuModuleLoadData, &module, ptx);
	MUST(cuModuleGetFunction, &f, module, "change");
	MUST(cuMemAlloc, &at, 128);
	for (unsigned k = 0; k < 3 * n; k++) {
		static const char *const from[] = { "zeros", "ones", "map" };
		unsigned long long v = value[k / 3];
		struct map_args a = base_case(TILED, 6, 5);
		CUtensorMap map;
		void *args[] = { &at, &v };

		MUST(encode, &a, &map);
		if (k % 3 < 2)
			memset(&map, k % 3 ? 0xff : 0, sizeof map);
		MUST(cuMemcpyHtoD, at, &map, sizeof map);
		printf("replace %s %s %llx in %s:", field, operands, v, from[k % 3]);
		error = cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
		error = error ? error : cuCtxSynchronize();
		if (error) {
			printf(" error %d\n", (int)error);
			exit(0);
		}
		MUST(cuMemcpyDtoH, &map, at, sizeof map);
		print_map(&map);
	}
	MUST(cuMemFree, at);
	MUST(cuModuleUnload, module);
}

static void replacements(void)
{
	static const struct { const char *field, *type; unsigned ordinals, first, bits; } fields[] = {
		{ "global_address", "b64", 0, 0, 64 }, { "rank", "b32", 0, 0, 2 },
		{ "box_dim", "b32", 5, 1, 8 }, { "global_dim", "b32", 5, 1, 32 },
		{ "global_stride", "b64", 4, 0, 40 }, { "element_stride", "b32", 5, 1, 3 },
	}, constants[] = {
		{ "elemtype", "b32", 13, 0, 0 }, { "interleave_layout", "b32", 3, 0, 0 },
		{ "swizzle_mode", "b32", 4, 0, 0 }, { "fill_mode", "b32", 2, 0, 0 },
	};
	const unsigned long long zero = 0;
	unsigned long long value[64];
	char operands[32];

	for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++)
		for (unsigned k = 0; k < (fields[i].ordinals ? fields[i].ordinals : 1); k++) {
			const char *r = *fields[i].type == 'b' && fields[i].type[1] == '6' ? "%d2" : "%r1";

			if (fields[i].ordinals)
				snprintf(operands, sizeof operands, "%u, %s", k, r);
			else
				snprintf(operands, sizeof operands, "%s", r);
			for (unsigned b = 0; b < fields[i].bits; b++)
				value[b] = (1ull << b) - 1 + fields[i].first;
			replace(fields[i].field, fields[i].type, operands, value, fields[i].bits);
		}
	for (unsigned i = 0; i < sizeof constants / sizeof *constants; i++)
		for (unsigned k = 0; k < constants[i].ordinals; k++) {
			snprintf(operands, sizeof operands, "%u", k);
			replace(constants[i].field, constants[i].type, operands, &zero, 1);
		}
}

int main(void)
{
	int major;
	CUcontext context;
	CUdevice device;
	struct map_args a;

	MUST(cuInit, 0);
	MUST(cuDeviceGet, &device, 0);
	MUST(cuCtxCreate, &context, NULL, 0, device);
	MUST(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	if (major >= 10) {
		modes = MODES;
		types = 16;
		swizzles = 7;
	}
	for (unsigned mode = TILED; mode < modes; mode++)
		for (unsigned rank = mode == TILED ? 1 : 2; rank <= RANKS; rank++) {
			a = base_case((enum mode)mode, 6, rank);
			one_bit_at_a_time(&a);
			if (mode != TILED && rank > 2)
				corners(&a);
			enumerations((enum mode)mode, rank);
		}
	for (unsigned k = 0; k < 4000; k++)
		random_case(k % 2 ? TILED : (enum mode)(k / 2 % modes));
	replacements();
	return 0;
}
