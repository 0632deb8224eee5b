/* shell: runs a command for the programs of this folder. */
#ifndef CONSAN_TESTS_GPU_SHELL_H
#define CONSAN_TESTS_GPU_SHELL_H

#include <stdio.h>

static char output[1 << 18];

/* Exit status of the shell; its output in `output`. */
static int shell(const char *command)
{
	FILE *in = popen(command, "r");
	size_t n;

	if (!in)
		return -1;
	n = fread(output, 1, sizeof output - 1, in);
	output[n] = 0;
	return pclose(in) >> 8 & 255;
}

#endif
