/* fault: a library that is preloaded and lets one call of consan fail, as if memory were short, the disk
 * full or descriptors used up. Calls are counted in each process from its start; only those count that
 * consan's own objects make, so that the program under test and the C library work as ever.
 *
 *   FAULT_OBJECT=NAME   count calls from objects whose file name contains NAME
 *   FAULT_CALLS=FILE    append the number of calls to FILE when the process ends
 *   FAULT_AT=N          let call N fail, from 1; or each call from N on, with FAULT_ALL=1
 *   FAULT_LOG=FILE      append the function that failed */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

static const char *object;     /* NULL: nothing counts */
static long at;                /* 0: none fails */
static bool all;
static atomic_long calls;
static const char *log_path, *calls_path;

/* ---- whose call it is ---- */

struct range { uintptr_t from, to; };
static struct range ours[16];
static atomic_uint nours;

static int add_object(struct dl_phdr_info *info, size_t size, void *user)
{
	static char self[4096];
	const char *name = info->dlpi_name;

	(void)size;
	if (!*name && !(*(unsigned *)user)++) {
		const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

		name = n > 0 ? self : "";
	}
	name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	if (!strstr(name, object) || strstr(name, "fault"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const unsigned n = atomic_load(&nours);

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || n == 16)
			continue;
		ours[n] = (struct range){ info->dlpi_addr + p->p_vaddr, info->dlpi_addr + p->p_vaddr + p->p_memsz };
		atomic_store(&nours, n + 1);
	}
	return 0;
}

/* Preloaded objects are there from the start. */
__attribute__((constructor)) static void start(void)
{
	unsigned first = 0;

	object = getenv("FAULT_OBJECT");
	log_path = getenv("FAULT_LOG");
	calls_path = getenv("FAULT_CALLS");
	at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
	all = getenv("FAULT_ALL") != NULL;
	if (object)
		dl_iterate_phdr(add_object, &first);
}

static void append(const char *path, const char *line)
{
	const int fd = path ? (int)syscall(257 /* openat */, AT_FDCWD, path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (fd < 0)
		return;
	if (syscall(1 /* write */, fd, line, strlen(line))) {
	}
	syscall(3 /* close */, fd);
}

static void finish(void)
{
	char line[32];

	if (!atomic_load(&nours))
		return;
	snprintf(line, sizeof line, "%ld\n", atomic_load(&calls));
	append(calls_path, line);
}

__attribute__((destructor)) static void end(void)
{
	finish();
}

API void _exit(int status)
{
	finish();
	syscall(231 /* exit_group */, status);
	__builtin_unreachable();
}

static bool fails(const void *caller, const char *name)
{
	const uintptr_t pc = (uintptr_t)caller;
	char line[64];
	long n;

	for (unsigned i = 0; i < atomic_load(&nours); i++) {
		if (pc < ours[i].from || pc >= ours[i].to)
			continue;
		n = atomic_fetch_add(&calls, 1) + 1;
		if (!at || (all ? n < at : n != at))
			return false;
		snprintf(line, sizeof line, "%s\n", name);
		append(log_path, line);
		return true;
	}
	return false;
}

/* ---- the calls ---- */

/* While dlsym() looks up calloc, it may call it: from a few bytes of our own. */
static char early[4096];
static size_t early_used;

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#define NEXT(name) \
	static __typeof__(&name) real; \
	if (!real) \
		real = (__typeof__(&name))next(#name)

#define FAULT(error, result) \
	if (fails(__builtin_return_address(0), __func__)) { \
		errno = error; \
		return result; \
	}

API void *calloc(size_t n, size_t size)
{
	static bool looking;
	static void *(*real)(size_t, size_t);

	if (!real && looking) {
		void *p = early + early_used;

		early_used += (n * size + 15) & ~(size_t)15;
		return early_used <= sizeof early ? p : NULL;
	}
	if (!real) {
		looking = true;
		real = (void *(*)(size_t, size_t))next("calloc");
		looking = false;
	}
	FAULT(ENOMEM, NULL)
	return real(n, size);
}

API void free(void *p)
{
	NEXT(free);
	if ((char *)p < early || (char *)p >= early + sizeof early)
		real(p);
}

/* CALL(type, name, failure, error, (parameters), (arguments)) */
#define CALL(type, name, failure, error, parameters, arguments) \
	API type name parameters \
	{ \
		NEXT(name); \
		FAULT(error, failure) \
		return real arguments; \
	}

CALL(void *, malloc, NULL, ENOMEM, (size_t n), (n))
CALL(void *, realloc, NULL, ENOMEM, (void *p, size_t n), (p, n))
CALL(void *, aligned_alloc, NULL, ENOMEM, (size_t a, size_t n), (a, n))
CALL(void *, mmap, MAP_FAILED, ENOMEM, (void *a, size_t n, int p, int f, int fd, off_t o), (a, n, p, f, fd, o))
CALL(ssize_t, read, -1, EIO, (int fd, void *p, size_t n), (fd, p, n))
CALL(ssize_t, pread, -1, EIO, (int fd, void *p, size_t n, off_t o), (fd, p, n, o))
CALL(ssize_t, write, -1, ENOSPC, (int fd, const void *p, size_t n), (fd, p, n))
CALL(ssize_t, pwrite, -1, ENOSPC, (int fd, const void *p, size_t n, off_t o), (fd, p, n, o))
CALL(int, ftruncate, -1, ENOSPC, (int fd, off_t n), (fd, n))
CALL(int, truncate, -1, ENOSPC, (const char *p, off_t n), (p, n))
CALL(int, posix_fallocate, ENOSPC, ENOSPC, (int fd, off_t o, off_t n), (fd, o, n))
CALL(int, mkdir, -1, ENOSPC, (const char *p, mode_t m), (p, m))
CALL(char *, mkdtemp, NULL, ENOSPC, (char *p), (p))
CALL(int, mkstemp, -1, ENOSPC, (char *p), (p))
CALL(int, rename, -1, EIO, (const char *a, const char *b), (a, b))
CALL(int, fstat, -1, EIO, (int fd, struct stat *s), (fd, s))
CALL(FILE *, fopen, NULL, EMFILE, (const char *p, const char *m), (p, m))
CALL(FILE *, fdopen, NULL, ENOMEM, (int fd, const char *m), (fd, m))
CALL(int, fflush, EOF, ENOSPC, (FILE *f), (f))
CALL(DIR *, opendir, NULL, EMFILE, (const char *p), (p))
CALL(int, pipe, -1, EMFILE, (int fd[2]), (fd))
CALL(int, pipe2, -1, EMFILE, (int fd[2], int f), (fd, f))
CALL(pid_t, fork, -1, EAGAIN, (void), ())
CALL(char *, realpath, NULL, ENOMEM, (const char *p, char *to), (p, to))
CALL(int, pthread_create, EAGAIN, EAGAIN, (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x),
	(t, a, f, x))

/* closes the file all the same, as a full disk does */
API int fclose(FILE *f)
{
	const bool fault = fails(__builtin_return_address(0), __func__);
	int result;

	NEXT(fclose);
	result = real(f);
	if (!fault)
		return result;
	errno = ENOSPC;
	return EOF;
}

API int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	NEXT(open);
	FAULT(EMFILE, -1)
	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return real(path, flags, mode);
}
