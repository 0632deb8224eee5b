/* library: whose kernels these are (library.def). */
#include "internal.h"

#include "libconsan/event/event.h"

#include <string.h>

static const struct { const char *file, *name; } library[] = {
#define LIBRARY(file, name) { file, name },
#include "library.def"
#undef LIBRARY
};

const char *consan_library(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(library); i++)
		if (*library[i].file == '/' ? strstr(path, library[i].file) != NULL
				: !strncmp(base, library[i].file, strlen(library[i].file)))
			return library[i].name;
	return NULL;
}

const char *consan_calling_library(void)
{
	const struct site_loc *l = site_get(consan_host_stack(NULL))->loc;

	return l ? consan_library(l->file) : NULL;
}

bool consan_ignores_libraries(const struct consan *c)
{
	return c->opt.library_kernels == LIBRARY_KERNELS_IGNORE;
}
