/* api_error: reports calls of the CUDA API that failed, and launches whose error the program never
 * asked for. */
#include "internal.h"

#include "libconsan/event/event.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static _Thread_local bool reported; /* by launch_refused() or lookup_failed(), in this call */
static _Thread_local bool by_stub;  /* the next launch is one of kernel<<<...>>> */

/* Errors of kernel<<<...>>> that their threads have not asked for. */
struct unasked { const void *thread; uint32_t stack; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct unasked) unasked;

static bool has_prefix(const char *path, const char *const *prefix, size_t n)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	for (size_t i = 0; i < n; i++)
		if (!strncmp(base, prefix[i], strlen(prefix[i])))
			return true;
	return false;
}

/* Is it a call of a library, which handles the error itself? */
static bool is_implicit(uint32_t stack)
{
	static const char *const library[] = { "libcu", "libnv", "libnccl" };
	const struct site_loc *l = site_get(stack)->loc;

	return l && has_prefix(l->file, library, ARRAY_SIZE(library));
}

/* Answers to a question, and errors of calls after a fault, which has a finding of its own. */
static bool is_answer(int error)
{
	return error == cudaErrorNotReady || error == cudaErrorPeerAccessAlreadyEnabled
		|| error == cudaErrorPeerAccessNotEnabled || error == device_ready();
}

/* Returns the call stack, 0 if nothing was reported. */
static uint32_t report(const char *rule, const char *kernel, int error, const char *reason)
{
	const struct error_row *row = error_find(error);
	struct consan_call call = { .rule = rule, .kernel = kernel, .reason = reason };
	char text[200];

	if (is_answer(error))
		return 0;
	call.stack = consan_host_stack(&call.name);
	snprintf(text, sizeof text, "%s: %s", row && row->rt ? row->rt : row && row->drv ? row->drv
		: "error", row && row->text ? row->text : "unknown");
	call.error = text;
	return device_call_failed(&call, is_implicit(call.stack)) ? call.stack : 0;
}

void api_refused(const char *rule, const char *kernel, int error, const char *reason)
{
	struct unasked u = { .thread = &reported, .stack = report(rule, kernel, error, reason) };

	reported = true;
	if (!by_stub || !u.stack)
		return;
	pthread_mutex_lock(&lock);
	vec_push(&unasked, u);
	pthread_mutex_unlock(&lock);
}

void api_returns(int error)
{
	if (error && !reported)
		report("CS953", "", error, "");
	reported = by_stub = false;
}

void api_configured(void)
{
	by_stub = true;
}

void api_asked(void)
{
	size_t kept = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < unasked.n; i++)
		if (unasked.at[i].thread != &reported)
			unasked.at[kept++] = unasked.at[i];
	unasked.n = kept;
	pthread_mutex_unlock(&lock);
}

void api_end(struct consan *c)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < unasked.n; i++)
		consan_call_ignored(c, unasked.at[i].stack);
	pthread_mutex_unlock(&lock);
}
