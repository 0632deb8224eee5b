/* stripped: see stripped.h. */
#include "stripped.h"

#include "libconsan/base/base.h"

#include <ar.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An archive's section. It stays mapped until the process ends. */
struct runtime {
	char *path;
	struct elf object;
	const elf_shdr *text;    /* NULL: the archive cannot be read */
	bool *linked;              /* a byte each: the linker fills it in */
	size_t needle, needle_n;   /* the longest part that it does not */
};

static VEC(struct runtime *) runtimes;

/* ---- archives ---- */

/* The object in the archive that is mapped as f. */
static bool archive_object(const struct elf *f, struct elf *object)
{
	const struct ar_hdr *h;
	uint64_t at = SARMAG, n;
	char size[sizeof h->ar_size + 1] = "";

	if (f->size < SARMAG || memcmp(f->at, ARMAG, SARMAG))
		return false;
	for (; elf_within(f, at, sizeof *h); at += n + (n & 1)) {
		h = (const void *)(f->at + at);
		memcpy(size, h->ar_size, sizeof h->ar_size); /* no NUL ends it */
		n = strtoul(size, NULL, 10);
		at += sizeof *h;
		if (!elf_within(f, at, n))
			return false;
		*object = (struct elf){ .at = f->at + at, .size = n };
		elf_open(object);
		if (object->section)
			return true;
	}
	return false;
}

/* Bytes before and after the place of a relocation that the linker may change with it: it may use
 * another instruction for an address in the GOT, and for thread-local variables also another call. */
static void linked_around(unsigned type, uint64_t *before, uint64_t *after)
{
	*before = 0;
	*after = type == R_X86_64_64 ? 8 : 4;
	if (type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX || type == R_X86_64_GOTPCREL)
		*before = 3;
	if (type == R_X86_64_TLSGD || type == R_X86_64_TLSLD || type == R_X86_64_GOTTPOFF) {
		*before = 4;
		*after = 12;
	}
}

static void mark_linked(struct runtime *r)
{
	const struct elf *f = &r->object;
	uint64_t before, after, from, to;
	const elf_rela *rela;

	for (size_t i = 0; i < f->sections; i++) {
		const elf_shdr *s = &f->section[i];

		if (s->sh_type != SHT_RELA || s->sh_info != (size_t)(r->text - f->section)
				|| !elf_within(f, s->sh_offset, s->sh_size))
			continue;
		rela = (const void *)(f->at + s->sh_offset);
		for (size_t k = 0; k < s->sh_size / sizeof *rela; k++) {
			linked_around(ELF64_R_TYPE(rela[k].r_info), &before, &after);
			from = rela[k].r_offset < before ? 0 : rela[k].r_offset - before;
			to = rela[k].r_offset + after;
			for (; from < to && from < r->text->sh_size; from++)
				r->linked[from] = true;
		}
	}
}

static void choose_needle(struct runtime *r)
{
	const size_t n = r->text->sh_size;
	size_t end;

	for (size_t from = 0; from < n; from = end + 1) {
		for (end = from; end < n && !r->linked[end]; end++)
			;
		if (end - from > r->needle_n) {
			r->needle = from;
			r->needle_n = end - from;
		}
	}
}

/* The runtime of an archive, if it has one. */
static bool read_archive(struct runtime *r, const struct elf *archive)
{
	if (archive_object(archive, &r->object))
		r->text = elf_section(&r->object, ".text");
	if (!r->text)
		return false;
	r->linked = base_alloc(r->text->sh_size + 1);
	mark_linked(r);
	choose_needle(r);
	return true;
}

static struct runtime *open_runtime(const char *path)
{
	struct runtime *r = base_alloc(sizeof *r);
	struct elf archive;

	r->path = base_strdup(path);
	if (elf_map(&archive, path) && !read_archive(r, &archive))
		elf_unmap(&archive);
	return r;
}

static const struct runtime *runtime_at(const char *path)
{
	for (size_t k = 0; k < runtimes.n; k++)
		if (!strcmp(runtimes.at[k]->path, path))
			return runtimes.at[k];
	vec_push(&runtimes, open_runtime(path));
	return runtimes.at[runtimes.n - 1];
}

/* ---- searching ---- */

/* Does the section begin here? Its bytes are within the segment. */
static bool is_text(const struct runtime *r, const uint8_t *at)
{
	const uint8_t *text = r->object.at + r->text->sh_offset;

	for (size_t k = 0; k < r->text->sh_size; k++)
		if (text[k] != at[k] && !r->linked[k])
			return false;
	return true;
}

