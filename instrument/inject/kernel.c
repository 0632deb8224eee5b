/* kernel: loads a kernel that was cut out of its module (cut.c) beside the program's module: it gets
 * the addresses of that module's variables in global memory, before each launch the contents of its
 * constants, and the attributes of the program's function. Where a kernel records is said by a variable
 * of the module that it is loaded in, so that it is loaded again for launches that run at the same time. */
#include "cut.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/record/record.h"
#include "instrument/rewrite/rewrite.h"

struct constant { CUdeviceptr from, to; size_t bytes; };

struct loaded {
	CUmodule from;             /* the program's */
	CUlibrary library;         /* of which that is, or NULL */
	struct inject_home home;
	struct cut *cut;
	CUmodule own;              /* NULL: why */
	CUfunction f;
	CUdeviceptr variable;
	VEC(struct constant) constant;
	unsigned registers;        /* the most that a thread may have; 0: no limit */
	bool launched;             /* not only loaded ahead: cut_get() was called for it */
	char why[INJECT_WHY];
};

/* Variables that the driver does not report, as the program's code does not need them: texts of
 * messages. Kernels share one copy. */
struct missing {
	CUmodule from;
	CUlibrary library;
	struct inject_home home;
	const char *name;
	CUmodule own;
};

static struct {
	pthread_mutex_t lock;
	VEC(struct loaded *) at;
	VEC(struct missing) missing;
	struct { CUcontext context; size_t modules; } ahead; /* load_ahead() was called for this one, when
						there were so many */
} kernels = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool fail(struct loaded *l, const char *what, CUresult r)
{
	const char *name = "?";

	cu.p_cuGetErrorName(r, &name);
	snprintf(l->why, sizeof l->why, "%s (%s)", what, name);
	return false;
}

/* ---- variables ---- */

static bool find_missing(struct loaded *l, const char *name, CUdeviceptr *at)
{
	const struct slices *s = inject_slices(l->cut->image);
	struct text text = { 0 };
	CUmodule own = NULL;
	size_t bytes, k = 0;
	CUresult r;

	while (k < kernels.missing.n && (kernels.missing.at[k].from != l->from ||
			strcmp(kernels.missing.at[k].name, name)))
		k++;
	if (k == kernels.missing.n) {
		slices_declaration(s, name, &text);
		r = text.at ? cu.p_cuModuleLoadData(&own, text.at) : CUDA_ERROR_NOT_FOUND;
		text_free(&text);
		if (r)
			return false;
		vec_push(&kernels.missing, ((struct missing){ l->from, l->library, l->home, name,
			own }));
	}
	return !cu.p_cuModuleGetGlobal(at, &bytes, kernels.missing.at[k].own, name);
}

static bool share_variables(struct loaded *l)
{
	const struct gpu_module *m = l->cut->module;
	VEC(CUdeviceptr) table = { 0 };
	CUdeviceptr at;
	const char *name;
	size_t bytes;
	CUresult r = 0;

	for (size_t k = 0; !r && (name = gpu_module_global(m, k)); k++) {
		if (cu.p_cuModuleGetGlobal(&at, &bytes, l->from, name) &&
				!find_missing(l, name, &at))
			r = CUDA_ERROR_NOT_FOUND;
		vec_push(&table, at);
	}
	if (r)
		snprintf(l->why, sizeof l->why, "the driver does not know the address of %.200s",
			gpu_module_global(m, table.n - 1));
	else if (table.n)
		r = cu.p_cuMemcpyHtoDAsync(l->variable + sizeof(struct record_params), table.at,
			table.n * sizeof *table.at, NULL);
	if (r && !*l->why)
		fail(l, "the addresses of its variables could not be written", r);
	vec_free(&table);
	return !r;
}

static void find_constants(struct loaded *l)
{
	struct constant c;
	const char *name;
	size_t bytes;

	for (size_t k = 0; (name = gpu_module_const(l->cut->module, k)); k++)
		if (!cu.p_cuModuleGetGlobal(&c.from, &c.bytes, l->from, name) &&
				!cu.p_cuModuleGetGlobal(&c.to, &bytes, l->own, name)) {
			c.bytes = bytes < c.bytes ? bytes : c.bytes;
			vec_push(&l->constant, c);
		}
}

/* ---- loading ---- */

static void unload(struct loaded *l)
{
	if (l->own && cu.p_cuModuleUnload)
		cu.p_cuModuleUnload(l->own);
	l->own = NULL;
	vec_free(&l->constant);
}

