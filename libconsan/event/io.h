/* io: saves events to a file, from which they can be read to be checked again or printed.
 *
 * A file is a sequence of independent chunks, each compressed and with a checksum: a truncated or
 * damaged file loses only the chunks concerned, and several processes may append to one file. The
 * file also contains the sites of the events; reading adds them to the site table. */
#ifndef CONSAN_EVENT_IO_H
#define CONSAN_EVENT_IO_H

#include "libconsan/base/base.h"
#include "event.h"

/* ---- writing: thread-safe ---- */

struct event_writer;
/* Appends to path, creating it. */
struct event_writer *event_writer_open(const char *path, struct consan_err *e);
/* False: an event could not be written, for example because the disk is full; e says why. */
bool event_writer_close(struct event_writer *w, struct consan_err *e);
void event_writer_launch(struct event_writer *w, const struct launch_info *l);
/* last: clusters with a higher id do not count, because the launch failed; UINT32_MAX: all count.
 * unchecked: why the events are not the whole launch, or "". */
void event_writer_launch_end(struct event_writer *w, const struct launch_info *l,
	uint32_t last, const char *unchecked);
/* A sink that saves each event, then passes it to `next`. NULL: none; the sink then wants
 * global accesses as well. The cluster_info is copied. */
struct event_sink *event_writer_begin(struct event_writer *w,
	const struct cluster_info *c, struct event_sink *next);
/* Ends the cluster and frees the sink; returns `next`. */
struct event_sink *event_writer_end(struct event_sink *s);

/* ---- reading ---- */

/* Callbacks, called by the reading thread in the order of the file. The events of several clusters
 * of a launch may interleave. Members may be NULL. */
struct event_reader {
	void *user;
	/* l is valid until its launch_end */
	void (*launch)(void *user, const struct launch_info *l);
	/* NULL: this cluster's events are not wanted */
	struct event_sink *(*cluster_begin)(void *user, const struct cluster_info *c);
	/* whole: no event of the cluster was lost */
	void (*cluster_end)(void *user, const struct cluster_info *c,
		struct event_sink *sink, bool whole);
	/* the arguments of event_writer_launch_end() */
	void (*launch_end)(void *user, const struct launch_info *l, uint32_t last,
		const char *unchecked);
};
struct event_read_stats {
	uint64_t launches, clusters, events;
	uint64_t damaged;       /* places where bytes had to be skipped */
	uint64_t incomplete;    /* clusters of which events are missing, or not valid */
	const char *invalid;    /* what was not valid first; NULL: nothing */
};
/* False: no such file, or nothing in it is an event stream of this version. */
bool event_read(const char *path, const struct event_reader *r,
	struct event_read_stats *stats, struct consan_err *e);
/* Does the file begin like an event stream? */
bool event_is_stream(const char *path);

/* One line, without the newline: what `consan dump` shows. */
void event_print(const struct event *e, struct text *out);

#endif
