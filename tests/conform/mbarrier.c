/* mbarrier: sequences of operations on an mbarrier of one thread, drawn along a model of the object
 * so that they are valid. Compared are the results of waits and the pending counts of tokens.
 * References: ISA 9.7.13.15. */
#include "conform.h"

#include <string.h>

enum { STEPS = 24 };
struct model { unsigned expected, pending; unsigned long tx, phase; };

static void step(struct model *m, unsigned arrivals)
{
	m->pending -= arrivals;
	if (m->pending || m->tx)
		return;
	m->phase++;
	m->pending = m->expected;
}

static void expect_mbarrier(const struct item *i, const void *in, const void *out, struct want *w)
{
	const uint32_t *want = i->data;

	(void)in;
	(void)out;
	for (unsigned k = 0; k < CTA_THREADS * STEPS; k++)
		w[k].v = want[k % STEPS];
}

/* The result of step k is in register v. */
static void keep(struct item *i, unsigned k, uint32_t v)
{
	((uint32_t *)i->data)[k] = v;
	text_printf(&i->ptx, "\tst.global.b32 [%%dst+%u], v;\n", 4 * k);
}
static void keep_pred(struct item *i, unsigned k, bool v)
{
	text_printf(&i->ptx, "\tselp.b32 v, 1, 0, p;\n");
	keep(i, k, v);
}

void class_mbarrier(struct item *i, struct rng *r)
{
	static const char *const orders[] = { "", ".release.cta", ".release.cluster" };
	/* Steps when bytes alone are missing, and after a phase: an arrival for the next one needs
	 * a wait that returned true. */
	static const unsigned bytes_missing[] = { 5, 5, 5, 7, 8, 9 }, complete[] = { 7, 8, 8, 9 };
	static const char *const acquires[] = { "", ".acquire.cta", ".acquire.cluster" };
	struct text *p = &i->ptx;
	struct model m = { 0, 0, 0, 0 };
	const char *space = rng_once_in(r, 2) ? ".shared" : ".shared::cta";
	unsigned long token = 0, waited = 0;
	bool have_token = false;

	item_block(i, 8, 4 * STEPS, STEPS, 32, expect_mbarrier);
	i->data = base_alloc(STEPS * sizeof(uint32_t));
	m.expected = m.pending = 1 + rng_below(r, rng_once_in(r, 4) ? 1000 : 6);
	text_printf(p, "\t.reg .b32 s, v;\n\t.reg .b64 t, u;\n\t.reg .pred p;\n\tmov.u32 s, smem;\n"
		"\tmad.lo.u32 s, %%thr, 8, s;\n\tbar.sync 0;\n\tmbarrier.init%s.b64 [s], %u;\n"
		"\tmov.b64 t, 0;\n", space, m.expected);
	for (unsigned k = 0; k < STEPS; k++) {
		const char *order = RNG_OF(r, orders), *acquire = RNG_OF(r, acquires);
		unsigned n = 1 + rng_below(r, m.pending < 4 ? m.pending + !m.pending : 4),
			bytes = rng_below(r, 100);
		uint32_t was = m.pending;

		text_printf(p, "\tmov.b32 v, %u;\n", k);
		((uint32_t *)i->data)[k] = k;
		switch (m.phase != waited ? RNG_OF(r, complete) : m.pending ? rng_below(r, 10)
				: RNG_OF(r, bytes_missing)) {
		case 0: case 1:
			token = m.phase;
			have_token = true;
			text_printf(p, n == 1 ? "\tmbarrier.arrive%s%s.b64 t, [s];\n"
				: "\tmbarrier.arrive%s%s.b64 t, [s], %u;\n", order, space, n);
			step(&m, n);
			keep(i, k, k);
			break;
		case 2:
			if (n >= m.pending) {
				keep(i, k, k);
				break;
			}
			text_printf(p, "\tmbarrier.arrive.noComplete%s.b64 u, [s], %u;\n"
				"\tmbarrier.pending_count.b64 v, u;\n", space, n);
			m.pending -= n;
			keep(i, k, was);
			break;
		case 3:
			token = m.phase;
			have_token = true;
			text_printf(p, "\tmbarrier.arrive.expect_tx%s%s.b64 t, [s], %u;\n", order,
				space, bytes);
			m.tx += bytes;
			step(&m, 1);
			keep(i, k, k);
			break;
		case 4:
			text_printf(p, "\tmbarrier.expect_tx.relaxed.cta%s.b64 [s], %u;\n", space,
				bytes);
			m.tx += bytes;
			keep(i, k, k);
			break;
		case 5:
			if (m.tx == 0) {
				keep(i, k, k);
				break;
			}
			bytes = 1 + rng_below(r, (unsigned)m.tx);
			if (rng_once_in(r, 2))
				bytes = (unsigned)m.tx;
			text_printf(p, "\tmbarrier.complete_tx.relaxed.cta%s.b64 [s], %u;\n", space,
				bytes);
			m.tx -= bytes;
			step(&m, 0);
			keep(i, k, k);
			break;
		case 6: { /* with or without noComplete, or with expect_tx */
			unsigned form = rng_below(r, 3);
			n = form == 2 ? 1 : n;
			if (m.expected <= n || (form == 1 && n >= m.pending)) {
				keep(i, k, k);
				break;
			}
			m.expected -= n;
			if (form == 1) {
				text_printf(p, "\tmbarrier.arrive_drop.noComplete%s.b64 u, [s], "
					"%u;\n"
					"\tmbarrier.pending_count.b64 v, u;\n", space, n);
				m.pending -= n;
				keep(i, k, was);
				break;
			}
			token = m.phase;
			have_token = true;
			if (form == 2) {
				text_printf(p, "\tmbarrier.arrive_drop.expect_tx%s%s.b64 t, [s], "
					"%u;\n", order,
					space, bytes);
				m.tx += bytes;
			} else
				text_printf(p, "\tmbarrier.arrive_drop%s%s.b64 t, [s], %u;\n",
					order, space, n);
			step(&m, n);
			keep(i, k, k);
			break;
		}
		case 7:
			/* of the current phase or the one before */
			if (!have_token || m.phase - token > 1) {
				keep(i, k, k);
				break;
			}
			text_printf(p, "\tmbarrier.%s_wait%s%s.b64 p, [s], t;\n",
				m.phase != token && rng_once_in(r, 2) ? "try" : "test", acquire,
					space);
			keep_pred(i, k, m.phase != token);
			if (m.phase != token)
				waited = m.phase;
			break;
		case 8: {
			unsigned parity = rng_below(r, 2);
			bool done = (m.phase & 1) != parity;
			text_printf(p, "\tmbarrier.%s_wait.parity%s%s.b64 p, [s], %u;\n",
				done && rng_once_in(r, 2) ? "try" : "test", acquire, space, parity);
			keep_pred(i, k, done);
			if (done)
				waited = m.phase;
			break;
		}
		case 9: /* a new object */
			m = (struct model){ 1 + rng_below(r, 6), 0, 0, 0 };
			m.pending = m.expected;
			waited = 0;
			have_token = false;
			text_printf(p, "\tmbarrier.inval%s.b64 [s];\n\tmbarrier.init%s.b64 [s], "
				"%u;\n", space,
				space, m.expected);
			keep(i, k, k);
			break;
		}
	}
	text_printf(p, "\tmbarrier.inval%s.b64 [s];\n", space);
}
