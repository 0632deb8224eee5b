/* options: parsers for words and for argp, generated from options.def. */
#include "options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum type { TYPE_FLAG, TYPE_NUM, TYPE_SEC, TYPE_STR, TYPE_LIST, TYPE_CHOICE };

static const struct row {
	const char *id; /* NULL: a group, whose title is in help */
	enum type type;
	int key;
	const char *arg, *deflt, *help;
	size_t at;
} row[] = {
#define GROUP(title) { .help = title },
#define OPT(type, name, key, arg, deflt, help) \
	{ #name, TYPE_##type, key, arg, deflt, help, offsetof(struct options, name) },
#define ALIAS(name, alias, value)
#include "options.def"
#undef OPT
#undef GROUP
#undef ALIAS
};

static const struct { size_t at; const char *alias, *value; } aliases[] = {
#define GROUP(title)
#define OPT(type, name, key, arg, deflt, help)
#define ALIAS(name, alias, value) { offsetof(struct options, name), alias, value },
#include "options.def"
#undef OPT
#undef GROUP
#undef ALIAS
};

/* argp identifies an option without a letter by its index in the table */
#define KEY_OF(i) (row[i].key ? row[i].key : 0x100 + (int)(i))

/* '-' and '_' are equal, so that both spellings of a name are accepted */
static bool same_name(const char *id, const char *name)
{
	for (; *id && (*id == *name || (*id == '_' && *name == '-')); id++)
		name++;
	return !*id && !*name;
}

static void spell(const char *id, char *out, size_t n)
{
	size_t i;

	for (i = 0; id[i] && i + 1 < n; i++)
		out[i] = id[i] == '_' ? '-' : id[i];
	out[i] = 0;
}

/* ---- values ---- */

static bool choice(const struct row *r, const char *value, int *out)
{
	const char *all = r->arg;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (aliases[i].at == r->at && !strcmp(aliases[i].alias, value))
			value = aliases[i].value;
	n = strlen(value);
	for (int k = 0;; k++) {
		size_t len = strcspn(all, "|");

		if (len == n && !memcmp(all, value, n)) {
			*out = k;
			return true;
		}
		if (!all[len])
			return false;
		all += len + 1;
	}
}

static bool number(const char *s, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(s, &end, 0);
	return isdigit((unsigned char)*s) && !*end && !errno;
}

static const char *suffix_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strchr(dot, '/') ? dot + 1 : "";
}

static bool check_filter(const char *v, struct err *e)
{
	regex_t re;
	char why[160];
	int rc;

	if (!strncmp(v, "kne=", 4) || !strncmp(v, "kns=", 4)
			|| !strncmp(v, "kernel_name=", 12)
			|| !strncmp(v, "kernel_substring=", 17))
		return true;
	if (strncmp(v, "regex=", 6))
		return err_set(e, ERR_OPTION, 0, 0, "kernel filter '%s': must be kne=NAME, "
			"kns=TEXT or regex=RE", v);
	rc = regcomp(&re, v + 6, REG_EXTENDED | REG_NOSUB);
	if (!rc) {
		regfree(&re);
		return true;
	}
	regerror(rc, &re, why, sizeof why);
	return err_set(e, ERR_OPTION, 0, 0, "kernel filter '%s': %s", v, why);
}

static const char *const report_suffix[] = { "html", "json", "sarif", "xml", "github",
	"perfetto-trace", "txt" };

