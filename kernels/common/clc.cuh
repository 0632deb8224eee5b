/* clc: cluster launch control (sm_100). A running cluster takes over the work of one that has not
 * started: it cancels that cluster's launch and gets the number of its first CTA. A kernel is
 * launched with one cluster for each piece of work, and yet those that run become persistent. */
#pragma once

#include "ptx.cuh"

/* What a request returns, opaque. It is written by the async proxy. */
struct alignas(16) clc_answer {
	uint64_t low, high;
};

/* Asks to cancel a cluster. The answer is written asynchronously in this CTA, and 16 bytes count on
 * its barrier. Executed by one thread; not after an answer that nothing was canceled. */
DEVICE void clc_request(clc_answer *answer, uint64_t *full)
{
	asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
		".b128 [%0], [%1];"
		:: "r"(smem_at(answer)), "r"(smem_at(full)) : "memory");
}

/* The same answer to all CTAs of the cluster, at the same addresses */
DEVICE void clc_request_multicast(clc_answer *answer, uint64_t *full)
{
	asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
		".multicast::cluster::all.b128 [%0], [%1];"
		:: "r"(smem_at(answer)), "r"(smem_at(full)) : "memory");
}

/* Has a cluster been canceled? */
DEVICE bool clc_canceled(const clc_answer &a)
{
	uint32_t yes;

	asm volatile("{\n\t"
		".reg .pred p;\n\t"
		".reg .b128 answer;\n\t"
		"mov.b128 answer, {%1, %2};\n\t"
		"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer;\n\t"
		"selp.u32 %0, 1, 0, p;\n\t"
		"}" : "=r"(yes) : "l"(a.low), "l"(a.high));
	return yes;
}

/* blockIdx.x of the first CTA of the canceled cluster. Undefined if none has been canceled. */
DEVICE uint32_t clc_first_cta(const clc_answer &a)
{
	uint32_t x;

	asm volatile("{\n\t"
		".reg .b128 answer;\n\t"
		"mov.b128 answer, {%1, %2};\n\t"
		"clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, answer;\n\t"
		"}" : "=r"(x) : "l"(a.low), "l"(a.high));
	return x;
}
