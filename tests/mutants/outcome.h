/* outcome: runs a program under consan-run and evaluates the report. */
#ifndef OUTCOME_H
#define OUTCOME_H

#include "libconsan/base/base.h"

/* What detected a mutant, the strongest first. */
enum kind {
	BROKEN,      /* it did not run */
	BY_ERROR, BY_WARNING, BY_NOTE, /* a finding that the clean run does not have */
	BY_TIME,     /* it ran longer than the limit */
	BY_RESULT,   /* no finding, but the result is wrong or the program failed */
	SURVIVED,
	KINDS
};

struct outcome {
	enum kind kind;
	char rule[8];        /* of the first of the most severe findings, "CS106" */
	char text[200];      /* BROKEN: the reason */
	char kernel[256];    /* checked, mangled */
	unsigned threads;    /* of its block */
};

/* Runs `consan-run options program arguments` in a shell, for at most `seconds`. known: rules that
 * do not count, separated by blanks; scratch: a folder. */
struct outcome outcome_of(const char *build, const char *options, const char *program,
	const char *arguments, unsigned seconds, const char *known, const char *scratch);

#endif
