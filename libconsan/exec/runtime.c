/* runtime: functions of the CUDA device runtime (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism"),
 * by which kernels launch grids and set the conditions of graphs. Which grids there are, and when they
 * run, is the observer's business (exec_observer.call). */
#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Those of enum cudaError that come from here. */
enum { SUCCESS = 0, INVALID_VALUE = 1, MEMORY_ALLOCATION = 2, INVALID_DEVICE_FUNCTION = 98 };

static const struct function {
	const char *name;
	uint8_t out, from, in;
	enum exec_effect effect;
} functions[] = {
#define RUNTIME(id, out, from, in, effect) { #id, out, from, in, RUNTIME_##effect },
#include "runtime.def"
};
#define RUNTIME(id, out, from, in, effect) \
	_Static_assert((out) <= RUNTIME_OUT && (from) + 8 <= 8 * RUNTIME_WORDS, "it fits");
#include "runtime.def"

static bool of_graphs(size_t function)
{
	return function == RUNTIME_GraphSetConditional || function == RUNTIME_GraphLaunch
		|| function == RUNTIME_CurrentGraphExec;
}

/* "__cudaCDP2LaunchDeviceV2_ptsz" is LaunchDeviceV2, "cudaGraphSetConditional" GraphSetConditional. */
enum exec_function runtime_function(const char *name)
{
	static const char cdp[] = "__cudaCDP2", graph[] = "cudaGraph", per_thread[] = "_ptsz";
	const bool is_cdp = !strncmp(name, cdp, strlen(cdp));
	size_t n;

	if (!is_cdp && strncmp(name, graph, strlen(graph)))
		return RUNTIME_FUNCTIONS;
	name += is_cdp ? strlen(cdp) : strlen("cuda");
	n = strlen(name);
	if (n > strlen(per_thread) && !strcmp(name + n - strlen(per_thread), per_thread))
		n -= strlen(per_thread);
	for (size_t i = 0; i < RUNTIME_FUNCTIONS; i++)
		if (strlen(functions[i].name) == n && !memcmp(functions[i].name, name, n)
			&& is_cdp == !of_graphs(i))
			return (enum exec_function)i;
	return RUNTIME_FUNCTIONS;
}

const char *runtime_refusal(const char *name)
{
	static const struct { const char *prefix, *reason; } none[] = {
#define RUNTIME_NONE(prefix, reason) { prefix, reason },
#include "runtime.def"
	};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (!strncmp(name, none[i].prefix, strlen(none[i].prefix)))
			return none[i].reason;
	return NULL;
}

/* ---- memory of the caller ---- */

static void emit_access(struct warp *w, const struct xop *x, uint32_t lanes, const struct xplace *p,
	uint8_t mode, unsigned bytes, uint32_t overwritten, uint32_t unchanged)
{
	struct event e = ex_event(w, x, EV_ACCESS, lanes);

	if (!w->sink || (p->space != SP_SHARED && p->space != SP_GLOBAL)
		|| (p->space == SP_GLOBAL && !w->sink->want_global))
		return;
	e.access.space = p->space;
	e.access.owner = (uint16_t)(p->cta ? p->cta->rank : w->cta->rank);
	e.access.mode = mode;
	e.access.bytes = bytes;
	e.access.at.base = p->addr;
	e.access.overwritten = overwritten;
	e.access.unchanged = unchanged;
	ex_emit(w->cluster, &e);
}

/* Stores what the first parameter points to. False after a fault. */
static bool store_out(struct warp *w, const struct xop *x, unsigned l, uint64_t addr, const void *from,
	unsigned bytes)
{
	struct xplace p;

	if (!ex_resolve(w, x, 1u << l, PS_none, addr, bytes, bytes % 8 ? 4 : 8, true, &p))
		return false;
	emit_access(w, x, 1u << l, &p, MODE_WRITE, bytes, 0, memcmp(p.host, from, bytes) ? 0 : 1u << l);
	memcpy(p.host, from, bytes);
	return true;
}

