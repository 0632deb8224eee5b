/* ptx: one function for each PTX instruction that the kernels use and that CUDA C++
 * has no function for. channel.cuh combines them into protocols. */
#pragma once

#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

#define DEVICE static __device__ __forceinline__

/* The address of shared memory in the .shared state space */
DEVICE uint32_t smem_at(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

/* The first address that a tile with TMA's 128-byte swizzle may have: the pattern repeats every
 * 1024 bytes and starts there. The kernel asks for 1024 bytes more than its tiles take. */
template <class T = __half> DEVICE T *first_tile(unsigned char *smem)
{
	return (T *)((uintptr_t)(smem + 1023) & ~(uintptr_t)1023);
}

/* ---- cp.async: 16 bytes by one thread; bytes < 16 are followed by zeros ---- */

DEVICE void cp_async(void *smem, const void *gmem, uint32_t bytes = 16)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
		:: "r"(smem_at(smem)), "l"(__cvta_generic_to_global(gmem)), "r"(bytes)
		: "memory");
}

DEVICE void cp_async_commit()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Returns when at most `newer` of this thread's committed groups are in flight. */
template <int newer> DEVICE void cp_async_wait()
{
	asm volatile("cp.async.wait_group %0;" :: "n"(newer) : "memory");
}

/* ---- warp-level matrix instructions ---- */

DEVICE void ldmatrix(uint32_t (&d)[4], const void *row)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(smem_at(row)) : "memory");
}

DEVICE void ldmatrix_trans(uint32_t (&d)[4], const void *row)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(smem_at(row)) : "memory");
}

DEVICE void stmatrix(void *row, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
		:: "r"(smem_at(row)), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

/* d += a * b, 16 x 8 x 16, half in, float out */
DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
		"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* 2 to the power of x, to about 22 bits; subnormal results are 0 */
DEVICE float exp2_approx(float x)
{
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

DEVICE uint32_t pack_half(float low, float high)
{
	const __half2 h = __floats2half2_rn(low, high);

	return *reinterpret_cast<const uint32_t *>(&h);
}

/* ---- barriers among some of the warps ---- */

/* `threads`: all that arrive, by this function or the next */
DEVICE void named_barrier_sync(uint32_t id, uint32_t threads)
{
	asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

/* Arrives for a named_barrier_sync() of other threads and does not wait. */
DEVICE void named_barrier_arrive(uint32_t id, uint32_t threads)
{
	asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

/* ---- mbarrier ---- */

DEVICE void mbar_init(uint64_t *bar, uint32_t arrivals)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
		:: "r"(smem_at(bar)), "r"(arrivals) : "memory");
}

/* Makes the barrier's bytes ordinary memory again. */
DEVICE void mbar_inval(uint64_t *bar)
{
	asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(smem_at(bar)) : "memory");
}

DEVICE void mbar_arrive(uint64_t *bar)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
		:: "r"(smem_at(bar)) : "memory");
}

DEVICE void mbar_arrive_expect_tx(uint64_t *bar, uint32_t bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
		:: "r"(smem_at(bar)), "r"(bytes) : "memory");
}

DEVICE bool mbar_try_wait(uint64_t *bar, uint32_t parity)
{
	uint32_t done;

	asm volatile("{\n\t"
		".reg .pred p;\n\t"
		"mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
		"selp.u32 %0, 1, 0, p;\n\t"
		"}" : "=r"(done) : "r"(smem_at(bar)), "r"(parity) : "memory");
	return done;
}

/* Returns when the phase of that parity is complete. try_wait may return false
 * after a time limit that the hardware sets, hence the loop. */
DEVICE void mbar_wait(uint64_t *bar, uint32_t parity)
{
	while (!mbar_try_wait(bar, parity)) {
	}
}

/* ---- clusters: rank is the CTA's number in its cluster, x fastest ---- */

