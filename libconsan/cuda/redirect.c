/* redirect: redirects a statically linked CUDA runtime to this library.
 *
 * nvcc links the runtime statically by default. Its functions are local symbols of the
 * program; the first bytes of each are replaced by a jump to our function. This runs before
 * the constructors of the program (-z initfirst), because these register the kernels.
 * Libraries that the program opens later are handled in the dynamic linker's hook for
 * debuggers, _dl_debug_state(), which is called after they are mapped and before their
 * constructors run. The driver and a shared runtime rarely need this: the dynamic linker
 * finds our symbols first. */
#include "internal.h"
#include "entry_points.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	JUMP = 5,      /* bytes at the start of a function: jmp rel32 to its slot of an island */
	ABSOLUTE = 14, /* bytes of jmp *0(%rip) and the address */
	ISLAND = 16,   /* bytes of a slot, which has such a jump */
};

/* A mapped ELF file. Each offset in it is checked against its size. */
struct elf {
	const uint8_t *at;
	size_t size;
	const Elf64_Shdr *section;
	size_t sections;
};

static bool within(const struct elf *f, uint64_t at, uint64_t n)
{
	return at <= f->size && n <= f->size - at;
}

static bool elf_map(struct elf *f, const char *path)
{
	const Elf64_Ehdr *h;
	struct stat st;
	void *at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (fstat(fd, &st) || st.st_size < (off_t)sizeof *h) {
		close(fd);
		return false;
	}
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return false;
	*f = (struct elf){ .at = at, .size = (size_t)st.st_size };
	h = at;
	if (!memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64
			&& h->e_shentsize == sizeof(Elf64_Shdr)
			&& within(f, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr))) {
		f->section = (const void *)(f->at + h->e_shoff);
		f->sections = h->e_shnum;
	}
	return true;
}

static void elf_unmap(struct elf *f)
{
	munmap((void *)f->at, f->size);
}

static const Elf64_Shdr *section_of_type(const struct elf *f, uint32_t type)
{
	for (size_t i = 0; i < f->sections; i++)
		if (f->section[i].sh_type == type
				&& within(f, f->section[i].sh_offset, f->section[i].sh_size))
			return &f->section[i];
	return NULL;
}

/* Does the object have device code as nvcc embeds it? strip keeps this section. */
static bool has_fatbin(const struct elf *f)
{
	const Elf64_Ehdr *h = (const void *)f->at;
	const Elf64_Shdr *names;

	if (h->e_shstrndx >= f->sections)
		return false;
	names = &f->section[h->e_shstrndx];
	if (!within(f, names->sh_offset, names->sh_size))
		return false;
	for (size_t i = 0; i < f->sections; i++) {
		uint64_t at = f->section[i].sh_name;

		if (at < names->sh_size && names->sh_size - at >= sizeof ".nvFatBinSegment"
				&& !strcmp((const char *)f->at + names->sh_offset + at,
					".nvFatBinSegment"))
			return true;
	}
	return false;
}

struct island {
	uint8_t *at;
	size_t used, size;
};

/* Can the function jump to the island's next slot? */
static bool reaches(const struct island *island, const uint8_t *function)
{
	int64_t distance = island->at + island->used - (function + JUMP);

	return island->at && island->used + ISLAND <= island->size && (int32_t)distance == distance;
}

/* The free address nearest to `near` for a mapping of so many bytes, below it if one is in reach:
 * above the program is its heap, which grows. 0: all within reach is taken. */
static uint64_t free_address(uint64_t near, size_t bytes)
{
	const uint64_t reach = UINT64_C(0x7ff00000), lowest = 1 << 16;
	uint64_t from, to, end = lowest, below = 0, above = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;

	while (maps && getline(&line, &size, maps) > 0) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) != 2)
			continue;
		if (from >= end && from - end >= bytes) {
			if (from <= near && near - (from - bytes) < reach)
				below = from - bytes;
			if (from > near && !above && end + bytes - near < reach)
				above = end;
		}
		end = to;
	}
	if (maps)
		fclose(maps);
	free(line);
	return below ? below : above;
}

