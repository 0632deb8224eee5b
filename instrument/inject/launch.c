/* launch: sets the instrumented module's variable to the pool before a launch, waits for the
 * kernel, and passes its records on to be checked. Launches are handled one at a time, in the
 * order of their calls, unless one does not end (pending.c). */
#include "operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "instrument/decode/decode.h"

/* ---- before a launch ---- */

bool inject_capturing(CUstream s)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return cu.p_cuStreamIsCapturing && !cu.p_cuStreamIsCapturing(s, &status)
		&& status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void inject_enter(struct inject_launch *l)
{
	CUcontext now = NULL;

	cu.p_cuCtxGetCurrent(&now);
	if (!cu.p_cuStreamGetCtx || cu.p_cuStreamGetCtx(l->stream, &l->context) || !l->context)
		l->context = now;
	l->pushed = now != l->context && !cu.p_cuCtxPushCurrent(l->context);
}

void inject_leave(struct inject_launch *l)
{
	if (l->pushed)
		cu.p_cuCtxPopCurrent(&(CUcontext){ NULL });
	l->pushed = false;
}

CUfunction inject_function_of(CUfunction f, CUmodule *m)
{
	if (!cu.p_cuFuncGetModule(m, f))
		return f;
	if (!cu.p_cuKernelGetFunction || cu.p_cuKernelGetFunction(&f, (CUkernel)f)
			|| cu.p_cuFuncGetModule(m, f))
		return NULL;
	return f;
}

const char *inject_name(CUfunction f)
{
	const char *name = NULL;
	CUmodule m;

	f = inject_function_of(f, &m);
	return f && cu.p_cuFuncGetName && !cu.p_cuFuncGetName(&name, f) && name ? name : "?";
}

/* False: the launch cannot be recorded, why: or "" if there is no PTX. */
static bool find_code(struct inject_launch *l, const struct inject_bound *b, char why[INJECT_WHY])
{
	if (!inject_whole(b->image))
		return inject_kernel(l, b, why);
	l->function = l->original;
	l->module = inject_whole(b->image);
	l->variable = b->variable;
	return true;
}

static void choose_cluster(struct inject_launch *l)
{
	const uint32_t *required = gpu_module_cluster(l->module, l->kernel);

	l->clustered = l->cluster[0] || (required && required[0]);
	for (unsigned d = 0; d < 3; d++)
		if (!l->cluster[d])
			l->cluster[d] = required && required[d] ? required[d] : 1;
	l->tickets = l->cluster[0] * l->cluster[1] * l->cluster[2] > 1 ||
		gpu_module_tickets(l->module, l->kernel);
}

/* Frames of functions that record are up to four times as large, by the registers saved around
 * calls. The growth has a limit that does not depend on the frame. */
#define STACK_EXTRA_MAX (16u << 10)

/* Raises the stack limit, which the program chose for its own frames; a limit that it sets
 * later is raised again. */
static void raise_stack_limit(const struct inject_launch *l)
{
	static VEC(struct stack { CUcontext context; size_t bytes; }) set;
	struct stack now = { 0 };
	size_t k, more;

	if (!gpu_module_unbounded_stack(l->module, l->kernel) ||
			!cu.p_cuCtxGetLimit || !cu.p_cuCtxSetLimit ||
			cu.p_cuCtxGetCurrent(&now.context) ||
			cu.p_cuCtxGetLimit(&now.bytes, CU_LIMIT_STACK_SIZE))
		return;
	for (k = 0; k < set.n && set.at[k].context != now.context; k++)
		;
	if (k < set.n && set.at[k].bytes == now.bytes)
		return;
	more = 3 * now.bytes < STACK_EXTRA_MAX ? 3 * now.bytes : STACK_EXTRA_MAX;
	if (cu.p_cuCtxSetLimit(CU_LIMIT_STACK_SIZE, now.bytes + more))
		return; /* the old limit may be enough */
	cu.p_cuCtxGetLimit(&now.bytes, CU_LIMIT_STACK_SIZE);
	if (k == set.n)
		vec_push(&set, now);
	set.at[k].bytes = now.bytes;
}

