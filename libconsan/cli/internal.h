/* main: what the commands of `consan` share. A command is a function in a file of
 * its own; main.c has the table. */
#ifndef CONSAN_MAIN_H
#define CONSAN_MAIN_H

#include "libconsan/base/base.h"

enum { EXIT_USAGE = 2 };

/* Says what is wrong on stderr; EXIT_USAGE, to be returned. */
int command_fail(const struct err *e);
/* argp's parser of an argument that must be there once. */
struct argp_state;
int command_one_file(const char **file, int key, char *arg, struct argp_state *state);

/* main() of each, with its own argv. */
int command_dump(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_report(int argc, char **argv);
int command_merge(int argc, char **argv);
int command_suppress(int argc, char **argv);

#endif
