/* api_error: reports calls of the CUDA API that failed, and launches whose error the program never
 * asked for. */
#include "queue.h"

#include "libconsan/event/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local bool reported; /* by launch_refused() or lookup_failed(), in this call */
static _Thread_local bool by_stub;  /* the next launch is one of kernel<<<...>>> */

/* Answers to a question, and errors of calls after a fault, which has a finding of its own. */
static bool is_answer(int error)
{
	return error == cudaErrorNotReady || error == cudaErrorPeerAccessAlreadyEnabled
		|| error == cudaErrorPeerAccessNotEnabled || error == device_ready();
}

static void describe(int error, char *to, size_t n)
{
	const struct error_row *row = error_find(error);

	snprintf(to, n, "%s: %s", row && row->rt ? row->rt : row && row->drv ? row->drv : "error",
		row && row->text ? row->text : "unknown");
}

/* Returns the call stack, 0 if nothing was reported. */
static uint32_t report(const char *rule, const char *kernel, int error, const char *reason)
{
	struct consan_call call = { .rule = rule, .kernel = kernel, .reason = reason };
	char text[200];
	bool implicit;
	uint32_t python;
	char *frames;

	if (is_answer(error))
		return 0;
	call.stack = consan_host_stack(&call.name);
	implicit = consan_call_implicit(call.stack);
	frames = consan_python_frames();
	python = frames ? consan_python_stack_of(frames) : 0;
	free(frames);
	if (python)
		call.stack = python;
	describe(error, text, sizeof text);
	call.error = text;
	return device_call_failed(&call, implicit) ? call.stack : 0;
}

void api_refused(const char *rule, const char *kernel, int error, const char *reason)
{
	const uint32_t stack = report(rule, kernel, error, reason);

	reported = true;
	if (by_stub && stack)
		device_call_unasked(&reported, stack);
}

void api_refused_inside(const char *kernel, int error, const char *reason)
{
	struct consan_call call = { .rule = "CS951", .name = "launch by a kernel", .kernel = kernel,
		.reason = reason, .stack = caller_stack() };
	char text[200];

	describe(error, text, sizeof text);
	call.error = text;
	device_call_failed(&call, false);
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
	device_call_asked(&reported);
}
