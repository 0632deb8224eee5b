/* fence: a fence only reports an event. One cluster is emulated by one thread; between clusters
 * a full fence of the host orders memory. */
#include "async.h"

enum { B_KIND, B_SEM, B_SCOPE, B_SPACE, B_PROXY, B_OWN_CTA };

static enum step op_fence(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const enum ev_sem sem = (enum ev_sem)x->i.b[B_SEM];
	const enum ev_scope scope = (enum ev_scope)x->i.b[B_SCOPE];
	const enum ev_space space = (enum ev_space)x->i.b[B_SPACE];
	struct event e = ex_event(w, x, (enum ev_kind)x->i.b[B_KIND], lanes);

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!w->sink)
		return STEP_NEXT;
	if (e.kind == EV_FENCE)
		e.fence = (struct event_fence){ .sem = sem, .scope = scope, .space = space };
	else if (e.kind == EV_FENCE_PROXY)
		e.fence_proxy = (struct event_fence_proxy){ .sem = sem, .scope = scope,
			.space = space, .proxy = (enum ev_proxy)x->i.b[B_PROXY],
			.own_cta = x->i.b[B_OWN_CTA] };
	ex_emit(w->cluster, &e);
	return STEP_NEXT;
}

static bool decode(const struct ptx_insn *i, struct xop *x, enum ev_kind kind, enum ev_sem sem,
	enum ev_space space, unsigned proxy)
{
	enum ev_sem s = ptx_sem_of(i, SEM_WEAK);

	x->i.b[B_KIND] = (uint8_t)kind;
	x->i.b[B_SEM] = (uint8_t)(s == SEM_WEAK ? sem : s);
	x->i.b[B_SCOPE] = (uint8_t)ptx_scope_of(i, SCOPE_NONE);
	x->i.b[B_SPACE] = (uint8_t)space;
	x->i.b[B_PROXY] = (uint8_t)proxy;
	x->i.b[B_OWN_CTA] = ptx_fences_own_cta(i);
	x->fn = op_fence;
	return true;
}

static enum ev_space space_of(const struct ptx_insn *i)
{
	switch (ptx_space_of(i, 0)) {
	case PS_global: return SP_GLOBAL;
	case PS_shared:
	case PS_shared_cluster: return SP_SHARED;
	default: return SP_ANY;
	}
}

DECODER(fence)
{
	bool restricted = ptx_has(i, MOD_sync_restrict_shared_cta) ||
		ptx_has(i, MOD_sync_restrict_shared_cluster);

	(void)d;
	return decode(i, x, EV_FENCE, SEM_ACQ_REL, restricted ? SP_SHARED : SP_ANY, 0);
}

DECODER(membar)
{
	(void)d;
	return decode(i, x, EV_FENCE, SEM_SC, SP_ANY, 0);
}

DECODER(fence_mbarrier_init)
{
	(void)d;
	return decode(i, x, EV_FENCE_MBARRIER_INIT, SEM_RELEASE, SP_ANY, 0);
}

DECODER(fence_proxy_alias)
{
	(void)d;
	return decode(i, x, EV_FENCE_PROXY, SEM_WEAK, SP_ANY, PROXY_ALIAS);
}

DECODER(membar_proxy_alias)
{
	(void)d;
	return decode(i, x, EV_FENCE_PROXY, SEM_WEAK, SP_ANY, PROXY_ALIAS);
}

DECODER(fence_proxy_async)
{
	(void)d;
	return decode(i, x, EV_FENCE_PROXY, SEM_WEAK, space_of(i), PROXY_ASYNC);
}

DECODER(fence_proxy_async_generic)
{
	(void)d;
	return decode(i, x, EV_FENCE_PROXY, SEM_WEAK, space_of(i),
		ptx_has(i, MOD_acquire) ? PROXY_ASYNC_ACQUIRE : PROXY_ASYNC_RELEASE);
}

/* o[0..1]: address of the tensor map, of the acquire form */
static enum step op_acquire_map(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint64_t addr[LANES];

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	lane_addrs(w, get_addr(x, 0), addr);
	for (uint32_t rest = lanes, same; w->sink && rest; rest &= ~same) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		struct event e;

		same = same_lanes(addr, rest, l);
		e = ex_event(w, x, EV_FENCE_PROXY, same);
		e.fence_proxy = (struct event_fence_proxy){ .proxy = PROXY_TENSORMAP_ACQUIRE,
			.sem = SEM_ACQUIRE, .scope = (enum ev_scope)x->i.b[B_SCOPE],
			.space = SP_GLOBAL, .addr = addr[l] };
		ex_emit(w->cluster, &e);
	}
	return STEP_NEXT;
}

DECODER(fence_proxy_tensormap)
{
	if (!ptx_has(i, MOD_acquire))
		return decode(i, x, EV_FENCE_PROXY, SEM_RELEASE, SP_GLOBAL,
			PROXY_TENSORMAP_RELEASE);
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	x->i.b[B_SCOPE] = (uint8_t)ptx_scope_of(i, SCOPE_NONE);
	x->fn = op_acquire_map;
	return true;
}
