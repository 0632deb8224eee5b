/* internal: what the files of libconsan/cuda/ share: the emulated GPU as the program sees
 * it, that is the session, the error state, modules, memory, streams, graphs and launches.
 * The runtime API (rt_*.c) and the driver API (drv_*.c) are thin wrappers of these functions.
 *
 * Rules of this module:
 *  - The code runs inside the user's process. It never exits, prints only what the user
 *    must know at once, and holds no lock while it calls back into the program.
 *  - Functions that return int return an error in the numbering of enum cudaError, 0 for
 *    success. CUresult has the same numbers where both APIs have the error.
 *  - Each asynchronous operation is a struct op. stream_issue() adds it to the queue (queue.h) or
 *    captures it into a graph.
 *  - Handles that the program passes are looked up in handle_map.h before they are used. */
#ifndef CONSAN_CUDA_INTERNAL_H
#define CONSAN_CUDA_INTERNAL_H

#include "libconsan/session/session.h"
#include "api.h"
#include "handle_map.h"

/* ---- the device and its session (device.c) ---- */

/* Opens the session on the first call. Returns 0, or the error that each API call must
 * return: the session cannot be opened, the process forked after its first CUDA call (an
 * error on a GPU as well), or a kernel faulted (sticky until the device is reset). */
int device_ready(void);
int device_open(void);                          /* the same, but for a fault */
struct consan *device_session(void);               /* after device_ready() */
const struct consan_device *device_info(void);   /* after device_ready() */
bool device_blocks(void);                       /* --launch-blocking or CUDA_LAUNCH_BLOCKING=1 */
/* Sets the sticky error of a device; the first one stays. */
void device_fault(int device, int error);
int device_broken(int device);                  /* the sticky error, or 0 */
void device_reset(int device);                  /* clears it */
/* consan_launch_op() in this session. */
enum consan_status device_launch(const struct consan_launch *l, struct order_op *op, uint64_t launched,
	struct consan_err *e);
