/* inject_module: images that the program loads, and what is loaded instead.
 * Chooses the PTX as the driver would, by libconsan/fatbin.h. */
#include "inject.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../libconsan/fatbin.h"

#define WRAPPER_MAGIC 0x466243b1u

struct wrapper { uint32_t magic, version; const void *data; void *more; };

struct image {
	const void *original;
	struct gpu_module *module;
};
struct bound { CUmodule driver; struct gpu_module *module; CUdeviceptr variable; };

static struct {
	pthread_mutex_t lock;
	VEC(struct image) at;
	VEC(struct bound) bound;
	VEC(CUlibrary) library;    /* perhaps not loaded yet */
	unsigned count;
} images = { .lock = PTHREAD_MUTEX_INITIALIZER };

static unsigned device_sm(char *suffix)
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

/* PTX in whatever form it came; free() it. NULL: there is none, and it is said. */
static char *ptx_of(const void *image, const char *name, size_t *n)
{
	const struct wrapper *w = image;
	struct fatbin_image best;
	struct text has = { 0 };
	struct err e = { 0 };
	char *ptx = NULL, suffix;
	unsigned sm = device_sm(&suffix);

	if (w->magic == WRAPPER_MAGIC)
		image = w->data;
	if (!memcmp(image, "\177ELF", 4)) {
		inject_remark(REMARK_NO_PTX, "%s: machine code only (a cubin), consan needs PTX", name);
		return NULL;
	}
	if (!fatbin_is(image, 4)) {
		*n = strnlen(image, 1u << 30);
		return base_strndup(image, *n);
	}
	if (fatbin_choose(image, fatbin_size(image), sm, suffix, &best, &has, &e))
		ptx = fatbin_unpack(&best, n, &e);
	if (!ptx)
		inject_remark(REMARK_NO_PTX, "%s: no PTX for sm_%u%s (it holds %s)%s%s; build with "
			"-gencode=arch=compute_%u%s,code=compute_%u%s", name, sm, fatbin_suffix(suffix),
			has.at ? has.at : "no image", e.code ? ": " : "", e.code ? e.text : "",
			sm, fatbin_suffix(suffix), sm, fatbin_suffix(suffix));
	text_free(&has);
	return ptx;
}

const void *inject_image(const void *image, const char *what)
{
	struct text name = { 0 };
	struct gpu_module *m = NULL;
	struct err e = { 0 };
	double start;
	char *ptx;
	size_t n;

	pthread_mutex_lock(&images.lock);
	text_printf(&name, "%s: module %u", what, ++images.count);
	pthread_mutex_unlock(&images.lock);
	ptx = ptx_of(image, name.at, &n);
	if (ptx) {
		gpu_stand_by(inject_session());
		start = inject_now();
		m = gpu_module_open(name.at, ptx, n, false, gpu_global(inject_session()), &e);
		if (m && gpu_times(inject_session()))
			inject_say("times of %s: instrumented %zu instructions in %.3f ms", name.at,
				gpu_module_insns(m), 1e3 * (inject_now() - start));
		if (!m)
			inject_remark(REMARK_BAD_MODULE, "%s: line %d: %s", name.at, e.line, e.text);
	}
	free(ptx);
	text_free(&name);
	if (!m)
		return NULL;
	pthread_mutex_lock(&images.lock);
	vec_push(&images.at, ((struct image){ image, m }));
	pthread_mutex_unlock(&images.lock);
	return gpu_module_text(m, &n);
}

void inject_library(CUlibrary library)
{
	pthread_mutex_lock(&images.lock);
	vec_push(&images.library, library);
	pthread_mutex_unlock(&images.lock);
}

void inject_load_libraries(void)
{
	CUmodule m;

	pthread_mutex_lock(&images.lock);
	while (cu.p_cuLibraryGetModule && images.library.n)
		cu.p_cuLibraryGetModule(&m, images.library.at[--images.library.n]);
	pthread_mutex_unlock(&images.lock);
}

void inject_refused(const void *text, CUresult why)
{
	const char *name = "";

	(void)text;
	cu.p_cuGetErrorName(why, &name);
	inject_remark(REMARK_BAD_MODULE, "the driver refused the instrumented PTX (%s); the module "
		"runs as it is, unchecked", name);
}

struct gpu_module *inject_module(CUmodule driver, CUdeviceptr *variable)
{
	struct gpu_module *found = NULL;
	size_t bytes;

	pthread_mutex_lock(&images.lock);
	for (size_t k = 0; k < images.bound.n; k++)
		if (images.bound.at[k].driver == driver) {
			found = images.bound.at[k].module;
			*variable = images.bound.at[k].variable;
		}
	for (size_t k = images.at.n; !found && k-- > 0;)
		if (!cu.p_cuModuleGetGlobal(variable, &bytes, driver,
				gpu_module_variable(images.at.at[k].module))) {
			found = images.at.at[k].module;
			vec_push(&images.bound, ((struct bound){ driver, found, *variable }));
		}
	pthread_mutex_unlock(&images.lock);
	return found;
}
