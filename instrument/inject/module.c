/* module: replaces the images that the program loads by instrumented PTX. Chooses the PTX of a
 * fatbin as the driver would (libconsan/ptx/fatbin.h). */
#include "internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "instrument/rewrite/rewrite.h"
#include "libconsan/origin/origin.h"
#include "libconsan/ptx/ptx.h"

#define WRAPPER_MAGIC 0x466243b1u

struct wrapper { uint32_t magic, version; const void *data; void *more; };

struct inject_image {
	char *name;
	char *text;                /* the PTX, if kernels are cut out of it when they are launched */
	size_t n;
	struct slices *slices;     /* of the text; made when first needed */
	struct gpu_module *whole;  /* else the module, which the driver has loaded instrumented */
};

/* Loaded by cuModuleLoad* with the program's own code. */
struct module { CUmodule at; struct inject_image *image; struct inject_home home; };
struct library { CUlibrary at; struct inject_image *image; CUcontext loaded; };

static struct {
	pthread_mutex_t lock;
	VEC(struct inject_image *) at;
	VEC(struct inject_image *) early; /* that no module is of yet */
	VEC(struct module) module;
	VEC(struct library) library; /* and the last context in which each is certainly loaded */
	VEC(struct inject_bound) bound; /* found for modules of launched kernels */
	unsigned count;
} images = { .lock = PTHREAD_MUTEX_INITIALIZER };

static unsigned given_sm;
static char given_suffix;

void inject_set_sm(unsigned sm, char suffix)
{
	given_sm = sm;
	given_suffix = suffix;
}

unsigned inject_sm(char *suffix)
{
	int major = 9, minor = 0;
	CUdevice d = 0;

	if (given_sm) {
		*suffix = given_suffix;
		return given_sm;
	}
	if (!cu.p_cuDeviceGet(&d, 0)) {
		cu.p_cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d);
		cu.p_cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d);
	}
	*suffix = major >= 9 ? 'a' : 0;
	return (unsigned)(10 * major + minor);
}

/* Does the GPU run code of this fatbin that was made for another architecture than the PTX? A
 * program may look at the architecture of a kernel's code to choose how to launch it, so then it
 * must see that of the instrumented code. */
static bool runs_other_code(const void *image, const struct fatbin_image *ptx, unsigned sm,
	char suffix)
{
	struct fatbin_image at;
	struct consan_err e = { 0 };
	size_t cursor = 0;

	while (fatbin_next(image, fatbin_size(image), &cursor, &at, &e))
		if (fatbin_runs(&at, sm, suffix) && at.sm != ptx->sm)
			return true;
	return false;
}

/* The PTX of an image of at most `most` bytes, in any form; free() it. NULL: there is none,
 * which is reported. *other: runs_other_code() */
static char *ptx_of(const void *image, size_t most, const char *name, size_t *n, bool *other)
{
	const struct wrapper *w = image;
	struct fatbin_image best = { 0 };
	struct text has = { 0 };
	struct consan_err e = { 0 };
	char *ptx = NULL, suffix;
	unsigned sm = inject_sm(&suffix);

	if (w->magic == WRAPPER_MAGIC)
		image = w->data;
	if (!memcmp(image, "\177ELF", 4)) {
		ptx = origin_find(image, most, sm, suffix, n);
		if (!ptx)
			inject_remark(REMARK_NO_PTX, "%s: machine code only (a cubin), consan needs PTX",
				name);
		return ptx;
	}
	if (!fatbin_is(image, 4)) {
		*n = strnlen(image, most);
		return base_strndup(image, *n);
	}
	if (fatbin_size(image) > most) {
		inject_remark(REMARK_BAD_MODULE, "%s: the fatbin is truncated", name);
		return NULL;
	}
	if (fatbin_choose(image, fatbin_size(image), sm, suffix, false, &best, &has, &e))
		ptx = fatbin_unpack(&best, n, &e);
	else
		ptx = origin_find(image, fatbin_size(image), sm, suffix, n);
	if (!ptx && e.code)
		inject_remark(REMARK_BAD_MODULE, "%s: %s", name, e.text);
	else if (!ptx)
		inject_remark(REMARK_NO_PTX, "%s: no PTX for sm_%u%s (it holds %s); build with "
			"-gencode=arch=compute_%u%s,code=compute_%u%s", name, sm,
			fatbin_suffix(suffix), has.at ? has.at : "no image",
			sm, fatbin_suffix(suffix), sm, fatbin_suffix(suffix));
	else
		*other = best.at && runs_other_code(image, &best, sm, suffix);
	text_free(&has);
	return ptx;
}

