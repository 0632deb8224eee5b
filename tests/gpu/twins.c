/* twins: every bundled kernel and each of its planted bugs, under a backend that
 * instruments: `twins BUILD BACKEND [PROGRAM [I/N]]`; I/N: the I-th of N parts of its
 * bugs. The bug's own rule must be reported, the clean kernel must be silent and right.
 * On a GPU, where nobody chooses the schedule, another rule may name the bug first.
 * --sanitizer runs NVIDIA's racecheck and synccheck beside, for the table in the README. */
#include "../shell.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const program[] = {
	"ring/ring", "hgemm/hgemm", "wgmma_gemm/wgmma_gemm", "attention/fa2_split_q",
	"attention/fa2_split_kv", "attention/fa2_shared_kv", "attention/fa2_shared_qkv",
	"attention/fa2_tiling_qk", "attention/hopper", "attention/mesh_kv", "attention/mesh_mlo",
	"mlp/fused_mlp",
};

static const struct { const char *rule, *why; } unseen[] = {
#define UNSEEN(rule, why) { #rule, why },
#define UNSEEN_SPECIMEN(specimen, why)
#include "unseen.def"
#undef UNSEEN
#undef UNSEEN_SPECIMEN
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* "CS104 CS106" of the report's last line. */
static void codes(char *to, size_t room)
{
	const char *at = strstr(output, "SUMMARY"), *open = at ? strchr(at, '(') : NULL;
	const char *line = at ? strchr(at, '\n') : NULL;

	snprintf(to, room, "%s", at ? "" : "no report");
	if (open && line && open < line && !strncmp(open, "(CS", 3))
		snprintf(to, room, "%.*s", (int)strcspn(open + 1, ")"), open + 1);
}

static const char *why_unseen(const char *rule)
{
	for (size_t i = 0; i < COUNT(unseen); i++)
		if (!strcmp(unseen[i].rule, rule))
			return unseen[i].why;
	return NULL;
}

static const char *sanitized(const char *tool, const char *path, const char *options, const char *bug)
{
	shell("timeout 40 compute-sanitizer --tool=%s %s %s --bug=%s 2>&1 | "
		"grep -E 'RACECHECK SUMMARY|ERROR SUMMARY' | tail -1", tool, path, options, bug);
	if (!output[0])
		return "hangs";
	if (strstr(output, " 0 hazards") || strstr(output, " 0 errors"))
		return "-";
	return "found";
}

struct run { const char *build, *backend; bool sanitizer; unsigned part, parts, good, other, bad, known; };

static void one(struct run *r, const char *name, const char *bug, const char *rule, const char *options)
{
	char found[512], path[512];
	const bool gpu = !strcmp(r->backend, "gpu");
	const char *why = *bug && gpu ? why_unseen(rule) : NULL;
	bool right, other;

	snprintf(path, sizeof path, "%s/kernels/%s", r->build, name);
	shell("timeout 120 %s/consan-run --backend=%s --no-source --print-level=info --timeout=2 %s %s %s %s%s 2>&1",
		r->build, r->backend, strcmp(rule, "CS903") ? "" : "--gpu-global", path, options,
		*bug ? "--bug=" : "", bug);
	codes(found, sizeof found);
	right = *bug ? strstr(output, rule) != NULL : !found[0] && strstr(output, ": right");
	other = !right && *bug && found[0] && gpu;
	if (*bug && gpu && strstr(output, "the GPU reported"))
		why = "the GPU stops at it, and says only that";
	else if (*bug && gpu && strstr(output, "NOT CHECKED"))
		why = "the kernel counts as not checked";
	printf("%-5s %-24s %-20s %-6s %s", right ? "ok" : other ? "other" : why ? "-" : "BAD", name,
		*bug ? bug : "(none)", rule, found);
	if (!right && !other && why)
		printf(" (%s)", why);
	if (r->sanitizer && *bug) {
		printf(" | racecheck %s", sanitized("racecheck", path, options, bug));
		printf(" | synccheck %s", sanitized("synccheck", path, options, bug));
	}
	printf("\n");
	fflush(stdout);
	if (right)
		r->good++;
	else if (other)
		r->other++;
	else if (why)
		r->known++;
	else
		r->bad++;
}

static void each_bug(struct run *r, const char *name)
{
	char *list, *line, *save = NULL;
	unsigned n = 1;

	if (shell("%s/kernels/%s --list-bugs 2>/dev/null", r->build, name))
		return; /* not built */
	list = strdup(output);
	if (r->part == 1)
		one(r, name, "", "", "");
	for (line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *field[5] = { line };

		for (int k = 1; k < 5 && field[k - 1]; k++) {
			field[k] = strchr(field[k - 1], '\t');
			if (field[k])
				*field[k]++ = 0;
		}
		if (field[4] && field[1][0] && n++ % r->parts == r->part % r->parts)
			one(r, name, field[0], field[1], field[3]);
	}
	free(list);
}

int main(int argc, char **argv)
{
	struct run r = { .part = 1, .parts = 1 };
	int at = 1;

	if (argc > 1 && !strcmp(argv[1], "--sanitizer")) {
		r.sanitizer = true;
		at++;
	}
	if (argc < at + 2 || (argc > at + 3 && (sscanf(argv[at + 3], "%u/%u", &r.part, &r.parts) != 2 ||
			!r.part || r.part > r.parts))) {
		fprintf(stderr, "usage: twins [--sanitizer] BUILD BACKEND [PROGRAM [I/N]]\n");
		return 2;
	}
	r.build = argv[at];
	r.backend = argv[at + 1];
	for (size_t i = 0; i < COUNT(program); i++)
		if (argc < at + 3 || strstr(program[i], argv[at + 2]))
			each_bug(&r, program[i]);
	printf("%u as expected, %u by another rule, %u not visible to this backend, %u wrong\n", r.good,
		r.other, r.known, r.bad);
	return r.bad || !r.good;
}
