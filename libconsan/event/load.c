/* load: the reading half of io.h. The file may be damaged anywhere. */
#include "chunk.h"
#include "code.h"
#include "fields.h"
#include "io.h"
#include "site.h"
#include "valid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* Bounds of what a file can make its reader allocate. A chunk of 4 MiB or less may be compressed
 * by any factor; clusters that are open at once need memory for each of their warps. */
#define SMALL_RAW (4u << 20)
#define MAX_FACTOR 64u
#define OPEN_WARPS 16384u  /* any GPU runs fewer at once; and one more for each 64 bytes of the file */
#define OPEN_LAUNCHES 256u /* and one more for each 4 KiB */

struct open_cluster {
	struct cluster_info info;
	struct event_sink *sink;
	struct event_valid valid;
	uint32_t next_part;
	uint64_t events;
	bool broken;            /* events are missing: the rest is skipped */
};

struct open_launch {
	uint64_t session;
	uint32_t id;
	struct launch_info info;
	struct arena arena;     /* strings and symbols of info */
	VEC(struct open_cluster *) clusters;
};

struct session {
	uint64_t id;
	struct number_map site; /* by id in the file */
};

struct read {
	const struct event_reader *to;
	struct event_read_stats *stats;
	VEC(struct open_launch *) launches;
	VEC(struct session) sessions;
	struct event_arrays arrays;
	struct event_past *past;
	unsigned char *raw;
	size_t raw_cap;
	unsigned other_version; /* 0: none seen */
	uint64_t file_bytes, open_warps;
};

/* Something is not as a producer makes it: the first one is reported. */
static bool wrong(struct read *r, const char *what)
{
	if (what && !r->stats->invalid)
		r->stats->invalid = what;
	return what;
}

static struct session *session_of(struct read *r, uint64_t id)
{
	for (size_t i = 0; i < r->sessions.n; i++)
		if (r->sessions.at[i].id == id)
			return &r->sessions.at[i];
	vec_push(&r->sessions, (struct session){ .id = id });
	return &r->sessions.at[r->sessions.n - 1];
}

static struct open_launch *launch_of(struct read *r, const struct chunk_head *h)
{
	for (size_t i = 0; i < r->launches.n; i++)
		if (r->launches.at[i]->session == h->session && r->launches.at[i]->id == h->launch)
			return r->launches.at[i];
	return NULL;
}

static void get_triple(struct code_reader *c, uint32_t at[3])
{
	for (unsigned i = 0; i < 3; i++)
		at[i] = (uint32_t)code_get(c);
}

static bool read_launch(struct read *r, const struct chunk_head *h, struct code_reader *c)
{
	struct open_launch *l;
	struct ev_symbol *symbols;
	uint64_t n, flags;

	if (launch_of(r, h) || r->launches.n > OPEN_LAUNCHES + r->file_bytes / 4096)
		return false;
	l = base_alloc(sizeof *l);
	l->session = h->session;
	l->id = l->info.id = h->launch;
	get_triple(c, l->info.grid);
	get_triple(c, l->info.block);
	get_triple(c, l->info.cluster);
	l->info.shared_static = (uint32_t)code_get(c);
	l->info.shared_dynamic = (uint32_t)code_get(c);
	l->info.regs_per_thread = (uint32_t)code_get(c);
	l->info.sm = (uint32_t)code_get(c);
	l->info.device = (uint32_t)code_get(c);
	l->info.seed = code_get(c);
	l->info.reads = (uint8_t)code_get(c);
	l->info.queue = code_get(c);
	flags = code_get(c);
	l->info.programmatic = flags & 1;
	l->info.apart = flags >> 1 & 1;
	l->info.tensor = flags >> 2 & 1;
	l->info.clustered = flags >> 3 & 1;
	l->info.kernel = code_get_string(c, &l->arena);
	n = code_get(c);
	if (c->bad || n > (size_t)(c->end - c->at)) {
		arena_free(&l->arena);
		free(l);
		return false;
	}
	symbols = arena_alloc(&l->arena, n * sizeof *symbols);
	for (size_t i = 0; i < n; i++) {
		symbols[i].name = code_get_string(c, &l->arena);
		symbols[i].addr = (uint32_t)code_get(c);
		symbols[i].bytes = (uint32_t)code_get(c);
	}
	l->info.symbols = symbols;
	l->info.nsymbols = n;
	if (c->bad || wrong(r, launch_wrong(&l->info))) {
		arena_free(&l->arena);
		free(l);
		return false;
	}
	vec_push(&r->launches, l);
	r->stats->launches++;
	if (r->to->launch)
		r->to->launch(r->to->user, &l->info);
	return true;
}

/* The id in this process of a site id of the file */
static uint32_t site_here(const struct session *s, uint32_t id)
{
	return id ? (uint32_t)number_map_get(&s->site, id) : 0;
}

