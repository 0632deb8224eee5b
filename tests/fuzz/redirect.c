/* redirect: ELF files of a program, in which the static CUDA runtime is searched. The archive in which
 * its code is looked up is the same file. */
#include "fuzz.h"

#include "libconsan/cuda/elf_file.h"
#include "libconsan/cuda/stripped.h"

static void function(void *user, const char *name, uint64_t address, uint64_t size)
{
	uint64_t *sum = user;

	*sum += strlen(name) + address + size;
}

static void read_symbols(const struct elf *f, uint32_t type, uint64_t *sum)
{
	const struct symbols s = elf_symbols(f, elf_section_of_type(f, type));

	for (size_t i = 0; i < s.n; i++)
		*sum += strlen(elf_symbol_name(&s, &s.at[i])) + s.at[i].st_value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct elf f = { .at = data, .size = n };
	uint64_t sum = 0;

	if (n < sizeof(Elf64_Ehdr))
		return 0;
	elf_open(&f);
	elf_section(&f, ".nvFatBinSegment");
	elf_section(&f, ".rodata");
	read_symbols(&f, SHT_SYMTAB, &sum);
	read_symbols(&f, SHT_DYNSYM, &sum);
	for (size_t k = 0; k < 64 && elf_segment(&f, k); k++)
		sum += elf_segment(&f, k)->p_filesz;
	stripped_search(data, n, &f, function, &sum);
	return 0;
}