/* Checks a value beyond its type. */
static bool check_value(const struct row *r, const char *v, struct err *e)
{
	const char *end;
	unsigned sm, shards;
	char suffix;

	switch (r->at) {
	case offsetof(struct options, kernel_name):
	case offsetof(struct options, kernel_name_exclude):
		return check_filter(v, e);
	case offsetof(struct options, arch):
		if (options_arch(v, &sm, &suffix))
			return true;
		return err_set(e, ERR_OPTION, 0, 0, "--arch=%s: must be sm_80, sm_90a, ...", v);
	case offsetof(struct options, report):
		end = suffix_of(v);
		for (size_t i = 0; i < ARRAY_SIZE(report_suffix); i++)
			if (!strcmp(end, report_suffix[i]))
				return true;
		return err_set(e, ERR_OPTION, 0, 0, "--report=%s: must end in .html, "
			".json, .sarif, .xml, .github, .perfetto-trace or .txt", v);
	case offsetof(struct options, shard):
		if (options_shard(v, &sm, &shards))
			return true;
		return err_set(e, ERR_OPTION, 0, 0, "--shard=%s: must be I/N with I from 1 to N", v);
	case offsetof(struct options, knob):
		end = strchr(v, '=');
		if (end && end > v && isdigit((unsigned char)end[1]))
			return true;
		return err_set(e, ERR_OPTION, 0, 0, "--knob=%s: must be NAME=NUMBER", v);
	case offsetof(struct options, error_exitcode):
		if (strtoull(v, NULL, 0) <= 255)
			return true;
		return err_set(e, ERR_OPTION, 0, 0, "--error-exitcode=%s: must be from "
			"0 to 255", v);
	}
	return true;
}

static bool set(struct options *o, const struct row *r, const char *v, struct err *e)
{
	void *at = (char *)o + r->at;
	struct options_list *list;
	char name[40], *end;
	double sec;

	spell(r->id, name, sizeof name);
	if (!v && r->type != TYPE_FLAG)
		return err_set(e, ERR_OPTION, 0, 0, "--%s needs a value", name);
	if (v && !check_value(r, v, e))
		return false;
	switch (r->type) {
	case TYPE_FLAG:
		if (v && strcmp(v, "0") && strcmp(v, "1"))
			return err_set(e, ERR_OPTION, 0, 0, "--%s takes no value", name);
		*(opt_FLAG *)at = !v || *v == '1';
		return true;
	case TYPE_NUM:
		if (!number(v, at))
			return err_set(e, ERR_OPTION, 0, 0, "--%s=%s: must be a number",
				name, v);
		return true;
	case TYPE_SEC:
		sec = strtod(v, &end);
		if (end == v || *end || !(sec >= 0))
			return err_set(e, ERR_OPTION, 0, 0, "--%s=%s: must be a number of "
				"seconds", name, v);
		*(opt_SEC *)at = sec;
		return true;
	case TYPE_STR:
		*(opt_STR *)at = arena_strndup(&o->arena, v, strlen(v));
		return true;
	case TYPE_LIST:
		list = at;
		if (!*v)
			return err_set(e, ERR_OPTION, 0, 0, "--%s: empty value", name);
		vec_push(list, arena_strndup(&o->arena, v, strlen(v)));
		return true;
	case TYPE_CHOICE:
		if (!choice(r, v, at))
			return err_set(e, ERR_OPTION, 0, 0, "--%s=%s: must be one of %s", name,
				v, r->arg);
		return true;
	}
	return true;
}

void options_init(struct options *o)
{
	struct err e = { 0 };

	memset(o, 0, sizeof *o);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (row[i].id && row[i].type != TYPE_LIST && row[i].type != TYPE_STR
				&& !set(o, &row[i], row[i].deflt, &e))
			base_die("options.def: %s", e.text);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (row[i].id && row[i].type == TYPE_STR)
			*(opt_STR *)(void *)((char *)o + row[i].at) = row[i].deflt;
}

void options_free(struct options *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (row[i].id && row[i].type == TYPE_LIST)
			vec_free((opt_LIST *)(void *)((char *)o + row[i].at));
	arena_free(&o->arena);
}

bool options_set(struct options *o, const char *name, const char *value, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (row[i].id && same_name(row[i].id, name))
			return set(o, &row[i], value, e);
	return err_set(e, ERR_OPTION, 0, 0, "unknown option --%s", name);
}

/* ---- words ---- */

