/* condition: conditional nodes of graphs, and the variables that decide whether their bodies run.
 *
 * A variable is 4 bytes of device memory, which cudaGraphSetConditional() writes and the node reads: that
 * they are not ordered is a race as any other. A handle names the variable of whichever executable graph
 * is being launched. */
#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>

#define FIRST_HANDLE (UINT64_C(0xc0) << 56)

static _Atomic uint64_t handles = FIRST_HANDLE;

struct conditions {
	_Atomic unsigned refs;
	VEC(struct variable { struct condition of; uint32_t *at; }) variable;
};

int condition_new(struct graph *g, uint32_t start, unsigned flags, uint64_t *handle)
{
	if (!g || !handle || flags & ~(unsigned)cudaGraphCondAssignDefault)
		return cudaErrorInvalidValue;
	*handle = handles++;
	vec_push(&g->condition, ((struct condition){ *handle, start, flags }));
	return 0;
}

/* ---- nodes ---- */

int condition_node(uint64_t handle, int type, unsigned size, struct condition_node *out)
{
	const bool fits = type == cudaGraphCondTypeWhile ? size == 1
		: type == cudaGraphCondTypeIf ? size == 1 || size == 2
		: type == cudaGraphCondTypeSwitch && size;

	if (!fits || handle < FIRST_HANDLE || handle >= handles)
		return cudaErrorInvalidValue;
	*out = (struct condition_node){ .handle = handle, .type = type, .size = size,
		.body = base_alloc(size * sizeof *out->body) };
	for (unsigned k = 0; k < size; k++)
		out->body[k] = graph_new();
	return 0;
}

struct condition_node condition_dup(const struct condition_node *n)
{
	struct condition_node copy = *n;

	copy.values = NULL;
	copy.body = base_alloc(n->size * sizeof *copy.body);
	for (unsigned k = 0; k < n->size; k++)
		copy.body[k] = graph_dup(n->body[k], false);
	return copy;
}

void condition_free(struct condition_node *n)
{
	for (unsigned k = 0; k < n->size; k++)
		graph_free(n->body[k]);
	free(n->body);
	conditions_put(n->values);
}

struct graph *condition_next(const struct condition_node *n, unsigned rounds)
{
	const uint32_t *at = condition_at(n->values, n->handle);
	const uint32_t value = at ? *at : 0;

	switch (n->type) {
	case cudaGraphCondTypeWhile:
		return value ? n->body[0] : NULL;
	case cudaGraphCondTypeIf:
		return rounds ? NULL : value ? n->body[0] : n->size == 2 ? n->body[1] : NULL;
	}
	return !rounds && value < n->size ? n->body[value] : NULL;
}

/* ---- variables ---- */

static void collect(const struct graph *g, struct conditions *to)
{
	for (size_t i = 0; i < g->condition.n; i++) {
		struct variable v = { g->condition.at[i], consan_malloc(device_session(),
			sizeof *v.at, CONSAN_MEM_DEVICE) };

		if (v.at)
			*v.at = v.of.start;
		vec_push(&to->variable, v);
	}
	for (size_t i = 0; i < g->node.n; i++) {
		const struct op *op = &g->node.at[i]->op;

		if (op->kind == OP_GRAPH)
			collect(op->graph, to);
		for (unsigned k = 0; op->kind == OP_CONDITION && k < op->condition.size; k++)
			collect(op->condition.body[k], to);
	}
}

struct conditions *conditions_of(const struct graph *g)
{
	struct conditions *c = base_alloc(sizeof *c);

	c->refs = 1;
	collect(g, c);
	if (c->variable.n)
		return c;
	conditions_put(c);
	return NULL;
}

struct conditions *conditions_get(struct conditions *c)
{
	if (c)
		c->refs++;
	return c;
}

void conditions_put(struct conditions *c)
{
	if (!c || --c->refs)
		return;
	for (size_t i = 0; i < c->variable.n; i++)
		if (c->variable.at[i].at)
			consan_free(device_session(), c->variable.at[i].at);
	vec_free(&c->variable);
	free(c);
}

void conditions_assign(struct conditions *c)
{
	for (size_t i = 0; i < c->variable.n; i++)
		if (c->variable.at[i].of.assigned && c->variable.at[i].at)
			*c->variable.at[i].at = c->variable.at[i].of.start;
}

uint32_t *condition_at(const struct conditions *c, uint64_t handle)
{
	for (size_t i = 0; c && i < c->variable.n; i++)
		if (c->variable.at[i].of.handle == handle)
			return c->variable.at[i].at;
	return NULL;
}
