/* multicast: multicast addresses, and the memory behind them. */
#include "internal.h"

uint64_t multicast_each(const struct exec_multicast *m, uint64_t addr, uint64_t bytes,
	void (*call)(void *user, uint64_t at, uint64_t from, uint64_t n), void *user)
{
	uint64_t sum = 0;

	for (size_t k = 0; k < m->n; k++) {
		const struct exec_binding *b = &m->bound[k];
		const uint64_t from = b->from > addr ? b->from : addr;
		const uint64_t end = b->from + b->bytes < addr + bytes ? b->from + b->bytes : addr + bytes;

		if (from >= end)
			continue;
		sum += end - from;
		if (call)
			call(user, b->at + (from - b->from), from - addr, end - from);
	}
	return sum;
}

bool multicast_is(uint64_t addr)
{
	struct exec_mem of;

	return exec_mem_find(addr, &of) && of.multicast;
}

const struct exec_multicast *multicast_find(struct warp *w, const struct xop *x, unsigned lane,
	uint64_t addr, uint64_t bytes)
{
	struct exec_mem of;

	if (!mem_multicast(w->worker->grid->device, addr, &of) || bytes > of.bytes - (addr - of.at)) {
		ex_fault(w, x, 1u << lane, FAULT_MULTICAST, SP_GLOBAL, addr, bytes,
			"no multicast object is mapped there");
		return NULL;
	}
	if (multicast_each(of.multicast, addr, bytes, NULL, NULL) < of.multicast->devices * bytes) {
		ex_fault(w, x, 1u << lane, FAULT_MULTICAST, SP_GLOBAL, addr, bytes,
			"not each of the %u devices has bound memory there", of.multicast->devices);
		return NULL;
	}
	mem_note_multicast(w->worker->grid, of.multicast, addr, bytes);
	return of.multicast;
}

void multicast_stored(struct warp *w, const struct xop *x, uint32_t lanes, uint64_t addr, uint64_t bytes)
{
	struct event e = ex_event(w, x, EV_FAULT, lanes);

	e.fault = (struct event_fault){ .fault = FAULT_MULTICAST_STORE, .space = SP_GLOBAL, .addr = addr,
		.bytes = (uint32_t)bytes,
		.text = "only multimem instructions may access multicast addresses" };
	if (w->sink)
		ex_emit(w->cluster, &e);
}
