/* consan.h: the concurrency sanitizer for CUDA kernels as a library. Loads PTX,
 * runs kernels on an emulated GPU under the checker, says what it found. No GPU
 * and no driver are needed.
 *
 *     struct err e = { 0 };
 *     struct consan *c = consan_open("strict", &e);
 *     struct consan_module *m = consan_load_file(c, "kernels.fatbin", 0, &e);
 *     float *x = consan_malloc(c, 1024 * sizeof *x, CONSAN_MEM_DEVICE);
 *     const void *args[] = { &x };
 *     struct consan_launch l = { .kernel = consan_kernel(m, "scale", &e),
 *         .grid = { 4, 1, 1 }, .block = { 256, 1, 1 }, .args = args };
 *     consan_launch(c, &l, &e);
 *     if (consan_errors(c)) ...
 *     consan_close(c);
 *
 * Promises:
 *  - no function exits the process or prints; what a kernel prints goes to
 *    stdout, or to consan_on_print();
 *  - every function may be called from any thread; launches of one session run
 *    one after the other, sessions are independent but for device memory, of
 *    which a process has one (as on a GPU);
 *  - false, NULL or a status other than CONSAN_OK means failure, and *e says
 *    what was wrong with the input: code, place, text (err.h);
 *  - structs may grow at their end, enums at theirs, from version to version. */
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

struct consan;         /* a session: options, findings, coverage */
struct consan_module;
struct consan_kernel;

/* Opens a session. options: words "name=value" (or "name") between blanks, the
 * long options of consan-run without their dashes, such as "strict seed=3
 * kernel-name=kns=gemm"; a backslash keeps a blank. NULL or "" for the defaults.
 * "suppressions=FILE": findings that an entry of FILE matches are not shown,
 * counted or announced; NULL and ERR_FORMAT, with line and column, if it is
 * malformed. Those on where a report goes and on exit statuses do nothing here:
 * consan_write_report(). */
CONSAN_API struct consan *consan_open(const char *options, struct err *e);
/* Frees the session and all that its functions returned, device memory and
 * modules excepted: those first. NULL is fine. */
CONSAN_API void consan_close(struct consan *c);

/* ---- the emulated device ---- */

/* Sizes in bytes, registers in 32-bit units, per SM or CTA as named. */
struct consan_device {
	uint32_t sm;           /* 90 */
	char suffix;           /* 'a' of sm_90a */
	const char *name;      /* "H100", static */
	uint32_t sm_count, max_threads_per_sm, max_ctas_per_sm, regs_per_sm;
	uint32_t shared_per_sm, shared_per_cta_optin, max_cluster;
};
/* Fixed at the first call that needs it: the option `arch`, or else the newest
 * PTX loaded so far. Lives as long as the session. */
CONSAN_API const struct consan_device *consan_device(struct consan *c);

/* ---- device memory: host memory that kernels may touch ---- */

enum consan_mem { CONSAN_MEM_DEVICE, CONSAN_MEM_HOST, CONSAN_MEM_MANAGED };
/* 256-aligned, not cleared; fill and read it like any memory, between launches.
 * The caller owns it: consan_free(). NULL: no memory, or 0 bytes. */
CONSAN_API void *consan_malloc(struct consan *c, uint64_t bytes, enum consan_mem kind);
/* False: not a pointer that consan_malloc() returned. */
CONSAN_API bool consan_free(struct consan *c, void *at);
/* Lets kernels touch memory of the caller's, which must outlive the launches. */
CONSAN_API void consan_mem_register(struct consan *c, void *at, uint64_t bytes);
CONSAN_API bool consan_mem_unregister(struct consan *c, void *at);

/* ---- tensor maps: what the cuTensorMapEncode functions write ---- */

/* map: TENSORMAP_BYTES, 64-aligned, to be passed as a kernel parameter or put
 * into device memory. It works with consan only. False: the driver would answer
 * CUDA_ERROR_INVALID_VALUE; e names the argument. */
CONSAN_API bool consan_tensormap(const struct tensormap_args *a, void *map, struct err *e);
/* cuTensorMapReplaceAddress: the same tensor elsewhere in global memory. */
CONSAN_API bool consan_tensormap_address(void *map, uint64_t address, struct err *e);

/* ---- modules and kernels ---- */

/* PTX text of n bytes; copied. name: for reports. The caller owns the module:
 * consan_unload(), after the last use of its kernels. */
