/* memory: maps of shared and global memory with the bytes in conflict, and the table of
 * mbarrier states, both from the history of a finding. */
#include "reports/html/html.h"

#include "libconsan/event/event.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH 900        /* of a map, in SVG units, as all lengths here */
#define BAR 26           /* height of a row of buffers */
#define MAX_ROWS 64      /* of the mbarrier table */

/* ---- the map ---- */

struct map {
	struct html *h;
	const struct finding *f;
	const struct history *y; /* NULL: a map of global memory */
	uint64_t base;          /* global: start of the allocation; addresses are relative */
	unsigned peer;          /* shared: the CTA that owns it */
	uint64_t from, to;      /* bytes that the bar shows */
	int at, height;         /* y of the bar */
};

/* Does this side access the memory that the map shows? */
static bool on_map(const struct map *p, const struct finding_side *s)
{
	if (!s->bytes)
		return false;
	return p->y ? s->space == SP_SHARED && s->peer == p->peer
		: s->space == SP_GLOBAL && s->buffer_bytes && s->buffer == p->base;
}

static double x_of(const struct map *p, uint64_t addr)
{
	if (addr < p->from)
		addr = p->from;
	if (addr > p->to)
		addr = p->to;
	return (double)(addr - p->from) * WIDTH / (double)(p->to - p->from);
}

static void block(struct map *p, const char *class, uint64_t addr, uint64_t bytes, int y,
	int height, double least, const char *name, const char *title)
{
	struct markup *m = &p->h->m;
	double x = x_of(p, addr), w = x_of(p, addr + bytes) - x;

	if (addr + bytes <= p->from || addr >= p->to)
		return;
	if (w < least)
		w = least;
	html_rectangle(m, class, x, y, w, height, title);
	if (*name && w > 7.0 * (double)strlen(name))
		html_text_at(m, "bn", x + w / 2, y + height / 2 + 4, "%s", name);
}

/* Stages of one copy instruction are numbered by address; where several instructions fill stages,
 * each has a letter: "A0 A1 A2", "B0 B1 B2". */
static unsigned copy_number(const struct history *y, uint32_t i)
{
	unsigned n = 0;

	for (uint32_t k = 0; k < y->nbuffers && y->buffer[k].site != y->buffer[i].site; k++) {
		bool first = y->buffer[k].kind == BUFFER_STAGE;

		for (uint32_t j = 0; first && j < k; j++)
			first = y->buffer[j].kind != BUFFER_STAGE
				|| y->buffer[j].site != y->buffer[k].site;
		n += first;
	}
	return n;
}

static bool several_copies(const struct history *y)
{
	for (uint32_t i = 0; i < y->nbuffers; i++)
		if (y->buffer[i].kind == BUFFER_STAGE && copy_number(y, i))
			return true;
	return false;
}

static unsigned stage_number(const struct history *y, uint32_t i)
{
	unsigned n = 0;

	for (uint32_t k = 0; k < i; k++)
		n += y->buffer[k].kind == BUFFER_STAGE && y->buffer[k].site == y->buffer[i].site;
	return n;
}

static void buffer_name(struct text *t, const struct history *y, uint32_t i)
{
	const struct history_buffer *b = &y->buffer[i];

	text_add(t, "", 0); /* a variable of a JSON report may have no name */
	if (b->kind == BUFFER_DYNAMIC)
		text_printf(t, "dynamic");
	else if (b->kind == BUFFER_VARIABLE)
		demangle_symbol(t, b->name);
	else if (several_copies(y))
		text_printf(t, "stage %c%u", 'A' + (int)(copy_number(y, i) % 26), stage_number(y, i));
	else
		text_printf(t, "stage %u", stage_number(y, i));
}

/* "stage A: copied by gemm.cu:189; stage B: copied by gemm.cu:191" */
static void stage_legend(struct html *h, const struct history *y)
{
	struct text t = { 0 };
	unsigned shown = 0;

	for (uint32_t i = 0; i < y->nbuffers; i++) {
		if (y->buffer[i].kind != BUFFER_STAGE || copy_number(y, i) != shown)
			continue;
		if (several_copies(y))
			text_printf(&t, "%sstages %c: copied by ", shown ? "; " : "",
				'A' + (int)(shown % 26));
		else
			text_printf(&t, "stages: copied by ");
		describe_place(&t, y->buffer[i].site);
		shown++;
	}
	if (t.n)
		mu_element(&h->m, "p", "legend", "%s", t.at);
	text_free(&t);
}

