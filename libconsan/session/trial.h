/* trial: a launch again, with another text of its module.
 *
 * A copy of the process is forked, which waits. Each trial is a further copy of that one, so that nothing
 * of it remains but its findings, and a crash or an endless loop ends only the trial. */
#ifndef CONSAN_TRIAL_H
#define CONSAN_TRIAL_H

#include "libconsan/finding/finding.h"

/* A finding above a note, by its PTX lines, the lower one first; 0: no instruction. */
struct trial_key {
	uint32_t rule, line[2];
};

/* The edit of such a finding. Sites of a copy are unknown elsewhere; lines are those of all
 * texts. */
struct trial_place {
	uint32_t line;  /* 0: none */
	char ptx[96];   /* the first bytes of the instruction there */
};
struct trial_finding {
	struct trial_key key;
	struct finding_edit edit; /* without sites */
	struct trial_place site, until;
};

struct trial_result {
	bool done;    /* false: the trial ended early, or took too long */
	bool idle;    /* a thread has waited for an mbarrier on which none arrived */
	double seconds; /* processor time that it took */
	uint32_t n;
	struct trial_finding *at; /* owned */
};

struct trial_request {
	size_t n;       /* of the text */
	double seconds; /* of processor time: the limit, for both sides */
	bool brief;     /* it is sufficient to know whether there is a finding above a note */
};

/* Runs the launch with this text of its module, and returns its findings above a note. False: it
 * cannot be run. In a copy of the process, which ends afterwards. */
typedef bool trial_run(void *user, const char *text, const struct trial_request *q,
	struct trial_result *out);
/* From within such a run, on any thread: this is its result. */
_Noreturn void trial_stop(const struct trial_result *r);

struct trials;
struct trials *trials_open(trial_run *run, void *user); /* NULL: no copy could be made */
void trials_try(struct trials *t, const char *text, const struct trial_request *q,
	struct trial_result *out);
void trials_close(struct trials *t); /* NULL is fine */

#endif
