/* blocked: may the program change memory, or issue an operation, while nothing can run? Not if all its
 * threads wait for each other, or for us: only then is it certain that nothing changes any more. A thread
 * counts as blocked if it is in a futex system call without a time limit that only this process can end:
 * locks, joins, condition variables, semaphores. One that sleeps, reads, polls or waits for signals may go
 * on at any time.
 *
 * Threads are looked at one after the other. If all were blocked, twice, and none has run in between, they
 * were so at the same time. */
#include "queue.h"
#include "limits.h"

#include <dirent.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

struct seen { uint64_t tid, switches; }; /* without padding: compared as bytes */
struct threads { VEC(struct seen) all; };

/* The text of a file of a thread, at most n - 1 bytes. */
bool thread_file(pid_t tid, const char *name, char *to, size_t n)
{
	char path[64];
	FILE *f;
	size_t is;

	snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	is = fread(to, 1, n - 1, f);
	fclose(f);
	to[is] = 0;
	return is;
}

bool thread_waits(pid_t tid)
{
	for (size_t i = 0; i < queue.ours.n; i++)
		if (queue.ours.at[i] == tid)
			return true;
	return false;
}

uint64_t thread_switches(pid_t tid)
{
	static const char *const field[] = { "\nvoluntary_ctxt_switches:", "\nnonvoluntary_ctxt_switches:" };
	char text[4096];
	uint64_t n = 0;

	if (!thread_file(tid, "status", text, sizeof text))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(field); i++) {
		const char *at = strstr(text, field[i]);

		if (!at)
			return 0;
		n += strtoull(at + strlen(field[i]), NULL, 10);
	}
	return n;
}

/* The value that pthread_join() waits for is the number of the thread that ends. */
static bool is_thread(const struct threads *t, uint64_t value)
{
	for (size_t i = 0; i < t->all.n; i++)
		if (t->all.at[i].tid == value)
			return true;
	return false;
}

static bool is_blocked(const struct threads *t, pid_t tid)
{
	const uint64_t lock = (uint64_t)(uintptr_t)&queue.lock;
	unsigned long long number, a[4];
	char text[256];

	if (!thread_file(tid, "syscall", text, sizeof text)
			|| sscanf(text, "%llu %llx %llx %llx %llx", &number, &a[0], &a[1], &a[2], &a[3]) != 5)
		return false;
	if (number != SYS_futex || a[3] || a[0] - lock < sizeof queue.lock)
		return false; /* it waits for a while, or for the lock that we have */
	switch (a[1] & FUTEX_CMD_MASK) {
	case FUTEX_WAIT: case FUTEX_WAIT_BITSET: case FUTEX_LOCK_PI: case FUTEX_LOCK_PI2:
		return a[1] & FUTEX_PRIVATE_FLAG || is_thread(t, a[2] & UINT32_MAX);
	}
	return false;
}

static void list(struct threads *t)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	t->all.n = 0;
	while (d && (e = readdir(d)))
		if (*e->d_name != '.')
			vec_push(&t->all, ((struct seen){ (uint64_t)atoi(e->d_name), 0 }));
	if (d)
		closedir(d);
}

static bool all_blocked(struct threads *t)
{
	list(t);
	for (size_t i = 0; i < t->all.n; i++) {
		struct seen *s = &t->all.at[i];

		if (own_thread((int)s->tid) || thread_waits((pid_t)s->tid))
			continue;
		s->switches = thread_switches((pid_t)s->tid);
		if (!s->switches || !is_blocked(t, (pid_t)s->tid))
			return false;
	}
	return t->all.n;
}

bool program_blocked(void)
{
	struct threads first = { 0 }, again = { 0 };
	bool blocked = all_blocked(&first) && all_blocked(&again) && first.all.n == again.all.n
		&& !memcmp(first.all.at, again.all.at, first.all.n * sizeof *first.all.at);

	vec_free(&first.all);
	vec_free(&again.all);
	return blocked;
}

/* ---- what the engine asks ---- */

long program_threads(void)
{
	struct stat s;

	if (stat("/proc/self/task", &s)) /* a link for each thread, and two */
		return 0;
	return (long)s.st_nlink - 2 - (long)(queue.threads + queue.waiting + own_threads());
}

bool program_may_act(void)
{
	static double looked, blocked_at;
	const double now = progress_seconds();

	if (queue.ends)
		return false;
	if (!queue.waiting || host_held() || wait_is_over() || ipc_any())
		return true;
	if (program_threads() <= 0 || blocked_at > queue.moved)
		return false; /* so it stays until one of ours makes progress */
	if (now - queue.moved < TURN || now - looked < TURN)
		return true;
	looked = now;
	if (!program_blocked())
		return true;
	blocked_at = now;
	return false;
}

bool program_out_of_time(void)
{
	static bool reported;
	const double limit = consan_timeout(device_session()), idle = progress_seconds() - queue.moved;

	if (!queue.waiting)
		return false;
	if (limit > 0 && idle > limit)
		return true;
	if (idle > NO_PROGRESS && !reported) {
		reported = true;
		deadlock_report(false, idle);
	}
	return false;
}

bool orders_to_explore(void)
{
	const struct stream *first = NULL;
	bool several = false;

	if (!consan_explores(device_session()))
		return false;
	for (const struct task *t = queue.first; t; t = t->next) {
		if (t->state != TASK_QUEUED || t->op.kind == OP_HOST)
			return false;
		if (t->op.kind == OP_EMPTY || t->op.kind == OP_RECORD)
			continue;
		several |= first && first != t->stream;
		first = t->stream;
	}
	return several && !queue.busy && !queue.functions && program_threads() <= 1 && !ipc_any()
		&& !consan_shares_memory();
}
