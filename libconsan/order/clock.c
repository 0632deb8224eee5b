/* clock: vector clocks. See internal.h. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

void clock_reach(struct clock *c, uint32_t n)
{
	if (n <= c->n)
		return;
	c->at = base_resize(c->at, n * sizeof *c->at);
	memset(c->at + c->n, 0, (n - c->n) * sizeof *c->at);
	c->n = n;
}

void clock_set(struct clock *c, order_line line, uint32_t epoch)
{
	clock_reach(c, line + 1);
	if (c->at[line] < epoch)
		c->at[line] = epoch;
}

uint32_t clock_get(const struct clock *c, order_line line)
{
	return line < c->n ? c->at[line] : 0;
}

void clock_join(struct clock *c, const struct clock *with)
{
	clock_reach(c, with->n);
	for (uint32_t i = 0; i < with->n; i++)
		if (c->at[i] < with->at[i])
			c->at[i] = with->at[i];
}

void clock2_set(struct order_clock *c, order_line line, uint32_t epoch)
{
	for (unsigned t = 0; t < RELATIONS; t++)
		clock_set(&c->by[t], line, epoch);
}

void join_from(struct order_clock *c, const struct order_clock *with, enum order_trust first)
{
	for (unsigned t = first; t < ORDER_TRUSTS; t++)
		clock_join(&c->by[t], &with->by[t]);
	if (first == ORDER_PROMISED)
		clock_join(&c->by[VISIBLE], &with->by[VISIBLE]);
}

void clock2_join(struct order_clock *c, const struct order_clock *with)
{
	join_from(c, with, ORDER_PROMISED);
}

struct order_clock clock2_copy(const struct order_clock *from)
{
	struct order_clock c = { 0 };

	clock2_join(&c, from);
	return c;
}

void clock2_free(struct order_clock *c)
{
	for (unsigned t = 0; t < RELATIONS; t++)
		free(c->by[t].at);
	*c = (struct order_clock){ 0 };
}

void clock_free(struct clock *c)
{
	free(c->at);
	*c = (struct clock){ 0 };
}
