/* prepare: `consan-run --gpu-prepare FILE...`. Fills the store with the machine code of the kernels in
 * these files, as a launch of each would. Runs in consan-run, which needs no GPU if --arch names one. */
#include "cut.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/rewrite/rewrite.h"
#include "libconsan/ptx/ptx.h"

struct prepared { unsigned made, failed, whole, modules; };

static void add_image(struct inject_image *i, struct prepared *p)
{
	if (!i)
		return;
	p->modules++;
	p->whole += inject_whole(i) != NULL;
	if (!inject_whole(i))
		cut_all(i);
}

static void add_fatbins(const struct text *all, const char *name, struct prepared *p)
{
	size_t cursor = 0, at, size;

	while (fatbin_find(all->at, all->n, &cursor, &at, &size))
		add_image(inject_image_at(all->at + at, all->n - at, name), p);
}

static bool add_file(const char *path, struct prepared *p)
{
	const char *name = strrchr(path, '/');
	struct text all = { 0 };
	struct consan_err e = { 0 };

	if (!text_read(&all, path, &e) || !all.n) {
		inject_print("%s: %s", path, e.code ? e.text : "an empty file");
		return false;
	}
	name = name ? name + 1 : path;
	if (all.n > SELFMAG && !memcmp(all.at, ELFMAG, SELFMAG))
		add_fatbins(&all, name, p);
	else if (fatbin_is(all.at, all.n) || strstr(all.at, ".version"))
		add_image(inject_image_at(all.at, all.n, name), p);
	else
		inject_print("%s: neither a program or library nor a fatbin nor PTX", path);
	text_free(&all);
	return true;
}

/* Without --arch: that of the GPU. */
static bool find_gpu(unsigned sm, char suffix)
{
	void *lib = sm ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned) = lib ? (CUresult (*)(unsigned))(intptr_t)dlsym(lib, "cuInit") : NULL;

	if (!sm && (!init || init(0) || !inject_open_driver())) {
		inject_print("--gpu-prepare: no GPU was found; --arch says for which one");
		return false;
	}
	inject_set_sm(sm, suffix);
	return true;
}

__attribute__((visibility("default"))) int consan_gpu_prepare(char **file, unsigned sm, char suffix);
/* sm: 0: of this machine's GPU. False if something could not be prepared, which is printed. */
int consan_gpu_prepare(char **file, unsigned sm, char suffix)
{
	struct prepared p = { 0 };
	bool good = true;

	if (!find_gpu(sm, suffix))
		return false;
	if (!inject_assembles()) {
		inject_print("--gpu-prepare: neither ptxas nor libnvJitLink.so was found; both come with "
			"the CUDA Toolkit; set $CONSAN_PTXAS or $CONSAN_NVJITLINK to its path");
		return false;
	}
	if (!inject_open_session())
		return false;
	for (; *file; file++)
		good = add_file(*file, &p) && good;
	cut_wait(&p.made, &p.failed);
	inject_print("prepared kernels: %u of %u, in modules: %u%s", p.made, p.made + p.failed, p.modules,
		p.modules ? "" : "; the files hold no PTX for this GPU");
	if (p.whole)
		inject_print("modules that cannot be divided into kernels, so that the driver assembles "
			"them when they are loaded: %u", p.whole);
	return good && p.modules && !p.failed;
}
