/* redirect: redirects a statically linked CUDA runtime to this library.
 *
 * nvcc links the runtime statically by default. Its functions are local symbols of the program, or
 * have none if it is stripped (stripped.h); the first bytes of each are replaced by a jump to our
 * function. This runs before the constructors of the program (-z initfirst), because these register
 * the kernels. Libraries that the program opens later are handled in the dynamic linker's hook for
 * debuggers, _dl_debug_state(), which is called after they are mapped and before their
 * constructors run. The driver and a shared runtime rarely need this: the dynamic linker
 * finds our symbols first. */
#include "internal.h"
#include "elf_file.h"
#include "entry_points.h"
#include "jump.h"
#include "library.h"
#include "stripped.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Does the object have device code as nvcc embeds it? strip keeps this section. */
static bool has_fatbin(const struct elf *f)
{
	return elf_section(f, ".nvFatBinSegment") != NULL;
}

static bool is_runtime_name(const char *name)
{
	return !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6);
}

/* The full symbol table, which has the local functions of a static runtime. A shared runtime
 * needs redirection only if the program looks up its functions by dlsym(); these are in the
 * dynamic symbol table. */
static const elf_shdr *symbol_table(const struct elf *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	const elf_shdr *s = elf_section_of_type(f, SHT_SYMTAB);

	if (s || strncmp(slash ? slash + 1 : path, "libcudart.so", 12))
		return s;
	return elf_section_of_type(f, SHT_DYNSYM);
}

static bool imports(const struct elf *f, const char *name)
{
	const struct symbols symbols = elf_symbols(f, elf_section_of_type(f, SHT_DYNSYM));

	for (size_t i = 0; i < symbols.n; i++)
		if (symbols.at[i].st_shndx == SHN_UNDEF
				&& !strcmp(elf_symbol_name(&symbols, symbols.at + i), name))
			return true;
	return false;
}

/* Does the object register its kernels through the dynamic linker? The call then reaches us,
 * whichever runtime library the object was linked with. */
static bool has_shared_runtime(const struct elf *f)
{
	return imports(f, "__cudaRegisterFatBinary");
}

/* Can there be a runtime without symbols? In code of kernels, and in what loads the driver, as a runtime
 * does. */
static bool may_have_runtime(const struct elf *f)
{
	const elf_shdr *s = elf_section(f, ".rodata");

	if (has_fatbin(f))
		return !has_shared_runtime(f);
	return s && imports(f, "dlsym")
		&& memmem(f->at + s->sh_offset, s->sh_size, "libcuda.so.1", sizeof "libcuda.so.1");
}

struct redirection { struct jumps jumps; uint64_t base; unsigned done; };

static void redirect_function(void *user, const char *name, uint64_t address, uint64_t size)
{
	void *to = is_runtime_name(name) ? entry_point_runtime(name) : NULL;
	struct redirection *r = user;

	if (to)
		r->done += jump_write(&r->jumps, (uint8_t *)r->base + address, size, to);
}

/* The functions of a library that is replaced: its dynamic symbols. Ours are found before them, so that
 * only those are changed that must not be executed. */
static void replace_library(const struct elf *f, uint64_t base)
{
	const struct symbols symbols = elf_symbols(f, elf_section_of_type(f, SHT_DYNSYM));
	struct jumps jumps = { 0 };
	void *to;

	for (size_t i = 0; i < symbols.n; i++) {
		const Elf64_Sym *s = symbols.at + i;

		if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || !s->st_value)
			continue;
		to = library_instead(elf_symbol_name(&symbols, s));
		if (to)
			jump_write(&jumps, (uint8_t *)base + s->st_value, s->st_size, to);
	}
	jumps_end(&jumps);
}

static void redirect(const struct elf *f, const char *path, uint64_t base)
{
	const struct symbols symbols = elf_symbols(f, symbol_table(f, path));
	struct redirection r = { .base = base };
	char *real;

	for (size_t i = 0; i < symbols.n; i++) {
		const elf_sym *s = symbols.at + i;

		if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_value)
			redirect_function(&r, elf_symbol_name(&symbols, s), s->st_value, s->st_size);
	}
	if (!r.done && may_have_runtime(f)) {
		real = realpath(path, NULL); /* of the program, it is a link in /proc */
		stripped_functions(f, real ? real : path, redirect_function, &r);
		free(real);
	}
	jumps_end(&r.jumps);
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

/* The program's file; where /proc is not mounted, as it was started. */
static const char *program_file(void)
{
	static const char exe[] = "/proc/self/exe";
	const char *started = (const char *)getauxval(AT_EXECFN);

	return access(exe, R_OK) && started ? started : exe;
}

static int object(struct dl_phdr_info *info, size_t size, void *user)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : program_file();
	unsigned *number = user;
	struct elf f;

	/* the first object is the program, which has no name; skip others without one */
	if (++*number > 1 && !info->dlpi_name[0])
		return 0;
	if (!is_new(info) || is_us(info) || !elf_map(&f, path))
		return 0;
	if (library_is_replaced(path))
		replace_library(&f, info->dlpi_addr);
	else
		redirect(&f, path, info->dlpi_addr);
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
	uint8_t *hook = (uint8_t *)_r_debug.r_brk;
	struct jumps jumps = { 0 };

	if (hook)
		jump_write(&jumps, hook, 0, (void *)on_loading);
	jumps_end(&jumps);
}

__attribute__((constructor)) static void start_redirection(void)
{
	redirect_objects();
	hook_loading();
}
