/* run: what the files of consan-run share. */
#ifndef CONSAN_RUN_H
#define CONSAN_RUN_H

#include "libconsan/base/base.h"

#include <pthread.h>

struct options;
enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127, EXIT_USAGE = 64, EXIT_INTERNAL = 70 };

/* Prints "consan-run: text" to stderr. */
void print_error(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* ---- the program (program.c) ---- */

bool is_file(const char *path);
/* The path of a program, searched for as by a shell. NULL: not found. The caller free()s it. */
char *find_program(const char *name);
/* 0 if the program can be run under consan; otherwise prints the reason and returns the exit
 * status. Reads only the first bytes of the program. */
int check_program(const char *path);

/* ---- running it (child.c) ---- */

struct program {
	const struct options *options;
	char *path, **argv;
	const char *lib;        /* folder of our libraries, as library_dir() */
	const char *dir;        /* folder of the record files */
};
/* At the start: opens the standard descriptors that are closed, so that no file of ours gets one, and
 * ignores SIGPIPE: reports are written although stderr has no reader. The program has them as they were. */
void open_standard(void);
/* Runs the program and waits for it and the processes that it leaves behind. *status: its exit status,
 * 128 + n if signal n ended it. unseen: lines about processes that still run. False: it could not be
 * run; *status is that of consan-run. */
bool run_program(const struct program *p, int *status, struct text *unseen);

/* ---- which part of the work it is (launcher.c) ---- */

struct shard;
/* The shard that --shard or the launcher's variables name, in o as I/N and in *out. False: printed why. */
bool launcher_shard(struct options *o, struct shard *out);

/* ---- its environment (environ.c) ---- */

/* The folder of our library: that of consan-run, or where it is installed. It has no other
 * libraries, because its libcuda.so.1 is only for programs under consan-run. NULL: not found. */
char *library_dir(void);
/* The dynamic linker separates paths at spaces and colons: such a folder gets a link in dir, which takes
 * its place. False: impossible, printed why. */
bool link_library_dir(char **lib, const char *dir);
/* The program may change its working directory. */
void absolute_paths(struct options *o);
void set_environment(const struct options *o, const char *lib, const char *dir); /* in the child */

/* ---- the options (check.c) ---- */

#define LIBRARY "libconsan-cuda.so"
#define INJECTED "libconsan-gpu.so"
#define MAKERS "libconsan-makers.so"
#define THREADS "libconsan-threads.so"

/* Finds what is wrong with the options before the program runs, and prints it: values, files that
 * cannot be read or written, a backend that is not there. lib: the folder of our libraries; NULL: no program will run. */
bool check_options(const struct options *o, const char *lib);
/* --backend=auto: becomes gpu, or stays as it is, which means cpu; the reason is printed where it may
 * matter. */
void choose_backend(struct options *o, const char *lib, const char *program);

/* ---- --gpu-prepare (prepare.c) ---- */
/* Prepares these files, with the environment of open_origin(). False: printed why. */
bool prepare_files(const struct options *o, const char *lib, char **file);

/* ---- the store of PTX (origin_dir.c) ---- */

/* Creates the folder that the options want, or else one in `dir`, and names it in the environment,
 * so before the fork. *kept: it is the one that the options want; *why: set if they want one that cannot be
 * used. Returns the folder; the caller passes it to close_origin(). */
char *open_origin(const struct options *o, const char *dir, bool *kept, struct consan_err *why);
void close_origin(const struct options *o, const char *dir, char *origin); /* NULL is fine */

/* ---- the progress line (display.c) ---- */

struct display {
	struct progress *page;  /* shared with the processes of the program; NULL: no progress line */
	char *path;             /* of the shared file */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool over;
};
/* Creates the shared file in dir and names it in the environment, so before the fork. Shows
 * nothing if quiet, or if stderr is not a terminal. */
void display_open(struct display *d, const char *dir, bool quiet);
void display_begin(struct display *d); /* after the fork */
void display_end(struct display *d);

#endif