/* Loads what the first parameter points to. False after a fault. */
static bool load_from(struct warp *w, const struct xop *x, unsigned l, uint64_t addr, void *to, unsigned bytes)
{
	struct xplace p;

	if (!ex_resolve(w, x, 1u << l, PS_none, addr, bytes, 8, false, &p))
		return false;
	emit_access(w, x, 1u << l, &p, MODE_READ, bytes, 0, 0);
	memcpy(to, p.host, bytes);
	return true;
}

/* Sets c->arg. False after a fault. */
static bool arguments(struct warp *w, const struct xop *x, unsigned l, const struct call_site *s,
	struct exec_call *c)
{
	const unsigned from = functions[s->runtime].from;
	size_t n = 0;

	for (unsigned k = 0; k < s->narg; k++) {
		const size_t words = (s->arg[k].bytes + 7) / 8;

		if (!k && from) {
			if (!load_from(w, x, l, builtin_argument(w, s, l, 0), c->arg, from))
				return false;
			n = from / 8;
			continue;
		}
		if (n + words > ARRAY_SIZE(c->arg))
			break;
		memcpy(&c->arg[n], builtin_frame(w, l, s->arg[k].at), s->arg[k].bytes);
		n += words;
	}
	return true;
}

/* ---- parameters of a launch ----
 *
 * A buffer is a block of the device heap, behind this header. */

struct buffer {
	uint64_t kernel;           /* the function, or 0: LaunchDevice says it */
	uint64_t bytes;            /* of parameters */
	uint32_t grid[3], block[3], shared, magic;
};
enum { BUFFER_MAGIC = 0x43445032 };

static const struct ptx_func *function_at(const struct warp *w, uint64_t pointer)
{
	const struct ptx_module *m = w->worker->grid->k->module->ptx;
	const uint64_t index = FUNC_INDEX(pointer);

	return FUNC_POINTER(index) == pointer && index < m->nfunc && m->func[index].entry
		? &m->func[index] : NULL;
}

static uint64_t new_buffer(struct warp *w, const struct xop *x, unsigned l, const struct buffer *b)
{
	struct buffer *at = heap_malloc(sizeof *b + b->bytes);

	if (!at)
		return 0;
	*at = *b;
	at->magic = BUFFER_MAGIC;
	memset(at + 1, 0, b->bytes);
	builtin_heap_event(w, x, l, at, false);
	return (uintptr_t)(at + 1);
}

static void dim3_of(const struct warp *w, const struct call_site *s, unsigned l, unsigned n, uint32_t to[3])
{
	if (n < s->narg && s->arg[n].bytes >= 3 * sizeof *to)
		memcpy(to, builtin_frame(w, l, s->arg[n].at), 3 * sizeof *to);
}

static uint64_t parameter_buffer(struct warp *w, const struct xop *x, const struct call_site *s, unsigned l)
{
	struct buffer b = { 0 };
	const struct ptx_func *f;

	if (s->runtime == RUNTIME_GetParameterBuffer) {
		b.bytes = builtin_argument(w, s, l, 1);
		return new_buffer(w, x, l, &b);
	}
	b.kernel = builtin_argument(w, s, l, 0);
	f = function_at(w, b.kernel);
	if (!f)
		return 0;
	b.bytes = f->param_bytes;
	dim3_of(w, s, l, 1, b.grid);
	dim3_of(w, s, l, 2, b.block);
	b.shared = (uint32_t)builtin_argument(w, s, l, 3);
	return new_buffer(w, x, l, &b);
}

/* What a launch was given; the buffer is in *free_it. Returns an error. */
static int launch_of(const struct warp *w, const struct call_site *s, unsigned l, struct exec_call *c,
	struct buffer **free_it)
{
	const bool v2 = s->runtime == RUNTIME_LaunchDeviceV2;
	struct buffer *b = (struct buffer *)(uintptr_t)builtin_argument(w, s, l, v2 ? 0 : 1) - 1;
	const struct ptx_func *f;

