/* library: gives the program our functions of makers.def instead of a library's own.
 *
 * Most programs load these libraries with dlopen() and look the functions up. So dlsym() is
 * replaced, too: a lookup in a library of makers.def finds a function of ours that is bound to this
 * copy of the library. Programs that are linked with a library find our exported functions, which
 * use the first copy that is loaded. */
#include "makers.h"

#include "libconsan/origin/origin.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

enum library {
#define LIBRARY(id, file) LIBRARY_##id,
#include "makers.def"
	LIBRARIES
};

static const char *const file[] = {
#define LIBRARY(id, file) file,
#include "makers.def"
};

enum { COPIES = 4 }; /* of all libraries; functions of further ones are not replaced */

static struct {
	pthread_mutex_t lock;
	struct maker at[COPIES];
	unsigned n;
} copies = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the real functions ---- */

/* Hidden, as the replacement below jumps through it. */
__attribute__((visibility("hidden"))) extern void *(*real_dlsym)(void *handle, const char *name);
void *(*real_dlsym)(void *handle, const char *name);

static void find_dlsym(void)
{
	/* the version of the first 64-bit glibc, which all later ones have as well */
	if (!real_dlsym)
		real_dlsym = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!real_dlsym)
		base_die("dlsym() was not found in the C library");
}

void *maker_call(const struct maker *m, const char *name)
{
	return m && m->handle ? real_dlsym(m->handle, name) : NULL;
}

VISIBLE void consan_remember_ptx(const void *cubin, size_t cubin_bytes, const char *ptx, size_t ptx_bytes)
{
	if (cubin && ptx)
		origin_put(cubin, cubin_bytes, ptx, strnlen(ptx, ptx_bytes));
}

/* Python's function for the frames of a launch, which both backends read (session/python_stack.c). frames:
 * writes the Python frames of the calling thread as lines "file\tline\tfunction\n", innermost first, at
 * most n bytes, and returns their number; 0: the thread runs no Python code. NULL: none. */
VISIBLE consan_frames *_Atomic consan_run_frames;
VISIBLE _Atomic bool consan_run_gluon, consan_run_triton, consan_run_xla;
VISIBLE void consan_run_on_stack(consan_frames *frames)
{
	consan_run_frames = frames;
}

/* ---- copies of the libraries ---- */

static bool is_file(const char *path, enum library l)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, file[l], strlen(file[l]));
}

/* With the lock held. */
static struct maker *known_at(const void *base)
{
	for (unsigned k = 0; k < copies.n; k++)
		if (copies.at[k].base == base)
			return &copies.at[k];
	return NULL;
}

/* The copy that is loaded here, NULL: none, or too many. It is kept open, so that the address
 * stays its own. It is opened without our lock: the dynamic linker has one, too, which constructors
 * that call us hold. */
static const struct maker *copy_at(const void *base, const char *path)
{
	struct maker *m;
	void *handle;

	pthread_mutex_lock(&copies.lock);
	m = known_at(base);
	pthread_mutex_unlock(&copies.lock);
	handle = m ? NULL : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (m || !handle)
		return m;
	pthread_mutex_lock(&copies.lock);
	m = known_at(base);
	if (!m && copies.n < COPIES) {
		m = &copies.at[copies.n++];
		*m = (struct maker){ handle, base };
	}
	pthread_mutex_unlock(&copies.lock);
	return m;
}

struct search { enum library library; bool found; const void *base; char path[4096]; };

static int object(struct dl_phdr_info *info, size_t size, void *user)
{
	struct search *s = user;

	(void)size;
	s->found = is_file(info->dlpi_name, s->library);
	if (s->found) {
		s->base = (const void *)info->dlpi_addr;
		snprintf(s->path, sizeof s->path, "%s", info->dlpi_name);
	}
	return s->found;
}

/* The copy for a program that is linked with the library. */
static const struct maker *linked(enum library l)
{
	struct search s = { .library = l };

	find_dlsym();
	dl_iterate_phdr(object, &s);
	return s.found ? copy_at(s.base, s.path) : NULL;
}

/* ---- our functions: one for each copy, and the exported ones for programs that are linked with
 * the library ---- */

struct replacement { const char *name; enum library library; void *copy[COPIES]; };

#define FOR_COPY(k, name, parameters, ...) \
	static int name##_##k parameters { return on_##name(&copies.at[k], __VA_ARGS__); }
