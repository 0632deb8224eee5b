/* load: loads modules from files and images that contain PTX. libconsan/cuda/ has its own code
 * for the modules of a running program. */
#include "gpu.h"
#include "internal.h"

#include "libconsan/ptx/ptx.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* The sections in which nvcc stores fatbins: of executables, and of relocatable device code. */
static const char *const fatbin_section[] = { ".nv_fatbin", "__nv_relfatbin" };

static bool is_fatbin_section(const char *names, size_t n, uint32_t at)
{
	for (size_t i = 0; i < ARRAY_SIZE(fatbin_section); i++) {
		size_t length = strlen(fatbin_section[i]) + 1;

		if (at < n && n - at >= length && !memcmp(names + at, fatbin_section[i], length))
			return true;
	}
	return false;
}

static bool section(const uint8_t *elf, size_t n, uint64_t k, Elf64_Shdr *out)
{
	Elf64_Ehdr h;

	memcpy(&h, elf, sizeof h);
	if (k >= h.e_shnum || h.e_shentsize != sizeof *out || h.e_shoff > n
			|| (n - h.e_shoff) / sizeof *out <= k)
		return false;
	memcpy(out, elf + h.e_shoff + k * sizeof *out, sizeof *out);
	return out->sh_type == SHT_NOBITS || (out->sh_offset <= n && out->sh_size <= n - out->sh_offset);
}

struct container {
	const uint8_t *at;
	size_t n;
};

/* A fatbin without PTX does not count as a module, unless there is no other: then the caller reports it. */
struct containers {
	struct container at[1024];
	unsigned n, bare;
};

static void add_containers(struct containers *l, const uint8_t *bytes, size_t n)
{
	size_t cursor = 0, at, size;
	char suffix;

	while (l->n < ARRAY_SIZE(l->at) && fatbin_find(bytes, n, &cursor, &at, &size)) {
		if (fatbin_newest(bytes + at, size, &suffix))
			l->at[l->n++] = (struct container){ bytes + at, size };
		else
			l->bare++;
	}
}

static bool is_elf(const void *bytes, size_t n)
{
	const unsigned char *b = bytes;

	return n >= sizeof(Elf64_Ehdr) && !memcmp(b, ELFMAG, SELFMAG)
		&& b[EI_CLASS] == ELFCLASS64;
}

static void find_containers(struct containers *l, const void *bytes, size_t n)
{
	Elf64_Shdr names, s;
	Elf64_Ehdr h;

	l->n = l->bare = 0;
	if (!is_elf(bytes, n)) {
		add_containers(l, bytes, n);
		return;
	}
	memcpy(&h, bytes, sizeof h);
	if (!section(bytes, n, h.e_shstrndx, &names) || names.sh_type == SHT_NOBITS)
		return;
	for (unsigned k = 0; k < h.e_shnum; k++)
		if (section(bytes, n, k, &s) && s.sh_type != SHT_NOBITS
				&& is_fatbin_section((const char *)bytes + names.sh_offset,
					names.sh_size, s.sh_name))
			add_containers(l, (const uint8_t *)bytes + s.sh_offset, s.sh_size);
}

/* Apart from comments, PTX text begins with .version. */
static bool is_ptx(const void *bytes, size_t n)
{
	return !is_elf(bytes, n) && !(n >= 4 && fatbin_is(bytes, 4))
		&& memmem(bytes, n < 65536 ? n : 65536, ".version", 8);
}

unsigned consan_image_modules(const void *bytes, size_t n)
{
	struct containers *l;
	unsigned modules;

	if (is_ptx(bytes, n))
		return 1;
	l = base_alloc(sizeof *l);
	find_containers(l, bytes, n);
	modules = l->n;
	free(l);
	return modules;
}

static void take_registers(void *user, const char *function, uint32_t n)
{
	struct consan_module *m = user;

	exec_set_registers(m->exec, function, n);
}

void consan_take_registers(struct consan_module *m, const void *image, size_t n)
{
	const struct consan_device *d = consan_device(m->c);

	if (!fatbin_is(image, n))
		cubin_registers(image, n, take_registers, m);
	else
		fatbin_registers(image, n, d->sm, d->suffix, take_registers, m);
}

