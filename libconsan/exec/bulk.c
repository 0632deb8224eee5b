/* bulk: cp.async.bulk, cp.reduce.async.bulk, their tensor forms, prefetches; groups are in
 * bulk_group.c. Operands are checked when an operation is issued. Its bytes move, and its mbarrier is
 * signalled, as late as the rules allow. */
#include "async.h"
#include "tensormap.h"

enum what { LOAD,          /* global to shared, completes on an mbarrier */
	STORE,             /* shared to global, completes by bulk group */
	PEER,              /* own shared memory to a CTA of the cluster, completes on an mbarrier */
	PREFETCH };

/* The decoded operands. Slots are of u32 unless noted otherwise. */
struct args {
	uint8_t what;              /* enum what */
	bool tensor, rows, multicast, pair, masked;
	bool multimem;             /* STORE: to multicast addresses */
	uint8_t red;               /* enum tensor_red */
	uint8_t type;              /* enum tensor_type, for plain reductions */
	uint8_t space;             /* enum ptx_space, of the shared side */
	uint8_t ncoords, noffsets;
	uint16_t mode;             /* enum ptx_mod, of MG_loadmode */
	struct xaddr shared;       /* LOAD, PEER: destination, STORE: source */
	struct xaddr other;        /* global address, tensor map, PEER: source */
	struct xaddr mbar;
	uint32_t size;             /* slot; not for tensor copies */
	uint32_t mask;             /* slot of u16: multicast; masked: of the bytes */
	uint32_t coord[TENSOR_RANKS];
	uint32_t offset[3];        /* slots of u16: im2col, wHalo and wOffset */
};

struct bulk_op {
	struct group_op g;
	const struct args *args;
	uint32_t ctas;             /* LOAD, PEER: ranks that receive the data */
	struct cta *cta, *mbar_cta;
	uint32_t shared, bytes, mbar;
	uint32_t extent;           /* bytes of shared memory from first to last */
	uint64_t other;            /* global address, PEER: source offset */
	uint32_t byte_mask;        /* .cp_mask; without it all bits of 16 are set */
	const struct exec_multicast *multimem; /* of the addresses; or NULL */
	struct tensor_copy copy;
	struct tensormap map;      /* as at issue */
	uint64_t map_at;           /* in global memory; else 0 */
};

/* ---- performing ---- */

static void deliver(struct cluster *c, struct bulk_op *o, struct cta *to)
{
	unsigned char *dst = to->shared + o->shared;
	const unsigned char *src = o->args->what == PEER
		? o->g.op.warp->cta->shared + o->other
		: (const unsigned char *)(uintptr_t)o->other;
	struct cta *mbar = o->args->multicast ? to : o->mbar_cta;

	if (o->args->pair && o->args->multicast)
		mbar = &c->cta[(to->rank & ~1u) | (o->mbar_cta->rank & 1)];
	if (o->args->tensor) {
		o->copy.shared = to->shared;
		tensor_load(&o->copy);
	} else if (o->args->red) {
		tensor_reduce(o->args->red, o->args->type, dst, src, o->bytes);
	} else {
		memcpy(dst, src, o->bytes);
	}
	mbar_signal(&o->g.op, mbar, o->mbar, 0, o->bytes);
}

static void perform_load(struct cluster *c, struct async_op *op)
{
	struct bulk_op *o = (struct bulk_op *)op;

	for EACH_LANE(rank, o->ctas)
		deliver(c, o, &c->cta[rank]);
	ex_work(op->warp);
	async_free(c, op);
}

/* One piece of a store to multicast addresses. */
static void store_piece(void *user, uint64_t at, uint64_t from, uint64_t n)
{
	const struct bulk_op *o = user;
	const unsigned char *src = o->cta->shared + o->shared + from;

	if (o->args->red)
		tensor_reduce(o->args->red, o->args->type, (unsigned char *)(uintptr_t)at, src, n);
	else
		memcpy((void *)(uintptr_t)at, src, n);
}

static void perform_store(struct cluster *c, struct async_op *op)
{
	struct bulk_op *o = (struct bulk_op *)op;
	unsigned char *dst = (unsigned char *)(uintptr_t)o->other;
	const unsigned char *src = o->cta->shared + o->shared;

	group_remove(&op->warp->async->bulk, &o->g);
	if (o->args->tensor)
		tensor_store(&o->copy, o->args->red);
	else if (o->multimem)
		multicast_each(o->multimem, o->other, o->bytes, store_piece, o);
	else if (o->args->red)
		tensor_reduce(o->args->red, o->args->type, dst, src, o->bytes);
	else
		for (uint32_t at = 0, n; span_masked(o->byte_mask, o->bytes, &at, &n); at += n)
			memcpy(dst + at, src + at, n);
	ex_work(op->warp);
	async_free(c, op);
}

