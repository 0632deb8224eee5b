/* check: what is wrong with the options of consan-run, before the program runs. In the program,
 * the same errors would look like failures of its first CUDA call. */
#include "run.h"

#include "libconsan/options/options.h"
#include "libconsan/session/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Can the file be written? One that does not exist is created for a moment. */
static int file_error(const char *path)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd >= 0) {
		close(fd);
		unlink(path);
		return 0;
	}
	if (errno != EEXIST)
		return errno;
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return EISDIR;
	/* another shard may have created it for the same moment */
	return access(path, W_OK) && errno != ENOENT ? errno : 0;
}

static int dir_error(const char *path)
{
	struct stat st;

	if (!mkdir(path, 0777)) {
		rmdir(path);
		return 0;
	}
	if (errno != EEXIST)
		return errno;
	if (!stat(path, &st) && !S_ISDIR(st.st_mode))
		return ENOTDIR;
	return access(path, W_OK | X_OK) ? errno : 0;
}

static bool check_writable(const char *option, const char *pattern, int (*error_of)(const char *))
{
	char *path;
	int error;

	if (!*pattern)
		return true;
	path = options_path(pattern, (long)getpid());
	error = error_of(path);
	if (error)
		print_error("--%s=%s: cannot be written: %s", option, path, strerror(error));
	free(path);
	return !error;
}

static bool check_readable(const char *option, const char *path)
{
	struct stat st;
	int error = access(path, R_OK) ? errno : 0;

	if (!error && !stat(path, &st) && S_ISDIR(st.st_mode))
		error = EISDIR;
	if (error)
		print_error("--%s=%s: cannot be read: %s", option, path, strerror(error));
	return !error;
}

static bool check_files(const struct options *o)
{
	bool good = check_writable("log-file", o->log_file, file_error);

	good &= check_writable("save", o->save, file_error);
	good &= check_writable("dump-ptx", o->dump_ptx, dir_error);
	for (size_t i = 0; i < o->report.n; i++)
		good &= check_writable("report", o->report.at[i], file_error);
	if (*o->replace_ptx)
		good &= check_readable("replace-ptx", o->replace_ptx);
	return good;
}

/* --backend=gpu needs our injected library, and the driver. */
static bool check_gpu(const char *lib)
{
	struct text path = { 0 };
	bool good;
	void *driver;

	text_printf(&path, "%s/" INJECTED, lib);
	good = !access(path.at, R_OK);
	if (!good)
		print_error("--backend=gpu: cannot find %s: consan was built without CUPTI", path.at);
	text_free(&path);
	if (!good)
		return false;
	driver = dlopen("libcuda.so.1", RTLD_LAZY);
	if (driver)
		dlclose(driver);
	else
		print_error("--backend=gpu: no NVIDIA driver here: %s; without the option, kernels run on "
			"the CPU", dlerror());
	return driver != NULL;
}

/* The driver, if GPU mode was built, or NULL */
static void *open_driver(const char *lib)
{
	struct text path = { 0 };
	void *driver;

	text_printf(&path, "%s/" INJECTED, lib);
	driver = access(path.at, R_OK) ? NULL : dlopen("libcuda.so.1", RTLD_LAZY);
	text_free(&path);
	return driver;
}

/* Is there a GPU that GPU mode can use? */
static bool has_gpu(void *driver)
{
	int (*init)(unsigned) = (int (*)(unsigned))(intptr_t)dlsym(driver, "cuInit");
	int (*get)(int *, int) = (int (*)(int *, int))(intptr_t)dlsym(driver, "cuDeviceGet");
	int device;

	return init && get && !init(0) && !get(&device, 0);
}

void choose_backend(struct options *o, const char *lib, const char *program)
{
	char why[320];
	void *driver;

	/* in a process that consan-run watches, the driver is ours */
	if (o->backend != OPT_BACKEND_AUTO || getenv("CONSAN_RESULTS"))
		return;
	driver = open_driver(lib);
	if (!driver)
		return;
	/* before cuInit(), which takes longer */
	if (!gpu_suits(o, program, why)) {
		if (!access("/dev/nvidiactl", F_OK))
			print_error("--backend=auto: the program runs on the CPU: %s", why);
	} else if (has_gpu(driver)) {
		o->backend = OPT_BACKEND_GPU;
	}
}

bool check_options(const struct options *o, const char *lib)
{
	struct consan_err e = { 0 };

	if (!consan_check_options(o, &e)) {
		print_error("%s", e.text);
		return false;
	}
	return check_files(o) && (!lib || o->backend != OPT_BACKEND_GPU || check_gpu(lib));
}
