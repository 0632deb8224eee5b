/* check: values with a syntax of their own. */
#include "internal.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY_MAX = 512 }; /* the recorder's ring (finding/recorder_internal.h) */

static const char *suffix_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strchr(dot, '/') ? dot + 1 : "";
}

static bool check_filter(const char *v, struct consan_err *e)
{
	regex_t re;
	char why[160];
	int rc;

	if (!strncmp(v, "kne=", 4) || !strncmp(v, "kns=", 4)
			|| !strncmp(v, "kernel_name=", 12)
			|| !strncmp(v, "kernel_substring=", 17))
		return true;
	if (strncmp(v, "regex=", 6))
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "kernel filter '%s': must be kne=NAME, "
			"kns=TEXT or regex=RE", v);
	if (options_pattern_size(v + 6) > OPTIONS_PATTERN_MOST)
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "kernel filter '%s': too many repetitions", v);
	rc = regcomp(&re, v + 6, REG_EXTENDED | REG_NOSUB);
	if (!rc) {
		regfree(&re);
		return true;
	}
	regerror(rc, &re, why, sizeof why);
	return err_set(e, CONSAN_ERR_OPTION, 0, 0, "kernel filter '%s': %s", v, why);
}

static bool check_report(const char *path, struct consan_err *e)
{
	static const char *const suffixes[] = {
#define FORMAT(name, suffix) suffix,
#include "formats.def"
#undef FORMAT
	};
	struct text all = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (!strcmp(suffix_of(path), suffixes[i])) {
			text_free(&all);
			return true;
		}
		text_printf(&all, "%s.%s", !i ? "" : i + 1 < ARRAY_SIZE(suffixes) ? ", " : " or ",
			suffixes[i]);
	}
	err_set(e, CONSAN_ERR_OPTION, 0, 0, "--report=%s: must end in %s", path, all.at);
	text_free(&all);
	return false;
}

bool opt_check(const struct opt_row *r, const char *v, struct consan_err *e)
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
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--arch=%s: must be sm_80, sm_90a, ...", v);
	case offsetof(struct options, report):
		return check_report(v, e);
	case offsetof(struct options, shard):
		if (options_shard(v, &sm, &shards) || options_shard_auto(v, &shards))
			return true;
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--shard=%s: must be I/N with I from 1 to N, and N at "
			"most %u, or auto, or auto/N", v, OPTIONS_SHARDS);
	case offsetof(struct options, knob):
		end = strchr(v, '=');
		if (end && end > v && isdigit((unsigned char)end[1]))
			return true;
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--knob=%s: must be NAME=NUMBER", v);
	case offsetof(struct options, history):
		if (strtoull(v, NULL, 0) <= HISTORY_MAX)
			return true;
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--history=%s: must be from 0 to %d", v,
			HISTORY_MAX);
	case offsetof(struct options, error_exitcode):
		if (strtoull(v, NULL, 0) <= 255)
			return true;
		return err_set(e, CONSAN_ERR_OPTION, 0, 0, "--error-exitcode=%s: must be from "
			"0 to 255", v);
	}
	return true;
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
		&& *shard >= 1 && *shard <= *shards && *shards <= OPTIONS_SHARDS;
}

bool options_shard_auto(const char *text, unsigned *shards)
{
	char rest;

	*shards = 0;
	if (!strcmp(text, "auto"))
		return true;
	return !strncmp(text, "auto/", 5) && isdigit((unsigned char)text[5])
		&& sscanf(text + 5, "%u%c", shards, &rest) == 1 && *shards >= 1 && *shards <= OPTIONS_SHARDS;
}

bool options_shards_schedules(const struct options *o)
{
	const bool explores = o->explore && o->backend != OPT_BACKEND_GPU
		&& o->backend != OPT_BACKEND_GPU_EMULATED;

	return explores && o->shard_by != SHARD_BY_LAUNCHES;
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
