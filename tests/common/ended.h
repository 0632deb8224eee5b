/* What the tests of programs under consan-run assert. Header-only. */
#ifndef CONSAN_TESTS_ENDED_H
#define CONSAN_TESTS_ENDED_H

#include "find.h"
#include "shell.h"

#include <criterion/criterion.h>

/* Before a command of a shell: in a build with ASan, its runtime is in the program's process, where it would
 * make an exit of a signal. */
#define KEEP_SEGV "ASAN_OPTIONS=handle_segv=0 "

/* Asserts the exit status `is` of a command, and a part of its output unless that is NULL. */
static inline void expect_ended(const char *words, int is, int status, const char *piece)
{
	cr_assert_eq(is, status, "%s: status %d, expected %d\n%s", words, is, status, output);
	cr_assert(!piece || has(output, piece), "%s: no \"%s\" in\n%s", words, piece, output);
}

#endif
