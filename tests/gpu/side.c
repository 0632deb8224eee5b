/* side: see side.h. */
#include "side.h"
#include "../../libconsan/base.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct side {
	struct side_job *job;
	bool *ended;
	size_t n, next; /* under lock, as is ended */
	pthread_mutex_t lock;
	pthread_cond_t some_ended;
};

static void run(struct side_job *j)
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
		run(&s->job[i]);
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
