/* gpu_brief: the first look at a launch, which only asks whether there is anything to
 * find. If there is, notes included, whoever asked has it decoded and checked anew. Where
 * there are threads to spare, three share a cluster: one decodes, one checks what it is
 * told, one looks after the registers of wgmma. */
#include "gpu_parts.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RELAYS 4u

enum look { LOOK_ALL, LOOK_REGISTERS, LOOKS };
/* Hands of the crew: those that decode come first, then those that check what they tell.
 * Each makes what it will need itself, so that it is in its cache. Who they are is seen
 * when they are called for. */
enum { DECODER, DECODER_TOO, CHECKER, CHECKER_TOO, HANDS };

/* The checks are kept from launch to launch, with their memory, and made while the
 * first kernel runs. */
struct gpu_brief {
	struct check *check[LOOKS];
	struct relay *relay[RELAYS];
	struct crew_task task[HANDS];
	struct ready {
		struct gpu_brief *of;
		const struct gpu_module *module;
		const struct rewrite_func *func;
		struct check_config config;
	} ready;
	uint32_t bytes, nctas, threads; /* for which they were made */
	bool apart, relays;        /* of the launch at hand */
};

unsigned gpu_workers(const struct consan *c)
{
	long n = c->opt.jobs ? (long)c->opt.jobs : sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : (unsigned)n;
}

/* What is saved or counted is all events; global memory has no second look. */
bool gpu_brief_asks(const struct consan *c)
{
	return !c->save && !c->banks && !gpu_global(c);
}

static bool has_spare_threads(const struct consan *c, uint32_t clusters)
{
	return clusters && gpu_workers(c) / clusters >= 3;
}

void gpu_brief_settle(struct consan *c)
{
	for (unsigned k = 0; c->brief && k < HANDS; k++)
		crew_wait(&c->brief->task[k]);
}

static struct gpu_brief *brief_of(struct consan *c)
{
	if (!c->brief)
		c->brief = base_alloc(sizeof *c->brief);
	gpu_brief_settle(c);
	return c->brief;
}

static void drop_checks(struct gpu_brief *b)
{
	for (unsigned k = 0; k < LOOKS; k++) {
		if (b->check[k])
			check_close(b->check[k]);
		b->check[k] = NULL;
	}
	b->bytes = 0;
}

static void renew(struct gpu_brief *b, enum look k, struct check_config config)
{
	config.found = NULL;
	config.registers_apart = k == LOOK_ALL && b->apart;
	if (b->check[k])
		check_renew(b->check[k], &config);
	else
		b->check[k] = check_open(&config);
}

bool gpu_brief(struct consan *c, const struct check_config *config, const struct rewrite_func *f,
	struct decode_launch *d, struct decode_result *r, struct gpu_cost *cost)
{
	const struct finding *const *found;
	struct gpu_brief *b;
	bool clean;

	if (!gpu_brief_asks(c))
		return false;
	b = brief_of(c);
	b->relays = has_spare_threads(c, cost->clusters);
	b->apart = b->relays && f->note_of;
	renew(b, LOOK_ALL, *config);
	if (b->apart)
		renew(b, LOOK_REGISTERS, *config);
	cost->threads = 1u + b->relays + b->apart;
	d->brief = true;
	d->apart = b->apart;
	decode_run(d, r);
	d->brief = d->apart = false;
	clean = !r->damaged && !check_findings(b->check[LOOK_ALL], &found) &&
		!(b->apart && check_findings(b->check[LOOK_REGISTERS], &found));
	if (!clean)
		drop_checks(b);
	return clean;
}

/* Through a relay, if one is to be had. */
struct event_sink *gpu_brief_begin(struct consan *c, const struct cluster_info *info, bool registers)
{
	struct gpu_brief *b = c->brief;
	struct event_sink *sink = check_cluster_begin(b->check[registers ? LOOK_REGISTERS : LOOK_ALL], info);
	struct event_sink *s = NULL;

	for (unsigned k = 0; b->relays && !registers && !s && k < RELAYS; k++)
		s = relay_begin(b->relay[k], sink);
	return s ? s : sink;
}

