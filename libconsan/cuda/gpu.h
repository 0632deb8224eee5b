/* gpu: the emulated GPU as the program sees it: the session behind it, its
 * error state, its modules, streams and launches. The runtime API (rt_*.c) and
 * the driver API (drv_*.c) are thin spellings of what stands here.
 *
 * House rules of libconsan/cuda/:
 *  - this code runs inside a stranger's process: it never exits, prints only
 *    what the user must know at once, and holds no lock while it calls back;
 *  - functions return an error in the numbering of enum cudaError, 0 for
 *    success; CUresult has the same numbers where it has the same error;
 *  - everything asynchronous is a struct op and goes through stream_issue(),
 *    which runs it at once, or captures it into a graph. */
#ifndef CONSAN_CUDA_GPU_H
#define CONSAN_CUDA_GPU_H

#include "libconsan/session/session.h"
#include "api.h"
#include "handle.h"

/* ---- the session (gpu.c) ---- */

/* Opens the session at its first call. 0, or the error every call must return:
 * the session cannot be opened, the process forked after its first CUDA call
 * (as on a GPU), or a kernel faulted (sticky, until a device reset). */
int gpu_ready(void);
struct consan *gpu_session(void);               /* after gpu_ready() */
const struct consan_device *gpu_device(void);   /* after gpu_ready() */
void gpu_fault(int error);                      /* becomes sticky */
void gpu_reset(void);
/* consan_launch() in this session. */
enum consan_status gpu_launch(const struct consan_launch *l, struct err *e);
/* For the report; text is copied. Opens the session if need be. */
void gpu_remark(enum consan_remark kind, const char *fmt, ...) PRINTF_LIKE(2, 3);
void gpu_unsupported(const char *name); /* of a call, for the report */
/* This object (path, "" for the program) has device code but no CUDA runtime
 * that can be found: it is static and its symbols are stripped. */
