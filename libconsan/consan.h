/* consan.h: the concurrency sanitizer for CUDA kernels as a library. It loads PTX, runs
 * kernels on an emulated GPU, checks them and returns the findings. It needs no GPU and no
 * driver.
 *
 *     struct consan_err e = { 0 };
 *     struct consan *c = consan_open("strict", &e);
 *     struct consan_module *m = consan_load_file(c, "kernels.fatbin", 0, &e);
 *     float *x = consan_malloc(c, 1024 * sizeof *x, CONSAN_MEM_DEVICE);
 *     const void *args[] = { &x };
 *     struct consan_launch l = { .kernel = consan_kernel(m, "scale", &e),
 *         .grid = { 4, 1, 1 }, .block = { 256, 1, 1 }, .args = args };
 *     if (consan_launch(c, &l, &e) != CONSAN_OK || consan_errors(c)) ...
 *     consan_close(c);
 *
 * Guarantees:
 *  - No function exits the process or prints. Output of a kernel goes to stdout, or to the
 *    callback of consan_on_print().
 *  - Each function may be called from any thread. Launches of one session run one after
 *    the other. Sessions are independent except for device memory, which all sessions of a
 *    process share (as on a GPU).
 *  - False, NULL or a status other than CONSAN_OK means failure. *e then has the error code,
 *    the position in the input and a text (err.h).
 *  - Later versions may add members at the end of structs and enumerators at the end of enums. A
 *    program keeps working with a later library without being compiled again: structs that it
 *    makes are passed with their size, and those of the library are only handed out by pointer.
 *    struct consan_err does not change. */
#ifndef CONSAN_H
#define CONSAN_H

#include "err.h"
#include "tensormap_args.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONSAN_VERSION "0.1"
/* The version of the library that is linked, as the string CONSAN_VERSION of its header. */
CONSAN_API const char *consan_version(void);

struct consan;         /* a session: options, findings, coverage */
struct consan_module;  /* a loaded PTX module */
struct consan_kernel;  /* an entry of a module */

/* Opens a session, to be closed by consan_close(). options: words "name=value" (or "name")
 * separated by blanks, the long options of consan-run without their dashes, such as "strict
 * seed=3 kernel-name=kns=gemm"; a backslash escapes a blank. NULL or "": the defaults.
 * "suppressions=FILE": findings that match an entry of FILE are not returned, counted or
 * passed to callbacks. Options about the destination of reports and about exit statuses have
 * no effect; use consan_write_report(). NULL: CONSAN_ERR_OPTION, an unknown option or a bad value;
 * CONSAN_ERR_FORMAT, a malformed suppressions file, with line and column; CONSAN_ERR_IO, an
 * unreadable
 * one. */
CONSAN_API struct consan *consan_open(const char *options, struct consan_err *e);
/* Frees the session and everything its functions returned, except device memory and modules:
 * free those first. c may be NULL. */
CONSAN_API void consan_close(struct consan *c);

/* ---- the emulated device ---- */

/* The emulated GPU. Shared memory in bytes, registers in 32-bit units; per SM or CTA as named. */
struct consan_device {
	uint32_t sm;           /* compute capability: 90 of sm_90a */
	char suffix;           /* 'a' of sm_90a, or 0 */
	const char *name;      /* "H100"; static */
	uint32_t sm_count, max_threads_per_sm, max_ctas_per_sm, regs_per_sm;
	uint32_t shared_per_sm, shared_per_cta_optin;
	uint32_t max_cluster;  /* CTAs */
};
/* The device is chosen on the first call that needs it: the option `arch`, or else the newest
 * PTX loaded so far. The result lives as long as the session. */
CONSAN_API const struct consan_device *consan_device(struct consan *c);

/* ---- device memory: host memory that kernels may access ---- */

enum consan_mem { CONSAN_MEM_DEVICE, CONSAN_MEM_HOST, CONSAN_MEM_MANAGED };
/* Allocates device memory, aligned to 256 bytes and not initialized. The host may access it
 * like any memory between launches. Free it with consan_free(). NULL: out of memory, or 0
 * bytes requested. */