/* Writes the pool's head and the module's variable. True: the launch can record. */
static bool prepare(struct inject_launch *l)
{
	const struct inject_pool *pool = l->pool;
	struct record_params p = { .tickets = l->tickets };
	const struct record_head head = { .next = 1,
		.wait_cycles = gpu_drains(inject_session()) ? RECORD_WAIT_CYCLES : 0 };

	if (l->mixed)
		return true;       /* the variable is another launch's */
	p.pool = l->wanted ? pool->at : 0;
	p.chunks = pool->chunks;
	p.ring = pool->at + RECORD_RING_AT(pool->chunks);
	p.ticket = l->ticket = inject_ticket(pool);
	inject_emptied(pool);      /* wait until the records of the last launch are cleared */
	if (l->tickets && gpu_alone(inject_session()) && !inject_ticket_restart(pool))
		return false;
	return !cu.p_cuMemcpyHtoDAsync(pool->at, &head, sizeof head, l->stream)
		&& !cu.p_cuMemcpyHtoDAsync(l->variable, &p, sizeof p, l->stream);
}

/* What follows in the stream does not record. */
static void stop_recording(const struct inject_launch *l)
{
	cu.p_cuMemcpyHtoDAsync(l->variable, &(struct record_params){ 0 }, sizeof(struct record_params),
		l->stream);
}

/* By id, as a handle may be used again, or may stand for a stream of each thread. */
uint64_t inject_queue(CUstream s)
{
	unsigned long long id;

	return cu.p_cuStreamGetId && !cu.p_cuStreamGetId(s, &id) ? id : (uintptr_t)s;
}

static bool not_recorded(struct inject_launch *l)
{
	free(l->kernel);
	l->kernel = NULL;
	l->module = NULL;
	l->instead = NULL;
	return false;
}

static bool unchecked(struct inject_launch *l, const char *why)
{
	gpu_unchecked(inject_session(), l->kernel, l->wanted, l->queue, why);
	return not_recorded(l);
}

static bool no_module(struct inject_launch *l)
{
	const char *library = consan_ignores_libraries(inject_session()) ? consan_calling_library() : NULL;

	if (!library)
		return unchecked(l, "its module holds no PTX that could be instrumented");
	gpu_skip(inject_session(), l->kernel, l->queue);
	return not_recorded(l);
}

static void start_replay(struct inject_launch *l); /* describes it as a check does, below */

/* The process may end while it runs. */
static void note_begin(const struct inject_launch *l)
{
	struct gpu_launch g = { .kernel = l->kernel, .number = l->wanted };

	if (!l->wanted)
		return;
	memcpy(g.grid, l->grid, sizeof g.grid);
	memcpy(g.block, l->block, sizeof g.block);
	memcpy(g.cluster, l->cluster, sizeof g.cluster);
	gpu_begins(inject_session(), &g);
}

static bool prepare_launch(struct inject_launch *l)
{
	const char *name = l->name, *busy;
	struct inject_bound b = { 0 };
	char why[INJECT_WHY] = "";

	if (inject_capturing(l->stream)) /* first, as a capture does not allow some of the calls
					    below */
		return false;
	inject_enter(l);
	l->kernel = base_strdup(name ? name : inject_name(l->f));
	l->queue = inject_queue(l->stream);
	if (l->begun) /* it does not wait for what the kernel does */
		operations_recorded(l->begun, l->stream);
	if (!l->op)
		l->op = operations_issue(l->stream, "cuLaunchKernel", l->kernel);
	l->operation = operations_open(l->op);
	l->original = inject_function_of(l->f, &l->loaded);
	if (l->original)
		b = inject_image_of(l->loaded, inject_name(l->original));
	if (!b.image)
		return no_module(l);
	if (l->preferred)
		return unchecked(l, "the GPU chooses the size of each of its clusters, which is not recorded");
	l->wanted = gpu_wants(inject_session(), l->kernel);
	if (!l->wanted && !inject_whole(b.image)) {
		gpu_skip(inject_session(), l->kernel, l->queue);
		return not_recorded(l);
	}
	if (!find_code(l, &b, why))
		return unchecked(l, why);
	choose_cluster(l);
	raise_stack_limit(l);
	inject_times_await();
	l->start = progress_seconds();
	if (!inject_take_pool(l, &busy)) {
		stop_recording(l);
		return unchecked(l, busy);
	}
	if (prepare(l)) {
		note_begin(l);
		if (l->wanted && gpu_replays(inject_session()))
			start_replay(l);
		return true;
	}
	inject_give_pool(l, false);
	stop_recording(l);
	return unchecked(l, "its records cannot be prepared");
}

