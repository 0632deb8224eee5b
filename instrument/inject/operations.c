/* operations: see operations.h. */
#include "operations.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order *operations_order(void)
{
	return consan_order(inject_session());
}

/* ---- streams ---- */

struct stream {
	CUcontext context;
	uint64_t id;
	order_line line;
};

static struct {
	pthread_mutex_t lock;
	VEC(struct stream) at;
} streams = { .lock = PTHREAD_MUTEX_INITIALIZER };

static CUcontext context_of(CUstream s)
{
	CUcontext c = NULL;

	if (!cu.p_cuStreamGetCtx || cu.p_cuStreamGetCtx(s, &c) || !c)
		cu.p_cuCtxGetCurrent(&c);
	return c;
}

CUdevice operations_context_device(CUcontext of)
{
	CUcontext now = NULL;
	CUdevice device = 0;

	cu.p_cuCtxGetCurrent(&now);
	if (of && of != now && !cu.p_cuCtxPushCurrent(of)) {
		cu.p_cuCtxGetDevice(&device);
		cu.p_cuCtxPopCurrent(&(CUcontext){ NULL });
	} else {
		cu.p_cuCtxGetDevice(&device);
	}
	return device;
}

static enum order_line_kind kind_of(CUstream s)
{
	unsigned flags = 0;

	if (!s || s == CU_STREAM_LEGACY)
		return ORDER_LEGACY;
	if (s == CU_STREAM_PER_THREAD || !cu.p_cuStreamGetFlags || cu.p_cuStreamGetFlags(s, &flags))
		return ORDER_BLOCKING;
	return flags & CU_STREAM_NON_BLOCKING ? ORDER_NON_BLOCKING : ORDER_BLOCKING;
}

/* Under the lock. NULL: it is not known. */
static struct stream *find_stream(CUcontext context, uint64_t id)
{
	for (size_t k = 0; k < streams.at.n; k++)
		if (streams.at.at[k].context == context && streams.at.at[k].id == id)
			return &streams.at.at[k];
	return NULL;
}

order_line operations_line(CUstream s)
{
	struct stream new = { .context = context_of(s), .id = inject_queue(s ? s : CU_STREAM_LEGACY) };
	const struct stream *known;

	pthread_mutex_lock(&streams.lock);
	known = find_stream(new.context, new.id);
	if (known) {
		new.line = known->line;
	} else {
		new.line = order_line_open(operations_order(), kind_of(s),
			operations_context_device(new.context));
		if (s == CU_STREAM_PER_THREAD)
			order_line_name(operations_order(), new.line, "the per-thread default stream");
		vec_push(&streams.at, new);
	}
	pthread_mutex_unlock(&streams.lock);
	return new.line;
}

void operations_stream_ended(CUstream s)
{
	struct stream *known;
	size_t k;

	pthread_mutex_lock(&streams.lock);
	known = find_stream(context_of(s), inject_queue(s));
	if (known) {
		order_line_close(operations_order(), known->line);
		k = (size_t)(known - streams.at.at);
		streams.at.at[k] = streams.at.at[--streams.at.n];
	}
	pthread_mutex_unlock(&streams.lock);
}

void operations_join_all(order_line line)
{
	const bool all = line == ORDER_NO_LINE;
	struct order_event e = { 0 };

	pthread_mutex_lock(&streams.lock);
	for (size_t k = 0; k < streams.at.n; k++) {
		order_record(operations_order(), &e, streams.at.at[k].line, 0);
		for (size_t i = 0; i < (all ? streams.at.n : 1); i++)
			order_wait(operations_order(), all ? streams.at.at[i].line : line, &e, 0);
	}
	pthread_mutex_unlock(&streams.lock);
	order_event_free(&e);
}

/* ---- operations ---- */

uint32_t operations_stack(bool launch)
{
	char *frames;
	uint32_t stack;

	if (!order_wants(operations_order()))
		return 0;
	frames = launch || !consan_python_program() ? NULL : consan_python_frames();
	stack = launch ? consan_launch_stack() : frames ? consan_python_stack_of(frames) : 0;

	free(frames);
	return stack ? stack : consan_host_stack(NULL);
}

static struct order_call call_of(const char *call, const char *kernel, char name[64])
{
	inject_call_name(call, name, 64);
	gpu_note_operations(inject_session(), false);
	return (struct order_call){ .name = name, .kernel = kernel,
		.stack = operations_stack(kernel) };
}