CONSAN_API void *consan_malloc(struct consan *c, uint64_t bytes, enum consan_mem kind);
/* False: at is not a pointer that consan_malloc() returned. */
CONSAN_API bool consan_free(struct consan *c, void *at);
/* Lets kernels access memory of the caller, which must outlive the launches. */
CONSAN_API void consan_mem_register(struct consan *c, void *at, uint64_t bytes);
/* False: at was not registered. */
CONSAN_API bool consan_mem_unregister(struct consan *c, void *at);

/* ---- tensor maps, as of the cuTensorMapEncode functions ---- */

/* Encodes a tensor map. map: CONSAN_TENSORMAP_BYTES bytes, aligned to 64, to be passed as a kernel
 * parameter or copied to device memory. The bytes are those that the driver encodes. False and
 * CONSAN_ERR_TENSORMAP: the driver would return CUDA_ERROR_INVALID_VALUE; e names the argument. */
CONSAN_API bool consan_tensormap_sized(const struct consan_tensormap_args *a, size_t size,
	void *map,
	struct consan_err *e);
static inline bool consan_tensormap(const struct consan_tensormap_args *a, void *map,
	struct consan_err *e)
	{ return consan_tensormap_sized(a, sizeof *a, map, e); }
/* As cuTensorMapReplaceAddress(): sets the global address of a map. False: CONSAN_ERR_TENSORMAP. */
CONSAN_API bool consan_tensormap_address(void *map, uint64_t address, struct consan_err *e);

/* ---- modules and kernels ---- */

/* Loads PTX text of n bytes, which is copied. name: for reports. The caller frees the module
 * by consan_unload() after the last use of its kernels. NULL: CONSAN_ERR_PTX_..., with line and
 * column. */
CONSAN_API struct consan_module *consan_load_ptx(struct consan *c, const char *name,
	const char *text, size_t n, struct consan_err *e);
/* Loads a module from n bytes of PTX text, a fatbin, or an ELF file (an object, a library, a
 * program, a cubin with embedded PTX). A file made from several sources has several modules:
 * index selects one, from 0. Of the architectures of the module, the one that fits the device
 * best is loaded. NULL: as consan_load_ptx(); CONSAN_ERR_FATBIN; CONSAN_ERR_NO_PTX, there is only
 * machine
 * code, or PTX for other devices. */
CONSAN_API struct consan_module *consan_load_image(struct consan *c, const char *name,
	const void *bytes, size_t n, unsigned index, struct consan_err *e);
/* The same for a file, whose path is the name of the module. NULL: as above, or CONSAN_ERR_IO. */
CONSAN_API struct consan_module *consan_load_file(struct consan *c, const char *path,
	unsigned index, struct consan_err *e);
/* The number of modules that consan_load_image() can load. */
CONSAN_API unsigned consan_image_modules(const void *bytes, size_t n);
/* Frees a module and its kernels. The source locations that findings refer to stay in memory,
 * about 100 bytes for each instruction of the kernels used. m may be NULL. */
CONSAN_API void consan_unload(struct consan_module *m);

/* Address and size in bytes of a .global or .const variable. False: no such variable. */
CONSAN_API bool consan_symbol(struct consan_module *m, const char *name, void **at,
	uint64_t *bytes);
/* A kernel by its name in the PTX (mangled for C++). Lives as long as the module. NULL:
 * CONSAN_ERR_PTX_SYMBOL, no such kernel, or another error of its body. */
CONSAN_API const struct consan_kernel *consan_kernel(struct consan_module *m,
	const char *name, struct consan_err *e);
/* The name of the k-th entry, from 0; NULL: there are k or fewer. */
CONSAN_API const char *consan_kernel_name(struct consan_module *m, size_t k);

struct consan_kernel_info {
	const char *name;          /* lives as long as the module, mangled */
	size_t nparams;
	uint32_t param_bytes;      /* of the parameter block */
	uint32_t shared_static;    /* bytes per CTA */
	uint32_t local_bytes, const_bytes;
	uint32_t nregs;            /* 32-bit registers per thread, estimated */
	uint32_t max_threads;      /* per CTA: .maxntid, or 1024 */
	uint32_t sm;               /* from .target of the PTX */
	uint32_t reqcluster[3];    /* CTAs, from .reqnctapercluster, or 0 */
	bool unsupported;          /* has an instruction that cannot be executed */
	bool launches_grids, launches_graphs; /* CUDA Dynamic Parallelism; device graph launch */
};
CONSAN_API void consan_kernel_info_sized(const struct consan_kernel *k,
	struct consan_kernel_info *out, size_t size);
