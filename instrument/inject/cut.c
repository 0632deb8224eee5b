/* cut: see cut.h. The threads that work ahead take the kernels that earlier runs of a module
 * launched, which the store remembers (origin.h), and all of a small module. */
#include "cut.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "instrument/rewrite/rewrite.h"
#include "libconsan/origin/origin.h"

enum state { WAITING, BUSY, MADE };

struct job { struct cut cut; enum state state; };
/* Kernels of an image that were launched, one a line: in earlier runs, and in this one. */
struct launched { struct inject_image *image; bool known, expected; char name[SHA256_HEX]; struct text all; };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	VEC(struct job *) job;
	VEC(struct launched *) launched;
	unsigned threads, busy;    /* that work ahead */
	bool early;                /* the program's file is yet to be read */
	pid_t owner;               /* the process that has them: a forked copy has none */
	bool over;
} cuts = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static struct job *find(const struct inject_image *i, const char *kernel)
{
	for (size_t k = 0; k < cuts.job.n; k++)
		if (cuts.job.at[k]->cut.image == i && !strcmp(cuts.job.at[k]->cut.kernel, kernel))
			return cuts.job.at[k];
	return NULL;
}

static struct job *find_or_add(struct inject_image *i, const char *kernel)
{
	struct job *j = find(i, kernel);

	if (j)
		return j;
	j = base_alloc(sizeof *j);
	j->cut.image = i;
	j->cut.kernel = base_strdup(kernel);
	vec_push(&cuts.job, j);
	return j;
}

static void make(struct cut *c)
{
	const double start = progress_seconds();
	const struct consan *session = inject_session();
	struct consan_err e = { 0 };
	const char *text;
	double cut;
	size_t n;

	c->module = gpu_module_cut(inject_image_name(c->image), inject_slices(c->image), c->kernel,
		false, gpu_global(session), gpu_drains(session), &e);
	if (!c->module) {
		snprintf(c->why, sizeof c->why, "it cannot be instrumented: line %d: %.200s", e.line,
			e.text);
		return;
	}
	cut = progress_seconds();
	text = gpu_module_text(c->module, &n);
	c->code = inject_assemble(text, n, 0, false, &c->bytes, c->why);
	if (gpu_times(session))
		inject_print("times of %s: %s: instrumented %zu instructions in %.3f ms, assembled %zu "
			"KiB of text to %zu KiB in %.3f ms", inject_image_name(c->image), c->kernel,
			gpu_module_insns(c->module), 1e3 * (cut - start), n >> 10, c->bytes >> 10,
			1e3 * (progress_seconds() - cut));
}

/* With the lock held, which is released meanwhile. */
static void run(struct job *j)
{
	j->state = BUSY;
	pthread_mutex_unlock(&cuts.lock);
	make(&j->cut);
	pthread_mutex_lock(&cuts.lock);
	j->state = MADE;
	pthread_cond_broadcast(&cuts.changed);
}

/* ---- what earlier runs launched ---- */

static bool has_line(const struct text *t, const char *line)
{
	const size_t n = strlen(line);
	const char *at = t->at;

	for (; at && (at = strstr(at, line)); at += n)
		if ((at == t->at || at[-1] == '\n') && at[n] == '\n')
			return true;
	return false;
}

static struct launched *launched_of(struct inject_image *i)
{
	struct launched *h;

	for (size_t k = 0; k < cuts.launched.n; k++)
		if (cuts.launched.at[k]->image == i)
			return cuts.launched.at[k];
	h = base_alloc(sizeof *h);
	h->image = i;
	vec_push(&cuts.launched, h);
	return h;
}

/* With the lock held. Reads what the store has. */
static void read_launched(struct launched *h)
{
	size_t n, length;
	const char *ptx;
	char *all;

	if (h->known)
		return;
	h->known = true;
	ptx = inject_image_ptx(h->image, &n);
	sha256_hex(ptx, n, h->name);
	all = origin_get_named(h->name, sizeof h->name, ORIGIN_LAUNCHED, &length);
	if (all)
		text_add(&h->all, all, length);
	free(all);
}

static void note_launched(struct inject_image *i, const char *kernel)
{
	struct launched *h = launched_of(i);

	read_launched(h);
	if (has_line(&h->all, kernel))
		return;
	text_printf(&h->all, "%s\n", kernel);
	origin_put_named(h->name, sizeof h->name, ORIGIN_LAUNCHED, h->all.at, h->all.n);
}

/* ---- threads that work ahead ---- */

#define MOST_THREADS 15

static unsigned spare_cores(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);

	return n - 1 < MOST_THREADS ? (unsigned)(n - 1) : MOST_THREADS;
}

/* Kernels of a module, all of which are made ahead although no thread does so: they may be needed when
 * nothing can be loaded (kernel.c). */
#define FEW 4

unsigned cut_few(void)
{
	return cuts.threads ? cuts.threads : FEW;
}

/* With the lock held. */
static void expect_kernels(struct launched *h, const struct slices *s)
{
	const bool all = slices_kernels(s) <= cut_few();
	const char *kernel;

	read_launched(h);
	h->expected = true;
	for (unsigned k = 0; (kernel = slices_kernel(s, k)); k++)
		if (all || has_line(&h->all, kernel))
			find_or_add(h->image, kernel);
	pthread_cond_broadcast(&cuts.changed);
}

static struct job *next_job(void)
{
	for (size_t k = 0; k < cuts.job.n; k++)
		if (cuts.job.at[k]->state == WAITING)
			return cuts.job.at[k];
	return NULL;
}

