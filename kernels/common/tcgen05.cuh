/* tcgen05: one function for each PTX instruction of the Blackwell tensor cores (sm_100a) that the
 * kernels use, and the descriptors that these take.
 *
 * Tensor memory is 128 lanes by 512 columns of 32 bits in each SM; an address is lane << 16 |
 * column. It is allocated by columns. Products are added to accumulators there: row r of D is
 * lane r, a column of D one column. A warp accesses only the 32 lanes of its number modulo 4.
 *
 * `group` is the number of CTAs that execute an MMA together: 1, or 2 for a pair, the CTAs 2i and
 * 2i + 1 of a cluster. One thread of the even CTA, the leader, issues for both. The MMA reads
 * shared memory and writes tensor memory of both CTAs, at the same addresses: each holds half of
 * the rows of A and of D, and half of the rows of B.
 *
 *   operation        issued by             complete when
 *   mma, cp          one thread            a commit that follows has arrived on its mbarrier
 *   ld, st           all lanes of a warp   tmem_wait_loads(), tmem_wait_stores()
 *   alloc, dealloc   all lanes of a warp   it returns
 *
 * Between threads: complete, tcgen05_fence_before(), synchronise, tcgen05_fence_after(). A commit
 * includes the fence before. Sections are those of the PTX ISA, "tcgen05 instructions". */
#pragma once

#include "ptx.cuh"

#include <cuda_bf16.h>

/* The instruction's text needs the size of the group as a digit, between `before` and `after`. */
#define IN_GROUP(group, before, after, ...) \
	do { \
		static_assert(group == 1 || group == 2, "a CTA or a pair"); \
		if constexpr (group == 1) \
			asm volatile(before "1" after __VA_ARGS__); \
		else \
			asm volatile(before "2" after __VA_ARGS__); \
	} while (0)

/* True in one lane of the warp, always the same. ptxas then knows that one thread issues. */
DEVICE bool elect_one()
{
	uint32_t elected;

	asm volatile("{\n\t"
		".reg .pred p;\n\t"
		"elect.sync _|p, 0xffffffff;\n\t"
		"selp.u32 %0, 1, 0, p;\n\t"
		"}" : "=r"(elected) :: "memory");
	return elected;
}

/* ---- allocation: a warp of each CTA of the group executes these together ---- */

/* Writes the address to `at`. `columns`: a power of 2 from 32 to 512. Waits until as many are free
 * in the SM. All CTAs of the group must have started. */
template <int group> DEVICE void tmem_alloc(uint32_t *at, uint32_t columns)
{
	IN_GROUP(group, "tcgen05.alloc.cta_group::", ".sync.aligned.shared::cta.b32 [%0], %1;",
		:: "r"(smem_at(at)), "r"(columns) : "memory");
}

/* This CTA allocates no more, so a CTA that waits for columns need not wait for its exit. */
template <int group> DEVICE void tmem_relinquish()
{
	IN_GROUP(group, "tcgen05.relinquish_alloc_permit.cta_group::", ".sync.aligned;",
		::: "memory");
}

/* Required before exit */
template <int group> DEVICE void tmem_dealloc(uint32_t address, uint32_t columns)
{
	IN_GROUP(group, "tcgen05.dealloc.cta_group::", ".sync.aligned.b32 %0, %1;",
		:: "r"(address), "r"(columns) : "memory");
}

/* ---- order between threads ---- */

