/* times: for --gpu-times: the kernels' times by the GPU's clock and the registers and local
 * memory of their threads, from CUPTI's activity records. */
#include "internal.h"

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The libcupti found may have another version than the header. Its records only grow at their
 * end, and nothing behind `name` is read. */
_Static_assert(offsetof(CUpti_ActivityKernel10, name) == offsetof(CUpti_ActivityKernel4, name),
	"records differ by CUPTI's version");

#define BUFFER_BYTES (256u << 10)
#define OUR_PREFIX "consan_" /* prefix of the names of our kernels, */
#define SCREEN_PREFIX "consan_screen" /* and of those of screen.cu */
#define SCAN_NAME "consan_screen_scan"

static struct {
	__typeof__(&cuptiActivityRegisterCallbacks) callbacks;
	__typeof__(&cuptiActivityEnable) enable;
	__typeof__(&cuptiActivityGetNextRecord) next;
	__typeof__(&cuptiActivityFlushAll) flush; /* NULL: no activity is recorded */
} cupti;

static _Thread_local uint32_t call; /* the current call's number */

static struct {
	pthread_mutex_t lock;      /* CUPTI may complete buffers on a thread of its own */
	uint32_t awaited;          /* number of the call that launches the kernel */
	bool came;
	struct inject_time time;
} now = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- buffers ---- */

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = malloc(BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*records = 0; /* as many as fit */
}

static void take(const CUpti_ActivityKernel10 *r)
{
	double seconds = 1e-9 * (double)(r->end - r->start);

	/* 0: CUPTI did not record the time */
	if (r->correlationId != now.awaited || !r->start || r->end < r->start)
		return;
	if (!r->name || strncmp(r->name, OUR_PREFIX, sizeof OUR_PREFIX - 1)) {
		now.came = true;
		now.time = (struct inject_time){ seconds, 0, 0, 0, r->registersPerThread,
			r->localMemoryPerThread };
	} else {
		if (!strncmp(r->name, SCREEN_PREFIX, sizeof SCREEN_PREFIX - 1))
			now.time.screen += seconds;
		if (!strcmp(r->name, SCAN_NAME))
			now.time.scan += seconds;
		now.time.ours += seconds; /* a later record of the launch's kernel sets it back to
					    0 */
	}
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
	size_t valid)
{
	CUpti_Activity *r = NULL;

	(void)context;
	(void)stream;
	(void)size;
	pthread_mutex_lock(&now.lock);
	while (!cupti.next(buffer, valid, &r))
		if (r->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
			take((const void *)r);
	pthread_mutex_unlock(&now.lock);
	free(buffer);
}

/* ---- for launches ---- */

void inject_times_open(void *lib)
{
	__typeof__(&cuptiActivityFlushAll) flush;
	__typeof__(&cuptiGetResultString) text;
	const char *why = "it is too old";
	CUptiResult r;

	cupti.callbacks = (__typeof__(cupti.callbacks))dlsym(lib, "cuptiActivityRegisterCallbacks");
	cupti.enable = (__typeof__(cupti.enable))dlsym(lib, "cuptiActivityEnable");
	cupti.next = (__typeof__(cupti.next))dlsym(lib, "cuptiActivityGetNextRecord");
	flush = (__typeof__(flush))dlsym(lib, "cuptiActivityFlushAll");
	text = (__typeof__(text))dlsym(lib, "cuptiGetResultString");
	if (cupti.callbacks && cupti.enable && cupti.next && flush && text) {
		r = cupti.callbacks(requested, completed);
		if (!r)
			r = cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
		if (!r) {
			cupti.flush = flush;
			return;
		}
		text(r, &why);
	}
	inject_remark(REMARK_NOTE, "CUPTI cannot record how long kernels run (%s), so --gpu-times "
		"uses the host's clock only", why);
}

void inject_times_call(uint32_t number)
{
	call = number;
}

void inject_times_await(void)
{
	if (!cupti.flush)
		return;
	pthread_mutex_lock(&now.lock);
	now.awaited = call;
	now.came = false;
	pthread_mutex_unlock(&now.lock);
}

bool inject_time(struct inject_time *t)
{
	bool came;

	if (!cupti.flush)
		return false;
	cupti.flush(0);
	pthread_mutex_lock(&now.lock);
	*t = now.time;
	came = now.came;
	pthread_mutex_unlock(&now.lock);
	return came;
}
