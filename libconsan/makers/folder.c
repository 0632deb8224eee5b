/* folder: keeps the folder of records open (base/folder.h), and leaves a note there if the process starts a
 * program that consan cannot be loaded into, as its files are not in the root of that program. */
#include "libconsan/base/base.h"
#include "makers.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern struct folder FOLDER_HELD;
__attribute__((visibility("default"))) struct folder FOLDER_HELD = { .fd = -1 };

/* Counts processes that could not even leave a note: in a page of the folder, as a mapping needs neither a path nor
 * a descriptor. NULL: there is none. */
extern uint32_t *consan_run_lost;
__attribute__((visibility("default"))) uint32_t *consan_run_lost;

static char library[4096]; /* the file of this library */
static char run[24];       /* the process that is consan-run */
static long holder;        /* the process that was started, and not a child by fork() */

static const char *value_of(char *const *e, const char *name)
{
	for (; e && *e; e++)
		if (!strncmp(*e, name, strlen(name)))
			return *e + strlen(name);
	return NULL;
}

static void map_lost(void)
{
	int fd = FOLDER_HELD.fd < 0 ? -1 : openat(FOLDER_HELD.fd, FOLDER_LOST_PAGE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *consan_run_lost, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (page != MAP_FAILED)
		consan_run_lost = page;
}

__attribute__((constructor)) static void hold(int argc, char **argv, char **environment)
{
	const char *path = value_of(environment, "CONSAN_RESULTS="), *of = value_of(environment, "CONSAN_RUN=");
	Dl_info self;

	(void)argc;
	(void)argv;
	if (!path || !*path)
		return;
	snprintf(run, sizeof run, "%s", of ? of : "");
	folder_hold(&FOLDER_HELD, path, of);
	map_lost();
	holder = getpid();
	if (dladdr((void *)(intptr_t)hold, &self))
		snprintf(library, sizeof library, "%s", self.dli_fname);
}

/* Would a process that starts now find what it needs? */
static bool is_reachable(void)
{
	char elsewhere[4200];
	struct stat st;

	if (access(library, F_OK))
		return false;
	if (!stat(FOLDER_HELD.path, &st) && st.st_dev == FOLDER_HELD.dev && st.st_ino == FOLDER_HELD.ino)
		return true;
	snprintf(elsewhere, sizeof elsewhere, "/proc/%s/root%s", run, FOLDER_HELD.path);
	return !stat(elsewhere, &st) && st.st_dev == FOLDER_HELD.dev && st.st_ino == FOLDER_HELD.ino;
}

/* May run between vfork() and exec(): only the stack is used. One note for all that the process and its children
 * start. */
void makers_starts(const char *program)
{
	const int error = errno;
	char name[64], why[300];

	if (*library && folder_is_held(&FOLDER_HELD) && !is_reachable()) {
		snprintf(name, sizeof name, "%ld-start" FOLDER_LOST, holder);
		snprintf(why, sizeof why, "it starts %.150s, for which another root, another mount or its rights hide "
			"consan's files", program);
		(void)!symlinkat(why, FOLDER_HELD.fd, name); /* or an earlier one is there */
	}
	errno = error;
}
