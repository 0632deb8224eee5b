/* origin: see origin.h. A file is one zstd frame with a checksum. */
#include "origin.h"
#include "pairs.h"

#include "libconsan/ptx/ptx.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* The version of the format is in the folder's name, so that versions do not meet. */
#define FOLDER "consan/origin-1"
#define SUFFIX ".ptx.zst"
static const char *const suffix_of[] = { [ORIGIN_CODE] = ".code.zst",
	[ORIGIN_LAUNCHED] = ".launched.zst" };
#define TEMPORARY "new-XXXXXX"
#define PTX_MAX (UINT64_C(1) << 31)
enum { FRAME_HEAD = 18, CHECKSUM = 4 }; /* bytes; the most of a frame's head */

#define MAY_WRITE "%s: others may write to it (mode %04o), and what it holds is executed; `chmod go-w' makes it usable"
#define NOT_OURS "%s: it is another user's, and what it holds is executed"

/* In a sticky folder others can add files, which are not read, but replace none of ours. Who can write to
 * the folder above can put another folder there, which is theirs. */
bool origin_trusts(const char *dir, struct consan_err *e)
{
	struct stat st;

	if (stat(dir, &st))
		return err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", dir, strerror(errno));
	if (st.st_uid && st.st_uid != geteuid())
		return err_set(e, CONSAN_ERR_IO, 0, 0, NOT_OURS, dir);
	if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
		return err_set(e, CONSAN_ERR_IO, 0, 0, MAY_WRITE, dir, st.st_mode & 07777);
	return true;
}

/* NULL: no store, or one that is not used */
static const char *folder(void)
{
	const char *dir = base_environ(ORIGIN_ENV);

	return dir && *dir && origin_trusts(dir, NULL) ? dir : NULL;
}

/* The path of a cubin's entry; NULL: no store, or no cubin. */
static char *entry_path(const void *cubin, size_t most)
{
	const char *dir = folder();
	size_t n = dir ? cubin_size(cubin, most) : 0;
	struct text path = { 0 };
	char name[SHA256_HEX];

	if (!n)
		return NULL;
	sha256_hex(cubin, n, name);
	text_printf(&path, "%s/%s" SUFFIX, dir, name);
	return path.at;
}

/* ---- writing ---- */

static bool write_all(int fd, const char *p, size_t n)
{
	for (ssize_t done; n; p += done, n -= (size_t)done) {
		done = write(fd, p, n);
		if (done < 0 && errno == EINTR)
			done = 0;
		if (done < 0)
			return false;
	}
	return true;
}

static void write_entry(const char *path, const char *packed, size_t n)
{
	struct text temporary = { 0 };
	struct size_limit held;
	bool good;
	int fd;

	text_printf(&temporary, "%.*s/" TEMPORARY, (int)(strrchr(path, '/') - path), path);
	fd = mkostemp(temporary.at, O_CLOEXEC);
	if (fd >= 0) {
		size_limit_begin(&held);
		good = write_all(fd, packed, n);
		size_limit_end(&held);
		if (close(fd) || !good || rename(temporary.at, path))
			unlink(temporary.at);
	}
	text_free(&temporary);
}

static void put(const char *path, const void *data, size_t n)
{
	char *packed;
	ZSTD_CCtx *z = path ? ZSTD_createCCtx() : NULL;
	size_t room, done;

	if (z && n && n < PTX_MAX) {
		room = ZSTD_compressBound(n);
		packed = base_alloc(room);
		ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
		done = ZSTD_compress2(z, packed, room, data, n);
		if (!ZSTD_isError(done))
			write_entry(path, packed, done);
		free(packed);
	}
	ZSTD_freeCCtx(z);
}

void origin_put(const void *cubin, size_t most, const char *ptx, size_t n)
{
	char *path = entry_path(cubin, most);

	put(path, ptx, n);
	free(path);
}

/* NULL: no store */
static char *named_path(const void *name, size_t n, enum origin_kind kind)
{
	const char *dir = folder();
	char hash[SHA256_HEX];
	struct text path = { 0 };

	if (!dir)
		return NULL;
	sha256_hex(name, n, hash);
	text_printf(&path, "%s/%s%s", dir, hash, suffix_of[kind]);
	return path.at;
}

void origin_put_named(const void *name, size_t nname, enum origin_kind kind, const void *data,
	size_t n)
{
	char *path = named_path(name, nname, kind);

	put(path, data, n);
	free(path);
}

/* ---- reading ---- */

static char *unpack(const struct text *packed, size_t *n)
{
	unsigned long long size = ZSTD_getFrameContentSize(packed->at, packed->n);
	char *ptx;

	if (size >= PTX_MAX) /* the values for errors are greater */
		return NULL;
	ptx = malloc(size + 1);
	if (!ptx || ZSTD_decompress(ptx, size, packed->at, packed->n) != size) {
		free(ptx);
		return NULL;
	}
	ptx[size] = 0;
	*n = size;
	return ptx;
}

/* A file that others put there, or can change, is not read, as what it holds is executed in the program's
 * name; nor is one that could block. */
static bool trusted(int fd)
{
	struct stat is;

	return !fstat(fd, &is) && S_ISREG(is.st_mode) && (is.st_uid == geteuid() || !is.st_uid)
		&& !(is.st_mode & (S_IWGRP | S_IWOTH));
}

