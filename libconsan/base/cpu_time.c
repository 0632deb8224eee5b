/* cpu_time: see cpu_time.h. */
#include "cpu_time.h"

#include "progress.h"

#include <time.h>

static double seconds(clockid_t which)
{
	struct timespec t;

	if (clock_gettime(which, &t))
		return -1;
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cpu_thread(void)
{
	return seconds(CLOCK_THREAD_CPUTIME_ID);
}

double cpu_process(void)
{
	return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

double cpu_other(pid_t pid)
{
	clockid_t which;

	return clock_getcpuclockid(pid, &which) ? -1 : seconds(which);
}

struct cpu_span cpu_span_begin(void)
{
	return (struct cpu_span){ progress_seconds(), cpu_process() };
}

double cpu_span_seconds(const struct cpu_span *s)
{
	const double clock = progress_seconds() - s->clock, cpu = cpu_process() - s->cpu;

	return clock < cpu ? clock : cpu;
}
