/* base: see base.h. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENDLESS_BYTES ((size_t)256 << 20) /* what is read from a pipe or a device, which may have no end */

void base_die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "consan: internal error: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	for (;;) /* not our own _exit(), which runs what is queued: locks may be held */
		syscall(SYS_exit_group, 70);
}

void *base_alloc(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);

	if (!p)
		base_die("out of host memory (%zu bytes requested)", bytes);
	return p;
}

void *base_alloc_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);

	if (p == MAP_FAILED)
		base_die("out of host memory (%zu bytes requested)", bytes);
	return p;
}

void base_free_pages(void *at, size_t bytes)
{
	munmap(at, bytes);
}

void *base_alloc_aligned(size_t align, size_t bytes)
{
	void *p = aligned_alloc(align, (bytes + align - 1) & ~(align - 1));

	if (!p)
		base_die("out of host memory (%zu bytes requested)", bytes);
	return memset(p, 0, bytes);
}

void *base_resize(void *old, size_t bytes)
{
	void *p = realloc(old, bytes ? bytes : 1);

	if (!p)
		base_die("out of host memory (%zu bytes requested)", bytes);
	return p;
}

char *base_strndup(const char *s, size_t n)
{
	char *p = base_alloc(n + 1);

	memcpy(p, s, n);
	return p;
}

char *base_strdup(const char *s)
{
	return base_strndup(s, strlen(s));
}

int base_open(const char *path, int flags, unsigned mode)
{
	return base_above_standard(folder_open(path, flags | O_CLOEXEC, mode));
}

int base_above_standard(int fd)
{
	int high;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return high;
}

/* ---- arena ---- */

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	_Alignas(16) unsigned char at[];
};

void *arena_alloc(struct arena *a, size_t bytes)
{
	struct arena_block *b = a->top;
	void *p;

	bytes = (bytes + 15) & ~(size_t)15;
	if (!b || b->size - b->used < bytes) {
		size_t size = b ? 2 * b->size : 4096;

		if (size > (size_t)1 << 20)
			size = (size_t)1 << 20;
		if (size < bytes)
			size = bytes;
		b = base_alloc(sizeof *b + size);
		b->size = size;
		b->next = a->top;
		a->top = b;
	}
	p = b->at + b->used;
	b->used += bytes;
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *p = arena_alloc(a, n + 1);

	memcpy(p, s, n);
	return p;
}

void arena_free(struct arena *a)
{
	struct arena_block *b = a->top, *next;

	for (; b; b = next) {
		next = b->next;
		free(b);
	}
	a->top = NULL;
}

/* ---- text ---- */

static void text_reserve(struct text *t, size_t more)
{
	size_t cap = t->cap ? t->cap : 128;

	if (t->n + more + 1 <= t->cap)
		return;
	while (cap < t->n + more + 1)
		cap *= 2;
	t->at = base_resize(t->at, cap);
	t->cap = cap;
}

void text_add(struct text *t, const char *s, size_t n)
{
	text_reserve(t, n);
	if (n)
		memcpy(t->at + t->n, s, n);
	t->n += n;
	t->at[t->n] = 0;
}

void text_vprintf(struct text *t, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n > 0) {
		text_reserve(t, (size_t)n);
		vsnprintf(t->at + t->n, (size_t)n + 1, fmt, again);
		t->n += (size_t)n;
	}
	va_end(again);
}

void text_printf(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	text_vprintf(t, fmt, ap);
	va_end(ap);
}

bool text_read(struct text *t, const char *path, struct consan_err *e)
{
	FILE *f = fopen(path, "re");
	char part[1 << 13];
	bool ok = f != NULL;
	struct stat st;
	size_t n, most;

	text_add(t, "", 0);
	most = f && !fstat(fileno(f), &st) && S_ISREG(st.st_mode) ? SIZE_MAX : t->n + ENDLESS_BYTES;
	while (f && t->n < most && (n = fread(part, 1, sizeof part, f)) > 0)
		text_add(t, part, n);
	if (!f || ferror(f))
		ok = err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", path, strerror(errno));
	else if (t->n >= most)
		ok = err_set(e, CONSAN_ERR_IO, 0, 0, "%s: is no file, and has more than %u MiB", path,
			(unsigned)(ENDLESS_BYTES >> 20));
	if (f)
		fclose(f);
	return ok;
}

void text_free(struct text *t)
{
	free(t->at);
	t->at = NULL;
	t->n = t->cap = 0;
}

/* ---- vector ---- */

void vec_grow(void **at, size_t *cap, size_t want, size_t size)
{
	size_t to = *cap ? *cap : 8;

	if (want <= *cap)
		return;
	while (to < want)
		to *= 2;
	*at = base_resize(*at, to * size);
	*cap = to;
}

void vec_grow_zero(void **at, size_t *cap, size_t want, size_t size)
{
	const size_t was = *cap;

	vec_grow(at, cap, want, size);
	memset((char *)*at + was * size, 0, (*cap - was) * size);
}

/* ---- errors ---- */

const char *consan_err_name(int code)
{
	static const char *const name[] = {
		"success",
#define ERR(id, text) text,
#include "libconsan/err.def"
#undef ERR
	};

	return code >= 0 && (size_t)code < ARRAY_SIZE(name) ? name[code] : "?";
}

bool err_set(struct consan_err *e, int code, int line, int col, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->code)
		return false;
	e->code = code;
	e->line = line;
	e->col = col;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	visible_in_place(e->text); /* messages quote the input */
	return false;
}
