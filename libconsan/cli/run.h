/* run: what the files of consan-run share. */
#ifndef CONSAN_RUN_H
#define CONSAN_RUN_H

#include "libconsan/base/base.h"

#include <pthread.h>

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

/* ---- the options (check.c) ---- */

#define LIBRARY "libconsan-cuda.so"
#define INJECTED "libconsan-gpu.so"
#define MAKERS "libconsan-makers.so"

struct options;
/* Finds what is wrong with the options before the program runs, and prints it: values, files that
 * cannot be read or written, a backend that is not there. lib: the folder of our libraries; NULL: no program will run. */
bool check_options(const struct options *o, const char *lib);

/* ---- the store of PTX (origin_dir.c) ---- */

/* Creates the folder that the options want, or else one in `dir`, and names it in the environment,
 * so before the fork. Returns it; the caller passes it to close_origin(). */
char *open_origin(const struct options *o, const char *dir);
void close_origin(const char *dir, char *origin); /* NULL is fine */

/* ---- call stacks of the host (symbols.c) ---- */

struct symbols;
struct symbols *symbols_open(void);
void symbols_close(struct symbols *s);
/* Calls each() with the program's folder, and the folders in which it was compiled, as its debug
 * information says. */
void symbols_folders(struct symbols *s, const char *program, void (*each)(const char *folder));
/* For consan_report(). user: a struct symbols. */
uint32_t symbols_resolve(void *user, uint32_t raw);

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
