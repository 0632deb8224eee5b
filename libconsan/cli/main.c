/* main: `consan COMMAND`: the table of commands, and `consan replay`. */
#include "internal.h"

#include "libconsan/options/options.h"
#include "libconsan/session/session.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Visible, so that it replaces the C library's variable: --version of a command prints it. */
__attribute__((visibility("default")))
const char *argp_program_version = "consan " CONSAN_VERSION;

int command_fail(const struct consan_err *e)
{
	char place[32];

	fflush(stdout);
	snprintf(place, sizeof place, ":%d:%d: ", e->line, e->col);
	if (strchr(e->text, '\n') || !e->line || strstr(e->text, place))
		fprintf(stderr, "consan: %s\n", e->text);
	else
		fprintf(stderr, "consan: line %d, column %d: %s\n", e->line, e->col, e->text);
	return EXIT_USAGE;
}

/* ---- replay ---- */

struct replay_args {
	struct options options;
	const char *file;
};

int command_one_file(const char **file, int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_ARG:
		if (*file)
			argp_error(state, "only one file is accepted");
		*file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!*file)
			argp_error(state, "no file given");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t replay_key(int key, char *arg, struct argp_state *state)
{
	struct replay_args *a = state->input;

	if (key != ARGP_KEY_INIT)
		return command_one_file(&a->file, key, arg, state);
	state->child_inputs[0] = &a->options;
	return 0;
}

int command_replay(int argc, char **argv)
{
	const struct argp_child children[] = { { options_argp(OPTIONS_REPLAY), 0, NULL, 0 }, { 0 } };
	const struct argp argp = { NULL, replay_key, "FILE",
		"Checks the events in a file that `consan-run --save=FILE' wrote, and reports.",
		children, NULL, NULL };
	struct replay_args a = { 0 };
	struct consan_err e = { 0 };
	int status;
	bool ok;

	options_init(&a.options);
	if (!options_known(OPTIONS_REPLAY, NULL, argc, argv, NULL, &e))
		return command_fail(&e);
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	ok = consan_replay(&a.options, a.file, &status, &e);
	options_free(&a.options);
	return ok ? status : command_fail(&e);
}

/* ---- the commands ---- */

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *args, *help;
} command[] = {
	{ "explain", command_explain, "[CODE...]", "explain the rule of a finding and how to fix it" },
	{ "report", command_report, "FILE", "convert a JSON report: --to=html" },
	{ "merge", command_merge, "FILE|DIR...", "join the JSON reports of several runs" },
	{ "suppress", command_suppress, "FILE", "write an entry for --suppressions" },
	{ "replay", command_replay, "FILE", "check a saved event stream again" },
	{ "recover", command_recover, "[DIR]", "report a run whose consan-run was killed" },
	{ "dump", command_dump, "FILE", "print PTX as parsed, or a saved event stream" },
	{ "completion", command_completion, "bash|zsh|fish", "print a script that completes options" },
};

const char *command_name(size_t k)
{
	return k < ARRAY_SIZE(command) ? command[k].name : NULL;
}

static int usage(FILE *out, int status)
{
	fprintf(out, "Usage: consan COMMAND [OPTION...] [ARGUMENT...]\n"
		"Explains, converts and merges what consan-run reports.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(command); i++) {
		const int n = fprintf(out, "  %s %s", command[i].name, command[i].args);

		fprintf(out, "%*s%s\n", n < 28 ? 28 - n : 1, "", command[i].help);
	}
	fprintf(out, "\n`consan COMMAND --help' describes a command.\n"
		"To check a program: consan-run ./program\n");
	return status;
}

int main(int argc, char **argv)
{
	static char name[64];
	struct similar near = { .word = argc > 1 ? argv[1] : "" };

	argp_err_exit_status = EXIT_USAGE;
	if (argc < 2)
		return usage(stderr, EXIT_USAGE);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return usage(stdout, 0);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts(argp_program_version);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(command); i++) {
		similar_try(&near, command[i].name);
		if (strcmp(argv[1], command[i].name))
			continue;
		snprintf(name, sizeof name, "consan %s", command[i].name);
		argv[1] = name;
		return command[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "consan: unknown command '%s'%s%s%s\n", argv[1],
		near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
	return usage(stderr, EXIT_USAGE);
}
