/* describe: see describe.h. */
#include "reports/describe.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "libconsan/finding/finding.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const severity_text[] = {
	[SEV_NOTE] = "note", [SEV_WARNING] = "warning", [SEV_ERROR] = "error",
};

const char *const remark_text[] = {
	[RESULT_REMARK_call_unsupported] = "unsupported call",
	[RESULT_REMARK_no_ptx] = "no PTX", [RESULT_REMARK_bad_module] = "bad module",
	[RESULT_REMARK_note] = "remark",
	[RESULT_REMARK_fallback_invariant] = "cluster fallback: invariant",
	[RESULT_REMARK_fallback_not_invariant] = "cluster fallback: not invariant",
	[RESULT_REMARK_fallback_not_tried] = "cluster fallback: not tried",
	[RESULT_REMARK_not_loaded] = "module not loaded",
	[RESULT_REMARK_not_seen] = "not seen",
};

const char *file_base_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

const char *edge_label(const struct finding *f)
{
	return f->side[0].host && f->nsides == 1 ? "error" : "missing";
}

void describe_host(struct text *t, const struct options *o, const struct site_loc *l)
{
	char *name = l->function ? demangle(l->function, NAME_BARE) : NULL;
	char *file = display_path(o, l->file);

	if (l->line)
		text_printf(t, "%s:%u%s%s", file, l->line, name ? " in " : "", name ? name : "");
	else if (name)
		text_printf(t, "%s in %s", name, file_base_name(l->file));
	else
		text_printf(t, "%s+0x%llx", file_base_name(l->file), (unsigned long long)l->offset);
	free(file);
	free(name);
}

const char *side_label(const struct finding *f, unsigned i)
{
	if (f->nsides == 1)
		return "at";
	return i ? "earlier" : "later";
}

char *display_path(const struct options *o, const char *file)
{
	static char cwd[PATH_MAX];
	char *path, *up, *slash;
	size_t n;

	if (!*cwd && !getcwd(cwd, sizeof cwd))
		*cwd = 0;
	n = strlen(cwd);
	if (n && !strncmp(file, cwd, n) && file[n] == '/')
		file += n + 1;
	path = base_strdup(o->strip_paths ? file_base_name(file) : file);
	while ((up = strstr(path, "/../")) && up > path) {
		*up = 0;
		slash = strrchr(path, '/');
		slash = slash ? slash + 1 : path;
		if (!strcmp(slash, "..")) {
			*up = '/';
			break;
		}
		memmove(slash, up + 4, strlen(up + 4) + 1);
	}
	return path;
}

const char *space_text(uint8_t space)
{
	switch ((enum ev_space)space) {
	case SP_ANY: return "address";
	case SP_SHARED: return "shared";
	case SP_GLOBAL: return "global";
	case SP_LOCAL: return "local";
	case SP_CONST: return "const";
	case SP_PARAM: return "param";
	case SP_TMEM: return "tmem";
	}
	return "address";
}

char *short_instruction(const char *ptx)
{
	struct text t = { 0 };

	text_add(&t, "", 0);
	for (const char *c = ptx; *c; c++) {
		size_t list = *c == '{' ? strcspn(c, "}") : 0;

		if (list > 40) {
			const char *last = memrchr(c, ',', list);
			size_t first = strcspn(c, ",");

			if (last && first < list) {
				text_printf(&t, "%.*s, ...%.*s", (int)first, c,
					(int)(c + list - last), last);
				c += list - 1;
				continue;
			}
		}
		if (*c != '\n' && *c != '\t')
			text_add(&t, c, 1);
		else if (t.n && t.at[t.n - 1] != ' ')
			text_add(&t, " ", 1);
	}
	return t.at;
}

void describe_place(struct text *t, uint32_t id)
{
	const struct site *s = site_get(id);
	const struct site_loc *l = site_headline(s->loc);

	if (l && !l->line) {
		char *name = l->function ? demangle(l->function, NAME_BARE) : NULL;

		text_printf(t, "%s", name ? name : file_base_name(l->file));
		free(name);
	} else if (l)
		text_printf(t, "%s:%u", file_base_name(l->file), l->line);
	else if (s->ptx_line)
		text_printf(t, "%s:%u", file_base_name(s->module), s->ptx_line);
}

