/* lost: notes of processes that cannot record what they find: their limits, their rights or another process
 * forbid it. A report without their findings must not look whole. */
#include "libconsan/base/base.h"
#include "results.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WHY_BYTES 400

/* The makers library has it (makers/folder.c). */
static void count_lost(void)
{
	uint32_t *const *page = dlsym(RTLD_DEFAULT, "consan_run_lost");

	if (page && *page)
		__atomic_add_fetch(*page, 1, __ATOMIC_RELAXED);
}

/* A link that leads nowhere holds the text: only to create it needs no descriptor. */
void results_lose(const char *path, const char *why)
{
	const char *name = strrchr(path, '/');
	struct text note = { 0 };
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	text_printf(&note, "%.*s%ld-%lld%09ld" RESULTS_LOST, name ? (int)(name - path) + 1 : 0, path, (long)getpid(),
		(long long)now.tv_sec, now.tv_nsec);
	if (folder_symlink(*why ? why : "?", note.at)) {
		fprintf(stderr, "consan: the findings of process %ld are lost: %s; nor can %s be created: %s\n",
			(long)getpid(), why, note.at, strerror(errno));
		count_lost();
	}
	text_free(&note);
}

void results_lost(struct text *to, const char *path)
{
	const char *name = strrchr(path, '/');
	char why[WHY_BYTES];
	ssize_t n = readlink(path, why, sizeof why - 1);

	why[n < 0 ? 0 : n] = 0;
	visible_in_place(why);
	text_printf(to, "what process %ld found is not recorded: %s\n", strtol(name ? name + 1 : path, NULL, 10), why);
}
