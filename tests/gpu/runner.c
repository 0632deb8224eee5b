/* runner: see runner.h. */
#include "runner.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct queue {
	struct runner_job *job;
	bool *ended;
	size_t n, next; /* next and ended: under the lock */
	pthread_mutex_t lock;
	pthread_cond_t some_ended;
};

void runner_run_one(struct runner_job *j)
{
	struct text out = { 0 };
	char part[4096];
	FILE *in = popen(j->command, "r");
	int status;
	size_t n;

	if (!in)
		base_die("%s: cannot run it", j->command);
	text_add(&out, "", 0);
	while ((n = fread(part, 1, sizeof part, in)) > 0)
		text_add(&out, part, n);
	status = pclose(in);
	j->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	j->output = out.at;
}

static void *work(void *user)
{
	struct queue *q = user;

	pthread_mutex_lock(&q->lock);
	while (q->next < q->n) {
		const size_t i = q->next++;

		pthread_mutex_unlock(&q->lock);
		runner_run_one(&q->job[i]);
		pthread_mutex_lock(&q->lock);
		q->ended[i] = true;
		pthread_cond_signal(&q->some_ended);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

void runner_run(struct runner_job *job, size_t n, unsigned at_once,
	void (*done)(void *user, size_t i), void *user)
{
	struct queue q = { .job = job, .ended = base_alloc(n + 1), .n = n,
		.lock = PTHREAD_MUTEX_INITIALIZER, .some_ended = PTHREAD_COND_INITIALIZER };
	const unsigned many = at_once ? at_once : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t *thread = base_alloc(many * sizeof *thread);

	for (unsigned k = 0; k < many; k++)
		if (pthread_create(&thread[k], NULL, work, &q))
			base_die("cannot create a thread");
	for (size_t i = 0; i < n; i++) {
		pthread_mutex_lock(&q.lock);
		while (!q.ended[i])
			pthread_cond_wait(&q.some_ended, &q.lock);
		pthread_mutex_unlock(&q.lock);
		done(user, i);
	}
	for (unsigned k = 0; k < many; k++)
		pthread_join(thread[k], NULL);
	free(thread);
	free(q.ended);
}

/* ---- options and counting ---- */

static bool read_options(struct runner *to, int argc, char **argv)
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

bool runner_begin(struct runner *to, int argc, char **argv)
{
	*to = (struct runner){ .filter = "", .seed = "0", .part = 1, .parts = 1,
		.folder = "/tmp/consan-runs-XXXXXX" };
	if (!read_options(to, argc, argv)) {
		fprintf(stderr, "usage: %s [--sanitizer] [--all] [--seed=N] [--jobs=N] [--log=FILE] "
			"BUILD BACKEND [FILTER [I/N]]\n", argv[0]);
		return false;
	}
	if (!mkdtemp(to->folder))
		base_die("cannot make a folder for reports");
	return true;
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

int runner_end(struct runner *r)
{
	const char *between = "";

	for (unsigned o = 0; o < OUTCOMES; o++) {
		if (!r->count[o] && o != GOOD && o != WRONG)
			continue;
		printf("%s%u %s", between, r->count[o], outcome[o].meaning);
		between = ", ";
	}
	printf("\n");
	rmdir(r->folder);
	if (r->log)
		fclose(r->log);
	return r->count[WRONG] || !(r->count[GOOD] + r->count[SCHEDULE]);
}

const char *runner_why_stopped(const char *text)
{
	return strstr(text, "the GPU reported") ? "the GPU stops the kernel and reports no more" : NULL;
}
