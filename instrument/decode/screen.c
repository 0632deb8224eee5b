/* screen: the host's version of screen.cu, for emulated GPU mode and for tests, and what a screen must
 * know of each site (record/screen.h). */
#include "events.h"

#include "libconsan/ptx/opcodes.h"

#include <stdlib.h>
#include <string.h>

/* ---- sites ---- */

static uint32_t access_word(const struct ptx_insn *i)
{
	struct event_access a = { 0 };
	uint32_t shift;

	if (i->op != OP_ld && i->op != OP_st)
		return SCREEN_HOST;
	record_access(i, &a);
	if (a.sem != SEM_WEAK || a.flags & ACCESS_MATRIX || !a.bytes || a.bytes > 32
			|| a.bytes & (a.bytes - 1))
		return SCREEN_HOST;
	shift = (uint32_t)__builtin_ctz(a.bytes) << SCREEN_DETAIL;
	if (a.mode == MODE_WRITE)
		return SCREEN_WRITE | shift;
	return (a.flags & ACCESS_NONCOHERENT ? SCREEN_NC : SCREEN_READ) | shift;
}

/* Does the site's instruction have its other record at the next site, with the number of bytes read? */
static uint32_t size_flags(const struct rewrite *code, size_t k)
{
	const struct rewrite_site *x = &code->site.at[k], *next = x + 1;
	struct plan p;

	if (k + 1 >= code->site.n || next->insn != x->insn || next->phase != PHASE_BEFORE
			|| !plan_of(next->func, next->insn, &p) || p.class != PLAN_LANES || p.nvalues != 2
			|| plan_words(&p) != 2)
		return 0;
	return SCREEN_SIZED | (p.value[1].kind == VAL_PRED ? SCREEN_UNLESS : 0);
}

static uint32_t copy_word(const struct rewrite *code, size_t k)
{
	const struct ptx_insn *i = code->site.at[k].insn;
	const uint32_t bytes = (uint32_t)i->operand[2].imm, hint = ptx_has(i, MOD_L2_cache_hint);
	uint32_t word;

	if (i->operand[2].kind != PO_IMM || !bytes || bytes > 16 || bytes & (bytes - 1))
		return SCREEN_HOST;
	word = SCREEN_COPY | (uint32_t)__builtin_ctz(bytes) << SCREEN_DETAIL;
	return i->noperands > 3 + hint ? word | SCREEN_MAYBE | size_flags(code, k) : word;
}

static uint32_t tensor_word(const struct plan *p, const struct plan_bulk *b, bool reduces,
	struct decode_screen_sites *s)
{
	const struct ptx_operand *at = &b->other->list[1];
	struct screen_tensor t = { 0 };

	if ((b->mode != MOD_NONE && b->mode != MOD_tile) || b->rows || b->offsets || at->n > SCREEN_RANKS)
		return SCREEN_HOST;
	t.ncoords = at->n;
	t.map = p->map;
	for (uint32_t k = 0; k < at->n; k++)
		if (at->list[k].kind == PO_IMM)
			t.constant[k] = (int32_t)at->list[k].imm;
		else
			t.recorded |= 1u << k;
	vec_push(&s->tensor, t);
	return (uint32_t)(b->copy == COPY_LOAD ? SCREEN_TENSOR_LOAD : reduces ? SCREEN_TENSOR_REDUCE
		: SCREEN_TENSOR_STORE)
		| (uint32_t)(s->tensor.n - 1) << SCREEN_DETAIL;
}

static uint32_t bulk_word(const struct ptx_insn *i, const struct plan *p, struct decode_screen_sites *s)
{
	const struct plan_bulk b = plan_bulk_of(i);
	uint64_t bytes = 0;

	if (b.bytes || (b.copy != COPY_LOAD && b.copy != COPY_STORE))
		return SCREEN_HOST;
	if (b.tensor)
		return tensor_word(p, &b, i->op == OP_cp_reduce_async_bulk_tensor, s);
	if (b.size->kind == PO_IMM) {
		bytes = (uint64_t)b.size->imm;
		if (!bytes)
			return SCREEN_NONE;
		if (bytes >= 1u << (32 - SCREEN_DETAIL))
			return SCREEN_HOST;
	}
	return (uint32_t)(b.copy == COPY_LOAD ? SCREEN_LOAD : i->op == OP_cp_reduce_async_bulk
		? SCREEN_REDUCE : SCREEN_STORE) | (uint32_t)bytes << SCREEN_DETAIL;
}

