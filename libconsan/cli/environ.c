/* environ: the environment in which the program runs, so that the dynamic linker loads our libraries
 * into its processes, and what these need to know. */
#include "records.h"
#include "run.h"

#include "libconsan/options/options.h"
#include "libconsan/session/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *library_dir(void)
{
	static const char *const place[] = { "", "/../lib/consan" };
	struct text t = { 0 };
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	char *slash;

	if (n <= 0) {
		print_error("cannot read /proc/self/exe; is /proc mounted?");
		return NULL;
	}
	exe[n] = 0;
	slash = strrchr(exe, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		t.n = 0;
		text_printf(&t, "%s%s/" LIBRARY, exe, place[i]);
		if (!access(t.at, R_OK)) {
			t.at[t.n - strlen("/" LIBRARY)] = 0;
			return t.at;
		}
	}
	print_error("cannot find %s in %s or %s/../lib/consan", LIBRARY, exe, exe);
	text_free(&t);
	return NULL;
}

bool link_library_dir(char **lib, const char *dir)
{
	struct text t = { 0 };

	if (!records_odd_path(*lib))
		return true;
	text_printf(&t, "%s/.lib", dir);
	if (records_odd_path(t.at) || symlink(*lib, t.at)) {
		print_error("%s: the dynamic linker takes no such path, and no link to it can be made: %s: %s",
			*lib, t.at, records_odd_path(t.at) ? "as well" : strerror(errno));
		text_free(&t);
		return false;
	}
	free(*lib);
	*lib = t.at;
	return true;
}

/* Sets name=first, or name=first:OLD if it has a value. */
static void put_first(const char *name, const char *first)
{
	const char *old = getenv(name);
	struct text t = { 0 };

	text_printf(&t, "%s%s%s", first, old && *old ? ":" : "", old && *old ? old : "");
	setenv(name, t.at, 1);
	text_free(&t);
}

/* If consan is built with a sanitizer, the sanitizer's runtime must be loaded first. A program that is
 * built with one need not have it there: it finds the functions it replaces in our libraries, too. */
static void add_sanitizer(void)
{
	static const char *const runtime[] = { "__asan_init", "__tsan_init" };
	bool ours = false;
	Dl_info info;

	for (size_t i = 0; i < ARRAY_SIZE(runtime); i++)
		if (dlsym(RTLD_DEFAULT, runtime[i]) && dladdr(dlsym(RTLD_DEFAULT, runtime[i]), &info)) {
			put_first("LD_PRELOAD", info.dli_fname);
			put_first("ASAN_OPTIONS", "detect_leaks=0");
			ours = true;
		}
	if (!ours)
		put_first("ASAN_OPTIONS", "verify_asan_link_order=0");
}

/* The folder with sitecustomize.py, which sets up the frameworks, and the package consan. It is not
 * there if only a part of consan is installed. */
static void add_python(const char *lib)
{
	struct text path = { 0 };

	text_printf(&path, "%s/python", lib);
	if (!access(path.at, R_OK))
		put_first("PYTHONPATH", path.at);
	text_free(&path);
}

/* In a pattern, %% is a %. */
static const char *absolute(struct options *o, const char *path, bool pattern)
{
	char here[PATH_MAX];
	struct text t = { 0 };

	if (!*path || *path == '/' || !getcwd(here, sizeof here))
		return path;
	for (const char *p = here; *p; p++)
		text_add(&t, pattern && *p == '%' ? "%%" : p, pattern && *p == '%' ? 2 : 1);
	text_printf(&t, "/%s", path);
	path = arena_strndup(&o->arena, t.at, t.n);
	text_free(&t);
	return path;
}

void absolute_paths(struct options *o)
{
	o->save = absolute(o, o->save, true);
	o->dump_ptx = absolute(o, o->dump_ptx, true);
	o->replace_ptx = absolute(o, o->replace_ptx, false);
	for (size_t i = 0; i < o->suppressions.n; i++)
		o->suppressions.at[i] = (char *)absolute(o, o->suppressions.at[i], false);
}

/* Does the checker want to know how threads synchronize? */
static bool sees_threads(const struct options *o)
{
	static const char knob[] = "host_threads=";
	bool sees = false;

	for (size_t i = 0; i < o->knob.n; i++)
		if (!strncmp(o->knob.at[i], knob, sizeof knob - 1))
			sees = atoi(o->knob.at[i] + sizeof knob - 1);
	return sees;
}

void set_environment(const struct options *o, const char *lib, const char *dir)
{
	struct text words = { 0 }, path = { 0 };
	char *results = records_folder(dir), run[24];
	const char *other;

	snprintf(run, sizeof run, "%ld", (long)getppid()); /* this is its child */

	if (o->backend == OPT_BACKEND_GPU) {
		text_printf(&path, "%s/" INJECTED, lib);
		other = getenv("CUDA_INJECTION64_PATH");
		if (other && *other && strcmp(other, path.at))
			print_error("CUDA_INJECTION64_PATH: %s is not loaded; consan takes its place", other);
		setenv("CUDA_INJECTION64_PATH", path.at, 1);
	} else {
		text_printf(&path, "%s/" LIBRARY, lib);
		put_first("LD_PRELOAD", path.at);
		put_first("LD_LIBRARY_PATH", lib);
	}
	if (o->backend != OPT_BACKEND_GPU && sees_threads(o)) {
		path.n = 0;
		text_printf(&path, "%s/" THREADS, lib);
		put_first("LD_PRELOAD", path.at);
	}
	setenv("NVTX_INJECTION64_PATH", path.at, 0);
	path.n = 0;
	text_printf(&path, "%s/" MAKERS, lib);
	put_first("LD_PRELOAD", path.at);
	add_sanitizer();
	add_python(lib);
	options_format(o, &words);
	setenv(CONSAN_SESSION_ENV, words.at ? words.at : "", 1);
	setenv("CONSAN_RESULTS", results, 1);
	setenv("CONSAN_RUN", run, 1);
	free(results);
	text_free(&words);
	text_free(&path);
}
