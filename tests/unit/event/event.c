/* event files: events that several threads save are read unchanged; truncated and damaged files
 * lose only what is damaged; the event queue. Long because all tests share a generator of events. */
#include "libconsan/event/code.h"
#include "libconsan/event/fields.h"
#include "libconsan/event/io.h"
#include "libconsan/event/site.h"
#include "libconsan/event/valid.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NCTAS 2
#define WARPS 4

static _Thread_local uint64_t random_state;

static uint32_t roll(uint32_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % n;
}

static const struct ev_symbol symbols[] = { { "tile", 0, 1024 }, { "full", 1024, 16 } };
static const struct launch_info launch = {
	.kernel = "_Z1kv", .id = 3, .grid = { 8, 1, 1 }, .block = { 128, 1, 1 },
	.cluster = { 2, 1, 1 }, .shared_static = 1040, .sm = 90, .seed = 1ull << 60,
	.symbols = symbols, .nsymbols = 2,
};

static _Thread_local bool small; /* numbers that are likely to be valid for shared memory */

struct made {           /* an event, and memory for its arrays */
	struct event e;
	uint64_t lanes[32], sources[32];
	struct ev_span spans[20];
	struct ev_gspan gspans[4];
	struct ev_area areas[5];
	uint32_t regs[2][8];
	unsigned nregs;
};

static void make_lanes(struct made *m, struct ev_lanes *at)
{
	at->stride = (int32_t)roll(256) - 128;
	at->base = (uint64_t)roll(1u << 31) << roll(32);
	for (unsigned l = 0; l < 32; l++)
		m->lanes[l] = small ? roll(4096) : (uint64_t)roll(1u << 31) << roll(33);
	if (small) {
		at->stride = (int32_t)roll(64);
		at->base = roll(4096);
	}
	if (!roll(3))
		at->lane = m->lanes;
}

static void make_spans(struct made *m, struct ev_spans *s)
{
	if (roll(5))
		return;
	s->at = m->spans;
	s->n = (uint16_t)(1 + roll(20));
	for (unsigned i = 0; i < s->n; i++)
		m->spans[i] = (struct ev_span){ roll(small ? 4096 : 1u << 20), roll(512) };
}

static void make_gspans(struct made *m, struct ev_gspans *s)
{
	if (roll(5))
		return;
	s->at = m->gspans;
	s->n = (uint16_t)(1 + roll(4));
	for (unsigned i = 0; i < s->n; i++)
		m->gspans[i] = (struct ev_gspan){ (uint64_t)roll(1u << 31) << 16, roll(512) };
}

static void make_areas(struct made *m, struct ev_areas *s)
{
	s->at = m->areas;
	s->n = (uint16_t)roll(6);
	for (unsigned i = 0; i < s->n; i++) {
		struct ev_area *a = &m->areas[i];

		for (unsigned k = 0; k < 4; k++)
			a->lanes[k] = roll(3) ? UINT32_MAX * roll(2) : roll(1u << 31) * 2;
		a->column = (uint16_t)roll(256);
		a->columns = (uint16_t)roll(257);
		a->ctas = (uint16_t)roll(1 << NCTAS);
		a->mode = (enum ev_mode)(1 + roll(3));
		a->operand = (enum ev_operand)roll(5);
	}
}

static void make_regs(struct made *m, struct ev_regs *regs)
{
	uint32_t *at = m->regs[m->nregs++];

	if (roll(5))
		return;
	regs->at = at;
	regs->n = (uint16_t)(1 + roll(8));
	for (unsigned i = 0; i < regs->n; i++)
		at[i] = roll(4096);
}