struct order_op *operations_issue(CUstream s, const char *call, const char *kernel)
{
	const order_line line = operations_line(s);
	char name[64];
	const struct order_call c = call_of(call, kernel, name);

	return order_issue(operations_order(), line, &c);
}

struct order_op *operations_issue_node(const struct order_op *start, struct order_op *const *after,
	size_t nafter, const char *node, const char *kernel, uint32_t stack)
{
	const struct order_call c = { .name = node, .kernel = kernel, .stack = stack };

	return order_issue_node(operations_order(), start, after, nafter, &c);
}

/* ---- accesses that are not reported yet ---- */

struct operation {
	struct operation *next;
	struct order_op *op;       /* a reference; NULL: the memory is forgotten */
	enum { ACCESSES, ALLOC, FREE, FORGET } kind;
	bool complete;
	bool beside_host;          /* the host goes on while it runs */
	VEC(struct order_range) range;
};

static struct {
	pthread_mutex_t lock;
	struct operation *first, **end;
} waiting = { PTHREAD_MUTEX_INITIALIZER, NULL, &waiting.first };

/* Of the newest allocation that was asked for. */
struct kind { uint64_t from, bytes; bool hosts; };

static bool is_hosts(struct kind *k, uint64_t addr)
{
	enum order_memory kind;

	if (addr - k->from < k->bytes)
		return k->hosts;
	kind = operations_memory(addr);
	k->hosts = kind == ORDER_PINNED || kind == ORDER_MANAGED;
	if (!operations_find(addr, &k->from, &k->bytes)) {
		k->from = addr;
		k->bytes = 1;
	}
	return k->hosts;
}

/* What the host accesses is not seen (DESIGN.md, section 6). */
static void look_for_host(const struct operation *o)
{
	static bool reported;
	const struct order_op *op = o->op;
	struct kind k = { 0 };
	bool wrote = false, observed = false, any = false;

	if (!operations_host_has_memory() || !order_wants(operations_order()))
		return;
	for (size_t i = 0; i < o->range.n; i++) {
		const struct order_range *r = &o->range.at[i];

		if (!(r->flags & ORDER_SYSTEM) && (any || reported || !o->beside_host))
			continue;
		if (!is_hosts(&k, r->addr))
			continue;
		any = true;
		wrote |= r->flags & ORDER_SYSTEM && r->flags & ORDER_WRITE;
		observed |= r->flags & ORDER_SYSTEM && r->flags & ORDER_OBSERVES;
	}
	if (wrote || observed)
		order_host_unseen(operations_order(), o->op, wrote, observed);
	if (!any || reported || !o->beside_host || !gpu_global(inject_session()))
		return;
	reported = true;
	inject_remark(gpu_global(inject_session()) == GPU_GLOBAL_YES ? REMARK_NOT_SEEN : REMARK_NOTE,
		"accesses of host code to pinned or managed memory that %s may use at the same time (CS1003): "
		"--backend=gpu does not see them, the cpu backend does",
		order_op_kernel(op) ? order_op_kernel(op) : "an operation");
}

static void report(struct operation *o)
{
	struct order *order = operations_order();
	const struct order_range *r = o->range.at;

	switch (o->kind) {
	case ACCESSES:
		look_for_host(o);
		if (o->range.n)
			order_accesses(order, o->op, r, o->range.n);
		break;
	case ALLOC:
		order_alloc(order, o->op, r->addr, r->bytes);
		break;
	case FREE:
		order_free(order, o->op, r->addr, r->bytes);
		break;
	case FORGET:
		order_forget(order, r->addr, r->bytes);
		break;
	}
	order_op_put(order, o->op);
	vec_free(&o->range);
	free(o);
}

/* Under the lock. */
static void report_complete(void)
{
	struct operation *o;

	while ((o = waiting.first) && o->complete) {
		waiting.first = o->next;
		if (!waiting.first)
			waiting.end = &waiting.first;
		report(o);
	}
}

/* Takes over the reference to op. */
static struct operation *push(struct order_op *op, int kind, const struct order_range *range, size_t n,
	bool complete)
{
	struct operation *o = base_alloc(sizeof *o);

	o->op = op;
	o->kind = kind;
	o->complete = complete;
	o->beside_host = op && !order_host_knows(operations_order(), order_place(op));
	for (size_t k = 0; k < n; k++)
		vec_push(&o->range, range[k]);
	pthread_mutex_lock(&waiting.lock);
	*waiting.end = o;
	waiting.end = &o->next;
	report_complete();
	pthread_mutex_unlock(&waiting.lock);
	return o;
}

