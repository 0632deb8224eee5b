/* crew: threads that stand by, as starting one takes as long as checking a small
 * launch. One crew for the process; a task runs on one thread and must end by
 * itself. Knows nothing of what it runs. */
#ifndef CONSAN_CREW_H
#define CONSAN_CREW_H

#include <stdbool.h>

struct crew_task {
	void (*work)(void *arg);
	void *arg;
	unsigned hand;             /* which of them should rather do it, as what it needs lies in
				      that one's cache; from 0 */
	bool given, called, done;  /* the crew's, */
	unsigned by;               /* ... and which of them */
};

/* At least so many threads, CREW_MOST at most. Cheap if they are there. */
#define CREW_MOST 63
void crew_open(unsigned threads);
/* So many of those that sleep wait for a task with open eyes for a while: one is to
 * come. */
void crew_alert(unsigned threads);
/* None is to come, but for those who have answered the last calls. */
void crew_dismiss(void);
/* False: nobody is free, and nothing was done. The task must live until
 * crew_wait(). */
bool crew_give(struct crew_task *t);
/* The same for n tasks, the first one first, and for whoever is awake, so many of those that
 * sleep among them: who takes one is the hand of its number from then on, and stays awake
 * for a while, as more is to come. First those may whose processor is all their own. It is
 * not where another thread runs on the same core, as a neighbour's may on a host that is
 * shared; work then takes half as long again. */
void crew_call(struct crew_task *t, unsigned n, unsigned awake);
/* Until it is done; at once if it was not given. What its hand has not begun, as it had to
 * wake up first, is done here. */
void crew_wait(struct crew_task *t);
/* The same for several, as many as are free. */
struct crew_hands { struct crew_task task[CREW_MOST]; unsigned n; };
void crew_give_all(struct crew_hands *h, void (*work)(void *arg), void *arg, unsigned most);
void crew_wait_all(struct crew_hands *h);
/* One turn of a loop that waits for another thread: count starts at 0. */
void crew_pause(unsigned *count);

#endif