#define SPECIAL(name, reg) \
	DEVICE uint32_t name() \
	{ \
		uint32_t value; \
		asm("mov.u32 %0, %%" reg ";" : "=r"(value)); \
		return value; \
	}
SPECIAL(cluster_rank, "cluster_ctarank")
SPECIAL(cluster_ctas, "cluster_nctarank")
SPECIAL(cluster_x, "cluster_ctaid.x")
SPECIAL(cluster_y, "cluster_ctaid.y")
SPECIAL(cluster_width, "cluster_nctaid.x")
SPECIAL(cluster_height, "cluster_nctaid.y")
#undef SPECIAL

/* All threads of all CTAs arrive. Accesses before it are ordered before those after
 * cluster_wait(). Not .aligned, as one lane may arrive from a loop of its own. */
DEVICE void cluster_arrive()
{
	asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

/* Orders no accesses but the initialisation of mbarriers before a fence_mbar_init().
 * What follows cluster_wait() runs after all threads have arrived. */
DEVICE void cluster_arrive_relaxed()
{
	asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

DEVICE void cluster_wait()
{
	asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

DEVICE void cluster_sync()
{
	cluster_arrive();
	cluster_wait();
}

DEVICE void cluster_sync_relaxed()
{
	cluster_arrive_relaxed();
	cluster_wait();
}

/* Called by the thread that initialised mbarriers: makes them visible to the cluster
 * after the next cluster barrier. */
DEVICE void fence_mbar_init()
{
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* The .shared::cluster address of the same variable in the CTA of that rank */
DEVICE uint32_t smem_of(const void *mine, uint32_t rank)
{
	uint32_t at;

	asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(smem_at(mine)), "r"(rank));
	return at;
}

DEVICE float dsmem_load(const float *mine, uint32_t rank)
{
	float x;

	asm volatile("ld.shared::cluster.f32 %0, [%1];"
		: "=f"(x) : "r"(smem_of(mine, rank)) : "memory");
	return x;
}

DEVICE void mbar_arrive_at(uint64_t *mine, uint32_t rank)
{
	asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
		:: "r"(smem_of(mine, rank)) : "memory");
}

/* Like mbar_arrive_at(), for bytes that were only read and that a copy overwrites next. No scope is
 * written, as in CUTLASS's ClusterBarrier, although the ISA's default is .cta: .release.cluster
 * compiles to MEMBAR.ALL.GPU, ERRBAR and CGAERRBAR before the arrival (nvcc 13.0, sm_90a), a fence
 * for writes, and there are none. consan counts the arrival as .cluster, with
 * --knob=scope_as_written=1 as .cta. */
DEVICE void mbar_arrive_at_unscoped(uint64_t *mine, uint32_t rank)
{
	asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];"
		:: "r"(smem_of(mine, rank)) : "memory");
}

DEVICE void mbar_arrive_expect_tx_at(uint64_t *mine, uint32_t rank, uint32_t bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;"
		:: "r"(smem_of(mine, rank)), "r"(bytes) : "memory");
}

/* Like mbar_wait(), for barriers on which other CTAs arrive. */
DEVICE void mbar_wait_cluster(uint64_t *bar, uint32_t parity)
{
	uint32_t done;

	do {
		asm volatile("{\n\t"
			".reg .pred p;\n\t"
			"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
			"selp.u32 %0, 1, 0, p;\n\t"
			"}" : "=r"(done) : "r"(smem_at(bar)), "r"(parity) : "memory");
	} while (!done);
}

/* ---- the async proxy ---- */

/* Orders this thread's ordinary accesses to shared memory, and those it has
 * synchronised with, before TMA and wgmma operations that follow. */
DEVICE void fence_proxy_async()
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* All sizes and addresses are multiples of 16. */
DEVICE void bulk_load(void *smem, const void *gmem, uint32_t bytes, uint64_t *full)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%0], [%1], %2, [%3];"
		:: "r"(smem_at(smem)), "l"(__cvta_generic_to_global(gmem)), "r"(bytes),
		"r"(smem_at(full)) : "memory");
}

