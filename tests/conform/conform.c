/* conform [--seed=N] [--count=M] [--items=I] [--class=NAME] [--show=K] [--dump=FOLDER] [--list]: runs
 * programs of M items for each class, I in a kernel, on the executor and compares every result with
 * the reference. conform_gpu, the same with a GPU, for which the driver assembles at --level=0 to 4:
 * compares the executor with the GPU bit by bit. Exit status: 0; 1, a result differs; 2, it could not
 * run. */
#include "conform.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
	uint64_t seed;
	unsigned count, items, show, level;
	const char *class, *dump;
	bool list, gpu;
};

static bool parse(struct options *o, int argc, char **argv)
{
	for (int k = 1; k < argc; k++) {
		const char *a = argv[k];
		if (!strncmp(a, "--seed=", 7))
			o->seed = strtoull(a + 7, NULL, 0);
		else if (!strncmp(a, "--count=", 8))
			o->count = (unsigned)strtoul(a + 8, NULL, 0);
		else if (!strncmp(a, "--items=", 8))
			o->items = (unsigned)strtoul(a + 8, NULL, 0);
		else if (!strncmp(a, "--level=", 8))
			o->level = (unsigned)strtoul(a + 8, NULL, 0);
		else if (!strncmp(a, "--show=", 7))
			o->show = (unsigned)strtoul(a + 7, NULL, 0);
		else if (!strncmp(a, "--class=", 8))
			o->class = a + 8;
		else if (!strncmp(a, "--dump=", 7))
			o->dump = a + 7;
		else if (!strcmp(a, "--list"))
			o->list = true;
		else
			return false;
	}
	return o->items && o->level <= GPU_LEVEL_MOST;
}

static void dump(const struct options *o, const struct program *p, unsigned part)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s-%u.ptx", o->dump, p->class->name, part);
	f = fopen(path, "w");
	if (!f || fwrite(p->ptx.at, 1, p->ptx.n, f) != p->ptx.n)
		base_die("conform: cannot write %s", path);
	fclose(f);
}

static void add(struct tally *t, struct tally x)
{
	t->compared += x.compared;
	t->wrong += x.wrong;
	t->undefined += x.undefined;
	t->known += x.known;
}

/* One program of a class. False: it could not run. */
static bool run(const struct options *o, const struct program *p, struct tally *ref,
	struct tally *gpu)
{
	unsigned char *cpu_out = base_alloc_aligned(1024, p->out_bytes);
	unsigned char *gpu_out = base_alloc_aligned(1024, p->out_bytes);
	struct consan_err e = { 0 };
	bool ok = cpu_run(p, cpu_out, &e);

	if (ok)
		add(ref, compare_reference(p, cpu_out, "executor",
			ref->wrong < o->show ? o->show - (unsigned)ref->wrong : 0));
	if (ok && o->gpu && p->class->sm == 90) {
		ok = gpu_run(p, o->level, gpu_out, &e);
		if (ok)
			add(gpu, compare_gpu(p, cpu_out, gpu_out,
				gpu->wrong < o->show ? o->show - (unsigned)gpu->wrong : 0,
				o->show && !gpu->undefined));
	}
	if (!ok)
		printf("%s: not run: %s (line %d of its PTX)\n", p->class->name, e.text, e.line);
	if (!ok && p->n == 1)
		printf("%s", p->item[0].ptx.at);
	free(cpu_out);
	free(gpu_out);
	return ok;
}

static int run_class(const struct options *o, const struct class *c)
{
	struct tally ref = { 0 }, gpu = { 0 };
	unsigned left = (o->count * c->share + 99) / 100;
	bool ok = true;

	/* A fault leaves the GPU unusable for this process. */
	for (unsigned part = 0; left && ok; part++) {
		struct program p;
		unsigned n = left < o->items ? left : o->items;
		program_make(&p, c, o->seed + part * 0x10001u, n);
		if (o->dump)
			dump(o, &p, part);
		ok &= run(o, &p, &ref, &gpu);
		program_free(&p);
		left -= n;
	}
	printf("%-14s %10" PRIu64 " results %8" PRIu64 " undefined %8" PRIu64 " wrong", c->name,
		ref.compared, ref.undefined, ref.wrong);
	if (o->gpu && c->sm == 90)
		printf("   GPU: %8" PRIu64 " differ %8" PRIu64 " known %8" PRIu64
			" undefined differ", gpu.wrong, gpu.known, gpu.undefined);
	else if (o->gpu)
		printf("   GPU: not on sm_90a");
	printf("%s\n", ok ? "" : "   NOT RUN");
	fflush(stdout);
	return !ok ? 2 : ref.wrong || gpu.wrong;
}

/* A class in a process of its own: a kernel that faults or hangs on the GPU ends only this
 * class. */
static int run_apart(const struct options *o, const struct class *c)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		base_die("conform: cannot fork");
	if (child == 0) {
		struct consan_err e = { 0 };
		alarm(300);
		if (!gpu_open(&e)) {
			fprintf(stderr, "conform: %s\n", e.text);
			exit(3);
		}
		status = run_class(o, c);
		fflush(stdout);
		exit(status);
	}
	while (waitpid(child, &status, 0) < 0)
		;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("%-14s ended by signal %d\n", c->name, WTERMSIG(status));
	return 2;
}

int main(int argc, char **argv)
{
	struct options o = { .seed = 1, .count = 64, .items = 64, .show = 3, .level = GPU_LEVEL_MOST };
	int status = 0;

	if (!parse(&o, argc, argv)) {
		fprintf(stderr, "usage: %s [--seed=N] [--count=M] [--items=I] [--level=0..4] "
			"[--class=NAME] [--show=K] [--dump=FOLDER] [--list]\n", argv[0]);
		return 2;
	}
#ifdef CONFORM_GPU
	o.gpu = true;
#endif
	if (o.list)
		return coverage_check(true) ? 0 : 1;
	for (unsigned k = 0; k < nclasses; k++) {
		if (o.class && strcmp(o.class, classes[k].name))
			continue;
		int s = o.gpu ? run_apart(&o, &classes[k]) : run_class(&o, &classes[k]);
		if (s == 3) /* there is no GPU */
			return 2;
		status = s > status ? s : status;
	}
	if (!o.class && !coverage_check(false))
		status = status ? status : 1;
	return status;
}
