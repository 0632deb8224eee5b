/* entry_points: defines the exported symbols of cuda.def and lists them. Calls without an
 * implementation report themselves and return an error. CUDA's headers are not included, so
 * that each symbol can be declared with one common signature. */
#include "entry_points.h"

#include <fnmatch.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))
enum { NOT_SUPPORTED = 801 }; /* in both APIs */
enum { VERSIONS_MAX = 9 };

/* device.c; internal.h includes CUDA's headers */
void remark_refused(const char *name, const char *why);

static const struct { const char *pattern, *why; } refused[] = {
#define REFUSED(pattern, why) { pattern, why },
#include "refused.def"
#undef REFUSED
};

static const char *why_not(const char *name)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (!fnmatch(refused[i].pattern, name, 0))
			return refused[i].why;
	return "";
}

/* Reports each call once. */
static int unsupported(const char *name, atomic_flag *reported)
{
	if (!atomic_flag_test_and_set(reported))
		remark_refused(name, why_not(name));
	return NOT_SUPPORTED;
}

/* ---- the symbols ---- */

#define NONE(name) \
	VISIBLE int name(void); \
	int name(void) \
	{ \
		static atomic_flag reported = ATOMIC_FLAG_INIT; \
		return unsupported(#name, &reported); \
	}
/* An alias is a jump, so that the arguments stay as they are. */
#define AS(name, as) \
	VISIBLE int name(void); \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" \
		#name ":\n.cfi_startproc\njmp " #as "@PLT\n.cfi_endproc\n.size " #name ", . - " #name "\n");

/* In this call, stream 0 is the per-thread default stream (stream_of()). A call of the function with the
 * same arguments: those in registers are left alone, and as many words of the stack are copied as any of
 * them has. */
#define PT(name, as) \
	VISIBLE int name(void); \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" \
		#name ":\n.cfi_startproc\npushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n" \
		"movq %rsp, %rbp\n.cfi_def_cfa_register %rbp\n" \
		"movq stream_calls_per_thread@gottpoff(%rip), %rax\nincl %fs:(%rax)\n" \
		"pushq 72(%rbp)\npushq 64(%rbp)\npushq 56(%rbp)\npushq 48(%rbp)\n" \
		"pushq 40(%rbp)\npushq 32(%rbp)\npushq 24(%rbp)\npushq 16(%rbp)\n" \
		"call " #as "@PLT\n" \
		"movq stream_calls_per_thread@gottpoff(%rip), %rcx\ndecl %fs:(%rcx)\n" \
		"leave\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n.size " #name ", . - " #name "\n");

#define RT(name) VISIBLE int name(void);
#define RT_AS(name, as) AS(name, as)
#define RT_PT(name, as) PT(name, as)
#define RT_NONE(name) NONE(name)
#define DRV(name, since) VISIBLE int name(void);
#define DRV_AS(name, since, as) AS(name, as)
#define DRV_PT(name, since, as) PT(name, as)
#define DRV_NONE(name, since) NONE(name)
#include "cuda.def"
#undef RT
#undef RT_AS
#undef RT_PT
#undef RT_NONE
#undef DRV
#undef DRV_AS
#undef DRV_PT
#undef DRV_NONE

/* ---- the list, sorted by name within each API ---- */

#define RT(name) { #name, (void *)name, 0, false },
#define RT_AS(name, as) RT(name)
#define RT_PT(name, as) RT(name)
#define RT_NONE(name) RT(name)
#define DRV(name, since) { #name, (void *)name, since, true },
#define DRV_AS(name, since, as) DRV(name, since)
#define DRV_PT(name, since, as) DRV(name, since)
#define DRV_NONE(name, since) DRV(name, since)
const struct entry_point entry_points[] = {
#include "cuda.def"
};
const size_t entry_point_count = sizeof entry_points / sizeof *entry_points;

static const struct entry_point *row(const char *name, bool driver)
{
	for (size_t i = 0; i < entry_point_count; i++)
		if (entry_points[i].driver == driver && !strcmp(entry_points[i].name, name))
			return &entry_points[i];
	return NULL;
}

void *entry_point_runtime(const char *name)
{
	const struct entry_point *r = row(name, false);

	return r ? r->call : NULL;
}

/* The newest of name, name_v2, name_v3 ... with this suffix. */
static void *newest(const char *name, int version, const char *suffix)
{
	const struct entry_point *r;
	char symbol[128];
	void *best = NULL;
	int v, since = -1;

	for (v = 1; v <= VERSIONS_MAX; v++) {
		if (v == 1)
			snprintf(symbol, sizeof symbol, "%s%s", name, suffix);
		else
			snprintf(symbol, sizeof symbol, "%s_v%d%s", name, v, suffix);
		r = row(symbol, true);
		if (r && r->since <= version && r->since >= since) {
			since = r->since;
			best = r->call;
		}
	}
	return best;
}

void *entry_point_find(const char *name, int version, bool per_thread)
{
	void *call = NULL;

	if (per_thread)
		call = newest(name, version, "_ptsz");
	if (per_thread && !call)
		call = newest(name, version, "_ptds");
	return call ? call : newest(name, version, "");
}