/* ---- checks at issue ---- */

#define REFUSE(kind, space, at, size, ...) do { \
	ex_fault(w, x, 1u << l, FAULT_##kind, space, at, size, __VA_ARGS__); \
	return false; \
} while (0)

static bool raise_refusal(struct warp *w, const struct xop *x, unsigned l,
	const struct refusal *why)
{
	ex_refuse(w, x, 1u << l, why);
	return false;
}

static bool find_mbar(struct warp *w, const struct xop *x, unsigned l, const struct args *a,
	struct bulk_op *o)
{
	/* with .cta_group::2 it may be the peer's, whatever the state space of the destination */
	enum ptx_space space = a->space == PS_shared && !a->pair ? PS_shared : PS_shared_cluster;
	struct refusal why;

	if (!mbar_place(w, x, l, space, ex_addr(w, a->mbar, l), true, &o->mbar_cta, &o->mbar))
		return false;
	return !refuse_signal(&why, o->cta->rank, o->mbar_cta->rank, o->mbar, a->pair) ||
		raise_refusal(w, x, l, &why);
}

static bool find_ctas(struct warp *w, const struct xop *x, unsigned l, const struct args *a,
	struct bulk_op *o)
{
	const struct shared_view v = ex_view(w);
	struct refusal why;
	uint32_t mask;

	if (!a->multicast) {
		o->ctas = 1u << o->cta->rank;
		return true;
	}
	mask = r16(w, a->mask)[l];
	if (refuse_ctas(&why, &v, mask, o->shared, o->bytes))
		return raise_refusal(w, x, l, &why);
	o->ctas = mask;
	return true;
}

static bool find_shared(struct warp *w, const struct xop *x, unsigned l, const struct args *a,
	struct bulk_op *o)
{
	uint64_t addr = ex_addr(w, a->shared, l);
	const struct shared_view v = ex_view(w);
	struct refusal why;
	struct xplace p;

	if (a->tensor ? refuse_box_align(&why, addr, o->bytes, tensor_box_align(&o->map))
			: refuse_bulk_align(&why, SP_SHARED, addr, o->bytes))
		return raise_refusal(w, x, l, &why);
	if (a->tensor)
		o->extent = tensor_box_extent(&o->copy);
	else
		o->extent = o->bytes;
	if (!ex_resolve(w, x, 1u << l, (enum ptx_space)a->space, addr, o->extent, 1, true, &p))
		return false;
	if (p.space != SP_SHARED)
		REFUSE(BULK_OPERAND, p.space, addr, o->bytes, "not in shared memory");
	if ((a->what == STORE || a->space == PS_shared) &&
			refuse_bulk_owner(&why, &v, p.cta->rank, p.addr, o->bytes))
		return raise_refusal(w, x, l, &why);
	o->cta = p.cta;
	o->shared = (uint32_t)p.addr;
	return true;
}

/* Resolves the other side of a plain copy. */
static bool find_other(struct warp *w, const struct xop *x, unsigned l, const struct args *a,
	struct bulk_op *o)
{
	uint64_t addr = ex_addr(w, a->other, l);
	struct refusal why;
	struct xplace p;

	o->bytes = r32(w, a->size)[l];
	o->byte_mask = a->masked ? r16(w, a->mask)[l] : 0xffff;
	if ((a->what == PEER && refuse_peer(&why, w->cluster->info.launch,
			SHARED_OFFSET(addr), o->bytes)) || refuse_bulk_size(&why, ex_addr(w, a->shared, l), o->bytes) ||
			refuse_bulk_align(&why, a->what == PEER ? SP_SHARED : SP_GLOBAL, addr,
			o->bytes))
		return raise_refusal(w, x, l, &why);
	o->multimem = a->multimem ? multicast_find(w, x, l, addr, o->bytes) : NULL;
	if (a->multimem && !o->multimem)
		return false;
	for (uint32_t at = 0, n; a->what != PREFETCH && !a->multimem
			&& span_masked(o->byte_mask, o->bytes, &at, &n); at += n)
		if (!ex_resolve(w, x, 1u << l, a->what == PEER ? PS_shared : PS_global, addr + at, n, 1,
				a->what == STORE, &p))
			return false;
	o->other = a->what == PEER ? SHARED_OFFSET(addr) : addr;
	return true;
}