static uint32_t site_word(const struct rewrite *code, size_t k, struct decode_screen_sites *s)
{
	const struct rewrite_site *x = &code->site.at[k];
	const enum ptx_effect effect = ptx_effect_of(x->insn->op);
	struct plan p;

	if (effect == EF_TENSORMAP || x->insn->op == OP_fence_proxy_tensormap)
		return SCREEN_HOST;
	if (x->phase == PHASE_GLOBAL_AFTER)
		return SCREEN_HOST;
	if (x->phase != PHASE_GLOBAL)
		return SCREEN_NONE;
	if (!plan_global_of(x->func, x->insn, &p))
		return SCREEN_HOST;
	switch (effect) {
	case EF_READ: case EF_WRITE:
		return p.sync || p.class != PLAN_GLOBAL ? SCREEN_HOST : access_word(x->insn);
	case EF_CP_ASYNC:
		return copy_word(code, k);
	case EF_BULK:
		return bulk_word(x->insn, &p, s);
	default:
		return SCREEN_HOST;
	}
}

void decode_screen_sites(const struct rewrite *code, struct decode_screen_sites *s)
{
	s->n = (uint32_t)code->site.n;
	s->word = base_alloc((code->site.n + 1) * sizeof *s->word);
	for (size_t k = 1; k < code->site.n; k++)
		s->word[k] = site_word(code, k, s);
}

void decode_screen_sites_free(struct decode_screen_sites *s)
{
	free(s->word);
	vec_free(&s->tensor);
}

/* ---- the screen ---- */

struct screen {
	const struct screen_job *j;
	uint32_t *next;            /* of each chunk, the number of its lane's next one; 0: none */
	uint32_t chunk;
	uint32_t site;             /* of the record */
	uint64_t page;             /* the number + 1 of the page found last; 0: none */
	uint32_t slot;             /* its place in the table */
};

static void refuse(const struct screen *s, enum screen_why why, uint64_t addr)
{
	struct screen_result *r = s->j->result;

	if (!r->why) {
		r->site = s->site;
		r->addr = addr;
	}
	r->why |= why;
}

/* False: there is no space. */
static bool find_page(struct screen *s, uint64_t page)
{
	const struct screen_job *j = s->j;
	uint32_t at = screen_place(page);

	if (s->page == page + 1)
		return true;
	for (uint32_t k = 0; k < SCREEN_PROBES; k++, at++) {
		uint64_t *key = &j->key[at & (j->pages - 1)];

		if (*key && *key != page + 1)
			continue;
		*key = s->page = page + 1;
		s->slot = at & (j->pages - 1);
		return true;
	}
	refuse(s, SCREEN_FULL, page << SCREEN_PAGE_SHIFT);
	return false;
}

static void note_place(struct screen *s, uint32_t first, uint32_t end, bool writes)
{
	const struct screen_job *j = s->j;
	uint16_t *seen = j->seen + (size_t)s->slot * SCREEN_PAGE_SEEN + (writes ? SCREEN_PAGE_HALVES : 0);

	for (uint32_t k = first; k < end; k++)
		seen[k] = j->place[s->site];
}

/* Bytes [addr, addr + bytes). */
static void touch(struct screen *s, uint64_t addr, uint64_t bytes, uint32_t tag)
{
	const uint64_t end = addr + bytes;

	for (uint64_t at = addr & ~15ull; at < end; at += 16) {
		const uint32_t in = (uint32_t)at % (1u << SCREEN_PAGE_SHIFT);
		const uint32_t from = at < addr ? (uint32_t)(addr - at) : 0;
		const uint32_t to = end - at < 16 ? (uint32_t)(end - at) : 16;
		uint64_t *entry;

		if (!find_page(s, at >> SCREEN_PAGE_SHIFT))
			return;
		s->j->entered[s->slot] = 1;
		entry = s->j->entry + (size_t)s->slot * SCREEN_PAGE_WORDS + in / 4;
		for (uint32_t k = 0; k < 4; k++)
			entry[k] = screen_merge_word(entry[k], screen_add(tag, from, to, k));
		if (s->j->seen)
			note_place(s, (in + from) / 2, (in + to + 1) / 2, tag & SCREEN_WRITES);
	}
}

