/* shards: see shards.h. */
#include "shards.h"

#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPORT ".json"
#define RUNNING ".running"

/* ---- names ---- */

void shards_run_name(char *run)
{
	for (; *run; run++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", *run))
			*run = '_';
}

static char *path_of(const char *dir, unsigned at, const struct shard *s, const char *suffix)
{
	struct text t = { 0 };

	text_printf(&t, "%s/", dir);
	if (at)
		text_printf(&t, "shard-%u", at);
	else
		text_printf(&t, "merged");
	text_printf(&t, "-of-%u%s%s%s", s->of, *s->run ? "." : "", s->run, suffix);
	return t.at;
}

char *shards_report(const char *dir, const struct shard *s)
{
	return path_of(dir, s->at, s, REPORT);
}

char *shards_merged(const char *dir, const struct shard *s)
{
	return path_of(dir, 0, s, REPORT);
}

/* Others may write to the folder: what is there under the name of a report need be none. */
static bool is_file(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISREG(st.st_mode);
}

void shards_make_way(const char *path)
{
	if (!is_file(path))
		unlink(path);
}

/* A file of a shard: its place, and in run..run + n the name of the run. */
struct name {
	unsigned at, of;
	const char *run;
	size_t n;
	bool report;
};

static bool read_name(const char *file, struct name *out)
{
	const char *dot;
	int used = 0;

	if (sscanf(file, "shard-%u-of-%u%n", &out->at, &out->of, &used) != 2 || !used)
		return false;
	if (!out->at || out->at > out->of || out->of > OPTIONS_SHARDS || file[used] != '.')
		return false;
	dot = strrchr(file + used, '.');
	out->report = !strcmp(dot, REPORT);
	out->run = dot == file + used ? dot : file + used + 1;
	out->n = (size_t)(dot - out->run);
	return out->report || !strcmp(dot, RUNNING);
}

static bool is_of(const struct name *n, const struct shard *s)
{
	return n->of == s->of && n->n == strlen(s->run) && !memcmp(n->run, s->run, n->n);
}

/* ---- one shard ---- */

/* Locked before it has its name, as it would be taken for that of a killed shard. */
static int create_locked(const char *path, struct consan_err *e)
{
	struct text t = { 0 };
	char host[256] = "";
	int fd;

	text_printf(&t, "%s.XXXXXX", path);
	fd = mkostemp(t.at, O_CLOEXEC);
	if (fd >= 0) {
		fchmod(fd, 0644);
		fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK });
		gethostname(host, sizeof host - 1);
		if (dprintf(fd, "%s %ld\n", host, (long)getpid()) < 0 || rename(t.at, path)) {
			unlink(t.at);
			close(fd);
			fd = -1;
		}
	}
	if (fd < 0)
		err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", path, strerror(errno));
	text_free(&t);
	return fd;
}

int shards_begin(const char *dir, const struct shard *s, struct consan_err *e)
{
	char *path = path_of(dir, s->at, s, RUNNING), *report = shards_report(dir, s);
	char *merged = shards_merged(dir, s);
	int fd = -1;

	/* a run with a name has files of its own */
	if (!*s->run && !access(report, F_OK) && !access(merged, F_OK))
		err_set(e, CONSAN_ERR_IO, 0, 0, "%s is of an earlier run; name another folder", merged);
	else if (mkdir(dir, 0777) && errno != EEXIST)
		err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", dir, strerror(errno));
	else
		fd = create_locked(path, e);
	if (fd >= 0)
		unlink(report);
	free(path);
	free(report);
	free(merged);
	return fd;
}

void shards_end(const char *dir, const struct shard *s)
{
	char *path = path_of(dir, s->at, s, RUNNING);

	unlink(path);
	free(path);
}

/* What has become of a shard that had begun. */
static enum shard_state probe(const struct shards *s, unsigned at)
{
	char *path = path_of(s->dir, at, &s->run, RUNNING), *report = path_of(s->dir, at, &s->run, REPORT);
	struct flock lock = { .l_type = F_WRLCK };
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	enum shard_state state = SHARD_RUNS;

	if (fd < 0)
		state = errno != ENOENT ? SHARD_RUNS : access(report, F_OK) ? SHARD_ABSENT : SHARD_REPORTED;
	else if (!fcntl(fd, F_GETLK, &lock) && lock.l_type == F_UNLCK)
		state = access(report, F_OK) ? SHARD_KILLED : SHARD_REPORTED; /* it may have ended just now */
	if (fd >= 0)
		close(fd);
	free(path);
	free(report);
	return state;
}

/* ---- all shards of a run ---- */

static void set(struct shards *s, unsigned at, enum shard_state state)
{
	s->n[s->state[at - 1]]--;
	s->n[state]++;
	s->state[at - 1] = (uint8_t)state;
}

struct found_run { struct shard run; struct timespec latest; };
typedef VEC(struct found_run) found_runs;

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static void note_run(found_runs *runs, const struct name *n, const struct timespec *when)
{
	for (size_t i = 0; i < runs->n; i++)
		if (is_of(n, &runs->at[i].run)) {
			if (is_later(when, &runs->at[i].latest))
				runs->at[i].latest = *when;
			return;
		}
	vec_push(runs, ((struct found_run){ { .of = n->of, .run = base_strndup(n->run, n->n) }, *when }));
}

