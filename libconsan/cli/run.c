/* run: consan-run. Runs a program under consan and reports.
 *
 * Sets up the environment so that the dynamic linker loads libconsan-cuda.so first, runs the
 * program, merges the records of all its processes, writes the reports and determines the
 * exit status. */
#include "records.h"
#include "run.h"
#include "shards.h"

#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"
#include "libconsan/session/session.h"
#include "reports/reports.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
	struct options options;
	char **argv;            /* of the program */
	char *program;          /* its path */
	char *lib;              /* folder of our libraries */
	char *dir, *results;    /* our folder, and that of the record files in it */
	char *origin;           /* folder of the store of PTX */
	struct text remarks;    /* lines for the report: sources of options, other folders */
	struct shard shard;
};

static void clean_up(struct run *r)
{
	close_origin(&r->options, r->dir, r->origin);
	if (r->dir)
		records_remove(r->dir);
	free(r->dir);
	free(r->results);
	free(r->lib);
	free(r->program);
	free(r->shard.run);
	text_free(&r->remarks);
}

static bool make_dir(struct run *r)
{
	struct consan_err e = { 0 };
	struct text remarks = { 0 };

	r->dir = records_make_dir(records_odd_path(r->lib), &remarks, &e);
	if (!r->dir)
		print_error("%s", e.text);
	if (remarks.n)
		print_error("%s", remarks.at);
	text_free(&remarks);
	r->results = r->dir ? records_folder(r->dir) : NULL;
	return r->dir && link_library_dir(&r->lib, r->dir);
}

/* A program may remove what is in TMPDIR. */
static void list_records(struct run *r, struct records *records, struct text *unseen)
{
	const bool listed = records_list(records, r->dir);

	records_lost(records, unseen);
	if (access(r->results, F_OK))
		text_printf(unseen, "the folder of records, %s, was removed while the program ran\n", r->results);
	if (listed)
		return;
	free(r->results);
	free(r->dir);
	make_dir(r); /* it gets this line */
}

/* unseen: lines about what the report does not have, to which it appends. only: as of consan_report(). False:
 * the report is not written, or not whole; *status is the exit status in any case. */
static bool report(struct run *r, int program, struct text *unseen, const char *only, int *status)
{
	struct records records = { 0 };
	struct consan_err e = { 0 };
	bool ok;

	*status = program;
	list_records(r, &records, unseen);
	if (!r->dir) {
		*status = *status ? *status : EXIT_INTERNAL;
		return false;
	}
	if (!records.path.n && !unseen->n)
		text_printf(&r->remarks, "%s %s\n", r->program, r->options.backend == OPT_BACKEND_GPU
			? "never used the NVIDIA driver" : "never called CUDA");
	records_remark(&records, r->dir, r->remarks.at, unseen->at);
	ok = records_report(&records, &r->options, only, r->program, program, status, &e);
	if (!ok) {
		print_error("%s", e.text);
		*status = *status ? *status : EXIT_INTERNAL;
	}
	records_free(&records);
	return ok;
}

/* ---- --shard-dir ---- */

/* The report of all shards, also as a file in the folder. */
static int merge(const struct run *r, struct shards *s, int program)
{
	char *path = shards_merged(s->dir, &s->run);
	struct results all = { 0 };
	struct consan_err e = { 0 };
	int status;
	bool ok;

	shards_load(s, &all);
	results_finish(&all);
	status = report_exit_status(&all, &r->options, program);
	shards_make_way(path);
	ok = report_file(&all, &r->options, path, &e);
	ok = report_write(&all, &r->options, &e) && ok;
	if (!ok) {
		print_error("%s", e.text);
		status = status ? status : EXIT_INTERNAL;
	}
	results_free(&all);
	free(path);
	return status;
}

/* Leaves the report in the folder, and merges if no shard is to come. A launcher such as mpirun ends the
 * others if one fails, so only the one that ends last has the status of the findings. */
static int report_shard(struct run *r, int program, struct text *unseen)
{
	const char *dir = r->options.shard_dir;
	char *path = shards_report(dir, &r->shard);
	struct shards all = { 0 };
	struct consan_err e = { 0 };
	int status;
	bool ended, ok;

	shards_make_way(path);
	ok = report(r, program, unseen, path, &status);
	free(path);
	if (!ok)
		return EXIT_INTERNAL;
	shards_end(dir, &r->shard);
	status = program;
	if (!shards_ended(&all, dir, &r->shard, &ended, &e)) {
		print_error("%s", e.text);
		status = EXIT_INTERNAL;
	} else if (ended) {
		status = merge(r, &all, program);
	}
	shards_free(&all);
	return status;
}

/* Truncates the file of --save, to which the processes append their events. */
static void clear_saved(const struct options *o)
{
	char *path = options_path(o->save, (long)getpid());

	if (*o->save && !strstr(o->save, "%p") && is_file(path) && truncate(path, 0))
		print_error("%s: %s", path, strerror(errno));
	free(path);
}

/* The file of an earlier run would be taken for this one's if it is killed. A link stays one. */
static void remove_report(const char *pattern)
{
	char *path = options_path(pattern, (long)getpid());
	struct stat st;

	if (!options_is_stdout(path) && is_file(path) && !lstat(path, &st)
			&& (S_ISLNK(st.st_mode) || unlink(path)) && truncate(path, 0))
		print_error("%s: %s", path, strerror(errno));
	free(path);
}

