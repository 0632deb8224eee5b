/* inject: the library that CUDA_INJECTION64_PATH loads into the program. This file opens the
 * session, the driver and CUPTI, and subscribes to CUPTI's driver callbacks; callbacks.c has
 * the handlers. */
#include "callback.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct driver cu;
_Thread_local bool inject_busy;

static struct consan *session;
static pid_t owner;
static bool recorded;              /* for a report; else remarks are printed */

/* The static libjansson.a is linked in, though it is not built for shared libraries. Its only
 * reference to external data is stdin, which -Wl,--wrap replaces by this variable. */
FILE *__wrap_stdin;

struct consan *inject_session(void)
{
	return session;
}

void inject_print(const char *fmt, ...)
{
	va_list ap;

	fputs("consan: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void inject_remark(enum consan_remark kind, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (recorded)
		consan_remark(session, kind, text);
	else
		inject_print("%s", text);
}

/* ---- the session ---- */

/* Page faults are a quarter of the time of a first check on a virtual machine: 250 of the heap and
 * 110 of this library, for the wgmma matmul. They are taken here, at cuInit(). */
static void fault_in_heap(void)
{
	const size_t bytes = 4 << 20, page = 4096;
	volatile char *heap;

	/* Freeing a block that malloc() mapped raises the size from which it maps blocks, and the
	 * size of free memory that it keeps. The second block comes from the heap and stays there. */
	free(base_alloc(bytes));
	heap = base_alloc(bytes);
	for (size_t at = 0; at < bytes; at += page)
		heap[at] = 0;
	free((void *)heap);
}

static int fault_in_segments(struct dl_phdr_info *info, size_t size, void *user)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), here = (uintptr_t)fault_in_segments;
	bool ours = false;

	(void)size, (void)user;
	for (int k = 0; k < info->dlpi_phnum; k++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[k];

		ours |= p->p_type == PT_LOAD && here - (info->dlpi_addr + p->p_vaddr) < p->p_memsz;
	}
	for (int k = 0; ours && k < info->dlpi_phnum; k++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[k];
		const uintptr_t from = (info->dlpi_addr + p->p_vaddr) & -page;
		const uintptr_t to = info->dlpi_addr + p->p_vaddr + p->p_memsz;

		/* a kernel before Linux 5.14 refuses: then the pages are read when they are used */
		if (p->p_type == PT_LOAD)
			madvise((void *)from, to - from, MADV_POPULATE_READ);
	}
	return ours;
}

/* Before the driver ends, which was there first. */
static void await_launches(void)
{
	if (session && owner == getpid())
		inject_await(true);
}

bool inject_open_session(void)
{
	const char *dir = base_environ("CONSAN_RESULTS");
	struct text path = { 0 };
	struct consan_err e = { 0 };
	struct timespec t;

	fault_in_heap();
	dl_iterate_phdr(fault_in_segments, NULL);
	session = consan_open(base_environ(CONSAN_SESSION_ENV), &e);
	if (!session) {
		inject_print("%s", e.text);
		return false;
	}
	owner = getpid();
	consan_on_stack(session, inject_stack);
	atexit(await_launches);
	recorded = dir && *dir;
	if (!recorded)
		return true;
	clock_gettime(CLOCK_REALTIME, &t);
	text_printf(&path, "%s/%ld-%lld%09ld.jsonl", dir, (long)owner, (long long)t.tv_sec,
		t.tv_nsec);
	if (!consan_record_to(session, path.at, &e))
		inject_print("findings cannot be recorded: %s", e.text);
	text_free(&path);
	return true;
}

/* The session stays open if a thread is in the middle of a launch. What was found is recorded. A child by
 * fork() has locks that threads of its parent held. */
__attribute__((destructor)) static void close_session(void)
{
	struct consan *c = session;

	if (!c || owner != getpid())
		return;
	inject_await(true);
	if (!inject_lock_within(0))
		return;
	session = NULL;
	inject_unlock();
	consan_close(c);
}

/* ---- the driver and CUPTI ---- */

bool inject_open_driver(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (!lib)
		lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib)
		return false;
	/* cuda.h maps some names to their newest version, and the string must have that name */
#define NAME_1(name) #name
#define NAME(name) NAME_1(name)
#define CALL(name) cu.p_##name = (__typeof__(cu.p_##name))dlsym(lib, NAME(name));
	DRIVER_CALLS(CALL)
#undef CALL
	return cu.p_cuMemcpyHtoDAsync && cu.p_cuFuncGetModule && cu.p_cuModuleGetGlobal;
}

static struct {
	__typeof__(&cuptiSubscribe) subscribe;
	__typeof__(&cuptiEnableCallback) enable;
	__typeof__(&cuptiEnableDomain) enable_all;
	__typeof__(&cuptiGetResultString) text;
} cupti;

static void *open_cupti(void)
{
	static const char *const name[] = { "libcupti.so.13", "libcupti.so",
		"/usr/local/cuda/lib64/libcupti.so",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
		"/usr/local/cuda/lib/libcupti.so" };
	static const char *const pattern[] = { "/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
		"/usr/local/cuda*/targets/*/lib/libcupti.so*", "/opt/*/lib/libcupti.so*",
		"/opt/*/*/lib/python*/site-packages/nvidia/*/lib/libcupti.so*",
		"/usr/*/lib/python*/*-packages/nvidia/*/lib/libcupti.so*" };
	const char *path = getenv("CONSAN_CUPTI");
	void *lib = NULL;
	glob_t g;

	if (path && *path)
		return dlopen(path, RTLD_NOW);
	for (size_t i = 0; !lib && i < ARRAY_SIZE(name); i++)
		lib = dlopen(name[i], RTLD_NOW);
	for (size_t i = 0; !lib && i < ARRAY_SIZE(pattern); i++) {
		if (glob(pattern[i], 0, NULL, &g))
			continue;
		for (size_t k = 0; !lib && k < g.gl_pathc; k++)
			lib = dlopen(g.gl_pathv[k], RTLD_NOW);
		globfree(&g);
	}
	return lib;
}