struct bounds { uint64_t lo, hi; };

static bool grow(void *user, uint64_t addr, uint64_t bytes)
{
	struct bounds *b = user;

	b->lo = addr < b->lo ? addr : b->lo;
	b->hi = addr + bytes > b->hi ? addr + bytes : b->hi;
	return true;
}

struct span_check { struct worker *worker; bool write; uint64_t addr, bytes; };

static bool check_span(void *user, uint64_t addr, uint64_t bytes)
{
	struct span_check *k = user;

	k->addr = addr;
	k->bytes = bytes;
	return ex_global_ok(k->worker, addr, bytes, k->write);
}

static bool find_multicast(struct warp *w, const struct xop *x, unsigned l, const struct bounds *b,
	struct bulk_op *o)
{
	o->multimem = o->copy.multimem = multicast_find(w, x, l, b->lo, b->hi - b->lo);
	if (!o->multimem)
		return false;
	multicast_stored(w, x, 1u << l, b->lo, b->hi - b->lo);
	return true;
}

/* Reads and checks the map and the coordinates. */
static bool find_tensor(struct warp *w, const struct xop *x, unsigned l, const struct args *a,
	struct bulk_op *o)
{
	uint64_t addr = ex_addr(w, a->other, l);
	struct bounds b = { UINT64_MAX, 0 };
	struct span_check k = { .worker = w->worker, .write = a->what == STORE };
	const struct tensor_use use = { .mode = (enum ptx_mod)a->mode, .ncoords = a->ncoords, .noffsets = a->noffsets,
		.load = a->what != STORE, .prefetch = a->what == PREFETCH, .placed = true };
	struct refusal why;
	const char *bad;
	struct xplace p;

	if (refuse_map_align(&why, addr))
		return raise_refusal(w, x, l, &why);
	if (!ex_resolve(w, x, 1u << l, PS_none, addr, CONSAN_TENSORMAP_BYTES, 1, false, &p))
		return false;
	bad = tensormap_unpack(&o->map, p.host, tensor_mode_of((enum ptx_mod)a->mode));
	if (!bad)
		bad = tensormap_check(&o->map);
	if (bad)
		REFUSE(TENSORMAP, p.space, p.addr, CONSAN_TENSORMAP_BYTES, "%s", bad);
	bad = tensormap_unsupported(&o->map);
	if (bad)
		return ex_refuse_op(w, x, "%s", bad), false;
	o->map_at = p.space == SP_GLOBAL ? p.addr : 0;
	o->copy.map = &o->map;
	o->copy.rows = a->rows;
	for (unsigned d = 0; d < a->ncoords; d++)
		o->copy.at[d] = rs32(w, a->coord[d])[l];
	for (unsigned d = 0; d < a->noffsets; d++)
		o->copy.offset[d] = r16(w, a->offset[d])[l];
	if (tensor_refused(&why, p.space, p.addr, &o->copy, &use))
		return raise_refusal(w, x, l, &why);
	if (a->red && !tensor_reduces(a->red, o->map.type))
		REFUSE(TENSOR_OPERAND, p.space, p.addr, 128,
			"this reduction is not defined for the element type of the tensor map");
	o->bytes = tensor_box_bytes(&o->copy);
	tensor_spans(&o->copy, grow, &b);
	if (a->what == STORE && b.lo < b.hi && multicast_is(b.lo))
		return find_multicast(w, x, l, &b, o);
	if (a->what != PREFETCH && b.lo < b.hi && !check_span(&k, b.lo, b.hi - b.lo) &&
			!tensor_spans(&o->copy, check_span, &k))
		REFUSE(GLOBAL_OOB, SP_GLOBAL, k.addr, k.bytes,
			"the tensor map describes memory outside every allocation");
	if (a->what == STORE) {
		o->copy.pad_end = UINT64_MAX;
		if (!tensor_padding(&o->copy, check_span, &k))
			o->copy.pad_end = k.addr; /* beside the allocation */
	}
	return true;
}

/* ---- issue ---- */

static bool add_span(void *user, uint64_t addr, uint64_t bytes)
{
	struct warp_async *a = user;

	vec_push(&a->gspans, ((struct ev_gspan){ addr, bytes }));
	return a->gspans.n < UINT16_MAX;
}

