/* lib_refuse: functions of cuBLAS, cuFFT, cuRAND and CUPTI that are not done on the CPU
 * (lib_calls.def). Their own code would meet handles that are ours; so redirect.c replaces its
 * beginning by a jump to a thunk, which passes on the function's name and the status to return. */
#include "library.h"

#include <string.h>
#include <sys/mman.h>

static const struct { const char *file, *prefix; int status; bool reported; } library[] = {
#define REPLACED(file, prefix, status, reported) { file, prefix, status, reported },
#include "lib_calls.def"
};
static const char *const left[] = {
#define DONE(name) #name,
#define KEPT(name) #name,
#include "lib_calls.def"
};

/* Functions with our names are exported; a row without one does not link. */
#define DONE(name) extern const char done_##name[] __asm__(#name);
#include "lib_calls.def"
static const void *const done[] __attribute__((used)) = {
#define DONE(name) done_##name,
#include "lib_calls.def"
};

bool library_is_replaced(const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t k = 0; k < ARRAY_SIZE(library); k++)
		if (!strncmp(slash ? slash + 1 : path, library[k].file, strlen(library[k].file)))
			return true;
	return false;
}

static bool is_left(const char *name)
{
	for (size_t k = 0; k < ARRAY_SIZE(left); k++) {
		size_t n = strlen(left[k]);

		if (left[k][n - 1] == '*' ? !strncmp(name, left[k], n - 1) : !strcmp(name, left[k]))
			return true;
	}
	return false;
}

/* Programs ask for it before they decide whether to profile. */
__attribute__((visibility("default"))) int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
	if (version)
		*version = DEVICE_CUDA_VERSION * 10;
	return !version; /* CUPTI_ERROR_INVALID_PARAMETER */
}

static int refuse(const char *name, int library_index)
{
	if (library[library_index].reported)
		library_refused(name, "(it has no equivalent on the CPU)");
	return library[library_index].status;
}

/* mov $name, %rdi; mov $index, %esi; mov $refuse, %rax; jmp *%rax */
static void *thunk(const char *name, int index)
{
	enum { BYTES = 32, PAGES = 1 << 16 };
	static uint8_t *at, *end;
	uint8_t *here,
		code[BYTES] = { 0x48, 0xbf, [10] = 0xbe, [15] = 0x48, 0xb8, [25] = 0xff, 0xe0 };
	const void *to = (const void *)refuse;

	if (at == end) {
		at = mmap(NULL, PAGES, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED) {
			at = end = NULL;
			return NULL;
		}
		end = at + PAGES;
	}
	name = base_strdup(name);
	memcpy(code + 2, &name, sizeof name);
	memcpy(code + 11, &index, sizeof index);
	memcpy(code + 17, &to, sizeof to);
	here = memcpy(at, code, sizeof code);
	at += BYTES;
	return here;
}

void *library_instead(const char *name)
{
	for (size_t k = 0; k < ARRAY_SIZE(library); k++)
		if (!strncmp(name, library[k].prefix, strlen(library[k].prefix)))
			return is_left(name) ? NULL : thunk(name, (int)k);
	return NULL;
}
