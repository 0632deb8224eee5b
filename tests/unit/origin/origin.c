/* Tests of origin: entries are found by content, survive only whole, and the oldest go first. */
#include "tests/common/limits.h"
#include "tests/common/shell.h"
#include "libconsan/origin/origin.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/origin-test-XXXXXX";

static void begin(void)
{
	cr_assert(mkdtemp(dir));
	setenv(ORIGIN_ENV, dir, 1);
}

static void end(void)
{
	shell("rm -rf %s", dir);
}

/* A cubin of one section of n bytes, which are all `fill`. */
struct cubin { Elf64_Ehdr h; Elf64_Shdr section; char code[256]; };

static struct cubin cubin(char fill, size_t n)
{
	struct cubin c = { .h = { .e_machine = EM_CUDA, .e_shoff = sizeof(Elf64_Ehdr), .e_shnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr) },
		.section = { .sh_type = SHT_PROGBITS, .sh_offset = offsetof(struct cubin, code), .sh_size = n } };

	memcpy(c.h.e_ident, ELFMAG, SELFMAG);
	c.h.e_ident[EI_CLASS] = ELFCLASS64;
	memset(c.code, fill, sizeof c.code);
	return c;
}

static void put(const struct cubin *c, const char *ptx)
{
	origin_put(c, sizeof *c, ptx, strlen(ptx));
}

/* Asserts what the store has for the cubin; NULL: nothing. */
static void expect(const struct cubin *c, const char *ptx)
{
	size_t n = 0;
	char *is = origin_get(c, sizeof *c, &n);

	cr_assert_eq(is == NULL, ptx == NULL);
	cr_assert(!ptx || (!strcmp(is, ptx) && n == strlen(ptx)), "%s", is);
	free(is);
}

Test(origin, found_by_content, .init = begin, .fini = end)
{
	struct cubin a = cubin('a', 100), b = cubin('b', 100), longer = cubin('a', 101);

	put(&a, ".version 8.0\n");
	put(&b, ".version 8.1\n");
	expect(&a, ".version 8.0\n");
	expect(&b, ".version 8.1\n");
	expect(&longer, NULL);
	a.code[100] = 'x'; /* after the end of the cubin */
	expect(&a, ".version 8.0\n");
	put(&a, ".version 8.2\n"); /* the last one counts */
	expect(&a, ".version 8.2\n");
	a.code[99] = 'x';
	expect(&a, NULL);
}

Test(origin, no_cubin, .init = begin, .fini = end)
{
	struct cubin host = cubin('a', 100), cut = cubin('a', 1000);

	host.h.e_machine = EM_X86_64;
	put(&host, ".version 8.0\n");
	expect(&host, NULL);
	put(&cut, ".version 8.0\n");
	expect(&cut, NULL);
	cr_assert_eq(shell("ls %s | grep .", dir), 1, "%s", output);
}

Test(origin, no_store, .init = begin, .fini = end)
{
	struct cubin a = cubin('a', 100);

	put(&a, ".version 8.0\n");
	setenv(ORIGIN_ENV, "", 1);
	expect(&a, NULL);
	put(&a, ".version 8.0\n");
}

/* An entry that is not what was written is none. */
Test(origin, damaged, .init = begin, .fini = end)
{
	struct cubin a = cubin('a', 100);

	put(&a, ".version 8.0 // .version 8.0 // .version 8.0 // a text\n");
	cr_assert_eq(shell("for f in %s/*; do printf x | dd of=$f bs=1 seek=20 conv=notrunc 2>&1; done", dir), 0);
	expect(&a, NULL);
	cr_assert_eq(shell("for f in %s/*; do : >$f; done", dir), 0);
	expect(&a, NULL);
}

