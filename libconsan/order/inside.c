/* inside: operations that are part of another one, which are issued while that one runs: the grids that
 * a grid launches, the nodes in the body of a conditional node. See internal.h.
 *
 * The edges of the host's calls do not know them: whatever is ordered before or after the operation that
 * no other one contains, their root, is so with all of them. They have the line, the epoch and the clock
 * of the root. Those that are directly inside of one operation have a vector clock of their own, over
 * branches: each is a sequence of them. Two operations of one root are compared where their paths from
 * the root part. */
#include "internal.h"

#include <stdlib.h>

struct inside {
	struct order_op *in;       /* a reference, as of a state */
	unsigned depth;            /* of `in`, and one more; a root has 0 */
	uint64_t number;           /* of those with this root, in the order of issue */
	uint64_t upto;             /* it is ordered after all in `in` up to this number, and after what `in`
				      does itself; 0: see the clock */
	const struct order_op *home; /* it goes on as part of this one after `in`, which is inside of it; or NULL */
	uint32_t branch, epoch;
	struct clock clock;        /* what it is ordered after, without itself */
};

struct branches { /* of one operation */
	VEC(uint32_t) epoch;       /* of the last one of each branch */
	uint64_t numbers;          /* of a root: given so far; from 2, so that upto is not 0 */
};

static unsigned depth_of(const struct order_op *op)
{
	return op->inside ? op->inside->depth : 0;
}

struct order_op *order_op_in(const struct order_op *op)
{
	return op->inside ? op->inside->in : NULL;
}

const struct order_op *order_op_root(const struct order_op *op)
{
	while (op->inside)
		op = op->inside->in;
	return op;
}

uint64_t order_inside_number(const struct order_op *op)
{
	return op->inside ? op->inside->number : 0;
}

static struct branches *branches_of(struct order_op *op)
{
	if (!op->branches)
		op->branches = base_alloc(sizeof *op->branches);
	return op->branches;
}

/* The branch whose last operation is among those before; or a new one. */
static uint32_t branch_for(struct branches *b, const struct clock *before)
{
	for (uint32_t i = 0; i < before->n; i++)
		if (before->at[i] && before->at[i] == b->epoch.at[i])
			return i;
	vec_push(&b->epoch, 0);
	return (uint32_t)b->epoch.n - 1;
}

struct order_op *order_issue_inside(struct order *o, struct order_op *in, struct order_op *const *after,
	size_t nafter, bool last, const struct order_call *call)
{
	struct inside *x = base_alloc(sizeof *x);
	struct order_op *op, *root;
	struct branches *b;

	pthread_mutex_lock(&o->lock);
	root = (struct order_op *)order_op_root(in);
	op = order_op_new(o, root->line, call);
	op->epoch = root->epoch;
	op->unrecorded = root->unrecorded;
	op->issued = root->issued;
	op->issued_at = root->issued_at;
	clock2_join(&op->clock, &root->clock);
	clock_join(&op->seen, &root->seen);
	*x = (struct inside){ .in = in, .depth = depth_of(in) + 1, .number = ++branches_of(root)->numbers + 1 };
	in->kept++;
	x->upto = last ? x->number - 1 : 0;
	for (size_t i = 0; i < nafter; i++) {
		const struct inside *a = after[i]->inside;

		clock_join(&x->clock, &a->clock);
		x->upto = x->upto < a->upto ? a->upto : x->upto;
		clock_set(&x->clock, a->branch, a->epoch);
	}
	b = branches_of(in);
	x->branch = branch_for(b, &x->clock);
	o->branches += x->branch > 0 && !root->call.kernel;
	x->epoch = ++b->epoch.at[x->branch];
	op->inside = x;
	o->running++;
	order_moment(o, op->line, op, "%s", call->kernel ? call->kernel : call->name);
	pthread_mutex_unlock(&o->lock);
	return op;
}

void order_op_outlives(struct order_op *op, const struct order_op *home)
{
	op->inside->home = home;
}

/* The operation on the path from `a` up to `in` that goes on when what contains it there has ended; NULL:
 * none. */
static const struct inside *outliving(const struct order_op *a, const struct order_op *in)
{
	for (; a != in; a = a->inside->in)
		if (a->inside->home && depth_of(a->inside->home) <= depth_of(in))
			return a->inside;
	return NULL;
}

static bool sibling_before(const struct inside *a, const struct inside *b)
{
	return a->number <= b->upto || (a->branch < b->clock.n && b->clock.at[a->branch] >= a->epoch);
}

enum inside_order order_inside(const struct order_op *a, const struct order_op *b)
{
	const struct order_op *last = NULL; /* of b's path, inside of what it is compared with */
	const struct order_op *first = a;
	const struct inside *beyond;

	while (depth_of(a) > depth_of(b))
		a = a->inside->in;
	while (depth_of(b) > depth_of(a)) {
		last = b;
		b = b->inside->in;
	}
	if (a == b)
		return last && last->inside->upto ? INSIDE_BEFORE : INSIDE_PART;
	while (a->inside->in != b->inside->in) {
		a = a->inside->in;
		b = b->inside->in;
	}
	beyond = outliving(first, a->inside->in);
	if (beyond)
		return beyond->home == a->inside->in && beyond->number <= b->inside->upto ? INSIDE_BEFORE
			: INSIDE_UNORDERED;
	return sibling_before(a->inside, b->inside) ? INSIDE_BEFORE : INSIDE_UNORDERED;
}

void order_inside_free(struct order_op *op)
{
	if (op->inside) {
		clock_free(&op->inside->clock);
		op_unref(op->inside->in);
	}
	free(op->inside);
	if (op->branches)
		vec_free(&op->branches->epoch);
	free(op->branches);
}
