/* session: the functions of a session that other modules of consan use, beyond the public
 * interface (consan.h). */
#ifndef CONSAN_SESSION_SESSION_H
#define CONSAN_SESSION_SESSION_H

#include "libconsan/base/base.h"
#include "libconsan/consan.h"
#include "libconsan/exec/exec.h"
#include "libconsan/finding/finding.h"
#include "libconsan/order/order.h"

/* The environment variable with the words of consan_open() for the program under consan-run. */
#define CONSAN_SESSION_ENV "CONSAN_SESSION_OPTIONS"

struct options;
/* Would consan_open() accept these options? Also reads the files that suppress findings. */
bool consan_check_options(const struct options *o, struct consan_err *e);

/* Writes the session's records (results.h) to this file as they are made. NULL: to none. */
bool consan_record_to(struct consan *c, const char *path, struct consan_err *e);
/* Records that this process has no session, and why: what it does is not checked. */
void consan_record_failure(const char *path, const char *why);
/* Writes the progress of each launch to this shared file (progress.h). */
void consan_progress_to(struct consan *c, const char *path);
/* A module for this architecture will be loaded: consan_device() takes it into account. */
void consan_arch_hint(struct consan *c, unsigned sm, char suffix);
/* Finds the allocation that contains `at`; false if there is none. */
bool consan_mem_find(struct consan *c, const void *at, void **base, uint64_t *bytes,
	enum consan_mem *kind);
/* After CONSAN_FAULT: the FAULT_ (fault.def) that ended the last launch. */
unsigned consan_fault(struct consan *c);

/* The number of occurrences of errors in all launches that have ended. */
uint64_t consan_errors_seen(struct consan *c);
/* With the option `halt-on-error`: has a launch had an error? Then consan_launch() runs no other, and
 * the program is to end with this status: --error-exitcode, or 1 if that is 0. */
bool consan_halted(struct consan *c, int *exit_status);
/* With the option `regions`, launches are checked only while the program is inside a region. */
void consan_in_region(struct consan *c, bool inside);

/* The checker's own structs, valid until the next launch or consan_close(). */
size_t consan_raw_findings(struct consan *c, const struct finding *const **out);
size_t consan_raw_coverage(struct consan *c, const struct coverage **out);

/* Takes the registers per thread of the module's kernels from its cubin, or from machine code in the
 * same fatbin, if it has some for the session's device. To be called when the module is loaded. */
void consan_take_registers(struct consan_module *m, const void *image, size_t n);
/* The host's call stack of the calling thread, outside of the object of this function and of the
 * libraries of CUDA: a site, whose places have offsets (site.h). NULL or else *call: the function of
 * this object that was called. */
uint32_t consan_host_stack(const char **call);
/* In two steps: the frames of the calling thread, at most n, 0 if the session wants no call stacks;
 * then the site of such frames. */
int consan_host_frames(struct consan *c, void **pc, int n);
uint32_t consan_stack_of(void *const *pc, int n, const char **call);
/* A launch begins: remembers the Python frames of this thread. It takes the interpreter's lock, so the
 * caller holds no lock of ours. */
void consan_python_launches(void);
/* These frames as a site; if there are none, that of the host, see consan_host_stack(). */
uint32_t consan_launch_stack(void);
/* The Python frames of this thread, to be kept: one in a line; NULL: it runs no Python code. The caller
 * free()s them, and holds no lock of ours. */
char *consan_python_frames(void);
uint32_t consan_python_stack_of(const char *frames); /* a site; 0: none */
bool consan_python_program(void);
/* An interpreter runs in this process that has not loaded consan_setup.py, as by python -I. */
bool consan_python_unprepared(void);
bool consan_python_has(const char *name); /* it has kernels of this compiler: "gluon", "triton", "xla" */
/* stack: called on the launching thread for the call stack of a finding's launch, a site. */
void consan_on_stack(struct consan *c, uint32_t (*stack)(void));
/* For the InitializeInjectionNvtx2() of a library: `named` gets the streams that the program names by
 * NVTX, as `stream "NAME"`. Returns what that function is to return. */
int consan_nvtx(const void *(*get)(uint32_t id), void (*named)(const void *stream, const char *line));
/* Happens-before of the host API in this session; its findings are the session's. */
struct order *consan_order(struct consan *c);
/* An access of the host, before it is made, while no operation runs but such as are suspended. alone: all that were
 * issued and have not ended are grids that are. reads: also if it writes. Returns whether there was something to
 * report. */
bool consan_host_access(struct consan *c, const struct order_range *range, bool reads, bool alone,
	uint32_t (*stack)(void));
/* A stream memory operation or a host function accesses a word, by which it may synchronize with grids. */
void consan_host_word(struct consan *c, uint64_t addr, uint32_t bytes, bool write);
/* May a grid that runs, and the host, have synchronized by a word in [from, end)? */
bool consan_host_words(struct consan *c, uint64_t from, uint64_t end);
/* From now on, the host may access [from, end) without consan_host_access(): read it, and write it if it says so. */
void consan_host_page_unseen(struct consan *c, uint64_t from, uint64_t end, bool writes);
/* Operations run, or have run, while the host can access memory without consan_host_access(). */
void consan_host_unseen(struct consan *c);
/* A launch of the kernel waits in a queue; then it never will begin (if it does: consan_outside.begun). However
 * the process ends, the report says how many that were to be checked had not begun. False: the launch is not one
 * to be checked, and not counted. */
bool consan_issued(struct consan *c, const struct consan_kernel *k);
void consan_over(struct consan *c);
/* consan_launch() of a grid that order_issue() has made an operation. launched: by a kernel: the number
 * of the EV_GRID_LAUNCH; else 0. */
