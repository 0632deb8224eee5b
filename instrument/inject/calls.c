/* calls: calls of the CUDA API that failed, as the cpu backend reports them. Of the runtime's
 * calls the runtime's name and error count, not those of the driver's calls that it makes. */
#include "callback.h"

#include "libconsan/event/event.h"

#include <driver_types.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct {
	const char *runtime; /* the call of the runtime that this thread is in, or NULL */
	const char *kernel;  /* that it launches, or NULL */
	bool by_stub;        /* the next launch is one of kernel<<<...>>> */
	bool reported;       /* in this call */
} here;

static bool is_call(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static bool is_launch(const char *name)
{
	return is_call(name, "cudaLaunch") || is_call(name, "__cudaLaunch");
}

/* A kernel, variable or image that is missing */
static bool is_lookup_error(int error)
{
	return error == cudaErrorSymbolNotFound || error == cudaErrorInvalidSymbol
		|| error == cudaErrorInvalidDeviceFunction || error == cudaErrorNoKernelImageForDevice;
}

/* Answers to a question; and errors after a fault, which has a finding of its own. */
static bool is_answer(int error)
{
	return error == cudaErrorNotReady || error == cudaErrorPeerAccessAlreadyEnabled
		|| error == cudaErrorPeerAccessNotEnabled || error == cudaErrorCudartUnloading
		|| (error >= cudaErrorIllegalAddress && error <= cudaErrorLaunchTimeout)
		|| (error >= cudaErrorAssert && error <= cudaErrorLaunchFailure);
}

/* call: with CUPTI's suffix, "cudaMemcpy_v3020". */
static void plain_name(const char *call, char *to, size_t n)
{
	const char *end = strstr(call, "_ptsz");

	end = end ? end : strstr(call, "_ptds");
	snprintf(to, n, "%.*s", (int)(end ? (size_t)(end - call) : strcspn(call + 2, "_") + 2), call);
}

void inject_call_name(const char *driver, char *to, size_t n)
{
	plain_name(here.runtime ? here.runtime : driver, to, n);
}

static void report(const char *rule, const char *name, const char *kernel, int error)
{
	const char *code = "", *text = "";
	char call[64], sentence[200];
	uint32_t stack;

	here.reported = true;
	if (is_answer(error) || !consan_reports_calls(inject_session(), false))
		return;
	stack = consan_host_stack(NULL);
	if (!consan_reports_calls(inject_session(), consan_call_implicit(stack)))
		return;
	cu.p_cuGetErrorName((CUresult)error, &code);
	if (cu.p_cuGetErrorString)
		cu.p_cuGetErrorString((CUresult)error, &text);
	snprintf(sentence, sizeof sentence, "%s%s%s", code, *text ? ": " : "", text);
	plain_name(name, call, sizeof call);
	consan_call_failed(inject_session(), &(struct consan_call){ .rule = rule, .name = call,
		.kernel = kernel ? kernel : "", .error = sentence, .reason = "", .stack = stack });
	if (here.by_stub)
		consan_call_unasked(inject_session(), &here, stack);
}

void inject_call_refused(const char *name, const char *kernel, CUresult error)
{
	report("CS951", here.runtime ? here.runtime : name, kernel, error);
}

void inject_call_handled(void)
{
	here.reported = true;
}

static void unchecked(const char *kernel, const char *what)
{
	char why[120];

	snprintf(why, sizeof why, "it was not found (%s)", what);
	if (*kernel)
		consan_unchecked(inject_session(), kernel, false, why);
}

void inject_lookup_failed(const char *name, const char *kernel, CUresult error)
{
	const char *code = "error";

	if (here.runtime)
		return; /* it may ask for what need not be there */
	report("CS952", name, kernel, error);
	cu.p_cuGetErrorName(error, &code);
	unchecked(kernel, code);
}

void inject_driver_returns(const char *name, CUresult error)
{
	/* the runtime asks for versions of calls that the driver may not have */
	if (error && !here.runtime && !here.reported && !is_call(name, "cuGetProcAddress"))
		report("CS953", name, "", error);
	if (!here.runtime)
		here.reported = false;
}

void inject_runtime_call(const CUpti_CallbackData *d)
{
	const int error = d->callbackSite == CUPTI_API_EXIT && d->functionReturnValue
		? *(const int *)d->functionReturnValue : 0;
	const char *name = d->functionName, *kernel = d->symbolName;

	if (d->callbackSite == CUPTI_API_ENTER) {
		here.runtime = name;
		here.reported = false;
		return;
	}
	here.runtime = NULL;
	if (is_call(name, "cudaGetLastError") || is_call(name, "cudaPeekAtLastError")) {
		consan_call_asked(inject_session(), &here);
		return;
	}
	if (is_call(name, "__cudaPushCallConfiguration")) {
		here.by_stub = true;
		return;
	}
	if (is_call(name, "__cudaPopCallConfiguration"))
		return;
	if (error && !here.reported && is_lookup_error(error)) {
		report("CS952", name, kernel, error);
		unchecked(kernel ? kernel : "", "by the CUDA runtime");
	} else if (error && !here.reported) {
		report(is_launch(name) ? "CS951" : "CS953", name, kernel, error);
	}
	here.reported = here.by_stub = false;
}
