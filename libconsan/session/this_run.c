/* this_run: the command line, options and date of this process, for reports. */
#include "internal.h"

#include "libconsan/finding/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Appends a word of a command line, in single quotes if a shell would change it. */
static void add_word(struct text *t, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"-._/=:,+@%";
	const bool quoted = !*word || word[strspn(word, plain)];

	if (t->n)
		text_add(t, " ", 1);
	if (!quoted) {
		text_printf(t, "%s", word);
		return;
	}
	text_add(t, "'", 1);
	for (; *word; word++) {
		if (*word == '\'')
			text_printf(t, "'\\'");
		text_add(t, word, 1);
	}
	text_add(t, "'", 1);
}

/* argv as it was given; the library has no other access to it. */
static char *command_line(void)
{
	FILE *in = fopen("/proc/self/cmdline", "re");
	struct text t = { 0 };
	char *word = NULL;
	size_t size = 0;

	text_add(&t, "", 0);
	while (in && getdelim(&word, &size, 0, in) > 0)
		add_word(&t, word);
	free(word);
	if (in)
		fclose(in);
	return t.at;
}

/* Of $SOURCE_DATE_EPOCH, if it is set, so that a report can be reproduced. */
static char *date_now(void)
{
	const char *fixed = getenv("SOURCE_DATE_EPOCH");
	const time_t now = fixed && *fixed ? (time_t)strtoll(fixed, NULL, 10) : time(NULL);
	char text[32] = "1970-01-01T00:00:00Z";
	struct tm utc;

	if (gmtime_r(&now, &utc) && utc.tm_year >= 70 && utc.tm_year < 8000)
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	return base_strdup(text);
}

void session_add_run(struct results *r, const struct options *o)
{
	struct text words = { 0 };

	text_add(&words, "", 0);
	options_format(o, &words);
	results_add_run(r, (struct result_run){ .command = command_line(), .options = words.at,
		.version = base_strdup(CONSAN_VERSION), .date = date_now() });
}
