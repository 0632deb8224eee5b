/* consan: the front door. Load PTX, run kernels on the emulated GPU under the
 * checker, read findings. The only header that libconsan/cuda/ and strangers
 * include; implemented by consan.c, the one file that opens every door.
 *
 * House rules:
 *  - no function exits the process or prints; findings go to the session;
 *  - every function is thread-safe per session unless it says otherwise;
 *  - false or NULL means failure, and the struct err says what was wrong. */
#ifndef CONSAN_H
#define CONSAN_H

#include "base.h"
#include "finding.h"
#include "tensormap_args.h"

#define CONSAN_VERSION "0.1"

struct consan;         /* a session: options, findings, coverage */
struct consan_module;
struct consan_kernel;

/* Options as "name=value" words, the names of options.def (consan-run's long
 * options); NULL or "" for the defaults. */
struct consan *consan_open(const char *options, struct err *e);
/* Where the session's records go as they are made (results.h): one JSON
 * object a line, flushed, so that a crash loses nothing. NULL: nowhere. */
bool consan_record_to(struct consan *c, const char *path, struct err *e);
void consan_close(struct consan *c);

/* ---- the emulated device ---- */
struct consan_device {
	uint32_t sm; char suffix; const char *name;
	uint32_t sm_count, max_threads_per_sm, max_ctas_per_sm, regs_per_sm;
	uint32_t shared_per_sm, shared_per_cta_optin, max_cluster;
};
/* Fixed at the first call that needs it: --arch, or else the newest PTX among
 * the modules announced so far with consan_arch_hint(). */
const struct consan_device *consan_device(struct consan *c);
void consan_arch_hint(struct consan *c, unsigned sm, char suffix);

/* ---- device memory: host memory that kernels may touch ---- */
enum consan_mem { CONSAN_MEM_DEVICE, CONSAN_MEM_HOST, CONSAN_MEM_MANAGED };
void *consan_malloc(struct consan *c, uint64_t bytes, enum consan_mem kind); /* 256-aligned, NULL: no memory */
bool consan_free(struct consan *c, void *at);
void consan_mem_register(struct consan *c, void *at, uint64_t bytes); /* the caller's own */
bool consan_mem_unregister(struct consan *c, void *at);
/* The allocation that holds at. */
bool consan_mem_find(struct consan *c, const void *at, void **base, uint64_t *bytes, enum consan_mem *kind);

/* ---- tensor maps: what the cuTensorMapEncode functions write ---- */
/* map: TENSORMAP_BYTES, 64-aligned. False: the driver would answer
 * CUDA_ERROR_INVALID_VALUE; e names the argument. */
bool consan_tensormap(const struct tensormap_args *a, void *map, struct err *e);
/* cuTensorMapReplaceAddress */
bool consan_tensormap_address(void *map, uint64_t address, struct err *e);

/* ---- modules and kernels ---- */
/* name: for reports. The text is copied. */
struct consan_module *consan_load_ptx(struct consan *c, const char *name,
	const char *text, size_t n, struct err *e);
void consan_unload(struct consan_module *m);
bool consan_symbol(struct consan_module *m, const char *name, void **at, uint64_t *bytes);
const struct consan_kernel *consan_kernel(struct consan_module *m, const char *name, struct err *e);
/* k-th entry's name, NULL past the end */
const char *consan_kernel_name(struct consan_module *m, size_t k);

struct consan_kernel_info {
	const char *name;
	size_t nparams;
	uint32_t param_bytes, shared_static, local_bytes, const_bytes, nregs, max_threads;
	uint32_t sm;               /* of the PTX */
	uint32_t reqcluster[3];    /* .reqnctapercluster or 0 */
	bool unsupported;
};
void consan_kernel_info(const struct consan_kernel *k, struct consan_kernel_info *out);
/* Offset and size of parameter i in the parameter block. */
bool consan_kernel_param(const struct consan_kernel *k, size_t i, uint32_t *offset, uint32_t *bytes);

/* ---- launches ---- */
struct consan_launch {
	const struct consan_kernel *kernel;
	uint32_t grid[3], block[3], cluster[3]; /* cluster 0,0,0 = none */
	uint32_t shared_dynamic;
	const void *params;        /* the parameter block, param_bytes */
	bool cooperative;
};
enum consan_status { CONSAN_OK, CONSAN_FAULT, CONSAN_HANG, CONSAN_UNCHECKED,
	CONSAN_BAD_LAUNCH, CONSAN_STOPPED };
/* Runs to the end, checked unless the options filter the kernel out. */
enum consan_status consan_launch(struct consan *c, const struct consan_launch *l, struct err *e);
/* After CONSAN_FAULT: which row of fault.def ended the last launch, an EVX_
 * of event.h. */
unsigned consan_fault(struct consan *c);
unsigned consan_occupancy(const struct consan_kernel *k, uint32_t threads, uint32_t shared_dynamic);

/* ---- what is known about the program itself, for the report ---- */
enum consan_remark { REMARK_CALL_UNSUPPORTED, REMARK_NO_PTX, REMARK_BAD_MODULE, REMARK_NOTE };
void consan_remark(struct consan *c, enum consan_remark kind, const char *text);

/* ---- the end: records of all processes -> reports and exit status ---- */
struct options;
/* Reads the record files (results.h; a path that does not exist is a process
 * that never got to consan), writes every report the options ask for (text on
 * stderr or --log-file, --report), and says in *exit_status what a wrapper
 * should exit with: `program` (the watched program's own status), the
 * --error-exitcode, or 67. False: a report could not be written or a record
 * file not be read; *exit_status is set all the same. */
bool consan_report(const struct options *o, const char *const *record, size_t nrecords,
	int program, int *exit_status, struct err *e);
/* Checks the events in a file that --save wrote, and reports likewise. */
bool consan_replay(const struct options *o, const char *path, int *exit_status, struct err *e);
enum { CONSAN_EXIT_UNCHECKED = 67 };

/* ---- findings as data: valid until the next launch or consan_close ---- */
size_t consan_findings(struct consan *c, const struct finding *const **out);
size_t consan_coverage(struct consan *c, const struct coverage **out);

#endif
