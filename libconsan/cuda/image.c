/* image: modules of the program, from their bytes to loaded PTX. Chooses among the images of
 * a fatbin as the driver would for the emulated GPU; if there is only machine code, looks up the PTX
 * that it was made from. Does not interpret PTX. */
#include "libconsan/origin/origin.h"
#include "libconsan/ptx/ptx.h"
#include "queue.h"

#include <dlfcn.h>
#include <errno.h>
#include <fatbinary_section.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_NAME_MAX = 256 };
enum form { FORM_FATBIN, FORM_PTX, FORM_CUBIN, FORM_UNKNOWN };

struct image {
	char name[IMAGE_NAME_MAX];    /* for reports: "prog: module 2" */
	enum form form;
	const void *bytes;
	size_t size;
	void *owned;                /* our copy of the bytes, or NULL */
	void *const *parts;         /* fatbins of separately compiled files, or NULL */
	/* Each device has a module of its own, with its own variables but for managed ones, which the
	 * module that was loaded first has. state: the result of loading; -1: not loaded yet */
	struct consan_module *module[CONSAN_DEVICES], *first;
	int state[CONSAN_DEVICES];
	int device;                 /* a CUmodule: its device; -1: all */
	int target;                 /* the device for which it is being loaded */
	const char *library;        /* consan_library() of the file that has it, or NULL */
	bool made;                  /* the program made or read it: no file that is loaded has it */
	VEC(struct func *) func;
	VEC(struct var *) var;
	VEC(const void *) stub, shadow; /* registered host stubs and host copies of variables */
};

/* Recursive: loading an image looks up functions, and a lookup loads the image. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static unsigned images;

/* ---- the form of the bytes ---- */

static bool is_elf(const void *bytes)
{
	return !memcmp(bytes, "\177ELF", 4);
}

/* Do the first characters look like text? PTX begins with blanks, comments or a directive. */
static bool is_text(const char *p)
{
	size_t i;

	for (i = 0; i < 16 && p[i]; i++)
		if ((unsigned char)p[i] >= 0x7f || ((unsigned char)p[i] < 0x20 && !strchr("\t\n\r\f", p[i])))
			return false;
	return i >= 8;
}

static enum form form_of(const void *bytes, size_t size)
{
	if (size && size < 16)
		return FORM_UNKNOWN;
	if (fatbin_is(bytes, 4))
		return FORM_FATBIN;
	if (is_elf(bytes))
		return FORM_CUBIN;
	return is_text(bytes) ? FORM_PTX : FORM_UNKNOWN;
}

/* ---- choosing ---- */

/* The PTX of a fatbin for the emulated GPU: what fits; or what its machine code was made from; or,
 * if newer, generic PTX of a newer architecture, as the executor needs no architecture. free() it.
 * NULL: there is none; `has` lists what there is. Or e: the fatbin is damaged. */
static char *ptx_of(const void *bytes, size_t size, bool newer, size_t *n, struct text *has,
	struct consan_err *e)
{
	const struct consan_device *d = device_info();
	struct fatbin_image best = { 0 };
	struct text again = { 0 };
	char *ptx;

	if (fatbin_choose(bytes, size, d->sm, d->suffix, false, &best, has, e))
		return fatbin_unpack(&best, n, e);
	ptx = e->code ? NULL : origin_find(bytes, size, d->sm, d->suffix, n);
	if (!ptx && newer && fatbin_choose(bytes, size, d->sm, d->suffix, true, &best, &again, e))
		ptx = fatbin_unpack(&best, n, e);
	text_free(&again);
	return ptx;
}

static int no_ptx(struct image *im, const char *has)
{
	remark_no_ptx(im->name, has, im->library, im->made);
	return cudaErrorNoKernelImageForDevice;
}

static int bad_module(struct image *im, const struct consan_err *e, int error)
{
	if (e->line)
		remark(REMARK_NOT_LOADED, "%s: line %d, column %d: %s", im->name, e->line,
			e->col, e->text);
	else
		remark(REMARK_NOT_LOADED, "%s: %s", im->name, e->text);
	return error;
}