static void add_piece(void *user, uint64_t at, uint64_t from, uint64_t n)
{
	add_span(user, at, n);
	(void)from;
}

struct bound { struct warp_async *a; const struct exec_multicast *of; };

/* A span of multicast addresses: that of each device. */
static bool add_bound(void *user, uint64_t addr, uint64_t bytes)
{
	const struct bound *b = user;

	multicast_each(b->of, addr, bytes, add_piece, b->a);
	return b->a->gspans.n < UINT16_MAX;
}

/* Rows shorter than the swizzle's span leave gaps: adds one span for each 16-byte piece. */
static void add_pieces(struct warp_async *a, const struct bulk_op *o)
{
	uint32_t row = tensor_box_row(&o->map), pitch = tensor_box_pitch(&o->map);

	a->spans.n = 0;
	for (uint32_t at = 0; at < o->extent; at += pitch)
		for (uint32_t i = 0; i < row; i += 16)
			vec_push(&a->spans, ((struct ev_span){ tensor_swizzle(
				(enum tensor_swizzle)o->map.swizzle, o->shared + at + i), 16 }));
}

/* The bytes of both sides that .cp_mask names. */
static void add_masked(struct warp_async *a, const struct bulk_op *o, bool want_global)
{
	a->spans.n = a->gspans.n = 0;
	for (uint32_t at = 0, n; span_masked(o->byte_mask, o->bytes, &at, &n); at += n) {
		vec_push(&a->spans, ((struct ev_span){ o->shared + at, n }));
		if (want_global)
			vec_push(&a->gspans, ((struct ev_gspan){ o->other + at, n }));
	}
}

static void emit_bulk(struct warp *w, const struct xop *x, unsigned l, const struct args *a,
	const struct bulk_op *o)
{
	struct event e = ex_event(w, x, EV_BULK, 1u << l);
	struct event_bulk *b = &e.bulk;
	uint64_t src[32];
	uint16_t inside;

	b->async_op = o->g.op.id;
	b->tensor = a->tensor;
	b->reduce = a->red;
	b->multicast = a->multicast;
	b->pair = a->pair;
	b->prefetch = a->what == PREFETCH;
	b->mbarrier = EV_NO_MBARRIER;
	if (a->what != PREFETCH) {
		b->owner = (uint16_t)o->cta->rank;
		b->addr = o->shared;
		b->bytes = o->extent;
		b->mode = a->what == STORE ? MODE_READ : a->red ? MODE_RMW : MODE_WRITE;
	}
	if (a->what == PEER) {
		src[l] = o->other;
		b->source = src;
	}
	if (a->what == LOAD || a->what == PEER) {
		b->mbarrier = o->mbar;
		b->mbarrier_owner = (uint16_t)o->mbar_cta->rank;
		b->tx_count = o->bytes;
		b->cta_mask = a->multicast ? o->ctas : 0;
	}
	if (a->tensor && a->what != PREFETCH && !tensor_box_dense(&o->copy)) {
		add_pieces(w->async, o);
		b->spans = (struct ev_spans){ w->async->spans.at, (uint32_t)w->async->spans.n };
	}
	if (a->masked) {
		add_masked(w->async, o, w->sink->want_global);
		b->spans = (struct ev_spans){ w->async->spans.at, (uint32_t)w->async->spans.n };
		b->global = (struct ev_gspans){ w->async->gspans.at, (uint32_t)w->async->gspans.n };
		b->bytes = b->spans.n ? b->bytes : 0;
	} else if (w->sink->want_global && a->what != PREFETCH && a->what != PEER) {
		w->async->gspans.n = 0;
		if (a->tensor && o->multimem)
			tensor_spans(&o->copy, add_bound, &(struct bound){ w->async, o->multimem });
		else if (a->tensor)
			tensor_spans(&o->copy, add_span, w->async);
		else if (o->multimem)
			multicast_each(o->multimem, o->other, o->bytes, add_piece, w->async);
		else
			add_span(w->async, o->other, o->bytes);
		inside = (uint16_t)w->async->gspans.n;
		if (a->tensor && a->what == STORE)
			tensor_padding(&o->copy, add_span, w->async);
		b->padding = (uint16_t)(w->async->gspans.n - inside);
		b->global = (struct ev_gspans){ w->async->gspans.at, (uint32_t)w->async->gspans.n };
	}
	ex_emit(w->cluster, &e);
}