static void draw_buffers(struct map *p)
{
	static const char *const class[] = {
		[BUFFER_VARIABLE] = "bv", [BUFFER_DYNAMIC] = "bd", [BUFFER_STAGE] = "bs",
	};

	for (uint32_t i = 0; i < p->y->nbuffers; i++) {
		const struct history_buffer *b = &p->y->buffer[i];
		struct text name = { 0 }, title = { 0 };

		if (b->kind == BUFFER_COLUMNS)
			continue;
		buffer_name(&name, p->y, i);
		text_printf(&title, "%s: 0x%x, ", name.at, b->addr);
		describe_size(&title, b->bytes);
		if (b->kind == BUFFER_STAGE) {
			text_printf(&title, ", copied by ");
			describe_place(&title, b->site);
		}
		block(p, class[b->kind], b->addr, b->bytes,
			p->at + (b->kind == BUFFER_STAGE ? BAR : 0), BAR, 1.5, name.at, title.at);
		text_free(&name);
		text_free(&title);
	}
	for (uint32_t i = 0; i < p->y->nmbarriers; i++)
		block(p, "bm", p->y->mbarrier[i].addr, 8, p->at, BAR, 1.5, "", "mbarrier");
}

static void draw_conflict(struct map *p)
{
	for (unsigned i = 0; i < p->f->nsides; i++) {
		const struct finding_side *s = &p->f->side[i];
		struct text t = { 0 };

		if (!on_map(p, s))
			continue;
		text_printf(&t, "%s: %s: ", side_label(p->f, i), s->what);
		describe_bytes(&t, s);
		block(p, i ? "bx earlier" : "bx", s->addr - p->base, s->bytes,
			p->at - 5 - 7 * (int)i, 7, 3, "", t.at);
		block(p, "bl", s->addr - p->base, s->bytes, p->at, p->height, 1.5, "", t.at);
		text_free(&t);
	}
}

static void draw_bar(struct map *p, const char *what)
{
	struct markup *m = &p->h->m;

	html_text_at(m, "bt", 0, p->at - 20, "%s: 0x%llx to 0x%llx", what, (unsigned long long)p->from,
		(unsigned long long)p->to);
	html_rectangle(m, "bb", 0, p->at, WIDTH, p->height, "");
	if (p->y)
		draw_buffers(p);
	else
		block(p, "bd", p->from, p->to - p->from, p->at, p->height, 0, "", "");
	draw_conflict(p);
}

/* Selects what the second bar shows: the smallest buffer around the conflict, or the bytes in
 * conflict and some on both sides. */
static void zoom(struct map *p)
{
	const struct history_buffer *least = NULL;
	uint64_t lo = UINT64_MAX, hi = 0, pad;
	const uint64_t end = p->to;

	for (unsigned i = 0; i < p->f->nsides; i++) {
		const struct finding_side *s = &p->f->side[i];

		if (!on_map(p, s))
			continue;
		if (s->addr - p->base < lo)
			lo = s->addr - p->base;
		if (s->addr - p->base + s->bytes > hi)
			hi = s->addr - p->base + s->bytes;
	}
	for (uint32_t i = 0; p->y && i < p->y->nbuffers; i++) {
		const struct history_buffer *b = &p->y->buffer[i];

		if (b->kind != BUFFER_COLUMNS && b->addr <= lo && (uint64_t)b->addr + b->bytes >= hi
				&& (!least || b->bytes < least->bytes))
			least = b;
	}
	pad = (hi - lo) < 64 ? 128 : 2 * (hi - lo);
	p->from = lo > pad ? lo - pad : 0;
	p->to = hi + pad;
	if (!p->y && p->to > end)
		p->to = end;
	if (least && least->bytes <= 16 * (hi - lo) + 1024) {
		p->from = least->addr;
		p->to = (uint64_t)least->addr + least->bytes;
	}
}

/* The colors of the sides. */
static void conflict_legend(const struct map *p)
{
	struct markup *m = &p->h->m;

	mu_class(m, "p", "legend marks");
	for (unsigned i = 0; i < p->f->nsides; i++) {
		if (!on_map(p, &p->f->side[i]))
			continue;
		mu_open(m, "span");
		mu_class(m, "svg", NULL);
		mu_attr(m, "width", "14");
		mu_attr(m, "height", "8");
		mu_attr(m, "aria-hidden", "true");
		html_rectangle(m, i ? "bx earlier" : "bx", 0, 0, 14, 8, "");
		mu_close(m, "svg");
		mu_text(m, "%s: %s", side_label(p->f, i), p->f->side[i].what);
		mu_close(m, "span");
	}
	mu_close(m, "p");
}

static void draw_map(struct map *p, const char *what)
{
	const int bar = 34 + p->height;
	struct markup *m = &p->h->m;
	struct map detail = *p;
	bool two;

	zoom(&detail);
	two = detail.to > detail.from && (detail.from != p->from || detail.to != p->to);
	html_map_begin(m, what, ", with the bytes in conflict", 0, WIDTH, bar * (two ? 2 : 1) + 14);
	draw_bar(p, "all");
	detail.at += bar + 8;
	if (two)
		draw_bar(&detail, "detail");
	html_map_end(m);
	conflict_legend(p);
	if (p->y)
		stage_legend(p->h, p->y);
	mu_close(m, "details");
}