static int load_text(struct image *im, const char *ptx, size_t n)
{
	struct consan_err e = { 0 };
	struct consan_module *m;
	size_t k;

	m = consan_load_ptx_on(device_session(), im->name, ptx, n, (unsigned)im->target, im->first, &e);
	if (!m)
		return bad_module(im, &e, e.code == CONSAN_ERR_MEMORY
			? cudaErrorMemoryAllocation : cudaErrorInvalidPtx);
	if (im->form == FORM_FATBIN || im->form == FORM_CUBIN)
		consan_take_registers(m, im->bytes, im->size);
	im->module[im->target] = m;
	if (!im->first)
		im->first = m;
	for (k = 0; k < im->var.n; k++) {
		struct var *v = im->var.at[k];
		uint64_t bytes;

		if (v->managed)
			consan_symbol(m, v->name, v->managed, &bytes);
	}
	return 0;
}

/* PTX text without a fatbin: there is nothing to choose from. */
static int load_bare(struct image *im, const char *ptx, size_t n)
{
	const struct consan_device *d = device_info();
	char suffix = 0;
	unsigned sm = fatbin_ptx_target(ptx, n, &suffix);

	if (!sm || fatbin_rank(sm, suffix, d->sm, d->suffix))
		return load_text(im, ptx, n);
	remark(REMARK_NOT_LOADED, "%s: PTX for sm_%u%s does not run on the emulated sm_%u%s; "
		"choose another GPU with --arch", im->name, sm, fatbin_suffix(suffix), d->sm,
		fatbin_suffix(d->suffix));
	return cudaErrorNoKernelImageForDevice;
}

/* A cubin: loads the PTX that it was made from. */
static int load_cubin(struct image *im)
{
	const struct consan_device *d = device_info();
	size_t n;
	char *ptx = origin_find(im->bytes, im->size, d->sm, d->suffix, &n);
	int error = ptx ? load_bare(im, ptx, n) : no_ptx(im, "a cubin");

	free(ptx);
	return error;
}

static int load_fatbin(struct image *im)
{
	struct consan_err e = { 0 };
	struct text has = { 0 };
	char *ptx;
	size_t n;
	int error;

	ptx = ptx_of(im->bytes, im->size, true, &n, &has, &e);
	if (ptx)
		error = load_text(im, ptx, n);
	else
		error = e.code ? bad_module(im, &e, cudaErrorInvalidKernelImage)
			: no_ptx(im, has.at ? has.at : "");
	free(ptx);
	text_free(&has);
	return error;
}

/* nvcc -rdc=true: the fatbin itself has the linked machine code, and im->parts the PTX of
 * each file. A file without suitable PTX (CUDA's device library) is left out; symbols needed
 * from it are reported as undefined. */
static int load_parts(struct image *im)
{
	VEC(char *) text = { 0 };
	struct text has = { 0 };
	struct consan_err e = { 0 };
	char *ptx;
	size_t n, i;
	int error;

	for (i = 0; im->parts[i] && !e.code; i++)
		if ((ptx = ptx_of(im->parts[i], fatbin_size(im->parts[i]), false, &n, &has, &e)))
			vec_push(&text, ptx);
	if (e.code) {
		error = bad_module(im, &e, cudaErrorInvalidKernelImage);
	} else if (!text.n) {
		error = no_ptx(im, has.at ? has.at : "");
	} else if (!(ptx = link_ptx((const char *const *)text.at, text.n, &e))) {
		error = bad_module(im, &e, cudaErrorInvalidPtx);
	} else {
		error = load_text(im, ptx, strlen(ptx));
		free(ptx);
	}
	for (i = 0; i < text.n; i++)
		free(text.at[i]);
	vec_free(&text);
	text_free(&has);
	return error;
}

static int load_form(struct image *im)
{
	struct consan_err e = { 0 };

	switch (im->form) {
	case FORM_FATBIN:
		return im->parts ? load_parts(im) : load_fatbin(im);
	case FORM_PTX:
		return load_bare(im, im->bytes, im->size);
	case FORM_CUBIN:
		return load_cubin(im);
	case FORM_UNKNOWN:
		break;
	}
	err_set(&e, CONSAN_ERR_FATBIN, 0, 0, "neither a fatbin nor PTX text");
	return bad_module(im, &e, cudaErrorInvalidKernelImage);
}

