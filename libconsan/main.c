/* main: `consan dump|replay|explain`. Parses arguments and opens doors. */
#include "door.h"

#include "../reports/page.h"
#include "check/check.h"
#include "event_io.h"
#include "options.h"
#include "ptx/ir.h"
#include "results.h"
#include "site.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE 2

const char *argp_program_version = "consan " CONSAN_VERSION;

static int fail(const struct err *e)
{
	fflush(stdout);
	if (strchr(e->text, '\n') || !e->line)
		fprintf(stderr, "consan: %s\n", e->text);
	else
		fprintf(stderr, "consan: line %d, column %d: %s\n", e->line, e->col, e->text);
	return EXIT_USAGE;
}

static char *read_file(const char *path, size_t *n, struct err *e)
{
	FILE *in = fopen(path, "re");
	struct text t = { 0 };
	char part[65536];
	size_t k;

	if (!in) {
		err_set(e, ERR_IO, 0, 0, "%s: %s", path, strerror(errno));
		return NULL;
	}
	text_add(&t, "", 0);
	while ((k = fread(part, 1, sizeof part, in)) > 0)
		text_add(&t, part, k);
	if (ferror(in)) {
		err_set(e, ERR_IO, 0, 0, "%s: %s", path, strerror(errno));
		text_free(&t);
	}
	fclose(in);
	*n = t.n;
	return t.at;
}

/* ---- dump ---- */

struct dump_args {
	const char *file;
	bool cfg;
};