void inject_before(struct inject_launch *l)
{
	consan_python_launches();
	inject_lock();
	if (prepare_launch(l))
		l->launched = progress_seconds();
	inject_leave(l);
	if (l->module) {
		gpu_runs(inject_session());
		inject_locked_for(l);
		return; /* inject_after() unlocks it */
	}
	operations_close(l->operation);
	inject_unlock();
}

/* ---- after ---- */

static void *pack(const struct inject_launch *l)
{
	uint32_t bytes = gpu_module_params(l->module, l->kernel), at, n;
	char *block = base_alloc(bytes + 16);

	if (l->packed)
		return memcpy(block, l->packed, bytes + 16);
	for (size_t k = 0; l->params && gpu_module_param(l->module, l->kernel, k, &at, &n); k++)
		memcpy(block + at, l->params[k], n);
	for (size_t k = 0; !l->params && l->extra && l->extra[k] != CU_LAUNCH_PARAM_END; k += 2)
		if (l->extra[k] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			memcpy(block, l->extra[k + 1], bytes);
	return block;
}

/* When the kernel had ended, the digest was known and the records were copied, in seconds. */
struct times { double ran, facts, copied; };

/* The records of a launch, for the callbacks of gpu_check(). */
struct records {
	const struct inject_launch *l;
	uint32_t chunks;           /* of the launch */
	uint32_t fetched;          /* of these, copied */
	uint8_t *skip;             /* see struct gpu_launch; owned */
	bool screened;
	struct screen_edge *edge;  /* see struct gpu_launch; owned */
	char unscreened[160];      /* with gpu_screens(): why it was not screened, or what the screen found */
	struct times t;
};

static bool find_memory(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes)
{
	const struct records *r = user;

	return inject_find_memory(r->l, addr, from, bytes);
}

static bool find_map(void *user, uint64_t address, const void *param, void *bytes)
{
	const struct records *r = user;

	return inject_find_map(r->l->context, address, param, bytes);
}

static void accessed(void *user, const struct order_range *range, size_t n)
{
	operations_accessed(((const struct records *)user)->l->operation, range, n);
}

static bool find_named(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes)
{
	(void)user;
	return operations_find(addr, from, bytes);
}

static const void *whole(void *user, uint32_t *chunks)
{
	const struct records *r = user;

	*chunks = r->chunks;
	return inject_fetch(r->l->pool, (size_t)(r->chunks + 1) * RECORD_CHUNK_BYTES);
}

static void say_times(const struct records *r, const struct gpu_cost *cost)
{
	const struct inject_launch *l = r->l;
	const struct times *t = &r->t;
	double end = progress_seconds();
	struct inject_time gpu;
	struct text clock = { 0 };

	if (!gpu_times(inject_session()))
		return;
	if (inject_time(&gpu)) {
		text_printf(&clock, "; by the GPU's clock: kernel %.3f ms, ours %.3f ms, screen %.3f ms, of "
			"it scan %.3f ms; a thread has %u registers, %u bytes of local memory", 1e3 * gpu.kernel,
			1e3 * gpu.ours, 1e3 * gpu.screen, 1e3 * gpu.scan, gpu.registers, gpu.local);
		gpu_timed(inject_session(), l->kernel, gpu.kernel);
	}
	inject_print("times of %s: prepare %.3f ms, run %.3f ms, copy %.3f ms (%u KiB of %u; "
		"digest %.3f ms), check %.3f ms (%u clusters%s: %.3f ms), whole %.3f ms%s",
		l->kernel, 1e3 * (l->launched - l->start), 1e3 * (t->ran - l->launched),
		1e3 * (t->copied - t->ran),
		r->fetched * (RECORD_CHUNK_BYTES / 1024), r->chunks * (RECORD_CHUNK_BYTES / 1024),
		1e3 * (t->facts - t->ran), 1e3 * (end - t->copied), cost->clusters,
		cost->again ? ", then again" : "", 1e3 * cost->check,
		1e3 * (end - l->start), clock.at ? clock.at : "");
	text_free(&clock);
	if (gpu_screens(inject_session(), l->module))
		inject_print("screen of %s: %s", l->kernel, r->screened ? "clean"
			: *r->unscreened ? r->unscreened : "its records were drained");
}

/* No call of the driver works after a fault, so this is asked before. */
static void ask_attributes(struct inject_launch *l)
{
	int value = 0;

	cu.p_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, l->function);
	/* the system's 1 KiB comes first, alignment costs at most another */
	l->shared_all = (uint32_t)value + l->shared + 2048;
	cu.p_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, l->function);
	l->nregs = (uint32_t)value;
}