void describe_access(struct text *t, uint32_t id)
{
	const struct site *s = site_get(id);
	const struct site_loc *at = s->loc;
	const char *op = s->ptx;

	while (at && at->inlined_at)
		at = at->inlined_at;
	if (*op == '@')
		op += strcspn(op, " \t");
	op += strspn(op, " \t");
	text_printf(t, "%s:%u %.*s", file_base_name(at ? at->file : s->module),
		at ? at->line : s->ptx_line, (int)strcspn(op, " \t;"), op);
}

void describe_places(struct text *t, const struct finding *f)
{
	const size_t from = t->n;

	text_add(t, "", 0);
	for (unsigned i = 0; i < f->nsides; i++) {
		if (!site_get(f->side[i].site)->ptx_line && !f->side[i].host)
			continue; /* the end of a CTA has no instruction */
		if (t->n > from)
			text_printf(t, " / ");
		describe_place(t, f->side[i].site);
	}
}

void describe_thread(struct text *t, const struct finding_side *s)
{
	if (*s->actor || s->host) {
		text_printf(t, "%s", *s->actor ? s->actor : "the host");
		return;
	}
	if (s->lane >= 0)
		text_printf(t, "thread (%u,%u,%u), warp %u lane %d, ", s->thread[0], s->thread[1],
			s->thread[2], s->warp, s->lane);
	else
		text_printf(t, "warp %u, ", s->warp);
	text_printf(t, "block (%u,%u,%u)", s->ctaid[0], s->ctaid[1], s->ctaid[2]);
	if (s->cta)
		text_printf(t, " (CTA %u of its cluster)", s->cta);
}

void describe_cells(struct text *t, const struct finding_cells *c)
{
	const char *comma = "";

	if (!c->columns)
		return;
	text_printf(t, "lanes ");
	for (unsigned lane = 0, end; lane < 128; lane = end + 1) {
		for (end = lane; end < 128 && c->lanes[end / 32] >> end % 32 & 1; end++)
			;
		if (end > lane + 1)
			text_printf(t, "%s%u-%u", comma, lane, end - 1);
		else if (end > lane)
			text_printf(t, "%s%u", comma, lane);
		comma = end > lane ? "," : comma;
	}
	text_printf(t, c->columns > 1 ? " of columns %u-%u" : " of column %u", c->column,
		c->column + c->columns - 1u);
}

void describe_bytes(struct text *t, const struct finding_side *s)
{
	if (!s->bytes)
		return;
	text_printf(t, "%u B at ", s->bytes);
	if (*s->variable)
		text_printf(t, "%s (", s->variable);
	text_printf(t, "%s 0x%llx", space_text(s->space), (unsigned long long)s->addr);
	if (*s->variable)
		text_printf(t, ")");
	if ((s->space == SP_SHARED || s->space == SP_TMEM) && s->peer != s->cta)
		text_printf(t, " of CTA %u", s->peer);
	if (s->cells.columns) {
		text_printf(t, ", of ");
		describe_cells(t, &s->cells);
	}
}

static bool is_mbarrier(const struct finding_barrier *b)
{
	return strstr(b->kind, "mbarrier") != NULL;
}

void describe_barrier_name(struct text *t, const struct finding_barrier *b)
{
	text_printf(t, "%s", b->kind);
	if (*b->name)
		text_printf(t, " %s", b->name);
	else if (is_mbarrier(b))
		text_printf(t, " 0x%llx", (unsigned long long)b->addr);
	else if (strstr(b->kind, "barrier"))
		text_printf(t, " %llu", (unsigned long long)b->addr);
}

