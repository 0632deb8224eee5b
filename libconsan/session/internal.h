/* session: what the files of this module share. */
#ifndef CONSAN_SESSION_INTERNAL_H
#define CONSAN_SESSION_INTERNAL_H

#include "libconsan/base/base.h"
#include "libconsan/check/check.h"
#include "libconsan/event/event.h"
#include "libconsan/exec/exec.h"
#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"
#include "explore.h"
#include "session.h"

#include <pthread.h>

/* A finding of the session, over all launches. */
struct session_finding {
	struct finding f;
	size_t index;             /* in consan.findings */
	uint64_t before;          /* f.seen and f.clusters, at the end of the previous launch */
	uint32_t clusters_before;
	uint64_t recorded;        /* f.seen, as last written to the records */
	uint64_t cleared;         /* f.seen, at the last consan_clear() */
	bool announced;           /* passed to consan_on_finding()'s callback */
	bool suppressed;          /* recorded, but not shown, counted or announced */
};

/* A failed kernel<<<...>>>, for whose error its thread has not asked yet */
struct unasked_call { const void *thread; uint32_t stack; };

/* Clusters of a launch, which runs for so many seconds (0: no limit); see exec_launch.sample and
 * exec_launch.partial and limited. */
struct session_part {
	const uint32_t *sample;
	size_t n;
	double seconds;
	bool partial, limited;
};

struct consan {
	struct order *order;      /* NULL: no operation has been issued; atomic */
	bool noted_operations;    /* see gpu_note_operations(); atomic */
	struct options opt;
	struct check_policy policy;
	struct check_memory *memory;
	bool freed;               /* since the last launch, device memory was freed or the program
				     synchronized; atomic */
	/* While launches run, what they use is not freed: another thread, or exit(), may free it. */
	pthread_mutex_t using;
	unsigned running;         /* launches */
	VEC(void *) dead;         /* memory, to be freed when none runs ... */
	VEC(struct consan_module *) unloaded; /* ... and modules */
	/* taken in this order */
	pthread_mutex_t launching; /* one launch at a time */
	pthread_mutex_t showing;   /* views, coverage_views and their arenas */
	pthread_mutex_t lock;      /* all members below */
	const struct exec_device *gpu;
	struct consan_device device;
	unsigned hint_sm;
	char hint_suffix;
	struct results_writer *records;
	struct event_writer *save;
	struct banks *banks;      /* NULL: not counted */
	struct recorders *recorders;
	struct progress *progress; /* NULL: no progress line */
	struct results suppressions; /* the entries only */
	VEC(struct session_finding *) findings;
	struct number_map identity; /* by hash: index in findings + 1; with the next odd key on
				       collision */
	struct number_map bug;    /* results_hash_bug() -> index + 1 of the first one */
	VEC(const struct finding *) sorted;
	VEC(struct coverage) coverage;
	uint32_t launches, dumped; /* numbers of launches, and of modules that --dump-ptx wrote */
	unsigned fault;            /* the FAULT_ that ended the last launch */
	struct arena shown, covered;
	VEC(struct consan_finding) views;
	VEC(struct consan_coverage) coverage_views;
	void (*found)(void *user, const struct consan_finding *f);
	void (*print)(void *user, const char *text, size_t n);
	void *found_user, *print_user;
	VEC(struct unasked_call) unasked;
	uint32_t (*stack)(void);   /* the host's call stack; NULL: not known */
	struct schedule schedule;  /* --schedule */
	/* of which a launch has been tried in reverse order */
	VEC(const struct consan_kernel *) reversed;
	const struct session_part *partial; /* what runs of the launch; NULL: all */
	const struct exec_control *control; /* of the launch that runs; NULL: none */
	struct consan_outside outside;
	bool copy;                 /* this is a copy of the process that tries a launch ... */
	bool alone;                /* ... which nothing else can affect */
	uint64_t most;             /* ... and is stopped after so many operations; 0: no limit */
	unsigned paused;           /* launches that let others run */
	/* launches that the next one may run beside; op: a reference */
	struct {                   /* gpu_together.c: since a launch began when none ran */
		unsigned running;
		bool overlap;      /* several have run at the same time */
		const char *incomplete; /* why not all that may synchronize can be checked together; NULL: they can */
		uint64_t bytes;    /* of records that are kept */
		VEC(struct gpu_kept { struct gpu_launch *l; void (*done)(struct gpu_launch *l); }) kept;
	} together;
	VEC(struct launched { uint32_t id; struct order_op *op; }) launched;
	uint32_t beside;           /* check_beside() of the newest */
	struct mets *mets;         /* NULL: no grids have met */
	struct host *host;         /* host.c; NULL: the host was never beside a grid */
	VEC(const struct consan_kernel *) prepared; /* kernels with a launch that repair.c prepared */
	double trial_seconds;      /* that it has spent on trials */
	uint64_t kept_bytes;       /* of memory that it has kept for trials */
	bool in_region;
	/* --shard=SHARD/SHARDS, from 1: of the launches, 0: all are checked; of the schedules, 1/1: all run */
	unsigned shard, shards, part, parts;
	struct number_map replayed; /* --gpu-then-cpu: launches of each kernel and shape that were */
	bool noted_unrecorded;     /* gpu_note_unrecorded() has added its remark */
	uint64_t matched, checked; /* launches that passed the filters by name, and checked ones */
};

