/* specimen: reads a file of tests/cases/: its twins, arguments and expected findings. Running
 * is in run.h and tests/gpu/specimens.c, comparing in judge.h. A malformed file ends the
 * process with a message.
 *
 * A specimen is a PTX file with one entry. Comments before the code are
 *   // launch: block=32 grid=1 cluster=1 shared=0 launches=1   the launch (these are the
 *                                        defaults); launches: number of launches on the same
 *                                        memory; programmatic=1: each may start before the
 *                                        previous one has ended; preferred=4: the preferred cluster
 *   // options: strict=1                 options of consan, name=value
 *   // arg: buffer 4096 | buffer 4096 device=1 | multicast 4096 | u32 7 | tensor f16 dim=64,64 box=64,8 swizzle=0 pitch=128 over=0
 *   // arg: texture width=32 height=4 linear=1 | surface width=32 height=4
 *                                        of floats in the buffer before it; not in GPU mode
 *                                        multicast: multicast addresses of all buffers before it; only
 *                                        on the cpu backend
 *   // expect: CS104 @read @copy         an expected finding with these lines
 *   // expect: CS106 warning hint:never_waited @read   and this severity, and this hint
 *                                        (finding/hints.def); both only on the cpu backend
 *   // also: CS102                       a rule that may be reported as well
 *   // groups: 2                         so many groups of findings (finding/group.h); only on the
 *                                        cpu backend
 *   // edit: change clean @wait          a finding names this line to edit: change, before, after
 *                                        (insert there) or move; the word after it is what
 *                                        --verify-fixes shows: clean, part or none. Several lines: any
 * Comments after code mark lines (@read), and name the twin that has the line (racy or fixed;
 * without, both have it). A specimen with `expect` is a pair of twins: the racy one has exactly
 * these rules, the fixed one no finding above a note. A specimen without `expect` is correct
 * code. It must have no findings above a note, as the fixed twins, in all schedules tested. */
#ifndef CONSAN_TESTS_SPECIMEN_H
#define CONSAN_TESTS_SPECIMEN_H

#include "libconsan/tensormap_args.h"
#include "libconsan/texture_args.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPECIMENS "tests/cases/*/*.ptx"
#define MAX_LINES 400
#define MAX_EXPECT 8
#define MAX_MARKS 4
#define MAX_ARGS 8

enum twin { RACY, FIXED, NTWINS };

struct expectation {
	char code[8], severity[8], hint[32]; /* "": any */
	unsigned line[MAX_MARKS], nlines;
};

struct expected_edit {
	char kind[8], verified[8];
	unsigned line;
};

struct specimen {
	const char *path;
	char *text;
	const char *line[MAX_LINES];
	size_t nlines;
	struct expectation expect[MAX_EXPECT];
	size_t nexpect;
	struct expected_edit edit[MAX_MARKS];
	size_t nedits;
	char also[128], options[256];
	unsigned block, grid, cluster, preferred, shared, launches, programmatic;
	unsigned groups;           /* 0: any number */
	const char *arg[MAX_ARGS];
	size_t nargs;
	bool twins;
	bool cpu_only;             /* multicast addresses, textures: GPU mode does not record them */
};

/* The text of a file; the caller free()s it. */
char *read_file(const char *path);
/* The length up to the newline or the end. */
size_t line_length(const char *s);
/* Is `word` one of the words of s[0..n), which are separated by blanks? */
bool has_word(const char *s, size_t n, const char *word);

/* path must outlive s. The caller free()s s->text, into which s->line points. */
void specimen_read(struct specimen *s, const char *path);
/* The PTX of one twin, which the caller free()s. Lines of the other twin are empty, so that line
 * numbers stay the same. */
char *specimen_twin(const struct specimen *s, enum twin twin);

/* Does the line, from 0, belong to one twin only? */
bool specimen_differs(const struct specimen *s, size_t line);

/* Callbacks that create arguments. */
struct specimen_maker {
	void *user;
	/* Allocates device memory with these contents; bytes: a multiple of 4. Returns its address. */
	uint64_t (*buffer)(const struct specimen_maker *make, const uint32_t *words, uint64_t bytes);
	/* The address at which these bytes of all buffers can be accessed together. */
	uint64_t (*multicast)(const struct specimen_maker *make, uint64_t bytes);
	/* The handle of a texture or surface object. */
	uint64_t (*texture)(const struct specimen_maker *make, const struct consan_texture *t);
	void (*map)(void *user, const struct consan_tensormap_args *a, unsigned char *map);
	uint64_t newest;           /* the address of the newest buffer argument */
	unsigned device;           /* that is to have the next buffer; the kernel runs on device 0 */
};
/* Creates the i-th argument of s: an address, a number of at most 8 bytes or a tensor map.
 * value: aligned to 64 bytes. */
void specimen_argument(const struct specimen *s, size_t i, struct specimen_maker *make,
	unsigned char value[CONSAN_TENSORMAP_BYTES]);

#endif
