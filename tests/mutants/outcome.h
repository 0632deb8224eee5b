/* outcome: a program, run under consan-run, and what the report says of it. */
#ifndef OUTCOME_H
#define OUTCOME_H

#include "libconsan/base/base.h"

/* What ended a mutant, the strongest first. */
enum kind {
	BROKEN,      /* it never ran: our mistake */
	BY_ERROR, BY_WARNING, BY_NOTE, /* a finding that the clean run lacks */
	BY_TIME,     /* it ran longer than the limit */
	BY_RESULT,   /* the checker is silent, but the result wrong or the program failed */
	SURVIVED,
	KINDS
};

struct outcome {
	enum kind kind;
	char rule[8];        /* of the first of the severest findings, "CS106" */
	char text[200];      /* BROKEN: why */
	char kernel[256];    /* checked, mangled */
	unsigned threads;    /* of its block */
};

/* `consan-run options program arguments` by a shell, in at most `seconds`.
 * known: rules that do not count, blank-separated; scratch: a folder. */
struct outcome outcome_of(const char *build, const char *options, const char *program,
	const char *arguments, unsigned seconds, const char *known, const char *scratch);

#endif