/* ---- callbacks ---- */

/* By CUPTI's number of the call; NULL: no handler. */
typedef void handler(const struct inject_call *c);
static handler *on_call[CUPTI_DRIVER_TRACE_CBID_SIZE], *on_operation[CUPTI_DRIVER_TRACE_CBID_SIZE];

static void enable_handlers(const struct inject_handler *w, handler **table, CUpti_SubscriberHandle handle)
{
	for (; w->on; w++) {
		table[w->id] = w->on;
		cupti.enable(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, w->id);
	}
}

static void handle(const struct inject_call *c, uint32_t correlation)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	inject_times_call(correlation);
	/* our calls of the driver must not invalidate a capture of the program */
	if (cu.p_cuThreadExchangeStreamCaptureMode)
		cu.p_cuThreadExchangeStreamCaptureMode(&mode);
	if (on_call[c->id])
		on_call[c->id](c);
	if (on_operation[c->id])
		on_operation[c->id](c);
	if (cu.p_cuThreadExchangeStreamCaptureMode)
		cu.p_cuThreadExchangeStreamCaptureMode(&mode);
}

/* All calls of the driver and the runtime get here. */
static void CUPTIAPI callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
	const void *data)
{
	const CUpti_CallbackData *d = data;
	const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
	struct inject_call c = { .id = id, .name = d->functionName, .symbol = d->symbolName,
		.params = d->functionParams, .enter = d->callbackSite == CUPTI_API_ENTER,
		.result = d->callbackSite == CUPTI_API_ENTER ? NULL : d->functionReturnValue };

	(void)user;
	if ((!driver && domain != CUPTI_CB_DOMAIN_RUNTIME_API) || inject_busy || !session
			|| owner != getpid())
		return;
	inject_busy = true;
	if (!driver)
		inject_runtime_call(d);
	if (driver && c.enter && gpu_global(session) && !inject_allows_overlap(c.name))
		gpu_idle(session);
	c.succeeded = driver && !c.enter && !*c.result;
	if (driver && id < CUPTI_DRIVER_TRACE_CBID_SIZE && (on_call[id] || on_operation[id]))
		handle(&c, d->correlationId);
	if (driver && !c.enter)
		inject_driver_returns(c.name, *c.result);
	inject_busy = false;
}

static bool subscribe(void)
{
	CUpti_SubscriberHandle handle;
	const char *why = "?", *path = getenv("CONSAN_CUPTI");
	void *lib = open_cupti();
	CUptiResult r;

	if (!lib) {
		inject_remark(REMARK_NOTE, "CUPTI (libcupti.so) was not found%s%s, so nothing is "
			"checked; it comes with the CUDA Toolkit; set $CONSAN_CUPTI to its path",
			path && *path ? " at " : "", path ? path : "");
		return false;
	}
	cupti.subscribe = (__typeof__(cupti.subscribe))dlsym(lib, "cuptiSubscribe");
	cupti.enable = (__typeof__(cupti.enable))dlsym(lib, "cuptiEnableCallback");
	cupti.enable_all = (__typeof__(cupti.enable_all))dlsym(lib, "cuptiEnableDomain");
	cupti.text = (__typeof__(cupti.text))dlsym(lib, "cuptiGetResultString");
	if (!cupti.subscribe || !cupti.enable || !cupti.enable_all || !cupti.text) {
		inject_remark(REMARK_NOTE,
			"CUPTI lacks functions that consan needs, so nothing is checked");
		return false;
	}
	r = cupti.subscribe(&handle, callback, NULL);
	if (r) {
		cupti.text(r, &why);
		inject_remark(REMARK_NOTE, "CUPTI cannot be used (%s)%s, so nothing is checked",
			why, r == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
			? ": another tool in this process uses it" : "");
		return false;
	}
	enable_handlers(inject_handlers, on_call, handle);
	enable_handlers(inject_graph_handlers, on_call, handle);
	enable_handlers(inject_link_handlers, on_call, handle);
	enable_handlers(inject_operation_handlers, on_operation, handle);
	if (gpu_times(session))
		inject_times_open(lib);
	if (gpu_global(session) || gpu_replays(session))
		enable_handlers(inject_memory_handlers, on_call, handle);
	/* any call may fail, or end the overlap of launches */
	if (gpu_global(session) || consan_reports_calls(session, false))
		cupti.enable_all(1, handle, CUPTI_CB_DOMAIN_DRIVER_API);
	if (consan_reports_calls(session, false))
		cupti.enable_all(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API);
	return true;
}

/* The driver calls this from cuInit(). The program runs on whatever it returns. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
	int version = 0;

	if (session || !inject_open_session())
		return 1;
	if (!inject_open_driver()) {
		inject_remark(REMARK_NOTE,
			"the CUDA driver is too old for --backend=gpu, so nothing is checked");
		return 1;
	}
	inject_busy = true;
	cu.p_cuDriverGetVersion(&version);
	subscribe();
	inject_ahead_of_modules();
	inject_busy = false;
	return 1;
}
