/* config: options from consan.conf and from $CONSAN_OPTIONS. */
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- one file ---- */

static char *trim(char *s)
{
	char *end;

	s += strspn(s, " \t\r");
	for (end = s + strlen(s); end > s && strchr(" \t\r", end[-1]); end--)
		;
	*end = 0;
	return s;
}

/* Paths in a file are relative to its folder, so that they do not depend on the working
 * directory. */
static char *resolved(const struct opt_row *r, const char *path, const char *value)
{
	const char *slash = strrchr(path, '/');
	struct text t = { 0 };

	if (r && opt_is_path(r) && *value && *value != '/' && slash && !options_is_stdout(value))
		text_printf(&t, "%.*s", (int)(slash + 1 - path), path);
	text_printf(&t, "%s", value);
	return t.at;
}

/* "option = value" or "flag". */
static bool set_line(struct options *o, const char *path, char *line, struct consan_err *e)
{
	char *equals = strchr(line, '='), *name, *value = NULL;
	bool ok;

	if (equals)
		*equals = 0;
	name = trim(line);
	name += strspn(name, "-");
	if (!*name)
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "expected `option = value'");
	if (opt_same_name("config", name))
		return err_set(e, CONSAN_ERR_OPTION, 0, 0,
			"config: a configuration file cannot name another");
	if (equals)
		value = resolved(opt_find(name), path, trim(equals + 1));
	ok = options_set(o, name, value, e);
	free(value);
	return ok;
}

bool options_config(struct options *o, const char *path, struct consan_err *e)
{
	struct text all = { 0 };
	char *line, *rest;
	int number = 0;
	bool ok = text_read(&all, path, e);

	rest = all.n ? all.at : NULL;
	while (ok && (line = strsep(&rest, "\n"))) {
		struct consan_err why = { 0 };

		number++;
		line = trim(line);
		if (!*line || *line == '#')
			continue;
		ok = set_line(o, path, line, &why)
			|| err_set(e, CONSAN_ERR_OPTION, 0, 0, "%s:%d: %s", path, number, why.text);
	}
	text_free(&all);
	return ok;
}

/* ---- the search for it ---- */

/* A file of another user does not set options: a folder above may belong to any user. */
static bool is_trusted(const char *path, bool *exists)
{
	struct stat st;

	*exists = !stat(path, &st) && S_ISREG(st.st_mode);
	return *exists && (!geteuid() || !st.st_uid || st.st_uid == geteuid());
}

/* The path of consan.conf, to be free()d, or NULL. Ends at the root of the file system. */
static char *search(struct text *remarks)
{
	char dir[PATH_MAX];
	struct text path = { 0 };
	bool exists;
	char *slash;

	if (!getcwd(dir, sizeof dir))
		return NULL;
	for (;;) {
		path.n = 0;
		text_printf(&path, "%s/" OPTIONS_FILE, dir);
		if (is_trusted(path.at, &exists))
			return path.at;
		if (exists) {
			text_printf(remarks, "%s is ignored: it belongs to another user\n", path.at);
			break;
		}
		slash = strrchr(dir, '/');
		if (!slash || !*dir)
			break;
		*slash = 0;
	}
	text_free(&path);
	return NULL;
}

static void add_source(struct text *remarks, const struct options *from, const char *what)
{
	struct text words = { 0 };

	options_format(from, &words);
	if (words.n)
		text_printf(remarks, "options of %s: %s\n", what, words.at);
	text_free(&words);
}

/* Applies a source to o, and to an empty struct to know what it sets. */
static bool read_file(struct options *o, const char *path, struct text *remarks, struct consan_err *e)
{
	struct options own;
	bool ok;

	options_init(&own);
	ok = options_config(&own, path, e) && options_config(o, path, e);
	if (ok)
		add_source(remarks, &own, path);
	options_free(&own);
	return ok;
}

bool options_preset(struct options *o, const char *given, struct text *remarks, struct consan_err *e)
{
	const char *words = getenv(OPTIONS_ENV);
	struct consan_err why = { 0 };
	struct options environment;
	char *path = NULL;
	bool ok = true;

	options_init(&environment);
	if (!options_parse(&environment, words, &why))
		ok = err_set(e, CONSAN_ERR_OPTION, 0, 0, OPTIONS_ENV ": %s", why.text);
	if (!given && *environment.config)
		given = environment.config;
	if (!given)
		path = search(remarks);
	else if (strcmp(given, "none"))
		path = base_strdup(given);
	if (ok && path)
		ok = read_file(o, path, remarks, e);
	if (ok) {
		ok = options_parse(o, words, e);
		add_source(remarks, &environment, "$" OPTIONS_ENV);
	}
	free(path);
	options_free(&environment);
	return ok;
}