/* One unit. */
static void set_mark(struct screen *s, uint64_t addr, enum screen_mark mark)
{
	const struct screen_job *j = s->j;
	const uint32_t unit = (uint32_t)(addr >> 4) % SCREEN_PAGE_UNITS, bit = screen_mark_bits(unit, 1);
	uint32_t *word;

	if (!find_page(s, addr >> SCREEN_PAGE_SHIFT))
		return;
	word = j->mark + (size_t)s->slot * SCREEN_PAGE_MARKS + mark * SCREEN_MARK_WORDS + unit / 32;
	if (mark == SCREEN_MARK_WRITTEN && *word & bit)
		refuse(s, SCREEN_RACE, addr);
	*word |= bit;
	if (j->seen)
		j->marked[((size_t)s->slot * 2 + (mark != SCREEN_MARK_READ)) * SCREEN_PAGE_UNITS + unit] =
			j->place[s->site];
}

/* Whole units get marks if it does not matter which thread accesses them. */
static void enter(struct screen *s, uint64_t addr, uint64_t bytes, uint32_t kind, uint32_t thread)
{
	const enum screen_mark mark = screen_mark_of(kind);
	uint64_t n = mark != SCREEN_MARKS && !(addr & 15) ? bytes & ~15ull : 0;

	for (uint64_t k = 0; k < n; k += 16)
		set_mark(s, addr + k, mark);
	if (n < bytes)
		touch(s, addr + n, bytes - n, screen_tag(kind, thread));
}

/* False: some are outside of all allocations. */
static bool inside(const struct screen *s, uint64_t addr, uint64_t bytes, uint32_t *which)
{
	*which = s->j->range ? screen_range_of(s->j->range, s->j->nranges, addr, bytes) : 0;
	if (*which == UINT32_MAX)
		refuse(s, SCREEN_OUTSIDE, addr);
	return *which != UINT32_MAX;
}

static const uint32_t *chunk_at_number(const struct screen_job *j, uint32_t k)
{
	return (const void *)((const char *)j->pool + (size_t)k * RECORD_CHUNK_BYTES);
}

/* The other record of a copy; NULL: not known. after: where the next record of its chunk would be; NULL: the
 * chunk ends. */
static const uint32_t *other_record(const struct screen *s, const uint32_t *r, const uint32_t *after)
{
	const uint32_t *other = after && *after ? after : s->next[s->chunk]
		? chunk_at_number(s->j, s->next[s->chunk]) + 4 : NULL;

	return other && screen_is_other(r, other) ? other : NULL;
}

static void screen_access(struct screen *s, const uint32_t *r, uint32_t word, const uint32_t *after,
	uint32_t thread)
{
	const uint32_t bytes = 1u << (word >> SCREEN_DETAIL & 15), first = (uint32_t)__builtin_ctz(r[1]);
	const bool copies = (word & SCREEN_KIND) == SCREEN_COPY;
	const uint32_t *other = copies && word & SCREEN_SIZED ? other_record(s, r, after) : NULL;
	uint32_t before = 0, which;

	if (copies && word & SCREEN_MAYBE && !other && s->j->seen) {
		refuse(s, SCREEN_INEXACT, 0);
		return;
	}
	for EACH_LANE(l, r[1]) {
		const uint32_t n = copies ? screen_copied(word, bytes, other, before++) : bytes;
		const uint64_t addr = screen_address(r, l, first);

		if (n && (addr & (bytes - 1) || n > bytes))
			refuse(s, SCREEN_ALIGN, addr);
		else if (n && inside(s, addr, n, &which))
			enter(s, addr, n, word & SCREEN_KIND, thread + l);
	}
}

