/* options: the table, and the parser for words, generated from options.def. */
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = OPTIONS_RUN, REPLAY = OPTIONS_REPLAY, REPORT = OPTIONS_REPORT,
	ALL = RUN | REPLAY | REPORT };

const struct opt_row opt_row[] = {
#define GROUP(title) { .help = title },
#define OPT(type, name, key, arg, deflt, commands, help) \
	{ #name, TYPE_##type, key, arg, deflt, commands, help, offsetof(struct options, name) },
#define ALIAS(name, alias, value)
#include "options.def"
#undef OPT
#undef GROUP
#undef ALIAS
};
const size_t opt_rows = ARRAY_SIZE(opt_row);

static const struct { size_t at; const char *alias, *value; } aliases[] = {
#define GROUP(title)
#define OPT(type, name, key, arg, deflt, commands, help)
#define ALIAS(name, alias, value) { offsetof(struct options, name), alias, value },
#include "options.def"
#undef OPT
#undef GROUP
#undef ALIAS
};

bool opt_same_name(const char *id, const char *name)
{
	for (; *id && (*id == *name || (*id == '_' && *name == '-')); id++)
		name++;
	return !*id && !*name;
}

void opt_spell(const char *id, char *out, size_t n)
{
	size_t i;

	for (i = 0; id[i] && i + 1 < n; i++)
		out[i] = id[i] == '_' ? '-' : id[i];
	out[i] = 0;
}

const struct opt_row *opt_find(const char *name)
{
	for (size_t i = 0; i < opt_rows; i++)
		if (opt_row[i].id && opt_same_name(opt_row[i].id, name))
			return &opt_row[i];
	return NULL;
}

bool opt_is_flag(const struct opt_row *r)
{
	return r->type == TYPE_FLAG || r->type == TYPE_SWITCH;
}

bool opt_is_path(const struct opt_row *r)
{
	return r->arg && (!strcmp(r->arg, "FILE") || !strcmp(r->arg, "DIR"));
}

/* ---- values ---- */

static bool choice(const struct opt_row *r, const char *value, int *out)
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

/* A flag is set by itself; a value overrides a configuration file. */
static bool flag(const char *v, bool *out)
{
	static const char *const no[] = { "0", "no", "off", "false" };
	static const char *const yes[] = { "1", "yes", "on", "true" };

	*out = true;
	if (!v)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		if (!strcmp(v, yes[i]))
			return true;
	*out = false;
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (!strcmp(v, no[i]))
			return true;
	return false;
}

/* Of a choice, the value that is spelled most like v. */
static bool bad_choice(const struct opt_row *r, const char *name, const char *v,
	struct consan_err *e)
{
	struct similar near = { .word = v };
	char *all = base_strdup(r->arg), *rest = all, *one;

	while ((one = strsep(&rest, "|")))
		similar_try(&near, one);
	err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s=%s: must be one of %s%s%s%s", name, v, r->arg,
		near.best ? "; did you mean " : "", near.best ? near.best : "",
		near.best ? "?" : "");
	free(all);
	return false;
}

bool opt_assign(struct options *o, const struct opt_row *r, const char *v, struct consan_err *e)
{
	void *at = (char *)o + r->at;
	struct options_list *list;
	char name[40], *end;
	double sec;
	bool on;

	opt_spell(r->id, name, sizeof name);
	if (!v && !opt_is_flag(r))
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s needs a value", name);
	if (v && !opt_check(r, v, e))
		return false;
	switch (r->type) {
	case TYPE_FLAG:
		if (!flag(v, at))
			return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s=%s: must be yes or no", name, v);
		return true;
	case TYPE_SWITCH:
		if (v && !strcmp(v, "auto")) {
			*(opt_SWITCH *)at = SWITCH_AUTO;
			return true;
		}
		if (!flag(v, &on))
			return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s=%s: must be yes, no or auto", name, v);
		*(opt_SWITCH *)at = on ? SWITCH_YES : SWITCH_NO;
		return true;
	case TYPE_NUM:
		if (!number(v, at))
			return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s=%s: must be a number",
				name, v);
		return true;
	case TYPE_SEC:
		sec = strtod(v, &end);
		if (end == v || *end || !(sec >= 0))
			return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s=%s: must be a number of "
				"seconds", name, v);
		*(opt_SEC *)at = sec;
		return true;
	case TYPE_STR:
		*(opt_STR *)at = arena_strndup(&o->arena, v, strlen(v));
		return true;
	case TYPE_LIST:
		list = at;
		if (!*v)
			return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s: empty value", name);
		vec_push(list, arena_strndup(&o->arena, v, strlen(v)));
		return true;
	case TYPE_CHOICE:
		return choice(r, v, at) || bad_choice(r, name, v, e);
	}
	return true;
}

void options_init(struct options *o)
{
	struct consan_err e = { 0 };

	memset(o, 0, sizeof *o);
	for (size_t i = 0; i < opt_rows; i++)
		if (opt_row[i].id && opt_row[i].type != TYPE_LIST && opt_row[i].type != TYPE_STR
				&& !opt_assign(o, &opt_row[i], opt_row[i].deflt, &e))
			base_die("options.def: %s", e.text);
	for (size_t i = 0; i < opt_rows; i++)
		if (opt_row[i].id && opt_row[i].type == TYPE_STR)
			*(opt_STR *)(void *)((char *)o + opt_row[i].at) = opt_row[i].deflt;
}