/* Maps memory within reach of a rel32 jump from the function. */
static bool new_island(struct island *island, const uint8_t *function, size_t bytes)
{
	uint64_t at;
	void *page;

	/* another thread may take the address first */
	for (unsigned tries = 0; tries < 8; tries++) {
		at = free_address((uintptr_t)function, bytes);
		page = at ? mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) : MAP_FAILED;
		if (at && page == (void *)at) {
			*island = (struct island){ page, 0, bytes };
			return true;
		}
		if (page != MAP_FAILED)
			munmap(page, bytes);
	}
	return false;
}

static void close_island(struct island *island)
{
	if (island->at)
		mprotect(island->at, island->size, PROT_READ | PROT_EXEC);
}

/* Writes jmp *0(%rip) and the address. */
static void write_absolute(uint8_t *at, void *to)
{
	static const uint8_t jump[6] = { 0xff, 0x25, 0, 0, 0, 0 };

	memcpy(at, jump, sizeof jump);
	memcpy(at + sizeof jump, &to, sizeof to);
}

/* Replaces the function's beginning by a jump. island: NULL, no memory is within reach: then `to` is
 * written into the function. ThreadSanitizer has no shadow memory for writes to program text. */
__attribute__((no_sanitize("thread")))
static bool patch(uint8_t *function, void *to, struct island *island)
{
	uintptr_t page = (uintptr_t)function & ~UINT64_C(4095);
	size_t n = (uintptr_t)function + (island ? JUMP : ABSOLUTE) - page;
	uint8_t *slot;
	int32_t near;

	/* stays executable: the dynamic linker itself may run code of this page */
	if (mprotect((void *)page, n, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	if (island) {
		slot = island->at + island->used;
		near = (int32_t)(slot - (function + JUMP));
		write_absolute(slot, to);
		island->used += ISLAND;
		function[0] = 0xe9;
		memcpy(function + 1, &near, sizeof near);
	} else {
		write_absolute(function, to);
	}
	return !mprotect((void *)page, n, PROT_READ | PROT_EXEC);
}

/* Can a jump of n bytes be written? Functions are aligned to 16, so that padding follows a short one. */
static bool fits_jump(const uint8_t *function, uint64_t size, size_t n)
{
	return size >= n || (uintptr_t)function % 16 == 0;
}

static bool is_runtime_name(const char *name)
{
	return !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6);
}

/* The full symbol table, which has the local functions of a static runtime. A shared runtime
 * needs redirection only if the program looks up its functions by dlsym(); these are in the
 * dynamic symbol table. */
static const Elf64_Shdr *symbol_table(const struct elf *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	const Elf64_Shdr *s = section_of_type(f, SHT_SYMTAB);

	if (s || strncmp(slash ? slash + 1 : path, "libcudart.so", 12))
		return s;
	return section_of_type(f, SHT_DYNSYM);
}

struct symbols {
	const Elf64_Sym *at;
	size_t n;
	const char *names;
	uint64_t names_size; /* the last byte is 0 */
};

/* The symbols of a table; none if the table is NULL or malformed. */
static struct symbols symbols_of(const struct elf *f, const Elf64_Shdr *table)
{
	const Elf64_Shdr *names;

	if (!table || table->sh_link >= f->sections)
		return (struct symbols){ 0 };
	names = &f->section[table->sh_link];
	if (!within(f, names->sh_offset, names->sh_size) || !names->sh_size
			|| f->at[names->sh_offset + names->sh_size - 1])
		return (struct symbols){ 0 };
	return (struct symbols){ (const void *)(f->at + table->sh_offset),
		table->sh_size / sizeof(Elf64_Sym), (const char *)f->at + names->sh_offset, names->sh_size };
}

static const char *symbol_name(const struct symbols *s, const Elf64_Sym *symbol)
{
	return symbol->st_name < s->names_size ? s->names + symbol->st_name : "";
}

/* Returns the number of redirected runtime functions. */
static unsigned redirect(const struct elf *f, const char *path, uint64_t base)
{
	const struct symbols symbols = symbols_of(f, symbol_table(f, path));
	const size_t bytes = (entry_point_count * ISLAND + 4095) & ~(size_t)4095;
	struct island island = { 0 };
	bool near, nowhere = false;
	unsigned done = 0;
	uint8_t *function;
	void *to;

	for (size_t i = 0; i < symbols.n; i++) {
		const Elf64_Sym *symbol = symbols.at + i;
		const char *name = symbol_name(&symbols, symbol);

		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_value
				|| !is_runtime_name(name))
			continue;
		function = (uint8_t *)base + symbol->st_value;
		to = entry_point_runtime(name);
		if (!to || !fits_jump(function, symbol->st_size, JUMP))
			continue;
		near = reaches(&island, function);
		if (!near && !nowhere) {
			close_island(&island);
			near = new_island(&island, function, bytes);
			nowhere = !near;
		}
		if (near)
			done += patch(function, to, &island);
		else if (fits_jump(function, symbol->st_size, ABSOLUTE))
			done += patch(function, to, NULL);
	}
	close_island(&island);
	return done;
}