bool options_parse(struct options *o, const char *words, struct err *e)
{
	struct text word = { 0 };
	bool ok = true;
	char *value;

	while (ok && words && *words) {
		words += strspn(words, " \t\n");
		if (!*words)
			break;
		word.n = 0;
		for (; *words && !strchr(" \t\n", *words); words++) {
			if (*words == '\\' && words[1])
				words++;
			text_add(&word, words, 1);
		}
		value = strchr(word.at, '=');
		if (value)
			*value++ = 0;
		ok = options_set(o, word.at, value, e);
	}
	text_free(&word);
	return ok;
}

bool options_agree(const struct options *o, struct err *e)
{
	if (!o->reads || o->backend == OPT_BACKEND_AUTO || o->backend == OPT_BACKEND_CPU)
		return true;
	return err_set(e, ERR_OPTION, 0, 0, "reads=%s: instrumented kernels read what the memory holds; "
		"only the cpu backend can choose an older value", o->reads == 1 ? "oldest" : "random");
}

static void add_word(struct text *out, const char *id, const char *value)
{
	char name[40];

	spell(id, name, sizeof name);
	text_printf(out, "%s%s=", out->n ? " " : "", name);
	for (; *value; value++) {
		if (strchr(" \t\n\\", *value))
			text_add(out, "\\", 1);
		text_add(out, value, 1);
	}
}

void options_format(const struct options *o, struct text *out)
{
	char number_text[40];
	struct options plain;

	text_add(out, "", 0);
	options_init(&plain);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		const void *at = (const char *)o + row[i].at;
		const void *was = (const char *)&plain + row[i].at;
		const struct options_list *list;
		const char *alt;

		if (!row[i].id)
			continue;
		switch (row[i].type) {
		case TYPE_FLAG:
			if (*(const opt_FLAG *)at != *(const opt_FLAG *)was)
				add_word(out, row[i].id, *(const opt_FLAG *)at ? "1" : "0");
			break;
		case TYPE_NUM:
			if (*(const opt_NUM *)at == *(const opt_NUM *)was)
				break;
			snprintf(number_text, sizeof number_text, "%llu",
				(unsigned long long)*(const opt_NUM *)at);
			add_word(out, row[i].id, number_text);
			break;
		case TYPE_SEC:
			if (*(const opt_SEC *)at == *(const opt_SEC *)was)
				break;
			snprintf(number_text, sizeof number_text, "%.17g", *(const opt_SEC *)at);
			add_word(out, row[i].id, number_text);
			break;
		case TYPE_STR:
			if (strcmp(*(const opt_STR *)at, *(const opt_STR *)was))
				add_word(out, row[i].id, *(const opt_STR *)at);
			break;
		case TYPE_LIST:
			list = at;
			for (size_t k = 0; k < list->n; k++)
				add_word(out, row[i].id, list->at[k]);
			break;
		case TYPE_CHOICE:
			if (*(const opt_CHOICE *)at == *(const opt_CHOICE *)was)
				break;
			alt = row[i].arg;
			for (int k = *(const opt_CHOICE *)at; k; k--)
				alt += strcspn(alt, "|") + 1;
			snprintf(number_text, sizeof number_text, "%.*s",
				(int)strcspn(alt, "|"), alt);
			add_word(out, row[i].id, number_text);
			break;
		}
	}
	options_free(&plain);
}

/* ---- argp ---- */

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		if (!row[i].id || KEY_OF(i) != key)
			continue;
		if (!set(state->input, &row[i], arg, &e))
			argp_error(state, "%s", e.text);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static struct argp_option argp_options[ARRAY_SIZE(row) + 1];
const struct argp options_argp = { .options = argp_options, .parser = parse_key };

