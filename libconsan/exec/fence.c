/* fence: fences do nothing here but tell that they happened. One cluster is one
 * thread, and memory between clusters is the host's, which a full fence orders. */
#include "async.h"

enum { B_KIND, B_SEM, B_SCOPE, B_SPACE, B_MODE };

static enum step op_fence(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct event e = ex_event(w, x, (enum ev_kind)x->i.b[B_KIND], lanes);

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!w->sink)
		return STEP_NEXT;
	e.sem = x->i.b[B_SEM];
	e.scope = x->i.b[B_SCOPE];
	e.space = x->i.b[B_SPACE];
	e.mode = x->i.b[B_MODE];
	ex_emit(w->cluster, &e);
	return STEP_NEXT;
}

static bool decode(const struct ptx_insn *i, struct xop *x, enum ev_kind kind, enum ev_sem sem,
	enum ev_space space, unsigned mode)
{
	enum ev_sem s = ptx_sem_of(i, SEM_WEAK);

	x->i.b[B_KIND] = (uint8_t)kind;
	x->i.b[B_SEM] = (uint8_t)(s == SEM_WEAK ? sem : s);
	x->i.b[B_SCOPE] = (uint8_t)ptx_scope_of(i, SCOPE_NONE);
	x->i.b[B_SPACE] = (uint8_t)space;
	x->i.b[B_MODE] = (uint8_t)mode;
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
	return decode(i, x, EV_FENCE_MBINIT, SEM_RELEASE, SP_ANY, 0);
}

DECODER(fence_proxy_alias)
{
	(void)d;
	return decode(i, x, EV_FENCE_PROXY, SEM_WEAK, SP_ANY, EVP_ALIAS);
}

DECODER(membar_proxy_alias)
{
	(void)d;
	return decode(i, x, EV_FENCE_PROXY, SEM_WEAK, SP_ANY, EVP_ALIAS);
}

DECODER(fence_proxy_async)
{
	(void)d;
	return decode(i, x, EV_FENCE_PROXY, SEM_WEAK, space_of(i), EVP_ASYNC);
}

DECODER(fence_proxy_async_generic)
{
	(void)d;
	return decode(i, x, EV_FENCE_PROXY, SEM_WEAK, space_of(i),
		ptx_has(i, MOD_acquire) ? EVP_ASYNC_ACQUIRE : EVP_ASYNC_RELEASE);
}

/* o[0..1]: the map's address, of the acquire form */
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
		e.mode = EVP_TENSORMAP_ACQUIRE;
		e.sem = SEM_ACQUIRE;
		e.scope = x->i.b[B_SCOPE];
		e.space = SP_GLOBAL;
		e.addr = addr[l];
		e.size = 128;
		ex_emit(w->cluster, &e);
	}
	return STEP_NEXT;
}

DECODER(fence_proxy_tensormap)
{
	if (!ptx_has(i, MOD_acquire))
		return decode(i, x, EV_FENCE_PROXY, SEM_RELEASE, SP_GLOBAL, EVP_TENSORMAP_RELEASE);
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	x->i.b[B_SCOPE] = (uint8_t)ptx_scope_of(i, SCOPE_NONE);
	x->fn = op_acquire_map;
	return true;
}
