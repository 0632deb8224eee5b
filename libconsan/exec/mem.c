/* mem: the process-wide map of device memory, the reserved generic windows, and the resolution of
 * one address. The lane loops of ld and st are in mem_lane.c; they call this file for unusual
 * addresses. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- the map ----
 *
 * Readers use an immutable sorted array without a lock; writers publish a new one. Old arrays are
 * freed when no launch runs. */
struct map {
	struct map *retired;
	size_t n;
	struct exec_mem at[];
};

static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER;
static struct map *_Atomic map_now;
static struct map *map_retired;
static unsigned map_launches;
_Atomic bool mem_multicasts;

/* index of the first allocation that starts after at */
static size_t upper(const struct map *m, uint64_t at)
{
	size_t lo = 0, hi = m ? m->n : 0;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (m->at[mid].at <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void free_retired(void)
{
	while (!map_launches && map_retired) {
		struct map *m = map_retired;

		map_retired = m->retired;
		free(m);
	}
}

static void publish(struct map *m)
{
	struct map *old = atomic_exchange(&map_now, m);

	if (old) {
		old->retired = map_retired;
		map_retired = old;
	}
	free_retired();
}

static struct map *map_copy(const struct map *old, size_t extra)
{
	size_t n = old ? old->n : 0;
	struct map *m = base_alloc(sizeof *m + (n + extra) * sizeof m->at[0]);

	m->n = n;
	if (n)
		memcpy(m->at, old->at, n * sizeof m->at[0]);
	return m;
}

bool exec_mem_at(size_t k, struct exec_mem *out)
{
	const struct map *m;

	pthread_mutex_lock(&map_lock);
	m = atomic_load(&map_now);
	if (m && k < m->n)
		*out = m->at[k];
	pthread_mutex_unlock(&map_lock);
	return m && k < m->n;
}

void exec_mem_put(const struct exec_mem *new)
{
	struct map *m;
	size_t i;

	if (!new->at || !new->bytes)
		return;
	if (new->multicast)
		atomic_store(&mem_multicasts, true);
	pthread_mutex_lock(&map_lock);
	m = map_copy(atomic_load(&map_now), 1);
	i = upper(m, new->at);
	memmove(&m->at[i + 1], &m->at[i], (m->n - i) * sizeof m->at[0]);
	m->at[i] = *new;
	m->n++;
	publish(m);
	pthread_mutex_unlock(&map_lock);
}

void exec_mem_add(void *at, uint64_t bytes, enum exec_mem_kind kind, bool read_only)
{
	exec_mem_put(&(struct exec_mem){ (uint64_t)(uintptr_t)at, bytes, kind, read_only,
		0, NULL, false, NULL });
}

bool exec_mem_remove(void *at)
{
	struct map *m = NULL;
	const struct map *old;
	size_t i;

	pthread_mutex_lock(&map_lock);
	old = atomic_load(&map_now);
	i = upper(old, (uint64_t)(uintptr_t)at);
	if (i && old->at[i - 1].at == (uint64_t)(uintptr_t)at) {
		m = map_copy(old, 0);
		memmove(&m->at[i - 1], &m->at[i], (m->n - i) * sizeof m->at[0]);
		m->n--;
		publish(m);
	}
	pthread_mutex_unlock(&map_lock);
	return m;
}

static bool find(uint64_t at, struct exec_mem *out)
{
	const struct map *m = atomic_load(&map_now);
	size_t i = upper(m, at);

	if (!i || at - m->at[i - 1].at >= m->at[i - 1].bytes)
		return false;
	*out = m->at[i - 1];
	return true;
}

bool exec_mem_find(uint64_t at, struct exec_mem *out)
{
	bool found;

	pthread_mutex_lock(&map_lock);
	found = find(at, out);
	pthread_mutex_unlock(&map_lock);
	return found;
}

static bool may_read(const struct exec_mem *m, unsigned device)
{
	return !m->multicast && (!m->access || m->access->read >> device & 1);
}

static bool may_not_write(const struct exec_mem *m, unsigned device)
{
	return m->read_only || (m->access && !(m->access->write >> device & 1));
}

bool mem_lookup(unsigned device, uint64_t at, struct exec_range *out)
{
	const struct map *m = atomic_load(&map_now);
	size_t i = upper(m, at);
	const struct exec_mem *a = i ? &m->at[i - 1] : NULL;

	if (!a || at - a->at >= a->bytes || !may_read(a, device))
		return false;
	*out = (struct exec_range){ a->at, a->at + a->bytes, may_not_write(a, device) };
	for (; i < m->n && m->at[i].joins && m->at[i].at == out->hi && may_read(&m->at[i], device)
			&& may_not_write(&m->at[i], device) == out->read_only; i++)
		out->hi += m->at[i].bytes;
	return true;
}

/* ---- first writes ---- */

static bool wants_first_writes(const struct grid *g)
{
	return g->l->observer && g->l->observer->first_write;
}

/* With g->writing held. What the launch itself has made is nobody's. */
static bool was_written(const struct grid *g, uint64_t lo)
{
	if (lo == (uint64_t)(uintptr_t)g->workspace)
		return true;
	for (size_t i = 0; i < g->written.n; i++)
		if (g->written.at[i] == lo)
			return true;
	return false;
}

bool mem_find(struct grid *g, uint64_t at, struct exec_range *out)
{
	if (!mem_lookup(g->device, at, out))
		return false;
	if (!wants_first_writes(g))
		return true;
	pthread_mutex_lock(&g->writing);
	out->read_only |= !was_written(g, out->lo);
	pthread_mutex_unlock(&g->writing);
	return true;
}

static void note_write(struct grid *g, uint64_t lo, uint64_t bytes)
{
	if (!wants_first_writes(g))
		return;
	pthread_mutex_lock(&g->writing);
	if (!was_written(g, lo)) {
		g->l->observer->first_write(g->l->observer->user, lo, bytes);
		vec_push(&g->written, lo);
	}
	pthread_mutex_unlock(&g->writing);
}

void mem_may_write(struct grid *g, struct exec_range *r)
{
	struct exec_range real;

	if (!mem_lookup(g->device, r->lo, &real) || real.read_only)
		return;
	note_write(g, real.lo, real.hi - real.lo);
	*r = real;
}

static void note_piece(void *user, uint64_t at, uint64_t from, uint64_t n)
{
	struct exec_mem of;

	(void)from, (void)n;
	if (find(at, &of))
		note_write(user, of.at, of.bytes);
}

void mem_note_multicast(struct grid *g, const struct exec_multicast *m, uint64_t addr, uint64_t bytes)
{
	if (wants_first_writes(g))
		multicast_each(m, addr, bytes, note_piece, g);
}

bool mem_multicast(unsigned device, uint64_t at, struct exec_mem *out)
{
	return find(at, out) && out->multicast && (!out->access || out->access->read >> device & 1);
}

/* ---- devices ---- */

static struct exec_access ordinary[EXEC_DEVICES] = {
#define OWN(d) [d] = { 1u << d, 1u << d }
	OWN(0), OWN(1), OWN(2), OWN(3), OWN(4), OWN(5), OWN(6), OWN(7),
	OWN(8), OWN(9), OWN(10), OWN(11), OWN(12), OWN(13), OWN(14), OWN(15)
#undef OWN
};

const struct exec_access *exec_device_memory(unsigned device)
{
	return &ordinary[device];
}

bool exec_peer_access(unsigned device, unsigned peer, bool on)
{
	struct exec_access *a = &ordinary[peer];
	const uint32_t bit = 1u << device;
	const uint32_t was = on ? atomic_fetch_or(&a->read, bit) : atomic_fetch_and(&a->read, ~bit);

	if (on)
		atomic_fetch_or(&a->write, bit);
	else
		atomic_fetch_and(&a->write, ~bit);
	return !(was & bit) == on;
}

/* ---- locks on stripes of global memory ---- */

static pthread_mutex_t stripe[64] = {
#define FOUR PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, \
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER
#define SIXTEEN FOUR, FOUR, FOUR, FOUR
	SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN
#undef SIXTEEN
#undef FOUR
};

void mem_lock(uint64_t stripes)
{
	for (; stripes; stripes &= stripes - 1)
		pthread_mutex_lock(&stripe[__builtin_ctzll(stripes)]);
}

void mem_unlock(uint64_t stripes)
{
	for (; stripes; stripes &= stripes - 1)
		pthread_mutex_unlock(&stripe[__builtin_ctzll(stripes)]);
}

void mem_launch_begin(void)
{
	pthread_mutex_lock(&map_lock);
	map_launches++;
	pthread_mutex_unlock(&map_lock);
	mem_windows_init();
}

void mem_launch_end(void)
{
	pthread_mutex_lock(&map_lock);
	map_launches--;
	free_retired();
	pthread_mutex_unlock(&map_lock);
}

/* ---- generic windows ---- */

uint64_t ex_shared_window, ex_local_window, ex_param_window;

static void reserve(void)
{
	const size_t bytes = SHARED_WINDOW_BYTES + LOCAL_WINDOW_BYTES + PARAM_WINDOW_BYTES;
	const size_t align = (size_t)1 << 32;
	char *at = mmap(NULL, bytes + align, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (at == MAP_FAILED)
		base_die("cannot reserve %zu bytes of address space", bytes + align);
	before = -(uintptr_t)at & (align - 1);
	if (before)
		munmap(at, before);
	munmap(at + before + bytes, align - before);
	ex_shared_window = (uintptr_t)at + before;
	ex_local_window = ex_shared_window + SHARED_WINDOW_BYTES;
	ex_param_window = ex_local_window + LOCAL_WINDOW_BYTES;
}

void mem_windows_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, reserve);
}

/* ---- one address ---- */

bool ex_global_ok(struct worker *wk, uint64_t addr, uint64_t bytes, bool write)
{
	struct exec_range *h = &wk->hint[255], r;

	if (addr - h->lo < h->hi - h->lo && bytes <= h->hi - addr && !(write && h->read_only))
		return true;
	if (!mem_find(wk->grid, addr, &r) || bytes > r.hi - addr)
		return false;
	if (write && r.read_only)
		mem_may_write(wk->grid, &r);
	if (write && r.read_only)
		return false;
	*h = r;
	return true;
}

static bool global_fault(struct warp *w, const struct xop *x, uint32_t lanes,
	uint64_t addr, uint64_t bytes)
{
	const unsigned device = w->worker->grid->device;
	const struct map *m = atomic_load(&map_now);
	size_t i = upper(m, addr);
	struct refusal why;
	struct exec_range r;
	struct exec_mem of;

	if (find(addr, &of) && of.access && !(of.access->read >> device & 1)) {
		ex_fault(w, x, lanes, FAULT_PEER, SP_GLOBAL, addr, bytes, of.access->read
			? "memory of device %u, to which device %u has no access"
			: "memory of device %u, which no device may access yet", of.device, device);
		return false;
	}
	if (find(addr, &of) && of.multicast) {
		ex_fault(w, x, lanes, FAULT_MULTICAST, SP_GLOBAL, addr, bytes,
			"only multimem instructions may access multicast addresses");
		return false;
	}
	if (mem_lookup(device, addr, &r) && r.read_only && bytes <= r.hi - addr) {
		ex_fault(w, x, lanes, FAULT_CONST_WRITE, SP_CONST, addr, bytes,
			"write to read-only memory");
		return false;
	}
	refuse_global(&why, addr, bytes, i ? m->at[i - 1].at : 0, i ? m->at[i - 1].bytes : 0);
	ex_refuse(w, x, lanes, &why);
	return false;
}

static bool resolve_shared(struct warp *w, const struct xop *x, uint32_t lanes,
	bool cluster, uint64_t addr, uint64_t bytes, struct xplace *out)
{
	const struct shared_view v = ex_view(w);
	uint32_t at = SHARED_OFFSET(addr);
	struct refusal why;
	struct cta *cta;

	if (refuse_shared(&why, &v, cluster, addr, bytes)) {
		ex_refuse(w, x, lanes, &why);
		return false;
	}
	cta = &w->cluster->cta[SHARED_RANK(addr)];
	*out = (struct xplace){ SP_SHARED, cta, at, cta->shared + at };
	return true;
}

/* Body .param variables of device functions follow the entry's parameters in the param space at
 * this distance. They are in the local frame. */
static bool resolve_local(struct warp *w, const struct xop *x, uint32_t lanes,
	uint64_t at, uint64_t bytes, struct xplace *out)
{
	uint32_t limit = w->worker->grid->k->local_stack;
	unsigned lane = (unsigned)__builtin_ctz(lanes);

	if (at > limit || bytes > limit - at) {
		ex_fault(w, x, lanes, FAULT_LOCAL_OOB, SP_LOCAL, at, bytes,
			"the thread has %u bytes of local memory", limit);
		return false;
	}
	*out = (struct xplace){ SP_LOCAL, NULL, at, w->local + (size_t)lane * limit + at };
	return true;
}

static bool resolve_param(struct warp *w, const struct xop *x, uint32_t lanes,
	uint64_t at, uint64_t bytes, bool write, struct xplace *out)
{
	const struct grid *g = w->worker->grid;

	if (at >= PARAM_WINDOW_BYTES)
		return resolve_local(w, x, lanes, at - PARAM_WINDOW_BYTES, bytes, out);
	if (write) {
		ex_fault(w, x, lanes, FAULT_CONST_WRITE, SP_PARAM, at, bytes,
			"write to a kernel parameter");
		return false;
	}
	if (at > g->k->info.param_bytes || bytes > g->k->info.param_bytes - at) {
		ex_fault(w, x, lanes, FAULT_LOCAL_OOB, SP_PARAM, at, bytes,
			"the kernel has %u bytes of parameters", g->k->info.param_bytes);
		return false;
	}
	*out = (struct xplace){ SP_PARAM, NULL, at, (unsigned char *)(uintptr_t)g->l->params + at };
	return true;
}

bool ex_resolve(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, uint64_t addr, uint64_t bytes, uint32_t align,
	bool write, struct xplace *out)
{
	struct refusal why;

	if (refuse_align(&why, space == PS_shared || space == PS_shared_cluster ? SP_SHARED
			: space == PS_local ? SP_LOCAL : SP_GLOBAL, addr, bytes, align)) {
		ex_refuse(w, x, lanes, &why);
		return false;
	}
	switch (space) {
	case PS_shared:
	case PS_shared_cluster:
		return resolve_shared(w, x, lanes, space == PS_shared_cluster, addr, bytes, out);
	case PS_local:
		return resolve_local(w, x, lanes, addr, bytes, out);
	case PS_param:
		return resolve_param(w, x, lanes, addr, bytes, write, out);
	case PS_none:
		if (addr - ex_shared_window < SHARED_WINDOW_BYTES)
			return resolve_shared(w, x, lanes, true, addr - ex_shared_window, bytes,
				out);
		if (addr - ex_local_window < LOCAL_WINDOW_BYTES)
			return resolve_local(w, x, lanes, addr - ex_local_window, bytes, out);
		if (addr - ex_param_window < PARAM_WINDOW_BYTES)
			return resolve_param(w, x, lanes, addr - ex_param_window, bytes, write,
				out);
		break;
	case PS_global:
	case PS_const:
	case PS_reg:
	case PS_sreg:
		break;
	}
	if (!ex_global_ok(w->worker, addr, bytes, write))
		return global_fault(w, x, lanes, addr, bytes);
	*out = (struct xplace){ space == PS_const ? SP_CONST : SP_GLOBAL, NULL, addr,
		(unsigned char *)(uintptr_t)addr };
	return true;
}

/* ---- events and faults ---- */

void ex_lanes(struct ev_lanes *at, uint32_t lanes, const uint64_t addr[LANES])
{
	unsigned first = (unsigned)__builtin_ctz(lanes);
	uint32_t others = lanes & (lanes - 1);
	int64_t stride = 0;

	if (others) {
		unsigned second = (unsigned)__builtin_ctz(others);
		int64_t d = (int64_t)(addr[second] - addr[first]), n = second - first;

		stride = n == 1 ? d : d / n;
		if (stride * n != d || stride != (int32_t)stride)
			goto scattered;
	}
	if (lanes == UINT32_MAX) {
		uint64_t odd = addr[LANES - 1] ^ (addr[0] + (uint64_t)stride * (LANES - 1));

		for (unsigned l = 0; l < LANES && !odd; l += 8)
			for (unsigned k = l; k < l + 8; k++)
				odd |= addr[k] ^ (addr[0] + (uint64_t)stride * k);
		if (odd)
			goto scattered;
		others = 0;
	}
	for EACH_LANE(l, others)
		if (addr[l] != addr[first] + (uint64_t)(stride * (int64_t)(l - first)))
			goto scattered;
	at->base = addr[first] - (uint64_t)(stride * (int64_t)first);
	at->stride = (int32_t)stride;
	return;
scattered:
	at->base = addr[first];
	at->lane = addr;
}

static enum exec_status fault_status(unsigned mode)
{
	return mode == FAULT_TRAP || mode == FAULT_ASSERT ? EXEC_TRAP : EXEC_FAULT;
}

static void fault(struct cluster *c, struct event *e, const char *fmt, va_list ap)
{
	const enum ev_fault id = e->fault.fault;
	char why[200], text[400];

	if (c->stop)
		return; /* only the first fault is reported */
	vsnprintf(why, sizeof why, fmt, ap);
	e->fault.text = why;
	if (c->sink)
		ex_emit(c, e);
	snprintf(text, sizeof text, "%s%s%s", event_fault_text(id), why[0] ? ": " : "", why);
	c->stop = true;
	grid_fail(c->grid, c->info.id, fault_status(id), e->site, text);
	pthread_mutex_lock(&c->grid->lock);
	if (c->grid->bad_cluster == c->info.id)
		c->grid->fault = id;
	pthread_mutex_unlock(&c->grid->lock);
}

enum step ex_fault(struct warp *w, const struct xop *x, uint32_t lanes, unsigned mode,
	enum ev_space space, uint64_t addr, uint64_t size, const char *fmt, ...)
{
	struct event e = ex_event(w, x, EV_FAULT, lanes);
	va_list ap;

	e.fault.fault = (enum ev_fault)mode;
	e.fault.space = space;
	e.fault.addr = addr;
	e.fault.bytes = (uint32_t)size;
	va_start(ap, fmt);
	fault(w->cluster, &e, fmt, ap);
	va_end(ap);
	return STEP_FAULT;
}

enum step ex_refuse(struct warp *w, const struct xop *x, uint32_t lanes, const struct refusal *r)
{
	return ex_fault(w, x, lanes, r->mode, (enum ev_space)r->space, r->addr, r->size, "%s",
		r->why);
}
