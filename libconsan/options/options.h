/* options: what the user chose, out of one table (options.def).
 *
 * consan-run and consan parse their command lines with options_argp; the
 * choices travel to the watched process as words in $CONSAN_OPTIONS and are
 * parsed there again. Nothing here acts on an option. */
#ifndef CONSAN_OPTIONS_H
#define CONSAN_OPTIONS_H

#include "libconsan/base/base.h"

struct argp;

#define OPTIONS_ENV "CONSAN_OPTIONS"

enum { BACKEND_AUTO, BACKEND_CPU, BACKEND_GPU };
enum { OPT_BACKEND_AUTO, OPT_BACKEND_CPU, OPT_BACKEND_GPU, OPT_BACKEND_REHEARSE };
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

/* Strings belong to the struct; options_free() frees them. */
struct options {
	struct arena arena;
#define GROUP(title)
#define OPT(type, name, key, arg, deflt, help) opt_##type name;
#include "options.def"
#undef OPT
#undef GROUP
};

void options_init(struct options *o); /* the defaults */
void options_free(struct options *o);

/* Sets one option; name as on the command line, without the dashes; value NULL
 * for a flag. Refuses unknown names and bad values. */
bool options_set(struct options *o, const char *name, const char *value,
	struct err *e);

/* Words "name=value" (or "flag") between blanks; a backslash keeps a blank, a
 * quote or a backslash. Adds to what o holds. words may be NULL. */
bool options_parse(struct options *o, const char *words, struct err *e);
/* The same words again, for those options that differ from the default. */
void options_format(const struct options *o, struct text *out);

/* A child parser for argp. Its input is the struct options; a parent hands it
 * on by state->child_inputs[i] in ARGP_KEY_INIT. */
extern const struct argp options_argp;

/* "sm_90a", "compute_90a" or "90a"; false if it is none of these. */
bool options_arch(const char *arch, unsigned *sm, char *suffix);

/* "2/4": the second of four. False if it is not 1 <= shard <= shards. */
bool options_shard(const char *text, unsigned *shard, unsigned *shards);

/* The path with %p replaced by the process id and %% by %. free() it. */
char *options_path(const char *pattern, long pid);

/* Does this kernel name match a filter "kne=", "kns=" or "regex="? Both names
 * are tried; demangled may be NULL. */
bool options_match(const char *filter, const char *mangled, const char *demangled);
/* Do --kernel-name and --kernel-name-exclude let it through? */
bool options_wants(const struct options *o, const char *mangled, const char *demangled);

#endif