/* Maps in parameters or constants are not reported: they cannot change while the kernel runs. */
static void emit_map_read(struct warp *w, const struct xop *x, unsigned l, const struct bulk_op *o)
{
	struct event e = ex_event(w, x, EV_TENSOR_MAP, 1u << l);

	if (!o->map_at)
		return;
	e.tensor_map.mode = MODE_READ;
	e.tensor_map.addr = o->map_at;
	e.tensor_map.hash = tensormap_hash(&o->map);
	ex_emit(w->cluster, &e);
}

static bool fill(struct warp *w, const struct xop *x, unsigned l, const struct args *a,
	struct bulk_op *o)
{
	if (!(a->tensor ? find_tensor : find_other)(w, x, l, a, o))
		return false;
	if (a->what == PREFETCH)
		return true;
	if (!find_shared(w, x, l, a, o))
		return false;
	if (a->what == STORE) {
		o->copy.shared = o->cta->shared;
		o->copy.dst = o->shared;
		return true;
	}
	o->copy.dst = o->shared;
	return find_mbar(w, x, l, a, o) && find_ctas(w, x, l, a, o);
}

static enum step op_bulk(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct args *a = x->i.p;

	for EACH_LANE(l, lanes) {
		struct bulk_op *o = async_new(w, x, 1u << l, sizeof *o);

		o->args = a;
		if (!fill(w, x, l, a, o)) {
			async_free(w->cluster, o);
			return STEP_FAULT;
		}
		if (w->sink && a->what != PREFETCH)
			emit_map_read(w, x, l, o);
		if (w->sink)
			emit_bulk(w, x, l, a, o);
		if (a->what == PREFETCH) {
			async_free(w->cluster, o);
			continue;
		}
		o->g.op.perform = a->what == STORE ? perform_store : perform_load;
		if (a->what == STORE) {
			o->g.group = w->async->bulk_commits[l];
			group_add(&w->async->bulk, &o->g);
		}
		async_issue(w->cluster, &o->g.op);
	}
	return STEP_NEXT;
}

/* ---- decoding ---- */

static enum tensor_red red_of(const struct ptx_insn *i)
{
	switch (ptx_pick(i, MG_redop)) {
	case MOD_add: return RED_ADD;
	case MOD_min: return RED_MIN;
	case MOD_max: return RED_MAX;
	case MOD_inc: return RED_INC;
	case MOD_dec: return RED_DEC;
	case MOD_and: return RED_AND;
	case MOD_or: return RED_OR;
	case MOD_xor: return RED_XOR;
	default: return RED_NONE;
	}
}

static struct args *args_of(struct decoder *d, struct xop *x)
{
	struct args *a = dec_alloc(d, sizeof *a);

	x->i.p = a;
	x->fn = op_bulk;
	return a;
}

/* mbarrier, {im2col offsets}, multicast mask; any further operands are cache policies, and the last
 * one of .cp_mask the mask. */
static bool more_operands(struct decoder *d, const struct ptx_insn *i, struct args *a, unsigned k)
{
	if (a->what == LOAD || a->what == PEER)
		a->mbar = dec_addr(d, &i->operand[k++]);
	if (k < i->noperands && i->operand[k].kind == PO_VEC) {
		a->noffsets = (uint8_t)i->operand[k].n;
		if (a->noffsets > 3)
			return dec_unsupported(d, "more than three im2col offsets");
		for (unsigned j = 0; j < a->noffsets; j++)
			a->offset[j] = dec_src(d, &i->operand[k].list[j], TY_u16);
		k++;
	}
	a->multicast = ptx_has(i, MOD_multicast_cluster);
	a->pair = ptx_has(i, MOD_cta_group_2);
	if (a->multicast)
		a->mask = dec_src(d, &i->operand[k], TY_u16);
	a->masked = ptx_has(i, MOD_cp_mask);
	if (a->masked && (a->what != STORE || k >= i->noperands))
		return dec_unsupported(d, "a byte mask of this bulk copy");
	if (a->masked)
		a->mask = dec_src(d, &i->operand[i->noperands - 1], TY_u16);
	return true;
}

static enum what what_of(const struct ptx_insn *i)
{
	return ptx_space_of(i, 0) == PS_global ? STORE
		: ptx_space_of(i, 1) == PS_global ? LOAD : PEER;
}