/* What fails on one device fails on all, which are alike. */
static int load_on(struct image *im, int device)
{
	int error = device_ready(), cancel;

	if (error)
		return error;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* not with the lock */
	pthread_mutex_lock(&lock);
	for (int d = 0; d < CONSAN_DEVICES && im->state[device] < 0; d++)
		if (im->state[d] > 0)
			im->state[device] = im->state[d];
	if (im->state[device] < 0) {
		im->target = device;
		im->state[device] = load_form(im);
	}
	error = im->state[device];
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
	return error;
}

/* The device whose module a call means. */
static int device_of(const struct image *im)
{
	return im->device < 0 ? device_now() : im->device;
}

int image_load(struct image *im)
{
	return load_on(im, device_of(im));
}

void image_bind(struct image *im, int device)
{
	im->device = device;
}

/* ---- opening ---- */

/* Whose code an image is: of the program's file, of a library, or of neither, so that the program made
 * or read it. */
enum owner { OF_PROGRAM, OF_LIBRARY, OF_NO_FILE };

/* path: of the library; else it is not set */
static enum owner owner_of(const void *bytes, const char **path)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (!dladdr1(bytes, &info, (void **)&map, RTLD_DL_LINKMAP) || !info.dli_fname)
		return OF_NO_FILE;
	if (map && !map->l_name[0])
		return OF_PROGRAM;
	*path = info.dli_fname;
	return OF_LIBRARY;
}

/* The emulated GPU follows the program's code. Libraries do not count: they carry code for many
 * architectures. Of linked files, the lowest architecture counts: CUDA's device library has PTX for
 * the newest architecture only. */
static void hint_architecture(const struct image *im, enum owner owner)
{
	unsigned sm = 0, part;
	char suffix = 0, part_suffix = 0;

	if (im->form == FORM_PTX)
		sm = fatbin_ptx_target(im->bytes, im->size, &suffix);
	else if (im->form == FORM_FATBIN && !im->parts)
		sm = fatbin_newest(im->bytes, im->size, &suffix);
	for (size_t i = 0; im->parts && im->parts[i]; i++) {
		part = fatbin_newest(im->parts[i], fatbin_size(im->parts[i]), &part_suffix);
		if (part && (!sm || part < sm)) {
			sm = part;
			suffix = part_suffix;
		}
	}
	if (sm && owner != OF_LIBRARY)
		device_arch_hint(sm, suffix, owner == OF_PROGRAM);
}

/* "prog: module 1", "libx.so: module 2"; "prog: JIT module 3" of one that the program has made or
 * read: no file that was built holds it (reports/stale.c). */
static void name_image(struct image *im, enum owner owner, const char *path)
{
	const char *object = program_invocation_short_name, *slash;
	const char *kind = owner == OF_NO_FILE ? "JIT module" : "module";

	if (owner == OF_LIBRARY)
		object = (slash = strrchr(path, '/')) ? slash + 1 : path;
	pthread_mutex_lock(&lock);
	snprintf(im->name, sizeof im->name, "%.200s: %s %u", object, kind, ++images);
	pthread_mutex_unlock(&lock);
}

static void *dup_bytes(const void *bytes, size_t n)
{
	char *copy = base_alloc(n + 1);

	memcpy(copy, bytes, n);
	return copy;
}

