/* pending: launches that have not ended when their call returns. A launch is waited for, as its records
 * are in memory that the next one uses. But one that waits for another launch, on this device or a peer,
 * or for the host, would never end. So after some time the program goes on, and a thread of ours waits
 * for the launch and checks it. Another launch meanwhile records elsewhere (inject_free_pool()).
 *
 * A module has one variable that says where its kernels record. It is written in the launch's stream,
 * so that a launch which is ordered after a pending one of this module can have its own place. One
 * that is not ordered uses another copy of its kernel, in a module of its own (kernel.c). In a module that
 * is instrumented as a whole there is no such copy: its records go where those of the pending one go,
 * neither can be checked, and the report says so. */
#include "operations.h"
#include "instrument/record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds in which it records nothing: for which a launch's call waits for it, by the clock, as a GPU does
 * not run slower on a busy machine; the same with --gpu-drain, as a launch that is not waited for is not
 * drained; for a kernel that has run beside others. The others are seconds of wait_a_little(): for which a
 * launch waits for earlier ones that it is ordered after; for which it waits for memory for its records; and
 * at the end of a module, a context or the process. */
#define PATIENCE 1.0
#define PATIENCE_DRAIN 30.0
/* For so many times as long a launch is waited for if it records: it may do so in a loop that waits. */
#define PATIENCE_RECORDING 5
#define PATIENCE_LEARNED 0.005
#define PATIENCE_IN_ORDER 3.0
#define PATIENCE_FOR_MEMORY 30.0
#define PATIENCE_AT_END 10.0
/* And for which the end of the process waits for a launch that another thread waits for. */
#define PATIENCE_AT_EXIT 1.0

static struct {
	struct inject_launch *first;
	pthread_cond_t ended;
	VEC(char *) beside;        /* kernels that have run beside others */
} pending = { .ended = PTHREAD_COND_INITIALIZER };

static _Thread_local uint32_t stack_of_launch;

uint32_t inject_stack(void)
{
	return stack_of_launch ? stack_of_launch : consan_launch_stack();
}

bool inject_may_detach(void)
{
	return cu.p_cuEventCreate && cu.p_cuEventQuery
		&& (order_wants(operations_order()) || operations_host_has_memory());
}

bool inject_runs_beside(const char *kernel)
{
	for (size_t k = 0; k < pending.beside.n; k++)
		if (!strcmp(pending.beside.at[k], kernel))
			return true;
	return false;
}

double inject_patience(const struct inject_launch *l)
{
	const double limit = gpu_timeout(inject_session());
	const double most = inject_runs_beside(l->kernel) ? PATIENCE_LEARNED
		: gpu_drains(inject_session()) ? PATIENCE_DRAIN : PATIENCE;

	return limit > 0 && limit / 4 < most ? limit / 4 : most;
}

double inject_patience_recording(const struct inject_launch *l)
{
	return PATIENCE_RECORDING * inject_patience(l);
}

bool inject_records_more(struct inject_launch *l)
{
	const uint32_t before = l->drawn;

	l->drawn = inject_drawn(l->pool);
	return l->drawn != before && (before || l->drawn > 1);
}

/* ---- where a launch records ---- */

static bool is_after(const struct inject_launch *l, const struct inject_launch *p)
{
	return order_before(p->op, l->op, ORDER_PROMISED);
}

static struct inject_launch *using(const struct inject_launch *l, CUdeviceptr variable)
{
	for (struct inject_launch *p = pending.first; p; p = p->next)
		if (p->context == l->context && p->variable == variable && !is_after(l, p))
			return p;
	return NULL;
}

bool inject_runs_with(const struct inject_launch *l, CUdeviceptr variable)
{
	return using(l, variable);
}

/* The pending launch whose variable this one would have to overwrite. */
static struct inject_launch *in_the_way(const struct inject_launch *l)
{
	return using(l, l->variable);
}

bool inject_pending(CUcontext context)
{
	for (const struct inject_launch *p = pending.first; p; p = p->next)
		if (p->context == context && !p->checked)
			return true;
	return false;
}