/* Fills argp's array before main(). */
__attribute__((constructor)) static void fill_argp(void)
{
	static char names[ARRAY_SIZE(row)][40];
	static char help[ARRAY_SIZE(row)][400];
	int group = 0;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct argp_option *a = &argp_options[i];

		a->doc = row[i].help;
		if (!row[i].id) {
			a->group = ++group;
			continue;
		}
		spell(row[i].id, names[i], sizeof names[i]);
		a->name = names[i];
		a->key = KEY_OF(i);
		a->arg = row[i].arg;
		a->group = group;
		if (row[i].type != TYPE_FLAG && *row[i].deflt) {
			snprintf(help[i], sizeof help[i], "%s [%s]", row[i].help, row[i].deflt);
			a->doc = help[i];
		}
	}
}

/* ---- values with a syntax of their own ---- */

bool options_arch(const char *arch, unsigned *sm, char *suffix)
{
	char *end;
	unsigned long n;

	if (!strncmp(arch, "sm_", 3))
		arch += 3;
	else if (!strncmp(arch, "compute_", 8))
		arch += 8;
	if (!isdigit((unsigned char)*arch))
		return false;
	n = strtoul(arch, &end, 10);
	if (n < 50 || n > 999 || (*end && *end != 'a' && *end != 'f') || (*end && end[1]))
		return false;
	*sm = (unsigned)n;
	*suffix = *end;
	return true;
}

bool options_shard(const char *text, unsigned *shard, unsigned *shards)
{
	char rest;

	return isdigit((unsigned char)*text)
		&& sscanf(text, "%u/%u%c", shard, shards, &rest) == 2
		&& *shard >= 1 && *shard <= *shards;
}

bool options_is_stdout(const char *path)
{
	return *path == '-' && (!path[1] || (path[1] == '.' && !strchr(path, '/')));
}

char *options_path(const char *pattern, long pid)
{
	struct text t = { 0 };

	text_add(&t, "", 0);
	for (; *pattern; pattern++) {
		if (pattern[0] == '%' && pattern[1] == 'p') {
			text_printf(&t, "%ld", pid);
			pattern++;
		} else {
			if (pattern[0] == '%' && pattern[1] == '%')
				pattern++;
			text_add(&t, pattern, 1);
		}
	}
	return t.at;
}

static bool match_one(const char *filter, const char *value, const char *name)
{
	regex_t re;
	bool yes;

	if (!strncmp(filter, "kne=", 4) || !strncmp(filter, "kernel_name=", 12))
		return strcmp(name, value) == 0;
	if (strncmp(filter, "regex=", 6))
		return strstr(name, value) != NULL;
	if (regcomp(&re, value, REG_EXTENDED | REG_NOSUB))
		return false;
	yes = regexec(&re, name, 0, NULL, 0) == 0;
	regfree(&re);
	return yes;
}

/* "void f<int>(float*)" -> "f" */
static char *bare_name(const char *demangled)
{
	size_t n = strcspn(demangled, "(<");
	const char *from = demangled + n;

	while (from > demangled && from[-1] != ' ')
		from--;
	return base_strndup(from, n - (size_t)(from - demangled));
}

bool options_match(const char *filter, const char *mangled, const char *demangled)
{
	const char *value = strchr(filter, '=');
	char *bare;
	bool yes;

	if (!value)
		return false;
	value++;
	if (match_one(filter, value, mangled))
		return true;
	if (!demangled)
		return false;
	if (match_one(filter, value, demangled))
		return true;
	bare = bare_name(demangled);
	yes = match_one(filter, value, bare);
	free(bare);
	return yes;
}

static bool any_match(const struct options_list *filters, const char *mangled,
	const char *demangled)
{
	for (size_t i = 0; i < filters->n; i++)
		if (options_match(filters->at[i], mangled, demangled))
			return true;
	return false;
}

bool options_wants(const struct options *o, const char *mangled, const char *demangled)
{
	if (o->kernel_name.n && !any_match(&o->kernel_name, mangled, demangled))
		return false;
	return !any_match(&o->kernel_name_exclude, mangled, demangled);
}