/* An assembler may be newer than the driver, which then assembles the text itself. */
static CUresult load_code(struct loaded *l)
{
	struct cut *c = l->cut;
	const char *text;
	size_t n, bytes = c->bytes;
	void *code = c->code;
	CUresult r = CUDA_ERROR_NOT_FOUND;

	text = gpu_module_text(c->module, &n);
	if (l->registers || !code)
		code = inject_assemble(text, n, l->registers, true, &bytes, l->why);
	if (code)
		r = cu.p_cuModuleLoadData(&l->own, code);
	if (r)
		r = cu.p_cuModuleLoadData(&l->own, text);
	if (code != c->code)
		free(code);
	return r;
}

static bool load(struct loaded *l)
{
	const struct gpu_module *m = l->cut->module;
	size_t bytes;
	CUresult r = load_code(l);

	if (r && l->why[0]) /* the assembler's message */
		return false;
	if (r)
		return fail(l, "the driver refused the instrumented kernel", r);
	l->why[0] = 0;
	r = cu.p_cuModuleGetFunction(&l->f, l->own, l->cut->kernel);
	if (!r && cu.p_cuFuncLoad) /* not when it is first launched */
		cu.p_cuFuncLoad(l->f);
	if (!r)
		r = cu.p_cuModuleGetGlobal(&l->variable, &bytes, l->own, gpu_module_variable(m));
	if (r)
		return fail(l, "the instrumented kernel was not found", r);
	find_constants(l);
	return share_variables(l);
}

/* With the lock held. Loads the kernel in a module of its own. */
static struct loaded *load_another(const struct inject_bound *b, struct cut *cut, unsigned registers)
{
	struct loaded *l = base_alloc(sizeof *l);

	*l = (struct loaded){ .from = b->driver, .library = b->library, .home = inject_home(), .cut = cut,
		.registers = registers };
	vec_push(&kernels.at, l);
	if (!cut->module)
		snprintf(l->why, sizeof l->why, "%s", cut->why);
	else if (!load(l))
		unload(l);
	return l;
}

/* With the lock held. In how many modules a kernel is loaded; *l: one that no launch uses which runs beside
 * `of`, else any; NULL: there is none. */
static unsigned find_loaded(CUmodule from, const char *kernel, const struct inject_launch *of, struct loaded **l)
{
	unsigned n = 0;

	*l = NULL;
	for (size_t k = 0; k < kernels.at.n; k++) {
		struct loaded *x = kernels.at.at[k];

		if (x->from != from || strcmp(x->cut->kernel, kernel))
			continue;
		if (!*l || (of && (*l)->own && inject_runs_with(of, (*l)->variable)))
			*l = x;
		n++;
	}
	return n;
}

#define REGISTERS_OF_SM 65536u

/* Hooks need registers, so that a block may be too large for the instrumented kernel. */
static bool fits(const struct loaded *l, CUfunction original, unsigned threads)
{
	int most = 0, own = 0;

	return cu.p_cuFuncGetAttribute(&own, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, l->f)
		|| cu.p_cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, original)
		|| threads > (unsigned)most || threads <= (unsigned)own;
}

/* Assembles it again with fewer registers. */
static void fit(struct loaded *l, unsigned threads)
{
	unload(l);
	l->registers = REGISTERS_OF_SM / threads & ~7u;
	if (!load(l))
		unload(l);
}

static void copy_attributes(CUfunction from, CUfunction to)
{
	static const CUfunction_attribute which[] = {
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
		CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
		CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
		CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
		CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
	};
	int a, b;

	for (size_t k = 0; cu.p_cuFuncSetAttribute && k < ARRAY_SIZE(which); k++)
		if (!cu.p_cuFuncGetAttribute(&a, which[k], from) &&
				!cu.p_cuFuncGetAttribute(&b, which[k], to) && a != b)
			cu.p_cuFuncSetAttribute(to, which[k], a);
}

/* ---- before it is needed ---- */

/* The driver loads nothing while a kernel runs in the context: a kernel that waits for another one, which
 * is not loaded, would wait for ever. So where launches may overlap, what was made ahead (cut.c) is loaded
 * before the first launch and when modules have been added, and each kernel that is launched in two
 * modules, or, if it was seen to overlap, in as many as there are places to record in (pool.c). */
#define COPIES 2
#define COPIES_BESIDE 4
/* Seconds to wait for what is being made. */
#define SETTLE 2.0

/* With the lock held. */
static void load_ahead(void)
{
	const size_t modules = inject_modules();
	struct inject_bound b;
	struct loaded *any;
	struct cut *c;
	CUcontext now = NULL;

	cu.p_cuCtxGetCurrent(&now);
	if (kernels.ahead.context == now && kernels.ahead.modules == modules)
		return;
	kernels.ahead.context = now;
	kernels.ahead.modules = modules;
	cut_settle(SETTLE);
	for (size_t m = 0; inject_nth_module(m, &b); m++)
		for (size_t k = 0; b.driver && cut_nth(k, &c); k++)
			if (c && c->image == b.image && !find_loaded(b.driver, c->kernel, NULL, &any))
				load_another(&b, c, 0);
}

