/* records: see records.h. */
#include "records.h"
#include "symbols.h"

#include "libconsan/finding/finding.h"
#include "libconsan/session/session.h"
#include "reports/reports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD ".jsonl"
#define OPEN "open-" /* the name of the folder for processes that have given up root's rights begins so */
#define LEAST_BYTES (256 << 10) /* of a short run's records */

/* ---- the folder ---- */

bool records_odd_path(const char *path)
{
	return path[strcspn(path, " :;$\n")] != 0;
}

/* Is there room for records? */
static bool has_room(const char *dir)
{
	struct text path = { 0 };
	int fd, error;

	text_printf(&path, "%s/.room", dir);
	fd = open(path.at, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	error = fd < 0 ? errno : posix_fallocate(fd, 0, LEAST_BYTES);
	if (fd >= 0)
		close(fd);
	unlink(path.at);
	text_free(&path);
	errno = error;
	return !error;
}

/* All processes of the run count in it, whatever rights they have then. */
static bool make_lost(const char *dir)
{
	char *folder = records_folder(dir);
	struct text path = { 0 };
	bool ok;
	int fd;

	text_printf(&path, "%s/" FOLDER_LOST_PAGE, folder);
	fd = open(path.at, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ok = fd >= 0 && !posix_fallocate(fd, 0, sizeof(uint32_t)) && (geteuid() || !fchmod(fd, 0666));
	if (fd >= 0)
		close(fd);
	free(folder);
	text_free(&path);
	return ok;
}

/* What root starts may give up its rights before it records something (su, setpriv, servers). Such processes can
 * create files in a folder in this one. To other users its name is a secret, as they cannot list this one. */
static bool open_to_others(const char *dir)
{
	struct text path = { 0 };
	uint64_t secret[2];
	bool ok;

	if (geteuid())
		return true;
	if (getrandom(secret, sizeof secret, 0) != sizeof secret)
		return false;
	text_printf(&path, "%s/" OPEN "%016llx%016llx", dir, (unsigned long long)secret[0],
		(unsigned long long)secret[1]);
	ok = !mkdir(path.at, 0700) && !chmod(path.at, 01733) && !chmod(dir, 0711);
	text_free(&path);
	return ok;
}

char *records_folder(const char *dir)
{
	DIR *d = opendir(dir);
	struct text path = { 0 };
	struct dirent *entry;

	while (d && !path.n && (entry = readdir(d)))
		if (!strncmp(entry->d_name, OPEN, strlen(OPEN)))
			text_printf(&path, "%s/%s", dir, entry->d_name);
	if (d)
		closedir(d);
	return path.n ? path.at : base_strdup(dir);
}

static char *make_in(const char *parent)
{
	struct text t = { 0 };
	int error;

	text_printf(&t, "%s/consan-XXXXXX", parent);
	if (mkdtemp(t.at) && has_room(t.at) && open_to_others(t.at) && make_lost(t.at))
		return t.at;
	error = errno;
	records_remove(t.at);
	text_free(&t);
	errno = error;
	return NULL;
}

/* The program may change its working directory. */
static char *absolute_dir(char *dir)
{
	char *real = realpath(dir, NULL);

	if (!real)
		return dir;
	free(dir);
	return real;
}

char *records_make_dir(bool plain, struct text *remarks, struct consan_err *e)
{
	const char *tmp = getenv("TMPDIR");
	const char *const parent[] = { tmp && *tmp ? tmp : "/tmp", "/tmp", "/var/tmp", "/dev/shm" };
	int first = 0;
	char *dir;

	for (size_t i = 0; i < ARRAY_SIZE(parent); i++) {
		if (plain && records_odd_path(parent[i]))
			continue;
		dir = make_in(parent[i]);
		dir = dir ? absolute_dir(dir) : NULL;
		if (dir && first)
			text_printf(remarks, "%s: %s: using %s", parent[0], strerror(first), parent[i]);
		if (dir)
			return dir;
		first = first ? first : errno;
	}
	err_set(e, CONSAN_ERR_IO, 0, 0, "cannot create a folder for the results in %s: %s", parent[0],
		strerror(first));
	return NULL;
}

static bool ends_in(const char *name, const char *suffix)
{
	const size_t n = strlen(name), k = strlen(suffix);

	return n >= k && !strcmp(name + n - k, suffix);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Is it a record file, or (type S_IFLNK) a note? Nothing else is read: another user may have created it. */
static bool is_of_type(const char *path, mode_t type)
{
	struct stat st;

	return !lstat(path, &st) && (st.st_mode & S_IFMT) == type;
}

static void list_entry(struct records *r, const char *dir, const char *name)
{
	struct text t = { 0 };

	if (*name == '.')
		return;
	text_printf(&t, "%s/%s", dir, name);
	if (ends_in(name, RECORD) && is_of_type(t.at, S_IFREG))
		vec_push(&r->path, t.at);
	else if (ends_in(name, RESULTS_LOST) && is_of_type(t.at, S_IFLNK))
		vec_push(&r->lost, t.at);
	else
		text_free(&t);
}

static bool list_folder(struct records *r, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		list_entry(r, dir, entry->d_name);
	return d && !closedir(d);
}

static void read_lost(struct records *r, const char *folder)
{
	struct text path = { 0 };
	int fd;

	text_printf(&path, "%s/" FOLDER_LOST_PAGE, folder);
	fd = open(path.at, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || read(fd, &r->nlost, sizeof r->nlost) != sizeof r->nlost)
		r->nlost = 0;
	if (fd >= 0)
		close(fd);
	text_free(&path);
}

bool records_list(struct records *r, const char *dir)
{
	char *folder = records_folder(dir);
	const bool listed = list_folder(r, dir);

	if (strcmp(folder, dir))
		list_folder(r, folder);
	read_lost(r, folder);
	free(folder);
	if (!listed)
		return false;
	if (r->path.n)
		qsort(r->path.at, r->path.n, sizeof *r->path.at, by_name);
	if (r->lost.n)
		qsort(r->lost.at, r->lost.n, sizeof *r->lost.at, by_name);
	return true;
}

void records_lost(const struct records *r, struct text *unseen)
{
	for (size_t i = 0; i < r->lost.n; i++)
		results_lost(unseen, r->lost.at[i]);
	if (r->nlost)
		text_printf(unseen, "what %u process%s found is not recorded, as the program hid or closed the folder of "
			"records\n", r->nlost, r->nlost == 1 ? "" : "es");
}

pid_t records_writer(const struct records *r)
{
	for (size_t i = 0; i < r->path.n; i++) {
		struct flock lock = { .l_type = F_WRLCK };
		int fd = open(r->path.at[i], O_RDONLY | O_CLOEXEC);
		const bool busy = fd >= 0 && !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;

		if (fd >= 0)
			close(fd);
		if (busy)
			return lock.l_pid > 0 ? lock.l_pid : 1;
	}
	return 0;
}

void records_free(struct records *r)
{
	for (size_t i = 0; i < r->path.n; i++)
		free(r->path.at[i]);
	for (size_t i = 0; i < r->lost.n; i++)
		free(r->lost.at[i]);
	vec_free(&r->path);
	vec_free(&r->lost);
}

void records_remove(const char *dir)
{
	static const char *const own[] = { ".progress", ".room", ".lib" };
	char *folder = records_folder(dir);
	struct records r = { 0 };
	struct text t = { 0 };

	records_list(&r, dir);
	for (size_t i = 0; i < r.path.n; i++) {
		t.n = 0;
		text_printf(&t, "%s.live", r.path.at[i]);
		unlink(t.at);
		unlink(r.path.at[i]);
	}
	for (size_t i = 0; i < r.lost.n; i++)
		unlink(r.lost.at[i]);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		t.n = 0;
		text_printf(&t, "%s/%s", dir, own[i]);
		unlink(t.at);
	}
	t.n = 0;
	text_printf(&t, "%s/" FOLDER_LOST_PAGE, folder);
	unlink(t.at);
	if (strcmp(folder, dir))
		rmdir(folder);
	rmdir(dir);
	free(folder);
	text_free(&t);
	records_free(&r);
}

/* ---- the report ---- */

static void remark_lines(struct results_writer *w, enum result_remark_kind kind, const char *lines)
{
	char *copy = base_strdup(lines ? lines : ""), *rest = copy, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			results_remark(w, kind, line);
	free(copy);
}

void records_remark(struct records *r, const char *dir, const char *notes, const char *not_seen)
{
	struct results_writer *w;
	struct text path = { 0 };

	if (!(notes && *notes) && !(not_seen && *not_seen))
		return;
	text_printf(&path, "%s/0" RECORD, dir);
	w = results_create(path.at, NULL);
	remark_lines(w, RESULT_REMARK_note, notes);
	remark_lines(w, RESULT_REMARK_not_seen, not_seen);
	results_close(w);
	vec_push(&r->path, path.at);
}

bool records_report(const struct records *r, const struct options *o, const char *only,
	const char *program, int ended, int *status, struct consan_err *e)
{
	struct symbols *symbols = symbols_open();
	bool ok;

	if (program)
		symbols_folders(symbols, program, report_source_also);
	ok = consan_report(o, (const char *const *)r->path.at, r->path.n, only, ended, symbols_resolve,
		symbols, status, e);
	symbols_close(symbols);
	return ok;
}