DEVICE void tcgen05_fence_before()
{
	asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

DEVICE void tcgen05_fence_after()
{
	asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/* One arrival on the barrier once the MMAs and copies that this thread has issued are complete */
template <int group> DEVICE void tcgen05_commit(uint64_t *bar)
{
	IN_GROUP(group, "tcgen05.commit.cta_group::",
		".mbarrier::arrive::one.shared::cluster.b64 [%0];",
		:: "r"(smem_at(bar)) : "memory");
}

/* The same on the barrier at that address in each CTA of `mask` (bit r: rank r) */
template <int group> DEVICE void tcgen05_commit_multicast(uint64_t *bar, uint32_t mask)
{
	IN_GROUP(group, "tcgen05.commit.cta_group::",
		".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;",
		:: "r"(smem_at(bar)), "h"((uint16_t)mask) : "memory");
}

/* ---- tensor memory to registers ---- */

#define REG8(constraint, i) constraint(d[i]), constraint(d[i + 1]), constraint(d[i + 2]), \
	constraint(d[i + 3]), constraint(d[i + 4]), constraint(d[i + 5]), constraint(d[i + 6]), \
	constraint(d[i + 7])
#define REG64(constraint) REG8(constraint, 0), REG8(constraint, 8), REG8(constraint, 16), \
	REG8(constraint, 24), REG8(constraint, 32), REG8(constraint, 40), REG8(constraint, 48), \
	REG8(constraint, 56)

/* 64 columns of the warp's 32 lanes: a thread gets those of one row. The registers must not be used
 * before tmem_wait_loads(). */
DEVICE void tmem_load(float (&d)[64], uint32_t address)
{
	asm volatile("tcgen05.ld.sync.aligned.32x32b.x64.b32 "
		"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
		"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
		"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
		"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, [%64];"
		: REG64("=f") : "r"(address) : "memory");
}

/* Waits for all loads of this warp. `d` is what the last one loads: named here so that the compiler
 * uses the registers only afterwards. */
DEVICE void tmem_wait_loads(float (&d)[64])
{
	asm volatile("tcgen05.wait::ld.sync.aligned;" : REG64("+f") :: "memory");
}

#define REG32(constraint) REG8(constraint, 0), REG8(constraint, 8), REG8(constraint, 16), \
	REG8(constraint, 24)
#define REGISTERS32 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
	"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

/* 32 columns, or one. The registers must not be used before tmem_wait_loads() and tmem_loaded(). */
DEVICE void tmem_load(uint32_t (&d)[32], uint32_t address)
{
	asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 " REGISTERS32 ", [%32];"
		: REG32("=r") : "r"(address) : "memory");
}

DEVICE void tmem_load(uint32_t &d, uint32_t address)
{
	asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];"
		: "=r"(d) : "r"(address) : "memory");
}

/* Waits for all loads of this warp. */
DEVICE void tmem_wait_loads()
{
	asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

/* Follows tmem_wait_loads(): no instruction, but the compiler uses the registers only after it. */
DEVICE void tmem_loaded(uint32_t (&d)[32])
{
	asm volatile("" : REG32("+r"));
}

DEVICE void tmem_loaded(uint32_t &d)
{
	asm volatile("" : "+r"(d));
}

/* ---- registers to tensor memory: 32 columns, or one, of the warp's 32 lanes ---- */

DEVICE void tmem_store(uint32_t address, const uint32_t (&d)[32])
{
	asm volatile("tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], " REGISTERS32 ";"
		:: REG32("r"), "r"(address) : "memory");
}

DEVICE void tmem_store(uint32_t address, uint32_t d)
{
	asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%1], {%0};"
		:: "r"(d), "r"(address) : "memory");
}