static struct gpu_module *instrument(const char *name, const char *ptx, size_t n)
{
	double start = progress_seconds();
	struct consan_err e = { 0 };
	struct gpu_module *m = gpu_module_open(name, ptx, n, false, gpu_global(inject_session()),
		gpu_drains(inject_session()), &e);

	if (!m)
		inject_remark(REMARK_BAD_MODULE, "%s: line %d: %s", name, e.line, e.text);
	else if (gpu_times(inject_session()))
		inject_print("times of %s: instrumented %zu instructions in %.3f ms", name,
			gpu_module_insns(m), 1e3 * (progress_seconds() - start));
	return m;
}

static char *new_name(const char *what, const char *kind)
{
	struct text name = { 0 };

	pthread_mutex_lock(&images.lock);
	text_printf(&name, "%s: %s %u", what, kind, ++images.count);
	pthread_mutex_unlock(&images.lock);
	return name.at;
}

static void free_image(struct inject_image *i)
{
	free(i->name);
	free(i->text);
	free(i);
}

static bool same_text(const struct inject_image *a, const struct inject_image *b)
{
	return a->text && b->text && a->n == b->n && !memcmp(a->text, b->text, a->n);
}

struct inject_image *inject_image_early(char *ptx, size_t n, const char *what)
{
	struct inject_image *i;
	bool loaded = false;

	if (slice_refuses(ptx)) {
		free(ptx);
		return NULL;
	}
	i = base_alloc(sizeof *i);
	*i = (struct inject_image){ .name = new_name(what, "module"), .text = ptx, .n = n };
	pthread_mutex_lock(&images.lock);
	for (size_t k = 0; k < images.at.n; k++)
		loaded |= same_text(images.at.at[k], i);
	if (!loaded)
		vec_push(&images.early, i);
	pthread_mutex_unlock(&images.lock);
	if (!loaded)
		return i;
	free_image(i);
	return NULL;
}

/* The image of a module, or the early one that has its text. */
static struct inject_image *keep(struct inject_image *i)
{
	size_t k = 0;

	pthread_mutex_lock(&images.lock);
	while (k < images.early.n && !same_text(images.early.at[k], i))
		k++;
	if (k < images.early.n) {
		free_image(i);
		i = images.early.at[k];
		images.early.at[k] = images.early.at[--images.early.n];
	}
	vec_push(&images.at, i);
	pthread_mutex_unlock(&images.lock);
	return i;
}

/* kind: "module", or "JIT module" of one that no file holds */
static struct inject_image *open_image(const void *image, size_t most, const char *what,
	const char *kind)
{
	struct inject_image *i = base_alloc(sizeof *i);
	bool other = false;

	i->name = new_name(what, kind);
	i->text = ptx_of(image, most, i->name, &i->n, &other);
	if (i->text && (other || slice_refuses(i->text))) {
		i->whole = instrument(i->name, i->text, i->n);
		free(i->text);
		i->text = NULL;
	}
	if (!i->text && !i->whole) {
		free_image(i);
		return NULL;
	}
	return keep(i);
}

struct inject_image *inject_image(const void *image, const char *what)
{
	Dl_info info;

	return open_image(image, 1u << 30, what, dladdr(image, &info) ? "module" : "JIT module");
}

struct inject_image *inject_image_at(const void *image, size_t most, const char *what)
{
	return open_image(image, most, what, "module");
}

const char *inject_image_text(const struct inject_image *i)
{
	size_t n;

	return i && i->whole ? gpu_module_text(i->whole, &n) : NULL;
}

