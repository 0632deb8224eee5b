/* completion: `consan completion SHELL` prints a script that completes the options of consan-run
 * and consan, made from the table of options. */
#include "internal.h"

#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

/* What completion needs of an option. value: as in struct options_row. */
typedef void print_option(const char *command, const char *name, char key, const char *value,
	const char *help);

/* The commands of consan that take options of the table. */
static const struct { const char *name; unsigned options; } with_options[] = {
	{ "report", OPTIONS_REPORT }, { "merge", OPTIONS_REPORT }, { "replay", OPTIONS_REPLAY }, { "recover", OPTIONS_REPORT },
	{ "suppress", 0 },
};

/* Calls print for each option of `consan COMMAND`; command NULL: of consan-run. */
static void each_option(const char *command, unsigned of, print_option *print)
{
	const struct argp_option *own = command ? command_report_options(command) : NULL;
	struct options_row row;

	for (; own && own->name; own++)
		print(command, own->name, 0, own->arg, own->doc);
	for (size_t k = 0; options_row(of, k, &row); k++)
		print(command, row.name, row.key, row.value, row.help);
	print(command, "help", 0, NULL, "Print the options");
	if (!command)
		print(command, "version", 0, NULL, "Print the version");
}

static bool is_choice(const char *value)
{
	return value && strchr(value, '|');
}

static bool is_path(const char *value)
{
	return value && (!strcmp(value, "FILE") || !strcmp(value, "DIR"));
}

/* "a|b" as "a b" */
static void print_words(const char *value)
{
	for (; *value; value++)
		putchar(*value == '|' ? ' ' : *value);
}

/* The first clause of a help text, without what a shell would interpret. */
static void print_help(const char *help)
{
	for (; *help && !strchr(".;:(,", *help); help++)
		putchar(strchr("'`[]\\\"$", *help) ? '_' : *help);
}

static void print_commands(void)
{
	const char *name;

	for (size_t k = 0; (name = command_name(k)); k++)
		printf("%s%s", k ? " " : "", name);
}

static void print_codes(void)
{
	for (unsigned r = 1; r <= rule_count(); r++)
		printf("%s ", rule_get(r)->code);
	printf("knobs ptx html");
}

/* ---- bash ---- */

static void bash_word(const char *command, const char *name, char key, const char *value,
	const char *help)
{
	(void)command, (void)key, (void)help;
	printf(" --%s%s", name, value ? "=" : "");
}

static void bash_value(const char *command, const char *name, char key, const char *value,
	const char *help)
{
	(void)command, (void)key, (void)help;
	if (!is_choice(value) && !is_path(value))
		return;
	printf("\t--%s) ", name);
	if (is_choice(value)) {
		printf("COMPREPLY=($(compgen -W '");
		print_words(value);
		printf("' -- \"$cur\"));;\n");
	} else {
		printf("COMPREPLY=($(compgen -%c -- \"$cur\"));;\n", *value == 'D' ? 'd' : 'f');
	}
}

/* bash splits words at "=". */
static const char bash_head[] =
	"# bash completion for consan-run and consan, made by `consan completion bash'\n"
	"_consan_value()\n{\n\tcase $option in\n";
static const char bash_offer[] =
	"\t*) return 1;;\n\tesac\n}\n\n"
	"# Sets cur, and option if the word is a value.\n"
	"_consan_word()\n{\n"
	"\tcur=${COMP_WORDS[COMP_CWORD]} option=\n"
	"\tif [[ $cur == = ]]; then\n"
	"\t\tcur= option=${COMP_WORDS[COMP_CWORD-1]}\n"
	"\telif [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then\n"
	"\t\toption=${COMP_WORDS[COMP_CWORD-2]}\n"
	"\tfi\n}\n\n"
	"_consan_offer()\n{\n"
	"\tCOMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
	"\t[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n}\n\n";
/* the words behind the program are its own */
static const char bash_run[] =
	"\n_consan_run()\n{\n"
	"\tlocal cur option i\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tif [[ ${COMP_WORDS[i]} != -* && ${COMP_WORDS[i]} != = && ${COMP_WORDS[i-1]} != = ]]; then\n"
	"\t\t\tdeclare -F _command_offset >/dev/null && _command_offset $i || compopt -o default\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\tdone\n"
	"\t_consan_word\n"
	"\tif [[ -n $option ]]; then _consan_value; return; fi\n"
	"\tcase $cur in\n"
	"\t-*) _consan_offer \"$_consan_run_options\";;\n"
	"\t*) COMPREPLY=($(compgen -c -- \"$cur\")); compopt -o default;;\n"
	"\tesac\n}\n\n";

