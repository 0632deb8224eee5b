/* options: the options of all commands, from one table (options.def).
 *
 * consan-run takes them from a configuration file, $CONSAN_OPTIONS and the command line, in this
 * order: a later value of an option replaces an earlier one, lists grow. It passes the result to
 * the program as words, where they are parsed again. This module stores options and does not act
 * on them. */
#ifndef CONSAN_OPTIONS_H
#define CONSAN_OPTIONS_H

#include "libconsan/base/base.h"

struct argp;
struct argp_option;

#define OPTIONS_ENV "CONSAN_OPTIONS"
#define OPTIONS_FILE "consan.conf"

enum { OPT_BACKEND_AUTO, OPT_BACKEND_CPU, OPT_BACKEND_GPU, OPT_BACKEND_GPU_EMULATED };
enum { OPT_VERIFY_FIXES_AUTO, OPT_VERIFY_FIXES_NO, OPT_VERIFY_FIXES_YES };
enum { OPT_ASYNC_AUTO, OPT_ASYNC_LATE, OPT_ASYNC_EARLY, OPT_ASYNC_RANDOM };
enum { SWITCH_AUTO, SWITCH_NO, SWITCH_YES };
enum { API_ERRORS_NO, API_ERRORS_EXPLICIT, API_ERRORS_ALL };
enum { BACKTRACE_YES, BACKTRACE_NO };
enum { LIBRARY_KERNELS_REPORT, LIBRARY_KERNELS_IGNORE };
enum { SHARD_BY_AUTO, SHARD_BY_LAUNCHES, SHARD_BY_SCHEDULES };
enum { PRINT_INFO, PRINT_WARN, PRINT_ERROR }; /* in the order of enum severity */
enum { DEMANGLE_FULL, DEMANGLE_SIMPLE, DEMANGLE_NO };
enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct options_list {
	const char **at;
	size_t n, cap;
};

typedef bool opt_FLAG;
typedef uint64_t opt_NUM;
typedef double opt_SEC;
typedef const char *opt_STR;
typedef struct options_list opt_LIST;
typedef int opt_CHOICE;
typedef int opt_SWITCH;

/* The struct owns its strings; options_free() frees them. */
struct options {
	struct arena arena;
	struct text remarks;    /* lines for the user about options of compute-sanitizer; or empty */
#define GROUP(title)
#define OPT(type, name, key, arg, deflt, commands, help) opt_##type name;
#define ALIAS(name, alias, value)
#include "options.def"
#undef OPT
#undef ALIAS
#undef GROUP
};

void options_init(struct options *o); /* the defaults */
void options_free(struct options *o);

/* Sets one option. name: as on the command line, without the dashes; value: NULL for a flag that
 * is set. False and CONSAN_ERR_OPTION: unknown name or bad value. */
bool options_set(struct options *o, const char *name, const char *value,
	struct consan_err *e);

/* Sets options from words "name=value" (or "flag") separated by blanks; a backslash escapes a
 * blank or a backslash; dashes before the name are optional. Options of o that no word names
 * stay. words may be NULL. */
bool options_parse(struct options *o, const char *words, struct consan_err *e);
/* Do the options agree with each other? After all have been set. */
bool options_agree(const struct options *o, struct consan_err *e);
/* The inverse: words for all options that differ from their default. */
void options_format(const struct options *o, struct text *out);

/* ---- the command line (argp.c) ---- */

enum { OPTIONS_RUN = 1, OPTIONS_REPLAY = 2, OPTIONS_REPORT = 4 };
/* A child parser with the options of this command. Its input is the struct options, which the
 * parent sets in state->child_inputs[i] on ARGP_KEY_INIT. */
const struct argp *options_argp(unsigned command);

/* argp's error for an option that does not exist is short: this is called first, and sets
 * CONSAN_ERR_OPTION with the option that is spelled most like it. own: the command's options besides
 * those of the table, or NULL. For consan-run, what follows the first argument that is no option is
 * not for us; *config, which may be NULL, is set to the value of --config if it is given. */
bool options_known(unsigned command, const struct argp_option *own, int argc, char **argv,
	const char **config, struct consan_err *e);

/* ---- a configuration file and the environment (config.c) ---- */

/* Sets what the configuration file and $CONSAN_OPTIONS say. config: the value of --config, or NULL.
 * remarks: gets a line for each of the two that set something. False: CONSAN_ERR_OPTION or
 * CONSAN_ERR_IO; the text begins with the file and line, or with CONSAN_OPTIONS. */
bool options_preset(struct options *o, const char *config, struct text *remarks, struct consan_err *e);
/* Reads one file. */
bool options_config(struct options *o, const char *path, struct consan_err *e);

/* ---- all options, for the completion of shells ---- */

/* value: NULL for a flag, "FILE" or "DIR" for a path, "a|b" for a choice. */
struct options_row { char name[40]; char key; const char *value, *help; };
/* The k-th option of a command, from 0. False: there are k or fewer. */
bool options_row(unsigned command, size_t k, struct options_row *out);

/* ---- values with a syntax of their own (check.c) ---- */

/* "sm_90a", "compute_90a" or "90a"; false if it is none of these. */
bool options_arch(const char *arch, unsigned *sm, char *suffix);

/* Parses "2/4", the second of four. False unless 1 <= shard <= shards <= OPTIONS_SHARDS. */
#define OPTIONS_SHARDS 1000000u
bool options_shard(const char *text, unsigned *shard, unsigned *shards);
/* "auto", or "auto/4": *shards is 4, or 0. consan-run puts "2/4" in its place. */
bool options_shard_auto(const char *text, unsigned *shards);
/* Does --shard divide the schedules of --explore, and not the launches? */
bool options_shards_schedules(const struct options *o);

/* The path with %p replaced by pid and %% by %. The caller free()s it. */
char *options_path(const char *pattern, long pid);

/* Is the report to be written to stdout? "-" or "-.SUFFIX". */
bool options_is_stdout(const char *path);

/* Does a kernel name match a filter "kne=", "kns=" or "regex="? Both names are compared;
 * demangled may be NULL. */
bool options_match(const char *filter, const char *mangled, const char *demangled);
/* Do --kernel-name and --kernel-name-exclude select this kernel? */
bool options_wants(const struct options *o, const char *mangled, const char *demangled);

#endif