static void make_field(struct made *m, const struct event_field *f, const uint32_t *site,
	unsigned nsites)
{
	struct event *e = &m->e;
	void *at = (char *)e + f->at;

	switch ((enum event_type)f->type) {
	case TYPE_flag: event_set_number(e, f, roll(2)); break;
	case TYPE_cta: event_set_number(e, f, roll(NCTAS)); break;
	case TYPE_site: event_set_number(e, f, site[roll(nsites)]); break;
	case TYPE_tx: event_set_number(e, f, (uint64_t)roll(1u << 20) - (1 << 19)); break;
	case TYPE_address: event_set_number(e, f, (uint64_t)roll(1u << 31) << roll(32)); break;
	case TYPE_offset: event_set_number(e, f, roll(2) ? EV_NO_MBARRIER : roll(4096)); break;
	case TYPE_lanes: make_lanes(m, at); break;
	case TYPE_sources:
		for (unsigned l = 0; l < 32; l++)
			m->sources[l] = roll(small ? 4096 : 1u << 31);
		if (!roll(6))
			*(const uint64_t **)at = m->sources;
		break;
	case TYPE_spans: make_spans(m, at); break;
	case TYPE_gspans: make_gspans(m, at); break;
	case TYPE_areas: make_areas(m, at); break;
	case TYPE_regs: make_regs(m, at); break;
	case TYPE_text:
		if (!roll(8))
			*(const char **)at = "a text of the kernel";
		break;
	case TYPE_parts:
		for (unsigned i = 0; i < 6; i++)
			((struct ev_parts *)at)->at[i] = (uint16_t)(i * e->wgmma.spans.n / 5);
		break;
	case TYPE_unwritten: case TYPE_stored: break;
	case TYPE_mask: event_set_number(e, f, roll(small ? 4 : 1u << 31)); break;
	default: event_set_number(e, f, roll(f->bytes == 1 ? 4 : small ? 16 : 1u << 31));
	}
}

/* Any event, valid or not */
static void make_any(struct made *m, const uint32_t *site, unsigned nsites)
{
	const struct event_fields *k;
	struct event *e = &m->e;

	memset(m, 0, sizeof *m);
	small = roll(2);
	e->kind = (enum ev_kind)roll(EV_COUNT);
	e->cta = (uint16_t)roll(NCTAS);
	e->warp = (uint16_t)roll(WARPS);
	e->lanes = roll(3) ? UINT32_MAX : 1u << roll(32);
	e->site = site[roll(nsites)];
	k = event_fields(e->kind);
	for (unsigned i = 0; i < k->n; i++)
		make_field(m, &k->at[i], site, nsites);
	if (e->kind == EV_TCGEN05)
		e->tcgen05.part = (uint16_t)roll(e->tcgen05.spans.n + 1u);
}

/* The next event of a cluster whose CTAs do not end */
static void make(struct made *m, struct event_valid *v, const uint32_t *site, unsigned nsites)
{
	struct event_valid was;

	for (unsigned r = 0; r < NCTAS; r++)
		if (!v->cta[r].begun) {
			memset(m, 0, sizeof *m);
			m->e = (struct event){ .kind = EV_CTA_BEGIN, .cta = (uint16_t)r, .lanes = 1,
				.cta_begin = { .linear_id = r, .threads = 32 * WARPS, .shared_bytes = 65536 } };
			cr_assert_null(event_wrong(v, &m->e));
			return;
		}
	do {
		was = *v;
		make_any(m, site, nsites);
	} while (m->e.kind == EV_CTA_END || m->e.kind == EV_THREAD_EXIT || event_wrong(&was, &m->e));
}

static void assert_same_lanes(const uint64_t *a, const uint64_t *b, uint32_t lanes)
{
	cr_assert_eq(!a, !b);
	for (unsigned l = 0; a && l < 32; l++)
		cr_assert(!(lanes >> l & 1) || a[l] == b[l]);
}

static void assert_same_list(const void *a, unsigned na, const void *b, unsigned nb, size_t size)
{
	cr_assert_eq(na, nb);
	cr_assert(!na || !memcmp(a, b, na * size));
}

