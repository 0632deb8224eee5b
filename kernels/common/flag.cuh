/* flag: a word by which threads of several devices signal each other. */
#pragma once

#include <stdint.h>

/* How a signal orders other accesses. FLAG_SYS is right between devices: scope gpu has the threads of
 * one device only, and a relaxed access orders nothing but the flag itself. */
enum flag_order { FLAG_SYS, FLAG_GPU, FLAG_RELAXED };

__device__ __forceinline__ static void flag_set(uint32_t *flag, uint32_t v, enum flag_order order)
{
	if (order == FLAG_RELAXED)
		asm volatile("st.relaxed.sys.global.u32 [%0], %1;" :: "l"(flag), "r"(v) : "memory");
	else if (order == FLAG_GPU)
		asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(flag), "r"(v) : "memory");
	else
		asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(flag), "r"(v) : "memory");
}

__device__ __forceinline__ static uint32_t flag_get(const uint32_t *flag, enum flag_order order)
{
	uint32_t v;

	if (order == FLAG_RELAXED)
		asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	else if (order == FLAG_GPU)
		asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	else
		asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	return v;
}

/* Waits until the flag has reached `v`. Flags only grow, so a late waiter misses nothing, and none
 * is ever reset. */
__device__ __forceinline__ static void flag_await(const uint32_t *flag, uint32_t v,
	enum flag_order order)
{
	while ((int32_t)(flag_get(flag, order) - v) < 0)
		;
}
