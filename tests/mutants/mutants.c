/* mutants: the table of `make mutants`. Each synchronization instruction of each bundled kernel is
 * deleted or weakened (mutation.def); the program then runs under consan-run, which should report a
 * finding. Nothing is compiled: --dump-ptx writes the kernel's PTX, --replace-ptx reads the mutant.
 *
 * usage: mutants [--every=N] [--program=NAME] [--keep=DIR] BUILD-DIRECTORY
 *        mutants [--every=N] [--options=WORDS] [--keep=DIR] BUILD-DIRECTORY
 *                PROGRAM ARGUMENTS...
 *   --every=N       only each N-th mutant
 *   --program=NAME  only this row of program.def
 *   --keep=DIR      keeps the mutants' PTX in this folder
 *   PROGRAM         another program: the last kernel that it launches, or
 *   --options=WORDS the last one that is not excluded by these options of consan-run
 * Exit status: 0 if every mutant is killed or has a row in equivalent.def. */
#include "libconsan/finding/finding.h"
#include "mutate.h"
#include "outcome.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 10, RUNS = 8 };

static struct program {
	const char *name, *path;
	struct run { const char *options, *arguments; } run[RUNS];
} program[] = {
#define RUN(options, arguments) { options, arguments },
#define PROGRAM(name, path, ...) { #name, path, { __VA_ARGS__ } },
#include "program.def"
#undef PROGRAM
#undef RUN
};

