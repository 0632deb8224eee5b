/* folder: see folder.h. */
#include "base.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* where programs that count their descriptors do not meet it */
#define HIGH 900

static int open_path(const char *path)
{
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void folder_hold(struct folder *f, const char *path, const char *run)
{
	struct text elsewhere = { 0 };
	struct stat st;
	int fd = open_path(path), high;

	if (fd < 0 && run) {
		text_printf(&elsewhere, "/proc/%s/root%s", run, path);
		fd = open_path(elsewhere.at);
		text_free(&elsewhere);
	}
	high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	fd = base_above_standard(fd);
	if (fd < 0 || fstat(fd, &st))
		return;
	*f = (struct folder){ fd, st.st_dev, st.st_ino, base_strdup(path) };
}

bool folder_is_held(const struct folder *f)
{
	struct stat st;

	return f->fd >= 0 && !fstat(f->fd, &st) && st.st_dev == f->dev && st.st_ino == f->ino;
}

/* *name: the path's name in the folder that is held. NULL: it is in another one, or that is not held. */
static const struct folder *held(const char *path, const char **name)
{
	const struct folder *f = dlsym(RTLD_DEFAULT, FOLDER_HELD_NAME);
	const size_t n = f && f->path ? strlen(f->path) : 0;

	if (!n || strncmp(path, f->path, n) || path[n] != '/' || !folder_is_held(f))
		return NULL;
	*name = path + n + 1;
	return f;
}

int folder_open(const char *path, int flags, unsigned mode)
{
	const char *name;
	const struct folder *f = held(path, &name);

	return f ? openat(f->fd, name, flags, mode) : open(path, flags, mode);
}

int folder_symlink(const char *text, const char *path)
{
	const char *name;
	const struct folder *f = held(path, &name);

	return f ? symlinkat(text, f->fd, name) : symlink(text, path);
}

int folder_unlink(const char *path)
{
	const char *name;
	const struct folder *f = held(path, &name);

	return f ? unlinkat(f->fd, name, 0) : unlink(path);
}
