/* exec: programs start others with an environment of their own (`env -i`, Python's subprocess with env=), in
 * which the variables are missing that load consan into a process: what those run would not be checked, and
 * nothing would say so. So the functions that start a program put them back, unless the environment has
 * CONSAN_UNWATCHED.
 *
 * They may run between fork() or vfork() and exec(): only the stack is used. */
#include "libconsan/base/base.h"
#include "makers.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- what consan-run has set ---- */

enum { MOST = 32 };
struct variable {
	const char *name;            /* "LD_PRELOAD=" */
	const char *value;           /* of a list: the elements that are ours, with a ':' behind the last */
	bool list;
};
static struct variable ours[MOST];
static size_t nours;

/* Lists whose elements in the folder of this library are ours, and all before them, as consan-run puts its own
 * first. */
static const char *const lists[] = { "LD_PRELOAD=", "LD_LIBRARY_PATH=", "PYTHONPATH=" };
static const char *const others[] = { "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "ASAN_OPTIONS=" };

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static void add(const char *name, size_t n, char *value, bool list)
{
	if (nours < MOST)
		ours[nours++] = (struct variable){ base_strndup(name, n), value, list };
}

static void add_list(const char *name, const char *value, const char *folder)
{
	const size_t n = strlen(folder);
	const char *last = value;
	struct text t = { 0 };

	for (const char *at = value, *end; *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, ':');
		if (!strncmp(at, folder, n) && (at[n] == '/' || at + n == end))
			last = end;
	}
	if (last == value)
		return;
	text_printf(&t, "%.*s:", (int)(last - value), value);
	add(name, strlen(name), t.at, true);
}

__attribute__((constructor)) static void remember(int argc, char **argv, char **environment)
{
	char folder[4096];
	Dl_info self;

	(void)argc;
	(void)argv;
	if (!dladdr((void *)(intptr_t)remember, &self) || !strrchr(self.dli_fname, '/'))
		return;
	snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname);
	for (char **e = environment; e && *e; e++) {
		for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
			if (begins(*e, lists[i]))
				add_list(lists[i], *e + strlen(lists[i]), folder);
		for (size_t i = 0; i < ARRAY_SIZE(others); i++)
			if (begins(*e, others[i]))
				add(others[i], strlen(others[i]), base_strdup(*e + strlen(others[i])), false);
		if (begins(*e, "CONSAN_") && strchr(*e, '='))
			add(*e, (size_t)(strchr(*e, '=') - *e) + 1, base_strdup(strchr(*e, '=') + 1), false);
	}
}

/* ---- an environment that has it ---- */

static char **find(char *const *e, const char *name)
{
	for (; e && *e; e++)
		if (begins(*e, name))
			return (char **)e;
	return NULL;
}

static bool lacks(char *const *e, const struct variable *v)
{
	char **at = find(e, v->name);

	if (!at)
		return true;
	/* without its last ':', as that may be the end of the list */
	return v->list && !memmem(*at, strlen(*at), v->value, strlen(v->value) - 1);
}

static bool is_loader(const struct variable *v)
{
	return !strcmp(v->name, "LD_PRELOAD=");
}

/* Bytes of the strings that are missing in e; *n: their number. What loads consan must be missing: else the
 * program has chosen what the others are. */
static size_t missing(char *const *e, size_t *n)
{
	bool loads = true;
	size_t bytes = 0;

	*n = 0;
	for (size_t i = 0; i < nours; i++)
		loads &= !is_loader(&ours[i]) || !lacks(e, &ours[i]);
	if (loads || find(e, "CONSAN_UNWATCHED="))
		return 0;
	for (size_t i = 0; i < nours; i++) {
		char **old = find(e, ours[i].name);

		if (!lacks(e, &ours[i]))
			continue;
		bytes += strlen(ours[i].name) + strlen(ours[i].value) + (old ? strlen(*old) : 0) + 1;
		++*n;
	}
	return bytes;
}

static size_t length(char *const *e)
{
	size_t n = 0;

	while (e && e[n])
		n++;
	return n;
}

/* NAME=VALUE, before what the environment has */
static char *put(char *to, const struct variable *v, char *const *e)
{
	char **old = find(e, v->name);
	const char *rest = old ? *old + strlen(v->name) : "";

	to = stpcpy(stpcpy(to, v->name), v->value);
	if (v->list && !*rest)
		to--; /* the ':' */
	to = stpcpy(to, rest);
	*to = 0;
	return to + 1;
}

/* Fills to, which has room for e, n more and NULL, and text. */
static void restore(char **to, char *text, char *const *e)
{
	for (size_t k = 0; e && e[k]; k++) {
		bool replaced = false;

		for (size_t i = 0; i < nours; i++)
			replaced |= begins(e[k], ours[i].name) && lacks(e, &ours[i]);
		if (!replaced)
			*to++ = e[k];
	}
	for (size_t i = 0; i < nours; i++)
		if (lacks(e, &ours[i])) {
			*to++ = text;
			text = put(text, &ours[i], e);
		}
	*to = NULL;
}

/* Calls it with an environment that has what is missing in e. */
struct start {
	int (*run)(const struct start *s, char *const *e);
	const char *path;
	char *const *argv;
	int fd, flags;
	/* posix_spawn() */
	pid_t *pid;
	const posix_spawn_file_actions_t *files;
	const posix_spawnattr_t *attributes;
};

