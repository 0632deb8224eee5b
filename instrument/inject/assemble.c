/* assemble: instrumented PTX to machine code, by ptxas or by nvJitLink, which any thread can use, or
 * by the driver's linker. The result is kept in the store of what was compiled (origin.h), under
 * the text and all that it is assembled with, so that a later run finds it. */
#include "cut.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/base/base.h"
#include "libconsan/origin/origin.h"
#include "libconsan/ptx/ptx.h"

/* nvJitLink.h, which not every toolkit has. The functions are exported by these names, too, in all
 * versions. */
enum { INPUT_PTX = 2 };
static struct {
	int (*create)(void **h, uint32_t n, const char **option);
	int (*destroy)(void **h);
	int (*add)(void *h, int kind, const void *data, size_t bytes, const char *name);
	int (*complete)(void *h);
	int (*size)(void *h, size_t *bytes);
	int (*get)(void *h, void *cubin);
	int (*log_size)(void *h, size_t *bytes);
	int (*log)(void *h, char *text);
	int (*version)(unsigned *major, unsigned *minor);
	unsigned major, minor;
	bool usable;
} linker;
static pthread_once_t linker_once = PTHREAD_ONCE_INIT;

static void *open_linker(void)
{
	static const char *const name[] = { "libnvJitLink.so.13", "libnvJitLink.so.12",
		"/usr/local/cuda/lib64/libnvJitLink.so" };
	static const char *const pattern[] = { "/usr/local/cuda*/targets/*/lib/libnvJitLink.so.*",
		"/opt/*/*/lib/python*/site-packages/nvidia/*/lib/libnvJitLink.so.*",
		"/usr/*/lib/python*/*-packages/nvidia/*/lib/libnvJitLink.so.*" };
	const char *path = getenv("CONSAN_NVJITLINK");
	void *lib = NULL;
	glob_t g;

	if (path && *path)
		return dlopen(path, RTLD_NOW | RTLD_LOCAL);
	for (size_t k = 0; !lib && k < ARRAY_SIZE(name); k++)
		lib = dlopen(name[k], RTLD_NOW | RTLD_LOCAL);
	for (size_t k = 0; !lib && k < ARRAY_SIZE(pattern); k++) {
		if (glob(pattern[k], 0, NULL, &g))
			continue;
		for (size_t i = 0; !lib && i < g.gl_pathc; i++)
			lib = dlopen(g.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
		globfree(&g);
	}
	return lib;
}

static void find_linker(void)
{
	void *lib = open_linker();

	if (!lib)
		return;
	atexit(cut_end); /* before the library's own handlers: threads may be in it */
#define FIND(member, symbol) linker.member = (__typeof__(linker.member))dlsym(lib, symbol)
	FIND(create, "nvJitLinkCreate");
	FIND(destroy, "nvJitLinkDestroy");
	FIND(add, "nvJitLinkAddData");
	FIND(complete, "nvJitLinkComplete");
	FIND(size, "nvJitLinkGetLinkedCubinSize");
	FIND(get, "nvJitLinkGetLinkedCubin");
	FIND(log_size, "nvJitLinkGetErrorLogSize");
	FIND(log, "nvJitLinkGetErrorLog");
	FIND(version, "nvJitLinkVersion");
#undef FIND
	linker.usable = linker.create && linker.destroy && linker.add && linker.complete &&
		linker.size && linker.get && linker.log_size && linker.log && linker.version &&
		!linker.version(&linker.major, &linker.minor);
}

/* Opened only where it is needed: to load it takes a tenth of a second. */
static bool has_linker(void)
{
	pthread_once(&linker_once, find_linker);
	return linker.usable;
}

bool inject_assembles(void)
{
	return inject_ptxas() || has_linker();
}

/* "90a": what the GPU's code is made for. PTX for one GPU is assembled for this one: it may be before the
 * driver can be asked. */
static void architecture(const char *ptx, size_t n, char name[16])
{
	char suffix = 0, own = 0;
	unsigned sm = fatbin_ptx_target(ptx, n, &suffix);

	if (suffix != 'a') {
		sm = inject_sm(&own);
		suffix = suffix ? own : 0;
	}
	snprintf(name, 16, "%u%s", sm, fatbin_suffix(suffix));
}

static void *by_linker(const char *ptx, size_t n, const char *arch, unsigned registers,
	size_t *bytes, char why[INJECT_WHY])
{
	char name[32], most[40];
	const char *option[] = { name, most };
	size_t length = 0;
	void *h = NULL, *code = NULL;
	char *text;

	snprintf(name, sizeof name, "-arch=sm_%s", arch);
	snprintf(most, sizeof most, "-maxrregcount=%u", registers);
	if (linker.create(&h, registers ? 2 : 1, option))
		return NULL;
	if (!linker.add(h, INPUT_PTX, ptx, n + 1, "consan") && !linker.complete(h) &&
			!linker.size(h, bytes) && *bytes) {
		code = base_alloc(*bytes);
		if (linker.get(h, code)) {
			free(code);
			code = NULL;
		}
	}
	if (!code && !linker.log_size(h, &length) && length) {
		text = base_alloc(length + 1);
		linker.log(h, text);
		snprintf(why, INJECT_WHY, "nvJitLink: %.200s", text);
		free(text);
	}
	linker.destroy(&h);
	return code;
}

static void *by_driver(const char *ptx, size_t n, unsigned registers, size_t *bytes,
	char why[INJECT_WHY])
{
	CUjit_option option[] = { CU_JIT_MAX_REGISTERS };
	void *value[] = { (void *)(uintptr_t)registers };
	const char *name = "?";
	CUlinkState l = NULL;
	void *cubin = NULL, *code = NULL;
	CUresult r;

	if (!cu.p_cuLinkCreate || !cu.p_cuLinkAddData || !cu.p_cuLinkComplete ||
			!cu.p_cuLinkDestroy)
		return NULL;
	r = cu.p_cuLinkCreate(registers ? 1 : 0, option, value, &l);
	if (!r)
		r = cu.p_cuLinkAddData(l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx, n + 1, "consan", 0,
			NULL, NULL);
	if (!r)
		r = cu.p_cuLinkComplete(l, &cubin, bytes);
	if (!r) {
		code = base_alloc(*bytes);
		memcpy(code, cubin, *bytes);
	} else {
		cu.p_cuGetErrorName(r, &name);
		snprintf(why, INJECT_WHY, "the driver's linker refused the instrumented PTX (%s)", name);
	}
	if (l)
		cu.p_cuLinkDestroy(l);
	return code;
}

/* What the code depends on. */
static void key_of(struct text *key, const char *ptx, size_t n, const char *arch, unsigned registers)
{
	int driver = 0;

	if (inject_ptxas())
		text_printf(key, "%s", inject_ptxas());
	else if (has_linker())
		text_printf(key, "nvJitLink %u.%u", linker.major, linker.minor);
	else if (!cu.p_cuDriverGetVersion(&driver))
		text_printf(key, "driver %d", driver);
	text_printf(key, " sm_%s, %u registers\n", arch, registers);
	text_add(key, ptx, n);
}

void *inject_assemble(const char *ptx, size_t n, unsigned registers, bool with_driver,
	size_t *bytes, char why[INJECT_WHY])
{
	struct text key = { 0 };
	void *code;
	char arch[16];

	architecture(ptx, n, arch);
	key_of(&key, ptx, n, arch, registers);
	code = origin_get_named(key.at, key.n, ORIGIN_CODE, bytes);
	if (code) {
		text_free(&key);
		return code;
	}
	if (inject_ptxas())
		code = inject_run_ptxas(ptx, n, arch, registers, bytes, why);
	if (!code && has_linker())
		code = by_linker(ptx, n, arch, registers, bytes, why);
	if (!code && with_driver)
		code = by_driver(ptx, n, registers, bytes, why);
	if (code)
		origin_put_named(key.at, key.n, ORIGIN_CODE, code, *bytes);
	text_free(&key);
	return code;
}
