/* cubin: see cubin.h. The layout of .nv.info is that which cuobjdump -elf prints: entries of a
 * format, an attribute and 16 bits, which are the value or the size of the value that follows. */
#include "cubin.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin.h"

enum { FORMAT_SIZED = 4, ATTRIBUTE_REGCOUNT = 0x2f };

#define CUBIN_MAX (UINT64_C(1) << 31) /* more than any cubin has */

struct elf { const unsigned char *at; size_t n; };

static uint64_t furthest(uint64_t end, uint64_t at, uint64_t n)
{
	return at > UINT64_MAX - n ? UINT64_MAX : at + n > end ? at + n : end;
}

size_t cubin_size(const void *elf, size_t most)
{
	uint64_t end = sizeof(Elf64_Ehdr);
	Elf64_Ehdr h;
	Elf64_Shdr s;

	if (most < sizeof h)
		return 0;
	if (most > CUBIN_MAX)
		most = CUBIN_MAX;
	memcpy(&h, elf, sizeof h);
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_ident[EI_CLASS] != ELFCLASS64
			|| h.e_machine != EM_CUDA || h.e_shentsize != sizeof s)
		return 0;
	end = furthest(end, h.e_phoff, (uint64_t)h.e_phnum * h.e_phentsize);
	end = furthest(end, h.e_shoff, (uint64_t)h.e_shnum * sizeof s);
	if (end > most)
		return 0;
	for (unsigned k = 0; k < h.e_shnum; k++) {
		memcpy(&s, (const char *)elf + h.e_shoff + k * sizeof s, sizeof s);
		if (s.sh_type != SHT_NOBITS)
			end = furthest(end, s.sh_offset, s.sh_size);
	}
	return end > most ? 0 : end;
}

static bool section(const struct elf *f, uint64_t k, Elf64_Shdr *out)
{
	Elf64_Ehdr h;

	if (f->n < sizeof h)
		return false;
	memcpy(&h, f->at, sizeof h);
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_ident[EI_CLASS] != ELFCLASS64
			|| k >= h.e_shnum || h.e_shentsize != sizeof *out || h.e_shoff > f->n
			|| (f->n - h.e_shoff) / sizeof *out <= k)
		return false;
	memcpy(out, f->at + h.e_shoff + k * sizeof *out, sizeof *out);
	return out->sh_type == SHT_NOBITS
		|| (out->sh_offset <= f->n && out->sh_size <= f->n - out->sh_offset);
}

/* NULL: no such string. */
static const char *string(const struct elf *f, uint64_t table, uint32_t at)
{
	Elf64_Shdr s;
	const char *text;

	if (!section(f, table, &s) || s.sh_type != SHT_STRTAB || at >= s.sh_size)
		return NULL;
	text = (const char *)f->at + s.sh_offset + at;
	return memchr(text, 0, s.sh_size - at) ? text : NULL;
}

static const char *symbol(const struct elf *f, const Elf64_Shdr *symbols, uint32_t k)
{
	Elf64_Sym s;

	if (symbols->sh_size / sizeof s <= k)
		return NULL;
	memcpy(&s, f->at + symbols->sh_offset + k * sizeof s, sizeof s);
	return string(f, symbols->sh_link, s.st_name);
}

void cubin_registers(const void *elf, size_t n,
	void (*each)(void *user, const char *function, uint32_t registers), void *user)
{
	const struct elf f = { elf, n };
	Elf64_Shdr s, symbols = { 0 }, info = { 0 };
	const unsigned char *p, *end;
	Elf64_Ehdr h;

	if (!section(&f, 0, &s))
		return;
	memcpy(&h, elf, sizeof h);
	for (uint64_t k = 0; section(&f, k, &s); k++) {
		const char *name = string(&f, h.e_shstrndx, s.sh_name);

		if (s.sh_type == SHT_SYMTAB)
			symbols = s;
		else if (s.sh_type != SHT_NOBITS && name && !strcmp(name, ".nv.info"))
			info = s;
	}
	p = f.at + info.sh_offset;
	end = p + info.sh_size;
	while (end - p >= 4) {
		const unsigned attribute = p[1], bytes = p[0] == FORMAT_SIZED ? p[2] | p[3] << 8u : 0;
		uint32_t value[2];
		const char *name;

		p += 4;
		if (bytes > (size_t)(end - p))
			return;
		if (attribute == ATTRIBUTE_REGCOUNT && bytes == sizeof value) {
			memcpy(value, p, sizeof value);
			name = symbol(&f, &symbols, value[0]);
			if (name && value[1] && value[1] <= 255)
				each(user, name, value[1]);
		}
		p += bytes;
	}
}

void fatbin_registers(const void *bytes, size_t n, unsigned device_sm, char device_suffix,
	void (*each)(void *user, const char *function, uint32_t registers), void *user)
{
	struct fatbin_image at, best = { 0 };
	struct consan_err e = { 0 };
	size_t cursor = 0, length;
	char *elf;

	while (fatbin_next(bytes, n, &cursor, &at, &e))
		if (fatbin_runs(&at, device_sm, device_suffix)
				&& fatbin_rank(at.sm, at.suffix, device_sm, device_suffix)
				> fatbin_rank(best.sm, best.suffix, device_sm, device_suffix))
			best = at;
	if (!best.at)
		return;
	elf = fatbin_unpack(&best, &length, &e);
	if (elf)
		cubin_registers(elf, best.unpacked, each, user);
	free(elf);
}
