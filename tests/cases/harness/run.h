/* run: runs a twin of a specimen by libconsan in the process of the test. */
#ifndef CONSAN_TESTS_RUN_H
#define CONSAN_TESTS_RUN_H

#include "libconsan/session/session.h"
#include "specimen.h"

/* Where the buffers lie: the first at `at`, the others after it, each `gap` bytes after the end of
 * the previous one, and aligned to 256 bytes, as cudaMalloc() does. */
struct placement {
	uint64_t at, gap;
};

struct run { /* resources of a run */
	struct consan *c;
	const struct placement *place; /* NULL: where consan_malloc() puts them */
	unsigned char *map;            /* memory of the placement */
	size_t mapped, used;
	struct consan_module *module;
	void *buffer[MAX_ARGS];
	size_t nbuffers;
	uint64_t texture[MAX_ARGS]; /* handles of texture and surface objects */
	size_t ntextures;
	uint64_t multicast;        /* the address; 0: none */
};

/* Loads and launches one twin in g->c, which the caller opened. run_close() frees the
 * resources and closes g->c. */
enum consan_status run_specimen(const struct specimen *s, enum twin twin, struct run *g);
void run_close(struct run *g);

#endif