static void assert_same_field(const struct event *x, const struct event *y,
	const struct event_field *f)
{
	const void *a = event_field(x, f), *b = event_field(y, f);
	const struct ev_lanes *la = a, *lb = b;
	const struct ev_spans *sa = a, *sb = b;
	const struct ev_gspans *ga = a, *gb = b;
	const struct ev_areas *aa = a, *ab = b;
	const struct ev_regs *ra = a, *rb = b;
	const uint64_t *const *from_a = a, *const *from_b = b;
	const char *const *text_a = a, *const *text_b = b;

	switch ((enum event_type)f->type) {
	case TYPE_site:
		cr_assert_str_eq(site_get((uint32_t)event_number(x, f))->ptx,
			site_get((uint32_t)event_number(y, f))->ptx);
		break;
	case TYPE_lanes:
		cr_assert_eq(la->base, lb->base);
		cr_assert_eq(la->stride, lb->stride);
		assert_same_lanes(la->lane, lb->lane, x->lanes);
		break;
	case TYPE_sources: assert_same_lanes(*from_a, *from_b, x->lanes); break;
	case TYPE_spans: assert_same_list(sa->at, sa->n, sb->at, sb->n, sizeof *sa->at); break;
	case TYPE_gspans: assert_same_list(ga->at, ga->n, gb->at, gb->n, sizeof *ga->at); break;
	case TYPE_areas: assert_same_list(aa->at, aa->n, ab->at, ab->n, sizeof *aa->at); break;
	case TYPE_regs: assert_same_list(ra->at, ra->n, rb->at, rb->n, sizeof *ra->at); break;
	case TYPE_text: cr_assert_str_eq(*text_a ? *text_a : "", *text_b ? *text_b : ""); break;
	case TYPE_parts: cr_assert_eq(memcmp(a, b, sizeof(struct ev_parts)), 0); break;
	default:
		cr_assert_eq(event_number(x, f), event_number(y, f), "%s of %s", f->name,
			event_name(x->kind));
	}
}

static void assert_same(const struct event *a, const struct event *b)
{
	const struct event_fields *k = event_fields(a->kind);

	cr_assert_eq(a->kind, b->kind);
	cr_assert_eq(a->cta, b->cta);
	cr_assert_eq(a->warp, b->warp);
	cr_assert_eq(a->lanes, b->lanes);
	cr_assert_str_eq(site_get(a->site)->ptx, site_get(b->site)->ptx);
	for (unsigned i = 0; i < k->n; i++)
		assert_same_field(a, b, &k->at[i]);
}

/* The order of fields that fields.h describes */
Test(event, fields)
{
	for (unsigned kind = 0; kind < EV_COUNT; kind++) {
		const struct event_fields *k = event_fields((enum ev_kind)kind);

		for (unsigned i = 0; i < k->n; i++)
			cr_expect_eq(field_is_number(&k->at[i]), i >= k->narrays, "%s of %s", k->at[i].name,
				event_name((enum ev_kind)kind));
		cr_expect_leq(event_header.n + k->n, 64, "a bit for each in event_code.c");
	}
}

static void make_sites(uint32_t site[16])
{
	for (unsigned i = 0; i < 16; i++) {
		struct site_loc outer = { .file = "a.cu", .line = i, .col = 1 };
		struct site_loc inner = { "b.h", i + 100, 2, "f", &outer, 0 };
		char ptx[24];
		struct site s = { .kernel = "k", .module = "m", .ptx_line = i, .ptx = ptx,
			.loc = i % 2 ? &inner : NULL };

		snprintf(ptx, sizeof ptx, "op%u;", i);
		site[i] = site_add(&s);
	}
}

static char *temp_path(void)
{
	char name[] = "/tmp/consan-test-XXXXXX";
	int fd = mkstemp(name);

	cr_assert_geq(fd, 0);
	close(fd);
	return base_strdup(name);
}

/* ---- reading: the events are compared with those of the same random numbers ---- */

struct expected {
	uint32_t site[16];
	uint64_t at[4];          /* the state of the random numbers of each cluster */
	struct event_valid valid[4];
	unsigned seen[4], begun, ended, whole, launches, launch_ends, unchecked;
};

static struct expected want;

static void on_launch(void *user, const struct launch_info *l)
{
	(void)user;
	want.launches++;
	cr_assert_eq(l->id, 3);
	cr_assert_str_eq(l->kernel, "_Z1kv");
	cr_assert_eq(l->seed, 1ull << 60);
	cr_assert_eq(l->nsymbols, 2);
	cr_assert_str_eq(l->symbols[1].name, "full");
	cr_assert_eq(l->symbols[1].addr, 1024);
	cr_assert_eq(l->cluster[0], 2);
}