void describe_barrier(struct text *t, const struct finding_barrier *b)
{
	describe_barrier_name(t, b);
	if (is_mbarrier(b))
		text_printf(t, ": in phase %llu (parity %u)", (unsigned long long)b->phase,
			(unsigned)(b->phase & 1));
	else
		text_printf(t, ": %llu completed so far", (unsigned long long)b->phase);
	if (b->expected)
		text_printf(t, ", %u of %u arrivals pending", b->pending, b->expected);
	if (is_mbarrier(b) || b->tx)
		text_printf(t, ", tx-count %lld B", (long long)b->tx);
}

unsigned blocked_warps(const struct finding *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->nwaiters; i++) {
		const struct finding_side *w = &f->waiter[i].who;
		unsigned k = 0;

		while (k < i && (f->waiter[k].who.warp != w->warp
				|| memcmp(f->waiter[k].who.ctaid, w->ctaid, sizeof w->ctaid)))
			k++;
		n += k == i;
	}
	return n;
}

/* " in mb_wait, called at pipe.cu:59", if the place is in a function that was inlined */
static void describe_caller(struct text *t, uint32_t id)
{
	const struct site_loc *l = site_headline(site_get(id)->loc), *at = l ? l->inlined_at : NULL;
	char *name;

	while (at && site_in_library(at->file))
		at = at->inlined_at;
	if (!at)
		return;
	if (l->function && *l->function) {
		name = demangle(l->function, NAME_BARE);
		text_printf(t, " in %s", name);
		free(name);
	}
	text_printf(t, ", called at %s:%u", file_base_name(at->file), at->line);
}

/* "`bar.sync 0;`", or its form in CUDA C++ */
static void describe_insertion(struct text *t, const struct finding_edit *e)
{
	char cuda[64];

	edit_cuda(e->ptx, cuda, sizeof cuda);
	if (*e->ptx)
		text_printf(t, "insert %s", *e->words ? e->words : *cuda ? cuda : e->ptx);
	else
		text_printf(t, "add the synchronization");
}

void describe_edit(struct text *t, const struct finding_edit *e)
{
	if (e->kind == EDIT_NONE)
		return;
	describe_place(t, e->site);
	describe_caller(t, e->site);
	text_printf(t, ": ");
	switch ((enum finding_edit_kind)e->kind) {
	case EDIT_NONE:
		return;
	case EDIT_CHANGE:
		if (*e->words)
			text_printf(t, "%s", e->words);
		else if (!*e->ptx && *e->form)
			text_printf(t, "change the %s of this instruction", e->form);
		else
			text_printf(t, strstr(e->ptx, "xor.b32 %parity") ? "wait with the other parity (^ 1)"
				: "change this instruction");
		break;
	case EDIT_BEFORE: case EDIT_AFTER:
		describe_insertion(t, e);
		text_printf(t, e->kind == EDIT_BEFORE ? " before this line" : " after this line");
		break;
	case EDIT_MOVE: case EDIT_MOVE_BEFORE:
		text_printf(t, "execute this instruction %s ", e->kind == EDIT_MOVE ? "after" : "before");
		describe_place(t, e->until);
		break;
	case EDIT_BETWEEN:
		describe_insertion(t, e);
		text_printf(t, " after this line and before ");
		describe_place(t, e->until);
		break;
	}
	if (e->copies > 1)
		text_printf(t, " (%u places in the PTX)", e->copies);
}

void describe_verified(struct text *t, const struct finding *f)
{
	const struct finding_edit *e = &f->edit;
	const bool two = f->also.kind != EDIT_NONE;
	const char *with = two ? "with these changes" : "with this change";
	const char *others = e->others ? " and those of other findings" : "";

	switch ((enum finding_verified)e->verified) {
	case VERIFIED_CLEAN:
		text_printf(t, "%s%s the launch is clean", with, others);
		break;
	case VERIFIED_PART:
		text_printf(t, "%s%s this finding is gone and %u other%s remain%s", with, others, e->left,
			plural_s(e->left), e->left == 1 ? "s" : "");
		break;
	case VERIFIED_NOT:
		text_printf(t, "this change alone does not make the launch clean");
		break;
	case VERIFIED_NOT_TRIED:
		if (e->untried)
			text_printf(t, "not tried: %s", edit_untried_why(e->untried));
		break;
	}
}

