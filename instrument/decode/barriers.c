/* barriers: the state of mbarriers, as far as the decoder needs it: whether a phase is
 * complete, and which asynchronous operations must have signalled for that. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct model *model_of(struct dcluster *c, uint32_t peer, uint32_t addr)
{
	for (size_t k = 0; k < c->model.n; k++)
		if (c->model.at[k].addr == addr && c->model.at[k].peer == peer)
			return &c->model.at[k];
	vec_push(&c->model, ((struct model){ .peer = (uint16_t)peer, .addr = addr }));
	return &c->model.at[c->model.n - 1];
}

void model_init(struct model *m, uint32_t count)
{
	m->expected = m->pending = count;
	m->tx = 0;
	m->phase = 0;
	memset(m->arrived, 0, sizeof m->arrived);
	if (m->token)
		memset(m->token, 0, TOKENS * sizeof *m->token);
}

void model_close(struct model *m)
{
	vec_free(&m->signal);
	free(m->token);
}

static size_t place(uint64_t value)
{
	return (value * 0x9e3779b97f4a7c15u) >> 54;
}

void model_token(struct model *m, uint64_t value, uint64_t phase)
{
	struct token *t;

	if (!m->token)
		m->token = base_alloc(TOKENS * sizeof *m->token);
	t = &m->token[place(value)];
	if (!t->known || t->value != value || t->phase < phase)
		*t = (struct token){ value, phase, true };
}

bool model_phase(const struct model *m, uint64_t value, uint64_t *phase)
{
	const struct token *t = m->token ? &m->token[place(value)] : NULL;

	if (!t || !t->known || t->value != value)
		return false;
	*phase = t->phase;
	return true;
}

/* No arrival on this object has returned the token. */
static bool never_returned(const struct model *m, uint64_t value)
{
	return !m->token || !m->token[place(value)].known;
}

const struct model *model_of_token(const struct dcluster *c, const struct model *m, uint64_t value)
{
	uint64_t phase;

	if (!never_returned(m, value))
		return NULL;
	for (size_t k = 0; k < c->model.n; k++)
		if (c->model.at[k].peer == m->peer && model_phase(&c->model.at[k], value, &phase))
			return &c->model.at[k];
	return NULL;
}

static void test(struct model *m)
{
	if (m->pending || m->tx || !m->expected)
		return;
	m->phase++;
	m->pending = m->expected;
}

void model_add_signal(struct model *m, const struct signal *s)
{
	if (m->done && m->done == m->signal.n)
		m->done = m->signal.n = 0;
	vec_push(&m->signal, *s);
}

static bool land_one(struct dcluster *c, struct model *m)
{
	struct signal s;
	struct event e;

	if (m->done == m->signal.n)
		return false;
	s = m->signal.at[m->done++];
	e = (struct event){ .kind = EV_MBARRIER_SIGNAL, .cta = s.cta, .warp = s.warp, .lanes = s.lanes,
		.site = s.site, .mbarrier_signal = { .owner = m->peer, .addr = m->addr,
		.async_op = s.op, .arrivals = s.count, .tx_count = s.tx } };
	emit(c, &e);
	m->tx -= s.tx;
	m->pending -= s.count < m->pending ? s.count : m->pending;
	test(m);
	return true;
}

/* An arrival lands no signals: as long as no wait has seen the phase complete, the arrival may
 * have come before them. */
void model_arrive(struct model *m, uint32_t count, int64_t tx, bool drop)
{
	m->tx += tx;
	if (drop)
		m->expected -= count < m->expected ? count : m->expected;
	m->pending -= count < m->pending ? count : m->pending;
	test(m);
}

void model_complete(struct model *m, int64_t tx)
{
	m->tx -= tx;
	test(m);
}

void model_wait(struct dcluster *c, struct model *m, bool parity, uint64_t value)
{
	while ((parity ? (m->phase & 1) == (value & 1) : m->phase <= value) && land_one(c, m))
		;
}

void model_land_all(struct dcluster *c)
{
	for (size_t k = 0; k < c->model.n; k++)
		while (land_one(c, &c->model.at[k]))
			;
}