static inline void consan_kernel_info(const struct consan_kernel *k, struct consan_kernel_info *out)
	{ consan_kernel_info_sized(k, out, sizeof *out); }
/* Offset and size in bytes of parameter i, from 0, in the parameter block. False: no such
 * parameter. */
CONSAN_API bool consan_kernel_param(const struct consan_kernel *k, size_t i,
	uint32_t *offset, uint32_t *bytes);
/* The number of CTAs with this many threads and bytes of dynamic shared memory that fit on one
 * SM; 0: a CTA does not fit. */
CONSAN_API unsigned consan_occupancy(const struct consan_kernel *k, uint32_t threads,
	uint32_t shared_dynamic);

/* ---- launches ---- */

struct consan_launch {
	const struct consan_kernel *kernel;
	uint32_t grid[3], block[3]; /* CTAs; threads */
	uint32_t cluster[3];       /* CTAs; 0,0,0: as the kernel requires, or no clusters */
	uint32_t shared_dynamic;   /* bytes per CTA */
	const void *params;        /* the parameter block, param_bytes; NULL: args is used */
	bool cooperative;          /* all CTAs are resident, so that they can wait for each other */
	const void *const *args;   /* a pointer to the value of each parameter */
	uint32_t preferred[3];     /* preferred cluster, a multiple of `cluster`, which the device
				      uses where the preferred one does not fit. 0,0,0: none */
	bool programmatic;         /* may start before the previous launch of its queue has ended:
				      programmatic stream serialization, no wait in between */
	uint64_t queue;            /* identifies the stream */
};
enum consan_status {
	CONSAN_OK,         /* the kernel ran to its end */
	CONSAN_FAULT,      /* a trap or an access outside memory; there is a finding */
	CONSAN_HANG,       /* deadlock, livelock or the option `timeout`; there is a finding */
	CONSAN_UNCHECKED,  /* stopped at an unsupported instruction; see *e */
	CONSAN_BAD_LAUNCH, /* refused, as the driver would refuse it; see *e */
	CONSAN_STOPPED     /* not run: with the option `halt-on-error`, an earlier launch had an
			      error that consan_clear() has not removed */
};
/* Runs a launch to its end on the calling thread and worker threads (option `jobs`), and
 * checks it unless the options exclude the kernel. */
CONSAN_API enum consan_status consan_launch_sized(struct consan *c, const struct consan_launch *l,
	size_t size, struct consan_err *e);
static inline enum consan_status consan_launch(struct consan *c, const struct consan_launch *l,
	struct consan_err *e)
	{ return consan_launch_sized(c, l, sizeof *l, e); }

/* ---- findings as data ---- */

enum consan_severity { CONSAN_NOTE, CONSAN_WARNING, CONSAN_ERROR };

/* A location in the program. Unknown strings are "" and unknown numbers 0. */
struct consan_place {
	const char *file;          /* of the source, as the compiler recorded it */
	uint32_t line, column;     /* 1-based */
	const char *function;      /* an inlined function's name */
	const struct consan_place *inlined_at; /* the call that was inlined, or NULL */
	const char *module;        /* name of the PTX module */
	uint32_t ptx_line;         /* 1-based */
	const char *ptx;           /* text of the instruction */
};

/* One operation of a finding: an access, a wait, an arrive. */
struct consan_side {
	const char *what;          /* "write", "TMA load write", "mbarrier arrive" */
	const struct consan_place *place; /* never NULL */
	uint32_t block[3];         /* blockIdx */
	unsigned cluster_rank, warp; /* rank of the CTA in its cluster; warp in the CTA */
	int lane;                  /* -1: the whole warp, or an asynchronous copy */
	uint32_t thread[3];        /* threadIdx, if lane >= 0 */
	uint64_t addr;             /* offset in the shared memory of CTA owner, or address */
	uint32_t bytes;            /* size of the access; 0: not a memory access */
	unsigned owner;            /* rank of the CTA that owns the shared memory */
	const char *variable;      /* "tile+0x80", or "" */
};

