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
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	JUMP = 5,    /* bytes at the start of a function: jmp rel32 to its island */
	ISLAND = 16, /* bytes of an island, within reach of rel32: jmp *0(%rip), the address */
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

/* Maps memory within reach of a rel32 jump from each function of the object. */
static uint8_t *island_page(uint64_t near, size_t bytes)
{
	uint64_t step, at;
	void *page;

	for (step = 1; step < 1024; step++) {
		for (int sign = -1; sign <= 1; sign += 2) {
			at = (near & ~UINT64_C(0xfffff)) + (uint64_t)(sign * (int64_t)(step << 20));
			page = mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (page == (void *)at)
				return page;
			if (page != MAP_FAILED)
				munmap(page, bytes);
		}
	}
	return NULL;
}

struct island {
	uint8_t *at;
	size_t used, size;
};

/* ThreadSanitizer has no shadow memory for writes to program text. */
__attribute__((no_sanitize("thread")))
static bool patch(uint8_t *function, void *to, struct island *island)
{
	static const uint8_t jump[6] = { 0xff, 0x25, 0, 0, 0, 0 };
	uintptr_t page = (uintptr_t)function & ~UINT64_C(4095);
	size_t n = (uintptr_t)function + JUMP - page;
	uint8_t *slot = island->at + island->used;
	int64_t distance = slot - (function + JUMP);
	int32_t near = (int32_t)distance;

	if (near != distance || island->used + ISLAND > island->size)
		return false;
	/* stays executable: the dynamic linker itself may run code of this page */
	if (mprotect((void *)page, n, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	memcpy(slot, jump, sizeof jump);
	memcpy(slot + sizeof jump, &to, sizeof to);
	island->used += ISLAND;
	function[0] = 0xe9;
	memcpy(function + 1, &near, sizeof near);
	return !mprotect((void *)page, n, PROT_READ | PROT_EXEC);
}

/* Can a jump be written? Functions are aligned to 16, so that padding follows a short one. */
static bool fits_jump(const uint8_t *function, uint64_t size)
{
	return size >= JUMP || (uintptr_t)function % 16 == 0;
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
	struct island island = { 0 };
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
		if (!to || !fits_jump(function, symbol->st_size))
			continue;
		if (!island.at) {
			island.size = (entry_point_count * ISLAND + 4095) & ~(size_t)4095;
			island.at = island_page((uintptr_t)function, island.size);
			if (!island.at)
				return 0;
		}
		done += patch(function, to, &island);
	}
	if (island.at)
		mprotect(island.at, island.size, PROT_READ | PROT_EXEC);
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
	struct island island = { .size = 4096 };
	uint8_t *hook = (uint8_t *)_r_debug.r_brk;

	if (!hook || !fits_jump(hook, 0))
		return;
	island.at = island_page((uintptr_t)hook, island.size);
	if (!island.at)
		return;
	patch(hook, (void *)on_loading, &island);
	mprotect(island.at, island.size, PROT_READ | PROT_EXEC);
}

__attribute__((constructor)) static void start_redirection(void)
{
	redirect_objects();
	hook_loading();
}