static struct launched *next_image(void)
{
	for (size_t k = 0; k < cuts.launched.n; k++)
		if (!cuts.launched.at[k]->expected)
			return cuts.launched.at[k];
	return NULL;
}

void cut_end(void)
{
	if (cuts.owner != getpid())
		return;
	pthread_mutex_lock(&cuts.lock);
	cuts.over = true;
	pthread_cond_broadcast(&cuts.changed);
	while (cuts.busy)
		pthread_cond_wait(&cuts.changed, &cuts.lock);
	pthread_mutex_unlock(&cuts.lock);
}

/* With the lock held, which is released meanwhile. False: there is nothing to do. */
static bool work_ahead(void)
{
	struct launched *h = next_image();
	const struct slices *s;
	struct job *j;

	if (cuts.early) {
		cuts.early = false;
		pthread_mutex_unlock(&cuts.lock);
		early_find();
		pthread_mutex_lock(&cuts.lock);
		return true;
	}
	if (h) {
		pthread_mutex_unlock(&cuts.lock);
		s = inject_slices(h->image);
		pthread_mutex_lock(&cuts.lock);
		expect_kernels(h, s);
		return true;
	}
	j = next_job();
	if (j)
		run(j);
	return j;
}

static void *work(void *unused)
{
	(void)unused;
	inject_busy = true;
	pthread_mutex_lock(&cuts.lock);
	while (!cuts.over) {
		if (!work_ahead()) {
			cuts.busy--;
			pthread_cond_broadcast(&cuts.changed);
			pthread_cond_wait(&cuts.changed, &cuts.lock);
			cuts.busy++;
		}
	}
	cuts.busy--;
	pthread_cond_broadcast(&cuts.changed);
	pthread_mutex_unlock(&cuts.lock);
	return NULL;
}

/* With the lock held. */
static void start_threads(void)
{
	const unsigned n = spare_cores();
	pthread_attr_t attr;
	pthread_t t;

	if (!n || !inject_assembles() || atexit(cut_end))
		return;
	cuts.owner = getpid();
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	while (cuts.threads < n && !pthread_create(&t, &attr, work, NULL)) {
		cuts.threads++;
		cuts.busy++;
	}
	pthread_attr_destroy(&attr);
}

void inject_ahead(struct inject_image *i)
{
	pthread_mutex_lock(&cuts.lock);
	if (!cuts.threads)
		start_threads();
	launched_of(i);
	pthread_cond_broadcast(&cuts.changed);
	pthread_mutex_unlock(&cuts.lock);
}

void inject_ahead_of_modules(void)
{
	pthread_mutex_lock(&cuts.lock);
	start_threads();
	cuts.early = cuts.threads;
	pthread_cond_broadcast(&cuts.changed);
	pthread_mutex_unlock(&cuts.lock);
}

void cut_all(struct inject_image *i)
{
	const struct slices *s = inject_slices(i);
	const char *kernel;

	pthread_mutex_lock(&cuts.lock);
	if (!cuts.threads)
		start_threads();
	for (size_t k = 0; (kernel = slices_kernel(s, k)); k++)
		find_or_add(i, kernel);
	pthread_cond_broadcast(&cuts.changed);
	pthread_mutex_unlock(&cuts.lock);
}

void cut_wait(unsigned *made, unsigned *failed)
{
	struct job *j;

	pthread_mutex_lock(&cuts.lock);
	while ((j = next_job()))
		run(j);
	for (size_t k = 0; k < cuts.job.n; k++) {
		j = cuts.job.at[k];
		while (j->state != MADE)
			pthread_cond_wait(&cuts.changed, &cuts.lock);
		*made += j->cut.code != NULL;
		*failed += !j->cut.code;
		if (!j->cut.code)
			inject_print("%s: %s: %s", inject_image_name(j->cut.image), j->cut.kernel,
				j->cut.why);
	}
	pthread_mutex_unlock(&cuts.lock);
}

void cut_settle(double seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)seconds;
	pthread_mutex_lock(&cuts.lock);
	while (!cuts.threads && work_ahead())
		;
	while ((cuts.busy || next_image() || next_job()) && !cuts.over
			&& !pthread_cond_timedwait(&cuts.changed, &cuts.lock, &until))
		;
	pthread_mutex_unlock(&cuts.lock);
}

bool cut_nth(size_t k, struct cut **made)
{
	bool is;

	pthread_mutex_lock(&cuts.lock);
	is = k < cuts.job.n;
	*made = is && cuts.job.at[k]->state == MADE ? &cuts.job.at[k]->cut : NULL;
	pthread_mutex_unlock(&cuts.lock);
	return is;
}

void cut_launched(struct inject_image *i, const char *kernel)
{
	pthread_mutex_lock(&cuts.lock);
	find_or_add(i, kernel);
	note_launched(i, kernel);
	pthread_cond_broadcast(&cuts.changed);
	pthread_mutex_unlock(&cuts.lock);
}

struct cut *cut_get(struct inject_image *i, const char *kernel)
{
	struct job *j;

	pthread_mutex_lock(&cuts.lock);
	j = find_or_add(i, kernel);
	if (j->state == WAITING)
		run(j);
	while (j->state != MADE)
		pthread_cond_wait(&cuts.changed, &cuts.lock);
	note_launched(i, kernel);
	pthread_mutex_unlock(&cuts.lock);
	return &j->cut;
}