int image_open(const void *bytes, size_t size, int own, struct image **out)
{
	const __fatBinC_Wrapper_t *wrapper = bytes;
	const void *given = bytes;
	const char *path = NULL;
	enum owner owner;
	struct image *im;

	if (!bytes || !out)
		return cudaErrorInvalidValue;
	im = base_alloc(sizeof *im);
	im->device = -1;
	for (int d = 0; d < CONSAN_DEVICES; d++)
		im->state[d] = -1;
	if ((!size || size >= sizeof *wrapper) && wrapper->magic == FATBINC_MAGIC) {
		bytes = wrapper->data;
		size = 0;
		if (wrapper->version == FATBINC_LINK_VERSION)
			im->parts = wrapper->filename_or_fatbins;
	}
	im->form = form_of(bytes, size);
	switch (im->form) {
	case FORM_FATBIN:
		im->size = size ? size : fatbin_size(bytes);
		break;
	case FORM_PTX:
		im->size = size ? strnlen(bytes, size) : strlen(bytes);
		break;
	case FORM_CUBIN:
		im->size = cubin_size(bytes, size ? size : SIZE_MAX);
		break;
	case FORM_UNKNOWN:
		break;
	}
	im->bytes = bytes;
	if (own == IMAGE_COPY && im->size)
		im->bytes = im->owned = dup_bytes(bytes, im->size);
	owner = owner_of(given, &path);
	name_image(im, owner, path);
	im->library = path ? consan_library(path) : NULL;
	im->made = owner == OF_NO_FILE;
	hint_architecture(im, own == IMAGE_BORROW || owner != OF_PROGRAM ? owner : OF_NO_FILE);
	handle_put(im, HANDLE_IMAGE, im);
	*out = im;
	return 0;
}

int image_open_file(const char *path, struct image **out)
{
	FILE *f = path ? fopen(path, "rb") : NULL;
	struct text all = { 0 };
	char part[1 << 13];
	size_t n;
	int error;

	if (!f) {
		remark(REMARK_NOT_LOADED, "%s: %s", path ? path : "(null)",
			path ? strerror(errno) : "no path");
		return cudaErrorFileNotFound;
	}
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		text_add(&all, part, n);
	fclose(f);
	if (!all.n) {
		remark(REMARK_NOT_LOADED, "%s: the file is empty", path);
		return cudaErrorInvalidKernelImage;
	}
	error = image_open(all.at, all.n, IMAGE_COPY, out);
	if (!error)
		snprintf((*out)->name, sizeof (*out)->name, "%s", path);
	text_free(&all);
	return error;
}

void image_close(struct image *im)
{
	size_t i;

	engine_leave(im);
	pthread_mutex_lock(&lock);
	handle_drop(im, HANDLE_IMAGE);
	for (i = 0; i < im->func.n; i++) {
		handle_drop(im->func.at[i], HANDLE_FUNC);
		free(im->func.at[i]->name);
		free(im->func.at[i]);
	}
	for (i = 0; i < im->var.n; i++)
		free(im->var.at[i]);
	for (i = 0; i < im->stub.n; i++)
		handle_drop(im->stub.at[i], HANDLE_STUB);
	for (i = 0; i < im->shadow.n; i++)
		handle_drop(im->shadow.at[i], HANDLE_VAR);
	for (int d = 0; d < CONSAN_DEVICES; d++)
		if (im->module[d] != im->first)
			consan_unload(im->module[d]);
	consan_unload(im->first);
	vec_free(&im->func);
	vec_free(&im->var);
	vec_free(&im->stub);
	vec_free(&im->shadow);
	free(im->owned);
	free(im);
	pthread_mutex_unlock(&lock);
}

struct image *image_of(const void *handle)
{
	return handle_get(handle, HANDLE_IMAGE);
}

/* ---- functions ---- */

static struct func *image_add_func(struct image *im, const char *name, int device)
{
	struct func *f = NULL;
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < im->func.n && !f; i++)
		if (im->func.at[i]->device == device && !strcmp(im->func.at[i]->name, name))
			f = im->func.at[i];
	if (!f) {
		f = base_alloc(sizeof *f);
		f->image = im;
		f->device = device;
		f->name = base_strdup(name);
		f->carveout = -1;
		vec_push(&im->func, f);
		handle_put(f, HANDLE_FUNC, f);
	}
	pthread_mutex_unlock(&lock);
	return f;
}

void image_add_stub(struct image *im, const void *host, const char *name)
{
	struct func *f = image_add_func(im, name, 0);

	pthread_mutex_lock(&lock);
	vec_push(&im->stub, host);
	pthread_mutex_unlock(&lock);
	handle_put(host, HANDLE_STUB, f);
}

