/* specimen: one file of tests/cases/, read, and run twin by twin. What the findings
 * should be is for the caller to judge. All of it fails the running test, with the
 * path, where the file is not as it should be.
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

#include "../libconsan/door.h"

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

struct stage { /* what a run needs, to be given back after it */
	struct consan *c;
	struct consan_module *module;
	void *buffer[MAX_ARGS];
	size_t nbuffers;
};

/* The whole file, to be freed. */
char *read_file(const char *path);
/* Up to the newline or the end. */
size_t line_length(const char *s);
/* Is `word` a word of s[0..n), as between blanks? */
bool has_word(const char *s, size_t n, const char *word);

/* `path` stays the caller's; s->text is to be freed, s->line points into it. */
void specimen_read(struct specimen *s, const char *path);

/* Loads and launches one twin in g->c, which the caller opened; what it made is
 * given back, with g->c, by stage_close. */
enum consan_status specimen_run(const struct specimen *s, enum twin twin, struct stage *g);
void stage_close(struct stage *g);

#endif
