/* banks: the table of shared-memory bank conflicts, one row for each place in the
 * source that accesses shared memory, the most conflicts first. */
#include "reports/text/text.h"

enum { PLACE_COLUMNS = 46 };

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

void text_banks(struct page *p, const struct results *r, const struct options *o)
{
	const size_t limit = o->print_limit && o->print_limit < r->bank.n
		? o->print_limit : r->bank.n;
	struct bank_use all = { 0 };
	struct text place = { 0 };

	if (!r->bank.n)
		return;
	add_row(p, DIM, "shared memory by instruction", "accesses", "wavefronts", "conflicts",
		"worst");
	for (size_t i = 0; i < r->bank.n; i++) {
		const struct bank_use *u = &r->bank.at[i];

		results_sum(&all.accesses, u->accesses);
		results_sum(&all.wavefronts, u->wavefronts);
		results_sum(&all.least, u->least);
		if (all.worst < u->worst)
			all.worst = u->worst;
		if (i >= limit)
			continue;
		place.n = 0;
		describe_access(&place, u->site);
		add_use(p, u, place.at);
	}
	place.n = 0;
	text_printf(&place, "total");
	if (limit < r->bank.n)
		text_printf(&place, " with %zu more places", r->bank.n - limit);
	add_use(p, &all, place.at);
	page_end(p);
	text_free(&place);
}