#define MAX_DEPTH 64

static bool read_sites(struct read *r, const struct chunk_head *h, struct code_reader *c)
{
	struct session *session = session_of(r, h->session);
	struct arena strings = { 0 };

	while (c->at < c->end && !c->bad) {
		struct site_loc loc[MAX_DEPTH];
		struct site s = { 0 };
		uint64_t id = code_get(c), depth;

		s.kernel = code_get_string(c, &strings);
		s.module = code_get_string(c, &strings);
		s.ptx_line = (uint32_t)code_get(c);
		s.ptx = code_get_string(c, &strings);
		s.constant = (enum site_constant)code_get(c);
		s.value = code_get(c);
		s.unread = code_get(c);
		s.unread_load = code_get(c);
		s.ticket = code_get(c);
		s.texture = code_get(c);
		depth = code_get(c);
		for (uint64_t i = 0; i < depth && !c->bad; i++) {
			struct site_loc *l = &loc[i < MAX_DEPTH ? i : MAX_DEPTH - 1];

			l->file = code_get_string(c, &strings);
			l->line = (uint32_t)code_get(c);
			l->col = (uint32_t)code_get(c);
			l->function = code_get_string(c, &strings);
			if (!*l->function)
				l->function = NULL;
			l->inlined_at = NULL;
			if (i && i < MAX_DEPTH)
				loc[i - 1].inlined_at = l;
		}
		if (c->bad || !id || id > UINT32_MAX || s.constant > CONSTANT_IN_GRID) {
			c->bad = true;
			break;
		}
		s.loc = depth ? loc : NULL;
		number_map_put(&session->site, id, site_intern(&s));
	}
	arena_free(&strings);
	return !c->bad;
}

static struct open_cluster *cluster_of(struct read *r, struct open_launch *l,
	const struct chunk_head *h, uint32_t nctas, uint32_t warps)
{
	struct open_cluster *k;

	for (size_t i = 0; i < l->clusters.n; i++)
		if (l->clusters.at[i]->info.id == h->cluster)
			return l->clusters.at[i];
	if (r->open_warps + nctas * warps > OPEN_WARPS + r->file_bytes / 64) {
		wrong(r, "more clusters at once than a GPU runs");
		return NULL;
	}
	k = base_alloc(sizeof *k);
	k->info = (struct cluster_info){ .launch = &l->info, .id = h->cluster,
		.nctas = nctas, .warps_per_cta = warps };
	if (wrong(r, event_valid_begin(&k->valid, &k->info))) {
		free(k);
		return NULL;
	}
	r->open_warps += nctas * warps;
	vec_push(&l->clusters, k);
	r->stats->clusters++;
	if (r->to->cluster_begin)
		k->sink = r->to->cluster_begin(r->to->user, &k->info);
	return k;
}

static void end_cluster(struct read *r, struct open_launch *l, struct open_cluster *k)
{
	r->stats->incomplete += k->broken;
	r->open_warps -= k->info.nctas * k->info.warps_per_cta;
	if (r->to->cluster_end)
		r->to->cluster_end(r->to->user, &k->info, k->sink, !k->broken);
	for (size_t i = 0; i < l->clusters.n; i++)
		if (l->clusters.at[i] == k)
			l->clusters.at[i] = l->clusters.at[--l->clusters.n];
	free(k);
}

static bool read_events(struct read *r, const struct chunk_head *h, struct code_reader *c)
{
	uint32_t nctas = (uint32_t)code_get(c), warps = (uint32_t)code_get(c);
	bool last = code_get(c);
	uint64_t events = code_get(c);
	struct open_launch *l = launch_of(r, h);
	const struct session *session = session_of(r, h->session);
	struct open_cluster *k;
	struct event e;
	uint32_t *other_site;

	if (!l || c->bad || !nctas || nctas > EVENT_MAX_CTAS || warps > EVENT_MAX_WARPS)
		return false;
	k = cluster_of(r, l, h, nctas, warps);
	if (!k)
		return false;
	k->broken |= h->part != k->next_part;
	k->next_part = h->part + 1;
	memset(r->past, 0, sizeof *r->past);
	while (c->at < c->end && !k->broken) {
		if (!event_decode(c, r->past, &r->arrays, &e) || wrong(r, event_wrong(&k->valid, &e))) {
			k->broken = true;
			break;
		}
		e.site = site_here(session, e.site);
		other_site = event_other_site(&e);
		if (other_site)
			*other_site = site_here(session, *other_site);
		k->events++;
		r->stats->events++;
		if (k->sink)
			k->sink->event(k->sink, &e);
	}
	k->broken |= k->events != events;
	if (last)
		end_cluster(r, l, k);
	return true;
}

