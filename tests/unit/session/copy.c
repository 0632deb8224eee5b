/* Forked copies of the process: they run no signal handler of the program, and end with it. */
#include "libconsan/session/copy.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void handler(int number)
{
	handled = number;
}

Test(copy, runs_no_handler_of_the_program, .timeout = TEST_LIMIT)
{
	int fd[2];
	pid_t pid;
	char how = 0;

	signal(SIGTERM, handler);
	signal(SIGABRT, handler);
	cr_assert(!pipe(fd));
	pid = copy_fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		raise(SIGTERM);
		how = handled ? 'h' : 'n';
		copy_put(fd[1], &how, 1);
		raise(SIGABRT); /* a fault ends it */
		_exit(0);
	} else {
		int status;

		close(fd[1]);
		cr_assert(copy_get(fd[0], &how, 1, 0));
		cr_assert_eq(how, 'n');
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
	raise(SIGTERM); /* those of the program stay */
	cr_assert_eq(handled, SIGTERM);
}

/* A process in between is killed; the end of the pipe that only its copy holds is then closed. */
Test(copy, ends_with_its_parent, .timeout = TEST_LIMIT)
{
	struct pollfd end;
	pid_t between;
	int fd[2];
	char c;

	cr_assert(!pipe(fd));
	between = fork();
	if (!between) {
		if (!copy_fork()) {
			copy_put(fd[1], "r", 1);
			for (;;)
				pause();
		}
		for (;;)
			pause();
	}
	close(fd[1]);
	cr_assert(copy_get(fd[0], &c, 1, 0)); /* the copy runs */
	kill(between, SIGKILL);
	copy_reap(between);
	end = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	cr_assert_eq(poll(&end, 1, 10000), 1);
	cr_assert_eq(read(fd[0], &c, 1), 0);
	close(fd[0]);
}