struct one {
	struct event_sink sink;
	unsigned cluster;
};

static void one_event(struct event_sink *sink, const struct event *e)
{
	unsigned k = ((struct one *)sink)->cluster;
	struct made m;

	random_state = want.at[k];
	make(&m, &want.valid[k], want.site, 16);
	want.at[k] = random_state;
	want.seen[k]++;
	assert_same(&m.e, e);
}

static struct event_sink *on_begin(void *user, const struct cluster_info *c)
{
	struct one *o = base_alloc(sizeof *o);

	(void)user;
	cr_assert_eq(c->nctas, NCTAS);
	cr_assert_eq(c->warps_per_cta, WARPS);
	cr_assert_lt(c->id, 4);
	want.begun++;
	o->sink.event = one_event;
	o->cluster = c->id;
	return &o->sink;
}

static void on_end(void *user, const struct cluster_info *c, struct event_sink *sink,
	bool whole)
{
	(void)user;
	(void)c;
	want.ended++;
	want.whole += whole;
	free(sink);
}

static void on_launch_end(void *user, const struct launch_info *l, uint32_t last,
	const char *unchecked)
{
	(void)user;
	(void)l;
	want.launch_ends++;
	want.unchecked += *unchecked || last != UINT32_MAX;
}

static const struct event_reader reader = {
	.launch = on_launch, .cluster_begin = on_begin, .cluster_end = on_end,
	.launch_end = on_launch_end,
};

struct job {
	struct event_writer *w;
	unsigned cluster, events;
};

/* The reader makes the events again. */
static void begin_numbers(unsigned cluster)
{
	const struct cluster_info c = { &launch, cluster, NCTAS, WARPS, NULL };

	want.at[cluster] = cluster * 77 + 1;
	memset(&want.valid[cluster], 0, sizeof want.valid[cluster]);
	cr_assert_null(event_valid_begin(&want.valid[cluster], &c));
}

/* Each thread has random numbers of its own. */
static void save_cluster(const struct job *j)
{
	struct cluster_info c = { &launch, j->cluster, NCTAS, WARPS, NULL };
	struct event_sink *sink = event_writer_begin(j->w, &c, NULL);
	struct event_valid v = { 0 };
	struct made m;

	cr_assert(sink->want_global);
	begin_numbers(j->cluster);
	random_state = want.at[j->cluster];
	cr_assert_null(event_valid_begin(&v, &c));
	for (unsigned i = 0; i < j->events; i++) {
		make(&m, &v, want.site, 16);
		sink->event(sink, &m.e);
	}
	cr_assert_null(event_writer_end(sink));
}

static char *write_four(unsigned events)
{
	struct consan_err e = { 0 };
	char *path = temp_path();
	struct event_writer *w = event_writer_open(path, &e);

	cr_assert_not_null(w, "%s", e.text);
	make_sites(want.site);
	event_writer_launch(w, &launch);
	for (unsigned k = 0; k < 4; k++)
		save_cluster(&(struct job){ w, k, events });
	event_writer_launch_end(w, &launch, UINT32_MAX, "");
	cr_assert(event_writer_close(w, &e));
	return path;
}

Test(event_io, round_trip)
{
	struct event_read_stats stats;
	struct consan_err e = { 0 };
	char *path = write_four(30000); /* more than one chunk a cluster */

	cr_assert(event_is_stream(path));
	cr_assert(event_read(path, &reader, &stats, &e), "%s", e.text);
	for (unsigned k = 0; k < 4; k++)
		cr_assert_eq(want.seen[k], 30000);
	cr_assert_eq(stats.events, 120000);
	cr_assert_eq(stats.damaged, 0);
	cr_assert_eq(stats.incomplete, 0);
	cr_assert(want.begun == 4 && want.ended == 4 && want.whole == 4);
	cr_assert(want.launches == 1 && want.launch_ends == 1 && !want.unchecked);
	unlink(path);
	free(path);
}

