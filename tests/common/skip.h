/* skip: ends a test that cannot run here, and says why: Criterion prints the reason only if it is asked to, and
 * counts the test as none. Header-only. */
#ifndef CONSAN_TESTS_SKIP_H
#define CONSAN_TESTS_SKIP_H

#include <criterion/criterion.h>
#include <stdio.h>

#define SKIP_TEST(...) do { \
		fprintf(stderr, "[SKIP] %s::%s: ", criterion_current_test->category, criterion_current_test->name); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		cr_skip_test(__VA_ARGS__); \
	} while (0)

#endif
