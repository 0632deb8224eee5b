/* options: the options of all commands, from one table (options.def).
 *
 * consan-run and consan parse their command lines with options_argp. consan-run passes the
 * options to the program as words in $CONSAN_OPTIONS, where they are parsed again. This
 * module stores options and does not act on them. */
#ifndef CONSAN_OPTIONS_H
#define CONSAN_OPTIONS_H

#include "libconsan/base/base.h"

struct argp;

#define OPTIONS_ENV "CONSAN_OPTIONS"

enum { OPT_BACKEND_AUTO, OPT_BACKEND_CPU, OPT_BACKEND_GPU, OPT_BACKEND_GPU_EMULATED };
enum { OPT_VERIFY_FIXES_AUTO, OPT_VERIFY_FIXES_NO, OPT_VERIFY_FIXES_YES };
enum { OPT_ASYNC_AUTO, OPT_ASYNC_LATE, OPT_ASYNC_EARLY, OPT_ASYNC_RANDOM };
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

/* The struct owns its strings; options_free() frees them. */
struct options {
	struct arena arena;
#define GROUP(title)
#define OPT(type, name, key, arg, deflt, help) opt_##type name;
#define ALIAS(name, alias, value)
#include "options.def"
#undef OPT
#undef ALIAS
#undef GROUP
};

void options_init(struct options *o); /* the defaults */
void options_free(struct options *o);

/* Sets one option. name: as on the command line, without the dashes; value: NULL for a flag.
 * False and ERR_OPTION: unknown name or bad value. */
bool options_set(struct options *o, const char *name, const char *value,
	struct err *e);

/* Sets options from words "name=value" (or "flag") separated by blanks; a backslash escapes a
 * blank or a backslash. Options of o that no word names stay. words may be NULL. */
bool options_parse(struct options *o, const char *words, struct err *e);
/* Do the options agree with each other? After all have been set. */
bool options_agree(const struct options *o, struct err *e);
/* The inverse: words for all options that differ from their default. */
void options_format(const struct options *o, struct text *out);

/* A child parser for argp. Its input is the struct options, which the parent sets in
 * state->child_inputs[i] on ARGP_KEY_INIT. */
extern const struct argp options_argp;

/* "sm_90a", "compute_90a" or "90a"; false if it is none of these. */
bool options_arch(const char *arch, unsigned *sm, char *suffix);

/* Parses "2/4", the second of four. False unless 1 <= shard <= shards. */
bool options_shard(const char *text, unsigned *shard, unsigned *shards);

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