struct consan_module {
	struct consan *c;
	struct exec_module *exec;
	struct ptx_module *ptx;    /* owned by exec */
	/* --backend=gpu-emulated, else NULL: exec runs the text of `gpu`, or, if there are slices,
	 * that of the program, and each launched kernel gets a module of its own */
	struct gpu_module *gpu;
	struct slices *slices;
	unsigned device;           /* on which its kernels run */
	struct consan_kernel *kernels;
};

struct consan_kernel {
	struct consan_kernel *next;
	struct consan_module *module;
	const struct exec_kernel *exec;
	struct exec_kernel_info info;
	char *demangled;
	struct ev_symbol *symbols; /* info.symbols with short names */
	struct gpu_module *gpu;    /* its own module, once it was launched (module->slices) */
	struct exec_module *gpu_exec;
};

/* ---- session.c: around each launch ---- */
void session_uses(struct consan *c);
void session_used(struct consan *c);

/* ---- consan.c: for all functions that run a launch ---- */
/* Copies a struct of the public interface that may be of another version. */
bool session_take_struct(void *to, size_t size, const void *from, size_t given,
	struct consan_err *e);
/* Do the user's filters want this launch? Counts it: to be called once a launch. */
bool session_wants(struct consan *c, const char *kernel, const char *demangled);
/* It has begun: it is in the records, or is not to be checked. */
void session_begun(struct consan *c);
/* Tells the records which of the launches to come are to be checked. */
void session_tell_next(struct consan *c);
enum consan_status session_status(enum exec_status s);
struct coverage *session_coverage(struct consan *c, const char *kernel);
/* Updates c->sorted and returns the number of findings. The caller holds the lock. */
size_t session_sort(struct consan *c);
/* Takes over a finding that is final. */
void session_take(struct consan *c, const struct finding *f);
/* For check_config.found; user: the session. */
void session_found(void *user, const struct finding *f);
/* For a copy of the process that only tries a launch: it records, saves and prints nothing. */
void session_silence(struct consan *c, struct check_config *config);
void session_mute(struct consan *c); /* the same, of one that goes on with several operations */
/* Takes over findings that the process's own schedule did not show. */
struct explored;
void session_take_explored(struct consan *c, const struct explored *x);
/* Ends a launch: its findings become final, and those that session_found() added and the
 * checker dropped are removed. Clusters with an id above `last` do not count; UINT32_MAX: all
 * do. */
void session_settle(struct consan *c, struct check *check, uint32_t last);

/* What is known of a launch before it runs. */
struct launch_info session_describe(struct consan *c, const struct consan_launch *l, uint32_t id);
/* --explore: further schedules of a launch, each in a copy of the process. */
struct explored;
void session_explore(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config, struct explored *out);
/* Tries the launch in the reverse order, in a copy of the process, if it takes locks. */
void session_reverse(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config, struct explored *out);
/* check_config.where */
bool session_allocation(void *user, uint64_t addr, uint64_t *base, uint64_t *bytes);
/* session.c: a module that was loaded already, which it takes over. */
struct consan_module *session_module(struct consan *c, struct ptx_module *ptx, struct exec_module *exec,
	unsigned device);
