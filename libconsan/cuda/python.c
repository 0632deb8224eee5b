/* python: what the Python package (libconsan/python) asks of the process under consan-run; it finds
 * these functions by name. The functions of consan.h themselves are not exported: a program may be
 * linked with libconsan. */
#include "queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

void *consan_run_function(const char *name);
struct consan *consan_run_session(void);
void consan_run_remark(const char *text);
void consan_run_recover(void);
void consan_run_wait(void);
void consan_run_operator(const char *framework, const char *name);
void consan_run_accesses(const char *name, int device, const void *stream, int other,
	const void *other_stream, const struct hb_span *span, size_t n, int returns);

/* ---- the session ---- */

/* These act on the state of the program after all that it has issued. */

static enum consan_status launch(struct consan *c, const struct consan_launch *l, size_t size,
	struct consan_err *e)
{
	struct caller *from = caller_here();
	enum consan_status status;

	engine_wait_all(-1);
	caller_set(from);
	status = consan_launch_sized(c, l, size, e);
	caller_set(NULL);
	if (from)
		caller_put(from);
	return status;
}

static size_t findings(struct consan *c)
{
	engine_wait_all(-1);
	return consan_findings(c);
}

static size_t errors(struct consan *c)
{
	engine_wait_all(-1);
	return consan_errors(c);
}

static size_t kernels(struct consan *c)
{
	engine_wait_all(-1);
	return consan_kernels(c);
}

static bool write_report(struct consan *c, const char *path, struct consan_err *e)
{
	engine_wait_all(-1);
	return consan_write_report(c, path, e);
}

static void clear(struct consan *c)
{
	engine_wait_all(-1);
	consan_clear(c);
}

static bool release(struct consan *c, void *at)
{
	engine_wait_all(-1);
	return consan_free(c, at);
}

static bool unregister(struct consan *c, void *at)
{
	engine_wait_all(-1);
	return consan_mem_unregister(c, at);
}

static void unload(struct consan_module *m)
{
	engine_wait_all(-1);
	consan_unload(m);
}

/* A function of consan.h that can be used on the session of the program; NULL: no such one. */
VISIBLE void *consan_run_function(const char *name)
{
	static const struct { const char *name; void (*call)(void); } all[] = {
#define AS(name, function) { #name, (void (*)(void))function }
#define F(name) AS(name, name)
		F(consan_version), AS(consan_findings, findings), F(consan_finding),
		AS(consan_errors, errors), F(consan_describe), AS(consan_kernels, kernels),
		F(consan_coverage), AS(consan_write_report, write_report),
		F(consan_load_image), F(consan_load_file), F(consan_image_modules),
		AS(consan_unload, unload), F(consan_kernel), F(consan_kernel_name),
		F(consan_kernel_info_sized), F(consan_kernel_param), AS(consan_launch_sized, launch),
		F(consan_malloc), AS(consan_free, release), F(consan_mem_register),
		AS(consan_mem_unregister, unregister), AS(consan_clear, clear),
#undef F
#undef AS
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(name, all[i].name))
			return (void *)all[i].call;
	return NULL;
}

/* The session of this process, opened if it is not. NULL: there is none; the CUDA calls fail. */
VISIBLE struct consan *consan_run_session(void)
{
	return device_ready() && !device_session() ? NULL : device_session();
}

/* After a fault, calls fail until the device is reset. Test suites go on with the next test: this
 * ends that state, and frees nothing. */
VISIBLE void consan_run_recover(void)
{
	engine_wait_all(-1);
	for (int d = 0; d < CONSAN_DEVICES; d++)
		device_reset(d);
}

VISIBLE void consan_run_remark(const char *text)
{
	remark(REMARK_NOTE, "%s", text);
}

/* ---- operators that ran on the CPU ---- */

/* The handles of the default streams are those of each device. */
static struct stream *python_stream(int device, const void *handle)
{
	if (!handle || handle == cudaStreamLegacy)
		return stream_legacy(device);
	return stream_of(handle);
}

struct operator { char *framework, *name; uint64_t calls; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct operator) operators;

/* An operator is about to access memory of the device from the host. What runs now, runs before the host
 * waits for it, so that a stream that is made later can race with it. */
VISIBLE void consan_run_wait(void)
{
	if (consan_run_session())
		order_host_can_access(hb());
	if (!stream_any_capture())
		engine_wait_all(-1);
}

/* An operator of a framework ("ATen") was executed on the CPU instead of its kernel, which is
 * machine code without PTX: nothing of it is checked. The report says so. */
VISIBLE void consan_run_operator(const char *framework, const char *name)
{
	size_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < operators.n && (strcmp(operators.at[i].name, name)
			|| strcmp(operators.at[i].framework, framework)))
		i++;
	if (i == operators.n)
		vec_push(&operators, ((struct operator){ base_strdup(framework), base_strdup(name), 0 }));
	operators.at[i].calls++;
	pthread_mutex_unlock(&lock);
}

/* The operator has run: in place of a kernel of that stream of that device (other: of this one, too; -1:
 * of none), it has accessed these bytes. returns: enum hb_returns. */
VISIBLE void consan_run_accesses(const char *name, int device, const void *stream, int other,
	const void *other_stream, const struct hb_span *span, size_t n, int returns)
{
	struct stream *s = python_stream(device, stream);
	struct stream *with = other < 0 ? NULL : python_stream(other, other_stream);

	if (s && consan_run_session())
		hb_operator(s, with, name, span, n, (enum hb_returns)returns);
}

/* The most calls first. */
static int by_calls(const void *a, const void *b)
{
	const struct operator *x = a, *y = b;

	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void remark_framework(const char *framework)
{
	enum { NAMED = 8 };
	struct text names = { 0 };
	unsigned n = 0;
	uint64_t calls = 0;

	for (size_t i = 0; i < operators.n; i++) {
		const struct operator *o = &operators.at[i];

		if (strcmp(o->framework, framework))
			continue;
		calls += o->calls;
		if (n < NAMED)
			text_printf(&names, "%s%s", n ? ", " : "", o->name);
		n++;
	}
	remark(REMARK_NOTE, "%u %s operator%s ran on the CPU, unchecked, in %llu call%s: %s%s", n,
		framework, n == 1 ? "" : "s", (unsigned long long)calls, calls == 1 ? "" : "s", names.at,
		n > NAMED ? ", ..." : "");
	text_free(&names);
}

void python_end(void)
{
	if (operators.n)
		qsort(operators.at, operators.n, sizeof *operators.at, by_calls);
	for (size_t i = 0; i < operators.n; i++) {
		size_t k = 0;

		while (strcmp(operators.at[k].framework, operators.at[i].framework))
			k++;
		if (k == i)
			remark_framework(operators.at[i].framework);
	}
}
