/* repeat: clusters whose events are those of an earlier cluster. Most clusters of a launch do the
 * same with other addresses in global memory. What the checker concludes from the events of a
 * cluster, but for those addresses, follows from the events alone, so a cluster whose events equal
 * those of one that was checked needs no check of its own until they differ.
 *
 * The events of checked clusters are kept as *streams*, a tree: a stream follows another one up to
 * the event at which it differs. A cluster begins as a follower: each event is compared with the
 * stream, and only its accesses to global memory are recorded, with the epoch that they had there.
 * What such an access knows of an earlier one of its own cluster follows from the events, too: a stream
 * keeps the questions that its cluster asked, with their answers.
 * At the first event without an equal in a stream, or where a race is possible, the events so far
 * are *replayed*: they pass the handlers, global memory left out, and the cluster is checked as any.
 *
 * Only in launches whose clusters do not synchronize with each other. */
#ifndef CONSAN_CHECK_REPEAT_H
#define CONSAN_CHECK_REPEAT_H

#include "libconsan/event/event.h"

struct cluster;
struct warp;
struct check;
struct frontier;
struct repeats;                  /* the streams of a launch */
struct stream;

/* Who makes an access to global memory, and when. */
struct repeat_stamp {
	uint32_t epoch, issue;   /* of the agent, of the warp */
	uint16_t agent;
	bool only;               /* the warp has one group, which has all lanes of the access */
};

/* Does an access of an agent know what an agent of its cluster, or itself, did up to an earlier epoch? */
struct repeat_question {
	uint32_t old_epoch, now_epoch;
	uint16_t old_agent, now_agent;
	uint16_t plane;
};

enum repeat_answer {
	REPEAT_UNANSWERED,
	REPEAT_UNKNOWN,          /* of no lane */
	REPEAT_KNOWN             /* of all lanes */
};

enum repeat_state {
	REPEAT_NOT,              /* checked as any other */
	REPEAT_FOLLOWS,          /* equal to a stream so far: nothing but c->repeat is up to date */
	REPEAT_REPLAYS,
	REPEAT_RECORDS           /* checked, and becomes a stream */
};

struct repeat {                  /* of a cluster */
	enum repeat_state state;
	struct stream *stream;   /* followed up to step `at`, or recorded */
	size_t at;
	const struct event *inside; /* follows: the event whose access to global memory is recorded */
	const struct repeat_stamp *stamp; /* of that event */
	bool noted;              /* records: findings of the current event belong to the stream */
	bool ending;             /* records: there is no event any more */
	bool broken;             /* records: the current event, or the end, cannot be in a stream */
	bool untouched;          /* nothing has changed the cluster since it was emptied */
	struct frontier *nothing; /* of the followers' accesses, as long as none can race */
};

struct repeats *repeats_open(void);
void repeats_close(struct repeats *r);

void repeat_begin(struct cluster *c);
/* Handles the event, as check_event() does with REPEAT_NOT. */
void repeat_event(struct cluster *c, const struct event *e);
/* At the end of the cluster: is it the same as another one to the end? */
bool repeat_whole(struct cluster *c);
/* The cluster is complete. Ends its recorder, too. */
void repeat_end(struct cluster *c);
/* The state of the cluster is needed: a follower becomes a cluster as any. */
void repeat_leave(struct cluster *c);
/* Records: the lanes' access to global memory. */
void repeat_access(struct cluster *c, const struct warp *w, uint32_t lanes,
	const struct repeat_stamp *s);
/* Records: a finding of this event. */
void repeat_finding(struct cluster *c, const uint32_t key[3]);
/* Records: may the current event have answers? Then this is one. */
bool repeat_keeps_answers(const struct cluster *c);
void repeat_answered(struct cluster *c, const struct repeat_question *q, enum repeat_answer is);
/* Follows: the answer that the cluster of the stream had at the current event. */
enum repeat_answer repeat_ask(const struct cluster *c, const struct repeat_question *q);

#endif
