/* folder: the folder of records, kept open from the start of a process: what is at its path changes when the
 * program has another root, or mounts something there, before it records what it found. The makers library, which
 * is in all processes of a run, keeps it; all libraries of consan open files in it by this descriptor, and by the
 * path if the program has closed that, or there is no such library. */
#ifndef CONSAN_BASE_FOLDER_H
#define CONSAN_BASE_FOLDER_H

#include <stdbool.h>
#include <sys/stat.h>

struct folder {
	int fd;                  /* -1: none */
	dev_t dev;
	ino_t ino;
	char *path;
};
/* The variable of the makers library. */
#define FOLDER_HELD consan_run_folder
#define FOLDER_HELD_NAME "consan_run_folder"

/* Opens it; if it cannot be found at its path, where the process `run` finds it, if any. */
void folder_hold(struct folder *f, const char *path, const char *run);
/* Is its descriptor still open? */
bool folder_is_held(const struct folder *f);

/* Names of notes end so: what the process with the number at the begin of the name found is lost. */
#define FOLDER_LOST ".lost"
/* A number of 32 bits: processes that could not leave one. */
#define FOLDER_LOST_PAGE ".lost" /* created by consan-run */

/* As open(), symlink() and unlink(), of an absolute path. */
int folder_open(const char *path, int flags, unsigned mode);
int folder_symlink(const char *text, const char *path);
int folder_unlink(const char *path);

#endif
