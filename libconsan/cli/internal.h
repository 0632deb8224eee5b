/* internal: what the commands of `consan` share. Each command is a function in a file of its
 * own; main.c has the table of commands. */
#ifndef CONSAN_CLI_INTERNAL_H
#define CONSAN_CLI_INTERNAL_H

#include "libconsan/base/base.h"

enum { EXIT_USAGE = 2 };

/* Prints the error to stderr. Returns EXIT_USAGE, for the caller to return. */
int command_fail(const struct consan_err *e);
/* An argp parser for exactly one file argument. */
struct argp_state;
int command_one_file(const char **file, int key, char *arg, struct argp_state *state);

/* The commands, each with its own argv. Return the exit status. */
int command_dump(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_report(int argc, char **argv);
int command_merge(int argc, char **argv);
int command_suppress(int argc, char **argv);
int command_recover(int argc, char **argv);
int command_completion(int argc, char **argv);
/* The k-th command, from 0; NULL: there are k or fewer. */
const char *command_name(size_t k);
/* The options of a command besides those of options.def; NULL: none. */
struct argp_option;
const struct argp_option *command_report_options(const char *command);

#endif
