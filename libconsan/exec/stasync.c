/* stasync: st.async and red.async: stores and reductions into shared memory of a CTA of the cluster
 * that complete on an mbarrier there. Each lane's is an operation of its own, reported as a bulk
 * copy without a source. */
#include "async.h"
#include "tensormap.h"

struct args {
	struct xaddr addr, mbar;
	uint8_t bytes;             /* bytes of an element */
	uint8_t n;                 /* number of elements */
	uint8_t red, type;         /* enum tensor_red, enum tensor_type */
	uint32_t value[4];         /* slots */
};

struct lane_op {
	struct async_op op;
	const struct args *args;
	struct cta *cta;
	uint32_t at, mbar;
	unsigned char value[16];
};

static void perform(struct cluster *c, struct async_op *op)
{
	struct lane_op *o = (struct lane_op *)op;
	uint32_t bytes = (uint32_t)o->args->bytes * o->args->n;

	if (o->args->red)
		tensor_reduce(o->args->red, o->args->type, o->cta->shared + o->at, o->value, bytes);
	else
		memcpy(o->cta->shared + o->at, o->value, bytes);
	ex_work(op->warp);
	mbar_signal(op, o->cta, o->mbar, 0, bytes);
	async_free(c, op);
}

static void emit_store(struct warp *w, const struct xop *x, unsigned l, const struct lane_op *o)
{
	struct event e = ex_event(w, x, EV_BULK, 1u << l);
	struct event_bulk *b = &e.bulk;

	b->async_op = o->op.id;
	b->mode = o->args->red ? MODE_RMW : MODE_WRITE;
	b->generic_proxy = true;
	b->reduce = o->args->red;
	b->owner = b->mbarrier_owner = (uint16_t)o->cta->rank;
	b->addr = o->at;
	b->bytes = (uint32_t)o->args->bytes * o->args->n;
	b->tx_count = b->bytes;
	b->mbarrier = o->mbar;
	ex_emit(w->cluster, &e);
}

static bool fill(struct warp *w, const struct xop *x, unsigned l, struct lane_op *o)
{
	const struct args *a = o->args;
	uint32_t bytes = (uint32_t)a->bytes * a->n;
	const struct shared_view v = ex_view(w);
	struct refusal why;
	struct cta *mbar;
	struct xplace p;

	if (!ex_resolve(w, x, 1u << l, PS_shared_cluster, ex_addr(w, a->addr, l), bytes, bytes,
			true, &p) || !mbar_place(w, x, l, PS_shared_cluster,
			ex_addr(w, a->mbar, l), true, &mbar, &o->mbar))
		return false;
	if (refuse_signal(&why, p.cta->rank, mbar->rank, o->mbar, false) ||
			(a->red && refuse_red_async(&why, &v, p.cta->rank, p.addr, bytes))) {
		ex_refuse(w, x, 1u << l, &why);
		return false;
	}
	o->cta = p.cta;
	o->at = (uint32_t)p.addr;
	for (unsigned k = 0; k < a->n; k++)
		memcpy(o->value + k * a->bytes, w->r + a->value[k] + l * a->bytes, a->bytes);
	return true;
}

static enum step op_async(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes) {
		struct lane_op *o = async_new(w, x, 1u << l, sizeof *o);

		o->args = x->i.p;
		o->op.perform = perform;
		if (!fill(w, x, l, o)) {
			async_free(w->cluster, o);
			return STEP_FAULT;
		}
		if (w->sink)
			emit_store(w, x, l, o);
		async_issue(w->cluster, &o->op);
	}
	return STEP_NEXT;
}

static struct args *decode(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	const struct ptx_operand *v = &i->operand[1];
	enum ptx_type t = ptx_type_of(i, 0);
	struct args *a;

	if (!ptx_has(i, MOD_mbarrier_complete_tx_bytes) || i->noperands < 3) {
		dec_unsupported(d, "an asynchronous store without an mbarrier");
		return NULL;
	}
	a = dec_alloc(d, sizeof *a);
	a->addr = dec_addr(d, &i->operand[0]);
	a->mbar = dec_addr(d, &i->operand[2]);
	a->bytes = (uint8_t)(ptx_type_bits(t) / 8);
	a->n = (uint8_t)(v->kind == PO_VEC ? v->n : 1);
	if ((a->bytes != 4 && a->bytes != 8) || a->bytes * a->n > 16) {
		dec_unsupported(d, "an asynchronous store of this width");
		return NULL;
	}
	for (unsigned k = 0; k < a->n; k++)
		a->value[k] = dec_src(d, v->kind == PO_VEC ? &v->list[k] : v, t);
	x->i.p = a;
	x->fn = op_async;
	return a;
}

DECODER(st_async)
{
	return decode(d, i, x);
}

DECODER(red_async)
{
	static const struct { uint16_t mod; uint8_t red; } ops[] = {
		{ MOD_add, RED_ADD }, { MOD_min, RED_MIN }, { MOD_max, RED_MAX },
		{ MOD_inc, RED_INC }, { MOD_dec, RED_DEC }, { MOD_and, RED_AND },
		{ MOD_or, RED_OR }, { MOD_xor, RED_XOR },
	};
	struct args *a = decode(d, i, x);

	if (!a)
		return false;
	for (size_t k = 0; k < ARRAY_SIZE(ops); k++)
		if (ptx_has(i, (enum ptx_mod)ops[k].mod))
			a->red = ops[k].red;
	a->type = a->bytes == 8 ? TT_u64 : ptx_type_of(i, 0) == TY_s32 ? TT_s32 : TT_u32;
	return a->red || dec_unsupported(d, "this asynchronous reduction");
}
