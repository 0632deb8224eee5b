/* refuse: checks of operand values; see refuse.h. */
#include "refuse.h"

#include <stdio.h>

#include "libconsan/ptx/ir.h"

bool refusal_set(struct refusal *r, unsigned mode, enum ev_space space, uint64_t addr,
	uint64_t size, const char *fmt, ...)
{
	va_list ap;

	r->mode = (uint8_t)mode;
	r->space = (uint8_t)space;
	r->addr = addr;
	r->size = (uint32_t)size;
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof r->why, fmt, ap);
	va_end(ap);
	return true;
}

/* ---- addresses ---- */

bool refuse_outside(struct refusal *r, const struct shared_view *v, bool cluster, uint64_t addr,
	uint64_t bytes)
{
	uint32_t rank = SHARED_RANK(addr);

	if (addr >> 32)
		return refusal_set(r, FAULT_SHARED_OOB, SP_SHARED, addr, bytes,
			"not a shared memory address");
	if (rank != v->rank && (!cluster || rank >= v->nctas))
		return refusal_set(r, cluster ? FAULT_CLUSTER_RANK : FAULT_SHARED_OOB, SP_SHARED, addr, bytes,
			"address 0x%x lies in the window of CTA %u of %u, this is CTA %u",
			(uint32_t)addr, rank, v->nctas, v->rank);
	return refusal_set(r, FAULT_SHARED_OOB, SP_SHARED, SHARED_OFFSET(addr), bytes,
		"the CTA has %u bytes of shared memory", v->bytes);
}

bool refuse_global(struct refusal *r, uint64_t addr, uint64_t size, uint64_t from, uint64_t bytes)
{
	const uint64_t near = 64 << 10;
	uint64_t end = from + bytes;

	if (bytes && addr - from < bytes + near)
		return refusal_set(r, FAULT_GLOBAL_OOB, SP_GLOBAL, addr, size, addr < end
			? "%llu bytes before the end of an allocation of %llu bytes"
			: "%llu bytes past the end of an allocation of %llu bytes",
			(unsigned long long)(addr < end ? end - addr : addr - end),
			(unsigned long long)bytes);
	return refusal_set(r, FAULT_GLOBAL_OOB, SP_GLOBAL, addr, size, addr < near ? "null pointer"
		: "no allocation is near");
}

bool refuse_rank(struct refusal *r, const struct shared_view *v, uint64_t addr, uint32_t rank)
{
	return rank >= v->nctas && refusal_set(r, FAULT_CLUSTER_RANK, SP_SHARED, addr, 0,
		"CTA rank %u, the cluster has %u CTAs", rank, v->nctas);
}

bool refuse_mapa(struct refusal *r, uint64_t addr)
{
	return refusal_set(r, FAULT_SHARED_OOB, SP_ANY, addr, 0,
		"mapa of an address outside shared memory");
}

/* ---- matrices, cp.async ---- */

bool refuse_matrix(struct refusal *r, const struct shared_view *v, enum ev_space space,
	uint32_t owner, uint64_t addr)
{
	return (space != SP_SHARED || owner != v->rank) && refusal_set(r, FAULT_SHARED_OOB, space, addr, 16,
		"not in shared memory of the executing CTA");
}

bool refuse_st_bulk(struct refusal *r, enum ev_space space, uint64_t addr, uint64_t bytes)
{
	return (space != SP_SHARED || bytes % 8) && refusal_set(r, FAULT_MISALIGNED, space, addr, bytes,
		"st.bulk of %llu bytes: it needs shared memory and a multiple of 8",
		(unsigned long long)bytes);
}

bool refuse_cp_read(struct refusal *r, uint64_t src, uint32_t size, uint32_t read)
{
	return read > size && refusal_set(r, FAULT_CP_OPERAND, SP_GLOBAL, src, size,
		"src-size %u is more than cp-size %u", read, size);
}

bool refuse_cp_align(struct refusal *r, uint64_t dst, uint64_t src, uint32_t size, uint32_t read)
{
	bool bad = dst % size;

	return (bad || (read && src % size)) && refusal_set(r, FAULT_CP_OPERAND, bad ? SP_SHARED : SP_GLOBAL,
		bad ? dst : src, size, "the address must be a multiple of %u", size);
}

bool refuse_cp_owner(struct refusal *r, const struct shared_view *v, enum ev_space space,
	uint32_t owner, uint64_t addr, uint32_t size)
{
	return (space != SP_SHARED || owner != v->rank) &&
		refusal_set(r, FAULT_CP_OPERAND, space, addr, size, "the destination is not in shared memory "
		"of the executing CTA");
}

/* ---- bulk copies, st.async ---- */

bool refuse_bulk_size(struct refusal *r, uint64_t shared, uint32_t bytes)
{
	return bytes % 16 && refusal_set(r, FAULT_BULK_OPERAND, SP_SHARED, shared, bytes,
		"the size %u is not a multiple of 16", bytes);
}

bool refuse_bulk_align(struct refusal *r, enum ev_space space, uint64_t addr, uint32_t bytes)
{
	return addr % 16 && refusal_set(r, FAULT_BULK_OPERAND, space, addr, bytes,
		space == SP_SHARED ? "the shared address must be a multiple of 16"
		: "the address must be a multiple of 16");
}

bool refuse_box_align(struct refusal *r, uint64_t addr, uint32_t bytes, uint32_t align)
{
	return addr % align && refusal_set(r, FAULT_TENSOR_OPERAND, SP_SHARED, addr, bytes,
		"the shared address must be a multiple of %u", align);
}

