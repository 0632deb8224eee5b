/* recover: `consan recover DIR`, the report of a run whose consan-run was killed. The processes of the
 * program append what they find to files in a folder; consan-run makes the report from these when the
 * program has ended. If it cannot, they stay. */
#include "internal.h"
#include "records.h"

#include "libconsan/options/options.h"
#include "libconsan/session/session.h"

#include <argp.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct args {
	struct options options;
	const char *dir;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->options;
		return 0;
	case ARGP_KEY_ARG:
		if (a->dir)
			argp_error(state, "only one folder is accepted");
		a->dir = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void list_in(const char *parent)
{
	struct text pattern = { 0 };
	glob_t found = { 0 };

	text_printf(&pattern, "%s/consan-??????", parent);
	if (glob(pattern.at, 0, NULL, &found))
		found.gl_pathc = 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct records r = { 0 };
		struct stat st;
		char when[40] = "";
		pid_t writer;

		if (!stat(found.gl_pathv[i], &st) && st.st_uid == getuid())
			records_list(&r, found.gl_pathv[i]);
		writer = records_writer(&r);
		if (r.path.n) {
			strftime(when, sizeof when, "%F %T", localtime(&st.st_mtime));
			printf("%s  %s  %zu process%s%s\n", found.gl_pathv[i], when, r.path.n,
				r.path.n == 1 ? "" : "es", writer ? ", still running" : "");
		}
		records_free(&r);
	}
	globfree(&found);
	text_free(&pattern);
}

/* Without a folder: which there are. */
static int list_all(void)
{
	static const char *const parent[] = { "/tmp", "/var/tmp", "/dev/shm" };
	const char *tmp = getenv("TMPDIR");
	bool listed = !tmp || !*tmp;

	for (size_t i = 0; i < ARRAY_SIZE(parent); i++) {
		listed |= !strcmp(parent[i], tmp ? tmp : "");
		list_in(parent[i]);
	}
	if (!listed)
		list_in(tmp);
	return 0;
}

/* How far the program would have come is not known, so the run counts as not checked. */
static int recover(const struct args *a)
{
	struct records r = { 0 };
	struct consan_err e = { 0 };
	struct text unseen = { 0 }, ignored = { 0 };
	char *own = NULL;
	int status = 0;
	pid_t writer;
	bool ok;

	if (!records_list(&r, a->dir) || !(r.path.n + r.lost.n)) {
		err_set(&e, CONSAN_ERR_IO, 0, 0, "%s: no records of a run are there", a->dir);
		records_free(&r);
		return command_fail(&e);
	}
	writer = records_writer(&r);
	if (writer)
		text_printf(&unseen, "process %ld still runs\n", (long)writer);
	else
		text_printf(&unseen, "consan-run did not see how the program ended\n");
	records_lost(&r, &unseen);
	/* the remark is of this report: consan-run, or another `consan recover', may read the folder, too */
	own = records_make_dir(false, &ignored, &e);
	if (own)
		records_remark(&r, own, NULL, unseen.at);
	ok = own && records_report(&r, &a->options, NULL, NULL, 0, &status, &e);
	if (own)
		records_remove(own);
	free(own);
	text_free(&ignored);
	text_free(&unseen);
	records_free(&r);
	if (!ok)
		return command_fail(&e);
	if (!writer)
		fprintf(stderr, "consan: the records stay in %s; `rm -r' removes them\n", a->dir);
	return status;
}

int command_recover(int argc, char **argv)
{
	const struct argp_child children[] = { { options_argp(OPTIONS_REPORT), 0, NULL, 0 }, { 0 } };
	const struct argp argp = { NULL, parse, "[DIR]", "Makes the report of a run whose consan-run was "
		"killed, from the records that the processes of the program left in DIR; without DIR, lists "
		"such folders. The text goes to stderr, other formats into the files of --report. Exit "
		"status: as of consan-run, but never that of the program, which is not known; 67 if there "
		"are no errors.", children, NULL, NULL };
	struct args a = { 0 };
	struct consan_err e = { 0 };
	int status;

	options_init(&a.options);
	if (!options_known(OPTIONS_REPORT, NULL, argc, argv, NULL, &e))
		return command_fail(&e);
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	status = a.dir ? recover(&a) : list_all();
	options_free(&a.options);
	return status;
}