struct operation *operations_open(struct order_op *op)
{
	return push(op, ACCESSES, NULL, 0, false);
}

void operations_accessed(struct operation *o, const struct order_range *range, size_t n)
{
	for (size_t k = 0; k < n; k++)
		vec_push(&o->range, range[k]);
}

void operations_close(struct operation *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&waiting.lock);
	o->complete = true;
	report_complete();
	pthread_mutex_unlock(&waiting.lock);
}

/* ---- copies and fills ---- */

enum order_memory operations_memory(uint64_t addr)
{
	unsigned type = 0;
	bool managed = false;

	if (!addr)
		return ORDER_DEVICE;
	if (!cu.p_cuPointerGetAttribute
			|| cu.p_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, addr))
		return ORDER_PAGEABLE;
	cu.p_cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, addr);
	return managed ? ORDER_MANAGED : type == CU_MEMORYTYPE_HOST ? ORDER_PINNED : ORDER_DEVICE;
}

struct operations_area operations_row(uint64_t addr, size_t bytes)
{
	return (struct operations_area){ addr, bytes, bytes, bytes, 1, 1 };
}

struct ranges { VEC(struct order_range) all; };

static void add_area(struct ranges *to, const struct operations_area *a, uint32_t flags)
{
	if (!a->addr || !a->width)
		return;
	for (size_t z = 0; z < a->depth; z++) {
		const uint64_t at = a->addr + z * a->slice;

		if (a->pitch == a->width || a->height == 1) {
			vec_push(&to->all, ((struct order_range){ .addr = at,
				.bytes = a->width * a->height, .flags = flags }));
			continue;
		}
		for (size_t y = 0; y < a->height; y++)
			vec_push(&to->all, ((struct order_range){ .addr = at + y * a->pitch,
				.bytes = a->width, .flags = flags }));
	}
}

void operations_copy(struct order_op *op, const struct operations_area *to,
	const struct operations_area *from)
{
	struct ranges r = { 0 };

	/* pageable memory is staged: the call returns when it has been read */
	if (operations_memory(from->addr) != ORDER_PAGEABLE || operations_memory(to->addr) == ORDER_PAGEABLE)
		add_area(&r, from, 0);
	add_area(&r, to, ORDER_WRITE);
	push(op, ACCESSES, r.all.at, r.all.n, true);
	vec_free(&r.all);
}

void operations_copy_apart(CUstream s, struct order_op *op, const char *call, const struct operations_area *to,
	const struct operations_area *from, bool during_call)
{
	struct order *o = operations_order();
	char name[64];
	struct order_call c = call_of(call, NULL, name);
	struct order_event read = { 0 };
	struct ranges r = { 0 }, w = { 0 };
	struct order_op *reads;
	order_line line;

	c.source = true;
	line = order_line_open(o, ORDER_NON_BLOCKING, (unsigned)operations_context_device(NULL));
	order_line_name(o, line, "no stream");
	reads = order_issue(o, line, &c);
	order_record(o, &read, line, 0);
	order_wait(o, operations_line(s), &read, 0);
	if (during_call)
		order_host_waits_op(o, reads, ORDER_PROMISED);
	order_event_free(&read);
	order_line_close(o, line);
	add_area(&r, from, 0);
	push(reads, ACCESSES, r.all.at, r.all.n, true);
	add_area(&w, to, ORDER_WRITE);
	push(op, ACCESSES, w.all.at, w.all.n, true);
	vec_free(&r.all);
	vec_free(&w.all);
}

void operations_fill(struct order_op *op, const struct operations_area *at)
{
	struct ranges r = { 0 };

	add_area(&r, at, ORDER_WRITE);
	push(op, ACCESSES, r.all.at, r.all.n, true);
	vec_free(&r.all);
}

void operations_value(struct order_op *op, uint64_t addr, unsigned bytes, bool write)
{
	const struct order_range r = { .addr = addr, .bytes = bytes, .flags = ORDER_STRONG | ORDER_SYSTEM
		| (write ? ORDER_WRITE : ORDER_OBSERVES) };

	push(op, ACCESSES, &r, 1, true);
}

/* ---- memory ---- */

static bool host_has_memory;

bool operations_host_has_memory(void)
{
	return __atomic_load_n(&host_has_memory, __ATOMIC_RELAXED);
}

void operations_shared_with_host(void)
{
	__atomic_store_n(&host_has_memory, true, __ATOMIC_RELAXED);
}