static void describe(const struct inject_launch *l, struct gpu_launch *g)
{
	g->module = l->module;
	g->kernel = l->kernel;
	g->number = l->wanted;
	g->shared = l->shared_all;
	g->shared_dynamic = l->shared;
	g->nregs = l->nregs;
	g->sm = gpu_module_sm(l->module);
	g->tickets = l->tickets;
	g->queue = l->queue;
	g->programmatic = l->programmatic;
	g->clustered = l->clustered;
	g->map = find_map;
	g->memory = find_memory;
	g->op = l->op;
	g->ticket = l->ticket;
	g->device = (unsigned)l->pool->device;
	g->accessed = accessed;
	g->named = find_named;
	memcpy(g->grid, l->grid, sizeof g->grid);
	memcpy(g->block, l->block, sizeof g->block);
	memcpy(g->cluster, l->cluster, sizeof g->cluster);
}

/* g's callbacks use r. */
static void open_launch(struct gpu_launch *g, struct records *r)
{
	describe(r->l, g);
	g->user = r;
	g->params = pack(r->l);
	gpu_launch_open(g);
}

static void close_launch(struct gpu_launch *g)
{
	gpu_launch_close(g);
	free((void *)g->params);
}

/* ---- --gpu-then-cpu ---- */

static void start_replay(struct inject_launch *l)
{
	struct records r = { .l = l };
	struct gpu_launch g = { 0 };

	open_launch(&g, &r);
	l->replay = inject_replay(l, &g);
	close_launch(&g);
}

void inject_end_replay(struct inject_launch *l)
{
	struct records r = { .l = l };
	struct gpu_launch g = { .user = &r };

	if (!l->replay)
		return;
	describe(l, &g);
	gpu_replay_end(inject_session(), l->replay, &g);
	l->replay = NULL;
}

/* A launch that still runs so many seconds after its begin may never end, and the user then ends the program:
 * what its replay found must be in the report by then. */
#define REPLAY_ALONE 1.0

bool inject_takes_replay(const struct inject_launch *l)
{
	return l->replay && progress_seconds() - l->launched >= REPLAY_ALONE && gpu_replay_ended(l->replay);
}

/* ---- the check ---- */

/* Few chunks are not worth the digest. */
#define FEW_CHUNKS 64

/* With --gpu-global, only a launch that can be screened need be looked at. */
static bool may_screen(struct records *r, const struct gpu_launch *g)
{
	const char *why = gpu_screens(inject_session(), g->module) ? gpu_screen_refuses(inject_session(), g) : NULL;

	snprintf(r->unscreened, sizeof r->unscreened, "%s", why ? why : "it could not be done now");
	return !why;
}

