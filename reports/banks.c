/* banks: the table of shared-memory bank conflicts, one row for each place in
 * the source that touches shared memory, the most conflicts first. */
#include "text.h"

#include "../libconsan/site.h"

#include <stdlib.h>
#include <string.h>

enum { PLACE_COLUMNS = 46 };

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "hgemm.cu:173 ldmatrix.sync": the line of the kernel itself, which calls what
 * is inlined there, and the opcode */
static void describe(uint32_t id, char *out, size_t n)
{
	const struct site *s = site_get(id);
	const struct site_loc *at = s->loc;
	const char *op = s->ptx;
	int length;

	while (at && at->inlined_at)
		at = at->inlined_at;
	if (*op == '@')
		op += strcspn(op, " \t");
	op += strspn(op, " \t");
	length = (int)strcspn(op, " \t;");
	snprintf(out, n, "%s:%u %.*s", base_name(at ? at->file : s->module),
		at ? at->line : s->ptx_line, length, op);
}

static void add_row(struct page *p, enum page_style style, const char *place,
	const char *accesses, const char *wavefronts, const char *conflicts, const char *worst)
{
	char cells[160];

	page_indent(p, 0);
	snprintf(cells, sizeof cells, "  %-*.*s %11s %11s %11s %7s", PLACE_COLUMNS, PLACE_COLUMNS,
		place, accesses, wavefronts, conflicts, worst);
	page_verbatim(p, style, cells);
}

static void add_use(struct page *p, const struct bank_use *u, const char *place)
{
	char accesses[24], wavefronts[24], conflicts[24], worst[24] = "";

	snprintf(accesses, sizeof accesses, "%llu", (unsigned long long)u->accesses);
	snprintf(wavefronts, sizeof wavefronts, "%llu", (unsigned long long)u->wavefronts);
	snprintf(conflicts, sizeof conflicts, "%llu",
		(unsigned long long)(u->wavefronts - u->least));
	if (u->worst > 1)
		snprintf(worst, sizeof worst, "%u-way", u->worst);
	add_row(p, u->worst > 1 ? YELLOW : PLAIN, place, accesses, wavefronts, conflicts, worst);
}

void report_banks(struct page *p, const struct results *r, const struct options *o)
{
	const size_t limit = o->print_limit && o->print_limit < r->bank.n ? o->print_limit : r->bank.n;
	struct bank_use all = { 0 };
	char place[PLACE_COLUMNS + 40];

	if (!r->bank.n)
		return;
	add_row(p, DIM, "shared memory by instruction", "accesses", "wavefronts", "conflicts", "worst");
	for (size_t i = 0; i < r->bank.n; i++) {
		const struct bank_use *u = &r->bank.at[i];

		all.accesses += u->accesses;
		all.wavefronts += u->wavefronts;
		all.least += u->least;
		if (all.worst < u->worst)
			all.worst = u->worst;
		if (i >= limit)
			continue;
		describe(u->site, place, sizeof place);
		add_use(p, u, place);
	}
	if (limit < r->bank.n)
		snprintf(place, sizeof place, "all, %zu more places", r->bank.n - limit);
	else
		snprintf(place, sizeof place, "all");
	add_use(p, &all, place);
	page_end(p);
}