/* Without a function attribute, a launch may use 48 KiB of static and dynamic shared memory. */
static uint32_t default_dynamic(const struct func *f)
{
	return f->info.shared_static < 48 << 10 ? (48 << 10) - f->info.shared_static : 0;
}

int func_load(struct func *f)
{
	struct consan_err e = { 0 };
	int error = load_on(f->image, f->device);

	if (error)
		return error;
	pthread_mutex_lock(&lock);
	if (!f->kernel) {
		f->kernel = consan_kernel(f->image->module[f->device], f->name, &e);
		if (f->kernel) {
			consan_kernel_info(f->kernel, &f->info);
			f->max_dynamic = default_dynamic(f);
		} else if (e.code && e.code != CONSAN_ERR_PTX_SYMBOL) {
			error = bad_module(f->image, &e, cudaErrorInvalidPtx);
		} else {
			error = cudaErrorSymbolNotFound;
		}
	}
	pthread_mutex_unlock(&lock);
	return error;
}

int image_func(struct image *im, const char *name, struct func **out)
{
	const char *entry;
	int error = image_load(im);
	size_t k;

	if (error)
		return error;
	for (k = 0; (entry = consan_kernel_name(im->module[device_of(im)], k)); k++)
		if (!strcmp(entry, name))
			break;
	if (!entry)
		return cudaErrorSymbolNotFound;
	*out = image_add_func(im, name, device_of(im));
	return func_load(*out);
}

int image_func_on(struct image *im, const char *name, int device, struct func **out)
{
	*out = image_add_func(im, name, device);
	return func_load(*out);
}

int image_func_count(struct image *im, unsigned *n)
{
	int error = image_load(im);

	for (*n = 0; !error && consan_kernel_name(im->module[device_of(im)], *n); )
		++*n;
	return error;
}

int image_func_at(struct image *im, unsigned k, struct func **out)
{
	int error = image_load(im);
	const char *name = error ? NULL : consan_kernel_name(im->module[device_of(im)], k);

	if (!name)
		return error ? error : cudaErrorInvalidValue;
	*out = image_add_func(im, name, device_of(im));
	return func_load(*out);
}

/* The same kernel on another device. */
static struct func *func_on(struct func *f, int device)
{
	if (f->device == device)
		return f;
	if (!f->on[device])
		f->on[device] = image_add_func(f->image, f->name, device);
	return f->on[device];
}

int func_find(const void *handle, struct func **out)
{
	return func_find_on(handle, device_now(), out);
}

int func_find_on(const void *handle, int device, struct func **out)
{
	struct func *f = handle_get(handle, HANDLE_STUB);
	int error;

	if (!f)
		f = handle_get(handle, HANDLE_FUNC);
	if (!f)
		return cudaErrorInvalidDeviceFunction;
	*out = f = func_on(f, f->image->device < 0 ? device : f->image->device);
	error = func_load(f);
	return error == cudaErrorSymbolNotFound ? cudaErrorInvalidDeviceFunction : error;
}

/* ---- variables ---- */

void image_add_var(struct image *im, const void *host, const char *name, size_t bytes,
	void **managed)
{
	struct var *v = base_alloc(sizeof *v);

	*v = (struct var){ .image = im, .name = name, .bytes = bytes, .managed = managed };
	pthread_mutex_lock(&lock);
	vec_push(&im->var, v);
	vec_push(&im->shadow, host);
	pthread_mutex_unlock(&lock);
	handle_put(host, HANDLE_VAR, v);
}

int image_symbol(struct image *im, const char *name, void **at, size_t *bytes)
{
	void *where;
	uint64_t n;
	int error = image_load(im);

	if (error)
		return error;
	if (!name || !consan_symbol(im->module[device_of(im)], name, &where, &n))
		return cudaErrorSymbolNotFound;
	if (at)
		*at = where;
	if (bytes)
		*bytes = n;
	return 0;
}

int var_find(const void *host, void **at, size_t *bytes)
{
	struct var *v = handle_get(host, HANDLE_VAR);
	int error = v ? image_symbol(v->image, v->name, at, bytes) : device_ready();

	if (v && error != cudaErrorSymbolNotFound)
		return error;
	return error ? error : cudaErrorInvalidSymbol;
}