/* With the lock held. */
static void load_copies(const struct inject_bound *b, const struct loaded *of)
{
	const unsigned most = inject_runs_beside(of->cut->kernel) ? COPIES_BESIDE : COPIES;
	struct loaded *any;
	unsigned n = find_loaded(b->driver, of->cut->kernel, NULL, &any);

	while (of->own && n++ < most)
		load_another(b, of->cut, of->registers);
}

/* Waits until the driver can load, if this has to be. With the lock held, but not meanwhile. */
static bool may_load(const struct inject_launch *l, const struct inject_bound *b, const char *kernel)
{
	struct loaded *any;
	bool may = !inject_pending(l->context);

	if (may || find_loaded(b->driver, kernel, NULL, &any))
		return may;
	pthread_mutex_unlock(&kernels.lock);
	may = inject_await_loading(l);
	pthread_mutex_lock(&kernels.lock);
	return may;
}

bool inject_kernel(struct inject_launch *l, const struct inject_bound *b, char why[INJECT_WHY])
{
	const unsigned threads = l->block[0] * l->block[1] * l->block[2];
	const char *kernel = inject_name(l->original);
	const bool overlaps = inject_may_detach();
	CUresult r = 0;
	struct loaded *k;
	bool may;

	pthread_mutex_lock(&kernels.lock);
	may = may_load(l, b, kernel);
	if (may && overlaps)
		load_ahead();
	if (!find_loaded(b->driver, kernel, l, &k) && may)
		k = load_another(b, cut_get(b->image, kernel), 0);
	else if (!k || !k->launched)
		cut_launched(b->image, kernel);
	if (k)
		k->launched = true;
	if (k && k->own && !fits(k, l->original, threads)) {
		if (may)
			fit(k, threads);
		else
			k = NULL;
	}
	if (k && may && overlaps)
		load_copies(b, k);
	if (k && k->own) {
		copy_attributes(l->original, k->f);
		for (size_t i = 0; i < k->constant.n && !r; i++)
			r = cu.p_cuMemcpyDtoDAsync(k->constant.at[i].to, k->constant.at[i].from,
				k->constant.at[i].bytes, l->stream);
	}
	if (r)
		fail(k, "its constants could not be copied", r);
	else if (k && k->own) {
		l->module = k->cut->module;
		l->variable = k->variable;
		l->instead = l->function = k->f;
	}
	if (!l->module)
		snprintf(why, INJECT_WHY, "%s", k ? k->why : "the driver cannot load its instrumented code while "
			"another kernel runs, which had not ended; the next run loads it before");
	pthread_mutex_unlock(&kernels.lock);
	return l->module;
}

CUfunction inject_function(CUfunction f)
{
	CUmodule m;
	CUfunction own = inject_function_of(f, &m);
	struct inject_bound b = { 0 };
	struct loaded *k;

	if (own)
		b = inject_image_of(m, inject_name(own));
	if (!b.image || inject_whole(b.image))
		return f;
	pthread_mutex_lock(&kernels.lock);
	if (!find_loaded(b.driver, inject_name(own), NULL, &k))
		k = load_another(&b, cut_get(b.image, inject_name(own)), 0);
	if (k->own) {
		copy_attributes(own, k->f);
		f = k->f;
	}
	pthread_mutex_unlock(&kernels.lock);
	return f;
}

/* ---- the end ---- */

static void drop(size_t k, bool alive)
{
	struct loaded *l = kernels.at.at[k];

	if (alive)
		unload(l);
	vec_free(&l->constant);
	free(l);
	kernels.at.at[k] = kernels.at.at[--kernels.at.n];
}

void inject_kernels_unloaded(CUmodule from, CUlibrary library)
{
	pthread_mutex_lock(&kernels.lock);
	for (size_t k = 0; k < kernels.at.n; k++)
		if (from ? kernels.at.at[k]->from == from : kernels.at.at[k]->library == library)
			drop(k--, true);
	for (size_t k = 0; k < kernels.missing.n; k++)
		if (from ? kernels.missing.at[k].from == from : kernels.missing.at[k].library == library)
			kernels.missing.at[k--] = kernels.missing.at[--kernels.missing.n];
	pthread_mutex_unlock(&kernels.lock);
}

void inject_kernels_ended(CUcontext context, CUdevice device)
{
	pthread_mutex_lock(&kernels.lock);
	for (size_t k = 0; k < kernels.at.n; k++)
		if (inject_at_home(&kernels.at.at[k]->home, context, device))
			drop(k--, false);
	for (size_t k = 0; k < kernels.missing.n; k++)
		if (inject_at_home(&kernels.missing.at[k].home, context, device))
			kernels.missing.at[k--] = kernels.missing.at[--kernels.missing.n];
	pthread_mutex_unlock(&kernels.lock);
}
