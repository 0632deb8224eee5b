/* table: the calls of cuda.def as symbols and as a list, and what becomes of
 * those that are not supported. Knows no prototype: CUDA's headers stay out, so
 * that one signature can stand for all. */
#include "table.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))
enum { NOT_SUPPORTED = 801 }; /* in both APIs */
enum { SPELLINGS_MAX = 9 };

/* gpu.c */
void gpu_unsupported(const char *name);

static int unsupported(const char *name, atomic_flag *said)
{
	if (!atomic_flag_test_and_set(said))
		gpu_unsupported(name);
	return NOT_SUPPORTED;
}

/* ---- the symbols ---- */

#define NONE(name) \
	VISIBLE int name(void); \
	int name(void) \
	{ \
		static atomic_flag said = ATOMIC_FLAG_INIT; \
		return unsupported(#name, &said); \
	}
/* A second name is a jump: arguments pass through untouched. */
#define AS(name, as) \
	VISIBLE int name(void); \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" \
		#name ": jmp " #as "@PLT\n.size " #name ", . - " #name "\n");

#define RT(name) VISIBLE int name(void);
#define RT_AS(name, as) AS(name, as)
#define RT_NONE(name) NONE(name)
#define DRV(name, since) VISIBLE int name(void);
#define DRV_AS(name, since, as) AS(name, as)
#define DRV_NONE(name, since) NONE(name)
#include "cuda.def"
#undef RT
#undef RT_AS
#undef RT_NONE
#undef DRV
#undef DRV_AS
#undef DRV_NONE

/* ---- the list, sorted by name within each API ---- */

#define RT(name) { #name, (void *)name, 0, false },
#define RT_AS(name, as) RT(name)
#define RT_NONE(name) RT(name)
#define DRV(name, since) { #name, (void *)name, since, true },
#define DRV_AS(name, since, as) DRV(name, since)
#define DRV_NONE(name, since) DRV(name, since)
const struct table_row table_rows[] = {
#include "cuda.def"
};
const size_t table_count = sizeof table_rows / sizeof *table_rows;

static const struct table_row *row(const char *name, bool driver)
{
	for (size_t i = 0; i < table_count; i++)
		if (table_rows[i].driver == driver && !strcmp(table_rows[i].name, name))
			return &table_rows[i];
	return NULL;
}

void *table_runtime(const char *name)
{
	const struct table_row *r = row(name, false);

	return r ? r->call : NULL;
}

/* The newest of name, name_v2, name_v3 ... with this ending. */
static void *newest(const char *name, int version, const char *ending)
{
	const struct table_row *r;
	char spelling[128];
	void *best = NULL;
	int v, since = -1;

	for (v = 1; v <= SPELLINGS_MAX; v++) {
		if (v == 1)
			snprintf(spelling, sizeof spelling, "%s%s", name, ending);
		else
			snprintf(spelling, sizeof spelling, "%s_v%d%s", name, v, ending);
		r = row(spelling, true);
		if (r && r->since <= version && r->since >= since) {
			since = r->since;
			best = r->call;
		}
	}
	return best;
}

void *table_find(const char *name, int version, bool per_thread)
{
	void *call = NULL;

	if (per_thread)
		call = newest(name, version, "_ptsz");
	if (per_thread && !call)
		call = newest(name, version, "_ptds");
	return call ? call : newest(name, version, "");
}