	if (!heap_bytes(b) || b->magic != BUFFER_MAGIC)
		return INVALID_VALUE;
	*free_it = b;
	memcpy(c->grid, b->grid, sizeof c->grid);
	memcpy(c->block, b->block, sizeof c->block);
	c->shared_dynamic = b->shared;
	c->stream = builtin_argument(w, s, l, v2 ? 1 : 5);
	if (!v2) {
		dim3_of(w, s, l, 2, c->grid);
		dim3_of(w, s, l, 3, c->block);
		c->shared_dynamic = (uint32_t)builtin_argument(w, s, l, 4);
	}
	f = function_at(w, v2 ? b->kernel : builtin_argument(w, s, l, 0));
	if (!f)
		return INVALID_DEVICE_FUNCTION;
	if (b->bytes < f->param_bytes)
		return INVALID_VALUE;
	c->kernel = f->name;
	c->params = b + 1;
	return SUCCESS;
}

/* Launches of so many grids, whose numbers follow each other. Returns the first number. */
static uint64_t emit_launches(struct warp *w, const struct xop *x, unsigned l, uint64_t n)
{
	static _Atomic uint64_t launches;
	const uint64_t first = atomic_fetch_add(&launches, n ? n : 1) + 1;
	struct event e = ex_event(w, x, EV_GRID_LAUNCH, 1u << l);

	for (uint64_t k = 0; k < n && w->sink && w->sink->want_global; k++) {
		e.grid_launch.number = first + k;
		ex_emit(w->cluster, &e);
	}
	return first;
}

/* ---- texts of errors ---- */

/* The address of a copy that kernels can read; each text is copied once. */
static uint64_t readable(const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static VEC(struct { const char *text; char *copy; }) all;
	char *copy = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < all.n && !copy; i++)
		copy = all.at[i].text == text ? all.at[i].copy : NULL;
	if (!copy) {
		copy = base_strdup(text);
		exec_mem_add(copy, strlen(copy) + 1, MEM_MODULE, true);
		vec_push(&all, ((__typeof__(*all.at)){ text, copy }));
	}
	pthread_mutex_unlock(&lock);
	return (uintptr_t)copy;
}

/* ---- one call ---- */

static uint32_t *last_error(struct warp *w, unsigned l)
{
	if (!w->device_error)
		w->device_error = base_alloc(LANES * sizeof *w->device_error);
	return &w->device_error[l];
}

static int ask(const struct warp *w, struct exec_call *c)
{
	const struct exec_observer *o = w->worker->grid->l->observer;

	return o->call(o->user, c);
}

/* An error, or (GetLastError, GetParameterBuffer ...) another result. */
static uint64_t answer(struct warp *w, const struct xop *x, const struct call_site *s, unsigned l,
	struct exec_call *c)
{
	struct buffer *buffer = NULL;
	int error = SUCCESS;
	uint64_t at, was;

	switch (s->runtime) {
	case RUNTIME_GetParameterBuffer:
	case RUNTIME_GetParameterBufferV2:
		at = parameter_buffer(w, x, s, l);
		if (!at)
			*last_error(w, l) = MEMORY_ALLOCATION;
		return at;
	case RUNTIME_GetLastError:
	case RUNTIME_PeekAtLastError:
		was = w->device_error ? w->device_error[l] : SUCCESS;
		if (w->device_error && s->runtime == RUNTIME_GetLastError)
			w->device_error[l] = SUCCESS;
		return was;
	case RUNTIME_GetErrorString:
	case RUNTIME_GetErrorName:
		ask(w, c);
		return readable((const char *)(uintptr_t)c->value);
	case RUNTIME_Malloc:
		at = (uintptr_t)heap_malloc(c->arg[1]);
		memcpy(c->out, &at, sizeof at);
		if (at)
			builtin_heap_event(w, x, l, (void *)(uintptr_t)at, false);
		else
			error = MEMORY_ALLOCATION;
		break;
	case RUNTIME_Free:
		at = c->arg[0];
		builtin_heap_event(w, x, l, (void *)(uintptr_t)at, true);
		if (at && !heap_free((void *)(uintptr_t)at))
			error = INVALID_VALUE;
		break;
	case RUNTIME_GraphLaunch: /* how many grids is it? */
		error = ask(w, c);
		if (!error) {
			c->number = emit_launches(w, x, l, c->value);
			error = ask(w, c);
		}
		break;
	case RUNTIME_LaunchDevice:
	case RUNTIME_LaunchDeviceV2:
		error = launch_of(w, s, l, c, &buffer);
		/* fall through */
	default:
		if (c->effect == RUNTIME_RUNS && !error)
			c->number = emit_launches(w, x, l, 1);
		if (!error)
			error = ask(w, c);
	}
	if (buffer) {
		builtin_heap_event(w, x, l, buffer, true);
		buffer->magic = 0;
		heap_free(buffer);
	}
	if (error)
		*last_error(w, l) = (uint32_t)error;
	return (uint64_t)error;
}

