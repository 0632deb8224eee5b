/* gpu_rehearse: GPU mode without a GPU: the instrumented PTX runs on the
 * executor, unchecked, and what it recorded is decoded and checked as if a GPU
 * had written it. This is how instrumentation is tested. */
#include "gpu.h"
#include "../instrument/record.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct print {
	struct consan *c;
	pthread_mutex_t lock;
};

static void on_print(void *user, const char *text, size_t n)
{
	struct print *p = user;

	pthread_mutex_lock(&p->lock);
	if (p->c->print)
		p->c->print(p->c->print_user, text, n);
	else
		fwrite(text, 1, n, stdout);
	pthread_mutex_unlock(&p->lock);
}

/* The executor's addresses are the host's. */
static bool find_map(void *user, uint64_t at, const void *param, void *bytes)
{
	struct exec_mem m;

	(void)user;
	if (param) {
		memcpy(bytes, param, TENSORMAP_BYTES);
		return true;
	}
	if (!exec_mem_find(at, &m) || m.at + m.bytes - at < TENSORMAP_BYTES)
		return false;
	memcpy(bytes, (const void *)(uintptr_t)at, TENSORMAP_BYTES);
	return true;
}

static bool find_memory(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes)
{
	struct exec_mem m;

	(void)user;
	*bytes = 0;
	if (exec_mem_find(addr, &m)) {
		*from = m.at;
		*bytes = m.bytes;
		return true;
	}
	for (size_t k = 0; exec_mem_at(k, &m) && m.at <= addr; k++) { /* in order of address */
		*from = m.at;
		*bytes = m.bytes;
	}
	return true;
}

/* Nothing is far away here: it is as if all clusters were unlike each other. */
static bool rest(void *user, const void **pool, uint32_t *chunks, const uint8_t **skip)
{
	(void)user, (void)pool, (void)chunks, (void)skip;
	return true;
}

static void check(struct consan *c, const struct consan_launch *l, const void *params,
	const char *pool, uint32_t chunks, bool tickets, const struct exec_launch *x,
	const struct exec_result *r)
{
	const struct record_head *head = (const void *)pool;
	struct gpu_launch g = { .module = l->kernel->module->gpu, .kernel = l->kernel->info.name,
		/* between the two the executor aligns */
		.shared = l->kernel->info.shared_static + l->shared_dynamic + 2048,
		.shared_dynamic = l->shared_dynamic, .nregs = l->kernel->info.nregs, .sm = c->gpu->sm,
		.pool = pool, .chunks = head->next - 1 < chunks ? head->next - 1 : chunks,
		.dropped = head->dropped, .tickets = tickets, .params = params, .map = find_map,
		/* a cooperative launch had memory of its own, which is gone */
		.memory = l->cooperative ? NULL : find_memory,
		.fault = r->status == EXEC_FAULT || r->status == EXEC_TRAP ? "the kernel faulted"
			: r->status == EXEC_STOPPED ? "it was stopped" : NULL,
		.ended = r->status == EXEC_OK, .queue = l->queue, .programmatic = l->programmatic };

	memcpy(g.grid, x->grid, sizeof g.grid);
	memcpy(g.block, x->block, sizeof g.block);
	memcpy(g.cluster, x->cluster, sizeof g.cluster);
	gpu_launch_open(&g);
	if (g.ended && !g.dropped && gpu_looks_ahead(c, &g))
		g.rest = rest;
	gpu_check(c, &g);
	gpu_launch_close(&g);
}

static enum consan_status rehearse(struct consan *c, const struct consan_launch *l,
	const void *params, struct err *e)
{
	struct print print = { .c = c };
	struct exec_observer observer = { .user = &print, .print = on_print };
	struct exec_launch x = { .device = c->gpu, .kernel = l->kernel->exec,
		.shared_dynamic = l->shared_dynamic, .params = params, .cooperative = l->cooperative,
		.carry_on = true,
		.seed = c->opt.seed, .jobs = (unsigned)c->opt.jobs, .timeout = c->opt.timeout,
		.observer = &observer };
	const uint32_t *required = l->kernel->info.func->reqnctapercluster;
	uint64_t bytes = c->opt.gpu_memory ? c->opt.gpu_memory << 20 : 1ull << 30, at_bytes;
	struct exec_result r = { 0 };
	struct record_params *at;
	struct record_head *pool;
	uint32_t chunks;
	bool wanted = gpu_wants(c, l->kernel->info.name);

	if (!wanted)
		bytes = 4 * RECORD_CHUNK_BYTES;
	memcpy(x.grid, l->grid, sizeof x.grid);
	memcpy(x.block, l->block, sizeof x.block);
	for (unsigned d = 0; d < 3; d++)
		x.cluster[d] = l->cluster[d] ? l->cluster[d] : required[d] ? required[d] : 1;
	pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool == MAP_FAILED || !exec_symbol(l->kernel->module->exec,
			gpu_module_variable(l->kernel->module->gpu), (void **)&at, &at_bytes)) {
		err_set(e, ERR_MEMORY, 0, 0, "no memory for the records of a launch");
		return CONSAN_BAD_LAUNCH;
	}
	exec_mem_add(pool, bytes, MEM_DEVICE, false);
	chunks = (uint32_t)(bytes / RECORD_CHUNK_BYTES) - 2;
	pool->next = pool->ticket = 1;
	at->pool = (uint64_t)(uintptr_t)pool;
	at->chunks = chunks;
	at->tickets = x.cluster[0] * x.cluster[1] * x.cluster[2] > 1 ||
		gpu_module_tickets(l->kernel->module->gpu, l->kernel->info.name);
	if (wanted) {
		struct gpu_launch g = { .module = l->kernel->module->gpu, .kernel = l->kernel->info.name,
			.shared = l->kernel->info.shared_static + l->shared_dynamic + 2048, .sm = c->gpu->sm };

		memcpy(g.grid, x.grid, sizeof g.grid);
		memcpy(g.block, x.block, sizeof g.block);
		memcpy(g.cluster, x.cluster, sizeof g.cluster);
		gpu_expect(c, &g);
	}
	pthread_mutex_init(&print.lock, NULL);
	exec_run(&x, &r);
	pthread_mutex_destroy(&print.lock);
	if (r.status == EXEC_BAD_LAUNCH || r.status == EXEC_UNSUPPORTED) {
		err_set(e, r.err.code ? r.err.code : ERR_LAUNCH, r.err.line, r.err.col, "%s", r.err.text);
		gpu_unchecked(c, l->kernel->info.name, l->queue, r.err.text);
	} else if (wanted) {
		check(c, l, params, (const char *)pool, chunks, at->tickets, &x, &r);
	} else {
		gpu_skip(c, l->kernel->info.name, l->queue);
	}
	exec_mem_remove(pool);
	munmap(pool, bytes);
	c->fault = r.fault;
	return session_status(r.status);
}

/* A module has one variable that says where to record: launches come by turns. */
enum consan_status gpu_rehearse(struct consan *c, const struct consan_launch *l,
	const void *params, struct err *e)
{
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
	enum consan_status s;

	pthread_mutex_lock(&turn);
	s = rehearse(c, l, params, e);
	pthread_mutex_unlock(&turn);
	return s;
}