enum consan_status consan_launch_op(struct consan *c, const struct consan_launch *l,
	struct order_op *op, uint64_t launched, struct consan_err *e);
/* A call of the CUDA API that failed, by rule CS951 to CS953. */
struct consan_call {
	const char *rule;      /* "CS951" */
	const char *name;      /* "cudaLaunchKernel" */
	const char *kernel;    /* mangled; or "" */
	const char *error;     /* one sentence: the error */
	const char *reason;    /* one sentence; or "" */
	uint32_t stack;        /* of consan_host_stack() */
};
void consan_call_failed(struct consan *c, const struct consan_call *call);
/* CS1020, or CS1021, if it is not certain: operations that wait for each other or for the host, of which
 * the first two are shown. */
struct consan_stuck {
	const char *kernel;    /* mangled; or "" */
	const char *actor;     /* "kernel wait in stream 2" */
	uint32_t stack;        /* of the call that issued it; 0: not known */
};
void consan_deadlock(struct consan *c, const char *rule, const struct consan_stuck *stuck, size_t n,
	const char *waits, const char *hint);
/* The failed call with this call stack is one of kernel<<<...>>>, which returns no error: the
 * report says so if the thread (an address that is its own) does not ask for it. */
void consan_call_unasked(struct consan *c, const void *thread, uint32_t stack);
void consan_call_asked(struct consan *c, const void *thread); /* cudaGetLastError() */
/* Is it the call stack of a library of CUDA, which handles the error itself? */
bool consan_call_implicit(uint32_t stack);
/* Does --report-api-errors want a call that failed? implicit: made by a library. */
bool consan_reports_calls(struct consan *c, bool implicit);
/* The name of a library that has kernels of its own ("cuBLAS"), by its path; NULL: none of these. */
const char *consan_library(const char *path);
/* The one from which the current call of the CUDA API comes. */
const char *consan_calling_library(void);
/* Other work of the program that uses memory while a launch runs. pause: exec_observer.pause, on the
 * thread of the launch, which lets other launches run meanwhile; alone: no other work can run as long
 * as this launch has not ended. Both are called by launches. */
struct consan_outside {
	enum exec_resume (*pause)(enum exec_pause why, bool changed);
	bool (*alone)(void);
	/* A kernel calls the device runtime: exec_observer.call. */
	int (*call)(struct exec_call *c);
	/* Where a handler of a signal says that it does not return to this thread's launch, which is to be
	 * cut off. */
	const _Atomic bool *(*cut)(void);
	/* The launch of this thread begins. Was it counted by consan_issued(), and not by consan_over()? It is no
	 * longer. */
	bool (*begun)(void);
};
void consan_on_pause(struct consan *c, const struct consan_outside *to);
/* A race with an operation of another process. */
struct order_report;
void consan_operations_race(struct consan *c, const struct order_report *r);
uint64_t consan_seed(const struct consan *c);  /* --seed */
bool consan_explores(const struct consan *c);  /* --explore, without --schedule */
/* Calls run() under each further seed of --explore, in a copy of the process, and takes over what it finds.
 * Nothing else may run in the process. */
void consan_explore_order(struct consan *c, void (*run)(void *user), void *user);
/* Is memory that kernels can access shared with other processes? */
bool consan_shares_memory(void);
double consan_timeout(const struct consan *c); /* --timeout */
bool consan_blocks(const struct consan *c);    /* --launch-blocking */
/* --library-kernels=ignore */
bool consan_ignores_libraries(const struct consan *c);
/* Counts the kernel as not checked, for this reason, unless the filters exclude it: a launch that
 * did not take place, or (launched false) a kernel that could not be found. */
void consan_unchecked(struct consan *c, const char *kernel, bool launched, const char *why);

/* ---- remarks about the program, for the report. CALL_UNSUPPORTED, NOT_LOADED and NOT_SEEN make the run
 * count as not checked; the others of modules are for those that run unwatched on a GPU, whose
 * kernels are counted when they are launched ---- */
enum consan_remark { REMARK_CALL_UNSUPPORTED, REMARK_NO_PTX, REMARK_BAD_MODULE, REMARK_NOTE,
	REMARK_FALLBACK_INVARIANT, REMARK_FALLBACK_NOT_INVARIANT, REMARK_FALLBACK_NOT_TRIED,
	REMARK_NOT_LOADED, REMARK_NOT_SEEN };
void consan_remark(struct consan *c, enum consan_remark kind, const char *text);

/* ---- from the records of all processes to reports and exit status ---- */
/* Reads record files (results.h), writes the reports that the options ask for (text on stderr
 * or --log-file, --report; only: into this file and no other, unless it is NULL), and sets *exit_status to the exit status of consan-run: `program`,
 * the status of the program under test, the --error-exitcode, or CONSAN_EXIT_UNCHECKED. resolve:
 * called for each call stack of the host; returns one with lines; or NULL. A path
 * that does not exist belongs to a process that did not use consan. False: a record file could
 * not be read or a report not be written; *exit_status is set all the same. */
bool consan_report(const struct options *o, const char *const *record, size_t nrecords,
	const char *only, int program, uint32_t (*resolve)(void *user, uint32_t site), void *user, int *exit_status,
	struct consan_err *e);
/* Checks the events in a file that --save wrote. Otherwise like consan_report(). */
bool consan_replay(const struct options *o, const char *path, int *exit_status,
	struct consan_err *e);
enum { CONSAN_EXIT_UNCHECKED = 67 };

/* ---- the rest of what this module offers ---- */
#include "devices.h"
#include "gpu.h"

#endif
