/* timeline: the newest calls, for reports: what was issued, recorded and waited for, in the order of
 * the host's calls. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* Takes a format; a line of the host: it waits. */
void order_moment(struct order *o, order_line line, const struct order_op *op, const char *fmt, ...)
{
	struct moment *m = &o->moment[o->moments++ % MOMENTS];
	va_list ap;

	*m = (struct moment){ .line = line, .place = op ? order_place(op) : (struct order_place){ 0 },
		.inside = op ? order_inside_number(op) : 0, .kernel = op && op->call.kernel };
	va_start(ap, fmt);
	vsnprintf(m->text, sizeof m->text, fmt, ap);
	va_end(ap);
}

static bool is_at(const struct moment *m, const struct order_op *op)
{
	return m->place.epoch && m->place.line == op->line && m->place.epoch == op->epoch
		&& m->inside == order_inside_number(op);
}

size_t order_timeline(const struct order *o, const struct order_op *now, const struct order_op *old,
	struct order_row *row, size_t most)
{
	const uint64_t first = o->moments > MOMENTS ? o->moments - MOMENTS : 0;
	uint64_t from = o->moments, to = first;
	size_t n = 0;

	for (uint64_t i = first; i < o->moments; i++) {
		const struct moment *m = &o->moment[i % MOMENTS];

		if (!is_at(m, now) && !is_at(m, old))
			continue;
		from = i < from ? i : from;
		to = i + 1;
	}
	from -= from > first;
	if (o->line.at[now->line].thread || o->line.at[old->line].thread)
		to = o->moments;
	for (uint64_t i = from; i < to; i++) {
		const struct moment *m = &o->moment[i % MOMENTS];
		struct order_row r = { .text = m->text, .kernel = m->kernel,
			.mark = is_at(m, now) ? ORDER_NOW : is_at(m, old) ? ORDER_OLD : ORDER_OTHER };

		if (n == most && r.mark == ORDER_OTHER)
			continue;
		n -= n == most; /* the operations of the finding are among the rows */
		order_line_text(o, m->line, r.line, sizeof r.line);
		row[n++] = r;
	}
	return n;
}