const char *inject_image_name(const struct inject_image *i)
{
	return i->name;
}

const char *inject_image_ptx(const struct inject_image *i, size_t *n)
{
	*n = i->n;
	return i->text;
}

const struct slices *inject_slices(struct inject_image *i)
{
	pthread_mutex_lock(&images.lock);
	if (!i->slices)
		i->slices = slices_open(i->text, i->n);
	pthread_mutex_unlock(&images.lock);
	return i->slices;
}

struct gpu_module *inject_whole(const struct inject_image *i)
{
	return i->whole;
}

/* Reads the whole file and appends zeros, so that a reader of headers does not read past the
 * end. */
static bool read_all(const char *path, struct text *t)
{
	static const char zeros[64];
	FILE *f = fopen(path, "re");
	char part[1 << 13];
	bool good;
	size_t n;

	if (!f)
		return false;      /* the driver reports the reason */
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		text_add(t, part, n);
	good = !ferror(f);
	fclose(f);
	n = t->n;
	text_add(t, zeros, sizeof zeros);
	t->n = n;
	return good;
}

struct inject_image *inject_image_in(const char *path)
{
	const char *name = strrchr(path, '/');
	struct inject_image *i = NULL;
	struct text all = { 0 };

	if (read_all(path, &all))
		i = open_image(all.at, all.n, name ? name + 1 : path, "module");
	text_free(&all);
	return i;
}

int inject_file(const struct inject_image *i, const char *path)
{
	const char *text = inject_image_text(i);
	int file = text ? memfd_create("consan-module", MFD_CLOEXEC) : -1;
	size_t n = text ? strlen(text) : 0;

	for (ssize_t done; file >= 0 && n; text += done, n -= (size_t)done) {
		done = write(file, text, n);
		if (done <= 0) {
			close(file);
			inject_remark(REMARK_BAD_MODULE,
				"%s: no memory for the instrumented PTX; the module "
				"runs unchanged and unchecked", path);
			return -1;
		}
	}
	return file;
}

/* ---- which image a module of the driver is of ---- */

struct inject_home inject_home(void)
{
	struct inject_home h = { 0 };

	cu.p_cuCtxGetCurrent(&h.context);
	if (!cu.p_cuCtxGetDevice(&h.device))
		h.primary = inject_is_primary(h.context, h.device);
	return h;
}

bool inject_at_home(const struct inject_home *h, CUcontext context, CUdevice device)
{
	return context ? h->context == context : h->primary && h->device == device;
}

void inject_loaded(struct inject_image *i, CUmodule m)
{
	if (i->whole) /* found by its variable */
		return;
	inject_module_unloaded(m);
	pthread_mutex_lock(&images.lock);
	vec_push(&images.module, ((struct module){ m, i, inject_home() }));
	pthread_mutex_unlock(&images.lock);
	inject_ahead(i);
}

void inject_library(struct inject_image *i, CUlibrary library)
{
	pthread_mutex_lock(&images.lock);
	vec_push(&images.library, ((struct library){ .at = library, .image = i }));
	pthread_mutex_unlock(&images.lock);
	if (!i->whole)
		inject_ahead(i);
}

void inject_load_libraries(void)
{
	CUcontext now = NULL;
	CUmodule m;

	cu.p_cuCtxGetCurrent(&now);
	pthread_mutex_lock(&images.lock);
	for (size_t k = 0; cu.p_cuLibraryGetModule && k < images.library.n; k++) {
		struct library *l = &images.library.at[k];

		if (l->image->whole && l->loaded != now && !cu.p_cuLibraryGetModule(&m, l->at))
			l->loaded = now;
	}
	pthread_mutex_unlock(&images.lock);
}

void inject_module_unloaded(CUmodule m)
{
	pthread_mutex_lock(&images.lock);
	images.bound.n = 0; /* they are found again */
	for (size_t k = 0; k < images.module.n; k++)
		if (images.module.at[k].at == m)
			images.module.at[k--] = images.module.at[--images.module.n];
	pthread_mutex_unlock(&images.lock);
	inject_kernels_unloaded(m, NULL);
}