static void screen_bulk(struct screen *s, const uint32_t *r, uint32_t word, uint32_t lane_words)
{
	uint32_t before = 0, which;

	for EACH_LANE(l, r[1]) {
		const uint32_t *w = screen_words(r, lane_words, before++);
		const uint64_t addr = w[0] | (uint64_t)w[1] << 32;
		const uint32_t bytes = word >> SCREEN_DETAIL ? word >> SCREEN_DETAIL : w[2];

		(void)l;
		if (addr % 16 || bytes % 16 || bytes > SCREEN_MOST_BYTES)
			refuse(s, SCREEN_ALIGN, addr);
		else if (bytes && inside(s, addr, bytes, &which))
			enter(s, addr, bytes, word & SCREEN_KIND, 0);
	}
}

static void screen_tensor_lane(struct screen *s, const struct screen_tensor *t, const uint32_t *w,
	uint32_t kind)
{
	const struct screen_job *j = s->j;
	int32_t at[SCREEN_RANKS];
	const uint64_t name = screen_copy(t, w, at);
	const uint32_t map = screen_map_of(j->map, j->nmaps, name, decode_params(j->pool), j->param_bytes);
	uint32_t rows, in = 0, which, bytes;
	bool any = false;
	uint64_t addr;

	if (map == j->nmaps || !screen_box(&j->map[map], t, at, kind, &rows)) {
		refuse(s, SCREEN_MAP, name);
		return;
	}
	for (uint32_t k = 0; k < rows; k++) {
		if (!screen_row(&j->map[map], at, k, kind, &addr, &bytes) || !inside(s, addr, bytes, &which))
			continue;
		if (any && which != in)    /* rows that are adjacent count as one piece */
			refuse(s, SCREEN_OUTSIDE, addr);
		any = true;
		in = which;
		enter(s, addr, bytes, kind, 0);
	}
}

static void screen_record(struct screen *s, const uint32_t *r, const uint32_t *after, uint32_t thread)
{
	const struct screen_job *j = s->j;
	const uint32_t word = j->site[s->site], lane_words = j->digest[s->site] & 0xfff;
	uint32_t before = 0;

	switch ((enum screen_kind)(word & SCREEN_KIND)) {
	case SCREEN_NONE:
		break;
	case SCREEN_READ: case SCREEN_NC: case SCREEN_WRITE: case SCREEN_COPY:
		screen_access(s, r, word, after, thread);
		break;
	case SCREEN_LOAD: case SCREEN_STORE: case SCREEN_REDUCE:
		screen_bulk(s, r, word, lane_words);
		break;
	case SCREEN_TENSOR_LOAD: case SCREEN_TENSOR_STORE: case SCREEN_TENSOR_REDUCE:
		for EACH_LANE(l, r[1]) {
			(void)l;
			screen_tensor_lane(s, &j->tensor[word >> SCREEN_DETAIL],
				screen_words(r, lane_words, before++), word & SCREEN_KIND);
		}
		break;
	case SCREEN_HOST:
		refuse(s, SCREEN_OTHER, 0);
	}
}

static void screen_chunk(struct screen *s)
{
	const struct screen_job *j = s->j;
	const uint32_t *unit = chunk_at_number(j, s->chunk);
	const struct record_chunk *c = (const void *)unit;
	const uint32_t thread = c->cta * j->threads + (c->warp_lane & ~31u);

	if (c->cta >= j->nctas || c->warp_lane >= j->threads)
		refuse(s, SCREEN_DAMAGED, 0);
	for (uint32_t at = 1, end; at < RECORD_CHUNK_UNITS && !j->result->why; at = end) {
		const uint32_t *r = unit + 4 * (size_t)at;

		if (!*r)
			break;
		s->site = *r >> RECORD_SITE_SHIFT;
		end = UINT32_MAX;
		if (s->site && s->site < j->nsites && r[1])
			end = at + digest_units(j->digest[s->site], *r & RECORD_AFFINE,
				(uint32_t)__builtin_popcount(r[1]));
		if (end > RECORD_CHUNK_UNITS) {
			refuse(s, SCREEN_DAMAGED, 0);
			break;
		}
		screen_record(s, r, end < RECORD_CHUNK_UNITS ? unit + 4 * (size_t)end : NULL, thread);
	}
}