static int with_ours(const struct start *s, char *const *e)
{
	size_t n, bytes = missing(e, &n);

	if (!find(e, "CONSAN_UNWATCHED="))
		makers_starts(*s->path || !s->argv || !*s->argv ? s->path : *s->argv);
	if (!n)
		return s->run(s, e);
	char *all[length(e) + n + 1], text[bytes + 1];

	restore(all, text, e);
	return s->run(s, all);
}

/* ---- the functions, whose names the linker gives them (module.mk) ---- */

#define VISIBLE __attribute__((visibility("default")))
VISIBLE int makers_execve(const char *path, char *const argv[], char *const e[]);
VISIBLE int makers_execv(const char *path, char *const argv[]);
VISIBLE int makers_execvpe(const char *file, char *const argv[], char *const e[]);
VISIBLE int makers_execvp(const char *file, char *const argv[]);
VISIBLE int makers_fexecve(int fd, char *const argv[], char *const e[]);
VISIBLE int makers_execveat(int fd, const char *path, char *const argv[], char *const e[], int flags);
VISIBLE int makers_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
	const posix_spawnattr_t *attributes, char *const argv[], char *const e[]);
VISIBLE int makers_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *files,
	const posix_spawnattr_t *attributes, char *const argv[], char *const e[]);
VISIBLE int makers_execl(const char *path, const char *first, ...);
VISIBLE int makers_execlp(const char *file, const char *first, ...);
VISIBLE int makers_execle(const char *path, const char *first, ...);

static int run_execve(const struct start *s, char *const *e)
{
	return (int)syscall(SYS_execve, s->path, s->argv, e);
}

static int run_at(const struct start *s, char *const *e)
{
	return (int)syscall(SYS_execveat, s->fd, s->path, s->argv, e, s->flags);
}

static int (*real_execvpe)(const char *, char *const *, char *const *);
static int (*real_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
	char *const *, char *const *);
static int (*real_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
	char *const *, char *const *);

__attribute__((constructor)) static void look_up(void)
{
	real_execvpe = (__typeof__(real_execvpe))(intptr_t)dlsym(RTLD_NEXT, "execvpe");
	real_spawn = (__typeof__(real_spawn))(intptr_t)dlsym(RTLD_NEXT, "posix_spawn");
	real_spawnp = (__typeof__(real_spawnp))(intptr_t)dlsym(RTLD_NEXT, "posix_spawnp");
}

static int run_execvpe(const struct start *s, char *const *e)
{
	if (real_execvpe)
		return real_execvpe(s->path, s->argv, e);
	errno = ENOSYS;
	return -1;
}

static int run_spawn(const struct start *s, char *const *e)
{
	return real_spawn ? real_spawn(s->pid, s->path, s->files, s->attributes, s->argv, e) : ENOSYS;
}

static int run_spawnp(const struct start *s, char *const *e)
{
	return real_spawnp ? real_spawnp(s->pid, s->path, s->files, s->attributes, s->argv, e) : ENOSYS;
}

int makers_execve(const char *path, char *const argv[], char *const e[])
{
	return with_ours(&(struct start){ .run = run_execve, .path = path, .argv = argv }, e);
}

int makers_execv(const char *path, char *const argv[])
{
	return makers_execve(path, argv, environ);
}

int makers_execvpe(const char *file, char *const argv[], char *const e[])
{
	return with_ours(&(struct start){ .run = run_execvpe, .path = file, .argv = argv }, e);
}

int makers_execvp(const char *file, char *const argv[])
{
	return makers_execvpe(file, argv, environ);
}

int makers_fexecve(int fd, char *const argv[], char *const e[])
{
	return with_ours(&(struct start){ .run = run_at, .fd = fd, .path = "", .argv = argv,
		.flags = 0x1000 /* AT_EMPTY_PATH */ }, e);
}

int makers_execveat(int fd, const char *path, char *const argv[], char *const e[], int flags)
{
	return with_ours(&(struct start){ .run = run_at, .fd = fd, .path = path, .argv = argv, .flags = flags }, e);
}

int makers_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
	const posix_spawnattr_t *attributes, char *const argv[], char *const e[])
{
	return with_ours(&(struct start){ .run = run_spawn, .path = path, .argv = argv, .pid = pid, .files = files,
		.attributes = attributes }, e);
}

int makers_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *files,
	const posix_spawnattr_t *attributes, char *const argv[], char *const e[])
{
	return with_ours(&(struct start){ .run = run_spawnp, .path = file, .argv = argv, .pid = pid, .files = files,
		.attributes = attributes }, e);
}

/* The arguments from `first` to NULL, and what follows it. */
static size_t count(va_list list)
{
	size_t n = 1;

	while (va_arg(list, char *))
		n++;
	return n;
}

#define COLLECT(first, then) \
	va_list list, again; \
	va_start(list, first); \
	va_copy(again, list); \
	char *argv[count(again) + 1]; \
	va_end(again); \
	argv[0] = (char *)first; \
	for (size_t k_ = 1; argv[k_ - 1]; k_++) \
		argv[k_] = va_arg(list, char *); \
	then; \
	va_end(list)

int makers_execl(const char *path, const char *first, ...)
{
	COLLECT(first, );
	return makers_execve(path, argv, environ);
}

int makers_execlp(const char *file, const char *first, ...)
{
	COLLECT(first, );
	return makers_execvpe(file, argv, environ);
}

int makers_execle(const char *path, const char *first, ...)
{
	char *const *e;

	COLLECT(first, e = va_arg(list, char *const *));
	return makers_execve(path, argv, e);
}