void inject_library_unloaded(CUlibrary library)
{
	pthread_mutex_lock(&images.lock);
	images.bound.n = 0;
	for (size_t k = 0; k < images.library.n; k++)
		if (images.library.at[k].at == library)
			images.library.at[k--] = images.library.at[--images.library.n];
	pthread_mutex_unlock(&images.lock);
	inject_kernels_unloaded(NULL, library);
}

void inject_modules_ended(CUcontext context, CUdevice device)
{
	pthread_mutex_lock(&images.lock);
	images.bound.n = 0;
	for (size_t k = 0; k < images.library.n; k++)
		images.library.at[k].loaded = NULL;
	for (size_t k = 0; k < images.module.n; k++)
		if (inject_at_home(&images.module.at[k].home, context, device))
			images.module.at[k--] = images.module.at[--images.module.n];
	pthread_mutex_unlock(&images.lock);
	inject_kernels_ended(context, device);
}

size_t inject_modules(void)
{
	size_t n;

	pthread_mutex_lock(&images.lock);
	n = images.module.n + images.library.n;
	pthread_mutex_unlock(&images.lock);
	return n;
}

bool inject_nth_module(size_t k, struct inject_bound *b)
{
	CUcontext now = NULL;
	CUdevice device = 0;
	bool is;

	*b = (struct inject_bound){ 0 };
	cu.p_cuCtxGetCurrent(&now);
	cu.p_cuCtxGetDevice(&device);
	pthread_mutex_lock(&images.lock);
	is = k < images.module.n + images.library.n;
	if (k < images.module.n) {
		const struct module *m = &images.module.at[k];

		if (inject_at_home(&m->home, now, device))
			*b = (struct inject_bound){ .driver = m->at, .image = m->image };
	} else if (is && cu.p_cuLibraryGetModule) {
		const struct library *l = &images.library.at[k - images.module.n];

		if (!l->image->whole && !cu.p_cuLibraryGetModule(&b->driver, l->at))
			*b = (struct inject_bound){ .driver = b->driver, .library = l->at, .image = l->image };
	}
	pthread_mutex_unlock(&images.lock);
	return is;
}

void inject_refused(CUresult why, CUresult own)
{
	const char *name = "";

	cu.p_cuGetErrorName(why, &name);
	inject_remark(REMARK_BAD_MODULE, "the driver refused the instrumented PTX (%s); %s", name,
		own ? "the driver also refuses the original"
		: "the module runs unchanged and unchecked");
}

/* With the lock held. Asking for the module of a library may load it, so those without such a kernel
 * are not asked. */
static void find_image(struct inject_bound *b, const char *kernel)
{
	size_t bytes;
	CUmodule m;

	for (size_t k = 0; k < images.module.n && !b->image; k++)
		if (images.module.at[k].at == b->driver)
			b->image = images.module.at[k].image;
	for (size_t k = images.at.n; k-- > 0 && !b->image;)
		if (images.at.at[k]->whole && !cu.p_cuModuleGetGlobal(&b->variable, &bytes,
				b->driver, gpu_module_variable(images.at.at[k]->whole)))
			b->image = images.at.at[k];
	for (size_t k = images.library.n; k-- > 0 && !b->image && cu.p_cuLibraryGetModule;) {
		const struct library *l = &images.library.at[k];

		if (!l->image->whole && strstr(l->image->text, kernel) &&
				!cu.p_cuLibraryGetModule(&m, l->at) && m == b->driver) {
			b->image = l->image;
			b->library = l->at;
		}
	}
}

struct inject_bound inject_image_of(CUmodule driver, const char *kernel)
{
	struct inject_bound b = { .driver = driver };
	size_t at = 0;

	pthread_mutex_lock(&images.lock);
	while (at < images.bound.n && images.bound.at[at].driver != driver)
		at++;
	if (at == images.bound.n) {
		find_image(&b, kernel);
		vec_push(&images.bound, b);
	}
	b = images.bound.at[at];
	pthread_mutex_unlock(&images.lock);
	return b;
}