/* Copies from this CTA's shared memory to the address `to` in another CTA's; the bytes
 * count on its barrier `full`. Both addresses come from smem_of(). */
DEVICE void bulk_copy_to(uint32_t to, const void *from, uint32_t bytes, uint32_t full)
{
	asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
		"[%0], [%1], %2, [%3];"
		:: "r"(to), "r"(smem_at(from)), "r"(bytes), "r"(full) : "memory");
}

/* Stores 16 bytes from registers to the address `to` in a CTA of the cluster; they count
 * on its barrier `full`. Both addresses come from smem_of(). */
DEVICE void store_async(uint32_t to, float a, float b, float c, float d, uint32_t full)
{
	asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
		"[%0], {%1, %2, %3, %4}, [%5];"
		:: "r"(to), "f"(a), "f"(b), "f"(c), "f"(d), "r"(full) : "memory");
}

/* Copies to the same address of each CTA in `mask`; the bytes count on the same barrier
 * of each. */
DEVICE void bulk_load_multicast(void *smem, const void *gmem, uint32_t bytes, uint64_t *full,
	uint32_t mask)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
		".multicast::cluster [%0], [%1], %2, [%3], %4;"
		:: "r"(smem_at(smem)), "l"(__cvta_generic_to_global(gmem)), "r"(bytes),
		"r"(smem_at(full)), "h"((uint16_t)mask) : "memory");
}

DEVICE void bulk_reduce_add(float *gmem, const float *smem, uint32_t bytes)
{
	asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
		"[%0], [%1], %2;"
		:: "l"(__cvta_generic_to_global(gmem)), "r"(smem_at(smem)), "r"(bytes)
		: "memory");
}

DEVICE void bulk_commit()
{
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Returns when all but the `newer` last of this thread's groups have read their source. */
template <int newer> DEVICE void bulk_wait_read()
{
	asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(newer) : "memory");
}

DEVICE void tensor_prefetch(const CUtensorMap *map)
{
	asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}

DEVICE void tensor_load(void *smem, const CUtensorMap *map, int x, int y, uint64_t *full)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
		".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
		:: "r"(smem_at(smem)), "l"(map), "r"(x), "r"(y), "r"(smem_at(full))
		: "memory");
}

/* Copies to the same address of each CTA in `mask` (bit r: rank r); the bytes count on
 * the same barrier of each. */
DEVICE void tensor_load_multicast(void *smem, const CUtensorMap *map, int x, int y,
	uint64_t *full, uint32_t mask)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
		".mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
		:: "r"(smem_at(smem)), "l"(map), "r"(x), "r"(y), "r"(smem_at(full)),
		"h"((uint16_t)mask) : "memory");
}

DEVICE void tensor_store(const CUtensorMap *map, int x, int y, const void *smem)
{
	asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
		"[%0, {%1, %2}], [%3];"
		:: "l"(map), "r"(x), "r"(y), "r"(smem_at(smem)) : "memory");
}

/* ---- the same for tensors of three dimensions ---- */

DEVICE void tensor_load(void *smem, const CUtensorMap *map, int x, int y, int z, uint64_t *full)
{
	asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
		".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
		:: "r"(smem_at(smem)), "l"(map), "r"(x), "r"(y), "r"(z), "r"(smem_at(full))
		: "memory");
}

DEVICE void tensor_load_multicast(void *smem, const CUtensorMap *map, int x, int y, int z,
	uint64_t *full, uint32_t mask)
{
	asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
		".mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;"
		:: "r"(smem_at(smem)), "l"(map), "r"(x), "r"(y), "r"(z), "r"(smem_at(full)),
		"h"((uint16_t)mask) : "memory");
}

DEVICE void tensor_store(const CUtensorMap *map, int x, int y, int z, const void *smem)
{
	asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group "
		"[%0, {%1, %2, %3}], [%4];"
		:: "l"(map), "r"(x), "r"(y), "r"(z), "r"(smem_at(smem)) : "memory");
}