#define CALL(library, name, parameters, ...) \
	FOR_COPY(0, name, parameters, __VA_ARGS__) FOR_COPY(1, name, parameters, __VA_ARGS__) \
	FOR_COPY(2, name, parameters, __VA_ARGS__) FOR_COPY(3, name, parameters, __VA_ARGS__) \
	VISIBLE int name parameters; \
	int name parameters { return on_##name(linked(LIBRARY_##library), __VA_ARGS__); } \
	VERSIONS_##library(name)
/* __name_MAJOR_MINOR; a jump, so that the arguments stay as they are */
#define ALIAS(name, version) \
	__asm__(".text\n.globl __" #name "_" #version "\n.type __" #name "_" #version ", @function\n" \
		"__" #name "_" #version ":\n.cfi_startproc\njmp " #name "@PLT\n.cfi_endproc\n");
#define VERSIONS_OF(name, major) \
	ALIAS(name, major##_0) ALIAS(name, major##_1) ALIAS(name, major##_2) ALIAS(name, major##_3) \
	ALIAS(name, major##_4) ALIAS(name, major##_5) ALIAS(name, major##_6) ALIAS(name, major##_7) \
	ALIAS(name, major##_8) ALIAS(name, major##_9)
#define VERSIONS_NVRTC(name)
#define VERSIONS_NVJITLINK(name) VERSIONS_OF(name, 12) VERSIONS_OF(name, 13)
#define VERSIONS_NVPTXCOMPILER(name) VERSIONS_NVJITLINK(name)
#include "makers.def"

static const struct replacement replacements[] = {
#define CALL(library, name, ...) { #name, LIBRARY_##library, { name##_0, name##_1, name##_2, name##_3 } },
#include "makers.def"
};

/* Is it this name, or this name with a version? */
static bool is_name(const char *name, const char *wanted)
{
	size_t n = strlen(wanted);

	if (!strncmp(name, "__", 2))
		return !strncmp(name + 2, wanted, n) && name[2 + n] == '_'
			&& name[3 + n] >= '0' && name[3 + n] <= '9';
	return !strcmp(name, wanted);
}

/* A function of a library that the CPU backend does (libconsan/cuda/lib_calls.def): programs that are linked with the
 * library find it first, as the CPU backend is preloaded; so must those that look it up. NULL: it is not. */
static void *emulated(void *handle, const char *name)
{
	static const char cpu[] = "/libconsan-cuda.so";
	void *ours;
	Dl_info info;

	if (strncmp(name, "cublas", 6) && strncmp(name, "cufft", 5) && strncmp(name, "curand", 6)
			&& strncmp(name, "cupti", 5) && strncmp(name, "cudnn", 5))
		return NULL;
	ours = real_dlsym(handle, name) ? real_dlsym(RTLD_DEFAULT, name) : NULL;
	if (!ours || !dladdr(ours, &info) || !strstr(info.dli_fname, cpu))
		return NULL;
	return ours;
}

/* The function of ours for dlsym(); NULL: the real one does the rest. */
__attribute__((visibility("hidden"))) void *replacement(void *handle, const char *name);
void *replacement(void *handle, const char *name)
{
	const struct replacement *r = NULL;
	const struct maker *m;
	struct link_map *map;
	Dl_info info;
	void *real;

	find_dlsym();
	if (!name || handle == RTLD_DEFAULT || handle == RTLD_NEXT)
		return NULL;
	if (name[0] == 'c')
		return emulated(handle, name);
	if (strncmp(name, "nv", 2) && strncmp(name, "__nv", 4))
		return NULL;
	for (size_t k = 0; k < ARRAY_SIZE(replacements) && !r; k++)
		if (is_name(name, replacements[k].name))
			r = &replacements[k];
	real = r ? real_dlsym(handle, name) : NULL;
	if (!real || !dladdr1(real, &info, (void **)&map, RTLD_DL_LINKMAP)
			|| !is_file(map->l_name, r->library))
		return NULL;
	m = copy_at((const void *)map->l_addr, map->l_name);
	return m ? r->copy[m - copies.at] : NULL;
}

/* The linker exports it as dlsym(). That depends on its caller if the handle is RTLD_NEXT or
 * RTLD_DEFAULT: so the real one is entered by a jump, with the caller's return address. A handler of a signal may
 * unwind the stack from any place in it. */
__asm__(".text\n.globl makers_dlsym\n.type makers_dlsym, @function\n"
	"makers_dlsym:\n\t.cfi_startproc\n"
	"\tpush %rdi\n\t.cfi_adjust_cfa_offset 8\n\tpush %rsi\n\t.cfi_adjust_cfa_offset 8\n"
	"\tsub $8, %rsp\n\t.cfi_adjust_cfa_offset 8\n"
	"\tcall replacement\n"
	"\tadd $8, %rsp\n\t.cfi_adjust_cfa_offset -8\n\tpop %rsi\n\t.cfi_adjust_cfa_offset -8\n"
	"\tpop %rdi\n\t.cfi_adjust_cfa_offset -8\n"
	"\ttest %rax, %rax\n\tjz 1f\n\tret\n"
	"1:\tjmp *real_dlsym(%rip)\n\t.cfi_endproc\n"
	".size makers_dlsym, . - makers_dlsym\n");