/* Adds a remark to the report. Opens the session if it is not open; the text is copied. */
void remark(enum consan_remark kind, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* consan_call_failed() in this session, if it can be opened and --report-api-errors wants it. */
bool device_call_failed(const struct consan_call *call, bool implicit);
/* As consan_call_unasked(), consan_call_asked(). */
void device_call_unasked(const void *thread, uint32_t stack);
void device_call_asked(const void *thread);
/* consan_unchecked() in this session, if it can be opened. */
void unchecked(const char *kernel, bool launched, const char *why);
/* Reports a call that has no implementation. */
void remark_unsupported(const char *name);
void remark_refused(const char *name, const char *why); /* of refused.def */
/* Reports a module without PTX. has: the images that it has; library: consan_library() of its file, or
 * NULL; made: no file has it, the program made or read it. */
void remark_no_ptx(const char *name, const char *has, const char *library, bool made);
/* The CUDA runtime of this object begins, one that was not found (redirect.c), as it is linked statically
 * and its symbols are stripped: it asks the driver for tables that only the real one has, and fails.
 * What it was to launch is not checked. */
void static_runtime_used(const char *path);
/* The program has an image for this architecture, in its file (of_program) or made or read by it. */
void device_arch_hint(unsigned sm, char suffix, bool of_program);

void device_name(char *to, size_t n); /* snprintf()s the name; requires device_ready() */
/* A CU_DEVICE_ATTRIBUTE_...; enum cudaDeviceAttr has the same numbers. */
int device_attribute(int ordinal, int attribute, int *value);
/* Reads a limit of enum cudaLimit of the current device, or sets it if `set` is not NULL. CUlimit
 * has the same numbers. */
int device_limit(int limit, size_t *get, const size_t *set);

#define DEVICE_CUDA_VERSION 13000
#define DEVICE_PRIORITY (-5) /* the greatest priority of a stream */

/* ---- several devices and their contexts (context.c) ---- */

int device_count(void);              /* after device_open() */
/* 0, cudaErrorInvalidDevice, or the error of device_open(). */
int device_check(int device);
int device_now(void);                /* of the calling thread's current context, or 0 */
/* The number of the device in the machine, of which $CUDA_VISIBLE_DEVICES shows some. */
int device_place(int device);
enum { DEVICE_PCI_ID_BYTES = 13 };   /* "0000:01:00.0" */
void device_pci_id(int device, char to[DEVICE_PCI_ID_BYTES]);
int device_by_pci_id(const char *id, int *device);
void device_uuid(int device, void *to); /* 16 bytes */
void place_uuid(int place, void *to);

struct context {
	int device;
	bool primary;
	unsigned flags;
	unsigned long long id;
	struct green *green;         /* of a green context (green.c); or NULL */
};
struct context *cuda_context_now(void);   /* NULL: none is current */
struct context *cuda_context_of(const void *handle); /* NULL: no such context */
struct context *cuda_context_primary(int device);
struct context *cuda_context_new(int device, unsigned flags);
int cuda_context_free(const void *handle);
int cuda_context_push(struct context *c);
int cuda_context_pop(struct context **out);
void cuda_context_set(struct context *c); /* in place of the current one; NULL: removes that */
int *cuda_context_users(int device);      /* how often the primary context is retained */

int peer_can(int device, int peer, int *can);
int peer_access(int peer, bool on);  /* of the current device */
/* A cudaDeviceP2PAttr; CUdevice_P2PAttribute has the same numbers. */
int peer_attribute(int *value, int attribute, int device, int peer);

/* ---- errors (error.c, drv_device.c) ---- */

/* The return value of a runtime call: records the error for cudaGetLastError(). */
cudaError_t rt(int error);
bool rt_used(void); /* a runtime call was made, so the primary context is current */
/* The return value of a driver call: the error in the driver API's numbering. */
CUresult drv(int error);
void drv_initialise(void); /* for runtime calls that initialise the driver, but make no context */
int drv_initialised(void); /* 0 after cuInit() or a runtime call, else the error */
int drv_ready(void);       /* as well: a context is current, and device_ready() */

/* ---- calls that failed (api_error.c) ---- */
/* A launch or lookup that was refused; rule: "CS951" or "CS952". reason: one sentence, or "". */
void api_refused(const char *rule, const char *kernel, int error, const char *reason);
/* By a kernel: the call stack is that of the launch by the host. */
void api_refused_inside(const char *kernel, int error, const char *reason);
void api_returns(int error); /* a call ends; by rt() and drv() */
void api_configured(void);   /* the next launch of this thread is one of kernel<<<...>>> */
void api_asked(void);        /* the program asks for the last error of this thread */

/* Names of an error code in both APIs (error.def); NULL: no such code. */
struct error_row { int code; const char *rt, *drv, *text; };
const struct error_row *error_find(int code);

/* ---- modules, kernels, variables (image.c) ---- */

/* A module in any of its forms: registered by nvcc's host code, CUmodule or CUlibrary.
 * Its PTX is parsed when a kernel or variable of it is first used. */
struct image;
struct func {
	struct image *image;
	int device;                  /* on which it runs */
	struct func *on[CONSAN_DEVICES]; /* the same kernel on other devices; NULL: not looked up yet */
	char *name;                  /* of the PTX entry */
	const struct consan_kernel *kernel; /* NULL until func_load() */
	struct consan_kernel_info info;
	uint32_t max_dynamic;        /* greatest dynamic shared memory of a launch, bytes */
	int carveout, cluster_policy, non_portable; /* attributes of these names */
	uint32_t cluster[3];         /* required cluster set by attribute, CTAs; 0: none */
	bool cluster_must;           /* CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET */
};
struct var {
	struct image *image;
	const char *name;
	size_t bytes;
	void **managed;              /* the host pointer to set for a managed variable, or NULL */
};

enum { IMAGE_BORROW, IMAGE_COPY };
/* Opens a fatbin, the wrapper of a fatbin, a cubin or PTX text. size 0: taken from the
 * header, or up to the NUL of PTX text. own: IMAGE_COPY copies the bytes; IMAGE_BORROW
 * requires that they outlive the image. image_close() frees it. */
int image_open(const void *bytes, size_t size, int own, struct image **out);
int image_open_file(const char *path, struct image **out);
void image_bind(struct image *im, int device); /* a CUmodule: it is of one device only */
void image_close(struct image *im);
int image_load(struct image *im);
/* Registrations by nvcc's host code: the host stub of a kernel, the host copy of a variable. */
void image_add_stub(struct image *im, const void *host, const char *name);
void image_add_var(struct image *im, const void *host, const char *name, size_t bytes,
	void **managed);
/* Kernels by name and by index; image_symbol(): address and size in bytes of a variable.
 * All of them load the image, for the current device or that of the CUmodule. */
int image_func(struct image *im, const char *name, struct func **out);
int image_func_on(struct image *im, const char *name, int device, struct func **out); /* it has it */
int image_func_count(struct image *im, unsigned *n);
int image_func_at(struct image *im, unsigned k, struct func **out);
int image_symbol(struct image *im, const char *name, void **at, size_t *bytes);
int func_load(struct func *f);
/* The kernel of a host stub, a cudaKernel_t or a cudaFunction_t, loaded for the current device. */
int func_find(const void *handle, struct func **out);
int func_find_on(const void *handle, int device, struct func **out);
int var_find(const void *host, void **at, size_t *bytes);
/* The address of `count` bytes at symbol + offset; an error if they exceed the variable. */
int symbol_place(const void *symbol, size_t count, size_t offset, char **at);
struct image *image_of(const void *handle); /* NULL: not a live handle */

/* ---- memory (memory.c) ---- */

int mem_alloc(void **at, size_t bytes, enum consan_mem kind);
int mem_alloc_pitch(void **at, size_t *pitch, size_t width, size_t rows);
int mem_alloc_host(void **at, size_t bytes, unsigned flags);
int mem_free(void *at);
int mem_free_from(void *at, const void *caller); /* by the program: caller is its code */              /* device and managed; NULL is fine; waits for all work */
struct stream;
struct pool;
/* Of the pool, in the order of the stream. */
int mem_alloc_async(void **at, size_t bytes, struct pool *pool, struct stream *s);
int mem_free_async(void *at, const void *stream); /* cudaFreeAsync() */
bool mem_pageable(const void *at);   /* host memory that the GPU cannot access */
bool mem_on_device(const void *at);  /* neither that, nor page-locked nor managed */
void mem_release(void *at);          /* runs OP_FREE */
int mem_free_host(void *at);         /* waits for all work */
int mem_register(void *at, size_t bytes, unsigned flags);
int mem_unregister(void *at);
bool mem_host_flags(const void *at, unsigned *flags);
void mem_info(size_t *free_bytes, size_t *total);
/* The same for the device at a place, current or not; used: by this process. */
void mem_info_at(int place, size_t *used, size_t *total);
/* Counts memory of a device that is allocated elsewhere, if there is so much. */
int mem_count(int device, size_t bytes);
void mem_count_always(int device, size_t bytes);
void mem_uncount(int device, size_t bytes);
/* Memory of another process has become accessible: says once that its accesses are not seen. */
void mem_of_other_process(void);
/* 0 if [at, at + bytes) lies in one allocation that the GPU can access. */
int mem_check(const void *at, size_t bytes);
int mem_check_host(const void *at); /* is it of host or managed memory? */
/* cudaStreamAttachMemAsync(), which has no effect */
int mem_attach(const void *at, size_t bytes, unsigned flags);

/* A copy of `depth` slices of `height` rows of `width` bytes. */
struct copy {
	void *dst;
	const void *src;
	size_t dst_pitch, src_pitch, dst_slice, src_slice; /* bytes */
	size_t width, height, depth;
	enum cudaMemcpyKind kind;
	void *staged;                /* a copy of the source that is read instead; owned; or NULL */
	bool read_apart;             /* hb_read_apart() has reported what it reads */
};
struct fill {
	void *dst;
	size_t pitch, slice;
	uint32_t value;
	unsigned unit;               /* bytes of the value: 1, 2 or 4 */
	size_t width, height, depth; /* in units, rows, slices */
};
struct copy copy_line(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind);
struct copy copy_plane(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
	size_t width, size_t height, enum cudaMemcpyKind kind);
int copy_check(const struct copy *c);
void copy_run(const struct copy *c);
void copy_stage(struct copy *c);     /* the source may change afterwards */
size_t copy_bytes(const struct copy *c);
int fill_check(const struct fill *f);
void fill_run(const struct fill *f);
int fill_of(const struct cudaMemsetParams *p, struct fill *f); /* of a node; checked */

/* The copy that cudaMemcpy3D() describes; an error for arrays. */
int copy_3d(const struct cudaMemcpy3DParms *p, struct copy *c);
int copy_3d_driver(const CUDA_MEMCPY3D *p, struct copy *c); /* cuMemcpy3D() */

/* ---- mappings (vmm.c) ---- */

/* Reserved addresses can be accessed if memory is mapped there, and no multicast object; others are not
 * judged. */
bool vmm_usable(const void *at, size_t bytes);
bool vmm_is_mapped(const void *at);

/* ---- memory and events of several processes (ipc.c) ---- */

bool ipc_any(void);    /* does another process share memory with this one? */
void ipc_begins(void); /* from now on */
/* ipc_race.c: races with other processes. Memory that is shared has a log of so many bytes, shared, too. */
struct ipc_log;
size_t ipc_log_bytes(void);
/* Memory of this process is shared, and has this log; offset: where these bytes are in it. */
void ipc_race_watch(struct ipc_log *l, const void *at, size_t bytes, size_t offset);
void ipc_race_unwatch(const void *at); /* these bytes are unmapped */
void ipc_race_events(void); /* events are shared: nothing is compared */
void ipc_race_forget(struct ipc_log *l); /* the log will be unmapped */
/* The host may know more operations to be complete; all: the process ends. Before it can notify others. */
void ipc_race_known(bool all);
void ipc_registered(const void *at); /* memory of the program; other processes may have it, too */
/* Handles of 64 bytes. pool: whose access counts, or NULL. */
int ipc_export(const void *at, void *handle);
int ipc_open(const void *handle, struct exec_access *pool, void **at);
int ipc_close(void *at);
/* The memory is freed. True: it was of another process, and is gone now. */
bool ipc_released(void *at);
struct cuda_event;
int ipc_new_event(struct cuda_event *m);       /* of one with cudaEventInterprocess */
void ipc_free_event(struct cuda_event *m);
int ipc_export_event(const void *event, void *handle);
int ipc_open_event(const void *handle, struct cuda_event **out);
int ipc_record(struct cuda_event *m, const void *stream); /* behind the record */
/* Did another process record it last? Then the following two are to be used. */
bool ipc_of_others(const struct cuda_event *m);
int ipc_stream_wait(const struct cuda_event *m, const void *stream);
int ipc_sync(const struct cuda_event *m, bool query);

struct pool;
struct pool *pool_default(int device);
struct pool *pool_now(int device);        /* that its allocations come from */
void pool_use(int device, struct pool *p);
struct pool *pool_of(const void *handle); /* NULL: no such pool */
int pool_new(struct pool **out, int device);
/* The access of the devices to the memory of a pool, of enum cudaMemAccessFlags. */
int pool_set_access(const void *handle, const struct cudaMemAccessDesc *list, size_t n);
int pool_get_access(const void *handle, const struct cudaMemLocation *where, int *flags);
int pool_device(const struct pool *p);
struct exec_access *pool_access(const struct pool *p);
int mem_alloc_pool(void **at, size_t bytes, struct pool *p);
int pool_free(const void *handle);
int pool_attribute(const void *handle, int attribute, void *get, const void *set);

/* ---- launches (launch.c) ---- */

struct launch {
	struct func *func;
	uint32_t grid[3], block[3], cluster[3];
	uint32_t preferred[3];       /* preferred cluster, CTAs; 0: none */
	size_t shared;               /* dynamic shared memory, bytes */
	bool cooperative;
	bool programmatic;           /* may start before the previous launch of its stream ends */
	uint64_t queue;              /* identifies the stream; set by stream_issue() */
	const void *started;         /* the event to record when all blocks have begun; or NULL */
	uint64_t launched;           /* by a kernel: see consan_launch_op(); else 0 */
	struct conditions *conditions; /* of the graph that is launched, owned; or NULL */
	void *params;                /* the parameter block, owned */
	char reason[200];            /* why launch_check() refused it */
};
/* Sets the parameters from an array of pointers, or from a packed block of n bytes. */
int launch_pack(struct launch *l, void **args, const void *block, size_t n);
/* Applies launch attributes. cudaLaunchAttribute has the same layout. */
int launch_attributes(struct launch *l, const CUlaunchAttribute *a, unsigned n);
/* Refuses what the emulated GPU would refuse, and sets the cluster that the kernel requires. */
int launch_check(struct launch *l);
int launch_check_on(struct launch *l, const void *stream); /* and of which the stream is */
int launch_run(const struct launch *l, struct order_op *op);
/* Reports a launch that failed with this error before it ran, so that its kernel is not checked.
 * handle: what the program passed; l->func: the kernel, NULL if that is not one. Returns the error. */
int launch_refused(const void *handle, const struct launch *l, int error);
/* The same for a launch by a kernel. */
int launch_refused_inside(const struct launch *l, int error);
/* The same for the lookup of a kernel, by name or (name NULL) by handle. */
int lookup_failed(const char *name, const void *handle, int error);
int func_occupancy(struct func *f, int threads, size_t shared, int *blocks);
int func_available_shared(struct func *f, int blocks, int threads, size_t *shared);
int func_max_clusters(const struct launch *l, int *clusters);
int func_max_cluster_size(const struct launch *l, int *size);
int func_get_attribute(struct func *f, CUfunction_attribute a, int *value);
int func_set_attribute(struct func *f, CUfunction_attribute a, int value);

/* ---- what kernels ask of the device runtime (device_runtime.c) ---- */

/* exec_observer.call, on the thread of the launch's task. */
int device_runtime_call(struct exec_call *c);

/* ---- the Python package (python.c) ---- */
void python_end(void);      /* writes the remarks before the session is closed */

/* ---- streams, events, graphs (stream.c, graph.c) ---- */

enum op_kind { OP_EMPTY, OP_LAUNCH, OP_COPY, OP_FILL, OP_HOST, OP_LIBRARY, OP_GRAPH, OP_RECORD,
	OP_FREE, OP_WRITE, OP_WAIT,
	/* nodes of graphs only */
	OP_EVENT_RECORD, OP_EVENT_WAIT, OP_ALLOC, OP_RELEASE, OP_CONDITION,
	OP_DEFAULTS,                 /* begins the launch of a graph with conditions */
	OP_ENVIRONMENT };            /* the launch of a graph that may launch others (device_graph.c) */
/* A stream memory operation on a word of 4 or 8 bytes. */
struct value {
	void *at;
	uint64_t value;
	unsigned bytes, condition;   /* of a wait: CU_STREAM_WAIT_VALUE_... */
};
int value_check(const struct value *v);
/* A conditional node. The kernels of its launch set the value that decides which of its bodies run. */
struct condition_node {
	uint64_t handle;
	int type;                    /* enum cudaGraphConditionalNodeType */
	unsigned size;               /* of body */
	struct graph **body;         /* owned */
	struct conditions *values;   /* of the launch, owned; NULL in a graph */
};
struct op {
	enum op_kind kind;
	union {
		struct launch launch;
		struct copy copy;
		struct fill fill;
		struct { void (*call)(void *user); void *user; bool always, ours; } host; /* always:
				also after a fault; ours: the program does not know of it */
		struct library_call *library; /* owned by the operation, or by a graph */
		struct graph *graph; /* a child graph, or one that is launched, owned */
		void *at;            /* OP_FREE: memory, by mem_free_async() */
		struct value value;
		const void *event;   /* OP_EVENT_...: a handle */
		struct { void *at; size_t bytes; } memory; /* OP_ALLOC, OP_RELEASE */
		struct condition_node condition;
		struct conditions *defaults; /* owned */
	};
};
/* Not of a graph: its nodes are tasks of their own. order: the operation for libconsan/order. */
int op_run(const struct op *op, struct order_op *order);
bool op_ready(const struct op *op); /* false: it waits for a value in memory */
struct op op_dup(const struct op *op);
void op_free(struct op *op);
size_t op_bytes(const struct op *op); /* staged memory */

struct graph;
struct node;
struct task;
struct stream {
	int device;
	unsigned flags;
	int priority;
	unsigned long long id;
	unsigned refs;               /* of the handle and of tasks; under the lock of the queue */
	struct task *tail;           /* the last task (queue.h), or NULL; owns a reference */
	struct graph *capture;       /* operations go into this graph; NULL: into the queue */
	VEC(struct node *) front;    /* of the capture: the nodes that the next one depends on */
	bool joined;                 /* the capture of another stream, joined by an event */
	bool per_thread;             /* a per-thread default stream */
	struct green *green;         /* the green context that it was created in; or NULL */
	bool has_line;               /* line is open */
	order_line line;             /* in libconsan/order; by hb_line() */
	bool launched;               /* the last operation was a launch ... */
	unsigned long long waits;    /* ... issued after this many waits by the host */
};
/* A CUevent. */
struct cuda_event {
	int device;
	unsigned flags;
	bool recorded;
	struct task *task;           /* that recorded it last; owns a reference */
	struct graph *capture;       /* the capture it was recorded in, or NULL */
	VEC(struct node *) front;    /* ... after these nodes */
	struct order_event order;
	struct ipc_event *shared;    /* with other processes; or NULL */
	int shared_fd;
	uint64_t shared_inode, recorded_as; /* the number of its last record by this process */
};
int stream_new(struct stream **out, unsigned flags, int priority);
int stream_free(struct stream *s);
/* The stream of a handle, the default streams included; NULL: no such stream. */
struct stream *stream_of(const void *handle);
struct stream *stream_legacy(int device);
/* The thread ends: its per-thread default streams are destroyed. */
void stream_thread_ends(void);
/* Calls of this thread that take stream 0 as its per-thread default stream: _ptsz and _ptds
 * (entry_points.c). */
extern _Thread_local int stream_calls_per_thread __attribute__((tls_model("initial-exec")));
/* Takes ownership of the contents of op, which goes to the queue, or the graph of a capture.
 * blocking: of a call without a stream, such as cudaMemcpy(). Copies and fills return as
 * "API Synchronization Behavior" of the CUDA Runtime API says: those to and from pageable memory are
 * staged or done, a blocking one is done unless it only accesses the device. */
int stream_issue(const void *handle, struct op *op, bool blocking);
/* Adds a node to the graph of the stream's capture; the same ownership. */
int stream_capture_op(struct stream *s, struct op *op);
/* One of the calls is not NULL: the function gets the stream and the error state. */
int stream_callback(const void *handle, cudaStreamCallback_t rt_call, CUstreamCallback drv_call,
	void *user);
int stream_wait(const void *handle, const void *event, bool external);
/* The host waits for a stream, or for all work. query: cudaErrorNotReady, if it cannot be done as
 * long as the host does nothing. */
int stream_sync(const void *handle, bool query);
int stream_sync_all(int device); /* -1: of all devices */
int cuda_event_new(struct cuda_event **out, unsigned flags);
struct cuda_event *cuda_event_of(const void *handle);
/* external: a capture gets a node that records the event, or waits for it. */
int cuda_event_record(const void *handle, const void *stream, bool external);
int cuda_event_free(const void *handle);
int cuda_event_sync(const void *handle, bool query);
int cuda_event_elapsed(float *ms, const void *start, const void *end);

/* A stream was created: it belongs to the green context that is current, if one is (green.c). */
void green_stream(struct stream *s);

/* Capture: from begin to end, operations of the stream go into a graph. */
int stream_capture_begin(const void *handle, struct graph *into, const void *const *after, size_t n);
/* The next node that is captured depends on these as well, or (set) on no others. */
int stream_capture_depend(const void *handle, const void *const *after, size_t n, bool set);
int stream_capture_end(const void *handle, struct graph **out);
bool stream_any_capture(void); /* is a capture in progress? */
int stream_capture_state(const void *handle, enum cudaStreamCaptureStatus *state,
	unsigned long long *id, struct graph **graph, const void *const **after, size_t *nafter);

/* A graph holds its operations in an order that respects the dependencies: that in which they were
 * added, until graph_depend() changes it. A node that is captured depends on the one before it. */
struct node {
	struct graph *graph;
	struct op op;
	VEC(struct node *) after;    /* the nodes it depends on */
	unsigned long long id;       /* the same in copies of the graph */
	size_t place;                /* in graph->node; valid after graph_order() */
	void **args;                 /* pointers into op.launch.params, made when they are asked for */
	bool off;                    /* disabled in an executable graph */
};
/* The variable of a conditional node, which cudaGraphConditionalHandleCreate() made. */
struct condition { uint64_t handle; uint32_t start; bool assigned; };
struct user_object;
struct graph {
	VEC(struct node *) node;
	VEC(struct user_object *) object; /* each as often as the graph holds it */
	bool executable;
	unsigned long long id;
	VEC(struct condition) condition;
	struct conditions *values;   /* executable: of its conditions and those of its child graphs, owned; or
					NULL */
	struct graph *launch_of;     /* a copy that is launched: the executable graph */
	unsigned long long flags;    /* executable: enum cudaGraphInstantiateFlags */
	bool launches;               /* executable: it is launched as OP_ENVIRONMENT */
	bool tail;                   /* a copy that a kernel launched as a tail */
	unsigned fired;              /* a copy: graphs that its kernels fired and forgot */
	struct graph *on_device;     /* executable: as it was uploaded, for launches by kernels, owned; or NULL */
	struct task *last;           /* executable: its last launch, which the next one waits for; owns a
					reference */
	struct order_event launched;
};
struct graph *graph_new(void);
struct graph *graph_of(const void *handle);      /* NULL: no such graph */
struct graph *graph_exec_of(const void *handle); /* ... no such executable graph */
/* Takes ownership of the contents of op. after: the nodes it depends on, of the same graph. */
int graph_add(struct graph *g, struct op *op, const void *const *after, size_t nafter,
	struct node **out);
struct graph *graph_dup(const struct graph *g, bool executable);
struct node *node_of(const void *handle);        /* NULL: no such node */
/* The node of this graph, a copy, that was made of the node; NULL: none. */
struct node *graph_find(const struct graph *g, const struct node *of);
/* As graph_find(), by handles; NULL: they are unknown as well. */
struct node *graph_exec_node(const void *exec, const void *node);
/* Adds or removes dependencies of the nodes `to` on those of `from`, of this graph. */
int graph_depend(struct graph *g, const void *const *from, const void *const *to, size_t n, bool add);
/* Takes ownership of the contents of op, which is of the node's kind. */
int node_set(struct node *n, struct op *op);
int node_destroy(struct node *n);
/* A CUDA user object: destroy(user) is called when the last of `count` references is released. */
int user_object_new(struct user_object **out, void *user, void (*destroy)(void *user), unsigned count);
/* Adds references, or, if count is negative, removes them. */
int user_object_count(const void *handle, long count);
/* move: the caller's references become the graph's. */
int graph_hold(struct graph *g, const void *object, unsigned count, bool move);
int graph_drop(struct graph *g, const void *object, unsigned count);
/* Is the node one of `front`, or does one of these come after it? */
bool graph_covers(const struct graph *g, struct node *const *front, size_t n, const struct node *of);
/* Replaces the operations of `to` by those of `from`. False: the graphs differ in number or
 * kind of nodes. */
bool graph_replace(struct graph *to, const struct graph *from);
void graph_free(struct graph *g);
/* An attribute of the memory of graphs, which is not counted. */
int graph_memory_attribute(int device, int attribute, void *value, bool set);
/* Memory of a graph: it exists from the call on until the program frees it, or the last copy of the
 * graph is gone. */
int graph_alloc(struct graph *g, size_t bytes, struct op *op);
int graph_release(struct graph *g, void *at, struct op *op);
/* Adds the nodes to the queue, behind what the stream has, and what it gets later behind them. Returns
 * a reference to the last task. May take what op owns. Under the lock of the queue. */
struct caller;
struct task *graph_enqueue(struct op *op, struct stream *s, struct caller *from, struct order_op *order);
int graph_launch(const void *exec, const void *stream);
/* Adds the nodes of a graph that is part of the task, an OP_GRAPH or OP_CONDITION that has run. in: the
 * operation that they are part of. Under the lock of the queue. */
void graph_expand_inside(const struct graph *g, struct task *t, struct order_op *in);
/* Stores up to *n nodes and sets *n to their number. nodes NULL: only sets *n. */
int graph_nodes(const void *graph, void **nodes, size_t *n);

/* Not under the lock of the queue, as the program's functions may be called. */
void graph_drop_objects(struct graph *g);

/* ---- graphs that are launched by kernels (device_graph.c) ---- */

/* The graph is instantiated with these flags. Returns an error; result and node: which, for
 * cudaGraphInstantiateParams. */
int device_graph_instantiate(struct graph *exec, const struct graph *of, unsigned long long flags,
	enum cudaGraphInstantiateResult *result, const struct node **node);
void device_graph_upload(struct graph *exec);

/* ---- conditional nodes (condition.c) ---- */

int condition_new(struct graph *g, uint32_t start, unsigned flags, uint64_t *handle);
/* Makes the node with empty bodies. */
int condition_node(uint64_t handle, int type, unsigned size, struct condition_node *out);
struct condition_node condition_dup(const struct condition_node *n);
void condition_free(struct condition_node *n);
/* The values of the conditions of a graph, in device memory: each executable graph has its own. NULL: it
 * has no conditions. */
struct conditions *conditions_of(const struct graph *g);
struct conditions *conditions_get(struct conditions *c);
void conditions_put(struct conditions *c);
void conditions_assign(struct conditions *c); /* a launch of the graph begins */
uint32_t *condition_at(const struct conditions *c, uint64_t handle); /* NULL: unknown */
/* The body that is next, after `rounds` ones; NULL: none. */
struct graph *condition_next(const struct condition_node *n, unsigned rounds);

/* ---- happens-before of the host API (hb.c) ---- */

struct order *hb(void); /* after device_ready() */
/* To be called when this thread ends. */
void hb_thread(void);
/* A call that issues an operation, or releases memory, begins. It lasts a moment if other threads make
 * calls, so that what no synchronization orders overlaps: that is found. */
void hb_begin(void);
/* Memory is released by a call that hb_begin() began and that has waited for the devices. */
void hb_released(const void *at);
order_line hb_line(struct stream *s);
void hb_stream_closed(struct stream *s);
/* An operation is issued; the caller owns the result. */
struct order_op *hb_issue(struct stream *s, const struct op *op);
struct order_op *hb_issue_node(const struct order_op *start, struct order_op *const *after,
	size_t nafter, const struct op *op);
/* Of one that is issued while `in` runs, as part of it. */
/* A copy of a batch. */
struct order_op *hb_issue_copy(const struct order_op *start, const struct op *op);
/* The source of a copy is read by an operation of its own, which the stream waits for, but which does not wait
 * for the stream; known: it is complete for the host. */
void hb_read_apart(struct stream *s, const struct op *op, bool known);
struct order_op *hb_issue_inside(struct order_op *in, struct order_op *const *after, size_t nafter,
	bool last, const struct op *op, const struct caller *from);
/* It has run: reports the accesses of a copy or fill. */
void hb_done(struct order_op *o, const struct op *op);
/* Bytes that a library call or an operator of a framework reads or writes: `slices` of `rows` of `width`
 * bytes, at these distances; each row has `grow` bytes more than the one before. */
struct hb_span {
	const void *at;
	size_t width, pitch, rows, slice, slices;
	long grow;
	size_t write; /* a flag; _torch.py packs eight words */
};
void hb_accesses(struct order_op *o, const struct hb_span *span, size_t n);
/* The call that issued it returns: what the host knows (order/calls.def). */
void hb_returned(const struct order_op *o, const struct op *op, bool blocking);
enum hb_returns {
	HB_AT_ONCE,  /* the host does not know that the operator is complete */
	HB_DONE,     /* it does */
	HB_DONE_NOW, /* it does with current drivers, though nothing promises it */
};
/* An operator of a framework was executed by the host in place of a kernel of this stream; with: and in the
 * order of that one, too; may be NULL. In an operation, it is a part of that. */
void hb_operator(struct stream *s, struct stream *with, const char *name, const struct hb_span *span,
	size_t n, enum hb_returns returns);
/* cudaMallocAsync() */
void hb_alloc(struct stream *s, void *at, size_t bytes);
/* cudaFreeAsync() takes effect. False: the memory is to be released now; else it is as soon as no
 * operation can use it by mistake. */
bool hb_free(struct order_op *o, void *at);
void hb_stream_waited(struct stream *s);
void hb_device_waited(int device); /* -1: all devices */
void hb_record(struct cuda_event *e, struct stream *s);
void hb_wait(struct stream *s, const struct cuda_event *e);
void hb_event_waited(const struct cuda_event *e);

/* ---- accesses of the host (guard.c) ---- */

/* Memory that the host and operations can access. */
void guard_add(void *at, size_t bytes);
void guard_remove(void *at);
/* A function of the program runs on this thread as an operation: what it accesses is seen, until others run. */
void guard_function(void);
/* Does each access of the host to such memory call us, as long as operations are queued and none runs? */
bool guard_sees_all(void);
/* While an operation runs, no page is protected. May be nested, and on several threads. pause: as resume, but the
 * operation is only suspended, and others may go on at once: guard_idle() if none can. */
void guard_suspend(void);
void guard_resume(void);
void guard_pause(void);
bool guard_any(void); /* is there such memory? */
/* No operation can run without the host. */
void guard_idle(void);
bool guard_is_idle(void); /* and nothing has run since */
bool guard_written(void); /* has the host written such memory since something ran? */
/* A grid that runs has changed memory. */
void guard_changed(void);
/* What runs from now on, or runs on, runs beside host code. */
void guard_unseen(void);
/* Reads a word of the program's memory, which may be protected. */
void guard_peek(const void *at, size_t bytes, void *to);
/* Operations were issued, or the host has waited: other pages are to be guarded. */
void guard_update(void);
/* The host, or the kernel for it, is about to access this memory. */
void guard_touch(const void *at, size_t bytes, bool write);
bool our_code(const void *pc); /* is it an address of this library? */

#endif