/* Does the object register its kernels through the dynamic linker? The call then reaches us,
 * whichever runtime library the object was linked with. */
static bool has_shared_runtime(const struct elf *f)
{
	const struct symbols symbols = symbols_of(f, section_of_type(f, SHT_DYNSYM));

	for (size_t i = 0; i < symbols.n; i++)
		if (symbols.at[i].st_shndx == SHN_UNDEF
				&& !strcmp(symbol_name(&symbols, symbols.at + i), "__cudaRegisterFatBinary"))
			return true;
	return false;
}

static bool is_us(const struct dl_phdr_info *info)
{
	uint64_t here = (uintptr_t)is_us - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && here - info->dlpi_phdr[i].p_vaddr
				< info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

/* Load addresses of the objects handled so far. */
static VEC(uint64_t) seen;
static unsigned long long unloads;

static bool is_new(const struct dl_phdr_info *info)
{
	if (unloads != info->dlpi_subs) { /* the addresses may be in use again */
		unloads = info->dlpi_subs;
		seen.n = 0;
	}
	for (size_t i = 0; i < seen.n; i++)
		if (seen.at[i] == info->dlpi_addr)
			return false;
	vec_push(&seen, info->dlpi_addr);
	return true;
}

static int object(struct dl_phdr_info *info, size_t size, void *user)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	unsigned *number = user;
	struct elf f;

	/* the first object is the program, which has no name; skip others without one */
	if (++*number > 1 && !info->dlpi_name[0])
		return 0;
	if (!is_new(info) || is_us(info) || !elf_map(&f, path))
		return 0;
	if (!redirect(&f, path, info->dlpi_addr) && has_fatbin(&f) && !has_shared_runtime(&f))
		remark_static_runtime(info->dlpi_name);
	elf_unmap(&f);
	return 0;
}

static void redirect_objects(void)
{
	unsigned number = 0;

	dl_iterate_phdr(object, &number);
}

/* Replaces _dl_debug_state(), which is empty. */
static void on_loading(void)
{
	if (_r_debug.r_state == RT_CONSISTENT)
		redirect_objects();
}

static void hook_loading(void)
{
	struct island island = { 0 };
	uint8_t *hook = (uint8_t *)_r_debug.r_brk;

	if (!hook || !fits_jump(hook, 0, JUMP))
		return;
	patch(hook, (void *)on_loading, new_island(&island, hook, 4096) ? &island : NULL);
	close_island(&island);
}

__attribute__((constructor)) static void start_redirection(void)
{
	redirect_objects();
	hook_loading();
}