/* cudaGraphSetConditional() is a plain write, of as many lanes as name the same condition. */
static enum step set_condition(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct call_site *s)
{
	while (lanes) {
		struct exec_call c = { .function = s->runtime,
			.arg = { builtin_argument(w, s, (unsigned)__builtin_ctz(lanes), 0) } };
		uint32_t same = 0, overwritten = 0, unchanged = 0, value = 0;
		struct xplace p;

		ask(w, &c);
		if (!c.value)
			return ex_fault(w, x, lanes & -lanes, FAULT_TARGET, SP_ANY, c.arg[0], 0,
				"cudaGraphSetConditional of 0x%llx, which is no condition of a graph whose launch "
				"this kernel is part of", (unsigned long long)c.arg[0]);
		if (!ex_resolve(w, x, lanes & -lanes, PS_global, c.value, sizeof value, sizeof value, true, &p))
			return STEP_FAULT;
		for EACH_LANE(l, lanes)
			if (builtin_argument(w, s, l, 0) == c.arg[0]) {
				same |= 1u << l;
				value = (uint32_t)builtin_argument(w, s, l, 1);
			}
		for EACH_LANE(m, same) {
			const uint32_t v = (uint32_t)builtin_argument(w, s, m, 1);

			overwritten |= (uint32_t)(v != value) << m;
			unchanged |= (uint32_t)!memcmp(p.host, &v, sizeof v) << m;
		}
		emit_access(w, x, same, &p, MODE_WRITE, sizeof value, overwritten, unchanged);
		memcpy(p.host, &value, sizeof value);
		lanes &= ~same;
	}
	ex_work(w);
	return STEP_NEXT;
}

enum step runtime_current_graph(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct exec_observer *o = w->worker->grid->l->observer;
	struct exec_call c = { .function = RUNTIME_CurrentGraphExec };

	if (o && o->call)
		ask(w, &c);
	for EACH_LANE(l, lanes)
		r64(w, x->o[0])[l] = c.value;
	return STEP_NEXT;
}

enum step runtime_call(struct warp *w, const struct xop *x, uint32_t lanes, const struct call_site *s)
{
	const struct exec_observer *o = w->worker->grid->l->observer;
	const struct function *f = &functions[s->runtime];

	if (!o || !o->call || w->worker->grid->l->hardware)
		return ex_refuse_op(w, x, "the device runtime (cuda%s) is executed by the cpu backend under "
			"consan-run only", f->name);
	if (s->runtime == RUNTIME_GraphSetConditional)
		return set_condition(w, x, lanes, s);
	for EACH_LANE(l, lanes) {
		struct exec_call c = { .function = s->runtime, .effect = f->effect,
			.cta = w->cta->linear };
		const struct ptx_func *named;
		uint64_t result;

		if (!arguments(w, x, l, s, &c))
			return STEP_FAULT;
		named = f->in ? function_at(w, c.arg[f->in - 1]) : NULL;
		c.kernel = named ? named->name : NULL;
		result = answer(w, x, s, l, &c);
		if (f->out && !result && !store_out(w, x, l, c.arg[0], c.out, f->out))
			return STEP_FAULT;
		builtin_give(w, s, l, result);
	}
	ex_work(w);
	return STEP_NEXT;
}