static void truncate_to(const char *path, long bytes)
{
	cr_assert_eq(truncate(path, bytes), 0);
}

Test(event_io, truncated_anywhere)
{
	struct event_read_stats stats;
	char *path = write_four(2000);
	struct stat st;

	stat(path, &st);
	for (long n = st.st_size - 1; n > 60; n -= 1 + n / 9) {
		struct consan_err e = { 0 };

		truncate_to(path, n);
		for (unsigned k = 0; k < 4; k++)
			begin_numbers(k);
		memset(want.seen, 0, sizeof want.seen);
		if (!event_read(path, &reader, &stats, &e)) {
			cr_assert_eq(e.code, CONSAN_ERR_FORMAT);
			continue;
		}
		cr_assert_eq(want.begun, want.ended);
		cr_assert_eq(want.launches, want.launch_ends);
	}
	unlink(path);
	free(path);
}

Test(event_io, a_flipped_byte_costs_one_chunk)
{
	struct event_read_stats stats;
	struct consan_err e = { 0 };
	char *path = write_four(2000);
	int fd = open(path, O_RDWR);
	struct stat st;
	char byte;

	fstat(fd, &st);
	cr_assert_eq(pread(fd, &byte, 1, st.st_size / 2), 1);
	byte ^= 0x10;
	cr_assert_eq(pwrite(fd, &byte, 1, st.st_size / 2), 1);
	close(fd);
	cr_assert(event_read(path, &reader, &stats, &e), "%s", e.text);
	cr_assert_geq(stats.damaged, 1);
	cr_assert_geq(want.whole, 2);
	cr_assert_eq(want.begun, want.ended);
	unlink(path);
	free(path);
}

Test(event_io, damaged_events_are_rejected)
{
	struct event_past *past = base_alloc(sizeof *past);
	struct event_arrays arrays = { 0 };
	unsigned char bytes[64];
	struct event e;

	random_state = 5;
	for (unsigned round = 0; round < 20000; round++) {
		struct code_reader r = { bytes, bytes + sizeof bytes, false };

		for (size_t i = 0; i < sizeof bytes; i++)
			bytes[i] = (unsigned char)roll(256);
		bytes[0] = (unsigned char)roll(EV_COUNT);
		while (r.at < r.end && event_decode(&r, past, &arrays, &e))
			;
		cr_assert_leq(r.at, r.end);
	}
	event_arrays_free(&arrays);
	free(past);
}

Test(event_io, not_ours)
{
	struct event_read_stats stats;
	struct consan_err e = { 0 };
	char *path = temp_path();
	FILE *f = fopen(path, "w");

	fprintf(f, "CSEV, but not really a stream of events CSEV\n");
	fclose(f);
	cr_assert_not(event_read(path, &reader, &stats, &e));
	cr_assert_eq(e.code, CONSAN_ERR_FORMAT);
	unlink(path);
	e = (struct consan_err){ 0 };
	cr_assert_not(event_read(path, &reader, &stats, &e));
	cr_assert_eq(e.code, CONSAN_ERR_IO);
	cr_assert_not(event_is_stream(path));
	free(path);
}

static unsigned passed_on;

static void count_event(struct event_sink *sink, const struct event *e)
{
	(void)sink;
	(void)e;
	__atomic_add_fetch(&passed_on, 1, __ATOMIC_RELAXED);
}

struct same_job {
	struct event_writer *w;
	unsigned cluster;
	uint32_t site;
};

static void *save_same(void *arg)
{
	struct same_job *j = arg;
	struct event_sink next = { count_event, false };
	struct cluster_info c = { &launch, j->cluster, NCTAS, WARPS, NULL };
	struct event_sink *sink = event_writer_begin(j->w, &c, &next);
	struct event e = { .kind = EV_ACCESS, .lanes = 1, .site = j->site,
		.access = { .space = SP_SHARED, .mode = MODE_READ } };

	cr_assert_not(sink->want_global);
	sink->event(sink, &(struct event){ .kind = EV_CTA_BEGIN, .lanes = 1, .site = j->site,
		.cta_begin = { .threads = 32 * WARPS, .shared_bytes = 65536 } });
	for (unsigned i = 1; i < 5000; i++) {
		e.access.at.base = i;
		sink->event(sink, &e);
	}
	cr_assert_eq(event_writer_end(sink), &next);
	return NULL;
}