static const struct equivalent {
	const char *program, *opcode, *mutation, *source, *reason;
	bool undetected;         /* wrong, but not detectable */
} equivalent[] = {
#define EQUIVALENT(program, opcode, mutation, source, reason) \
	{ #program, opcode, mutation, source, reason, false },
#define UNDETECTED(program, opcode, mutation, source, reason) \
	{ #program, opcode, mutation, source, reason, true },
#include "equivalent.def"
#undef UNDETECTED
#undef EQUIVALENT
	{ NULL, NULL, NULL, NULL, NULL, false }
};

static const char *const kind_name[KINDS] = {
	[BROKEN] = "BROKEN", [BY_ERROR] = "error", [BY_WARNING] = "warning", [BY_NOTE] = "note",
	[BY_TIME] = "time", [BY_RESULT] = "result", [SURVIVED] = "SURVIVED",
};

static struct {
	const char *build, *only, *options, *scratch, *keep;
	unsigned every;
	char **program;      /* of the command line, or NULL */
} opt = { .options = "", .every = 1 };

struct score {
	unsigned instructions, mutants, equivalent, by[KINDS], undetected, stale;
};

/* ---- the place of a mutant ---- */

/* The innermost place in the kernel's own file, rather than in a header. */
static const struct site_loc *place_of(const struct ptx_insn *i)
{
	const struct site_loc *own = i->loc, *l;

	while (own && own->inlined_at)
		own = own->inlined_at;
	for (l = i->loc; l && strcmp(l->file, own->file); l = l->inlined_at)
		;
	return l;
}

/* Line n of a file without its indentation, or "". */
static void source_line(const struct site_loc *l, char *out, size_t n)
{
	FILE *f = l ? fopen(l->file, "r") : NULL;
	char *line = NULL;
	size_t cap = 0;

	*out = 0;
	for (uint32_t k = 0; f && k < l->line && getline(&line, &cap, f) >= 0; k++)
		if (k + 1 == l->line) {
			const char *from = line + strspn(line, " \t");

			snprintf(out, n, "%.*s", (int)strcspn(from, "\n"), from);
		}
	if (f)
		fclose(f);
	free(line);
}

/* The row of equivalent.def for the mutant, by a line of its own file: that of its place, or one
 * into which it was inlined. */
static const struct equivalent *known_equivalent(const struct program *p, const struct mutant *m)
{
	const struct site_loc *own = place_of(m->insn);
	char source[160];

	for (const struct site_loc *l = own; l; l = l->inlined_at) {
		if (strcmp(l->file, own->file))
			continue;
		source_line(l, source, sizeof source);
		for (const struct equivalent *e = equivalent; e->program; e++)
			if (!strcmp(e->program, p->name) && !strcmp(e->opcode, mutation_opcode(m->row))
					&& !strcmp(e->mutation, mutation_name(m->row))
					&& strstr(source, e->source))
				return e;
	}
	return NULL;
}

/* ---- one program ---- */

struct plan {
	const struct program *program;
	char known[RUNS][256]; /* rules with findings in the clean runs */
	struct outcome clean;
	struct ptx_module *module;
	struct mutants mutants;
	struct outcome *outcome; /* of each mutant, in memory that all workers share */
};

static bool complain(const struct program *p, const char *what, const char *why)
{
	fprintf(stderr, "mutants: %s: %s%s%s\n", p->name, what, *why ? ": " : "", why);
	return false;
}

/* The unchanged program must have no errors in any run; the rules of its notes are stored. */
static bool run_clean(struct plan *x, const char *dump)
{
	const struct program *p = x->program;
	char options[1024];

	for (unsigned r = 0; r < RUNS && p->run[r].options; r++) {
		for (;;) {
			struct outcome o;

			snprintf(options, sizeof options, "--dump-ptx=%s %s", dump, p->run[r].options);
			o = outcome_of(opt.build, options, p->path, p->run[r].arguments, 6 * SECONDS,
				x->known[r], opt.scratch);
			if (o.kind != BY_NOTE && o.kind != SURVIVED)
				return complain(p, kind_name[o.kind], *o.text ? o.text : o.rule);
			x->clean = o;
			if (o.kind == SURVIVED)
				break;
			snprintf(x->known[r] + strlen(x->known[r]), 16, "%s ", o.rule);
		}
	}
	return true;
}

static bool read_file(const char *path, struct text *t)
{
	FILE *f = fopen(path, "r");
	char part[1 << 16];
	size_t n;

	if (!f)
		return false;
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		text_add(t, part, n);
	fclose(f);
	return true;
}

/* By the name in reports, which may be truncated. */
static const struct ptx_func *find_kernel(const struct ptx_module *m, const char *reported)
{
	char name[256];

	for (size_t i = 0; i < m->nfunc; i++) {
		finding_set_kernel(name, m->func[i].name);
		if (m->func[i].entry && m->func[i].ninsn && !strcmp(name, reported))
			return &m->func[i];
	}
	return NULL;
}

/* The module that contains the kernel, among those that the clean run loaded. */
static bool find_module(struct plan *x, const char *dump)
{
	struct text text = { 0 };
	char path[512];

	for (unsigned k = 0;; k++) {
		struct consan_err e = { 0 };

		snprintf(path, sizeof path, "%.400s/%u.ptx", dump, k);
		text.n = 0;
		if (!read_file(path, &text))
			return complain(x->program, "no PTX contains", x->clean.kernel);
		x->module = ptx_parse(path, text.at, text.n, &e);
		if (!x->module)
			return complain(x->program, path, e.text);
		if (find_kernel(x->module, x->clean.kernel))
			break;
		ptx_free(x->module);
	}
	for (unsigned k = 0;; k++) {
		snprintf(path, sizeof path, "%.400s/%u.ptx", dump, k);
		if (unlink(path))
			break;
	}
	rmdir(dump);
	text_free(&text);
	return true;
}

static void run_mutant(struct plan *x, size_t k)
{
	const struct program *p = x->program;
	struct mutant *m = &x->mutants.at[k];
	char path[512], options[1024];
	FILE *f;

	snprintf(path, sizeof path, "%.400s/%s-%zu.ptx", opt.scratch, p->name, k);
	f = fopen(path, "w");
	if (!f || fwrite(m->ptx.at, 1, m->ptx.n, f) != m->ptx.n || fclose(f))
		base_die("%s: cannot be written", path);
	for (unsigned r = 0; r < RUNS && p->run[r].options; r++) {
		struct outcome o;

		snprintf(options, sizeof options, "--replace-ptx=%s %s", path, p->run[r].options);
		o = outcome_of(opt.build, options, p->path, p->run[r].arguments, SECONDS,
			x->known[r], opt.scratch);
		if (!r || o.kind < x->outcome[k].kind)
			x->outcome[k] = o;
		if (o.kind < BY_RESULT)
			break;
	}
	if (!opt.keep)
		unlink(path);
}

/* One process for each of the n cores runs every n-th mutant. */
static void run_all(struct plan *x)
{
	long workers = sysconf(_SC_NPROCESSORS_ONLN);
	size_t bytes = x->mutants.n * sizeof *x->outcome + 1;

	x->outcome = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (x->outcome == MAP_FAILED)
		base_die("mmap");
	for (long w = 0; w < workers; w++) {
		if (fork())
			continue;
		for (size_t k = (size_t)w; k < x->mutants.n; k += (size_t)workers)
			run_mutant(x, k);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
}

static void print_mutant(const struct plan *x, size_t k, struct score *s, bool *used)
{
	const struct mutant *m = &x->mutants.at[k];
	const struct outcome *o = &x->outcome[k];
	const struct site_loc *l = place_of(m->insn);
	const struct equivalent *e;
	const char *file = l ? strrchr(l->file, '/') : NULL;
	char source[160], what[96], place[64];

	source_line(l, source, sizeof source);
	e = known_equivalent(x->program, m);
	if (e)
		used[e - equivalent] = true;
	snprintf(what, sizeof what, "%s: %s", mutation_opcode(m->row), mutation_name(m->row));
	snprintf(place, sizeof place, "%s:%u", file ? file + 1 : "", l ? l->line : 0);
	s->mutants++;
	s->instructions += !k || m->insn != x->mutants.at[k - 1].insn;
	if (o->kind == SURVIVED && e && !e->undetected) {
		s->equivalent++;
		printf("  equivalent %-7s", "");
	} else {
		s->by[o->kind]++;
		s->undetected += o->kind == SURVIVED && e;
		s->stale += o->kind != SURVIVED && e;
		printf("  %-10s %-7s", o->kind == SURVIVED || o->kind == BROKEN
			? kind_name[o->kind] : "killed", o->kind == BY_TIME || o->kind == BY_RESULT
			? kind_name[o->kind] : o->rule);
	}
	printf("%-8s %-42s line %-5u %-16s %s\n", o->kind == BY_NOTE || o->kind == BY_WARNING
		? kind_name[o->kind] : "", what, m->insn->line, place, source);
	if (o->kind == SURVIVED && e)
		printf("  %-18s because %s\n", "", e->reason);
	else if (e)
		printf("  %-18s but equivalent.def expects it to survive\n", "");
	if (o->kind == BROKEN)
		printf("  %-18s %s\n", "", o->text);
}

static void pick(struct mutants *all)
{
	size_t n = 0;

	for (size_t k = 0; k < all->n; k++) {
		if (k % opt.every == 0)
			all->at[n++] = all->at[k];
		else
			text_free(&all->at[k].ptx);
	}
	all->n = n;
}

static bool try_program(const struct program *p, struct score *s)
{
	struct plan x = { .program = p };
	bool used[ARRAY_SIZE(equivalent)] = { false };
	char dump[512];

	snprintf(dump, sizeof dump, "%.400s/%s", opt.scratch, p->name);
	if (!run_clean(&x, dump) || !find_module(&x, dump))
		return false;
	mutate(find_kernel(x.module, x.clean.kernel), x.clean.threads, &x.mutants);
	pick(&x.mutants);
	run_all(&x);
	printf("%s %s\n", p->path, p->run[0].arguments);
	for (size_t k = 0; k < x.mutants.n; k++) {
		print_mutant(&x, k, s, used);
		text_free(&x.mutants.at[k].ptx);
	}
	for (size_t k = 0; opt.every == 1 && equivalent[k].program; k++)
		if (!used[k] && !strcmp(equivalent[k].program, p->name)) {
			printf("  no mutant is \"%s: %s\" at \"%s\" (equivalent.def)\n",
				equivalent[k].opcode, equivalent[k].mutation, equivalent[k].source);
			s->stale++;
		}
	munmap(x.outcome, x.mutants.n * sizeof *x.outcome + 1);
	vec_free(&x.mutants);
	ptx_free(x.module);
	return true;
}

static void print_score(const char *name, const struct score *s)
{
	unsigned judged = s->mutants - s->equivalent;
	unsigned found = s->by[BY_ERROR] + s->by[BY_WARNING] + s->by[BY_NOTE];
	unsigned killed = found + s->by[BY_TIME] + s->by[BY_RESULT];

	printf("%-14s %12u %8u %6u %8u %5u %5u %7u %11u %9u %7.1f %%\n", name, s->instructions,
		s->mutants, s->by[BY_ERROR], s->by[BY_WARNING], s->by[BY_NOTE], s->by[BY_TIME],
		s->by[BY_RESULT], s->equivalent, s->by[SURVIVED] + s->by[BROKEN],
		judged ? 100.0 * killed / judged : 100.0);
}

static void add(struct score *to, const struct score *s)
{
	to->instructions += s->instructions;
	to->mutants += s->mutants;
	to->equivalent += s->equivalent;
	to->undetected += s->undetected;
	to->stale += s->stale;
	for (unsigned k = 0; k < KINDS; k++)
		to->by[k] += s->by[k];
}

static bool arguments(int argc, char **argv)
{
	static const struct option option[] = {
		{ "every", required_argument, NULL, 'e' },
		{ "program", required_argument, NULL, 'p' },
		{ "options", required_argument, NULL, 'o' },
		{ "keep", required_argument, NULL, 'k' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+", option, NULL)) != -1) {
		if (c == 'e' && atoi(optarg) > 0)
			opt.every = (unsigned)atoi(optarg);
		else if (c == 'p')
			opt.only = optarg;
		else if (c == 'o')
			opt.options = optarg;
		else if (c == 'k')
			opt.keep = optarg;
		else
			return false;
	}
	opt.build = argv[optind];
	opt.program = &argv[optind + 1];
	return optind < argc;
}

/* Joins the words of the command line. */
static void own_program(struct program *p, struct text *all)
{
	char *slash = strrchr(opt.program[0], '/');

	for (char **w = opt.program + 1; *w; w++)
		text_printf(all, "%s ", *w);
	*p = (struct program){ slash ? slash + 1 : opt.program[0], opt.program[0],
		{ { opt.options, all->at ? all->at : "" } } };
}

int main(int argc, char **argv)
{
	struct score score[ARRAY_SIZE(program)] = { 0 }, all = { 0 };
	size_t nprograms = ARRAY_SIZE(program);
	struct text words = { 0 }, path[ARRAY_SIZE(program)] = { 0 };
	char scratch[] = "/tmp/consan-mutants-XXXXXX";
	bool ok = true;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!arguments(argc, argv)) {
		fprintf(stderr, "usage: mutants [--every=N] [--program=NAME] [--options=WORDS] "
			"[--keep=DIR] BUILD [PROGRAM ARGUMENTS...]\n");
		return 2;
	}
	if (*opt.program) {
		own_program(program, &words);
		nprograms = 1;
	}
	for (size_t i = 0; i < nprograms && !*opt.program; i++) {
		text_printf(&path[i], "%s/%s", opt.build, program[i].path);
		program[i].path = path[i].at;
	}
	opt.scratch = opt.keep ? opt.keep : mkdtemp(scratch);
	if (!opt.scratch || (opt.keep && mkdir(opt.keep, 0777) && access(opt.keep, W_OK)))
		base_die("%s: no scratch folder", opt.scratch ? opt.scratch : scratch);
	for (size_t i = 0; i < nprograms; i++)
		if (!opt.only || !strcmp(opt.only, program[i].name))
			ok = try_program(&program[i], &score[i]) && ok;
	printf("\n%-14s %12s %8s %6s %8s %5s %5s %7s %11s %9s %9s\n", "", "instructions",
		"mutants", "error", "warning", "note", "time", "result", "equivalent", "survived",
		"killed");
	for (size_t i = 0; i < nprograms; i++) {
		if (score[i].mutants)
			print_score(program[i].name, &score[i]);
		add(&all, &score[i]);
	}
	print_score("all", &all);
	if (!opt.keep)
		rmdir(opt.scratch);
	text_free(&words);
	for (size_t i = 0; i < nprograms; i++)
		text_free(&path[i]);
	return !ok || !all.mutants || all.by[SURVIVED] > all.undetected || all.by[BROKEN] || all.stale;
}