static void print_bash(void)
{
	printf("%s", bash_head);
	each_option(NULL, OPTIONS_RUN, bash_value);
	printf("\t--to) COMPREPLY=($(compgen -W 'html json sarif junit text' -- \"$cur\"));;\n");
	printf("%s_consan_run_options='", bash_offer);
	each_option(NULL, OPTIONS_RUN, bash_word);
	printf("'\n%s_consan()\n{\n\tlocal cur option\n\t_consan_word\n"
		"\tif [[ $COMP_CWORD -eq 1 ]]; then _consan_offer '", bash_run);
	print_commands();
	printf(" --help --version'; return; fi\n"
		"\tif [[ -n $option ]]; then _consan_value; return; fi\n"
		"\tcase ${COMP_WORDS[1]}:$cur in\n");
	for (size_t i = 0; i < ARRAY_SIZE(with_options); i++) {
		printf("\t%s:-*) _consan_offer '", with_options[i].name);
		each_option(with_options[i].name, with_options[i].options, bash_word);
		printf("';;\n");
	}
	printf("\texplain:*) _consan_offer '");
	print_codes();
	printf("';;\n\tcompletion:*) _consan_offer 'bash zsh fish';;\n"
		"\t*) compopt -o default;;\n\tesac\n}\n\n"
		"complete -F _consan_run consan-run\ncomplete -F _consan consan\n");
}

/* ---- zsh ---- */

static void zsh_option(const char *command, const char *name, char key, const char *value,
	const char *help)
{
	(void)command, (void)key;
	printf("\t\t'*--%s%s[", name, value ? "=" : "");
	print_help(help);
	printf("]");
	if (is_choice(value)) {
		printf(":%s:(", name);
		print_words(value);
		printf(")");
	} else if (value) {
		printf(":%s:%s", value, is_path(value) ? *value == 'D' ? "_files -/" : "_files" : " ");
	}
	printf("' \\\n");
}

static void print_zsh(void)
{
	printf("#compdef consan-run consan\n"
		"# zsh completion, made by `consan completion zsh'\n"
		"_consan_run()\n{\n\t_arguments -S \\\n");
	each_option(NULL, OPTIONS_RUN, zsh_option);
	printf("\t\t'(-):program: _command_names -e' \\\n\t\t'*::arguments: _normal'\n}\n\n"
		"_consan()\n{\n\tif (( CURRENT == 2 )); then compadd -- ");
	print_commands();
	printf("; return; fi\n\tlocal command=$words[2]\n\tshift words; (( CURRENT-- ))\n"
		"\tcase $command in\n");
	for (size_t i = 0; i < ARRAY_SIZE(with_options); i++) {
		printf("\t%s) _arguments \\\n", with_options[i].name);
		each_option(with_options[i].name, with_options[i].options, zsh_option);
		printf("\t\t'*:file:_files';;\n");
	}
	printf("\texplain) compadd -- ");
	print_codes();
	printf(";;\n\tcompletion) compadd -- bash zsh fish;;\n\t*) _files;;\n\tesac\n}\n\n"
		"case $service in\nconsan-run) _consan_run \"$@\";;\nconsan) _consan \"$@\";;\nesac\n");
}

/* ---- fish ---- */

static void fish_option(const char *command, const char *name, char key, const char *value,
	const char *help)
{
	printf("complete -c %s ", command ? "consan" : "consan-run");
	if (command)
		printf("-n '__fish_seen_subcommand_from %s' ", command);
	else
		printf("-n __consan_before_program ");
	printf("-l %s", name);
	if (key)
		printf(" -s %c", key);
	if (is_choice(value)) {
		printf(" -x -a '");
		print_words(value);
		printf("'");
	} else if (value) {
		printf(is_path(value) ? " -r -F" : " -x");
	}
	printf(" -d '");
	print_help(help);
	printf("'\n");
}

static void print_fish(void)
{
	printf("# fish completion for consan-run and consan, made by `consan completion fish'\n"
		"function __consan_before_program\n"
		"\tfor word in (commandline -opc)[2..-1]\n"
		"\t\tstring match -q -- '-*' $word; or return 1\n\tend\nend\n"
		"complete -c consan-run -n 'not __consan_before_program' "
		"-x -a '(__fish_complete_subcommand)'\n"
		"complete -c consan-run -n __consan_before_program -a '(__fish_complete_command)'\n");
	each_option(NULL, OPTIONS_RUN, fish_option);
	printf("complete -c consan -n __fish_use_subcommand -f -a '");
	print_commands();
	printf("'\n");
	for (size_t i = 0; i < ARRAY_SIZE(with_options); i++)
		each_option(with_options[i].name, with_options[i].options, fish_option);
	printf("complete -c consan -n '__fish_seen_subcommand_from explain' -f -a '");
	print_codes();
	printf("'\ncomplete -c consan -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
}

static const struct { const char *name; void (*print)(void); } shell[] = {
	{ "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish },
};

int command_completion(int argc, char **argv)
{
	static const struct argp argp = { NULL, NULL, "bash|zsh|fish", "Prints a script that completes "
		"the options of consan-run and consan; `make install' puts it where the shell finds it.",
		NULL, NULL, NULL };
	struct consan_err e = { 0 };
	int first;

	argp_parse(&argp, argc, argv, 0, &first, NULL);
	for (size_t i = 0; first < argc && i < ARRAY_SIZE(shell); i++)
		if (!strcmp(argv[first], shell[i].name))
			return shell[i].print(), 0;
	err_set(&e, CONSAN_ERR_OPTION, 0, 0, "completion: expected bash, zsh or fish");
	return command_fail(&e);
}
