/* progress: see progress.h. */
#include "progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000u
#define NAME_MIN 12u

struct progress *progress_open(const char *path)
{
	int fd = path && *path ? base_open(path, O_RDWR | O_CREAT, 0600) : -1;
	void *p = MAP_FAILED;
	struct size_limit held;

	if (fd < 0)
		return NULL;
	size_limit_begin(&held);
	/* on a full disk, to write to a page without room would be a SIGBUS */
	if (!posix_fallocate(fd, 0, sizeof(struct progress)))
		p = mmap(NULL, sizeof(struct progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	size_limit_end(&held);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

void progress_close(struct progress *p)
{
	if (p)
		munmap(p, sizeof *p);
}

uint64_t progress_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

double progress_seconds(void)
{
	return 1e-9 * (double)progress_now();
}

void progress_launch(struct progress *p, const char *kernel, uint64_t clusters)
{
	if (!p)
		return;
	__atomic_store_n(&p->begun, 0, __ATOMIC_RELEASE);
	if (!strncmp(kernel, "void ", 5)) /* the return type of templates */
		kernel += 5;
	snprintf(p->kernel, sizeof p->kernel, "%s", kernel);
	__atomic_store_n(&p->done, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->total, clusters, __ATOMIC_RELAXED);
	__atomic_store_n(&p->begun, progress_now(), __ATOMIC_RELEASE);
}

void progress_cluster(struct progress *p)
{
	if (p)
		__atomic_add_fetch(&p->done, 1, __ATOMIC_RELAXED);
}

void progress_finding(struct progress *p)
{
	if (p)
		__atomic_add_fetch(&p->findings, 1, __ATOMIC_RELAXED);
}

void progress_idle(struct progress *p)
{
	if (p)
		__atomic_store_n(&p->begun, 0, __ATOMIC_RELEASE);
}

/* 75 -> "1 min 15 s" */
static void duration(struct text *t, double seconds)
{
	const unsigned s = seconds < 1e6 ? (unsigned)(seconds + 0.5) : 1000000;

	if (s >= 3600)
		text_printf(t, "%u h %u min", s / 3600, s / 60 % 60);
	else if (s >= 60)
		text_printf(t, "%u min %u s", s / 60, s % 60);
	else
		text_printf(t, "%u s", s);
}

bool progress_line(const struct progress *p, uint64_t now, unsigned width, struct text *t)
{
	const uint64_t begun = __atomic_load_n(&p->begun, __ATOMIC_ACQUIRE);
	const uint64_t done = __atomic_load_n(&p->done, __ATOMIC_RELAXED);
	const uint64_t total = __atomic_load_n(&p->total, __ATOMIC_RELAXED);
	const uint64_t findings = __atomic_load_n(&p->findings, __ATOMIC_RELAXED);
	struct text figures = { 0 };
	double seconds, rate;
	unsigned name_width;

	if (!begun || now < begun + SECOND || !total)
		return false;
	seconds = (double)(now - begun) / SECOND;
	rate = (double)done / seconds;
	text_printf(&figures, "  %llu/%llu clusters  %llu finding%s", (unsigned long long)done,
		(unsigned long long)total, (unsigned long long)findings, findings == 1 ? "" : "s");
	if (done && done <= total) {
		text_printf(&figures, rate < 10 ? "  %.1f/s  " : "  %.0f/s  ", rate);
		duration(&figures, (double)(total - done) / rate);
		text_printf(&figures, " left");
	}
	name_width = width > figures.n + NAME_MIN + 10 ? width - (unsigned)figures.n - 10 : NAME_MIN;
	text_printf(t, "consan: ");
	for (unsigned i = 0; i < name_width && p->kernel[i] && i < sizeof p->kernel; i++) {
		const unsigned char c = (unsigned char)p->kernel[i];
		const char shown = c < 0x20 || c >= 0x7f ? '?' : (char)c; /* no control characters */

		text_add(t, &shown, 1);
	}
	text_add(t, figures.at, figures.n);
	text_free(&figures);
	return true;
}