static void shared_map(struct html *h, const struct finding *f, const struct finding_side *s)
{
	struct map p = { .h = h, .f = f, .y = f->history, .peer = s->peer, .to = f->history->shared,
		.at = 34, .height = 2 * BAR };
	struct text t = { 0 };

	text_printf(&t, "Shared memory of CTA %u", s->peer);
	draw_map(&p, t.at);
	text_free(&t);
}

static void global_map(struct html *h, const struct finding *f, const struct finding_side *s)
{
	struct map p = { .h = h, .f = f, .base = s->buffer, .to = s->buffer_bytes, .at = 34,
		.height = BAR };
	struct text t = { 0 };

	text_printf(&t, "Global memory: a buffer of ");
	describe_size(&t, s->buffer_bytes);
	text_printf(&t, " at 0x%llx", (unsigned long long)s->buffer);
	draw_map(&p, t.at);
	text_free(&t);
}

void html_memory(struct html *h, const struct finding *f)
{
	for (unsigned i = 0; i < f->nsides; i++) {
		const struct finding_side *s = &f->side[i], *before = i ? s - 1 : NULL;

		if (!s->bytes || (before && before->bytes && before->space == s->space
				&& (s->space == SP_GLOBAL ? before->buffer == s->buffer
				: before->peer == s->peer)))
			continue;
		if (s->space == SP_SHARED && f->history && f->history->shared)
			shared_map(h, f, s);
		if (s->space == SP_GLOBAL && s->buffer_bytes)
			global_map(h, f, s);
		if (s->space == SP_TMEM)
			html_tensor_memory(h, f, s);
	}
}

/* ---- mbarriers ---- */

static void cell(struct markup *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void cell(struct markup *m, const char *fmt, ...)
{
	char s[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s, sizeof s, fmt, ap);
	va_end(ap);
	mu_element(m, "td", NULL, "%s", s);
}

/* Of a pair, or of several CTAs by multicast, it matters whose commits have arrived. */
static void commits(struct markup *m, const struct history_phase *p)
{
	if (!p->commits)
		return;
	if (p->commits == p->arrivals)
		mu_text(m, " by tcgen05.commit of CTA ");
	else
		mu_text(m, ", %u by tcgen05.commit of CTA ", p->commits);
	for (uint32_t left = p->committers; left; left &= left - 1)
		mu_text(m, left == p->committers ? "%d" : ", %d", __builtin_ctz(left));
}

static void phases(struct markup *m, const struct history_mbarrier *b)
{
	const uint64_t first = b->phase < HISTORY_PHASES ? 0 : b->phase - HISTORY_PHASES + 1;

	mu_open(m, "td");
	for (uint64_t k = first; k <= b->phase; k++) {
		const struct history_phase *p = &b->recent[k % HISTORY_PHASES];
		const bool now = k == b->phase;

		if (p->phase != k)
			continue;
		mu_class(m, "span", now ? "phase now" : "phase");
		mu_text(m, "%llu: %u arrival%s", (unsigned long long)k, p->arrivals,
			p->arrivals == 1 ? "" : "s");
		commits(m, p);
		if (p->expected || p->completed)
			mu_text(m, ", %lld of %lld B", (long long)p->completed,
				(long long)p->expected);
		mu_close(m, "span");
		mu_text(m, " ");
	}
	mu_close(m, "td");
}

void html_mbarriers(struct html *h, const struct finding *f)
{
	static const char *const head[] = { "mbarrier", "address", "count", "phase", "pending",
		"tx-count", "arrivals and bytes by phase" };
	const struct history *y = f->history;
	struct markup *m = &h->m;

	if (!y || !y->nmbarriers)
		return;
	mu_class(m, "details", "fig");
	if (strstr(f->barrier.kind, "mbarrier"))
		mu_flag(m, "open");
	mu_element(m, "summary", NULL, "mbarrier state history (%u mbarrier%s)", y->nmbarriers,
		plural_s(y->nmbarriers));
	html_table(m, head, ARRAY_SIZE(head), "mbarrier state history");
	for (uint32_t i = 0; i < y->nmbarriers && i < MAX_ROWS; i++) {
		const struct history_mbarrier *b = &y->mbarrier[i];
		struct text t = { 0 };

		demangle_symbol(&t, b->name);
		mu_class(m, "tr", b->addr == f->barrier.addr && b->peer == f->barrier.peer
			&& strstr(f->barrier.kind, "mbarrier") ? "hit" : NULL);
		mu_element(m, "td", NULL, "%s%s", t.at, b->live ? "" : " (invalidated)");
		cell(m, "0x%x of CTA %u", b->addr, b->peer);
		cell(m, "%u", b->count);
		cell(m, "%llu (parity %u)", (unsigned long long)b->phase, (unsigned)(b->phase & 1));
		cell(m, "%u", b->pending);
		cell(m, "%lld B", (long long)b->tx);
		phases(m, b);
		mu_close(m, "tr");
		text_free(&t);
	}
	html_table_end(m);
	if (y->nmbarriers > MAX_ROWS)
		mu_element(m, "p", "note", "%u more mbarriers are not shown.",
			y->nmbarriers - MAX_ROWS);
	mu_close(m, "details");
}