/* Memory of stream-ordered allocations, also after its release: a kernel that uses it then is reported,
 * though the driver knows the address no more. */
struct owned { uint64_t at, bytes; };

static struct {
	pthread_mutex_t lock;
	VEC(struct owned) at;
} owned = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Under the lock: of later entries with the address the newest one. */
static struct owned *find_owned(uint64_t addr)
{
	for (size_t k = owned.at.n; k-- > 0;)
		if (addr - owned.at.at[k].at < owned.at.at[k].bytes)
			return &owned.at.at[k];
	return NULL;
}

static void drop_owned(uint64_t addr, uint64_t bytes)
{
	size_t left = 0;

	for (size_t k = 0; k < owned.at.n; k++) {
		const struct owned *x = &owned.at.at[k];

		if (x->at + x->bytes <= addr || addr + bytes <= x->at)
			owned.at.at[left++] = *x;
	}
	owned.at.n = left;
}

void operations_alloc(struct order_op *op, uint64_t addr, uint64_t bytes)
{
	const struct order_range r = { .addr = addr, .bytes = bytes };

	pthread_mutex_lock(&owned.lock);
	drop_owned(addr, bytes);
	vec_push(&owned.at, ((struct owned){ addr, bytes }));
	pthread_mutex_unlock(&owned.lock);
	/* the driver orders the uses by earlier owners, in whatever stream, before the allocation */
	push(NULL, FORGET, &r, 1, true);
	push(op, ALLOC, &r, 1, true);
}

void operations_free(struct order_op *op, uint64_t addr)
{
	struct order_range r = { .addr = addr };
	const struct owned *x;

	pthread_mutex_lock(&owned.lock);
	x = find_owned(addr);
	r.bytes = x ? x->bytes : 0;
	pthread_mutex_unlock(&owned.lock);
	push(op, r.bytes ? FREE : ACCESSES, &r, r.bytes ? 1 : 0, true);
}

void operations_forget(uint64_t addr, uint64_t bytes)
{
	const struct order_range r = { .addr = addr, .bytes = bytes };

	pthread_mutex_lock(&owned.lock);
	drop_owned(addr, bytes);
	pthread_mutex_unlock(&owned.lock);
	push(NULL, FORGET, &r, 1, true);
}

bool operations_find(uint64_t addr, uint64_t *from, uint64_t *bytes)
{
	const bool busy = inject_busy;
	const struct owned *x;
	CUdeviceptr start = 0;
	size_t size = 0;

	pthread_mutex_lock(&owned.lock);
	x = find_owned(addr);
	*from = x ? x->at : 0;
	*bytes = x ? x->bytes : 0;
	pthread_mutex_unlock(&owned.lock);
	if (*bytes)
		return true;
	if (!cu.p_cuPointerGetAttribute)
		return false;
	inject_busy = true;
	if (!cu.p_cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, addr)
			&& !cu.p_cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, addr)
			&& addr - start < size) {
		*from = start;
		*bytes = size;
	}
	inject_busy = busy;
	return *bytes;
}

/* ---- parameters of the driver ---- */

static struct operations_area area(CUmemorytype type, const void *host, CUdeviceptr device, size_t x,
	size_t y, size_t z, size_t pitch, size_t height, const CUDA_MEMCPY3D *c)
{
	struct operations_area a = { .pitch = pitch ? pitch : c->WidthInBytes, .width = c->WidthInBytes,
		.height = c->Height, .depth = c->Depth };

	if (type == CU_MEMORYTYPE_ARRAY)
		return a;
	a.slice = a.pitch * (height ? height : c->Height);
	a.addr = (type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : (uint64_t)device) + z * a.slice
		+ y * a.pitch + x;
	return a;
}

void operations_copy_areas(const CUDA_MEMCPY3D *c, struct operations_area *to,
	struct operations_area *from)
{
	*to = area(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstZ,
		c->dstPitch, c->dstHeight, c);
	*from = area(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcZ,
		c->srcPitch, c->srcHeight, c);
}

struct operations_area operations_fill_area(const CUDA_MEMSET_NODE_PARAMS *f)
{
	const size_t width = f->width * f->elementSize;

	return (struct operations_area){ (uint64_t)f->dst, f->height > 1 ? f->pitch : width, 0, width,
		f->height, 1 };
}

void operations_not_followed(const char *what)
{
	if (order_wants(operations_order()))
		inject_remark(REMARK_NOTE, "races between operations: what %s accesses is not known", what);
}
