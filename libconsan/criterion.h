/* consan/criterion.h: assertions about kernels for the Criterion test framework. Each takes a
 * session (consan.h) in which kernels have been launched. A failed assertion prints the
 * findings with their locations. */
#ifndef CONSAN_CRITERION_H
#define CONSAN_CRITERION_H

#include "consan.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* All findings as text, never NULL. The caller free()s it. */
static inline char *consan_criterion_text(struct consan *c)
{
	size_t n = consan_findings(c), length = 64, at = 0;
	char *text;

	for (size_t i = 0; i < n; i++)
		length += (size_t)consan_describe(consan_finding(c, i), NULL, 0) + 1;
	text = (char *)calloc(1, length);
	if (!text)
		abort();
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, length - at, "\n"),
		at += (size_t)consan_describe(consan_finding(c, i), text + at, length - at);
	if (!n)
		snprintf(text, length, "\nno findings");
	return text;
}

/* Asserts that there are no errors and warnings, that a kernel was launched, and that each launched
 * kernel was checked. */
#define cr_assert_consan_clean(session) do { \
	struct consan *consan_session_ = (session); \
	const struct consan_coverage *consan_v_; \
	size_t consan_n_ = consan_findings(consan_session_), consan_bad_ = 0; \
	char *consan_text_ = consan_criterion_text(consan_session_); \
	for (size_t i_ = 0; i_ < consan_n_; i_++) \
		consan_bad_ += consan_finding(consan_session_, i_)->severity > CONSAN_NOTE; \
	cr_assert(!consan_bad_, "%zu findings:%s", consan_bad_, consan_text_); \
	free(consan_text_); \
	consan_n_ = consan_kernels(consan_session_); \
	cr_assert(consan_n_, "no kernel was launched"); \
	for (size_t i_ = 0; i_ < consan_n_; i_++) { \
		consan_v_ = consan_coverage(consan_session_, i_); \
		cr_assert(!*consan_v_->unchecked, "%s was not checked: %s", \
			consan_v_->kernel, consan_v_->unchecked); \
	} \
} while (0)

/* Asserts a finding of this rule ("CS102") at this file and line; NULL or 0: any. */
#define cr_assert_consan_finds(session, rule, file, line) do { \
	struct consan *consan_session_ = (session); \
	char *consan_text_ = consan_criterion_text(consan_session_); \
	cr_assert(consan_finds(consan_session_, (rule), (file), (line)), \
		"expected %s at %s:%d; findings:%s", (rule), (file) ? (file) : "any file", \
		(int)(line), consan_text_); \
	free(consan_text_); \
} while (0)

#endif
