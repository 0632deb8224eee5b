/* specimen: one file of tests/cases/, read: its twins, its arguments, what should be found.
 * Runs nothing (stage.h, gpu/specimen.c) and judges nothing (judge.h). A file that is not as
 * it should be ends the process, with its path.
 *
 * A specimen is one PTX file with one entry. Comments before the code say
 *   // launch: block=32 grid=1 cluster=1 shared=0 launches=1   what is launched (these
 *                                        defaults); launches: how often, on the same memory;
 *                                        programmatic=1: each may begin before the last has ended
 *   // options: strict=1                    consan's options, name=value
 *   // arg: buffer 4096 | u32 7 | tensor f16 dim=64,64 box=64,8 swizzle=0
 *   // expect: CS104 @read @copy            a finding with these lines
 *   // also: CS102                          may be reported, too
 * and comments behind the code mark lines (@read) and say which twin has them
 * (racy, fixed; neither: both have them). A specimen with `expect` is a pair:
 * the racy twin has exactly those rules, the fixed one nothing above a note.
 * A specimen without is correct code that looks wrong: it must be silent, and so
 * must the fixed twins, in other schedules, too. */
#ifndef CONSAN_TESTS_SPECIMEN_H
#define CONSAN_TESTS_SPECIMEN_H

#include "libconsan/tensormap_args.h"

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
	char code[8];
	unsigned line[MAX_MARKS], nlines;
};

struct specimen {
	const char *path;
	char *text;
	const char *line[MAX_LINES];
	size_t nlines;
	struct expectation expect[MAX_EXPECT];
	size_t nexpect;
	char also[128], options[256];
	unsigned block, grid, cluster, shared, launches, programmatic;
	const char *arg[MAX_ARGS];
	size_t nargs;
	bool twins;
};

/* The whole file, to be freed. */
char *read_file(const char *path);
/* Up to the newline or the end. */
size_t line_length(const char *s);
/* Is `word` a word of s[0..n), as between blanks? */
bool has_word(const char *s, size_t n, const char *word);

/* `path` stays the caller's; s->text is to be freed, s->line points into it. */
void specimen_read(struct specimen *s, const char *path);
/* The PTX of one twin, to be freed: lines of the other one are blank, so numbers stay. */
char *specimen_twin(const struct specimen *s, enum twin twin);

/* What arguments are made of, by those who have the memory. */
struct specimen_maker {
	void *user;
	/* New device memory with these contents, whole words: its address */
	uint64_t (*buffer)(void *user, const uint32_t *words, uint64_t bytes);
	void (*map)(void *user, const struct tensormap_args *a, unsigned char *map);
};
/* The i-th argument of s: an address, a number of at most 8 bytes or a tensor
 * map. value: aligned to 64 bytes. */
void specimen_argument(const struct specimen *s, size_t i, const struct specimen_maker *make,
	unsigned char value[TENSORMAP_BYTES]);

#endif