Test(event_io, from_several_threads)
{
	struct event_read_stats stats;
	struct event_reader none = { 0 };
	struct consan_err e = { 0 };
	char *path = temp_path();
	struct event_writer *w = event_writer_open(path, &e);
	struct same_job job[4];
	pthread_t t[4];
	uint32_t site[16];

	make_sites(site);
	event_writer_launch(w, &launch);
	for (unsigned k = 0; k < 4; k++) {
		job[k] = (struct same_job){ w, k, site[k] };
		pthread_create(&t[k], NULL, save_same, &job[k]);
	}
	for (unsigned k = 0; k < 4; k++)
		pthread_join(t[k], NULL);
	event_writer_launch_end(w, &launch, UINT32_MAX, "");
	cr_assert(event_writer_close(w, &e));
	cr_assert(event_read(path, &none, &stats, &e), "%s", e.text);
	cr_assert_eq(stats.events, 20000);
	cr_assert_eq(stats.clusters, 4);
	cr_assert_eq(stats.incomplete + stats.damaged, 0);
	cr_assert_eq(passed_on, 20000);
	unlink(path);
	free(path);
}

/* ---- events that no producer makes ---- */

static void on_no_event(struct event_sink *sink, const struct event *e)
{
	(void)sink;
	(void)e;
}

static struct event_sink *any_begin(void *user, const struct cluster_info *c)
{
	(void)c;
	return user;
}

/* Reads the events of one cluster of `launch`; returns the stats. */
static struct event_read_stats read_back(const struct launch_info *l, const struct cluster_info *c,
	const struct event *events, unsigned n)
{
	struct event_sink none = { on_no_event, true };
	const struct event_reader to = { .user = &none, .cluster_begin = any_begin };
	struct event_read_stats stats;
	struct consan_err e = { 0 };
	char *path = temp_path();
	struct event_writer *w = event_writer_open(path, &e);
	struct event_sink *sink;

	event_writer_launch(w, l);
	sink = event_writer_begin(w, c, NULL);
	for (unsigned i = 0; i < n; i++)
		sink->event(sink, &events[i]);
	event_writer_end(sink);
	event_writer_launch_end(w, l, UINT32_MAX, "");
	cr_assert(event_writer_close(w, &e));
	cr_assert(event_read(path, &to, &stats, &e), "%s", e.text);
	unlink(path);
	free(path);
	return stats;
}

#define BEGIN { .kind = EV_CTA_BEGIN, .lanes = 1, \
	.cta_begin = { .threads = 32 * WARPS, .shared_bytes = 1024 } }