/* ---- wgmma: the four warps of a warpgroup execute each of these together ---- */

/* Orders earlier register accesses before the next wgmma's accesses to the same registers. */
DEVICE void wgmma_fence()
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

DEVICE void wgmma_commit()
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int newer> DEVICE void wgmma_wait()
{
	asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(newer) : "memory");
}

/* The descriptor of a tile with rows of 64 halves, stored with TMA's 128-byte swizzle at
 * a multiple of 1024 bytes: eight rows are one 1024-byte atom. */
DEVICE uint64_t wgmma_tile(const void *smem)
{
	const uint64_t atom = 1024 >> 4, swizzle_128b = 1;

	return (uint64_t)(smem_at(smem) >> 4 & 0x3fff) | (uint64_t)1 << 16 | atom << 32 |
		swizzle_128b << 62;
}

#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
	"+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

/* d = a * b + (accumulate ? d : 0), 64 x 128 x 16 of half, both K-major */
DEVICE void wgmma(float (&d)[64], uint64_t a, uint64_t b, bool accumulate)
{
	asm volatile("{\n\t"
		".reg .pred p;\n\t"
		"setp.ne.b32 p, %66, 0;\n\t"
		"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
		"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
		"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
		"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
		"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
		"%64, %65, p, 1, 1, 0, 0;\n\t"
		"}"
		: D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56)
		: "l"(a), "l"(b), "r"((int)accumulate));
}

/* The same, 64 x 256 x 16 */
DEVICE void wgmma(float (&d)[128], uint64_t a, uint64_t b, bool accumulate)
{
	asm volatile("{\n\t"
		".reg .pred p;\n\t"
		"setp.ne.b32 p, %130, 0;\n\t"
		"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
		"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
		"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
		"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
		"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
		"%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
		"%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
		"%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
		"%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
		"%128, %129, p, 1, 1, 0, 0;\n\t"
		"}"
		: D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56), D8(64), D8(72),
		D8(80), D8(88), D8(96), D8(104), D8(112), D8(120)
		: "l"(a), "l"(b), "r"((int)accumulate));
}

/* The descriptor of a tile of up to 128 columns whose rows are the k of the product, in
 * blocks of 64 columns that are `block` bytes apart, each laid out as above */
DEVICE uint64_t wgmma_tile_rows(const void *smem, uint32_t block)
{
	const uint64_t atom = 1024 >> 4, swizzle_128b = 1;

	return (uint64_t)(smem_at(smem) >> 4 & 0x3fff) | (uint64_t)(block >> 4) << 16 | atom << 32 |
		swizzle_128b << 62;
}

/* d = a * b + (accumulate ? d : 0), 64 x 64 x 16: a in registers, b described by
 * wgmma_tile_rows() */
DEVICE void wgmma_rows(float (&d)[32], const uint32_t *a, uint64_t b, bool accumulate)
{
	asm volatile("{\n\t"
		".reg .pred p;\n\t"
		"setp.ne.b32 p, %37, 0;\n\t"
		"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
		"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
		"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
		"{%32, %33, %34, %35}, %36, p, 1, 1, 1;\n\t"
		"}"
		: D8(0), D8(8), D8(16), D8(24)
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)accumulate));
}

/* The same, 64 x 128 x 16 */
DEVICE void wgmma_rows(float (&d)[64], const uint32_t *a, uint64_t b, bool accumulate)
{
	asm volatile("{\n\t"
		".reg .pred p;\n\t"
		"setp.ne.b32 p, %69, 0;\n\t"
		"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
		"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
		"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
		"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
		"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
		"{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n\t"
		"}"
		: D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56)
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)accumulate));
}

#undef D8

/* Changes the number of registers of each thread. The whole warpgroup executes it. */
template <int registers> DEVICE void registers_dec()
{
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(registers));
}

template <int registers> DEVICE void registers_inc()
{
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(registers));
}
