/* python_stack: what the Python package (libconsan/python) reports: the frames of a launch, by a
 * function that writes them, and whether the program uses Gluon. It registers both in the preloaded
 * makers library, where both backends find them by name. */
#include "internal.h"

#include "libconsan/event/event.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 1 << 13, FRAMES = 32 };
typedef size_t write_frames(char *to, size_t n);

static _Thread_local char frames[STACK_BYTES]; /* of the launch in progress; "": none */

/* NULL: no Python program, or its interpreter has ended. */
static write_frames *writer(void)
{
	static write_frames *_Atomic *_Atomic found;

	if (!found)
		found = dlsym(RTLD_DEFAULT, "consan_run_frames");
	return found ? *found : NULL;
}

bool consan_python_has(const char *name)
{
	const _Atomic bool *has;
	char variable[32];

	snprintf(variable, sizeof variable, "consan_run_%s", name);
	has = dlsym(RTLD_DEFAULT, variable);
	return has && *has;
}

bool consan_python_unprepared(void)
{
	int (*initialized)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
	const void *none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
	const char *prepared = getenv("CONSAN_PYTHON");

	return initialized && none && initialized()
		&& (!prepared || strtoull(prepared, NULL, 10) != (uintptr_t)none);
}

bool consan_python_program(void)
{
	static _Atomic bool seen;

	if (writer())
		seen = true;
	return seen;
}

void consan_python_launches(void)
{
	write_frames *write = writer();
	size_t n = write ? write(frames, sizeof frames - 1) : 0;

	frames[n < sizeof frames ? n : 0] = 0;
}

char *consan_python_frames(void)
{
	write_frames *write = writer();
	char text[STACK_BYTES];
	size_t n = write ? write(text, sizeof text - 1) : 0;

	if (!n || n >= sizeof text)
		return NULL;
	text[n] = 0;
	return base_strdup(text);
}

uint32_t consan_python_stack_of(const char *lines)
{
	struct site_loc loc[FRAMES];
	struct site s = { .loc = loc };
	char text[STACK_BYTES], *rest = text, *line;
	unsigned n = 0;

	snprintf(text, sizeof text, "%s", lines);
	while (n < FRAMES && (line = strsep(&rest, "\n")) && *line) {
		const char *file = strsep(&line, "\t"), *number = strsep(&line, "\t");

		if (!number || !line)
			break;
		loc[n] = (struct site_loc){ .file = file,
			.line = (uint32_t)strtoul(number, NULL, 10),
			.function = line };
		if (n)
			loc[n - 1].inlined_at = &loc[n];
		n++;
	}
	return n ? site_intern(&s) : 0;
}

uint32_t consan_launch_stack(void)
{
	const uint32_t python = consan_python_stack_of(frames);

	return python ? python : consan_host_stack(NULL);
}
