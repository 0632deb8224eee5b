/* prepare: --gpu-prepare. What instruments and assembles kernels is in the library that programs get
 * under --backend=gpu, so that is loaded into consan-run. */
#include "run.h"

#include "libconsan/options/options.h"
#include "libconsan/session/session.h"

#include <dlfcn.h>
#include <stdlib.h>

bool prepare_files(const struct options *o, const char *lib, char **file)
{
	int (*all)(char **, unsigned, char);
	struct text path = { 0 }, words = { 0 };
	unsigned sm = 0;
	char suffix = 0;
	void *handle;
	bool good;

	options_format(o, &words);
	setenv(CONSAN_SESSION_ENV, words.at ? words.at : "", 1);
	if (*o->arch)
		options_arch(o->arch, &sm, &suffix); /* check_options() has seen that it is one */
	text_printf(&path, "%s/" INJECTED, lib);
	handle = dlopen(path.at, RTLD_NOW);
	all = handle ? (int (*)(char **, unsigned, char))(intptr_t)dlsym(handle, "consan_gpu_prepare")
		: NULL;
	if (!all)
		print_error("%s", dlerror());
	good = all && all(file, sm, suffix);
	text_free(&words);
	text_free(&path);
	return good;
}
