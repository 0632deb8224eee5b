/* display: the progress line of consan-run, updated by a thread of its own. */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 200

static void show_line(const struct display *d, bool *shown)
{
	struct text t = { 0 };
	struct winsize w;
	unsigned width = !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col > 40 ? w.ws_col : 80;
	const bool any = !d->over && progress_line(d->page, progress_now(), width - 1, &t);

	if (any)
		dprintf(STDERR_FILENO, "\r%s\033[K", t.at);
	else if (*shown)
		dprintf(STDERR_FILENO, "\r\033[K");
	*shown = any;
	text_free(&t);
}

static void *display_run(void *arg)
{
	struct display *d = arg;
	bool shown = false;

	pthread_mutex_lock(&d->lock);
	while (!d->over) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += TICK_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_timedwait(&d->changed, &d->lock, &until);
		show_line(d, &shown);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

void display_open(struct display *d, const char *dir, bool quiet)
{
	const char *term = getenv("TERM");
	struct text path = { 0 };

	unsetenv(PROGRESS_ENV);
	if (quiet || !isatty(STDERR_FILENO) || !term || !strcmp(term, "dumb"))
		return;
	text_printf(&path, "%s/.progress", dir);
	d->page = progress_open(path.at);
	d->path = path.at;
	if (d->page)
		setenv(PROGRESS_ENV, path.at, 1);
}

void display_begin(struct display *d)
{
	if (!d->page)
		return;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	if (!pthread_create(&d->thread, NULL, display_run, d))
		return;
	progress_close(d->page);
	d->page = NULL;
}

void display_end(struct display *d)
{
	if (d->page) {
		pthread_mutex_lock(&d->lock);
		d->over = true;
		pthread_cond_signal(&d->changed);
		pthread_mutex_unlock(&d->lock);
		pthread_join(d->thread, NULL);
		progress_close(d->page);
	}
	if (d->path)
		unlink(d->path);
	free(d->path);
}