/* Where the section is in the file's address space. */
static bool find_text(const struct runtime *r, const struct elf *f, uint64_t *address)
{
	const uint8_t *text, *from, *end, *at;
	const elf_phdr *p;

	if (!r->text || r->needle_n < 16)
		return false;
	text = r->object.at + r->text->sh_offset;
	for (size_t k = 0; (p = elf_segment(f, k)); k++) {
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || p->p_filesz < r->text->sh_size)
			continue;
		from = f->at + p->p_offset + r->needle;
		end = f->at + p->p_offset + p->p_filesz - (r->text->sh_size - r->needle - r->needle_n);
		while ((at = memmem(from, (size_t)(end - from), text + r->needle, r->needle_n))) {
			if (is_text(r, at - r->needle)) {
				*address = p->p_vaddr + (uint64_t)(at - r->needle - (f->at + p->p_offset));
				return true;
			}
			from = at + 1;
		}
	}
	return false;
}

/* ---- where archives are ---- */

#define ARCHIVE "libcudart_static.a"

static void add(glob_t *g, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add(glob_t *g, const char *fmt, ...)
{
	struct text t = { 0 };
	va_list ap;

	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	glob(t.at, g->gl_pathc ? GLOB_APPEND : 0, NULL, g);
	text_free(&t);
}

/* Near the file first: Python packages, and Conda's folders; then toolkits, by the environment and where
 * they are by default. */
static void list_archives(glob_t *g, const char *path)
{
	static const char *const home[] = { "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "VIRTUAL_ENV" };
	const char *slash = path, *dir;

	while ((slash = strchr(slash + 1, '/'))) {
		const int n = (int)(slash - path);

		if (n > 9 && !strncmp(slash - 9, "-packages", 9))
			add(g, "%.*s/nvidia/*/lib/" ARCHIVE, n, path);
		if (n > 3 && !strncmp(slash - 4, "/lib", 4))
			add(g, "%.*s/" ARCHIVE, n, path);
	}
	for (size_t k = 0; k < ARRAY_SIZE(home); k++) {
		dir = getenv(home[k]);
		if (!dir || !*dir)
			continue;
		add(g, "%s/lib*/" ARCHIVE, dir);
		add(g, "%s/targets/*/lib/" ARCHIVE, dir);
		add(g, "%s/lib/python*/site-packages/nvidia/*/lib/" ARCHIVE, dir);
	}
	for (dir = getenv("PATH"); dir && *dir; dir += strspn(dir, ":")) {
		const int n = (int)strcspn(dir, ":");

		if (n > 4 && !strncmp(dir + n - 4, "/bin", 4))
			add(g, "%.*s/lib*/" ARCHIVE, n - 4, dir);
		dir += n;
	}
	add(g, "/usr/local/cuda*/lib64/" ARCHIVE);
	add(g, "/usr/lib/x86_64-linux-gnu/" ARCHIVE);
}

static void each_function(const struct runtime *r, uint64_t address,
	void (*each)(void *user, const char *name, uint64_t address, uint64_t size), void *user)
{
	const struct symbols symbols = elf_symbols(&r->object,
		elf_section_of_type(&r->object, SHT_SYMTAB));

	for (size_t k = 0; k < symbols.n; k++) {
		const elf_sym *s = &symbols.at[k];

		if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx == r->text - r->object.section
				&& s->st_value < r->text->sh_size)
			each(user, elf_symbol_name(&symbols, s), address + s->st_value, s->st_size);
	}
}

bool stripped_functions(const struct elf *f, const char *path,
	void (*each)(void *user, const char *name, uint64_t address, uint64_t size), void *user)
{
	const struct runtime *r = NULL;
	glob_t g = { 0 };
	uint64_t address;

	list_archives(&g, path);
	for (size_t k = 0; k < g.gl_pathc && !r; k++) {
		r = runtime_at(g.gl_pathv[k]);
		if (!find_text(r, f, &address))
			r = NULL;
	}
	globfree(&g);
	if (r)
		each_function(r, address, each, user);
	return r;
}

bool stripped_search(const void *archive, size_t n, const struct elf *f,
	void (*each)(void *user, const char *name, uint64_t address, uint64_t size), void *user)
{
	const struct elf bytes = { .at = archive, .size = n };
	struct runtime r = { 0 };
	uint64_t address;
	bool found = read_archive(&r, &bytes) && find_text(&r, f, &address);

	if (found)
		each_function(&r, address, each, user);
	free(r.linked);
	return found;
}
