/* placement: a specimen has the same findings wherever its buffers lie: at each of the 16 page
 * offsets that cudaMalloc() may return, next to each other or pages apart, at low and at high
 * addresses. $PLACEMENTS=all tries every combination, with both backends; otherwise each specimen
 * has two, and together they have all. */
#include "found.h"
#include "run.h"
#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"
#include "tests/common/limits.h"
#include "tests/common/sanitized.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef CONSAN_ASAN /* which has the memory above 2 GiB and at 0x600000000000 */
static const uint64_t bases[] = { 0x20000000, 0x3fff0000, 0x7d00ffff0000, 0x7e0000000000 };
#else
static const uint64_t bases[] = { 0x20000000, 0x7fff0000, 0x6000ffff0000, 0x7e0000000000 };
#endif
static const uint32_t gaps[] = { 0, 0x3000, 0x10100 };

#define OFFSETS 16u
#define PLACEMENTS (OFFSETS * ARRAY_SIZE(bases) * ARRAY_SIZE(gaps))

static struct placement placement(unsigned i)
{
	return (struct placement){ .at = bases[i / OFFSETS % ARRAY_SIZE(bases)] + i % OFFSETS * 256,
		.gap = gaps[(i / OFFSETS + i) % ARRAY_SIZE(gaps)] };
}

static struct found found_at(const struct specimen *s, enum twin twin, const char *backend,
	const struct placement *place)
{
	struct run g = { .place = place };
	char options[sizeof s->options + 128];
	const struct finding *const *f;
	struct consan_err e = { 0 };
	struct found found;
	size_t n;

	snprintf(options, sizeof options, "%s jobs=1 %s", s->options, backend);
	g.c = consan_open(options, &e);
	cr_assert(g.c, "%s: %s", s->path, e.text);
	run_specimen(s, twin, &g);
	n = consan_raw_findings(g.c, &f);
	found = found_of(f, n);
	run_close(&g);
	return found;
}

static void compare(const struct specimen *s, enum twin twin, const char *backend,
	const struct found *want, unsigned i)
{
	const struct placement place = placement(i);
	struct found is = found_at(s, twin, backend, &place);

	cr_expect_eq(is.n, want->n, "%s %s: %zu findings at 0x%llx, else %zu", s->path, backend, is.n,
		(unsigned long long)place.at, want->n);
	for (size_t k = 0; k < is.n; k++)
		cr_expect(found_has(want, is.at[k]), "%s %s: %s only at 0x%llx", s->path, backend,
			is.at[k], (unsigned long long)place.at);
	found_drop(&is);
}

static void placement_test(const struct specimen *s, enum twin twin, const char *backend,
	unsigned first, unsigned count)
{
	struct found want = found_at(s, twin, backend, NULL);

	for (unsigned i = 0; i < count; i++)
		compare(s, twin, backend, &want, (first + i * (PLACEMENTS / 2 + 1)) % PLACEMENTS);
	found_drop(&want);
}

struct placed {
	char path[128];
	unsigned first;
};

static bool has_buffer(const char *path)
{
	char *text = read_file(path);
	const bool is = strstr(text, "// arg: buffer");

	free(text);
	return is;
}

ParameterizedTestParameters(cases, placement)
{
	struct placed *list;
	size_t n = 0;
	glob_t g;

	if (glob(getenv("CASES") ? getenv("CASES") : SPECIMENS, 0, NULL, &g))
		return cr_make_param_array(struct placed, NULL, 0);
	list = cr_malloc(g.gl_pathc * sizeof *list);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		if (!has_buffer(g.gl_pathv[i]))
			continue;
		snprintf(list[n].path, sizeof list[n].path, "%s", g.gl_pathv[i]);
		list[n].first = (unsigned)n;
		n++;
	}
	globfree(&g);
	return cr_make_param_array(struct placed, list, n);
}

ParameterizedTest(struct placed *p, cases, placement, .timeout = TEST_LIMIT)
{
	const char *which = getenv("PLACEMENTS");
	const bool all = which && !strcmp(which, "all");
	struct specimen s;

	specimen_read(&s, p->path);
	for (enum twin twin = s.twins ? RACY : FIXED; twin < NTWINS; twin++) {
		placement_test(&s, twin, "", p->first, all ? PLACEMENTS : 2);
		if (all && !s.cpu_only)
			placement_test(&s, twin, "backend=gpu-emulated gpu-global=1 timeout=1 reads=newest", p->first,
				PLACEMENTS);
	}
	free(s.text);
}
