/* module: storage of global and constant variables of a PTX module. Each is an allocation of its
 * own in the memory map, so that an access past its end is detected. Shared and local variables are
 * laid out by the kernel. */
#include "internal.h"

#include <stdlib.h>

static bool has_storage(const struct ptx_var *v)
{
	return (v->space == PS_global || v->space == PS_const) && !v->is_extern && !v->is_param;
}

static int by_var(const void *a, const void *b)
{
	const struct placed *p = a, *q = b;

	return (p->var > q->var) - (p->var < q->var);
}

unsigned char *module_place(const struct exec_module *m, const struct ptx_var *v)
{
	struct placed key = { .var = v };
	const struct placed *p = bsearch(&key, m->placed, m->nplaced, sizeof key, by_var);

	return p ? p->at : NULL;
}

static void place(struct exec_module *m, const struct ptx_var *v)
{
	uint64_t align = v->align < 256 ? 256 : v->align;
	uint64_t bytes = v->size ? v->size : 1;
	unsigned char *at = aligned_alloc(align, (bytes + align - 1) & ~(align - 1));

	if (!at)
		base_die("no memory for variable %s, %llu bytes", v->name,
			(unsigned long long)bytes);
	memset(at, 0, bytes);
	if (v->init)
		memcpy(at, v->init, v->size);
	m->placed[m->nplaced++] = (struct placed){ v, at, false };
	if (v->space == PS_const)
		m->const_bytes += v->size;
	exec_mem_put(&(struct exec_mem){ (uintptr_t)at, bytes, v->managed ? MEM_MANAGED : MEM_MODULE,
		v->space == PS_const, m->device, v->managed ? NULL : exec_device_memory(m->device), false, NULL });
}

/* The variable of this name with storage: what an extern declaration refers to. */
static const struct ptx_var *definition(const struct ptx_module *p, const char *name)
{
	for (size_t i = 0; i < p->nvar; i++)
		if (has_storage(&p->var[i]) && !strcmp(p->var[i].name, name))
			return &p->var[i];
	return NULL;
}

static bool relocate(struct exec_module *m, const struct placed *p, struct consan_err *e)
{
	for (size_t i = 0; i < p->var->nreloc; i++) {
		const struct ptx_reloc *r = &p->var->reloc[i];
		const unsigned char *to = r->var ? module_place(m, r->var) : NULL;
		uint64_t v;

		if (r->func)
			v = FUNC_POINTER(r->func - m->ptx->func);
		else if (to)
			v = (uint64_t)(uintptr_t)to;
		else
			return err_set(e, CONSAN_ERR_PTX_SYMBOL, 0, 0,
				"the initialiser of %s refers to %s, "
				"which has no address in this module", p->var->name, r->name);
		v += (uint64_t)r->addend;
		if (r->bytes == 1)
			p->at[r->offset] = (unsigned char)(v >> r->shift);
		else
			memcpy(p->at + r->offset, &v, r->bytes);
	}
	return true;
}

static bool same_var(const struct ptx_var *a, const struct ptx_var *b)
{
	return !a->func == !b->func && !strcmp(a->name, b->name) && a->index == b->index
		&& a->size == b->size && (!a->func || !strcmp(a->func->name, b->func->name));
}

/* Uses the variable's storage in another module. */
static bool borrow(struct exec_module *m, const struct ptx_var *v, const struct exec_module *like)
{
	for (size_t i = 0; i < like->nplaced; i++)
		if (same_var(v, like->placed[i].var)) {
			m->placed[m->nplaced++] = (struct placed){ v, like->placed[i].at, true };
			m->const_bytes += v->space == PS_const ? v->size : 0;
			return true;
		}
	return false;
}

/* The variable's storage is where the caller says. */
static bool lend(struct exec_module *m, const struct ptx_var *v, const struct exec_places *places)
{
	uint64_t at;

	if (!places || v->space != PS_global || !places->at(places->user, v->name, &at))
		return false;
	m->placed[m->nplaced++] = (struct placed){ v, (unsigned char *)(uintptr_t)at, true };
	return true;
}

static struct exec_module *open_module(struct ptx_module *ptx)
{
	struct exec_module *m = base_alloc(sizeof *m);
	size_t n = ptx->nvar;