/* Copies the records of all clusters, or only of those that must be checked. */
static bool copy_records(struct records *r, struct gpu_launch *g)
{
	const struct inject_pool *from = r->l->pool;
	const struct record_head *head;
	struct inject_facts facts;
	bool digested;

	g->edges = gpu_screens(inject_session(), g->module) && gpu_screen_wants_edges(inject_session(), g);
	/* a kernel of ours might not begin while one that waits fills the GPU */
	digested = g->ended && !gpu_each(inject_session()) && !inject_pending(r->l->context)
		&& may_screen(r, g) && inject_facts(from, g, &facts);

	if (digested && gpu_screens(inject_session(), g->module)) {
		g->screened = r->screened = facts.screened;
		g->edge = r->edge = facts.edge;
		g->nedges = facts.nedges;
		memcpy(r->unscreened, facts.unscreened, sizeof r->unscreened);
	}
	head = digested ? facts.head : inject_fetch(from, RECORD_CHUNK_BYTES);
	r->t.facts = progress_seconds();
	if (!head)
		return false;
	g->dropped = head->dropped;
	r->chunks = r->fetched = head->next - 1 < from->chunks ? head->next - 1 : from->chunks;
	digested &= g->screened || !gpu_screens(inject_session(), g->module);
	if (digested && r->chunks > FEW_CHUNKS && !g->dropped)
		g->pool = inject_fetch_some(from, g, &facts, r->chunks, &r->skip, &r->fetched);
	if (!g->pool)
		g->pool = whole(r, &r->fetched);
	g->chunks = r->fetched;
	g->skip = r->skip;
	return g->pool;
}

/* Checks one that is not checked together with others (gpu_ran()), as records of it may be missing. */
static void check_by_itself(struct gpu_launch *g)
{
	g->beside = gpu_overlaps(inject_session());
	gpu_check(inject_session(), g);
}

/* Checks a launch that was drained. at: the pool's memory after a fault; NULL: the pool can be
 * read. */
static void check_drained(const struct inject_launch *l, bool ended, const char *fault,
	const void *at)
{
	struct gpu_cost cost = { 0 };
	struct gpu_launch g = { .ended = ended, .fault = fault, .cost = &cost };
	struct records r = { .l = l, .t = { .ran = progress_seconds() } };
	struct drained d;

	open_launch(&g, &r);
	if (inject_drain_end(l->drain, ended, at, &g, &d)) {
		r.t.facts = r.t.copied = progress_seconds();
		check_by_itself(&g);
		r.chunks = d.head->next - 1;
		r.fetched = g.chunks;
		say_times(&r, &cost);
		if (gpu_times(inject_session()))
			inject_print("drained of %s: %llu KiB while it ran; %u clusters were "
				"retired", l->kernel,
				(unsigned long long)d.drained * (RECORD_CHUNK_BYTES / 1024),
				d.retired);
	} else {
		gpu_unchecked(inject_session(), l->kernel, l->wanted, l->queue,
			"its records could not be copied from the GPU");
	}
	if (ended)
		inject_empty_all(l->pool);
	close_launch(&g);
}

/* A launch that is checked when others have ended, too. */
struct kept {
	struct inject_launch l;
	struct records r;
	struct gpu_launch g;
	void *pool;
};

static void kept_checked(struct gpu_launch *g)
{
	struct kept *k = (struct kept *)((char *)g - offsetof(struct kept, g));

	operations_close(k->l.operation);
	close_launch(g);
	free(k->l.kernel);
	free(k->pool);
	free(k);
}

