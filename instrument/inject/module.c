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

#include "libconsan/origin/origin.h"
#include "libconsan/ptx/ptx.h"

#define WRAPPER_MAGIC 0x466243b1u

struct wrapper { uint32_t magic, version; const void *data; void *more; };

/* module: NULL: not instrumented */
struct bound { CUmodule driver; struct gpu_module *module; CUdeviceptr variable; };
struct library { CUlibrary at; CUcontext loaded; };

static struct {
	pthread_mutex_t lock;
	VEC(struct gpu_module *) at;
	VEC(struct bound) bound;
	VEC(struct library) library; /* and the last context in which each is certainly loaded */
	unsigned count;
} images = { .lock = PTHREAD_MUTEX_INITIALIZER };

unsigned inject_sm(char *suffix)
{
	int major = 9, minor = 0;
	CUdevice d = 0;

	if (!cu.p_cuDeviceGet(&d, 0)) {
		cu.p_cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d);
		cu.p_cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d);
	}
	*suffix = major >= 9 ? 'a' : 0;
	return (unsigned)(10 * major + minor);
}

/* The PTX of an image of at most `most` bytes, in any form; free() it. NULL: there is none,
 * which is reported. */
static char *ptx_of(const void *image, size_t most, const char *name, size_t *n)
{
	const struct wrapper *w = image;
	struct fatbin_image best;
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
	if (!ptx)
		inject_remark(REMARK_NO_PTX, "%s: no PTX for sm_%u%s (it holds %s)%s%s; build with "
			"-gencode=arch=compute_%u%s,code=compute_%u%s", name, sm,
			fatbin_suffix(suffix),
			has.at ? has.at : "no image", e.code ? ": " : "", e.code ? e.text : "",
			sm, fatbin_suffix(suffix), sm, fatbin_suffix(suffix));
	text_free(&has);
	return ptx;
}

/* kind: "module", or "JIT module" of one that no file holds */
static struct gpu_module *instrument(const void *image, size_t most, const char *what,
	const char *kind)
{
	struct text name = { 0 };
	struct gpu_module *m = NULL;
	struct consan_err e = { 0 };
	double start;
	char *ptx;
	size_t n;

	pthread_mutex_lock(&images.lock);
	text_printf(&name, "%s: %s %u", what, kind, ++images.count);
	pthread_mutex_unlock(&images.lock);
	ptx = ptx_of(image, most, name.at, &n);
	if (ptx) {
		start = progress_seconds();
		m = gpu_module_open(name.at, ptx, n, false, gpu_global(inject_session()),
			gpu_drains(inject_session()), &e);
		if (m && gpu_times(inject_session()))
			inject_print("times of %s: instrumented %zu instructions in %.3f ms",
				name.at, gpu_module_insns(m), 1e3 * (progress_seconds() - start));
		if (!m)
			inject_remark(REMARK_BAD_MODULE, "%s: line %d: %s", name.at, e.line,
				e.text);
	}
	free(ptx);
	text_free(&name);
	if (!m)
		return NULL;
	pthread_mutex_lock(&images.lock);
	vec_push(&images.at, m);
	pthread_mutex_unlock(&images.lock);
	return m;
}

const void *inject_image(const void *image, const char *what)
{
	Dl_info info;
	const struct gpu_module *m = instrument(image, 1u << 30, what,
		dladdr(image, &info) ? "module" : "JIT module");
	size_t n;

	return m ? gpu_module_text(m, &n) : NULL;
}

/* Reads the whole file and appends zeros, so that a reader of headers does not read past the
 * end. */
static bool read_all(const char *path, struct text *t)
{
	static const char zeros[64];
	FILE *f = fopen(path, "re");
	char part[1 << 16];
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

int inject_file(const char *path)
{
	const char *name = strrchr(path, '/');
	struct gpu_module *m = NULL;
	struct text all = { 0 };
	const char *text;
	int file = -1;
	size_t n;

	if (read_all(path, &all))
		m = instrument(all.at, all.n, name ? name + 1 : path, "module");
	text_free(&all);
	if (!m)
		return -1;
	text = gpu_module_text(m, &n);
	file = memfd_create("consan-module", MFD_CLOEXEC);
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

void inject_library(CUlibrary library)
{
	pthread_mutex_lock(&images.lock);
	vec_push(&images.library, ((struct library){ .at = library }));
	pthread_mutex_unlock(&images.lock);
}

void inject_load_libraries(void)
{
	CUcontext now = NULL;
	CUmodule m;

	cu.p_cuCtxGetCurrent(&now);
	pthread_mutex_lock(&images.lock);
	for (size_t k = 0; cu.p_cuLibraryGetModule && k < images.library.n; k++) {
		struct library *l = &images.library.at[k];

		if (l->loaded != now && !cu.p_cuLibraryGetModule(&m, l->at))
			l->loaded = now;
	}
	pthread_mutex_unlock(&images.lock);
}

void inject_unloaded(CUlibrary library)
{
	size_t left = 0;

	pthread_mutex_lock(&images.lock);
	images.bound.n = 0; /* they are found again by the names of their variables */
	for (size_t k = 0; k < images.library.n; k++) {
		if (!library)
			images.library.at[k].loaded = NULL;
		if (images.library.at[k].at != library)
			images.library.at[left++] = images.library.at[k];
	}
	images.library.n = left;
	pthread_mutex_unlock(&images.lock);
}

void inject_refused(CUresult why, CUresult own)
{
	const char *name = "";

	cu.p_cuGetErrorName(why, &name);
	inject_remark(REMARK_BAD_MODULE, "the driver refused the instrumented PTX (%s); %s", name,
		own ? "the driver also refuses the original"
		: "the module runs unchanged and unchecked");
}

struct gpu_module *inject_module(CUmodule driver, CUdeviceptr *variable)
{
	struct bound b = { .driver = driver };
	size_t bytes, at = 0;

	pthread_mutex_lock(&images.lock);
	while (at < images.bound.n && images.bound.at[at].driver != driver)
		at++;
	for (size_t k = images.at.n; at == images.bound.n && !b.module && k-- > 0;)
		if (!cu.p_cuModuleGetGlobal(&b.variable, &bytes, driver,
				gpu_module_variable(images.at.at[k])))
			b.module = images.at.at[k];
	if (at == images.bound.n)
		vec_push(&images.bound, b);
	b = images.bound.at[at];
	pthread_mutex_unlock(&images.lock);
	*variable = b.variable;
	return b.module;
}