bool refuse_map_align(struct refusal *r, uint64_t addr)
{
	return addr % 64 && refusal_set(r, FAULT_TENSORMAP, SP_GLOBAL, addr, 128,
		"the address of the map must be a multiple of 64");
}

bool refuse_bulk_owner(struct refusal *r, const struct shared_view *v, uint32_t owner, uint64_t at,
	uint32_t bytes)
{
	return owner != v->rank && refusal_set(r, FAULT_BULK_OWNER, SP_SHARED, at, bytes,
		"the object lies in the CTA with rank %u", owner);
}

bool refuse_signal(struct refusal *r, uint32_t owner, uint32_t mbar_owner, uint64_t mbar, bool pair)
{
	return mbar_owner != owner && !(pair && (mbar_owner ^ owner) == 1) &&
		refusal_set(r, FAULT_BULK_OWNER, SP_SHARED, mbar, 8,
			"the mbarrier lies in CTA %u, the destination in CTA %u", mbar_owner, owner);
}

bool refuse_ctas(struct refusal *r, const struct shared_view *v, uint32_t mask, uint64_t at,
	uint32_t bytes)
{
	return (!mask || mask >> v->nctas) && refusal_set(r, FAULT_CLUSTER_RANK, SP_SHARED, at, bytes,
		"the CTA mask 0x%x is not valid in a cluster of %u", mask, v->nctas);
}

/* Not in the ISA. An H200 stops the kernel; later GPUs were not tried. */
bool refuse_peer(struct refusal *r, const struct launch_info *l, uint64_t at, uint32_t bytes)
{
	return !l->clustered && l->sm < 100 && refusal_set(r, FAULT_UNCLUSTERED, SP_SHARED, at, bytes,
		"an illegal instruction on Hopper: the launch has no cluster dimensions");
}

bool refuse_cancel(struct refusal *r, const struct shared_view *v, uint64_t response, uint64_t mbar)
{
	const char *why = SHARED_RANK(response) != v->rank
			? "the response is in shared memory of another CTA"
		: SHARED_RANK(mbar) != v->rank ? "the mbarrier is in shared memory of another CTA"
		: response % 16 ? "the address of the response must be a multiple of 16" : NULL;

	return why && refusal_set(r, FAULT_CANCEL_OPERAND, SP_SHARED, SHARED_OFFSET(response), 16, "%s",
		why);
}

bool refuse_red_async(struct refusal *r, const struct shared_view *v, uint32_t owner, uint64_t at,
	uint32_t bytes)
{
	return owner == v->rank && refusal_set(r, FAULT_BULK_OWNER, SP_SHARED, at, bytes,
		"the destination of red.async must be another CTA; the executing CTA has rank %u", v->rank);
}

/* ---- mbarriers, barriers, warps ---- */

bool refuse_bar(struct refusal *r, uint32_t id, uint32_t count, uint32_t threads, bool arrives)
{
	if (id >= NAMED_BARRIERS)
		return refusal_set(r, FAULT_BAR_OPERAND, SP_ANY, id, 0, "barrier %u, a CTA has %d", id,
			NAMED_BARRIERS);
	return (count % 32 || count > threads || (!count && arrives)) &&
		refusal_set(r, FAULT_BAR_OPERAND, SP_ANY, id, 0, "barrier %u: thread count %u, it must be a "
			"multiple of 32 and at most %u", id, count, threads);
}

bool refuse_mask(struct refusal *r, uint32_t mask)
{
	return refusal_set(r, FAULT_MASK, SP_ANY, mask, 0,
		"member mask 0x%08x does not name the lane that executes it", mask);
}

bool setmaxnreg_counts(const struct ptx_func *f)
{
	return f->maxnreg || (f->minnctapersm && (f->maxntid[0] || f->reqntid[0]));
}

bool refuse_setmaxnreg(struct refusal *r, uint32_t want, bool inc, uint32_t has)
{
	has = has ? has : want;
	return (want < 24 || want > 256 || want % 8 || (inc ? want < has : want > has)) &&
		refusal_set(r, FAULT_SETMAXNREG, SP_ANY, want, 0, "setmaxnreg.%s %u, the warp has %u",
			inc ? "inc" : "dec", want, has);
}

/* ---- wgmma ---- */

bool refuse_matrix_end(struct refusal *r, const struct shared_view *v, const char *name,
	uint64_t desc, uint32_t top)
{
	return top + 16 > v->bytes && refusal_set(r, FAULT_WG_DESCRIPTOR, SP_SHARED, top, 16,
		"descriptor 0x%016llx of %s addresses 0x%x, outside the CTA's %u bytes of shared memory",
		(unsigned long long)desc, name, top, v->bytes);
}

bool refuse_unlike(struct refusal *r, const char *name, uint64_t desc, uint64_t first)
{
	return desc != first && refusal_set(r, FAULT_WG_DESCRIPTOR, SP_SHARED, 0, 0,
		"the descriptor of %s is 0x%016llx here and 0x%016llx in the first thread of the warpgroup",
		name, (unsigned long long)desc, (unsigned long long)first);
}

bool refuse_group(struct refusal *r, uint32_t warp, uint32_t nwarps)
{
	return (warp | 3u) >= nwarps && refusal_set(r, FAULT_WG_DIVERGED, SP_ANY, 0, 0,
		"the CTA does not have four warps from warp %u on", warp & ~3u);
}
