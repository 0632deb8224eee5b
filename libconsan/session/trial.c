/* trial: see trial.h. The copy that waits gets a request, forks, and passes on what the trial
 * wrote. Both ends of a pipe are the same program. */
#include "trial.h"

#include "copy.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct trials {
	pid_t pid;
	int to, from; /* pipes to and from the copy */
	bool lost;
};

static int result_fd; /* in a trial */

static bool get_result(int fd, double until, struct trial_result *out)
{
	*out = (struct trial_result){ 0 };
	if (!copy_get(fd, &out->done, sizeof out->done, until)
		|| !copy_get(fd, &out->idle, sizeof out->idle, until)
		|| !copy_get(fd, &out->seconds, sizeof out->seconds, until)
		|| !copy_get(fd, &out->n, sizeof out->n, until))
		return false;
	out->at = base_alloc((out->n + 1) * sizeof *out->at);
	return copy_get(fd, out->at, out->n * sizeof *out->at, until);
}

static bool put_result(int fd, const struct trial_result *r)
{
	return copy_put(fd, &r->done, sizeof r->done) && copy_put(fd, &r->idle, sizeof r->idle)
		&& copy_put(fd, &r->seconds, sizeof r->seconds) && copy_put(fd, &r->n, sizeof r->n)
		&& copy_put(fd, r->at, r->n * sizeof *r->at);
}

static void one_trial(trial_run *run, void *user, const char *text, const struct trial_request *q,
	struct trial_result *out)
{
	int fd[2];
	pid_t pid;

	*out = (struct trial_result){ 0 };
	if (pipe2(fd, O_CLOEXEC))
		return;
	pid = copy_fork();
	if (!pid) {
		result_fd = fd[1];
		out->done = run(user, text, q, out);
		_exit(!put_result(fd[1], out));
	}
	close(fd[1]);
	if (pid > 0 && (!copy_await(fd[0], pid, 2 * q->seconds + 1) || !get_result(fd[0], 0, out)))
		out->done = false;
	close(fd[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		out->seconds = copy_reap(pid);
	}
}

void trial_stop(const struct trial_result *r)
{
	static atomic_flag once = ATOMIC_FLAG_INIT;

	while (atomic_flag_test_and_set(&once))
		pause(); /* another thread ends the process */
	_exit(!put_result(result_fd, r));
}

static _Noreturn void serve(int in, int out, trial_run *run, void *user)
{
	struct trial_request q;

	while (copy_get(in, &q, sizeof q, 0)) {
		char *text = base_alloc(q.n + 1);
		struct trial_result r;

		if (!copy_get(in, text, q.n, 0))
			break;
		one_trial(run, user, text, &q, &r);
		if (!r.done)
			r.n = 0;
		if (!put_result(out, &r))
			break;
		free(r.at);
		free(text);
	}
	/* without exit handlers of the program, and without flushing its streams twice */
	_exit(0);
}

struct trials *trials_open(trial_run *run, void *user)
{
	int to[2], from[2];
	struct trials *t;
	pid_t pid;

	if (pipe2(to, O_CLOEXEC))
		return NULL;
	if (pipe2(from, O_CLOEXEC)) {
		close(to[0]);
		close(to[1]);
		return NULL;
	}
	pid = copy_fork();
	if (!pid) {
		close(to[1]);
		close(from[0]);
		serve(to[0], from[1], run, user);
	}
	close(to[0]);
	close(from[1]);
	if (pid < 0) {
		close(to[1]);
		close(from[0]);
		return NULL;
	}
	t = base_alloc(sizeof *t);
	*t = (struct trials){ pid, to[1], from[0], false };
	return t;
}

/* A write to a copy that was killed must not raise SIGPIPE in the program. */
static bool put_quietly(int fd, const void *at, size_t n)
{
	const struct timespec none = { 0 };
	sigset_t pipe, old, pending;
	bool ok, was;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	was = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	ok = copy_put(fd, at, n);
	if (!ok && !was)
		sigtimedwait(&pipe, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ok;
}

void trials_try(struct trials *t, const char *text, const struct trial_request *q,
	struct trial_result *out)
{
	*out = (struct trial_result){ 0 };
	t->lost = t->lost || !put_quietly(t->to, q, sizeof *q)
		|| !put_quietly(t->to, text, q->n)
		|| !get_result(t->from, copy_patience(2 * q->seconds + 1), out);
	if (t->lost)
		out->done = false;
}

void trials_close(struct trials *t)
{
	if (!t)
		return;
	close(t->to);
	close(t->from);
	kill(t->pid, SIGKILL);
	copy_reap(t->pid);
	free(t);
}