Test(event_valid, wrong_events)
{
	const uint32_t reg = 1u << 30;
	const struct ev_area area = { .column = 500, .columns = 20, .mode = MODE_READ };
	const struct ev_span span = { 1020, 8 };
	const struct event wrong[] = {
		BEGIN,
		{ .kind = EV_FENCE, .cta = 1, .lanes = 1 }, /* it has not begun */
		{ .kind = EV_FENCE, .cta = 2, .lanes = 1 },
		{ .kind = EV_FENCE, .warp = WARPS, .lanes = 1 },
		{ .kind = EV_CTA_BEGIN, .cta = 1, .lanes = 1, .cta_begin = { .threads = 64 } },
		{ .kind = EV_CTA_BEGIN, .cta = 1, .lanes = 1, .cta_begin = { .threads = 32 * WARPS,
			.shared_bytes = 1u << 30 } },
		{ .kind = EV_CTA_BEGIN, .cta = 1, .lanes = 1, .cta_begin = { .threads = 32 * WARPS,
			.linear_id = 8 } },
		{ .kind = EV_FENCE, .lanes = 1, .fence = { .sem = 99 } },
		{ .kind = EV_FAULT, .lanes = 1, .fault = { .fault = FAULT_COUNT } },
		{ .kind = EV_ACCESS, .lanes = 1, .access = { .space = SP_SHARED } }, /* no mode */
		{ .kind = EV_ACCESS, .lanes = 3, .access = { .space = SP_SHARED, .mode = MODE_READ,
			.bytes = 4, .at = { .base = 1000, .stride = 24 } } },
		{ .kind = EV_ACCESS, .lanes = 1, .access = { .space = SP_SHARED, .mode = MODE_READ,
			.owner = 1, .bytes = 4 } },
		{ .kind = EV_WGMMA, .warp = 1, .lanes = 1 },
		{ .kind = EV_WGMMA, .lanes = 1, .wgmma.accumulators = { &reg, 1 } },
		{ .kind = EV_WGMMA, .lanes = 1, .wgmma = { .spans = { &span, 1 },
			.parts.at = { 0, 0, 0, 0, 0, 1 } } },
		{ .kind = EV_WGMMA, .lanes = 1, .wgmma.parts.at = { 0, 0, 0, 0, 0, 1 } },
		{ .kind = EV_BULK, .lanes = 1, .bulk = { .mode = MODE_WRITE } },
		{ .kind = EV_BULK, .lanes = 1,
			.bulk = { .mode = MODE_WRITE, .async_op = UINT32_MAX } },
		{ .kind = EV_BULK, .lanes = 1,
			.bulk = { .mode = MODE_WRITE, .bytes = 2048, .async_op = 1 } },
		{ .kind = EV_BULK, .lanes = 1,
			.bulk = { .mode = MODE_WRITE, .cta_mask = 4, .async_op = 1 } },
		{ .kind = EV_TCGEN05_COMMIT, .lanes = 1,
			.tcgen05_commit = { .ctas = 1, .async_op = 1u << 28 } },
		{ .kind = EV_TMEM_ALLOC, .lanes = 1, .tmem_alloc = { .column = 512, .columns = 32 } },
		{ .kind = EV_TMEM_ACCESS, .lanes = 1, .tmem_access.areas = { &area, 1 } },
		{ .kind = EV_TCGEN05, .lanes = 1, .tcgen05 = { .ctas = 1u << NCTAS } },
		{ .kind = EV_BARRIER_ARRIVE, .lanes = 1, .barrier_arrive = { .id = 16 } },
		{ .kind = EV_HEAP, .lanes = 1, .heap = { .addr = 4096, .bytes = 1ull << 60 } },
	};
	const struct cluster_info c = { &launch, 0, NCTAS, WARPS, NULL };

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		const struct event events[] = { BEGIN, wrong[i], { .kind = EV_CTA_END, .lanes = 1 } };
		const struct event_read_stats s = read_back(&launch, &c, events, 3);

		cr_expect(s.incomplete == 1 && s.invalid && s.events == 1, "%u: %llu events, %s", i,
			(unsigned long long)s.events, s.invalid ? s.invalid : "valid");
	}
}

Test(event_valid, order)
{
	const struct cluster_info c = { &launch, 0, NCTAS, WARPS, NULL };
	const struct event fence = { .kind = EV_FENCE, .warp = 1, .lanes = 2 };
	const struct event exited[] = { BEGIN, { .kind = EV_THREAD_EXIT, .warp = 1, .lanes = 6 }, fence };
	const struct event others[] = { BEGIN, { .kind = EV_THREAD_EXIT, .warp = 1, .lanes = 4 }, fence };
	const struct event ended[] = { BEGIN, { .kind = EV_CTA_END, .lanes = 1 }, fence };
	const struct event early[] = { fence };

	cr_expect_not_null(read_back(&launch, &c, exited, 3).invalid);
	cr_expect_null(read_back(&launch, &c, others, 3).invalid);
	cr_expect_not_null(read_back(&launch, &c, ended, 3).invalid);
	cr_expect_not_null(read_back(&launch, &c, early, 1).invalid);
}

