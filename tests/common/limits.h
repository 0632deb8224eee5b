/* limits: when a test is taken for one that hangs. The limits are on the clock, and the clock runs on while
 * other programs have the processors: so they are far beyond what any test takes, and no test measures how
 * fast something is by them. cpu_limit() does that. Header-only. */
#ifndef CONSAN_TESTS_LIMITS_H
#define CONSAN_TESTS_LIMITS_H

#include <sys/resource.h>

#define TEST_LIMIT 900               /* seconds, of a test */
#define LIMITED "timeout -k 1 600 "  /* before a command of a shell */

/* The test fails by SIGXCPU if its process uses so many seconds of processor time. */
static inline void cpu_limit(unsigned seconds)
{
	setrlimit(RLIMIT_CPU, &(struct rlimit){ seconds, seconds });
}

#endif
