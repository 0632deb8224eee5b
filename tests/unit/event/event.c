/* event files: what goes in comes out, from several threads, cut or damaged. */
#include "libconsan/event/code.h"
#include "libconsan/event/io.h"
#include "libconsan/event/site.h"

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

static _Thread_local uint64_t dice;

static uint32_t roll(uint32_t n)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(dice >> 33) % n;
}

static const struct ev_symbol symbols[] = { { "tile", 0, 1024 }, { "full", 1024, 16 } };
static const struct launch_info launch = {
	.kernel = "_Z1kv", .id = 3, .grid = { 8, 1, 1 }, .block = { 128, 1, 1 },
	.cluster = { 2, 1, 1 }, .shared_static = 1040, .sm = 90, .seed = 1ull << 60,
	.symbols = symbols, .nsymbols = 2,
};

struct made {           /* an event with room for its arrays */
	struct event e;
	uint64_t lane_addr[32], lane_src[32];
	struct ev_span spans[20];
	struct ev_gspan gspans[4];
	uint32_t regs[12];
};

static void make(struct made *m, const uint32_t *site, unsigned nsites)
{
	struct event *e = &m->e;

	memset(m, 0, sizeof *m);
	e->kind = (uint8_t)roll(EV_COUNT);
	e->space = (uint8_t)roll(6);
	e->mode = (uint8_t)roll(4);
	e->sem = (uint8_t)roll(8);
	e->scope = (uint8_t)roll(5);
	e->flags = (uint8_t)roll(256);
	e->cta = (uint16_t)roll(NCTAS);
	e->warp = (uint16_t)roll(WARPS);
	e->peer = (uint16_t)roll(NCTAS);
	e->lanes = roll(3) ? UINT32_MAX : 1u << roll(32);
	e->site = site[roll(nsites)];
	e->size = roll(17);
	e->count = event_counts_site(e) ? site[roll(nsites)] : roll(1000);
	e->op = roll(1u << 31);
	e->mask = roll(1u << 31);
	e->mbar = roll(2) ? EV_NO_MBAR : roll(4096);
	e->mbar_peer = (uint16_t)roll(NCTAS);
	e->src_size = (uint16_t)roll(17);
	e->stride = (int32_t)roll(256) - 128;
	e->addr = (uint64_t)roll(1u << 31) << roll(32);
	e->tx = (int64_t)roll(1u << 20) - (1 << 19);
	for (unsigned l = 0; l < 32; l++) {
		m->lane_addr[l] = (uint64_t)roll(1u << 31) << roll(33);
		m->lane_src[l] = roll(1u << 31);
	}
	if (!roll(3))
		e->lane_addr = m->lane_addr;
	if (!roll(6))
		e->lane_src = m->lane_src;
	if (!roll(5)) {
		e->spans = m->spans;
		e->nspans = (uint16_t)(1 + roll(20));
		for (unsigned i = 0; i < e->nspans; i++)
			m->spans[i] = (struct ev_span){ roll(1u << 20), roll(512) };
		for (unsigned i = 0; i < 6; i++)
			e->part[i] = (uint16_t)(i * e->nspans / 5);
	}
	if (!roll(5)) {
		e->gspans = m->gspans;
		e->ngspans = (uint16_t)(1 + roll(4));
		for (unsigned i = 0; i < e->ngspans; i++)
			m->gspans[i] = (struct ev_gspan){ (uint64_t)roll(1u << 31) << 16, roll(512) };
	}
	if (!roll(5)) {
		e->regs = m->regs;
		e->nregs_d = (uint16_t)(1 + roll(8));
		e->nregs_a = (uint16_t)roll(5);
		for (unsigned i = 0; i < 12; i++)
			m->regs[i] = roll(4096);
	}
	if (!roll(8))
		e->text = "said by the kernel";
}

static void assert_same(const struct event *a, const struct event *b)
{
#define SAME(id) cr_assert_eq(a->id, b->id, #id " of %s", event_name(a->kind))
	SAME(kind); SAME(space); SAME(mode); SAME(sem); SAME(scope); SAME(flags); SAME(cta);
	SAME(warp); SAME(peer); SAME(lanes); SAME(size); SAME(op); SAME(mask);
	SAME(mbar); SAME(mbar_peer); SAME(src_size); SAME(stride); SAME(addr); SAME(tx);
	SAME(nspans); SAME(ngspans); SAME(nregs_d); SAME(nregs_a);
	if (event_counts_site(a))
		cr_assert_str_eq(site_get(a->count)->ptx, site_get(b->count)->ptx);
	else
		SAME(count);
#undef SAME
	cr_assert_eq(!a->lane_addr, !b->lane_addr);
	cr_assert_eq(!a->lane_src, !b->lane_src);
	for (unsigned l = 0; l < 32; l++) {
		if (!(a->lanes >> l & 1))
			continue;
		cr_assert(!a->lane_addr || a->lane_addr[l] == b->lane_addr[l]);
		cr_assert(!a->lane_src || a->lane_src[l] == b->lane_src[l]);
	}
	if (a->nspans)
		cr_assert_eq(memcmp(a->spans, b->spans, a->nspans * sizeof *a->spans), 0);
	if (a->ngspans)
		cr_assert_eq(memcmp(a->gspans, b->gspans, a->ngspans * sizeof *a->gspans), 0);
	if (a->nregs_d + a->nregs_a)
		cr_assert_eq(memcmp(a->regs, b->regs,
			(a->nregs_d + a->nregs_a) * sizeof *a->regs), 0);
	cr_assert_eq(memcmp(a->part, b->part, sizeof a->part), 0);
	cr_assert_str_eq(a->text ? a->text : "", b->text ? b->text : "");
	cr_assert_str_eq(site_get(a->site)->ptx, site_get(b->site)->ptx);
}