void gpu_brief_end(struct consan *c, struct event_sink *sink, bool registers)
{
	check_cluster_end(c->brief->check[registers ? LOOK_REGISTERS : LOOK_ALL], relay_end(sink));
}

/* ---- before the launch ---- */

/* A cluster of the launch's shape, in which nothing happens. */
static struct check *make_check(const struct check_config *config)
{
	const struct launch_info *l = &config->launch;
	struct cluster_info info = { .launch = l, .nctas = l->cluster[0] * l->cluster[1] * l->cluster[2],
		.warps_per_cta = (l->block[0] * l->block[1] * l->block[2] + 31) / 32 };
	struct check *k = check_open(config);
	struct event_sink *sink = check_cluster_begin(k, &info);

	for (uint32_t cta = 0; cta < info.nctas; cta++)
		sink->event(sink, &(struct event){ .kind = EV_CTA_BEGIN, .cta = (uint16_t)cta,
			.peer = (uint16_t)cta, .lanes = UINT32_MAX, .size = l->shared_static,
			.count = l->block[0] * l->block[1] * l->block[2] });
	check_cluster_end(k, sink);
	return k;
}

static void be_decoder(void *user)
{
	const struct ready *r = user;

	decode_sites_fetch(r->module->sites, r->module->code, r->func->func);
}

static void be_decoder_too(void *user)
{
	const struct ready *r = user;

	if (r->func->note_of)
		r->of->check[LOOK_REGISTERS] = make_check(&r->config);
	be_decoder(user);
}

static void be_checker(void *user)
{
	const struct ready *r = user;

	r->of->check[LOOK_ALL] = make_check(&r->config);
}

static void be_checker_too(void *user)
{
	(void)user; /* of a second cluster, if there is one: who it is matters, no more */
}

/* Whose way is the longest may choose first. */
static const struct { unsigned hand; void (*be)(void *); } roles[HANDS] = {
	{ CHECKER, be_checker }, { DECODER, be_decoder }, { DECODER_TOO, be_decoder_too },
	{ CHECKER_TOO, be_checker_too },
};

void gpu_brief_stand_by(struct consan *c)
{
	struct gpu_brief *b;

	if (!gpu_brief_asks(c) || !has_spare_threads(c, 1))
		return;
	b = brief_of(c);
	for (unsigned k = 0; k < RELAYS && has_spare_threads(c, k + 1); k++)
		if (!b->relay[k])
			b->relay[k] = relay_open(CHECKER + k);
}

void gpu_brief_expect(struct consan *c, const struct gpu_launch *l)
{
	const struct rewrite_func *f = rewrite_find(l->module->code, l->kernel);
	struct check_config config = { .policy = c->policy };
	struct launch_info *i = &config.launch;
	uint32_t nctas, threads;
	struct gpu_brief *b;

	if (!gpu_brief_asks(c) || !has_spare_threads(c, 1) || !f || f->refused)
		return;
	b = brief_of(c);
	*i = (struct launch_info){ .kernel = f->func->name, .shared_static = l->shared, .sm = l->sm };
	memcpy(i->grid, l->grid, sizeof i->grid);
	memcpy(i->block, l->block, sizeof i->block);
	memcpy(i->cluster, l->cluster, sizeof i->cluster);
	nctas = i->cluster[0] * i->cluster[1] * i->cluster[2];
	threads = i->block[0] * i->block[1] * i->block[2];
	if (b->bytes >= l->shared && b->nctas == nctas && b->threads == threads) {
		crew_dismiss();
		return;
	}
	drop_checks(b);
	b->bytes = l->shared;
	b->nctas = nctas;
	b->threads = threads;
	b->ready = (struct ready){ b, l->module, f, config };
	for (unsigned k = 0; k < HANDS; k++)
		b->task[k] = (struct crew_task){ .work = roles[k].be, .arg = &b->ready, .hand = roles[k].hand };
	crew_call(b->task, HANDS, GPU_AWAKE);
}

void gpu_brief_close(struct consan *c)
{
	if (!c->brief)
		return;
	drop_checks(brief_of(c));
	for (unsigned k = 0; k < RELAYS; k++)
		relay_close(c->brief->relay[k]);
	free(c->brief);
	c->brief = NULL;
}