static void remove_reports(const struct options *o)
{
	for (size_t i = 0; i < o->report.n; i++)
		remove_report(o->report.at[i]);
	if (*o->log_file)
		remove_report(o->log_file);
}

static int run_and_report(struct run *r)
{
	struct program program;
	struct text unseen = { 0 };
	struct consan_err e = { 0 };
	int status;
	bool kept;

	if (!launcher_shard(&r->options, &r->shard))
		return EXIT_USAGE;
	r->lib = library_dir();
	if (!r->lib)
		return EXIT_INTERNAL;
	r->program = find_program(r->argv[0]);
	if (!r->program) {
		print_error("%s: no such program%s%s", r->argv[0],
			is_file(r->argv[0]) ? "; did you mean ./" : "",
			is_file(r->argv[0]) ? r->argv[0] : "");
		return EXIT_NOT_FOUND;
	}
	status = check_program(r->program);
	if (status)
		return status;
	choose_backend(&r->options, r->lib, r->program);
	if (!check_options(&r->options, r->lib))
		return EXIT_USAGE;
	if (*r->options.shard_dir && shards_begin(r->options.shard_dir, &r->shard, &e) < 0) {
		print_error("--shard-dir: %s", e.text);
		return EXIT_USAGE;
	}
	if (!make_dir(r))
		return EXIT_INTERNAL;
	r->origin = open_origin(&r->options, r->dir, &kept, &e);
	if (e.code)
		text_printf(&r->remarks, "the code cache is not used, and what is compiled is remembered for this run "
			"only: %s\n", e.text);
	absolute_paths(&r->options);
	clear_saved(&r->options);
	remove_reports(&r->options);
	program = (struct program){ &r->options, r->program, r->argv, r->lib, r->dir };
	if (run_program(&program, &status, &unseen)) {
		if (*r->options.shard_dir)
			status = report_shard(r, status, &unseen);
		else
			report(r, status, &unseen, NULL, &status);
	}
	text_free(&unseen);
	return status;
}

static int replay(struct run *r)
{
	struct consan_err e = { 0 };
	int status = 0;

	if (!check_options(&r->options, NULL))
		return EXIT_USAGE;
	if (consan_replay(&r->options, r->options.read, &status, &e))
		return status;
	print_error("%s", e.text);
	return status ? status : EXIT_INTERNAL;
}

/* --gpu-prepare: the arguments are files. */
static int prepare(struct run *r)
{
	struct consan_err why = { 0 };
	bool kept;

	r->lib = library_dir();
	if (!r->lib)
		return EXIT_INTERNAL;
	if (!check_options(&r->options, NULL))
		return EXIT_USAGE;
	r->options.backend = OPT_BACKEND_GPU; /* no driver is needed */
	if (!make_dir(r))
		return EXIT_INTERNAL;
	r->origin = open_origin(&r->options, r->dir, &kept, &why);
	if (!kept) {
		print_error("--gpu-prepare: there is no code cache to fill%s%s", why.code ? ": " : "", why.text);
		return EXIT_USAGE;
	}
	return prepare_files(&r->options, r->lib, r->argv) ? 0 : EXIT_INTERNAL;
}

/* ---- the command line ---- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run *r = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &r->options;
		return 0;
	case ARGP_KEY_ARG:
		/* the remaining arguments belong to the program */
		r->argv = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!r->argv && !*r->options.read)
			argp_error(state, "no program to run");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* Visible, so that it replaces the C library's variable: --version prints it. */
__attribute__((visibility("default")))
const char *argp_program_version = "consan-run " CONSAN_VERSION;

/* Refuses options that do not exist, and takes those from elsewhere. */
static bool take_options(struct run *r, int argc, char **argv)
{
	const char *config = NULL;
	struct consan_err e = { 0 };

	if (options_known(OPTIONS_RUN, NULL, argc, argv, &config, &e)
			&& options_preset(&r->options, config, &r->remarks, &e))
		return true;
	print_error("%s", e.text);
	return false;
}

int main(int argc, char **argv)
{
	const struct argp_child children[] = { { options_argp(OPTIONS_RUN), 0, NULL, 0 }, { 0 } };
	const struct argp argp = {
		.parser = parse, .args_doc = "[--] PROGRAM [ARGUMENT...]", .children = children,
		.doc = "Runs a CUDA program on an emulated GPU and reports the concurrency bugs "
			"of its kernels."
			"\vExit status: that of the program; 66 if there are errors; 67 if a kernel "
			"could not be checked, a launch did not run to its end, a module or call is "
			"missing, or none was launched; 126 "
			"or 127 if the program cannot be run; 64 if it was not run because an option is wrong, "
			"or a file that one names cannot be read or written; 70 if a report could not be "
			"written in the end.",
	};
	struct run r = { 0 };
	int status;

	open_standard();
	argp_err_exit_status = EXIT_USAGE;
	options_init(&r.options);
	if (!take_options(&r, argc, argv)) {
		options_free(&r.options);
		text_free(&r.remarks);
		return EXIT_USAGE;
	}
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &r);
	if (r.options.remarks.n)
		fprintf(stderr, "%s", r.options.remarks.at);
	status = *r.options.read ? replay(&r) : r.options.gpu_prepare ? prepare(&r) : run_and_report(&r);
	clean_up(&r);
	options_free(&r.options);
	return status;
}