static void make_sites(uint32_t site[16])
{
	for (unsigned i = 0; i < 16; i++) {
		struct site_loc outer = { "a.cu", i, 1, NULL, NULL };
		struct site_loc inner = { "b.h", i + 100, 2, "f", &outer };
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

/* ---- the reading side checks against the same dice ---- */

struct expected {
	uint32_t site[16];
	uint64_t at[4];          /* where the dice of each cluster stand */
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

	dice = want.at[k];
	make(&m, want.site, 16);
	want.at[k] = dice;
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

/* Each thread has dice of its own. */
static void save_cluster(const struct job *j)
{
	struct cluster_info c = { &launch, j->cluster, NCTAS, WARPS, NULL };
	struct event_sink *sink = event_writer_begin(j->w, &c, NULL);
	struct made m;

	cr_assert(sink->want_global);
	dice = want.at[j->cluster] = j->cluster * 77 + 1;
	for (unsigned i = 0; i < j->events; i++) {
		make(&m, want.site, 16);
		sink->event(sink, &m.e);
	}
	cr_assert_null(event_writer_end(sink));
}

static char *write_four(unsigned events)
{
	struct err e = { 0 };
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
	struct err e = { 0 };
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

Test(event_io, cut_anywhere)
{
	struct event_read_stats stats;
	char *path = write_four(2000);
	struct stat st;

	stat(path, &st);
	for (long n = st.st_size - 1; n > 60; n -= 1 + n / 9) {
		struct err e = { 0 };

		truncate_to(path, n);
		for (unsigned k = 0; k < 4; k++)
			want.at[k] = k * 77 + 1;
		memset(want.seen, 0, sizeof want.seen);
		if (!event_read(path, &reader, &stats, &e)) {
			cr_assert_eq(e.code, ERR_FORMAT);
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
	struct err e = { 0 };
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

Test(event_io, damaged_events_are_refused_not_believed)
{
	struct event_past *past = base_alloc(sizeof *past);
	struct event_room room = { 0 };
	unsigned char bytes[64];
	struct event e;

	dice = 5;
	for (unsigned round = 0; round < 20000; round++) {
		struct code_reader r = { bytes, bytes + sizeof bytes, false };

		for (size_t i = 0; i < sizeof bytes; i++)
			bytes[i] = (unsigned char)roll(256);
		bytes[0] = (unsigned char)roll(EV_COUNT);
		while (r.at < r.end && event_decode(&r, past, &room, &e))
			;
		cr_assert_leq(r.at, r.end);
	}
	event_room_free(&room);
	free(past);
}

Test(event_io, not_ours)
{
	struct event_read_stats stats;
	struct err e = { 0 };
	char *path = temp_path();
	FILE *f = fopen(path, "w");

	fprintf(f, "CSEV, but not really a stream of events CSEV\n");
	fclose(f);
	cr_assert_not(event_read(path, &reader, &stats, &e));
	cr_assert_eq(e.code, ERR_FORMAT);
	unlink(path);
	e = (struct err){ 0 };
	cr_assert_not(event_read(path, &reader, &stats, &e));
	cr_assert_eq(e.code, ERR_IO);
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
	struct event e = { .kind = EV_ACCESS, .lanes = 1, .site = j->site };

	cr_assert_not(sink->want_global);
	for (unsigned i = 0; i < 5000; i++) {
		e.addr = i;
		sink->event(sink, &e);
	}
	cr_assert_eq(event_writer_end(sink), &next);
	return NULL;
}

Test(event_io, from_several_threads)
{
	struct event_read_stats stats;
	struct event_reader none = { 0 };
	struct err e = { 0 };
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

Test(event_print, names_what_matters)
{
	struct event e = { .kind = EV_MB_ARRIVE, .cta = 1, .warp = 2, .peer = 0, .lanes = 1,
		.addr = 64, .count = 1, .tx = 4096, .sem = SEM_RELEASE, .scope = SCOPE_CTA };
	struct text t = { 0 };

	event_print(&e, &t);
	cr_assert_not_null(strstr(t.at, "MB_ARRIVE"));
	cr_assert_not_null(strstr(t.at, "warp=2"));
	cr_assert_not_null(strstr(t.at, "addr=0x40"));
	cr_assert_not_null(strstr(t.at, "tx=4096"));
	cr_assert_not_null(strstr(t.at, "release cta"));
	text_free(&t);
}