/* Ends clusters that are still open, as incomplete. */
static void end_launch(struct read *r, struct open_launch *l, uint32_t counts,
	const char *unchecked)
{
	while (l->clusters.n) {
		l->clusters.at[0]->broken = true;
		end_cluster(r, l, l->clusters.at[0]);
	}
	if (r->to->launch_end)
		r->to->launch_end(r->to->user, &l->info, counts, unchecked);
	for (size_t i = 0; i < r->launches.n; i++)
		if (r->launches.at[i] == l)
			r->launches.at[i] = r->launches.at[--r->launches.n];
	vec_free(&l->clusters);
	arena_free(&l->arena);
	free(l);
}

static bool read_chunk(struct read *r, const struct chunk_head *h, const unsigned char *payload)
{
	struct code_reader c;
	struct open_launch *l;
	uint32_t last;
	size_t n;

	if (h->raw > r->raw_cap) {
		r->raw = base_resize(r->raw, h->raw);
		r->raw_cap = h->raw;
	}
	n = ZSTD_decompress(r->raw, r->raw_cap, payload, h->packed);
	if (ZSTD_isError(n) || n != h->raw)
		return false;
	c = (struct code_reader){ .at = r->raw, .end = r->raw + n };
	switch ((enum chunk_type)h->type) {
	case CHUNK_LAUNCH: return read_launch(r, h, &c);
	case CHUNK_SITES: return read_sites(r, h, &c);
	case CHUNK_EVENTS: return read_events(r, h, &c);
	case CHUNK_LAUNCH_END:
		l = launch_of(r, h);
		last = (uint32_t)code_get(&c);
		if (l)
			end_launch(r, l, last, code_get_string(&c, &l->arena));
		return l != NULL;
	case CHUNK_COUNT: break;
	}
	return false;
}

/* Bytes of the valid chunk at p, or 0. */
static size_t valid_chunk(struct read *r, const unsigned char *p, size_t n, struct chunk_head *h)
{
	if (n < sizeof *h)
		return 0;
	memcpy(h, p, sizeof *h);
	if (h->magic != EVENT_MAGIC || h->packed > n - sizeof *h
			|| (h->raw > SMALL_RAW && h->raw / MAX_FACTOR > h->packed))
		return 0;
	if (chunk_sum(*h, p + sizeof *h) != h->sum)
		return 0;
	if (h->version != EVENT_VERSION) {
		r->other_version = h->version;
		return 0;
	}
	return h->type < CHUNK_COUNT ? sizeof *h + h->packed : 0;
}

static size_t read_all(struct read *r, const unsigned char *p, size_t n)
{
	size_t at = 0, valid = 0;
	bool skipping = false;

	while (at < n) {
		struct chunk_head h;
		size_t step = valid_chunk(r, p + at, n - at, &h);

		if (!step) {
			const unsigned char *next = memchr(p + at + 1, 'C', n - at - 1);

			r->stats->damaged += !skipping;
			skipping = true;
			at = next ? (size_t)(next - p) : n;
			continue;
		}
		skipping = false;
		valid++;
		if (!read_chunk(r, &h, p + at + sizeof h))
			r->stats->damaged++;
		at += step;
	}
	while (r->launches.n)
		end_launch(r, r->launches.at[0], UINT32_MAX,
			"the saved events end before the launch does");
	return valid;
}

bool event_read(const char *path, const struct event_reader *to,
	struct event_read_stats *stats, struct consan_err *e)
{
	struct read r = { .to = to, .stats = stats };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = { 0 };
	size_t valid = 0;
	void *map = NULL;

	*stats = (struct event_read_stats){ 0 };
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", path,
			fd < 0 ? strerror(errno) : "not a file");
	}
	if (st.st_size)
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", path, strerror(errno));
	r.past = base_alloc(sizeof *r.past);
	r.file_bytes = (uint64_t)st.st_size;
	if (map) {
		valid = read_all(&r, map, (size_t)st.st_size);
		munmap(map, (size_t)st.st_size);
	}
	for (size_t i = 0; i < r.sessions.n; i++)
		number_map_free(&r.sessions.at[i].site);
	vec_free(&r.sessions);
	vec_free(&r.launches);
	event_arrays_free(&r.arrays);
	free(r.past);
	free(r.raw);
	if (valid)
		return true;
	if (r.other_version)
		return err_set(e, CONSAN_ERR_FORMAT, 0, 0, "%s: event stream of version %u, this "
			"consan reads %u", path, r.other_version, EVENT_VERSION);
	return err_set(e, CONSAN_ERR_FORMAT, 0, 0, "%s: %s", path, st.st_size
		? "not an event stream of consan" : "empty: no launch was saved");
}

bool event_is_stream(const char *path)
{
	FILE *in = fopen(path, "re");
	uint32_t magic = 0;
	bool yes = in && fread(&magic, sizeof magic, 1, in) == 1 && magic == EVENT_MAGIC;

	if (in)
		fclose(in);
	return yes;
}
