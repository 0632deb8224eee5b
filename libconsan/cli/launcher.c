/* launcher: the shard of this process, from the variables of what started it. */
#include "run.h"
#include "shards.h"

#include "libconsan/options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_ENV "CONSAN_SHARD_RUN" /* the user's own name of the run */

static const struct launcher {
	const char *name, *index;
	unsigned first;
	const char *count, *run;
} launcher[] = {
#define LAUNCHER(name, index, first, count, run) { name, index, first, count, run },
#include "launchers.def"
#undef LAUNCHER
};

/* NULL: not set, or empty. */
static const char *variable(const char *name)
{
	const char *value = *name ? getenv(name) : NULL;

	return value && *value ? value : NULL;
}

static bool number(const char *text, unsigned long *n)
{
	char *end;

	*n = strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end;
}

/* given: the number of shards that the user names, or 0. */
static const struct launcher *find(unsigned given)
{
	for (size_t i = 0; i < ARRAY_SIZE(launcher); i++)
		if (variable(launcher[i].index) && (variable(launcher[i].count) || given))
			return &launcher[i];
	return NULL;
}

static void print_none(const char *option, unsigned given)
{
	struct text t = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(launcher); i++) {
		if (variable(launcher[i].index) && !given) {
			print_error("--shard=%s: $%s is set, but not the number of shards: --shard=auto/N", option,
				launcher[i].index);
			text_free(&t);
			return;
		}
		text_printf(&t, "%s%s", i ? ", " : "", launcher[i].index);
	}
	print_error("--shard=%s: no launcher that sets one of %s; --shard=I/N names the shard", option, t.at);
	text_free(&t);
}

static bool take(const struct launcher *l, unsigned given, struct options *o)
{
	const char *index = variable(l->index), *count = variable(l->count);
	unsigned long i = 0, n = given;
	char value[64];

	if (!number(index, &i) || (count && !number(count, &n)) || i < l->first || i - l->first >= n
			|| n > OPTIONS_SHARDS) {
		print_error("%s=%s, %s=%s: the index must be from %u to %s", l->index, index,
			count ? l->count : "N", count ? count : "", l->first,
			l->first ? "the total" : "the total less 1");
		return false;
	}
	if (given && n != given) {
		print_error("--shard=%s: but %s=%s (%s)", o->shard, l->count, count, l->name);
		return false;
	}
	snprintf(value, sizeof value, "%lu/%lu", i - l->first + 1, n);
	return options_set(o, "shard", value, NULL);
}

/* As a part of file names. */
static char *name_of_run(const struct launcher *l)
{
	const char *own = variable(RUN_ENV);
	char *names = base_strdup(own ? RUN_ENV : l ? l->run : ""), *rest = names, *name;
	struct text t = { 0 };

	text_add(&t, "", 0);
	while ((name = strsep(&rest, " ")))
		if (variable(name))
			text_printf(&t, "%s%s", t.n ? "-" : "", variable(name));
	free(names);
	shards_run_name(t.at);
	return t.at;
}

bool launcher_shard(struct options *o, struct shard *out)
{
	const struct launcher *l = NULL;
	unsigned given = 0;

	if (options_shard_auto(o->shard, &given)) {
		l = find(given);
		if (!l)
			print_none(o->shard, given);
		if (!l || !take(l, given, o))
			return false;
	} else if (!*o->shard && variable(launcher[0].index) && variable(launcher[0].count)) {
		l = &launcher[0]; /* these are only for us */
		if (!take(l, 0, o))
			return false;
	}
	*out = (struct shard){ .run = name_of_run(l) };
	options_shard(o->shard, &out->at, &out->of);
	if (!*o->shard_dir || out->of)
		return true;
	print_error("--shard-dir=%s: needs --shard", o->shard_dir);
	return false;
}