/* The run with the latest file. */
static bool find_run(DIR *d, struct shard *out, unsigned *others)
{
	found_runs runs = { 0 };
	struct dirent *entry;
	struct stat st;
	struct name n;
	size_t best = 0;

	while ((entry = readdir(d)))
		if (read_name(entry->d_name, &n) && !fstatat(dirfd(d), entry->d_name, &st, 0))
			note_run(&runs, &n, &st.st_mtim);
	rewinddir(d);
	for (size_t i = 1; i < runs.n; i++)
		if (is_later(&runs.at[i].latest, &runs.at[best].latest))
			best = i;
	*others = runs.n ? (unsigned)runs.n - 1 : 0;
	if (runs.n)
		*out = runs.at[best].run;
	for (size_t i = 0; i < runs.n; i++)
		if (i != best)
			free(runs.at[i].run.run);
	vec_free(&runs);
	return out->of;
}

bool shards_scan(struct shards *s, const char *dir, const struct shard *one, unsigned *others,
	struct consan_err *e)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	struct name n;

	*s = (struct shards){ .dir = dir };
	if (!d)
		return err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", dir, strerror(errno));
	if (one)
		s->run = (struct shard){ .of = one->of, .run = base_strdup(one->run) };
	else if (!find_run(d, &s->run, others)) {
		closedir(d);
		return err_set(e, CONSAN_ERR_IO, 0, 0, "%s: no reports of shards are there", dir);
	}
	s->state = base_alloc(s->run.of);
	s->n[SHARD_ABSENT] = s->run.of;
	while ((entry = readdir(d)))
		if (read_name(entry->d_name, &n) && is_of(&n, &s->run)
				&& s->state[n.at - 1] != SHARD_REPORTED)
			set(s, n.at, n.report ? SHARD_REPORTED : SHARD_BEGUN);
	closedir(d);
	return true;
}

#define GUESSES 64u

/* Of thousands of shards, all but the last few see here that others are to come, and need not read the
 * folder. */
static bool others_pending(const char *dir, const struct shard *s)
{
	struct shards all = { .dir = dir, .run = *s };

	for (uint32_t k = 1; k <= GUESSES && s->of > GUESSES; k++) {
		const enum shard_state state = probe(&all, (s->at + k * UINT32_C(0x9e3779b1)) % s->of + 1);

		if (state == SHARD_RUNS || state == SHARD_ABSENT)
			return true;
	}
	return false;
}

/* One that still runs decides it, so the others are not asked. */
static bool all_ended(struct shards *s)
{
	if (s->n[SHARD_ABSENT])
		return false;
	for (unsigned at = 1; at <= s->run.of; at++) {
		if (s->state[at - 1] == SHARD_BEGUN)
			set(s, at, probe(s, at));
		if (s->state[at - 1] == SHARD_RUNS || s->state[at - 1] == SHARD_ABSENT)
			return false;
	}
	return true;
}

bool shards_ended(struct shards *s, const char *dir, const struct shard *own, bool *ended,
	struct consan_err *e)
{
	*s = (struct shards){ .dir = dir };
	*ended = false;
	if (others_pending(dir, own))
		return true;
	if (!shards_scan(s, dir, own, NULL, e))
		return false;
	*ended = all_ended(s);
	return true;
}

/* "2, 5-7": the shards in this state. */
static void list(const struct shards *s, enum shard_state state, struct text *t)
{
	for (unsigned i = 0, end; i < s->run.of; i = end) {
		for (end = i + 1; end < s->run.of && s->state[end] == s->state[i]; end++)
			;
		if (s->state[i] != state)
			continue;
		text_printf(t, "%s%u", t->n ? ", " : "", i + 1);
		if (end > i + 1)
			text_printf(t, "-%u", end);
	}
}

static void remark(const struct shards *s, struct results *r, enum shard_state state, const char *what)
{
	struct text which = { 0 }, line = { 0 };

	if (!s->n[state])
		return;
	list(s, state, &which);
	text_printf(&line, "%u of %u shards %s: %s", s->n[state], s->run.of, what, which.at);
	results_add_remark(r, RESULT_REMARK_not_seen, line.at);
	text_free(&which);
	text_free(&line);
}

void shards_load(struct shards *s, struct results *r)
{
	for (unsigned at = 1; at <= s->run.of; at++)
		if (s->state[at - 1] == SHARD_BEGUN)
			set(s, at, probe(s, at));
	for (unsigned at = 1; at <= s->run.of; at++) {
		struct consan_err e = { 0 };
		char *path;

		if (s->state[at - 1] != SHARD_REPORTED)
			continue;
		path = path_of(s->dir, at, &s->run, REPORT);
		if (!is_file(path))
			err_set(&e, CONSAN_ERR_IO, 0, 0, "%s: not a regular file", path);
		if (e.code || !results_load(r, path, &e))
			results_add_remark(r, RESULT_REMARK_not_seen, e.text);
		free(path);
	}
	remark(s, r, SHARD_KILLED, "were killed before they reported");
	remark(s, r, SHARD_RUNS, "still run");
	remark(s, r, SHARD_ABSENT, "did not report");
}

void shards_free(struct shards *s)
{
	free(s->run.run);
	free(s->state);
}
