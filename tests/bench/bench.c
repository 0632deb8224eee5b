/* bench: the table of `make bench`. Every row is a ratio of two measurements of whole processes in
 * this run, or a rate of this machine; nothing is asserted.
 *
 * usage: bench BUILD-DIRECTORY */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *build;

struct measure {
	double seconds;
	double user;  /* user time of all threads, in seconds */
	double mib;   /* peak resident set of the largest process */
	int status;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The minimum of three runs of a shell command, whose output is discarded. */
static struct measure best(const char *fmt, ...)
{
	struct measure m = { .seconds = 1e9, .user = 1e9 };
	char cmd[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof cmd, fmt, ap);
	va_end(ap);
	for (int i = 0; i < 3; i++) {
		struct rusage use;
		double t = now();
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
				_exit(1);
			execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
			_exit(127);
		}
		wait4(pid, &status, 0, &use);
		t = now() - t;
		m.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
		if (t < m.seconds)
			m.seconds = t;
		t = (double)use.ru_utime.tv_sec + 1e-6 * (double)use.ru_utime.tv_usec;
		if (t < m.user)
			m.user = t;
		if ((double)use.ru_maxrss / 1024 > m.mib)
			m.mib = (double)use.ru_maxrss / 1024;
		if (m.seconds > 20)
			break;
	}
	return m;
}

static const char *verdict(struct measure m)
{
	static char text[32];

	if (m.status == 0)
		return "";
	snprintf(text, sizeof text, "  (exit %d)", m.status);
	return text;
}

/* ---- compared with Oclgrind: the same 16x16 tiled product, one thread each ---- */

static void against_oclgrind(int n)
{
	char sim[] = "/tmp/consan-bench-XXXXXX";
	int fd = mkstemp(sim);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	struct measure peer, ours;

	if (!f)
		return;
	fprintf(f, "%s/matmul.cl\nmatmul\n%d %d 1\n16 16 1\n", "tests/bench", n, n);
	for (int i = 0; i < 3; i++)
		fprintf(f, "<size=%d float fill=%d>\n", 4 * n * n, i < 2);
	fprintf(f, "<size=4 int>\n%d\n", n);
	fclose(f);
	peer = best("oclgrind-kernel --num-threads 1 --data-races %s", sim);
	ours = best("%s/consan-run --jobs=1 %s/tests/bench/matmul %d", build, build, n);
	unlink(sim);
	if (peer.status == 127) {
		printf("  %-34s not measured: oclgrind is not installed\n", "tiled matmul");
		return;
	}
	printf("  tiled matmul n=%-4d %17s %9.3f s %9.3f s %8.0fx%s\n", n, "", peer.seconds,
		ours.seconds, peer.seconds / ours.seconds, verdict(ours));
}

/* ---- the cost of checking, for the bundled kernels ---- */

static const struct work {
	const char *name, *command;
} work[] = {
	{ "hgemm 1024", "hgemm/hgemm --m=1024 --n=1024 --k=1024 --no-check" },
	{ "wgmma gemm 1024", "wgmma_gemm/wgmma_gemm --m=1024 --n=1024 --k=1024 --no-check" },
	{ "wgmma gemm 1024, clusters of 4", "wgmma_gemm/wgmma_gemm --m=1024 --n=1024 --k=1024 "
		"--cluster=4 --no-check" },
	{ "tcgen05 gemm 1024, pairs", "tcgen05_gemm/tcgen05_gemm --m=1024 --n=1024 --k=1024 "
		"--cluster=2 --no-check" },
	{ "tcgen05 gemm 4096, pairs", "tcgen05_gemm/tcgen05_gemm --m=4096 --n=4096 --k=4096 "
		"--cluster=2 --no-check" },
	{ "attention 1x4x2048x64", "attention/fa2_split_q --b=1 --h=4 --n=2048 --no-check" },
	{ "... Blackwell, pairs", "attention/blackwell --b=1 --h=4 --n=2048 --ctas=2 --grid=0 "
		"--no-check" },
	{ "ring 1 GiB", "ring/ring --rows=262144 --ctas=0 --no-check" },
};

static void checking_cost(void)
{
	printf("\nchecking on the CPU, all cores (whole process)\n");
	printf("  %-30s %11s %11s %9s %9s\n", "", "unchecked", "checked", "ratio", "memory");
	for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
		struct measure off = best("%s/consan-run --kernel-name-exclude=regex=. --allow-unchecked "
			"%s/kernels/%s", build, build, work[i].command);
		struct measure on = best("%s/consan-run %s/kernels/%s", build, build, work[i].command);

		printf("  %-30s %9.3f s %9.3f s %8.2fx %6.0f MiB%s\n", work[i].name, off.seconds,
			on.seconds, on.seconds / off.seconds, on.mib, verdict(on));
	}
}

