/* elf_file: see elf_file.h. */
#include "elf_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool elf_within(const struct elf *f, uint64_t at, uint64_t n)
{
	return at <= f->size && n <= f->size - at;
}

void elf_open(struct elf *f)
{
	const elf_header *h = (const void *)f->at;

	f->section = NULL;
	f->sections = 0;
	if (f->size < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG)
			|| h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_shentsize != sizeof(Elf64_Shdr)
			|| !elf_within(f, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr)))
		return;
	f->section = (const void *)(f->at + h->e_shoff);
	f->sections = h->e_shnum;
}

bool elf_map(struct elf *f, const char *path)
{
	struct stat st;
	void *at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		close(fd);
		return false;
	}
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return false;
	*f = (struct elf){ .at = at, .size = (size_t)st.st_size };
	elf_open(f);
	return true;
}

void elf_unmap(struct elf *f)
{
	munmap((void *)f->at, f->size);
}

static bool has_bytes(const struct elf *f, const elf_shdr *s)
{
	return s->sh_type != SHT_NOBITS && elf_within(f, s->sh_offset, s->sh_size);
}

const elf_shdr *elf_section_of_type(const struct elf *f, uint32_t type)
{
	for (size_t i = 0; i < f->sections; i++)
		if (f->section[i].sh_type == type && has_bytes(f, &f->section[i]))
			return &f->section[i];
	return NULL;
}

const elf_shdr *elf_section(const struct elf *f, const char *name)
{
	const elf_header *h = (const void *)f->at;
	const size_t n = strlen(name) + 1;
	const elf_shdr *names;

	if (h->e_shstrndx >= f->sections)
		return NULL;
	names = &f->section[h->e_shstrndx];
	if (!has_bytes(f, names))
		return NULL;
	for (size_t i = 0; i < f->sections; i++) {
		const uint64_t at = f->section[i].sh_name;

		if (at < names->sh_size && names->sh_size - at >= n
				&& !memcmp(f->at + names->sh_offset + at, name, n)
				&& has_bytes(f, &f->section[i]))
			return &f->section[i];
	}
	return NULL;
}

const elf_phdr *elf_segment(const struct elf *f, size_t k)
{
	const elf_header *h = (const void *)f->at;
	const elf_phdr *p;

	if (h->e_phentsize != sizeof *p || !elf_within(f, h->e_phoff, h->e_phnum * sizeof *p))
		return NULL;
	for (p = (const void *)(f->at + h->e_phoff); p < (const elf_phdr *)(f->at + h->e_phoff) + h->e_phnum; p++)
		if (elf_within(f, p->p_offset, p->p_filesz) && !k--)
			return p;
	return NULL;
}

struct symbols elf_symbols(const struct elf *f, const elf_shdr *table)
{
	const elf_shdr *names;

	if (!table || !has_bytes(f, table) || table->sh_link >= f->sections)
		return (struct symbols){ 0 };
	names = &f->section[table->sh_link];
	if (!has_bytes(f, names) || !names->sh_size
			|| f->at[names->sh_offset + names->sh_size - 1])
		return (struct symbols){ 0 };
	return (struct symbols){ (const void *)(f->at + table->sh_offset),
		table->sh_size / sizeof(Elf64_Sym), (const char *)f->at + names->sh_offset, names->sh_size };
}

const char *elf_symbol_name(const struct symbols *s, const elf_sym *symbol)
{
	return symbol->st_name < s->names_size ? s->names + symbol->st_name : "";
}