/* For how long the launch should wait for pending ones. */
static double patience_for(const struct inject_launch *l)
{
	double most = 0;

	for (const struct inject_launch *p = pending.first; p; p = p->next) {
		const double t = is_after(l, p) && !inject_runs_beside(p->kernel) ? PATIENCE_IN_ORDER
			: inject_patience(p);

		if (p->context == l->context)
			most = t > most ? t : most;
	}
	return most;
}

/* Waits until a launch has ended, or for a millisecond. Returns the seconds that count: not those in which a
 * thread that checks a launch had the lock, nor those in which other programs had the processors. A launch
 * that has ended by then would be taken for one that has not. */
static double wait_a_little(void)
{
	const double look = 1e-3, start = progress_seconds();
	double took;

	inject_wait(&pending.ended, look);
	took = progress_seconds() - start;
	return took < 2 * look ? took : 2 * look;
}

static bool pending_record_more(CUcontext context)
{
	bool any = false;

	for (struct inject_launch *p = pending.first; p; p = p->next)
		if (p->context == context)
			any |= inject_records_more(p);
	return any;
}

/* Of `l`, which has waited for so long: pending launches seem to wait for something. since: when they were last
 * seen to record. */
static bool seem_to_wait(const struct inject_launch *l, double waited, double *since)
{
	const double most = patience_for(l);

	if (waited - *since < most)
		return false;
	*since = waited;
	return !pending_record_more(l->context) || waited >= PATIENCE_RECORDING * most;
}

/* Waits until pending launches are out of the way, or seem to wait for something. */
static void wait_for_others(const struct inject_launch *l, const struct inject_pool *pool)
{
	double waited = 0, since = 0;

	while ((in_the_way(l) || pool->users) && !seem_to_wait(l, waited, &since))
		waited += wait_a_little();
}

bool inject_await_loading(const struct inject_launch *l)
{
	double waited = 0, since = 0;

	while (inject_pending(l->context) && !seem_to_wait(l, waited, &since))
		waited += wait_a_little();
	return !inject_pending(l->context);
}

static void note_overlap(const struct inject_launch *l)
{
	for (struct inject_launch *p = pending.first; p; p = p->next)
		if (!is_after(l, p) && !inject_runs_beside(p->kernel))
			vec_push(&pending.beside, base_strdup(p->kernel));
}

static void use(struct inject_launch *l, struct inject_pool *pool)
{
	pool->users++;
	l->pool = pool;
}

bool inject_take_pool(struct inject_launch *l, const char **why)
{
	struct inject_pool *pool = inject_pool(), *free_one = NULL;
	struct inject_launch *p;
	double waited = 0;

	*why = "no device memory for its records";
	if (!pool)
		return false;
	if (inject_may_detach() && !pending.first)
		inject_make_spares(pool);
	wait_for_others(l, pool);
	while (!in_the_way(l) && !(free_one = inject_free_pool(pool)) && waited < PATIENCE_FOR_MEMORY)
		waited += wait_a_little();
	note_overlap(l);
	l->programmatic &= !pending.first; /* it is not checked after the launch before it */
	p = in_the_way(l);
	if (p) {
		p->mixed = l->mixed = true;
		use(l, p->pool);
		return true;
	}
	*why = "launches before it have not ended, and there is no further memory for its records";
	if (!free_one)
		return false;
	use(l, free_one);
	return true;
}

void inject_give_pool(struct inject_launch *l, bool cleared)
{
	if (!--l->pool->users && !cleared)
		inject_empty_all(l->pool);
}

/* ---- after the call ---- */

static void drop(struct inject_launch *l)
{
	struct inject_launch **at = &pending.first;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	pthread_cond_broadcast(&pending.ended);
}

static bool variable_is_used(const struct inject_launch *l)
{
	for (const struct inject_launch *p = pending.first; p; p = p->next)
		if (p->context == l->context && p->variable == l->variable)
			return true;
	return false;
}

#define LOOK_FOR_REPLAY 500            /* looks at the launch, each a millisecond after the one before */

static void take_replay(struct inject_launch *l)
{
	inject_lock();
	if (!l->abandoned && inject_takes_replay(l))
		inject_end_replay(l);
	inject_unlock();
}

