/* session: what consan.c and session.c share. Private to them. */
#ifndef CONSAN_SESSION_H
#define CONSAN_SESSION_H

#include "libconsan/base/base.h"
#include "libconsan/check/check.h"
#include "libconsan/event/event.h"
#include "libconsan/exec/exec.h"
#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"
#include "session.h"

#include <pthread.h>

/* A finding of the session; each launch adds to what earlier ones saw. */
struct seen {
	struct finding f;
	uint64_t before;          /* times, in earlier launches */
	uint32_t clusters_before;
	uint64_t recorded;        /* f.seen as the records have it */
	uint64_t cleared;         /* ... and as it was at consan_clear() */
	bool announced;           /* to consan_on_finding() */
	bool suppressed;          /* recorded, but not shown, counted or announced */
};

struct consan {
	struct options opt;
	struct check_policy policy;
	struct check_memory *memory;
	bool freed;               /* device memory was, or something was waited for, since
				     the last launch: atomic */
	pthread_mutex_t launching; /* one launch at a time: device order */
	pthread_mutex_t showing;   /* views; taken in this order */
	pthread_mutex_t lock;      /* everything below */
	const struct exec_device *gpu;
	struct consan_device device;
	unsigned hint_sm;
	char hint_suffix;
	struct results_writer *records;
	struct event_writer *save;
	struct banks *banks;      /* NULL: not counted */
	struct recorders *recorders;
	struct progress *progress; /* NULL: nobody looks */
	struct results suppressions; /* the entries only */
	VEC(struct seen *) findings;
	VEC(const struct finding *) sorted;
	VEC(struct coverage) coverage;
	uint32_t launches, dumped; /* so far: launches; modules that --dump-ptx wrote */
	unsigned fault;            /* FAULT_ that ended the last launch */
	struct arena shown, covered;
	VEC(struct consan_finding) views;
	VEC(struct consan_coverage) coverage_views;
	void (*found)(void *user, const struct consan_finding *f);
	void (*print)(void *user, const char *text, size_t n);
	void *found_user, *print_user;
	bool in_region;
	unsigned shard, shards;    /* the option `shard`: shard of shards, from 1 */
	uint64_t matched, checked; /* launches that passed the filters; of these, checked */
};

struct consan_module {
	struct consan *c;
	struct exec_module *exec;
	struct ptx_module *ptx;    /* owned by exec */
	struct gpu_module *gpu;    /* --backend=gpu-emulated: what exec runs is its text */
	struct consan_kernel *kernels;
};

struct consan_kernel {
	struct consan_kernel *next;
	struct consan_module *module;
	const struct exec_kernel *exec;
	struct exec_kernel_info info;
	char *demangled;
	struct ev_symbol *symbols; /* info.symbols, with their short names */
};

/* ---- consan.c: what every way to run a launch needs ---- */
/* May this launch be checked, by the filters? Counts it. */
bool session_wants(struct consan *c, const char *kernel, const char *demangled);
enum consan_status session_status(enum exec_status s);
struct coverage *session_coverage(struct consan *c, const char *kernel);
/* c->sorted anew; the caller holds the lock. */
size_t session_sort(struct consan *c);
/* check_config.found, user being the session. */
void session_found(void *user, const struct finding *f);
/* Of a copy of the process that only tries a launch: nothing is recorded, saved or printed. */
void session_silence(struct consan *c, struct check_config *config);
/* The launch is over: its findings are final. Clusters after `last` do not
 * count; UINT32_MAX: all do. */
void session_settle(struct consan *c, struct check *check, uint32_t last);

/* ---- session.c ---- */
/* The knobs that --strict and --knob choose. */
bool session_policy(const struct options *o, struct check_policy *p, struct err *e);
/* Runs a launch, under `check` if it is not NULL. */
struct crossings;
void session_run(struct consan *c, const struct consan_launch *l, const void *params,
	const struct launch_info *info, struct check *check, struct crossings *watch,
	struct exec_result *r);
/* consan.c: what --bank-conflicts has counted so far, as records. */
void session_record_banks(struct consan *c);

/* ---- view.c ---- */
/* New findings go to consan_on_finding(). */
void view_announce(struct consan *c);

#endif
