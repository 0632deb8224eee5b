/* lib_call: see library.h: calls are put on streams, counted, and find the libraries that do the
 * work. */
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the libraries of the distribution, and the program's ---- */

static const struct { const char *file[3], *package, *calls; } host[] = {
	[HOST_BLAS] = { { "libopenblas.so.0", "libblas.so.3" }, "libopenblas0", "cuBLAS" },
	[HOST_FFT] = { { "libfftw3.so.3" }, "libfftw3-double3", "cuFFT" },
	[HOST_FFTF] = { { "libfftw3f.so.3" }, "libfftw3-single3", "cuFFT" },
};

static struct { pthread_mutex_t lock; bool tried; void *handle; } opened[ARRAY_SIZE(host)] = {
	{ PTHREAD_MUTEX_INITIALIZER, false, NULL }, { PTHREAD_MUTEX_INITIALIZER, false, NULL },
	{ PTHREAD_MUTEX_INITIALIZER, false, NULL },
};

void *host_function(enum host_library l, const char *name)
{
	void *function;

	pthread_mutex_lock(&opened[l].lock);
	for (unsigned i = 0; !opened[l].tried && i < ARRAY_SIZE(host[l].file) && host[l].file[i];
		i++)
		if (!opened[l].handle)
			opened[l].handle = dlopen(host[l].file[i], RTLD_LAZY | RTLD_LOCAL);
	if (!opened[l].tried && !opened[l].handle)
		remark(REMARK_CALL_UNSUPPORTED,
			"%s, as %s is not installed (Debian: apt install %s)", host[l].calls,
			host[l].file[0], host[l].package);
	opened[l].tried = true;
	function = opened[l].handle ? dlsym(opened[l].handle, name) : NULL;
	pthread_mutex_unlock(&opened[l].lock);
	return function;
}

/* dlsym() of the C library: that of the program finds our functions. */
static void *real_dlsym(void *handle, const char *name)
{
	static void *(*_Atomic real)(void *handle, const char *name);
	void *c;

	if (!real) {
		c = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
		real = (void *(*)(void *, const char *))(
			c ? dlvsym(c, "dlsym", "GLIBC_2.2.5") : NULL);
	}
	return real ? real(handle, name) : NULL;
}

struct search { const char *file, *name; void *found; };

static int object(struct dl_phdr_info *info, size_t size, void *user)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	struct search *s = user;
	void *handle;

	(void)size;
	if (strncmp(slash ? slash + 1 : info->dlpi_name, s->file, strlen(s->file)))
		return 0;
	handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
	s->found = handle ? real_dlsym(handle, s->name) : NULL;
	if (handle)
		dlclose(handle);
	return s->found != NULL;
}

void *library_own(const char *file, const char *name)
{
	struct search s = { file, name, NULL };

	dl_iterate_phdr(object, &s);
	return s.found;
}

/* ---- what was called, for the report ---- */

struct row { const char *name; unsigned long long calls; };
static struct {
	pthread_mutex_t lock;
	VEC(struct row) row;
} called = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void count(const char *name)
{
	size_t k = 0;

	pthread_mutex_lock(&called.lock);
	while (k < called.row.n && strcmp(called.row.at[k].name, name))
		k++;
	if (k == called.row.n)
		vec_push(&called.row, ((struct row){ name, 0 }));
	called.row.at[k].calls++;
	pthread_mutex_unlock(&called.lock);
}

static int by_calls(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return strcmp(x->name, y->name);
}

void library_end(void)
{
	enum { NAMED = 8 };
	unsigned long long calls = 0;
	struct text names = { 0 };

	if (!called.row.n)
		return;
	qsort(called.row.at, called.row.n, sizeof *called.row.at, by_calls);
	for (size_t k = 0; k < called.row.n; k++) {
		calls += called.row.at[k].calls;
		if (k < NAMED)
			text_printf(&names, "%s%s", k ? ", " : "", called.row.at[k].name);
	}
	remark(REMARK_NOTE, "%llu library call%s ran on the CPU, unchecked: %s%s", calls,
		calls == 1 ? "" : "s", names.at, called.row.n > NAMED ? ", ..." : "");
	text_free(&names);
}

void library_refused(const char *name, const char *what)
{
	remark(REMARK_CALL_UNSUPPORTED, "%s%s%s", name, *what ? " " : "", what);
}

/* ---- calls on streams ---- */

void library_span(struct library_call *call, bool write, const void *at, size_t width, size_t pitch,
	size_t rows, size_t slice, size_t slices)
{
	if (width && rows && slices)
		call->span[call->nspans++] =
			(struct hb_span){ at, width, pitch, rows, slice, slices, 0, write };
}

/* Can the device access all of it? */
static int check(const struct library_call *call, const struct hb_span *s)
{
	const size_t last = (s->slices - 1) * s->slice + (s->rows - 1) * s->pitch;
	const size_t bytes = last + (size_t)((long)s->width + (long)(s->rows - 1) * s->grow);

	if (!mem_check(s->at, bytes))
		return 0;
	remark(REMARK_NOTE,
		"%s %s %zu B at %p, which are in no allocation that the device can access",
		call->name, s->write ? "writes" : "reads", bytes, s->at);
	return cudaErrorIllegalAddress;
}

static int check_all(const struct library_call *call)
{
	int error = 0;

	for (unsigned k = 0; k < call->nspans && !error; k++)
		error = check(call, call->span + k);
	return error;
}

struct accessed { const struct library_call *call; int error; VEC(struct hb_span) spans; };

static void add_span(void *user, const struct hb_span *s)
{
	struct accessed *t = user;

	t->error = t->error ? t->error : check(t->call, s);
	vec_push(&t->spans, *s);
}

int library_run(struct library_call *call, struct order_op *order)
{
	struct accessed t = { .call = call, .error = check_all(call) };

	for (unsigned k = 0; k < call->nspans; k++)
		vec_push(&t.spans, call->span[k]);
	if (call->more && !t.error)
		call->more(call, add_span, &t);
	if (!t.error) {
		call->run(call);
		hb_accesses(order, t.spans.at, t.spans.n);
	}
	vec_free(&t.spans);
	return t.error;
}

struct library_call *library_get(struct library_call *call)
{
	call->users++;
	return call;
}

void library_put(struct library_call *call)
{
	if (!--call->users)
		free(call);
}

int library_issue(struct library_call *call, size_t bytes)
{
	const struct stream *s = stream_of(call->stream);
	int error = device_ready();
	struct op op = { .kind = OP_LIBRARY };

	if (!error && !s)
		error = cudaErrorInvalidResourceHandle;
	if (!error)
		error = check_all(call);
	if (error)
		return error;
	if (!call->part)
		count(call->name);
	op.library = base_alloc(bytes);
	memcpy(op.library, call, bytes);
	op.library->users = 1;
	return stream_issue(call->stream, &op, false);
}

void library_wait(const void *stream)
{
	cudaStreamSynchronize((cudaStream_t)stream);
}