/* CUDA_ERROR_NOT_READY: its time was up. */
static CUresult wait_for(struct inject_launch *l)
{
	const double limit = gpu_timeout(inject_session());
	CUresult r = CUDA_SUCCESS;

	for (unsigned k = 0; !__atomic_load_n(&l->abandoned, __ATOMIC_ACQUIRE)
			&& (r = cu.p_cuEventQuery(l->ended)) == CUDA_ERROR_NOT_READY; k++) {
		if (k % LOOK_FOR_REPLAY == LOOK_FOR_REPLAY - 1)
			take_replay(l);
		if (limit > 0 && progress_seconds() - l->launched >= limit)
			break;
		usleep(k < 100 ? 50 : 1000);
	}
	return r;
}

static void *attend(void *user)
{
	struct inject_launch *l = user;
	CUresult r;

	inject_busy = true;
	stack_of_launch = l->stack;
	cu.p_cuCtxPushCurrent(l->context);
	r = wait_for(l);
	inject_lock();
	if (!l->abandoned && r == CUDA_ERROR_NOT_READY)
		inject_stop(l);
	if (!l->abandoned) {
		l->checked = true;
		inject_finish(l, r);
		drop(l);
		if (!r && !l->instead && !variable_is_used(l))
			cu.p_cuMemcpyHtoDAsync(l->variable, &(struct record_params){ 0 },
				sizeof(struct record_params), inject_beside(l->context));
		cu.p_cuEventDestroy(l->ended);
		cu.p_cuCtxPopCurrent(&(CUcontext){ NULL });
	}
	inject_unlock();
	free(l->packed);
	free(l->kernel);
	free(l);
	return NULL;
}

bool inject_detach(struct inject_launch *l)
{
	static bool reported;
	struct inject_launch *own;
	pthread_attr_t attr;
	pthread_t thread;
	CUevent ended;
	bool started;

	if (cu.p_cuEventCreate(&ended, CU_EVENT_DISABLE_TIMING))
		return false;
	own = base_alloc(sizeof *own);
	*own = *l;
	own->ended = ended;
	own->beside = true;
	own->programmatic = false;
	own->stack = consan_launch_stack();
	own->params = own->extra = NULL;
	own->name = NULL;
	own->next = pending.first;
	pending.first = own;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	started = !cu.p_cuEventRecord(ended, l->stream) && !pthread_create(&thread, &attr, attend, own);
	pthread_attr_destroy(&attr);
	if (!started) {
		drop(own);
		free(own);
		cu.p_cuEventDestroy(ended);
		return false;
	}
	/* what follows in the stream may run the kernel unwatched; a launch whose records are mixed with
	 * these must not see the variable change, so then it is done when none is left */
	if (own->instead)
		cu.p_cuMemcpyHtoDAsync(l->variable, &(struct record_params){ 0 },
			sizeof(struct record_params), l->stream);
	if (!reported)
		inject_remark(REMARK_NOTE, "a launch of %s did not end soon, so that the program went on, and "
			"other work could run beside it", l->kernel);
	reported = true;
	return true;
}

static void not_ended(const struct inject_launch *p)
{
	char why[200];
	uint64_t ctas = 1, many = 1;

	for (unsigned d = 0; d < 3; d++) {
		ctas *= p->grid[d];
		many *= p->cluster[d] ? p->cluster[d] : 1;
	}
	snprintf(why, sizeof why, "it had not ended when the program, its context or its module ended: 0 of %llu "
		"clusters were checked", (unsigned long long)(ctas / many));
	gpu_unchecked(inject_session(), p->kernel, p->wanted, p->queue, why);
}

void inject_await(bool at_exit)
{
	double waited = 0;

	if (!at_exit)
		inject_lock();
	else if (!inject_lock_within(PATIENCE_AT_EXIT))
		return;
	while (pending.first && waited < PATIENCE_AT_END)
		waited += wait_a_little();
	for (struct inject_launch *p; (p = pending.first);) {
		not_ended(p);
		inject_end_replay(p);
		gpu_ran(inject_session(), NULL, NULL);
		operations_close(p->operation);
		drop(p);
		/* its thread owns it, and touches nothing else any more */
		__atomic_store_n(&p->abandoned, true, __ATOMIC_RELEASE);
	}
	inject_unlock();
}
