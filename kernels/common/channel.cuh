/* channel: a ring of shared-memory slots between one producer thread that
 * fills them by TMA and the consumers that read them. It holds the two
 * mbarriers of each slot; the slots themselves belong to the kernel.
 *
 *   producer                         consumers
 *   acquire  waits for empty  <----  release   arrive on empty
 *   expect   arrives on full,
 *            with the bytes
 *   (TMA)    subtracts bytes  ---->  wait      waits for full
 *
 * Phase n of a barrier is complete when all its arrivals, and for `full` all
 * its bytes, are in. A cursor walks the ring; its parity flips on each lap.
 * The producer starts with the opposite parity: "the phase before the first"
 * counts as complete, so the first lap does not wait.
 *
 * Across a cluster each CTA has its own channel, at the same address. TMA
 * multicast fills the same slot of several CTAs; so a CTA that loads for its
 * peers must know that all of them have given the slot back: its `empty`
 * counts the releases of every CTA it writes to, which release to it by
 * channel_release_to(). Channels are made in two steps, that one fence and one
 * barrier may serve all channels of all CTAs: each by channel_init(), then
 * once channels_publish(). */
#pragma once

#include "ptx.cuh"

template <int slots> struct channel {
	uint64_t full[slots], empty[slots];
};

template <int slots> struct cursor {
	int slot = 0;
	uint32_t parity = 0;

	__device__ __forceinline__ void next()
	{
		if (++slot == slots) {
			slot = 0;
			parity ^= 1;
		}
	}
};

/* By one thread; __syncthreads() then publishes the barriers to the others.
 * `releases`: how often consumers arrive to give one slot back. */
template <int slots>
DEVICE void channel_init(channel<slots> &c, uint32_t producers, uint32_t releases)
{
	for (int i = 0; i < slots; i++) {
		mbar_init(&c.full[i], producers);
		mbar_init(&c.empty[i], releases);
	}
}

/* Producer: until the consumers have given the slot back. */
template <int slots>
DEVICE void channel_acquire(channel<slots> &c, cursor<slots> at)
{
	mbar_wait(&c.empty[at.slot], at.parity ^ 1);
}

/* Producer: the slot is full when `bytes` have landed. */
template <int slots>
DEVICE void channel_expect(channel<slots> &c, cursor<slots> at, uint32_t bytes)
{
	mbar_arrive_expect_tx(&c.full[at.slot], bytes);
}

/* Consumer: until the slot is full. */
template <int slots>
DEVICE void channel_wait(channel<slots> &c, cursor<slots> at)
{
	mbar_wait(&c.full[at.slot], at.parity);
}

/* Consumer: one arrival, by a thread that speaks for its warp or warpgroup. */
template <int slots>
DEVICE void channel_release(channel<slots> &c, cursor<slots> at)
{
	mbar_arrive(&c.empty[at.slot]);
}

/* ---- across a cluster ---- */

/* By all threads of all CTAs, once, after all channels are initialised: makes
 * them known, and that each CTA has started. Acts for __syncthreads(), too. */
DEVICE void channels_publish()
{
	fence_mbar_init();
	cluster_arrive_relaxed();
	cluster_wait();
}

/* Producer: until the consumers of every CTA that it fills the slot of have
 * given it back. */
template <int slots>
DEVICE void channel_acquire_cluster(channel<slots> &c, cursor<slots> at)
{
	mbar_wait_cluster(&c.empty[at.slot], at.parity ^ 1);
}

/* Consumer: one arrival at the producer in the CTA of that rank. */
template <int slots>
DEVICE void channel_release_to(channel<slots> &c, cursor<slots> at, uint32_t rank)
{
	mbar_arrive_at(&c.empty[at.slot], rank);
}