static void add_edge(const struct screen_job *j, uint64_t addr, uint32_t key)
{
	if (j->result->edges++ < j->most_edges)
		j->edge[j->result->edges - 1] = (struct screen_edge){ addr, key, 0 };
}

static bool is_marked(const struct screen_job *j, uint32_t slot, enum screen_mark mark, uint32_t unit)
{
	return j->mark[(size_t)slot * SCREEN_PAGE_MARKS + mark * SCREEN_MARK_WORDS + unit / 32] >> unit % 32 & 1;
}

/* The entry of a half word, with its unit's marks. */
static uint32_t whole_entry(const struct screen_job *j, uint32_t slot, uint32_t half)
{
	const uint64_t word = j->entry[(size_t)slot * SCREEN_PAGE_WORDS + half / 2];

	return screen_with_marks((uint32_t)(word >> half % 2 * 32),
		is_marked(j, slot, SCREEN_MARK_READ, half / 8), is_marked(j, slot, SCREEN_MARK_WRITTEN, half / 8),
		is_marked(j, slot, SCREEN_MARK_REDUCED, half / 8));
}

static uint32_t key_of(const struct screen_job *j, uint32_t slot, uint32_t half, uint32_t entry)
{
	const uint16_t *seen = j->seen + (size_t)slot * SCREEN_PAGE_SEEN + half;
	const uint16_t *marked = j->marked + (size_t)slot * 2 * SCREEN_PAGE_UNITS + half / 8;
	const bool wrote = is_marked(j, slot, SCREEN_MARK_WRITTEN, half / 8)
		|| is_marked(j, slot, SCREEN_MARK_REDUCED, half / 8);

	return screen_edge_key(entry, is_marked(j, slot, SCREEN_MARK_READ, half / 8) ? marked[0] : seen[0],
		wrote ? marked[SCREEN_PAGE_UNITS] : seen[SCREEN_PAGE_HALVES]);
}

static void find_edges(struct screen *s, uint32_t slot, uint64_t addr)
{
	const struct screen_job *j = s->j;
	uint32_t before = 0;

	for (uint32_t k = 0; k < SCREEN_PAGE_HALVES; k++) {
		const uint32_t entry = whole_entry(j, slot, k), key = key_of(j, slot, k, entry);

		if (entry & SCREEN_PART)
			refuse(s, SCREEN_INEXACT, addr + 2 * k);
		if (!screen_alike(j->like, key, before))
			add_edge(j, addr + 2 * k, key);
		before = key;
	}
	if (before)
		add_edge(j, addr + 2 * SCREEN_PAGE_HALVES, 0);
}

static void scan_page(struct screen *s, uint32_t slot, uint64_t addr)
{
	for (uint32_t k = 0; k < SCREEN_PAGE_HALVES; k++) {
		if (!screen_is_bad(whole_entry(s->j, slot, k)))
			continue;
		refuse(s, SCREEN_RACE, addr + 2 * k);
		return;
	}
	if (s->j->seen)
		find_edges(s, slot, addr);
}

/* A lane takes chunks in ascending order of their numbers. */
static uint32_t *find_next(const struct screen_job *j)
{
	uint32_t *next = base_alloc(((size_t)j->chunks + 2) * sizeof *next);
	struct number_map newest = { 0 };

	for (uint32_t k = j->chunks; k; k--) {
		const uint32_t *head = chunk_at_number(j, k);
		const uint64_t lane = ((uint64_t)head[0] << 32 | head[1]) + 1;

		next[k] = (uint32_t)number_map_get(&newest, lane);
		number_map_put(&newest, lane, k);
	}
	number_map_free(&newest);
	return next;
}

void decode_screen(const struct screen_job *j)
{
	struct screen s = { .j = j, .next = find_next(j) };

	*j->result = (struct screen_result){ 0 };
	for (s.chunk = 1; s.chunk <= j->chunks && !j->result->why; s.chunk++)
		screen_chunk(&s);
	free(s.next);
	s.site = 0;
	for (uint32_t k = 0; k < j->pages && !j->result->why; k++)
		if (j->key[k])
			scan_page(&s, k, (j->key[k] - 1) << SCREEN_PAGE_SHIFT);
}
