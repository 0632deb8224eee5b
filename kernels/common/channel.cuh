/* channel: a ring of shared-memory slots between one producer thread, which fills
 * them by TMA, and the consumers that read them. It holds the two mbarriers of
 * each slot; the slots themselves belong to the kernel.
 *
 *   producer                         consumers
 *   acquire  waits for empty  <----  release   arrive on empty
 *   expect   arrives on full,
 *            with the bytes
 *   (TMA)    subtracts bytes  ---->  wait      waits for full
 *
 * A phase of a barrier is complete when all its arrivals have been made and, for
 * `full`, all its bytes have landed. A cursor walks the ring; its parity flips on
 * each lap. The producer waits with the opposite parity: the phase before phase 0
 * counts as complete, so the first lap does not wait.
 *
 * In a cluster each CTA has its own channel, at the same address. TMA multicast
 * fills the same slot of several CTAs, so a CTA that loads for its peers must wait
 * until all of them have released the slot: its `empty` counts the releases of
 * every CTA that it writes to. One fence and one barrier publish all channels of all
 * CTAs: each CTA calls channel_init() for each of its channels, then
 * channels_publish() once.
 *
 * A consumer that has only read the slot releases it by channel_release_read(). If it
 * has written what the other CTA reads, it calls channel_release_to(), whose fence
 * takes longer than the products of a slot. */
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

/* Called by one thread; __syncthreads() then publishes the barriers to the others.
 * `releases`: how many arrivals of consumers release one slot */
template <int slots>
DEVICE void channel_init(channel<slots> &c, uint32_t producers, uint32_t releases)
{
	for (int i = 0; i < slots; i++) {
		mbar_init(&c.full[i], producers);
		mbar_init(&c.empty[i], releases);
	}
}

/* Producer: waits until the consumers have released the slot. */
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

/* Consumer: waits until the slot is full. */
template <int slots>
DEVICE void channel_wait(channel<slots> &c, cursor<slots> at)
{
	mbar_wait(&c.full[at.slot], at.parity);
}

/* Consumer: one arrival, for all of its warp or warpgroup. The caller makes sure that all
 * reads of the warp or warpgroup are ordered before it. */
template <int slots>
DEVICE void channel_release(channel<slots> &c, cursor<slots> at)
{
	mbar_arrive(&c.empty[at.slot]);
}

/* ---- across a cluster ---- */

/* Called by all threads of all CTAs, once, after each CTA has initialised its channels. On
 * return all CTAs have started and their channels may be used. Includes __syncthreads(). */
DEVICE void channels_publish()
{
	fence_mbar_init();
	cluster_sync_relaxed();
}

/* Producer: waits until the consumers of every CTA whose slot it fills have
 * released it. */
template <int slots>
DEVICE void channel_acquire_cluster(channel<slots> &c, cursor<slots> at)
{
	mbar_wait_cluster(&c.empty[at.slot], at.parity ^ 1);
}

/* Consumer: waits for a slot that another CTA declares full. */
template <int slots>
DEVICE void channel_wait_cluster(channel<slots> &c, cursor<slots> at)
{
	mbar_wait_cluster(&c.full[at.slot], at.parity);
}

/* Consumer: one arrival on `empty` in the CTA of that rank. */
template <int slots>
DEVICE void channel_release_to(channel<slots> &c, cursor<slots> at, uint32_t rank)
{
	mbar_arrive_at(&c.empty[at.slot], rank);
}

/* Consumer: likewise, for a slot that it has only read and that TMA fills: without the fence,
 * see mbar_arrive_at_unscoped(). */
template <int slots>
DEVICE void channel_release_read(channel<slots> &c, cursor<slots> at, uint32_t rank)
{
	mbar_arrive_at_unscoped(&c.empty[at.slot], rank);
}