/* Waits for all stores of this warp. */
DEVICE void tmem_wait_stores()
{
	asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

#undef REGISTERS32
#undef REG32
#undef REG64
#undef REG8

/* ---- descriptors ("Shared memory descriptor", "Instruction descriptor") ---- */

/* A tile with rows of 128 bytes along K and TMA's 128-byte swizzle, at a multiple of 1024 bytes:
 * eight rows are one 1024-byte atom. 32 bytes further along K: add 2. */
DEVICE uint64_t tcgen05_tile(const void *smem)
{
	const uint64_t atom = 1024 >> 4, version = 1, swizzle_128b = 2;

	return (uint64_t)(smem_at(smem) >> 4 & 0x3fff) | (uint64_t)1 << 16 | atom << 32 |
		version << 46 | swizzle_128b << 61;
}

/* A tile whose rows are the k of the product, in blocks of columns that are `block` bytes apart.
 * `row`: bytes of a row of a block, 128 or 64, and TMA's swizzle of that size. 16 rows further: add
 * `row`. */
template <int row> DEVICE uint64_t tcgen05_tile_rows(const void *smem, uint32_t block)
{
	static_assert(row == 128 || row == 64, "swizzles that the kernels use");
	const uint64_t atom = 8 * row >> 4, version = 1, swizzle = row == 128 ? 2 : 4;

	return (uint64_t)(smem_at(smem) >> 4 & 0x3fff) | (uint64_t)(block >> 4) << 16 | atom << 32 |
		version << 46 | swizzle << 61;
}

/* What all MMAs have: A and B with K innermost, `m` and `n` of the group's D */
DEVICE uint32_t mma_shape(int m, int n)
{
	return (uint32_t)(n / 8) << 17 | (uint32_t)(m / 16) << 24;
}

/* For mma_f16(): A and B of bfloat16, sums of float */
DEVICE uint32_t mma_bf16(int m, int n)
{
	return 1u << 4 | 1u << 7 | 1u << 10 | mma_shape(m, n);
}

/* For mma_f16(): A and B of half, sums of float; the second one for B described by
 * tcgen05_tile_rows() */
DEVICE uint32_t mma_half(int m, int n)
{
	return 1u << 4 | mma_shape(m, n);
}

DEVICE uint32_t mma_half_rows(int m, int n)
{
	return 1u << 16 | mma_half(m, n);
}

/* ---- MMA: D = A B^T + (accumulate ? D : 0). Executed by one thread of the leader ---- */

/* 16 columns of A and B */
template <int group>
DEVICE void mma_f16(uint32_t d, uint64_t a, uint64_t b, uint32_t descriptor, bool accumulate)
{
	IN_GROUP(group, "{\n\t"
		".reg .pred p;\n\t"
		"setp.ne.b32 p, %4, 0;\n\t"
		"tcgen05.mma.cta_group::", ".kind::f16 [%0], %1, %2, %3, p;\n\t"
		"}",
		:: "r"(d), "l"(a), "l"(b), "r"(descriptor), "r"((int)accumulate) : "memory");
}

/* The same with A in tensor memory, two elements of a row in each column: 16 are 8 columns */
template <int group>
DEVICE void mma_f16_tmem(uint32_t d, uint32_t a, uint64_t b, uint32_t descriptor, bool accumulate)
{
	IN_GROUP(group, "{\n\t"
		".reg .pred p;\n\t"
		"setp.ne.b32 p, %4, 0;\n\t"
		"tcgen05.mma.cta_group::", ".kind::f16 [%0], [%1], %2, %3, p;\n\t"
		"}",
		:: "r"(d), "r"(a), "l"(b), "r"(descriptor), "r"((int)accumulate) : "memory");
}

/* ---- MMA with scales: each 32 or 16 columns of a row of A or B have a factor in tensor memory.
 *
 * The factors of 128 rows and 4 blocks of columns are 512 bytes: in row i of 16 bytes those of the
 * rows i, 32 + i, 64 + i and 96 + i, 4 bytes each. Copied to tensor memory they take 4 columns, and
 * each window of 32 lanes holds all of them. In a pair each CTA has the factors of its own rows of
 * A and of all rows of B. ---- */

/* The descriptor of such 512 bytes, without swizzle: eight rows are 128 bytes */
DEVICE uint64_t tcgen05_scales(const void *smem)
{
	const uint64_t eight_rows = 128 >> 4, version = 1;

	return (uint64_t)(smem_at(smem) >> 4 & 0x3fff) | (uint64_t)1 << 16 | eight_rows << 32 |
		version << 46;
}

/* Copies them in each CTA of the group, from its own shared memory. The MMAs that the same thread
 * issues afterwards use them without further waiting. */
template <int group> DEVICE void tmem_copy_scales(uint32_t address, uint64_t scales)
{
	IN_GROUP(group, "tcgen05.cp.cta_group::", ".32x128b.warpx4 [%0], %1;",
		:: "r"(address), "l"(scales) : "memory");
}

/* For mma_mxf8(): A and B of e4m3, factors of ue8m0; which of 4 blocks of 32 columns it is */
DEVICE uint32_t mma_e4m3(int m, int n, uint32_t block)
{
	return block << 4 | 1u << 23 | mma_shape(m, n) | block << 29;
}

/* For mma_nvf4(): A and B of e2m1, factors of ue4m3 */
DEVICE uint32_t mma_e2m1(int m, int n)
{
	return 1u << 7 | 1u << 10 | mma_shape(m, n);
}

#define MMA_SCALED(name, kind) \
	template <int group> \
	DEVICE void name(uint32_t d, uint64_t a, uint64_t b, uint32_t descriptor, uint32_t scales_a, \
		uint32_t scales_b, bool accumulate) \
	{ \
		IN_GROUP(group, "{\n\t" \
			".reg .pred p;\n\t" \
			"setp.ne.b32 p, %6, 0;\n\t" \
			"tcgen05.mma.cta_group::", "." kind " [%0], %1, %2, %3, [%4], [%5], p;\n\t" \
			"}", \
			:: "r"(d), "l"(a), "l"(b), "r"(descriptor), "r"(scales_a), "r"(scales_b), \
			"r"((int)accumulate) : "memory"); \
	}
/* 32 columns, one block */
MMA_SCALED(mma_mxf8, "kind::mxf8f6f4.block_scale.scale_vec::1X")
/* 64 columns, 4 blocks of 16 */
MMA_SCALED(mma_nvf4, "kind::mxf4nvf4.block_scale.scale_vec::4X")
#undef MMA_SCALED

/* ---- TMA for a group: the bytes count on the barrier `full`, whose address comes from smem_of():
 * in a pair that of the leader, wherever they land ---- */

template <int group>
DEVICE void group_load(void *smem, const CUtensorMap *map, int x, int y, uint32_t full)
{
	IN_GROUP(group, "cp.async.bulk.tensor.2d.cta_group::",
		".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];",
		:: "r"(smem_at(smem)), "l"(map), "r"(x), "r"(y), "r"(full) : "memory");
}

template <int group>
DEVICE void group_load(void *smem, const CUtensorMap *map, int x, int y, int z, uint32_t full)
{
	IN_GROUP(group, "cp.async.bulk.tensor.3d.cta_group::",
		".shared::cluster.global.tile.mbarrier::complete_tx::bytes "
		"[%0], [%1, {%2, %3, %4}], [%5];",
		:: "r"(smem_at(smem)), "l"(map), "r"(x), "r"(y), "r"(z), "r"(full) : "memory");
}

/* To the same address of each CTA in `mask`; the bytes that land in a CTA count on the barrier of
 * its own group. */
template <int group>
DEVICE void group_load_multicast(void *smem, const CUtensorMap *map, int x, int y, uint32_t full,
	uint32_t mask)
{
	IN_GROUP(group, "cp.async.bulk.tensor.2d.cta_group::",
		".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
		"[%0], [%1, {%2, %3}], [%4], %5;",
		:: "r"(smem_at(smem)), "l"(map), "r"(x), "r"(y), "r"(full), "h"((uint16_t)mask)
		: "memory");
}

/* ---- sums to C ---- */

DEVICE uint32_t pack_bf16(float low, float high)
{
	const __nv_bfloat162 h = __floats2bfloat162_rn(low, high);

	return *reinterpret_cast<const uint32_t *>(&h);
}

/* A warp writes 64 columns of its 32 rows as bfloat16 to a tile, for TMA to store: this thread one
 * row. The swizzle spreads 8 rows of 16 bytes over all banks. */
DEVICE void stage_row(__nv_bfloat16 *tile, const float (&d)[64])
{
	const int row = threadIdx.x % 32;

#pragma unroll
	for (int i = 0; i < 8; i++)
		*reinterpret_cast<uint4 *>(tile + row * 64 + (i ^ row % 8) * 8) = {
			pack_bf16(d[8 * i], d[8 * i + 1]), pack_bf16(d[8 * i + 2], d[8 * i + 3]),
			pack_bf16(d[8 * i + 4], d[8 * i + 5]), pack_bf16(d[8 * i + 6], d[8 * i + 7])};
}
