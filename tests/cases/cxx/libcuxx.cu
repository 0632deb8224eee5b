/* libcuxx: common uses of CUDA's C++ libraries, each correct and with one
 * planted bug: cuda::barrier, cuda::pipeline, cuda::memcpy_async,
 * cuda::atomic_ref, cooperative groups, CUB. Without --bug the program runs
 * all of them. Lines are marked as in the bundled kernels. */
#include "kernels/common/harness.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_reduce.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

/* cuda::barrier has a constructor; init() does its work. */
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

enum { THREADS = 128 };

#define BUGS(BUG) \
	BUG(token_not_waited_for, CS102, "", "arrives at a cuda::barrier and continues without wait") \
	BUG(no_consumer_wait, CS301, "", "reads what cuda::pipeline copies without consumer_wait") \
	BUG(no_barrier_wait, CS104, "", "reads what memcpy_async copies without waiting at its barrier") \
	BUG(relaxed_flag, CS102, "", "publishes data by a flag that is stored relaxed") \
	BUG(no_tile_sync, CS103, "", "lanes exchange values through memory without tile.sync") \
	BUG(temp_storage_reused, CS102, "", "uses CUB's temporary storage again with no barrier") \
	BUG(released_too_early, CS106, "", "a consumer of cuda::pipeline reads a stage that it has released") \
	BUG(no_second_wait, CS102, "", "reads a tile that others fill again without waiting at a cuda::barrier") \
	BUG(half_tile_sync, CS102, "", "threads of a tile of 64 synchronize by warps only")

PLANT(BUGS)

using block_barrier = cuda::barrier<cuda::thread_scope_block>;

template <class Bug> __global__ void arrive_and_wait(int *out, Bug bug)
{
	__shared__ int tile[THREADS];
	__shared__ block_barrier bar;
	const int t = threadIdx.x;

	if (t == 0)
		init(&bar, THREADS);
	__syncthreads();
	tile[t] = t; // @bug token_not_waited_for CS102
	auto token = bar.arrive();
	if (!bug.is(token_not_waited_for))
		bar.wait(std::move(token));
	out[t] = tile[t ^ 64]; // @bug token_not_waited_for CS102
}

template <class Bug> __global__ void pipeline(const int *in, int *out, Bug bug)
{
	__shared__ alignas(16) int stage[2][THREADS];
	cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
	const int t = threadIdx.x;
	int sum = 0;

	for (int i = 0; i < 5; i++) {
		if (i < 4) {
			pipe.producer_acquire();
			cuda::memcpy_async(&stage[i % 2][t], in + i * THREADS + t, sizeof(int), pipe);
			pipe.producer_commit();
		}
		if (i == 0)
			continue;
		if (bug.is(no_consumer_wait))
			;
		else if (i < 4)
			cuda::pipeline_consumer_wait_prior<1>(pipe);
		else
			cuda::pipeline_consumer_wait_prior<0>(pipe);
		sum += stage[(i - 1) % 2][t]; // @bug no_consumer_wait CS301
		pipe.consumer_release();
	}
	out[t] = sum;
}

template <class Bug> __global__ void bulk(const int *in, int *out, Bug bug)
{
	__shared__ alignas(16) int tile[THREADS];
	__shared__ block_barrier bar;
	const int t = threadIdx.x;

	if (t == 0)
		init(&bar, THREADS);
	__syncthreads();
	cuda::memcpy_async(cg::this_thread_block(), tile, in, cuda::aligned_size_t<16>(sizeof tile), bar);
	if (bug.is(no_barrier_wait))
		out[t] = tile[t]; // @bug no_barrier_wait CS104
	bar.arrive_and_wait();
	out[t] = tile[t];
}

template <class Bug> __global__ void flag(const int *in, int *out, Bug bug)
{
	__shared__ int data, ready;
	cuda::atomic_ref<int, cuda::thread_scope_block> r(ready);
	const int t = threadIdx.x;

	if (t == 0)
		ready = 0;
	__syncthreads();
	if (t == 0) {
		data = in[42]; // @bug relaxed_flag CS102
		if (bug.is(relaxed_flag))
			r.store(1, cuda::memory_order_relaxed);
		else
			r.store(1, cuda::memory_order_release);
	}
	if (t != 32)
		return;
	while (!r.load(cuda::memory_order_acquire)) {
	}
	out[0] = data; // @bug relaxed_flag CS102
}

template <class Bug> __global__ void tiles(int *out, Bug bug)
{
	__shared__ int box[THREADS];
	cg::thread_block_tile<32> tile = cg::tiled_partition<32>(cg::this_thread_block());
	const int t = threadIdx.x, sum = cg::reduce(tile, t, cg::plus<int>());

	box[t] = sum + t; // @bug no_tile_sync CS103
	if (!bug.is(no_tile_sync))
		tile.sync();
	out[t] = box[t ^ 1]; // @bug no_tile_sync CS103
}

template <class Bug> __global__ void reduce_twice(const int *in, int *out, Bug bug)
{
	using reduce = cub::BlockReduce<int, THREADS>;
	__shared__ typename reduce::TempStorage temp;
	const int t = threadIdx.x;
	const int first = reduce(temp).Sum(in[t]);

	if (!bug.is(temp_storage_reused))
		__syncthreads();
	const int second = reduce(temp).Sum(in[t] + 1); // @bug temp_storage_reused CS102

	if (t == 0)
		out[0] = first + second;
}