struct consan_finding {
	const char *rule;          /* "CS102" */
	enum consan_severity severity;
	const char *title, *why, *fix; /* texts of the rule; static */
	const char *kernel;        /* demangled */
	uint32_t launch;           /* index of the launch in the session, from 0 */
	unsigned nsides;
	const struct consan_side *side[2]; /* 0: the later operation, 1: the earlier one; NULL from
				      nsides on */
	const char *edge;          /* the missing synchronization, one sentence */
	const char *hint;          /* advice for this case, or "" */
	uint64_t seen;             /* number of occurrences */
	uint32_t clusters;         /* number of clusters with occurrences */
	uint64_t seed;             /* of the schedule, for the option `seed` */
	const char *schedule;      /* for the option `schedule`, or "" */
	const char *reads;         /* for the option `reads`, or "" */
};
/* The number of findings so far. */
CONSAN_API size_t consan_findings(struct consan *c);
/* The k-th of the findings that the last call of consan_findings() counted, from 0, most severe
 * first. NULL: there are k or fewer. It is valid until the next call of consan_findings(),
 * consan_launch() or consan_close(). */
CONSAN_API const struct consan_finding *consan_finding(struct consan *c, size_t k);
/* The number of findings that are errors. */
CONSAN_API size_t consan_errors(struct consan *c);
/* Is there a finding of this rule ("CS102"; NULL: any) with an operation in this file (or a
 * suffix of its path: "gemm.cu"; NULL: any) and line (0: any)? Locations of inlined calls count,
 * and locations in the PTX if file is the name of a module. */
CONSAN_API bool consan_finds(struct consan *c, const char *rule, const char *file, uint32_t line);
/* Writes the finding as a few lines of plain text, like snprintf(): at most n bytes with the
 * NUL; returns the length of the whole text. */
CONSAN_API int consan_describe(const struct consan_finding *f, char *out, size_t n);
/* Removes the findings so far, so that the next test starts without. */
CONSAN_API void consan_clear(struct consan *c);
/* Writes the findings, the coverage and the suppressed findings, as consan-run --report does.
 * The suffix of the path determines the format: .html, .json, .sarif, .xml (JUnit), .github or
 * .perfetto-trace, any other is text; "-.SUFFIX" is stdout; %p in the path is the process id. Waits
 * for a launch in progress on another thread. False and CONSAN_ERR_IO: nothing, or only a part, was
 * written. */
CONSAN_API bool consan_write_report(struct consan *c, const char *path, struct consan_err *e);

struct consan_coverage {
	const char *kernel;        /* demangled */
	uint64_t launches, checked, skipped; /* skipped: excluded by the options */
	uint64_t clusters, ctas, events, dropped; /* numbers of the checked launches */
	uint64_t sites, sites_executed; /* instructions in the PTX; of these, executed */
	const char *unchecked;     /* why it was not checked, with the line; "" if it was */
};
/* The number of kernels that were launched. Waits for a launch in progress on another thread. */
CONSAN_API size_t consan_kernels(struct consan *c);
/* The k-th of the kernels that the last call of consan_kernels() counted, from 0. NULL: there are k
 * or fewer. It is valid until the next call of consan_kernels(), consan_launch() or
 * consan_close(). */
CONSAN_API const struct consan_coverage *consan_coverage(struct consan *c, size_t k);

/* ---- callbacks; NULL removes one ---- */

/* found is called on the launching thread for each new finding, after the launch. f is valid
 * during the call. The callback must not use the session. */
CONSAN_API void consan_on_finding(struct consan *c,
	void (*found)(void *user, const struct consan_finding *f), void *user);
/* print is called for the output of kernels, which then does not go to stdout; from any thread,
 * one call at a time. The callback must not use the session. */
CONSAN_API void consan_on_print(struct consan *c,
	void (*print)(void *user, const char *text, size_t n), void *user);

#ifdef __cplusplus
}
#endif
#endif
