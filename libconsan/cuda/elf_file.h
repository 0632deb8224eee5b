/* elf_file: reads ELF files. Every offset is checked against the size of the file. */
#ifndef CONSAN_CUDA_ELF_FILE_H
#define CONSAN_CUDA_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As they lie in a file: a member of an archive is aligned to 2 bytes, a damaged file to nothing. */
typedef Elf64_Ehdr elf_header __attribute__((aligned(1)));
typedef Elf64_Shdr elf_shdr __attribute__((aligned(1)));
typedef Elf64_Phdr elf_phdr __attribute__((aligned(1)));
typedef Elf64_Sym elf_sym __attribute__((aligned(1)));
typedef Elf64_Rela elf_rela __attribute__((aligned(1)));

struct elf {
	const uint8_t *at;
	size_t size;
	const elf_shdr *section; /* NULL: none, or not an ELF file for 64 bits */
	size_t sections;
};

/* Maps the file, until elf_unmap(). False: it cannot be read. */
bool elf_map(struct elf *f, const char *path);
void elf_unmap(struct elf *f);
/* Sets f->section from f->at and f->size. */
void elf_open(struct elf *f);
bool elf_within(const struct elf *f, uint64_t at, uint64_t n);

/* NULL: none, or it is not within the file. */
const elf_shdr *elf_section_of_type(const struct elf *f, uint32_t type);
const elf_shdr *elf_section(const struct elf *f, const char *name);
/* The k-th program header that is within the file, as are its bytes; NULL: there are only k. */
const elf_phdr *elf_segment(const struct elf *f, size_t k);

struct symbols {
	const elf_sym *at;
	size_t n;
	const char *names;
	uint64_t names_size; /* the last byte is 0 */
};
/* The symbols of a table; none if the table is NULL or malformed. */
struct symbols elf_symbols(const struct elf *f, const elf_shdr *table);
const char *elf_symbol_name(const struct symbols *s, const elf_sym *symbol);

#endif