CONSAN_API struct consan_module *consan_load_ptx(struct consan *c, const char *name,
	const char *text, size_t n, struct err *e);
/* PTX out of anything that holds some: PTX text, a fatbin, or an ELF file (an
 * object, a library, a program, a cubin with embedded PTX). One that was made
 * from several sources holds several modules: `index` chooses, from 0. Of the
 * architectures in a module the one that suits the device best is taken.
 * ERR_NO_PTX: there is machine code only, or PTX for other devices. */
CONSAN_API struct consan_module *consan_load_image(struct consan *c, const char *name,
	const void *bytes, size_t n, unsigned index, struct err *e);
/* The same, of a file; its path is the module's name. */
CONSAN_API struct consan_module *consan_load_file(struct consan *c, const char *path,
	unsigned index, struct err *e);
/* How many modules consan_load_image() would find; 0: none. */
CONSAN_API unsigned consan_image_modules(const void *bytes, size_t n);
/* What reports say of the instructions of kernels that were asked for stays in memory,
 * some 100 bytes each. NULL is fine. */
CONSAN_API void consan_unload(struct consan_module *m);

/* Address and size in bytes of a .global or .const variable. */
CONSAN_API bool consan_symbol(struct consan_module *m, const char *name, void **at,
	uint64_t *bytes);
/* name: as in the PTX, that is mangled if it comes from C++. Lives as long as
 * the module. */
CONSAN_API const struct consan_kernel *consan_kernel(struct consan_module *m,
	const char *name, struct err *e);
/* k-th entry's name, NULL past the end. */
CONSAN_API const char *consan_kernel_name(struct consan_module *m, size_t k);

struct consan_kernel_info {
	const char *name;          /* lives as long as the module, mangled */
	size_t nparams;
	uint32_t param_bytes;      /* of the parameter block */
	uint32_t shared_static;    /* bytes per CTA */
	uint32_t local_bytes, const_bytes;
	uint32_t nregs;            /* 32-bit registers per thread, an estimate */
	uint32_t max_threads;      /* per CTA: .maxntid, or 1024 */
	uint32_t sm;               /* of the PTX's .target */
	uint32_t reqcluster[3];    /* .reqnctapercluster, or 0 */
	bool unsupported;          /* holds an instruction that cannot be executed */
};
CONSAN_API void consan_kernel_info(const struct consan_kernel *k,
	struct consan_kernel_info *out);
/* Offset and size in bytes of parameter i in the parameter block. */
CONSAN_API bool consan_kernel_param(const struct consan_kernel *k, size_t i,
	uint32_t *offset, uint32_t *bytes);
/* CTAs of this kernel that fit one SM together; 0: none. */
CONSAN_API unsigned consan_occupancy(const struct consan_kernel *k, uint32_t threads,
	uint32_t shared_dynamic);

/* ---- launches ---- */

struct consan_launch {
	const struct consan_kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t cluster[3];       /* CTAs; 0,0,0: what the kernel requires, or none */
	uint32_t shared_dynamic;   /* bytes per CTA */
	const void *params;        /* the parameter block, param_bytes; or NULL: */
	bool cooperative;          /* all CTAs resident, so that they may wait for each other */
	const void *const *args;   /* ... a pointer to each parameter's value */
	uint32_t preferred[3];     /* CTAs; a multiple of cluster, which the device may fall
				      back to where this does not fit. 0,0,0: none */
	bool programmatic;         /* may begin before the launch before it in its queue has ended:
				      programmatic stream serialization, nothing waited for in between */
	uint64_t queue;            /* a number for each stream */
};
enum consan_status {
	CONSAN_OK,         /* it ran to its end */
	CONSAN_FAULT,      /* a trap, an access outside memory: there is a finding */
	CONSAN_HANG,       /* deadlock, livelock or the option `timeout`: a finding, too */
	CONSAN_UNCHECKED,  /* ran into an instruction that is not supported; see *e */
	CONSAN_BAD_LAUNCH, /* refused as a driver would refuse it; see *e */
	CONSAN_STOPPED     /* cut off by another thread's doing */
};
/* Runs to the end on the calling thread and the option `jobs`'s workers; checked
 * unless the options leave the kernel out. */
CONSAN_API enum consan_status consan_launch(struct consan *c, const struct consan_launch *l,
	struct err *e);

/* ---- findings as data ---- */