Test(origin, trim, .init = begin, .fini = end)
{
	struct cubin of[3] = { cubin('a', 100), cubin('b', 100), cubin('c', 100) };
	struct stat st;
	char path[200];

	for (size_t k = 0; k < 3; k++)
		put(&of[k], ".version 8.0\n");
	cr_assert_eq(shell("cd %s && touch other && touch -d @1000 *", dir), 0);
	expect(&of[1], ".version 8.0\n"); /* it is used now */
	cr_assert_eq(shell("cd %s && ls *.zst | head -1", dir), 0);
	snprintf(path, sizeof path, "%s/%.*s", dir, (int)strcspn(output, "\n"), output);
	cr_assert_eq(stat(path, &st), 0);
	origin_trim(dir, 3 * (uint64_t)st.st_size);
	expect(&of[0], ".version 8.0\n");
	shell("touch -d @1000 %s/*", dir);
	expect(&of[1], ".version 8.0\n");
	origin_trim(dir, (uint64_t)st.st_size);
	expect(&of[0], NULL);
	expect(&of[1], ".version 8.0\n");
	expect(&of[2], NULL);
	/* one that has grown does not drive out the others; of a link, its own size counts */
	cr_assert_eq(shell("cd %s && truncate -s 1T $(printf %%064d 1).ptx.zst && truncate -s 1T other && "
		"ln -s other $(printf %%064d 2).ptx.zst && touch -d @1000 $(ls *.ptx.zst | grep -v ^0)", dir), 0, "%s", output);
	origin_trim(dir, (uint64_t)st.st_size + strlen("other"));
	cr_assert_eq(shell("cd %s && ls -d *.zst | wc -l", dir), 0);
	cr_assert_str_eq(output, "2\n", "%s", output);
	expect(&of[1], ".version 8.0\n");
	origin_trim(dir, 0);
	expect(&of[1], NULL);
	cr_assert_eq(shell("ls %s", dir), 0);
	cr_assert_str_eq(output, "other\n", "%s", output);
}

/* A compiler's own folder, with NAME.cubin and NAME.ptx. */
Test(origin, pairs, .init = begin, .fini = end)
{
	struct cubin a = cubin('a', 100), b = cubin('b', 100);
	char path[200];
	FILE *f;

	setenv("TRITON_CACHE_DIR", dir, 1);
	snprintf(path, sizeof path, "%s/x.cubin", dir);
	f = fopen(path, "wb");
	cr_assert(f && fwrite(&a, sizeof a, 1, f) == 1 && !fclose(f));
	expect(&a, NULL);
	cr_assert_eq(shell("cd %s && mkdir -p 1/2 && mv x.cubin 1/2 && printf '.version 8.3\n' >1/2/x.ptx", dir), 0);
	expect(&b, NULL);
	/* of a file that has grown, no more is read than the cubin has; nor is text without end */
	cr_assert_eq(shell("cd %s/1/2 && truncate -s 1T x.cubin && cp x.ptx y && truncate -s 1T x.ptx", dir), 0);
	expect(&a, NULL);
	cr_assert_eq(shell("cd %s/1/2 && mv y x.ptx", dir), 0);
	expect(&a, ".version 8.3\n");
	cr_assert_eq(shell("rm -r %s/1", dir), 0);
	expect(&a, ".version 8.3\n"); /* remembered */
}