void gpu_no_runtime(const char *path);
/* "consan: text" on stderr. */
void gpu_say(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* An announced image: --arch's default is the newest of the program's own. */
void gpu_hint(unsigned sm, char suffix, bool of_program);
/* Returns the error after remembering it for cudaGetLastError. */
cudaError_t rt(int error);
bool rt_used(void); /* has any runtime call been made? It has a context then. */
/* The same error as the driver API spells it. */
CUresult drv(int error);
int drv_initialised(void); /* after cuInit() or a runtime call */
int drv_ready(void);       /* ... with a current context, and gpu_ready() */

/* ---- modules, kernels, variables (image.c) ---- */

/* A module in any of its forms: registered by nvcc's host code, cuModule,
 * cuLibrary. PTX is parsed at the first use of anything in it. */
struct image;
struct func {
	struct image *image;
	char *name;                  /* of the PTX entry */
	const struct consan_kernel *kernel; /* NULL until func_load() */
	struct consan_kernel_info info;
	uint32_t max_dynamic;        /* shared bytes a launch may ask for */
	int carveout, cluster_policy, non_portable;
	uint32_t cluster[3];         /* set by attribute; 0: none */
	bool cluster_must;
};
struct var {
	struct image *image;
	const char *name;
	size_t bytes;
	void **managed;              /* the host's pointer to it, or NULL */
};

enum { IMAGE_BORROW, IMAGE_COPY };
/* bytes: a fatbin, its wrapper, a cubin or PTX text. size 0: as the bytes say. */
int image_open(const void *bytes, size_t size, int own, struct image **out);
int image_open_file(const char *path, struct image **out);
void image_close(struct image *im);
int image_load(struct image *im);
/* What nvcc's host code registers: a kernel's stub, a variable's shadow. */
void image_add_stub(struct image *im, const void *host, const char *name);
void image_add_var(struct image *im, const void *host, const char *name, size_t bytes,
	void **managed);
int image_func(struct image *im, const char *name, struct func **out);
int image_func_count(struct image *im, unsigned *n);
int image_func_at(struct image *im, unsigned k, struct func **out);
int image_symbol(struct image *im, const char *name, void **at, size_t *bytes);
int func_load(struct func *f);
/* From a host stub, a cudaKernel_t, a cudaFunction_t. Loaded. */
int func_find(const void *handle, struct func **out);
int var_find(const void *host, void **at, size_t *bytes);
struct image *image_of(const void *handle); /* NULL: not a live handle */

/* ---- memory (memory.c) ---- */

int mem_alloc(void **at, size_t bytes, enum consan_mem kind);
int mem_alloc_pitch(void **at, size_t *pitch, size_t width, size_t rows);
int mem_alloc_host(void **at, size_t bytes, unsigned flags);
int mem_free(void *at);              /* device and managed; NULL is fine */
int mem_free_host(void *at);
int mem_register(void *at, size_t bytes, unsigned flags);
int mem_unregister(void *at);
bool mem_host_flags(const void *at, unsigned *flags);
void mem_info(size_t *free_bytes, size_t *total);
/* 0 if [at, at+bytes) lies in one allocation the GPU can reach. */
int mem_check(const void *at, size_t bytes);

/* A copy of width x height x depth bytes. */
struct copy {
	void *dst;
	const void *src;
	size_t dst_pitch, src_pitch, dst_slice, src_slice; /* bytes */
	size_t width, height, depth;
	enum cudaMemcpyKind kind;
};
struct fill {
	void *dst;
	size_t pitch, slice;
	uint32_t value;
	unsigned unit;               /* 1, 2 or 4 bytes */
	size_t width, height, depth; /* in units, rows, slices */
};
struct copy copy_line(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind);
struct copy copy_plane(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
	size_t width, size_t height, enum cudaMemcpyKind kind);
int copy_check(const struct copy *c);
void copy_run(const struct copy *c);
int fill_check(const struct fill *f);
void fill_run(const struct fill *f);

/* Of cudaMemcpy3D; refuses arrays. */
int copy_3d(const struct cudaMemcpy3DParms *p, struct copy *c);

struct pool;
struct pool *pool_default(void);
struct pool *pool_of(const void *handle); /* NULL: no such pool */
int pool_new(struct pool **out);
int pool_free(const void *handle);
int pool_attribute(const void *handle, int attribute, void *get, const void *set);

/* ---- launches (launch.c) ---- */

struct launch {
	struct func *func;
	uint32_t grid[3], block[3], cluster[3];
	uint32_t preferred[3];       /* 0: none */
	size_t shared;
	bool cooperative;
	bool programmatic;           /* may begin before the launch before it has ended */
	uint64_t queue;              /* set by stream_issue() */
	void *params;                /* owned */
};
/* The parameters from an array of pointers, or packed as a block of n bytes. */
int launch_pack(struct launch *l, void **args, const void *block, size_t n);
/* cudaLaunchAttribute is laid out alike. */
int launch_attributes(struct launch *l, const CUlaunchAttribute *a, unsigned n);
int launch_check(struct launch *l);
int launch_run(const struct launch *l);
int func_occupancy(struct func *f, int threads, size_t shared, int *blocks);
int func_available_shared(struct func *f, int blocks, int threads, size_t *shared);
int func_max_clusters(const struct launch *l, int *clusters);
int func_max_cluster_size(const struct launch *l, int *size);
int func_get_attribute(struct func *f, CUfunction_attribute a, int *value);
int func_set_attribute(struct func *f, CUfunction_attribute a, int value);

/* ---- streams, events, graphs (stream.c, graph.c) ---- */

enum op_kind { OP_EMPTY, OP_LAUNCH, OP_COPY, OP_FILL, OP_HOST, OP_GRAPH };
struct op {
	enum op_kind kind;
	union {
		struct launch launch;
		struct copy copy;
		struct fill fill;
		struct { void (*call)(void *user); void *user; } host;
		struct graph *graph; /* a child, owned */
	};
};
int op_run(const struct op *op);
struct op op_dup(const struct op *op);
void op_free(struct op *op);

struct graph;
struct stream {
	unsigned flags;
	int priority;
	unsigned long long id;
	struct graph *capture;       /* NULL: runs at once */
	bool joined;                 /* another stream's capture, by an event */
	bool launched;               /* what came last is a launch ... */
	unsigned long long waits;    /* ... after so many waits by the host */
};
/* A CUevent; `event` is the checker's word. */
struct mark {
	unsigned flags;
	bool recorded;
	double at;                   /* seconds, monotonic */
	struct graph *capture;       /* recorded into this one */
};
int stream_new(struct stream **out, unsigned flags, int priority);
int stream_free(struct stream *s);
/* NULL if it is no stream; the default streams have their own. */
struct stream *stream_of(const void *handle);
/* Takes the op over: what it owns is freed here or kept in the graph. */
int stream_issue(const void *handle, struct op *op);
int stream_wait(const void *handle, const void *event);
/* The host has waited for work on the device: a launch from now on begins after it. */
void stream_host_waited(void);
int mark_new(struct mark **out, unsigned flags);
struct mark *mark_of(const void *handle);
int mark_record(const void *handle, const void *stream);
int mark_free(const void *handle);
int mark_query(const void *handle);
int mark_elapsed(float *ms, const void *start, const void *end);

/* Capture: what is issued goes into a graph until it ends. */
int stream_capture_begin(const void *handle, struct graph *into);
int stream_capture_end(const void *handle, struct graph **out);
int stream_capture_state(const void *handle, enum cudaStreamCaptureStatus *state,
	unsigned long long *id, struct graph **graph);

/* A graph is its operations in an order that respects the dependencies: that
 * in which they were added. */
struct node {
	struct graph *graph;
	struct op op;
	bool off;                    /* in an executable graph */
};
struct graph {
	VEC(struct node *) node;
	bool executable;
	unsigned long long id;
};
struct graph *graph_new(void);
struct graph *graph_of(const void *handle);      /* NULL: no such graph */
struct graph *graph_exec_of(const void *handle); /* ... no such executable graph */
/* Takes op over. after: what it depends on, in the same graph. */
int graph_add(struct graph *g, struct op *op, const void *const *after, size_t nafter,
	struct node **out);
struct graph *graph_dup(const struct graph *g, bool executable);
int graph_run(const struct graph *g);
/* Takes over what a graph of the same shape does; false: another shape. */
bool graph_replace(struct graph *to, const struct graph *from);
void graph_free(struct graph *g);
int graph_launch(const void *exec, const void *stream);
/* Fills up to *n nodes and says how many; nodes NULL: how many there are. */
int graph_nodes(const void *graph, void **nodes, size_t *n);

/* ---- attributes that both APIs number alike (device.c) ---- */
void device_name(char *to, size_t n); /* after gpu_ready() */
int device_attribute(int attribute, int *value);
/* Reads a limit, or writes it if set is given. */
int device_limit(int limit, size_t *get, const size_t *set);

/* What error codes are called; NULL: no such code. */
struct error_row { int code; const char *rt, *drv, *text; };
const struct error_row *error_find(int code);

#define GPU_VERSION 13000
#define DEVICE_PCI_ID "0000:01:00.0"
#define DEVICE_PRIORITY (-5) /* the greatest a stream can have */
#define GPU_NAME_MAX 256

#endif
