/* argp: the command line. Makes argp's tables from options.def, and explains more than argp
 * about an option that does not exist. */
#include "internal.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

/* argp identifies an option without a letter by a number: its index in the table; options of
 * compute-sanitizer follow. */
enum { KEY_OPTION = 0x400, KEY_SANITIZER = 0x800, MAX_ROWS = 192 };
#define KEY_OF(i) (opt_row[i].key ? opt_row[i].key : KEY_OPTION + (int)(i))

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	struct consan_err e = { 0 };
	bool takes_value;

	if (key >= KEY_SANITIZER && key < KEY_SANITIZER + MAX_ROWS) {
		if (!sanitizer_set(o, sanitizer_option((size_t)(key - KEY_SANITIZER), &takes_value), arg,
				&e))
			argp_error(state, "%s", e.text);
		return 0;
	}
	for (size_t i = 0; i < opt_rows; i++) {
		if (!opt_row[i].id || KEY_OF(i) != key)
			continue;
		if (!opt_assign(o, &opt_row[i], arg, &e))
			argp_error(state, "%s", e.text);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- argp's tables, one for each command, in memory that lives as long as the process ---- */

static char *spelled(const char *id)
{
	char *name = base_strdup(id);

	opt_spell(id, name, strlen(id) + 1);
	return name;
}

static void add_option(struct argp_option *a, size_t i, int group)
{
	const struct opt_row *r = &opt_row[i];
	struct text help = { 0 };

	a->name = spelled(r->id);
	a->key = KEY_OF(i);
	a->arg = opt_is_flag(r) ? "no" : r->arg;
	a->flags = opt_is_flag(r) ? OPTION_ARG_OPTIONAL : 0;
	a->group = group;
	text_printf(&help, "%s", r->help);
	if (!opt_is_flag(r) && *r->deflt)
		text_printf(&help, " [%s]", r->deflt);
	a->doc = help.at;
}

static bool repeated(size_t k)
{
	bool takes_value;

	return k && !strcmp(sanitizer_option(k, &takes_value), sanitizer_option(k - 1, &takes_value));
}

static struct argp *make(unsigned command)
{
	struct argp_option *a = base_alloc(2 * MAX_ROWS * sizeof *a);
	struct argp *argp = base_alloc(sizeof *argp);
	const char *title = NULL, *theirs;
	bool takes_value;
	size_t n = 0;
	int group = 0;

	for (size_t i = 0; i < opt_rows; i++) {
		if (!opt_row[i].id) {
			title = opt_row[i].help;
			continue;
		}
		if (!(opt_row[i].commands & command))
			continue;
		if (title)
			a[n++] = (struct argp_option){ .doc = title, .group = ++group };
		title = NULL;
		add_option(&a[n++], i, group);
	}
	for (size_t k = 0; command == OPTIONS_RUN && (theirs = sanitizer_option(k, &takes_value)); k++)
		if (!repeated(k))
			a[n++] = (struct argp_option){ .name = spelled(theirs), .key = KEY_SANITIZER + (int)k,
				.arg = takes_value ? "" : NULL, .flags = OPTION_HIDDEN };
	argp->options = a;
	argp->parser = parse_key;
	return argp;
}

const struct argp *options_argp(unsigned command)
{
	static struct argp *made[OPTIONS_REPORT + 1]; /* 0: an argp without options */

	if (!made[command])
		made[command] = make(command);
	return made[command];
}

/* ---- options that do not exist ---- */

/* Those that argp adds. */
static const char *const added[] = { "help", "usage", "version" };

/* How a command takes a word. */
struct taken {
	bool known, exact;
	bool by_value; /* the next word is its value */
};

/* n: of the name, without "=value"; getopt accepts unique beginnings of names. */
static void take(struct taken *t, const char *id, const char *name, size_t n, bool by_value)
{
	size_t i = 0;

	while (i < n && id[i] && (id[i] == name[i] || (id[i] == '_' && name[i] == '-')))
		i++;
	if (i < n || t->exact)
		return;
	t->known = true;
	t->exact = !id[n];
	t->by_value = t->exact ? by_value : t->by_value | by_value;
}

static struct taken take_long(unsigned command, const struct argp_option *own, const char *name,
	size_t n)
{
	struct taken t = { 0 };
	const char *theirs;
	bool by_value;

	for (size_t i = 0; i < opt_rows; i++)
		if (opt_row[i].id && opt_row[i].commands & command)
			take(&t, opt_row[i].id, name, n, !opt_is_flag(&opt_row[i]));
	for (size_t k = 0; command == OPTIONS_RUN && (theirs = sanitizer_option(k, &by_value)); k++)
		take(&t, theirs, name, n, by_value);
	for (; own && (own->name || own->doc); own++)
		if (own->name)
			take(&t, own->name, name, n, own->arg != NULL);
	for (size_t i = 0; i < ARRAY_SIZE(added); i++)
		take(&t, added[i], name, n, false);
	if (name[n])
		t.by_value = false;
	return t;
}

/* -k VALUE, -kVALUE: only the former has its value in the next word. */
static bool short_by_value(unsigned command, const char *word)
{
	for (size_t i = 0; i < opt_rows; i++)
		if (opt_row[i].id && opt_row[i].commands & command && opt_row[i].key == word[1])
			return !opt_is_flag(&opt_row[i]) && !word[2];
	return false;
}

static bool unknown(unsigned command, const struct argp_option *own, const char *word, size_t n,
	struct consan_err *e)
{
	char name[80];
	struct similar near = { .word = name };

	snprintf(name, sizeof name, "%.*s", (int)n, word);
	for (; own && (own->name || own->doc); own++)
		if (own->name)
			similar_try(&near, own->name);
	for (size_t i = 0; i < ARRAY_SIZE(added); i++)
		similar_try(&near, added[i]);
	if (near.best)
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "unknown option --%s; did you mean --%s?", name,
			near.best);
	return opt_unknown(name, command, e);
}

bool options_known(unsigned command, const struct argp_option *own, int argc, char **argv,
	const char **config, struct consan_err *e)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		struct taken t;
		size_t n;

		if (*word != '-' || !word[1]) {
			if (command == OPTIONS_RUN)
				return true;
			continue;
		}
		if (!strcmp(word, "--"))
			return true;
		if (word[1] != '-') {
			i += short_by_value(command, word);
			continue;
		}
		word += 2;
		n = strcspn(word, "=");
		t = take_long(command, own, word, n);
		if (!t.known)
			return unknown(command, own, word, n, e);
		if (config && n > 2 && !strncmp(word, "config", n))
			*config = word[n] ? word + n + 1 : argv[i + 1];
		i += t.by_value;
	}
	return true;
}

/* ---- the table, for completion ---- */

bool options_row(unsigned command, size_t k, struct options_row *out)
{
	for (size_t i = 0; i < opt_rows; i++) {
		const struct opt_row *r = &opt_row[i];

		if (!r->id || !(r->commands & command) || k--)
			continue;
		*out = (struct options_row){ .key = (char)r->key, .value = r->arg, .help = r->help };
		opt_spell(r->id, out->name, sizeof out->name);
		return true;
	}
	return false;
}
