/* side: see side.h. */
#include "side.h"
#include "libconsan/base/base.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct side {
	struct side_job *job;
	bool *ended;
	size_t n, next; /* under lock, as is ended */
	pthread_mutex_t lock;
	pthread_cond_t some_ended;
};

void side_run_one(struct side_job *j)
{
	struct text out = { 0 };
	char part[4096];
	FILE *in = popen(j->command, "r");
	int status;
	size_t n;

	if (!in)
		base_die("%s: cannot be run", j->command);
	text_add(&out, "", 0);
	while ((n = fread(part, 1, sizeof part, in)) > 0)
		text_add(&out, part, n);
	status = pclose(in);
	j->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	j->output = out.at;
}

static void *work(void *user)
{
	struct side *s = user;

	pthread_mutex_lock(&s->lock);
	while (s->next < s->n) {
		const size_t i = s->next++;

		pthread_mutex_unlock(&s->lock);
		side_run_one(&s->job[i]);
		pthread_mutex_lock(&s->lock);
		s->ended[i] = true;
		pthread_cond_signal(&s->some_ended);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void side_run(struct side_job *job, size_t n, unsigned at_once,
	void (*done)(void *user, size_t i), void *user)
{
	struct side s = { .job = job, .ended = base_alloc(n + 1), .n = n,
		.lock = PTHREAD_MUTEX_INITIALIZER, .some_ended = PTHREAD_COND_INITIALIZER };
	const unsigned many = at_once ? at_once : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t *thread = base_alloc(many * sizeof *thread);

	for (unsigned k = 0; k < many; k++)
		if (pthread_create(&thread[k], NULL, work, &s))
			base_die("no thread");
	for (size_t i = 0; i < n; i++) {
		pthread_mutex_lock(&s.lock);
		while (!s.ended[i])
			pthread_cond_wait(&s.some_ended, &s.lock);
		pthread_mutex_unlock(&s.lock);
		done(user, i);
	}
	for (unsigned k = 0; k < many; k++)
		pthread_join(thread[k], NULL);
	free(thread);
	free(s.ended);
}

/* ---- what the programs have in common ---- */

static bool take(struct side_options *to, int argc, char **argv)
{
	static const struct option options[] = { { "sanitizer", no_argument, NULL, 's' },
		{ "all", no_argument, NULL, 'a' },
		{ "jobs", required_argument, NULL, 'j' }, { "log", required_argument, NULL, 'l' },
		{ "seed", required_argument, NULL, 'd' }, { 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			to->sanitizer = true;
		else if (c == 'a')
			to->all = true;
		else if (c == 'j')
			to->at_once = (unsigned)strtoul(optarg, NULL, 0);
		else if (c == 'd')
			to->seed = optarg;
		else if (c != 'l' || !(to->log = fopen(optarg, "w")))
			return false;
	}
	argv += optind;
	argc -= optind;
	if (argc < 2 || argc > 4)
		return false;
	to->build = argv[0];
	to->backend = argv[1];
	to->gpu = !strcmp(to->backend, "gpu");
	to->any_schedule = to->gpu || strcmp(to->seed, "0");
	if (argc > 2)
		to->filter = argv[2];
	return argc < 4 || (sscanf(argv[3], "%u/%u", &to->part, &to->parts) == 2 && to->part &&
		to->part <= to->parts);
}

bool side_options(struct side_options *to, int argc, char **argv)
{
	*to = (struct side_options){ .filter = "", .seed = "0", .part = 1, .parts = 1 };
	if (take(to, argc, argv))
		return true;
	fprintf(stderr, "usage: %s [--sanitizer] [--all] [--seed=N] [--jobs=N] [--log=FILE] BUILD BACKEND "
		"[FILTER [I/N]]\n", argv[0]);
	return false;
}

static const struct { const char *word, *meaning; } outcome[] = {
#define OUTCOME(id, word, meaning) { word, meaning },
#include "outcome.def"
#undef OUTCOME
};

const char *outcome_word(enum outcome o)
{
	return outcome[o].word;
}

void outcome_print(FILE *to, const unsigned count[OUTCOMES])
{
	const char *between = "";

	for (unsigned o = 0; o < OUTCOMES; o++) {
		if (!count[o] && o != GOOD && o != WRONG)
			continue;
		fprintf(to, "%s%u %s", between, count[o], outcome[o].meaning);
		between = ", ";
	}
	fprintf(to, "\n");
}

int outcome_status(const unsigned count[OUTCOMES])
{
	return count[WRONG] || !(count[GOOD] + count[SCHEDULE]);
}
