/* gpu_emulate: emulated GPU mode. The instrumented PTX runs on the executor, unchecked, and
 * what it records is decoded and checked as if a GPU had written it. The tests of GPU mode
 * use it. */
#include "instrument/decode/decode.h"
#include "gpu_parts.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A module has one variable that points at the pool, so launches run one at a time. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *ticket;           /* the next one, of all launches; under `turn` */

struct print {
	struct consan *c;
	pthread_mutex_t lock;
	struct record_params *at;  /* that variable */
	const _Atomic bool *cut;
};

static enum exec_resume on_pause(void *user, enum exec_pause why, bool changed)
{
	struct print *p = user;
	const struct record_params mine = *p->at;
	const enum exec_resume how = session_pause(p->c, &turn, why, changed);

	*p->at = mine;
	return how;
}

static bool on_stop(void *user)
{
	struct print *p = user;

	return *p->cut;
}

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

/* Addresses of the executor are addresses of the host. */
static bool find_map(void *user, uint64_t at, const void *param, void *bytes)
{
	struct exec_mem m;

	(void)user;
	if (param) {
		memcpy(bytes, param, CONSAN_TENSORMAP_BYTES);
		return true;
	}
	if (!exec_mem_find(at, &m) || m.at + m.bytes - at < CONSAN_TENSORMAP_BYTES)
		return false;
	memcpy(bytes, (const void *)(uintptr_t)at, CONSAN_TENSORMAP_BYTES);
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

/* ---- the pool, drained while the executor runs ---- */

/* The instrumented code of a kernel. */
struct code {
	struct gpu_module *gpu;
	struct exec_module *exec;
	const struct exec_kernel *kernel;
};

struct emulation {
	struct consan *c;
	struct code code;
	const struct consan_launch *l;
	struct gpu_launch g;
	char *pool;
	struct screen_edge *edge;  /* of a screened launch */
	uint64_t bytes;            /* of it */
	void *params;              /* a copy */
	char *stage;               /* DRAIN_CHUNKS */
	struct drain *drain;
	pthread_t thread;
	bool draining, over;
};

static const void *peek(void *user, uint64_t at, size_t bytes)
{
	const struct emulation *r = user;

	memcpy(r->stage, r->pool + at, bytes);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return r->stage;
}

static const void *fetch(void *user, const struct drain_run *run, uint32_t n)
{
	const struct emulation *r = user;

	drain_pack(r->stage, r->pool, run, n);
	return r->stage;
}

static bool clear(void *user, const struct drain_run *run, uint32_t n)
{
	const struct emulation *r = user;

	for (uint32_t k = 0; k < n; k++)
		memset(r->pool + (size_t)run[k].first * RECORD_CHUNK_BYTES, 0,
			(size_t)run[k].n * RECORD_CHUNK_BYTES);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return true;
}

/* Lanes read it meanwhile: they must see whole words, as they do of a copy engine's writes. */
static bool write_pool(void *user, uint64_t at, const void *from, size_t bytes)
{
	char *to = ((const struct emulation *)user)->pool + at;
	const uint64_t *word = from;

	for (size_t k = 0; k < bytes / 8; k++)
		__atomic_store_n((uint64_t *)(void *)to + k, word[k], __ATOMIC_RELEASE);
	if (bytes % 8)
		__atomic_store_n((uint32_t *)(void *)to, *(const uint32_t *)from, __ATOMIC_RELEASE);
	return true;
}

static void *drain(void *user)
{
	struct emulation *r = user;

	while (!__atomic_load_n(&r->over, __ATOMIC_ACQUIRE))
		if (!drain_turn(r->drain))
			usleep(50);
	return NULL;
}

static struct drain_pool drain_pool_of(struct emulation *r, uint32_t chunks)
{
	return (struct drain_pool){ .user = r, .chunks = chunks, .peek = peek, .fetch = fetch,
		.clear = clear, .write = write_pool };
}

static void start_draining(struct emulation *r, uint32_t chunks)
{
	struct record_head *head = (void *)r->pool;
	struct drain_pool p = drain_pool_of(r, chunks);

	gpu_launch_open(&r->g);
	r->stage = base_alloc((size_t)DRAIN_CHUNKS * RECORD_CHUNK_BYTES);
	r->drain = gpu_drain(r->c, &r->g, &p, 1);
	head->wait_cycles = RECORD_WAIT_CYCLES;
	r->draining = !pthread_create(&r->thread, NULL, drain, r);
	if (!r->draining)
		head->wait_cycles = 1;
}

static void stop_draining(struct emulation *r)
{
	__atomic_store_n(&r->over, true, __ATOMIC_RELEASE);
	if (r->draining)
		pthread_join(r->thread, NULL);
}

static void release(struct emulation *r)
{
	munmap(r->pool, r->bytes);
	if (r->g.number)
		gpu_launch_close(&r->g);
	order_op_put(r->c->order, r->g.op);
	drain_close(r->drain);
	free(r->stage);
	free(r->edge);
	free(r->params);
	free(r);
}

static void checked(struct gpu_launch *l)
{
	release((struct emulation *)((char *)l - offsetof(struct emulation, g)));
}

static void check(struct emulation *r, const struct exec_result *x, uint32_t chunks)
{
	const struct record_head *head = (const void *)r->pool;
	struct drain_pool p = drain_pool_of(r, chunks);
	struct gpu_launch *g = &r->g;
	struct drained d = { 0 };

	g->pool = head;
	g->chunks = head->next - 1 < chunks ? head->next - 1 : chunks;
	g->dropped = head->dropped;
	g->fault = x->status == EXEC_FAULT || x->status == EXEC_TRAP ? "the kernel faulted"
		: x->status == EXEC_STOPPED ? "it was stopped" : NULL;
	g->ended = x->status == EXEC_OK;
	if (drain_begun(r->drain)) {
		/* copies from the host's memory do not fail */
		drain_end(r->drain, &p, g->ended, &d);
		gpu_take_drained(g, r->drain, &d);
	}
	if (gpu_times(r->c) && r->drain)
		fprintf(stderr, "consan: records of %s: %llu KiB left the pool while it ran, %u clusters "
			"were retired\n", g->kernel,
			(unsigned long long)d.drained * (RECORD_CHUNK_BYTES / 1024), d.retired);
	r->edge = gpu_emulate_screen(r->c, g);
	gpu_ran(r->c, g, checked);
}

static void describe(struct emulation *r, const struct exec_launch *x, const void *params,
	bool tickets)
{
	const struct consan_launch *l = r->l;

	r->g = (struct gpu_launch){ .module = r->code.gpu,
		.kernel = l->kernel->info.name,
		/* the executor aligns the dynamic part */
		.shared = l->kernel->info.shared_static + l->shared_dynamic + 2048,
		.shared_dynamic = l->shared_dynamic,
		.nregs = exec_entry_regs(x->kernel, x->block[0] * x->block[1] * x->block[2]),
		.sm = r->c->gpu->sm,
		.tickets = tickets, .params = params, .map = find_map,
		/* a cooperative launch has memory of its own, which is freed by now */
		.memory = l->cooperative ? NULL : find_memory,
		.queue = l->queue, .programmatic = l->programmatic, .clustered = x->clustered };
	memcpy(r->g.grid, x->grid, sizeof r->g.grid);
	memcpy(r->g.block, x->block, sizeof r->g.block);
	memcpy(r->g.cluster, x->cluster, sizeof r->g.cluster);
}

static uint64_t pool_bytes(const struct consan *c)
{
	uint64_t bytes = gpu_memory(c);

	return !bytes ? 1ull << 30 : bytes < RECORD_MOST_BYTES ? bytes : RECORD_MOST_BYTES;
}

/* ---- a kernel's own module ---- */

/* Gives it the addresses of the module's variables. */
static void share_variables(const struct consan_kernel *k)
{
	const char *name;
	uint64_t *table, bytes;
	void *at;

	if (!exec_symbol(k->gpu_exec, gpu_module_variable(k->gpu), &at, &bytes))
		return;
	table = (uint64_t *)(void *)((char *)at + sizeof(struct record_params));
	for (size_t n = 0; (name = gpu_module_global(k->gpu, n)); n++)
		if (exec_symbol(k->module->exec, name, &at, &bytes))
			table[n] = (uint64_t)(uintptr_t)at;
}

static void copy_constants(const struct consan_kernel *k)
{
	uint64_t bytes, most;
	const char *name;
	void *from, *to;

	for (size_t n = 0; (name = gpu_module_const(k->gpu, n)); n++)
		if (exec_symbol(k->module->exec, name, &from, &most) &&
				exec_symbol(k->gpu_exec, name, &to, &bytes))
			memcpy(to, from, bytes < most ? bytes : most);
}

static bool make_own(struct consan *c, struct consan_kernel *k, struct consan_err *e)
{
	const struct consan_module *m = k->module;
	struct ptx_module *ptx;
	const char *text;
	size_t n;

	k->gpu = gpu_module_cut(m->ptx->name, m->slices, k->info.name, true, gpu_global(c),
		gpu_drains(c), e);
	if (!k->gpu)
		return false;
	text = gpu_module_text(k->gpu, &n);
	ptx = ptx_parse(m->ptx->name, text, n, e);
	k->gpu_exec = ptx ? exec_load_on(ptx, m->device, NULL, e) : NULL;
	if (!k->gpu_exec) {
		gpu_module_close(k->gpu);
		k->gpu = NULL;
		return false;
	}
	share_variables(k);
	return true;
}

static bool find_code(struct consan *c, const struct consan_launch *l, struct code *code,
	struct consan_err *e)
{
	struct consan_kernel *k = (struct consan_kernel *)(uintptr_t)l->kernel;

	*code = (struct code){ k->module->gpu, k->module->exec, k->exec };
	if (code->gpu)
		return true;
	if (!k->gpu && !make_own(c, k, e))
		return false;
	copy_constants(k);
	*code = (struct code){ k->gpu, k->gpu_exec, exec_kernel(k->gpu_exec, k->info.name, e) };
	return code->kernel;
}

/* ---- --gpu-then-cpu ---- */

static bool global_at(void *user, const char *name, uint64_t *at)
{
	const struct consan_module *m = user;
	uint64_t bytes;
	void *found;

	if (!exec_symbol(m->exec, name, &found, &bytes))
		return false;
	*at = (uint64_t)(uintptr_t)found;
	return true;
}

static const void *constant(void *user, const char *name, uint64_t *bytes)
{
	const struct consan_module *m = user;
	void *found;

	return exec_symbol(m->exec, name, &found, bytes) ? found : NULL;
}

static struct gpu_replay *start_replay(struct emulation *r)
{
	struct consan *c = r->c;
	const struct consan_kernel *k = r->l->kernel;
	const struct gpu_input in = { .user = k->module, .global = global_at, .constant = constant,
		.own_memory = true, .sm = c->gpu->sm, .nregs = k->info.nregs_known ? k->info.nregs : 0,
		.cooperative = r->l->cooperative,
		.alone = !c->outside.alone || !k->info.polls || c->outside.alone() };

	return gpu_replay_wants(c, &r->g) ? gpu_replay_open(c, &r->g, &in) : NULL;
}

/* ---- launches ---- */

/* NULL: there is no memory. *at: the module's variable that must point at the pool. */
static struct record_head *open_pool(const struct code *code, uint64_t bytes,
	struct record_params **at)
{
	struct record_head *pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t at_bytes;

	if (pool == MAP_FAILED)
		return NULL;
	if (!ticket) {
		ticket = base_alloc(sizeof *ticket);
		exec_mem_add(ticket, sizeof *ticket, MEM_DEVICE, false);
	}
	if (!exec_symbol(code->exec, gpu_module_variable(code->gpu), (void **)at, &at_bytes)) {
		munmap(pool, bytes);
		return NULL;
	}
	exec_mem_add(pool, bytes, MEM_DEVICE, false);
	pool->next = 1;
	return pool;
}

static enum consan_status emulate(struct consan *c, const struct consan_launch *l,
	const struct code *code, const void *params, struct order_op *op, struct consan_err *e)
{
	struct print print = { .c = c };
	struct exec_observer observer = { .user = &print, .print = on_print };
	struct exec_launch x = { .device = c->gpu, .kernel = code->kernel,
		.shared_dynamic = l->shared_dynamic, .params = params,
		.cooperative = l->cooperative, .carry_on = true, .hardware = true,
		.seed = c->opt.seed, .jobs = (unsigned)c->opt.jobs, .timeout = c->opt.timeout,
		.observer = &observer };
	const uint32_t *required = l->kernel->info.func->reqnctapercluster;
	const uint64_t bytes = pool_bytes(c);
	const uint32_t chunks = RECORD_CHUNKS(bytes);
	struct emulation *r = base_alloc(sizeof *r);
	struct exec_result result = { 0 };
	struct record_params *at;
	struct record_head *pool;
	struct gpu_replay *replay = NULL;
	const uint32_t wanted = gpu_wants(c, l->kernel->info.name);

	if (!wanted && l->kernel->module->slices)
		x.kernel = l->kernel->exec;
	x.clustered = l->cluster[0] || l->preferred[0] || required[0];
	memcpy(x.grid, l->grid, sizeof x.grid);
	memcpy(x.block, l->block, sizeof x.block);
	for (unsigned d = 0; d < 3; d++)
		x.cluster[d] = l->preferred[d] ? l->preferred[d] : l->cluster[d] ? l->cluster[d]
			: required[d] ? required[d] : 1;
	pool = open_pool(code, bytes, &at);
	if (!pool) {
		free(r);
		err_set(e, CONSAN_ERR_MEMORY, 0, 0, "no memory for the records of a launch");
		return CONSAN_BAD_LAUNCH;
	}
	*at = (struct record_params){ wanted ? (uint64_t)(uintptr_t)pool : 0, chunks,
		x.cluster[0] * x.cluster[1] * x.cluster[2] > 1 ||
			gpu_module_tickets(code->gpu, l->kernel->info.name),
		(uint64_t)(uintptr_t)pool + RECORD_RING_AT(chunks), (uint64_t)(uintptr_t)ticket };
	if (gpu_alone(c))
		*ticket = 1;
	*r = (struct emulation){ .c = c, .code = *code, .l = l, .pool = (char *)pool, .bytes = bytes,
		.params = base_alloc(l->kernel->info.param_bytes + 1) };
	if (l->kernel->info.param_bytes)
		memcpy(r->params, params, l->kernel->info.param_bytes);
	describe(r, &x, r->params, at->tickets);
	r->g.op = op ? order_op_get(c->order, op) : NULL;
	r->g.ticket = (uint64_t)(uintptr_t)ticket;
	r->g.device = l->kernel->module->device;
	r->g.number = wanted;
	if (wanted) {
		gpu_begins(c, &r->g);
		gpu_note_unrecorded(c, &r->g);
		gpu_note_operations(c, true);
		if (gpu_drains(c))
			start_draining(r, chunks);
		else
			gpu_launch_open(&r->g);
		replay = start_replay(r);
	}
	pthread_mutex_init(&print.lock, NULL);
	print.at = at;
	if (c->outside.pause)
		observer.pause = on_pause;
	if (c->outside.cut) {
		print.cut = c->outside.cut();
		observer.stop = on_stop;
	}
	gpu_runs(c);
	exec_run(&x, &result);
	pthread_mutex_destroy(&print.lock);
	stop_draining(r);
	if (result.status == EXEC_BAD_LAUNCH || result.status == EXEC_UNSUPPORTED) {
		err_set(e, result.err.code ? result.err.code : CONSAN_ERR_LAUNCH, result.err.line,
			result.err.col, "%s", result.err.text);
		gpu_unchecked(c, l->kernel->info.name, wanted, l->queue, result.err.text);
	} else if (!wanted) {
		gpu_skip(c, l->kernel->info.name, l->queue);
	}
	exec_mem_remove(pool);
	if (wanted && result.status != EXEC_BAD_LAUNCH && result.status != EXEC_UNSUPPORTED) {
		check(r, &result, chunks);
	} else {
		gpu_ran(c, NULL, NULL);
		release(r);
	}
	gpu_replay_end(c, replay, NULL); /* all memory is the executor's */
	c->fault = result.fault;
	return session_status(result.status);
}

enum consan_status gpu_emulate(struct consan *c, const struct consan_launch *l,
	const void *params, struct order_op *op, struct consan_err *e)
{
	enum consan_status s = CONSAN_BAD_LAUNCH;
	struct code code;

	pthread_mutex_lock(&turn);
	if (find_code(c, l, &code, e))
		s = emulate(c, l, &code, params, op, e);
	else
		gpu_unchecked(c, l->kernel->info.name, 0, l->queue, e->text);
	pthread_mutex_unlock(&turn);
	return s;
}
