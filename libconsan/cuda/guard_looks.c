/* guard_looks: how many accesses of the host to a page are looked at, one fault each, until it is opened; and which
 * of them are polls. */
#include "guard.h"
#include "limits.h"

#include <string.h>
#include <unistd.h>

static uint64_t all;             /* looks so far */

static unsigned most_looks(void)
{
	unsigned most = LOOKS;

	for (uint64_t n = all; n > LOOKS_IN_ALL && most > FEWEST_LOOKS; n /= 2)
		most /= 4;
	return most > FEWEST_LOOKS ? most : FEWEST_LOOKS;
}

/* Pages next to each other; something is queued. */
static void open_pages(struct area *a, size_t first, size_t n, bool readable)
{
	const uintptr_t at = a->at + first * PAGE;

	for (size_t i = first; i < first + n; i++) {
		a->readable[i] = readable;
		a->looks[i] = readable ? 0 : OPENED;
		guard_want_one(a, i);
	}
	guard.opened |= !readable;
	consan_host_page_unseen(device_session(), at, at + n * PAGE, !readable);
}

void guard_open(struct area *a, size_t page, bool readable)
{
	if (guard.queued)
		open_pages(a, page, 1, readable);
	else
		a->looks[page] = OPENED;
}

static bool has_signals(const struct area *a, size_t page)
{
	const uintptr_t at = a->at + page * PAGE;

	return consan_host_words(device_session(), at, at + PAGE);
}

/* The host goes through memory: as many pages again as those before this one that were opened. */
static void open_ahead(struct area *a, size_t page, bool readable)
{
	size_t before = 0, n = 0;

	while (before < page && before < MOST_AHEAD && a->wanted[page - before - 1] == a->wanted[page])
		before++;
	while (n < before && page + 1 + n < a->pages && a->now[page + 1 + n] == NO_ACCESS && !a->looks[page + 1 + n]
			&& !has_signals(a, page + 1 + n))
		n++;
	if (!n)
		return;
	open_pages(a, page + 1, n, readable);
	guard_protect(a, page + 1, n, a->wanted[page + 1]);
}

void guard_count(struct area *a, size_t page, bool write)
{
	const unsigned most = a->most[page] ? a->most[page] : most_looks();
	bool signals;

	all++;
	if (++a->looks[page] < most)
		return;
	if (!guard.queued) {
		a->looks[page] = OPENED;
		return;
	}
	signals = has_signals(a, page);
	if (signals && a->looks[page] < most * LOOKS_AT_SIGNALS)
		return;
	a->most[page] = (uint16_t)(most > 2 * FEWEST_LOOKS ? most / 2 : FEWEST_LOOKS);
	open_pages(a, page, 1, !write && !signals);
	if (!signals)
		open_ahead(a, page, !write);
}

/* ---- polls ---- */

/* A place for each word and thread, taken by the newest of those that share it. */
static struct watched { uintptr_t at; pid_t by; unsigned n; } watched[WATCHED];

bool guard_repeats(uintptr_t at, bool *enough)
{
	const pid_t by = gettid();
	struct watched *w = &watched[(at / 4 * 31 + (unsigned)by * 97) % WATCHED];
	const bool is = w->at == at && w->by == by;

	if (!is)
		*w = (struct watched){ at, by, 0 };
	*enough = is && ++w->n >= 1u << (guard.vain < MOST_VAIN ? guard.vain : MOST_VAIN);
	if (*enough)
		w->n = 0;
	return is;
}

void guard_forget_looks(void)
{
	memset(watched, 0, sizeof watched);
	for (size_t i = 0; i < guard.area.n; i++) {
		struct area *a = &guard.area.at[i];

		memset(a->looks, 0, a->pages * sizeof *a->looks);
		memset(a->readable, 0, a->pages);
	}
	guard.opened = false;
}