	mem_windows_init();
	m->ptx = ptx;
	pthread_mutex_init(&m->lock, NULL);
	m->kernel = base_alloc((ptx->nfunc + 1) * sizeof(struct exec_kernel *));
	m->site = base_alloc((ptx->nfunc + 1) * sizeof *m->site);
	for (size_t f = 0; f < ptx->nfunc; f++)
		n += ptx->func[f].nvar;
	m->nregs = base_alloc((ptx->nfunc + 1) * sizeof *m->nregs);
	m->placed = base_alloc((n + 1) * sizeof *m->placed);
	return m;
}

struct exec_module *exec_load_like(struct ptx_module *ptx, const struct exec_module *like,
	struct consan_err *e)
{
	struct exec_module *m = open_module(ptx);
	bool ok = ptx->nfunc == like->ptx->nfunc;

	m->device = like->device;
	for (size_t i = 0; ok && i < ptx->nvar; i++)
		ok = !has_storage(&ptx->var[i]) || borrow(m, &ptx->var[i], like);
	for (size_t f = 0; ok && f < ptx->nfunc; f++) {
		m->nregs[f] = like->nregs[f];
		for (size_t i = 0; ok && i < ptx->func[f].nvar; i++)
			ok = !has_storage(&ptx->func[f].var[i]) || borrow(m, &ptx->func[f].var[i], like);
	}
	qsort(m->placed, m->nplaced, sizeof *m->placed, by_var);
	if (ok)
		return m;
	err_set(e, CONSAN_ERR_PTX_SYMBOL, 0, 0, "the module has other variables or functions");
	exec_unload(m);
	return NULL;
}

static struct exec_module *load(struct ptx_module *ptx, unsigned device, const struct exec_module *other,
	const struct exec_places *places, struct consan_err *e)
{
	struct exec_module *m = open_module(ptx);

	m->device = device;
	for (size_t i = 0; i < ptx->nvar; i++)
		if (has_storage(&ptx->var[i]) && !lend(m, &ptx->var[i], places)
				&& !(other && ptx->var[i].managed && borrow(m, &ptx->var[i], other)))
			place(m, &ptx->var[i]);
	for (size_t f = 0; f < ptx->nfunc; f++)
		for (size_t i = 0; i < ptx->func[f].nvar; i++)
			if (has_storage(&ptx->func[f].var[i]))
				place(m, &ptx->func[f].var[i]);
	qsort(m->placed, m->nplaced, sizeof *m->placed, by_var);
	for (size_t i = 0; i < m->nplaced; i++)
		if (!m->placed[i].lent && !relocate(m, &m->placed[i], e)) {
			exec_unload(m);
			return NULL;
		}
	return m;
}

struct exec_module *exec_load_on(struct ptx_module *ptx, unsigned device,
	const struct exec_module *other, struct consan_err *e)
{
	return load(ptx, device, other, NULL, e);
}

struct exec_module *exec_load_at(struct ptx_module *ptx, const struct exec_places *places,
	struct consan_err *e)
{
	return load(ptx, 0, NULL, places, e);
}

struct exec_module *exec_load(struct ptx_module *ptx, struct consan_err *e)
{
	return exec_load_on(ptx, 0, NULL, e);
}

void exec_unload(struct exec_module *m)
{
	for (size_t i = 0; i < m->nplaced; i++) {
		if (m->placed[i].lent)
			continue;
		exec_mem_remove(m->placed[i].at);
		free(m->placed[i].at);
	}
	for (size_t i = 0; i < m->ptx->nfunc; i++) {
		free(m->site[i]);
		if (m->kernel[i]) {
			struct arena a = m->kernel[i]->arena; /* the kernel is allocated in it */

			arena_free(&a);
		}
	}
	free(m->kernel);
	free(m->site);
	free(m->nregs);
	free(m->placed);
	pthread_mutex_destroy(&m->lock);
	ptx_free(m->ptx);
	free(m);
}

void exec_set_registers(struct exec_module *m, const char *kernel, uint32_t n)
{
	const struct ptx_func *f = ptx_find(m->ptx, kernel);

	if (f && f->entry)
		m->nregs[f - m->ptx->func] = n;
}

bool exec_symbol(const struct exec_module *m, const char *name, void **at, uint64_t *bytes)
{
	const struct ptx_var *v = definition(m->ptx, name);

	if (!v)
		return false;
	*at = module_place(m, v);
	*bytes = v->size;
	return true;
}

unsigned char *dec_global_place(struct decoder *d, const struct ptx_var *v)
{
	const struct exec_module *m = d->k->module;

	if (v->is_extern)
		v = definition(m->ptx, v->name);
	return v ? module_place(m, v) : NULL;
}