static error_t dump_key(int key, char *arg, struct argp_state *state)
{
	struct dump_args *a = state->input;

	switch (key) {
	case 'g':
		a->cfg = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			argp_error(state, "one file at a time");
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			argp_error(state, "which file?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void print_cfg(const struct ptx_func *f)
{
	const struct ptx_cfg *g = f->cfg;

	printf("\n// %s: %zu blocks\n", f->name, g->nblock);
	for (size_t k = 0; k < g->nblock; k++) {
		const struct ptx_block *b = &g->block[g->order[k]];
		const struct ptx_insn *last = b->end > b->first ? &f->insn[b->end - 1] : NULL;

		printf("// %4u: instructions %u..%u", g->order[k], b->first, b->end);
		if (last)
			printf(" (lines %u-%u)", f->insn[b->first].line, last->line);
		printf("%s", b->nsucc ? ", then" : "");
		for (uint32_t s = 0; s < b->nsucc; s++)
			printf(" %u", b->succ[s]);
		for (uint32_t t = 0; !b->nsucc && last && t < last->ntarget; t++)
			printf("%s %u", t ? "" : ", then", g->block_of[last->target[t]]);
		if (b->ipdom != UINT32_MAX)
			printf(", joins at %u", b->ipdom);
		if (b->loop != UINT32_MAX)
			printf(", in loop %u", b->loop);
		printf("\n");
	}
}

static int dump_ptx(const struct dump_args *a)
{
	struct text out = { 0 };
	struct err e = { 0 };
	struct ptx_module *m;
	size_t n = 0;
	char *text = read_file(a->file, &n, &e);
	bool sound;

	m = text ? ptx_parse(a->file, text, n, &e) : NULL;
	free(text);
	if (!m)
		return fail(&e);
	ptx_print(m, &out);
	fwrite(out.at ? out.at : "", 1, out.n, stdout);
	text_free(&out);
	for (size_t i = 0; a->cfg && i < m->nfunc; i++)
		if (m->func[i].cfg)
			print_cfg(&m->func[i]);
	sound = ptx_verify(m, &e);
	ptx_free(m);
	return sound ? 0 : fail(&e);
}

struct dump_sink {
	struct event_sink sink; /* first: it is one */
	const struct cluster_info *c;
};

static void dump_event(struct event_sink *sink, const struct event *e)
{
	const struct dump_sink *s = (const struct dump_sink *)sink;
	struct text t = { 0 };

	event_print(e, &t);
	printf("%u/%u %s\n", s->c->launch->id, s->c->id, t.at);
	text_free(&t);
}

static void dump_launch(void *user, const struct launch_info *l)
{
	(void)user;
	printf("# launch %u: %s grid %ux%ux%u block %ux%ux%u cluster %ux%ux%u shared %u+%u "
		"sm_%u seed %llu\n", l->id, l->kernel, l->grid[0], l->grid[1], l->grid[2],
		l->block[0], l->block[1], l->block[2], l->cluster[0], l->cluster[1],
		l->cluster[2], l->shared_static, l->shared_dynamic, l->sm,
		(unsigned long long)l->seed);
	for (size_t i = 0; i < l->nsymbols; i++)
		printf("# shared %#x+%u %s\n", l->symbols[i].addr, l->symbols[i].bytes,
			l->symbols[i].name);
}

static struct event_sink *dump_begin(void *user, const struct cluster_info *c)
{
	struct dump_sink *s = base_alloc(sizeof *s);

	(void)user;
	s->sink.event = dump_event;
	s->c = c;
	return &s->sink;
}

static void dump_end(void *user, const struct cluster_info *c, struct event_sink *sink,
	bool whole)
{
	(void)user;
	if (!whole)
		printf("# launch %u, cluster %u: events are missing\n", c->launch->id, c->id);
	free(sink);
}

static int dump(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "cfg", 'g', NULL, 0, "Print the control-flow graph of each function, too", 0 },
		{ 0 },
	};
	static const struct argp argp = { options, dump_key, "FILE",
		"Prints PTX as consan understood it, or the events in a file that "
		"`consan-run --save' wrote: launch/cluster, then one event a line.",
		NULL, NULL, NULL };
	static const struct event_reader reader = {
		.launch = dump_launch, .cluster_begin = dump_begin, .cluster_end = dump_end,
	};
	struct event_read_stats stats;
	struct dump_args a = { 0 };
	struct err e = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (!event_is_stream(a.file))
		return dump_ptx(&a);
	if (!event_read(a.file, &reader, &stats, &e))
		return fail(&e);
	printf("# %llu launches, %llu clusters, %llu events; %llu clusters incomplete, "
		"%llu places damaged\n", (unsigned long long)stats.launches,
		(unsigned long long)stats.clusters, (unsigned long long)stats.events,
		(unsigned long long)stats.incomplete, (unsigned long long)stats.damaged);
	return stats.damaged || stats.incomplete ? 1 : 0;
}

/* ---- replay ---- */

struct replay_args {
	struct options options;
	const char *file;
};

static error_t replay_key(int key, char *arg, struct argp_state *state)
{
	struct replay_args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->options;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			argp_error(state, "one file at a time");
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			argp_error(state, "which file?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static int replay(int argc, char **argv)
{
	static const struct argp_child children[] = { { &options_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = { NULL, replay_key, "FILE",
		"Checks the events in a file that `consan-run --save=FILE' wrote, and reports. "
		"Options that say how kernels are run have no effect here.",
		children, NULL, NULL };
	struct replay_args a = { 0 };
	struct err e = { 0 };
	int status;
	bool ok;

	options_init(&a.options);
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	ok = consan_replay(&a.options, a.file, &status, &e);
	options_free(&a.options);
	return ok ? status : fail(&e);
}

/* ---- explain ---- */

static const char *const severity[] = {
	[SEV_NOTE] = "note", [SEV_WARNING] = "warning", [SEV_ERROR] = "error",
};

static void explain_rule(const struct rule_info *r)
{
	struct page p = { .out = stdout, .color = isatty(1), .width = 90, .prefix = "" };
	const char *const part[][2] = {
		{ "severity", severity[r->severity] }, { "why", r->why }, { "fix", r->fix },
		{ "catalogue", r->ids },
	};

	page_indent(&p, 0);
	page_add(&p, BOLD, "%s  %s", r->code, r->title);
	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		if (!*part[i][1])
			continue;
		page_label(&p, part[i][0], DIM);
		page_add(&p, PLAIN, " %s", part[i][1]);
	}
	page_end(&p);
	text_free(&p.line);
}

static int explain_knobs(void)
{
	printf("%-20s %7s %6s  what --knob=NAME=N chooses\n", "name", "default", "strict");
#define KNOB(id, deflt, strict, rules, doc) \
	printf("%-20s %7d %6d  %s [%s]\n", #id, deflt, strict, doc, rules);
#include "check/policy.def"
#undef KNOB
	printf("\nnot there:\n");
#define ABSENT_KNOB(name, rows, why) printf("%-20s %s [%s]\n", #name, why, rows);
#include "absent.def"
	return 0;
}

static bool names_row(const char *ids, const char *row)
{
	const char *at = strstr(ids, row);

	return at && (!at[3] || at[3] == ' ');
}

/* Where consan stands with each row of the PTX rule catalogue. */
static int explain_catalogue(void)
{
	static const struct { const char *row, *text; bool absent; } others[] = {
#define MODEL(row, how) { #row, how, false },
#define ABSENT(row, why) { #row, why, true },
#include "absent.def"
	};
	static const struct { char letter; int rows; const char *title; } groups[] = {
#define CATALOGUE(letter, rows, title) { letter, rows, title },
#include "absent.def"
	};

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		printf("%s%c  %s\n", g ? "\n" : "", groups[g].letter, groups[g].title);
		for (int i = 1; i <= groups[g].rows; i++) {
			char row[16];

			snprintf(row, sizeof row, "%c%02d", groups[g].letter, i);
			printf("  %s ", row);
			for (int r = RULE_NONE + 1; r < RULE_COUNT; r++)
				if (names_row(rule_get((enum rule)r)->ids, row))
					printf(" %s", rule_get((enum rule)r)->code);
			for (size_t k = 0; k < ARRAY_SIZE(others); k++)
				if (!strcmp(others[k].row, row))
					printf(" %s: %s", others[k].absent ? "not checked" : "model",
						others[k].text);
			printf("\n");
		}
	}
	return 0;
}

static int explain(int argc, char **argv)
{
	static const struct argp argp = { NULL, NULL, "[CODE...|knobs|catalogue]",
		"Explains rules such as CS102; without one, lists them all. `knobs' lists the "
		"checker's policies, `catalogue' the rows of the PTX rule catalogue and what "
		"checks them, or why nothing does.", NULL, NULL, NULL };
	struct err e = { 0 };
	int first;

	argp_parse(&argp, argc, argv, 0, &first, NULL);
	if (first == argc)
		for (int r = RULE_NONE + 1; r < RULE_COUNT; r++)
			printf("%s  %-7s  %s\n", rule_get((enum rule)r)->code,
				severity[rule_get((enum rule)r)->severity],
				rule_get((enum rule)r)->title);
	for (int i = first; i < argc; i++) {
		enum rule r = rule_by_code(argv[i]);

		if (!strcmp(argv[i], "knobs")) {
			explain_knobs();
			continue;
		}
		if (!strcmp(argv[i], "catalogue")) {
			explain_catalogue();
			continue;
		}
		if (r == RULE_NONE) {
			err_set(&e, ERR_OPTION, 0, 0, "there is no rule %s (consan explain "
				"lists them)", argv[i]);
			return fail(&e);
		}
		explain_rule(rule_get(r));
	}
	return 0;
}

/* ---- the commands ---- */

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} command[] = {
	{ "explain", explain, "[CODE...]  what a finding's code means and how to cure it" },
	{ "replay", replay, "FILE        checks a saved event stream again" },
	{ "dump", dump, "FILE          prints PTX as parsed, or a saved event stream" },
};

static int usage(FILE *out, int status)
{
	fprintf(out, "usage: consan COMMAND [options] [arguments]\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(command); i++)
		fprintf(out, "  %s %s\n", command[i].name, command[i].help);
	fprintf(out, "\nconsan COMMAND --help tells more. To check a program: "
		"consan-run ./program\n");
	return status;
}

int main(int argc, char **argv)
{
	static char name[64];

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
		if (strcmp(argv[1], command[i].name))
			continue;
		snprintf(name, sizeof name, "consan %s", command[i].name);
		argv[1] = name;
		return command[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "consan: there is no command '%s'\n", argv[1]);
	return usage(stderr, EXIT_USAGE);
}
