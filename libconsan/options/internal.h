/* internal: the table of options as the files of this module see it.
 *
 *   options.c            the table, values, words
 *   check.c              values with a syntax of their own
 *   pattern.c            how large a regular expression becomes
 *   argp.c               the command line
 *   config.c             consan.conf and $CONSAN_OPTIONS
 *   compute_sanitizer.c  options of compute-sanitizer that have another name here, or none */
#ifndef CONSAN_OPTIONS_INTERNAL_H
#define CONSAN_OPTIONS_INTERNAL_H

#include "options.h"

enum opt_type { TYPE_FLAG, TYPE_NUM, TYPE_SEC, TYPE_STR, TYPE_LIST, TYPE_CHOICE,
	TYPE_SWITCH }; /* a flag that also tells whether it was given */

struct opt_row {
	const char *id;   /* NULL: a group, whose title is in help */
	enum opt_type type;
	int key;          /* the one-letter form, or 0 */
	const char *arg, *deflt;
	unsigned commands; /* OPTIONS_RUN, ... */
	const char *help;
	size_t at;        /* offset in struct options */
};
extern const struct opt_row opt_row[];
extern const size_t opt_rows;

/* NULL: no such option. '-' and '_' are equal. */
const struct opt_row *opt_find(const char *name);
bool opt_same_name(const char *id, const char *name);
/* The option as it is typed, without the dashes. */
void opt_spell(const char *id, char *out, size_t n);
/* Is it set by itself, without a value? */
bool opt_is_flag(const struct opt_row *r);
/* Is its value a path? */
bool opt_is_path(const struct opt_row *r);
/* v NULL: given without a value. False: CONSAN_ERR_OPTION. */
bool opt_assign(struct options *o, const struct opt_row *r, const char *v, struct consan_err *e);
/* check.c: checks a value beyond its type. */
bool opt_check(const struct opt_row *r, const char *v, struct consan_err *e);
/* pattern.c: about how many nodes regcomp() makes of an extended regular expression, at most one more than
 * OPTIONS_PATTERN_MOST, which needs a few MiB. */
#define OPTIONS_PATTERN_MOST 10000ul
unsigned long options_pattern_size(const char *pattern);
/* Sets CONSAN_ERR_OPTION for an option that does not exist (command 0), or not in this command. */
bool opt_unknown(const char *name, unsigned command, struct consan_err *e);

/* ---- compute_sanitizer.c ---- */

/* The k-th name of the table, from 0; NULL: there are k or fewer. *takes_value: is a word that
 * follows it its value? */
const char *sanitizer_option(size_t k, bool *takes_value);
/* Is it in the table? */
bool sanitizer_known(const char *name);
/* Acts on such an option. False and CONSAN_ERR_OPTION: it has no equal; the text says what to
 * use. */
bool sanitizer_set(struct options *o, const char *name, const char *value, struct consan_err *e);

#endif