void options_free(struct options *o)
{
	for (size_t i = 0; i < opt_rows; i++)
		if (opt_row[i].id && opt_row[i].type == TYPE_LIST)
			vec_free((opt_LIST *)(void *)((char *)o + opt_row[i].at));
	text_free(&o->remarks);
	arena_free(&o->arena);
}

bool opt_unknown(const char *name, unsigned command, struct consan_err *e)
{
	const struct opt_row *other = opt_find(name);
	struct similar near = { .word = name };
	char like[40] = "";
	bool takes_value;
	const char *theirs;

	if (other)
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--%s has no effect here: it is an option of "
			"consan-run%s", name, other->commands & OPTIONS_REPLAY ? " and consan replay" : "");
	for (size_t i = 0; i < opt_rows; i++)
		if (opt_row[i].id && (!command || opt_row[i].commands & command))
			similar_try(&near, opt_row[i].id);
	for (size_t k = 0; command == OPTIONS_RUN && (theirs = sanitizer_option(k, &takes_value)); k++)
		similar_try(&near, theirs);
	if (near.best)
		opt_spell(near.best, like, sizeof like);
	return err_set(e, CONSAN_ERR_OPTION, 0, 0, "unknown option --%s%s%s%s", name,
		*like ? "; did you mean --" : "", like, *like ? "?" : "");
}

bool options_set(struct options *o, const char *name, const char *value, struct consan_err *e)
{
	const struct opt_row *r = opt_find(name);

	if (r)
		return opt_assign(o, r, value, e);
	if (sanitizer_known(name))
		return sanitizer_set(o, name, value, e);
	return opt_unknown(name, 0, e);
}

/* ---- words ---- */

bool options_parse(struct options *o, const char *words, struct consan_err *e)
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
		ok = options_set(o, word.at + strspn(word.at, "-"), value, e);
	}
	text_free(&word);
	return ok;
}

bool options_agree(const struct options *o, struct consan_err *e)
{
	if (o->shard_by == SHARD_BY_SCHEDULES && !options_shards_schedules(o))
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "shard-by=schedules: needs --explore, on the cpu "
			"backend");
	if (!o->reads || o->backend == OPT_BACKEND_AUTO || o->backend == OPT_BACKEND_CPU)
		return true;
	return err_set(e, CONSAN_ERR_OPTION, 0, 0, "reads=%s: instrumented kernels read what the "
		"memory holds; only the cpu backend can choose an older value",
		o->reads == 1 ? "oldest" : "random");
}

static void add_word(struct text *out, const char *id, const char *value)
{
	char name[40];

	opt_spell(id, name, sizeof name);
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
	for (size_t i = 0; i < opt_rows; i++) {
		const void *at = (const char *)o + opt_row[i].at;
		const void *was = (const char *)&plain + opt_row[i].at;
		const struct options_list *list;
		const char *alt;

		if (!opt_row[i].id)
			continue;
		switch (opt_row[i].type) {
		case TYPE_FLAG:
			if (*(const opt_FLAG *)at != *(const opt_FLAG *)was)
				add_word(out, opt_row[i].id, *(const opt_FLAG *)at ? "1" : "0");
			break;
		case TYPE_SWITCH:
			if (*(const opt_SWITCH *)at != *(const opt_SWITCH *)was)
				add_word(out, opt_row[i].id, *(const opt_SWITCH *)at == SWITCH_AUTO ? "auto"
					: *(const opt_SWITCH *)at == SWITCH_YES ? "1" : "0");
			break;
		case TYPE_NUM:
			if (*(const opt_NUM *)at == *(const opt_NUM *)was)
				break;
			snprintf(number_text, sizeof number_text, "%llu",
				(unsigned long long)*(const opt_NUM *)at);
			add_word(out, opt_row[i].id, number_text);
			break;
		case TYPE_SEC:
			if (*(const opt_SEC *)at == *(const opt_SEC *)was)
				break;
			snprintf(number_text, sizeof number_text, "%.17g", *(const opt_SEC *)at);
			add_word(out, opt_row[i].id, number_text);
			break;
		case TYPE_STR:
			if (strcmp(*(const opt_STR *)at, *(const opt_STR *)was))
				add_word(out, opt_row[i].id, *(const opt_STR *)at);
			break;
		case TYPE_LIST:
			list = at;
			for (size_t k = 0; k < list->n; k++)
				add_word(out, opt_row[i].id, list->at[k]);
			break;
		case TYPE_CHOICE:
			if (*(const opt_CHOICE *)at == *(const opt_CHOICE *)was)
				break;
			alt = opt_row[i].arg;
			for (int k = *(const opt_CHOICE *)at; k; k--)
				alt += strcspn(alt, "|") + 1;
			snprintf(number_text, sizeof number_text, "%.*s",
				(int)strcspn(alt, "|"), alt);
			add_word(out, opt_row[i].id, number_text);
			break;
		}
	}
	options_free(&plain);
}