enum consan_severity { CONSAN_NOTE, CONSAN_WARNING, CONSAN_ERROR };

/* Where in a program; strings are "" and numbers 0 where unknown. */
struct consan_place {
	const char *file;          /* source, as the compiler wrote it */
	uint32_t line, column;     /* 1-based */
	const char *function;      /* an inlined function's name */
	const struct consan_place *inlined_at; /* the caller's place, or NULL */
	const char *module;        /* of the PTX */
	uint32_t ptx_line;         /* 1-based */
	const char *ptx;           /* the instruction as written */
};

/* One agent and what it did. */
struct consan_side {
	const char *what;          /* "write", "TMA load write", "mbarrier arrive" */
	struct consan_place place;
	uint32_t block[3];         /* blockIdx */
	unsigned cluster_rank, warp; /* in the cluster, in the CTA */
	int lane;                  /* -1: the whole warp or an asynchronous engine */
	uint32_t thread[3];        /* threadIdx, if lane >= 0 */
	uint64_t addr;             /* shared: offset in the window of CTA owner; else the address */
	uint32_t bytes;            /* 0: no memory involved */
	unsigned owner;            /* rank of the CTA whose shared memory it is */
	const char *variable;      /* "tile+0x80", or "" */
};

struct consan_finding {
	const char *rule;          /* "CS102" */
	enum consan_severity severity;
	const char *title, *why, *fix; /* of the rule; static */
	const char *kernel;        /* demangled */
	uint32_t launch;           /* launches of the session before the one that showed it */
	unsigned nsides;
	struct consan_side side[2]; /* 0: where the checker stopped, 1: the earlier one */
	const char *edge;          /* what is missing between them, one sentence */
	const char *hint;          /* what this case suggests, or "" */
	uint64_t seen;             /* times */
	uint32_t clusters;         /* in how many */
	uint64_t seed;             /* the schedule that showed it, for the option `seed` */
};
/* All findings so far, most severe first. The array is the session's, valid
 * until the next call of this function, consan_launch() or consan_close(). */
CONSAN_API size_t consan_findings(struct consan *c, const struct consan_finding **out);
/* How many of them are errors. */
CONSAN_API size_t consan_errors(struct consan *c);
/* A finding of this rule ("CS102"; NULL: any) one of whose sides stands, or is
 * inlined from, in this file (its last parts suffice: "gemm.cu"; NULL: any) and
 * line (0: any), in the source or, for a module's name, in the PTX. */
CONSAN_API bool consan_finds(struct consan *c, const char *rule, const char *file, uint32_t line);
/* The finding in a few lines of plain text, as snprintf() would write it:
 * returns the length that it takes. */
CONSAN_API int consan_describe(const struct consan_finding *f, char *out, size_t n);
/* Forgets the findings so far: the next test begins with none. */
CONSAN_API void consan_clear(struct consan *c);
/* Writes what consan_findings() and consan_coverage() show, and what was
 * suppressed, as consan-run --report would: the path's suffix .html, .json, .sarif
 * or .xml (JUnit) says how, any other is text; %p in it is the process id. Waits
 * for a launch that another thread has under way. False + ERR_IO: not, or not
 * wholly, written. */
CONSAN_API bool consan_write_report(struct consan *c, const char *path, struct err *e);

struct consan_coverage {
	const char *kernel;        /* demangled */
	uint64_t launches, checked, skipped; /* skipped: by the options */
	uint64_t clusters, ctas, events, dropped;
	uint64_t sites, sites_executed; /* instructions in the PTX, of these executed */
	const char *unchecked;     /* why it was not checked, with the line; "" if it was */
};
/* One row per kernel; valid as long as those of consan_findings(). Waits for a
 * launch that another thread has under way. */
CONSAN_API size_t consan_coverage(struct consan *c, const struct consan_coverage **out);

/* ---- callbacks; NULL takes one back. Called from the launching thread ---- */

/* Each finding when the launch that first showed it is over. f is valid during
 * the call, which may not use the session. */
CONSAN_API void consan_on_finding(struct consan *c,
	void (*found)(void *user, const struct consan_finding *f), void *user);
/* What kernels print (from any thread, one call at a time), instead of stdout. The
 * call may not use the session. */
CONSAN_API void consan_on_print(struct consan *c,
	void (*print)(void *user, const char *text, size_t n), void *user);

#ifdef __cplusplus
}
#endif
#endif