/* g's records are in memory that the next launch uses. */
static void keep(struct inject_launch *l, struct gpu_launch *g)
{
	const size_t bytes = ((size_t)g->chunks + 1) * RECORD_CHUNK_BYTES;
	struct kept *k = base_alloc(sizeof *k);

	gpu_launch_close(g);
	*k = (struct kept){ .l = *l, .g = *g, .r = { .l = &k->l }, .pool = malloc(bytes) };
	if (!k->pool)
		base_die("out of memory");
	k->l.kernel = base_strdup(l->kernel);
	k->l.name = NULL;
	k->l.params = k->l.extra = NULL;
	k->g.pool = memcpy(k->pool, g->pool, bytes);
	k->g.kernel = k->l.kernel;
	k->g.user = &k->r;
	k->g.whole = NULL;
	k->g.cost = NULL;
	gpu_launch_open(&k->g);
	l->operation = NULL;
	gpu_ran(inject_session(), &k->g, kept_checked);
}

static void not_kept(struct gpu_launch *g)
{
	(void)g;
}

static void check(struct inject_launch *l, bool ended)
{
	struct gpu_cost cost = { 0 };
	struct gpu_launch g = { .ended = ended, .cost = &cost, .whole = whole };
	/* if it is not known how many chunks there are, all of the pool is cleared */
	struct records r = { .l = l, .chunks = l->pool->chunks, .t = { .ran = progress_seconds() } };
	bool copied;

	open_launch(&g, &r);
	copied = copy_records(&r, &g);
	r.t.copied = progress_seconds();
	if (copied && ended && gpu_keeps(inject_session(), &g)) {
		l->counted = true;
		inject_empty(l->pool, r.chunks + 1);
		keep(l, &g);
		return;
	}
	if (copied && ended) {
		l->counted = true;
		gpu_ran(inject_session(), &g, not_kept);
	} else if (copied) {
		check_by_itself(&g);
	} else {
		gpu_unchecked(inject_session(), l->kernel, l->wanted, l->queue,
			"its records could not be copied from the GPU");
	}
	if (ended)
		inject_empty(l->pool, r.chunks + 1 + (g.dropped != 0));
	if (copied && ended)
		say_times(&r, &cost);
	close_launch(&g);
	free(r.edge);
	free(r.skip);
}

/* Checks what a kernel had recorded before the GPU stopped it. No call of the driver works any
 * more. */
static void check_fault(const struct inject_launch *l, const char *error)
{
	char why[200];
	struct records r = { .l = l };
	struct gpu_launch g = { .fault = why };
	size_t bytes = 0;
	const struct record_head *head = inject_rescue(l->pool, &bytes);

	snprintf(why, sizeof why, "the GPU reported %s %s this launch%s", error, l->beside ? "during" : "in",
		head ? "" : ", and its records could not be saved");
	if (!head) {
		gpu_unchecked(inject_session(), l->kernel, l->wanted, l->queue, why);
		return;
	}
	if (l->drain) {
		check_drained(l, false, why, head);
		munmap((void *)head, bytes);
		return;
	}
	g.dropped = head->dropped;
	g.chunks = head->next - 1 < l->pool->chunks ? head->next - 1 : l->pool->chunks;
	g.pool = head;
	open_launch(&g, &r);
	check_by_itself(&g);
	close_launch(&g);
	munmap((void *)head, bytes);
}

static void start_draining(struct inject_launch *l)
{
	struct records r = { .l = l };
	struct gpu_launch g = { 0 };

	open_launch(&g, &r);
	l->drain = inject_drain_open(l->pool, &g);
	close_launch(&g);
}

/* False: there was nothing to do. */
static bool drain(struct inject_launch *l)
{
	if (!l->drain && inject_is_full(l->pool))
		start_draining(l);
	return l->drain && inject_drain(l->drain);
}

/* What can be done while the kernel runs. */
static void prepare_check(struct inject_launch *l)
{
	struct gpu_launch g = { 0 };

	ask_attributes(l);
	describe(l, &g);
	gpu_note_unrecorded(inject_session(), &g);
	if (!gpu_each(inject_session()))
		inject_prepare_facts(l->pool, &g);
}

/* Seconds before the pool is looked at: most launches are shorter and do not fill it. */
#define DRAIN_AFTER 0.001

/* CUDA_ERROR_NOT_READY: it was still running when the time was over, or has recorded nothing for so many
 * seconds, or has recorded all the time for much longer. */