/* A file that is longer than what we write for its contents is damaged, and could be of any length. */
static bool fits(int fd)
{
	char head[FRAME_HEAD];
	const ssize_t n = pread(fd, head, sizeof head, 0);
	const unsigned long long size = n > 0 ? ZSTD_getFrameContentSize(head, (size_t)n) : PTX_MAX;
	struct stat is;

	return size < PTX_MAX && !fstat(fd, &is) && (uint64_t)is.st_size <= ZSTD_compressBound(size) + CHECKSUM;
}

static bool read_entry(const char *path, struct text *packed)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	char part[1 << 13];
	ssize_t n = -1;

	if (fd < 0)
		return false;
	if (trusted(fd) && fits(fd))
		while ((n = read(fd, part, sizeof part)) > 0 || (n < 0 && errno == EINTR))
			text_add(packed, part, n > 0 ? (size_t)n : 0);
	if (!n)
		futimens(fd, NULL); /* origin_trim() keeps what is used */
	close(fd);
	return !n && packed->n;
}

/* The data of an entry, which is then used most recently. */
static char *get(const char *path, size_t *n)
{
	struct text packed = { 0 };
	char *data = path && read_entry(path, &packed) ? unpack(&packed, n) : NULL;

	text_free(&packed);
	return data;
}

void *origin_get_named(const void *name, size_t nname, enum origin_kind kind, size_t *n)
{
	char *path = named_path(name, nname, kind), *data = get(path, n);

	free(path);
	return data;
}

char *origin_get(const void *cubin, size_t most, size_t *n)
{
	char *path = entry_path(cubin, most), *ptx = get(path, n);

	if (ptx)
		*n = strlen(ptx);
	if (path && !ptx) {
		ptx = pairs_find(cubin, cubin_size(cubin, most), n);
		if (ptx)
			origin_put(cubin, most, ptx, *n);
	}
	free(path);
	return ptx;
}

char *origin_find(const void *image, size_t most, unsigned sm, char suffix, size_t *n)
{
	struct fatbin_image at;
	struct consan_err e = { 0 };
	char *elf, *ptx = NULL;
	size_t cursor = 0, length;

	if (!folder())
		return NULL;
	if (!fatbin_is(image, most))
		return origin_get(image, most, n);
	while (!ptx && fatbin_next(image, most, &cursor, &at, &e)) {
		if (!fatbin_runs(&at, sm, suffix) || !(elf = fatbin_unpack(&at, &length, &e)))
			continue;
		ptx = origin_get(elf, at.unpacked, n);
		free(elf);
	}
	return ptx;
}

/* ---- the folder ---- */

char *origin_default_dir(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct text dir = { 0 };

	/* a relative $XDG_CACHE_HOME is invalid and ignored (XDG Base Directory Specification) */
	if (cache && *cache == '/')
		text_printf(&dir, "%s/" FOLDER, cache);
	else if (home && *home == '/')
		text_printf(&dir, "%s/.cache/" FOLDER, home);
	return dir.at;
}

bool origin_make_dir(const char *dir, struct consan_err *e)
{
	char *path = base_strdup(dir);
	int error = 0;

	for (char *p = path + 1; !error; p++) {
		const char here = *p;

		if (here && here != '/')
			continue;
		*p = 0;
		if (mkdir(path, 0700) && errno != EEXIST)
			error = errno;
		*p = here;
		if (!here)
			break;
	}
	if (!error && access(dir, W_OK | X_OK))
		error = errno;
	free(path);
	return !error || err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", dir, strerror(error));
}

struct entry { char *path; uint64_t bytes; struct timespec used; };

static int by_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool is_entry(const char *name)
{
	size_t n = strlen(name);
	const char *suffix = n > SHA256_HEX - 1 ? name + SHA256_HEX - 1 : "";
	bool yes = !strcmp(suffix, SUFFIX);

	for (size_t k = 0; k < ARRAY_SIZE(suffix_of); k++)
		yes |= !strcmp(suffix, suffix_of[k]);
	return yes || (n == strlen(TEMPORARY) && !strncmp(name, TEMPORARY, strlen("new-")));
}

void origin_trim(const char *dir, uint64_t most)
{
	VEC(struct entry) entry = { 0 };
	DIR *d = opendir(dir);
	struct dirent *at;
	struct stat st;
	uint64_t bytes = 0;

	while (d && (at = readdir(d))) {
		struct text path = { 0 };

		if (!is_entry(at->d_name))
			continue;
		text_printf(&path, "%s/%s", dir, at->d_name);
		/* what is too long by itself, as a file that has grown, is not to drive out the others */
		if (lstat(path.at, &st) || ((uint64_t)st.st_size > most && !unlink(path.at))) {
			text_free(&path);
			continue;
		}
		vec_push(&entry, ((struct entry){ path.at, (uint64_t)st.st_size, st.st_mtim }));
		bytes += (uint64_t)st.st_size;
	}
	if (d)
		closedir(d);
	if (entry.n)
		qsort(entry.at, entry.n, sizeof *entry.at, by_use);
	for (size_t i = 0; i < entry.n; i++) {
		if (bytes > most || !most) {
			unlink(entry.at[i].path);
			bytes -= entry.at[i].bytes;
		}
		free(entry.at[i].path);
	}
	vec_free(&entry);
	if (!most)
		rmdir(dir);
}