Test(origin, folders)
{
	struct consan_err e = { 0 };
	char *path;

	setenv("HOME", "/home/x", 1);
	setenv("XDG_CACHE_HOME", "relative", 1);
	path = origin_default_dir();
	cr_assert_str_eq(path, "/home/x/.cache/consan/origin-1");
	free(path);
	setenv("XDG_CACHE_HOME", "/c", 1);
	path = origin_default_dir();
	cr_assert_str_eq(path, "/c/consan/origin-1");
	free(path);
	cr_assert(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	cr_assert(origin_make_dir("a/b/c", &e));
	cr_assert_eq(shell("stat -c %%a a a/b a/b/c | tr -d '\\n'"), 0);
	cr_assert_str_eq(output, "700700700", "%s", output);
	cr_assert_not(origin_make_dir("/proc/none/a", &e));
	cr_assert_eq(e.code, CONSAN_ERR_IO);
	end();
}

/* What others put into the folder is not read, and nothing blocks: a pipe, a link, a file that is another
 * user's or that others can write, a part of a file, more than a file. */
Test(origin, hostile, .init = begin, .fini = end, .timeout = TEST_LIMIT)
{
	static const char *const act[] = { "rm $f; mkfifo $f", "mv $f x; ln -s x $f", "truncate -s 5 $f",
		"truncate -s -1 $f", "truncate -s +1T $f", ": >$f", "cp $f x; cat x >>$f", "rm $f; mkdir $f",
		"chmod g+w $f", "chmod o+w $f", "chown 65534 $f" };
	const char code[] = "\177ELF\0code";
	size_t n = 0;

	for (size_t k = 0; k < ARRAY_SIZE(act) - (getuid() != 0); k++) {
		origin_put_named("text", 4, ORIGIN_CODE, code, sizeof code);
		cr_assert_eq(shell("cd %s && f=$(echo *.code.zst) && %s", dir, act[k]), 0, "%s", output);
		cr_assert_null(origin_get_named("text", 4, ORIGIN_CODE, &n), "%s", act[k]);
		shell("cd %s && rm -rf *", dir);
	}
}

/* A folder in which others can replace entries is neither read nor written. */
Test(origin, folder_of_others, .init = begin, .fini = end)
{
	static const struct { const char *act; bool used; } how[] = { { "chmod 700", true }, { "chmod 755", true },
		{ "chmod 777", false }, { "chmod 770", false }, { "chmod 702", false }, { "chmod 1777", true },
		{ "chown 65534", false } };
	struct consan_err e = { 0 };
	char *is;
	size_t n;

	for (size_t k = 0; k < ARRAY_SIZE(how) - (getuid() != 0); k++) {
		shell("chmod 700 %s", dir);
		origin_put_named("text", 4, ORIGIN_CODE, "code", 4);
		cr_assert_eq(shell("%s %s", how[k].act, dir), 0, "%s", output);
		is = origin_get_named("text", 4, ORIGIN_CODE, &n);
		cr_expect_eq(is != NULL, how[k].used, "%s", how[k].act);
		free(is);
		origin_put_named("other", 5, ORIGIN_CODE, "code", 4);
		cr_expect_eq(shell("test $(ls %s | wc -l) = %d", dir, how[k].used ? 2 : 1), 0, "%s", how[k].act);
		cr_expect_eq(origin_trusts(dir, &e), how[k].used);
		cr_expect(how[k].used || e.code == CONSAN_ERR_IO);
		shell("rm -f %s/*", dir);
	}
	cr_assert_not(origin_trusts("/proc/none", &e));
}

/* Two processes write and read the same entry: it is there in full. */
Test(origin, together, .init = begin, .fini = end, .timeout = TEST_LIMIT)
{
	static char text[2][200000];
	const pid_t child = fork();
	size_t n = 0;

	memset(text[0], 'a', sizeof text[0]);
	memset(text[1], 'b', sizeof text[1]);
	for (int k = 0; k < 200; k++) {
		char *is;

		origin_put_named("text", 4, ORIGIN_CODE, text[!child], sizeof text[0]);
		is = origin_get_named("text", 4, ORIGIN_CODE, &n);
		if (!is || n != sizeof text[0] || memcmp(is, text[is[0] - 'a'], n))
			_exit(1);
		free(is);
	}
	if (!child)
		_exit(0);
	cr_assert(waitpid(child, &(int){ 0 }, 0) == child);
	cr_assert_eq(shell("ls %s | wc -l", dir), 0);
	cr_assert_eq(atoi(output), 1, "temporary files are left: %s", output);
}

/* Named entries hold any bytes; kinds do not meet, a damaged one is not there, and they are trimmed
 * like the others. */
Test(origin, named, .init = begin, .fini = end)
{
	const char code[] = "\177ELF\0code";
	size_t n = 0;
	char *is;

	origin_put_named("text", 4, ORIGIN_CODE, code, sizeof code);
	is = origin_get_named("text", 4, ORIGIN_CODE, &n);
	cr_assert(is && n == sizeof code && !memcmp(is, code, n));
	free(is);
	cr_assert_null(origin_get_named("text", 4, ORIGIN_LAUNCHED, &n));
	cr_assert_null(origin_get_named("texts", 5, ORIGIN_CODE, &n));
	cr_assert_eq(shell("for f in %s/*.code.zst; do printf X | dd of=$f bs=1 seek=12 conv=notrunc 2>&1; done", dir), 0);
	cr_assert_null(origin_get_named("text", 4, ORIGIN_CODE, &n));
	origin_put_named("text", 4, ORIGIN_CODE, code, sizeof code);
	origin_trim(dir, 1);
	cr_assert_null(origin_get_named("text", 4, ORIGIN_CODE, &n));
}