Test(event_valid, wrong_launches)
{
	struct launch_info wrong[] = { launch, launch, launch, launch, launch, launch };
	const struct cluster_info far = { &launch, 16, NCTAS, WARPS, NULL };
	const struct cluster_info odd = { &launch, 0, NCTAS, WARPS + 1, NULL };

	wrong[0].grid[1] = 0;
	wrong[1].grid[0] = wrong[1].grid[1] = wrong[1].grid[2] = UINT32_MAX;
	wrong[2].block[0] = 2048;
	wrong[3].cluster[0] = 17;
	wrong[4].shared_dynamic = UINT32_MAX;
	wrong[5].reads = 3;
	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		const struct cluster_info c = { &wrong[i], 0, NCTAS, WARPS, NULL };
		const struct event_read_stats s = read_back(&wrong[i], &c, NULL, 0);

		cr_expect(s.invalid && !s.launches && !s.clusters, "%u", i);
	}
	cr_expect_not_null(read_back(&launch, &far, NULL, 0).invalid);
	cr_expect_not_null(read_back(&launch, &odd, NULL, 0).invalid);
}

Test(event_print, names_what_matters)
{
	struct event e = { .kind = EV_MBARRIER_ARRIVE, .cta = 1, .warp = 2, .lanes = 1,
		.mbarrier_arrive = { .owner = 0, .addr = 64, .arrivals = 1, .tx_count = 4096,
		.sem = SEM_RELEASE, .scope = SCOPE_CTA, .flags = ARRIVE_EXPECT_TX } };
	struct text t = { 0 };

	event_print(&e, &t);
	cr_assert_not_null(strstr(t.at, "MBARRIER_ARRIVE"));
	cr_assert_not_null(strstr(t.at, "warp=2"));
	cr_assert_not_null(strstr(t.at, "addr=0x40"));
	cr_assert_not_null(strstr(t.at, "tx_count=4096"));
	cr_assert_not_null(strstr(t.at, "release cta"));
	cr_assert_not_null(strstr(t.at, "expect_tx"));
	cr_assert_not_null(strstr(t.at, "owner=0"));
	text_free(&t);
}

/* ---- queues ---- */

static void pass_through_queue(unsigned events)
{
	struct one to = { .sink.event = one_event };
	struct event_sink *sink = event_queue_begin(&to.sink);
	struct event_valid v;
	uint64_t mine = 11;

	memset(&want, 0, sizeof want);
	make_sites(want.site);
	begin_numbers(0);
	v = want.valid[0];
	want.at[0] = mine;
	for (unsigned i = 0; i < events; i++) {
		struct made m;

		random_state = mine; /* this thread may be the consumer as well */
		make(&m, &v, want.site, 16);
		mine = random_state;
		sink->event(sink, &m.e);
	}
	cr_assert_eq(event_queue_end(sink), &to.sink);
	cr_assert_eq(want.seen[0], events);
}

Test(event_queue, without_workers)
{
	pass_through_queue(0);
	pass_through_queue(20000); /* the ring of blocks is filled many times */
}

Test(event_queue, with_a_worker)
{
	pool_open(2);
	for (unsigned turn = 0; turn < 20; turn++)
		pass_through_queue(5000);
}

static unsigned queued_spans;

static void count_spans(struct event_sink *sink, const struct event *e)
{
	(void)sink;
	for (unsigned i = 0; i < e->access.spans.n; i++)
		cr_assert_eq(e->access.spans.at[i].addr, 16 * i);
	queued_spans += e->access.spans.n;
}

Test(event_queue, an_event_larger_than_a_block)
{
	static struct ev_span span[8192];
	struct event e = { .kind = EV_ACCESS, .lanes = 1, .access.spans = { span, 8192 } };
	struct event_sink to = { .event = count_spans }, *sink;

	for (unsigned i = 0; i < 8192; i++)
		span[i] = (struct ev_span){ 16 * i, 16 };
	pool_open(1);
	sink = event_queue_begin(&to);
	for (unsigned i = 0; i < 4; i++) {
		e.access.spans.n = i % 2 ? 8192 : 3;
		sink->event(sink, &e);
	}
	event_queue_end(sink);
	cr_assert_eq(queued_spans, 2 * 8195);
}
