/* cpu_time: seconds of processor time. Limits on work of our own are in these, not in seconds of the
 * clock: on a busy machine the clock runs on while the work does not, and the same launch would be
 * stopped in one run and end in another. */
#ifndef CONSAN_CPU_TIME_H
#define CONSAN_CPU_TIME_H

#include "base.h"

#include <sys/types.h>

double cpu_thread(void);  /* of the calling thread */
double cpu_process(void); /* of all threads of the process */
double cpu_other(pid_t pid); /* of all threads of another process; < 0: it does not exist */

/* How long a piece of work took: the time on the clock, or the processor time of the process if that is
 * less. The first is more than the work took on a busy machine, the second if other threads were busy. */
struct cpu_span {
	double clock, cpu;
};

struct cpu_span cpu_span_begin(void);
double cpu_span_seconds(const struct cpu_span *s);

#endif