static char *newest_ptx(const struct container *at, size_t *n, struct consan_err *e)
{
	struct fatbin_image best;
	struct text has = { 0 };
	char suffix = 0, *ptx = NULL;
	const unsigned sm = fatbin_newest(at->at, at->n, &suffix);

	if (fatbin_choose(at->at, at->n, sm, suffix, true, &best, &has, e))
		ptx = fatbin_unpack(&best, n, e);
	text_free(&has);
	return ptx;
}

char *session_image_ptx(const void *bytes, size_t n, unsigned index, size_t *size, struct consan_err *e)
{
	struct containers *l;
	char *ptx = NULL;

	if (is_ptx(bytes, n)) {
		*size = n;
		ptx = base_alloc(n + 1);
		return memcpy(ptx, bytes, n);
	}
	l = base_alloc(sizeof *l);
	find_containers(l, bytes, n);
	if (index < l->n)
		ptx = newest_ptx(&l->at[index], size, e);
	free(l);
	return ptx;
}

/* NULL: there is none, or more than one. */
static char *likely_ptx(const struct container *of, size_t *n)
{
	struct fatbin_image at, only = { 0 };
	struct consan_err e = { 0 };
	unsigned found = 0;
	size_t cursor = 0;

	while (fatbin_next(of->at, of->n, &cursor, &at, &e))
		if (at.kind == FATBIN_PTX && at.suffix == 'a') {
			only = at;
			found++;
		}
	return found == 1 ? fatbin_unpack(&only, n, &e) : NULL;
}

void gpu_each_likely_ptx(const void *bytes, size_t n, bool (*each)(void *user, char *ptx, size_t n),
	void *user)
{
	struct containers *l = base_alloc(sizeof *l);
	bool more = true;
	size_t size;

	find_containers(l, bytes, n);
	for (unsigned k = 0; k < l->n && more; k++) {
		char *ptx = likely_ptx(&l->at[k], &size);

		more = !ptx || each(user, ptx, size);
	}
	free(l);
}

static struct consan_module *load_container(struct consan *c, const char *name,
	const struct container *at, struct consan_err *e)
{
	struct fatbin_image best;
	const struct consan_device *d;
	struct consan_module *m = NULL;
	struct text has = { 0 };
	char suffix = 0, *ptx;
	unsigned sm = fatbin_newest(at->at, at->n, &suffix);
	size_t n;

	consan_arch_hint(c, sm, suffix);
	d = consan_device(c);
	if (fatbin_choose(at->at, at->n, d->sm, d->suffix, true, &best, &has, e)) {
		ptx = fatbin_unpack(&best, &n, e);
		m = ptx ? consan_load_ptx(c, name, ptx, n, e) : NULL;
		if (m)
			consan_take_registers(m, at->at, at->n);
		free(ptx);
	} else {
		err_set(e, CONSAN_ERR_NO_PTX, 0, 0, "%s: no PTX for sm_%u%s, it holds %s", name, d->sm,
			fatbin_suffix(d->suffix), has.at ? has.at : "nothing");
	}
	text_free(&has);
	return m;
}

struct consan_module *consan_load_image(struct consan *c, const char *name,
	const void *bytes, size_t n, unsigned index, struct consan_err *e)
{
	struct consan_module *m = NULL;
	struct containers *l;

	if (is_ptx(bytes, n) && !index)
		return consan_load_ptx(c, name, bytes, n, e);
	l = base_alloc(sizeof *l);
	find_containers(l, bytes, n);
	if (index < l->n)
		m = load_container(c, name, &l->at[index], e);
	else if (l->n)
		err_set(e, CONSAN_ERR_NO_PTX, 0, 0,
			"%s: holds %u modules with PTX, number %u was requested",
			name, l->n, index);
	else
		err_set(e, CONSAN_ERR_NO_PTX, 0, 0, "%s: %s", name, l->bare || is_elf(bytes, n)
			? "holds no PTX: build with -gencode=arch=compute_XX,code=compute_XX"
			: "neither PTX text nor a fatbin nor an ELF file");
	free(l);
	return m;
}

struct consan_module *consan_load_file(struct consan *c, const char *path,
	unsigned index, struct consan_err *e)
{
	struct consan_module *m = NULL;
	struct text all = { 0 };

	if (text_read(&all, path, e))
		m = consan_load_image(c, path, all.at ? all.at : "", all.n, index, e);
	text_free(&all);
	return m;
}