/* A number with commas between groups of three digits. */
static void describe_number(struct text *t, uint64_t n)
{
	if (n >= 1000) {
		describe_number(t, n / 1000);
		text_printf(t, ",%03u", (unsigned)(n % 1000));
		return;
	}
	text_printf(t, "%u", (unsigned)n);
}

void describe_occurrences(struct text *t, const struct finding *f)
{
	static const char *const where[] = { "", ", on the GPU", ", in the replay on the CPU",
		", on the GPU and in its replay on the CPU" };

	describe_number(t, f->seen);
	text_printf(t, " occurrence%s", plural_s(f->seen));
	if (f->clusters) {
		text_printf(t, ", ");
		describe_number(t, f->clusters);
		text_printf(t, " cluster%s", plural_s(f->clusters));
	}
	if (f->clusters && f->folded) {
		text_printf(t, ", ");
		describe_number(t, f->folded + 1);
		text_printf(t, " instruction pairs");
	}
	text_printf(t, "%s", where[f->backends & (SEEN_ON_GPU | SEEN_IN_REPLAY)]);
}

void describe_schedule(struct text *t, const struct finding *f)
{
	if (f->seed)
		text_printf(t, "--seed=%llu", (unsigned long long)f->seed);
	if (*f->schedule)
		text_printf(t, "%s--schedule=%s", t->n ? " " : "", f->schedule);
	if (f->reads)
		text_printf(t, "%s--reads=%s", t->n ? " " : "", finding_reads(f));
}

uint64_t describe_hides(const struct coverage *c)
{
	const bool all = c->replayed && c->replayed >= c->checked && c->replayed_ctas == c->replay_ctas
		&& !*c->not_replayed;

	return all ? 0 : c->hidden;
}

void describe_replayed(struct text *t, const struct coverage *c)
{
	const char *and = "the GPU can hide findings: ";

	for (unsigned k = 0; k < HIDDEN_COUNT; k++)
		if (describe_hides(c) >> k & 1) {
			text_printf(t, "%s%s", and, finding_hides(k)->name);
			and = ", ";
		}
	if (c->replayed)
		text_printf(t, "%sreplayed on the CPU: %llu launch%s, %llu of %llu CTAs", t->n ? "; " : "",
			(unsigned long long)c->replayed, c->replayed == 1 ? "" : "es",
			(unsigned long long)c->replayed_ctas, (unsigned long long)c->replay_ctas);
	if (*c->not_replayed)
		text_printf(t, "%snot replayed: %s", t->n ? "; " : "", c->not_replayed);
}

void describe_explored(struct text *t, const struct coverage *c)
{
	const unsigned long long n = c->schedules, shards = c->explored_shards;

	if (!n && !c->seeds)
		return;
	text_printf(t, "explored: ");
	if (c->explored_part)
		text_printf(t, "%llu schedules of more than %llu with at most %u switches", n, n,
			FINDING_SWITCHES);
	else if (n)
		text_printf(t, "all %llu schedules with at most %u switches", n, FINDING_SWITCHES);
	if (n && shards && !c->explored_part) /* of a launch, each shard has others */
		text_printf(t, " that belong to %llu shard%s", shards, shards == 1 ? "" : "s");
	else if (c->explored + c->explored_part > 1)
		text_printf(t, " in %llu launches",
			(unsigned long long)(c->explored + c->explored_part));
	if (c->seeds)
		text_printf(t, "%s%llu seeds", n ? ", and " : "", (unsigned long long)c->seeds);
}

void describe_size(struct text *t, uint64_t bytes)
{
	if (bytes >= 1024 && bytes % 1024 == 0)
		text_printf(t, "%llu KiB", (unsigned long long)(bytes / 1024));
	else
		text_printf(t, "%llu B", (unsigned long long)bytes);
}