/* Producers and consumers; the last thread to exit destroys the barriers. */
template <class Bug> __global__ void roles(const int *in, int *out, Bug bug)
{
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
	__shared__ int stage[2][THREADS / 2];
	const cg::thread_block block = cg::this_thread_block();
	const bool consumer = threadIdx.x >= THREADS / 2;
	const int t = threadIdx.x % (THREADS / 2);
	auto pipe = cuda::make_pipeline(block, &state,
		consumer ? cuda::pipeline_role::consumer : cuda::pipeline_role::producer);
	int sum = 0;

	for (int i = 0; i < 5; i++) {
		if (!consumer) {
			pipe.producer_acquire();
			cuda::memcpy_async(&stage[i % 2][t], in + i * 64 + t, sizeof(int), pipe); // @bug released_too_early CS106
			pipe.producer_commit();
			continue;
		}
		pipe.consumer_wait();
		if (!bug.is(released_too_early))
			sum += stage[i % 2][t ^ 1];
		pipe.consumer_release();
		if (bug.is(released_too_early))
			sum += stage[i % 2][t ^ 1]; // @bug released_too_early CS106
	}
	if (consumer)
		out[t] = sum;
}

struct count_up {
	int *n;
	__device__ void operator()() { ++*n; }
};

/* With a completion function a cuda::barrier is a counter and a flag, not an mbarrier. */
template <class Bug> __global__ void completion(int *out, Bug bug)
{
	using counted = cuda::barrier<cuda::thread_scope_block, count_up>;
	__shared__ alignas(counted) char place[sizeof(counted)];
	__shared__ int tile[THREADS], phases;
	counted &bar = *(counted *)place;
	const int t = threadIdx.x;

	if (t == 0) {
		phases = 0;
		new (&bar) counted(THREADS, count_up{&phases});
	}
	__syncthreads();
	for (int i = 0; i < 3; i++) {
		tile[t] = t + i; // @bug no_second_wait CS102
		bar.arrive_and_wait();
		out[t] = tile[t ^ 64] + phases; // @bug no_second_wait CS102
		if (!bug.is(no_second_wait))
			bar.arrive_and_wait();
	}
}

template <class Bug> __global__ void big_tiles(int *out, Bug bug)
{
	__shared__ int box[THREADS];
	__shared__ cg::block_tile_memory<THREADS> memory;
	const cg::thread_block block = cg::this_thread_block(memory);
	const auto tile = cg::tiled_partition<64>(block);
	const int t = threadIdx.x, sum = cg::reduce(tile, t, cg::plus<int>());

	box[t] = sum; // @bug half_tile_sync CS102
	if (bug.is(half_tile_sync))
		__syncwarp();
	else
		tile.sync();
	out[t] = box[t ^ 32] + t; // @bug half_tile_sync CS102
}

template <class Bug> static void launch(const int *in, int *out, Bug bug)
{
	arrive_and_wait<<<1, THREADS>>>(out, bug);
	pipeline<<<1, THREADS>>>(in, out + THREADS, bug);
	bulk<<<1, THREADS>>>(in, out + 2 * THREADS, bug);
	flag<<<1, THREADS>>>(in, out + 3 * THREADS, bug);
	tiles<<<1, THREADS>>>(out + 4 * THREADS, bug);
	reduce_twice<<<1, THREADS>>>(in, out + 5 * THREADS, bug);
	roles<<<1, THREADS>>>(in, out + 6 * THREADS, bug);
	completion<<<1, THREADS>>>(out + 7 * THREADS, bug);
	big_tiles<<<1, THREADS>>>(out + 8 * THREADS, bug);
	CUDA(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
	const struct program p = {"libcuxx", "idioms of CUDA's C++ libraries", __FILE__, NULL, 0, bugs,
		sizeof bugs / sizeof *bugs};
	const struct run r = harness_args(argc, argv, p);
	struct checker c = {};
	int host[4 * THREADS], got[9 * THREADS];

	for (int i = 0; i < 4 * THREADS; i++)
		host[i] = i;
	int *in = harness_device(host, 4 * THREADS), *out = harness_device<int>(NULL, 9 * THREADS);
	if (r.bug >= 0)
		launch(in, out, planted_bug{r.bug});
	else
		launch(in, out, no_bug{});
	CUDA(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
	for (int t = 0; t < THREADS; t++) {
		checker_see(c, t, got[t], t ^ 64, 0);
		checker_see(c, THREADS + t, got[THREADS + t], 4 * t + 6 * THREADS, 0);
		checker_see(c, 2 * THREADS + t, got[2 * THREADS + t], t, 0);
		checker_see(c, 4 * THREADS + t, got[4 * THREADS + t],
			(t ^ 1) + 32 * (t & ~31) + 31 * 16, 0);
		checker_see(c, 7 * THREADS + t, got[7 * THREADS + t], (t ^ 64) + 2 + 5, 0);
		checker_see(c, 8 * THREADS + t, got[8 * THREADS + t], 64 * (t & 64) + 63 * 32 + t, 0);
		if (t < THREADS / 2)
			checker_see(c, 6 * THREADS + t, got[6 * THREADS + t], 5 * (t ^ 1) + 640, 0);
	}
	checker_see(c, 3 * THREADS, got[3 * THREADS], 42, 0);
	checker_see(c, 5 * THREADS, got[5 * THREADS], 2 * 127 * 64 + THREADS, 0);
	return checker_verdict(c, p);
}