/* load.c: the PTX of a module of consan_load_image(), of the newest architecture; free() it. */
char *session_image_ptx(const void *bytes, size_t n, unsigned index, size_t *size, struct consan_err *e);
/* Takes over findings of a replay: one that is known is not counted again. */
void session_take_replayed(struct consan *c, struct explored *x);

/* ---- this_run.c ---- */
/* Adds the command line, options and date of this process to r. */
void session_add_run(struct results *r, const struct options *o);

/* ---- operations.c ---- */
/* Opens the check of a launch, which may run beside earlier ones. op: may be NULL */
struct check *session_check(struct consan *c, const struct check_config *of, struct order_op *op);
void session_launches_end(struct consan *c);
/* Reports the accesses of a grid that has been checked. op: NULL: it is none of the host API; gpu: NULL:
 * it ran on the executor. */
void session_operation(struct consan *c, struct order_op *op, struct check *check, uint32_t launch,
	const struct gpu_launch *gpu, bool screened);

/* The operation of a launch that others may run beside; NULL: not known. */
struct order_op *session_launched(const struct consan *c, uint32_t launch);

/* ---- met.c: order between operations through memory ---- */
struct met_op;
/* The accesses of a grid will be reported; NULL: it has not met others. part: the number of a part of it. */
struct met_op *met_begin(struct consan *c, struct order_op *op, const struct check *check);
uint32_t met_part(struct met_op *x, const struct check_part *p);
/* The host's accesses, of a set of which it is a member. Takes the reference. */
struct met_op *met_of_host(struct consan *c, struct beside *of);
/* Of struct order_config. */
bool met_orders(void *user, const struct order_op *a, uint32_t a_part, const struct order_op *b,
	uint32_t b_part);
void met_retired(void *user);
/* Has a grid of the set acquired, by its end, what the host did until this epoch, and is before the operation? */
bool met_after_host(const struct consan *c, const struct beside *of, uint32_t epoch, const struct order_op *op);
void met_close(struct consan *c);

/* ---- host.c: accesses of the host beside grids ---- */
/* An access. of, part: of a grid that may have met others, or of the host; or NULL */
struct host_side {
	const struct order_op *op;
	const struct beside *of;
	const struct check_part *part;
};
/* Is x before y by way of the host? */
bool host_orders(const struct consan *c, const struct host_side *x, const struct host_side *y);
/* Sets what the host knew when it issued the launch. */
void host_begins(const struct consan *c, struct check_config *config, const struct order_op *op);
/* check_config.host_race; user: the session */
void host_race(void *user, const struct check_host_race *x);
void host_forget(struct consan *c, const struct beside *of);
void host_close(struct consan *c);

/* ---- calls.c ---- */
/* The program ends, and asks for no more errors. */
void session_end_calls(struct consan *c);

/* ---- session.c ---- */
/* Sets the knobs by --strict and --knob. */
bool session_policy(const struct options *o, struct check_policy *p, struct consan_err *e);
struct crossings;
struct repair;
/* Runs a launch. check, watch: where its events go; repair: what keeps the memory that it changes; each may
 * be NULL. */
void session_run(struct consan *c, const struct consan_launch *l, const void *params,
	const struct launch_info *info, struct check *check, struct crossings *watch,
	struct repair *repair, struct exec_result *r);
/* exec_observer.pause of launches that hold this lock. */
enum exec_resume session_pause(struct consan *c, pthread_mutex_t *held, enum exec_pause why,
	bool changed);
/* The `last` of session_settle(). */
uint32_t session_last(const struct exec_result *r);
/* consan.c: writes the counts of --bank-conflicts to the records. */
void session_record_banks(struct consan *c);

/* ---- view.c ---- */
/* Writes the finding to the records. The caller holds the lock. */
void session_record_finding(struct consan *c, size_t i);
/* Passes new findings to consan_on_finding()'s callback. */
void view_announce(struct consan *c);

#endif
