/* driver: runs a fuzz target on files, in place of libFuzzer. A crash names its file: it is printed
 * before it is run, and removed from the line after that. */
#include "fuzz.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct consan_err e = { 0 };
		struct text t = { 0 };
		uint8_t *exact;

		if (!text_read(&t, argv[i], &e)) {
			fprintf(stderr, "%s\n", e.text);
			return 1;
		}
		fprintf(stderr, "%s", argv[i]);
		exact = malloc(t.n); /* so that a sanitizer sees reads beyond the end */
		if (t.n)
			memcpy(exact, t.at, t.n);
		LLVMFuzzerTestOneInput(exact, t.n);
		free(exact);
		text_free(&t);
		fprintf(stderr, "\r\033[K");
	}
	printf("%d inputs\n", argc - 1);
	return 0;
}