/* The same in user time, which other work on the machine does not change. */
static const struct work large[] = {
	{ "ring, 262144 rows", "ring/ring --rows=262144 --ctas=0 --no-check" },
	{ "wgmma gemm 4096x2048x2048", "wgmma_gemm/wgmma_gemm --m=4096 --n=2048 --k=2048 --no-check" },
	{ "... clusters of 4, multicast", "wgmma_gemm/wgmma_gemm --m=4096 --n=2048 --k=2048 --cluster=4 "
		"--no-check" },
	{ "hgemm 2048", "hgemm/hgemm --m=2048 --n=2048 --k=2048 --no-check" },
	{ "attention 1x4x2048x64", "attention/fa2_split_q --b=1 --h=4 --n=2048 --no-check" },
};

static void global_cost(void)
{
	printf("\nchecking with and without global memory, one job (user time of the whole process)\n");
	printf("  %-30s %11s %19s %19s %9s\n", "", "unchecked", "without global", "with global", "memory");
	for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
		const char *cmd = "%s/consan-run --jobs=1 %s %s/kernels/%s";
		struct measure off = best(cmd, build, "--kernel-name-exclude=regex=. --allow-unchecked",
			build, large[i].command);
		struct measure some = best(cmd, build, "--no-global", build, large[i].command);
		struct measure on = best(cmd, build, "", build, large[i].command);

		printf("  %-30s %9.3f s %9.3f s %6.2fx %9.3f s %6.2fx %5.0f MiB%s\n", large[i].name,
			off.user, some.user, some.user / off.user, on.user, on.user / off.user, on.mib,
			verdict(on));
	}
}

static void scaling(void)
{
	static const int mib[] = { 128, 256, 512, 1024 };
	struct measure one, all;

	printf("\nscaling (checked ring reduction)\n");
	printf("  %-30s %11s %11s %9s %9s\n", "", "1 job", "all cores", "speedup", "memory");
	for (size_t i = 0; i < sizeof mib / sizeof *mib; i++) {
		const char *cmd = "%s/consan-run --jobs=%d %s/kernels/ring/ring --rows=%d --ctas=0 --no-check";

		one = best(cmd, build, 1, build, 256 * mib[i]);
		all = best(cmd, build, 0, build, 256 * mib[i]);
		printf("  ring %4d MiB %17s %9.3f s %9.3f s %8.2fx %6.0f MiB%s\n", mib[i], "",
			one.seconds, all.seconds, one.seconds / all.seconds, all.mib, verdict(all));
	}
}

/* The cost of clusters with more warps: the same work, in larger clusters. */
static void clusters(void)
{
	static const int shape[][2] = { { 1, 1 }, { 1, 8 }, { 1, 32 }, { 4, 32 }, { 16, 1 }, { 16, 2 },
		{ 16, 4 }, { 16, 8 }, { 16, 16 }, { 16, 32 } };
	const int warps = 2048, rounds = 128;

	printf("\nclusters of many warps (cluster barriers, remote arrivals and DSMEM only, one job)\n");
	printf("  %-30s %11s %11s %9s %18s\n", "CTAs x warps of a cluster", "unchecked", "checked",
		"memory", "a warp's round");
	for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
		const char *cmd = "%s/consan-run --jobs=1 %s %s/tests/bench/cluster %d %d %d";
		struct measure off = best(cmd, build, "--kernel-name-exclude=regex=. --allow-unchecked",
			build, shape[i][0], shape[i][1], rounds);
		struct measure on = best(cmd, build, "", build, shape[i][0], shape[i][1], rounds);

		printf("  %4d x %-23d %9.3f s %9.3f s %5.0f MiB %5.2f + %5.2f us%s\n", shape[i][0], shape[i][1],
			off.seconds, on.seconds, on.mib, 1e6 * off.seconds / warps / rounds,
			1e6 * (on.seconds - off.seconds) / warps / rounds, verdict(on));
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: bench BUILD-DIRECTORY\n");
		return 2;
	}
	build = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("executor, unchecked, one core\n");
	fflush(stdout);
	{
		char cmd[512];

		snprintf(cmd, sizeof cmd, "%s/tests/bench/rate", build);
		if (system(cmd) != 0)
			printf("  rate: failed\n");
	}
	printf("\nagainst Oclgrind --data-races, one thread each\n");
	printf("  %-30s %11s %11s %9s\n", "", "oclgrind", "consan", "faster");
	against_oclgrind(128);
	against_oclgrind(256);
	checking_cost();
	global_cost();
	scaling();
	clusters();
	return 0;
}