/* [d], [a], n and the further operands, for plain and reducing copies */
static bool decode_plain(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool reduces)
{
	enum what what = what_of(i);
	bool store = what == STORE;
	struct args *a;

	if (ptx_has(i, MOD_ignore_oob))
		return dec_unsupported(d, "bulk copy with .ignore_oob (PTX ISA 9.1)");
	a = args_of(d, x);
	a->what = (uint8_t)what;
	a->shared = dec_addr(d, &i->operand[store ? 1 : 0]);
	a->other = dec_addr(d, &i->operand[store ? 0 : 1]);
	a->space = (uint8_t)ptx_space_of(i, store ? 1 : 0);
	a->size = dec_src(d, &i->operand[2], TY_u32);
	if (reduces) {
		a->red = (uint8_t)red_of(i);
		a->type = (uint8_t)tensor_type_of(ptx_type_of(i, 0));
		if (!tensor_reduces(a->red, a->type))
			return dec_unsupported(d, "this bulk reduction");
	}
	return more_operands(d, i, a, 3);
}

DECODER(cp_async_bulk)
{
	return decode_plain(d, i, x, false);
}

DECODER(cp_reduce_async_bulk)
{
	return decode_plain(d, i, x, true);
}

/* ISA: from shared::cta to multicast addresses, by bulk group */
static bool decode_multimem(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool reduces)
{
	struct args *a;

	if (ptx_has(i, MOD_cp_mask))
		return dec_unsupported(d, "a multimem bulk copy with a byte mask");
	if (!decode_plain(d, i, x, reduces))
		return false;
	a = (struct args *)x->i.p;
	if (a->what != STORE)
		return dec_unsupported(d, "a multimem bulk copy that is not from shared to global memory");
	a->multimem = true;
	return true;
}

DECODER(multimem_cp_async_bulk)
{
	return decode_multimem(d, i, x, false);
}

DECODER(multimem_cp_reduce_async_bulk)
{
	return decode_multimem(d, i, x, true);
}

DECODER(cp_async_bulk_prefetch)
{
	struct args *a = args_of(d, x);

	a->what = PREFETCH;
	a->other = dec_addr(d, &i->operand[0]);
	a->size = dec_src(d, &i->operand[1], TY_u32);
	a->shared = a->other;
	return true;
}

static bool take_map(struct decoder *d, struct args *a, const struct ptx_operand *o)
{
	if (o->kind != PO_TADDR || o->n != 2)
		return dec_unsupported(d, "a tensor copy without [map, {coordinates}]");
	a->tensor = true;
	a->other = dec_addr(d, &o->list[0]);
	a->ncoords = (uint8_t)(o->list[1].kind == PO_VEC ? o->list[1].n : 1);
	if (a->ncoords > TENSOR_RANKS)
		return dec_unsupported(d, "more than five coordinates");
	for (unsigned j = 0; j < a->ncoords; j++)
		a->coord[j] = dec_src(d, o->list[1].kind == PO_VEC ? &o->list[1].list[j]
			: &o->list[1], TY_s32);
	return true;
}

static bool decode_tensor(struct decoder *d, const struct ptx_insn *i, struct xop *x,
	enum what what, bool reduces)
{
	enum ptx_mod mode = ptx_pick(i, MG_loadmode);
	unsigned map = what == LOAD ? 1 : 0, k = what == PREFETCH ? 1 : 2;
	struct args *a;

	if (what == PEER)
		return dec_unsupported(d, "a tensor copy between shared memories");
	a = args_of(d, x);
	a->what = (uint8_t)what;
	a->rows = mode == MOD_tile_gather4 || mode == MOD_tile_scatter4;
	a->mode = (uint16_t)mode;
	a->red = (uint8_t)(reduces ? red_of(i) : RED_NONE);
	if (!take_map(d, a, &i->operand[map]))
		return false;
	if (what != PREFETCH) {
		a->shared = dec_addr(d, &i->operand[what == LOAD ? 0 : 1]);
		a->space = (uint8_t)ptx_space_of(i, what == LOAD ? 0 : 1);
	}
	return more_operands(d, i, a, k);
}

DECODER(cp_async_bulk_tensor)
{
	return decode_tensor(d, i, x, what_of(i), false);
}

DECODER(cp_reduce_async_bulk_tensor)
{
	return decode_tensor(d, i, x, STORE, true);
}

DECODER(cp_async_bulk_prefetch_tensor)
{
	return decode_tensor(d, i, x, PREFETCH, false);
}