static CUresult wait_for(struct inject_launch *l, double patience)
{
	const bool drains = l->wanted && gpu_drains(inject_session()) && !inject_is_spare(l->pool);
	const double limit = gpu_timeout(inject_session()), start = progress_seconds();
	double ran, since = 0;
	CUresult r;

	do {
		if (limit <= 0 && !drains && !patience && !l->replay)
			return cu.p_cuStreamSynchronize(l->stream);
		r = cu.p_cuStreamQuery(l->stream);
		if (r != CUDA_ERROR_NOT_READY)
			break;
		if (inject_takes_replay(l))
			inject_end_replay(l);
		ran = progress_seconds() - start;
		if (limit > 0 && ran >= limit)
			break;
		if (patience > 0 && ran - since >= patience && !l->drain) {
			if (!inject_records_more(l) || ran >= inject_patience_recording(l))
				break;
			since = ran;
		}
		if (!drains || ran < DRAIN_AFTER || !drain(l))
			usleep(ran < 0.01 ? 20 : drains ? 100 : 1000);
	} while (true);
	return r;
}

static void check_records(struct inject_launch *l, bool ended)
{
	if (l->drain)
		check_drained(l, ended, NULL, NULL);
	else
		check(l, ended);
}

/* A single kernel cannot be stopped: ends the process, after what was found is written. */
_Noreturn void inject_stop(struct inject_launch *l)
{
	if (!l->mixed)
		check_records(l, false);
	inject_end_replay(l);
	inject_print("%s still ran after --timeout=%g seconds: the program is ended", l->kernel,
		gpu_timeout(inject_session()));
	consan_close(inject_session());
	fflush(NULL);
	_exit(1);
}

/* --halt-on-error */
static void halt(void)
{
	int status;

	if (!consan_halted(inject_session(), &status))
		return;
	inject_remark(REMARK_NOTE, "the program was ended by --halt-on-error");
	consan_close(inject_session());
	fflush(NULL);
	_exit(status);
}

void inject_finish(struct inject_launch *l, CUresult r)
{
	const char *name = "";

	if (r) {
		cu.p_cuGetErrorName(r, &name);
		check_fault(l, name);
	} else if (!l->wanted) {
		gpu_skip(inject_session(), l->kernel, l->queue);
	} else if (l->mixed) {
		gpu_unchecked(inject_session(), l->kernel, l->wanted, l->queue, "it ran beside another launch of its "
			"module that it is not ordered with, so that their records are mixed");
	} else {
		check_records(l, true);
	}
	if (!l->counted)
		gpu_ran(inject_session(), NULL, NULL);
	inject_end_replay(l);
	if (l->beside)
		gpu_idle(inject_session()); /* other launches were checked in between */
	halt();
	inject_give_pool(l, !l->mixed);
	operations_close(l->operation);
}

/* The program goes on while it runs, or after it. */
static CUresult after(struct inject_launch *l, CUresult r)
{
	const double limit = gpu_timeout(inject_session());

	if (!r && l->wanted)
		prepare_check(l);
	if (!r)
		r = l->mixed ? CUDA_ERROR_NOT_READY
			: wait_for(l, inject_may_detach() ? inject_patience(l) : 0);
	if (r == CUDA_ERROR_NOT_READY && (limit <= 0 || progress_seconds() - l->launched < limit)) {
		l->packed = pack(l);
		if (inject_detach(l))
			return CUDA_SUCCESS;
		r = cu.p_cuStreamSynchronize(l->stream);
	}
	if (r == CUDA_ERROR_NOT_READY)
		inject_stop(l);
	inject_finish(l, r);
	/* a graph may run the kernel again, unwatched */
	if (!r)
		stop_recording(l);
	inject_drain_close(l->drain);
	free(l->packed);
	free(l->kernel);
	return r;
}

CUresult inject_after(struct inject_launch *l, CUresult r)
{
	if (!l->module)
		return r;
	inject_enter(l);
	r = after(l, r);
	inject_leave(l);
	inject_unlock();
	return r;
}
