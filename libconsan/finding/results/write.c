/* write: writes records. Records that are updated often have a *place* in the file, with room to
 * grow, and are overwritten there: so the file of 50,000 launches is as large as that of some. */
#include "libconsan/base/base.h"
#include "json.h"
#include "live.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAUNCHES_KEPT 1000u  /* ... of a process in its records, the first ones */
#define LAUNCHES_MOST 2000u  /* ... with later ones that have findings or did not end well */
#define ROOM 128u            /* bytes by which a record may grow in its place */

/* Where a record is that will be overwritten. */
struct place {
	char *key;              /* what it is about; NULL: a launch */
	off_t at;
	size_t bytes;           /* 0: not written yet */
	uint64_t count;         /* of a remark */
	uint32_t launch;        /* of a launch: its id ... */
	bool running, found;    /* ... and is its place in use, has it findings? */
};

struct results_writer {
	struct append out;
	int in_place;           /* the file without O_APPEND, with which pwrite() would append */
	char *path;
	struct results_live *live;
	/* under out.lock */
	int cancel;             /* of the thread that has the lock: write() is a cancellation point */
	struct rj_sites sites;
	VEC(struct place) place;
	struct number_map places; /* hash of the key, odd -> index + 1; with the next odd one on collision */
	VEC(size_t) launch;     /* indices of the places of launches that run, or ran and were not kept */
	unsigned nlaunches;     /* that are kept */
	bool torn;              /* the last record was written in part, or not at all */
	bool lost;              /* results_lose() */
};

struct results_writer *results_create(const char *path, struct consan_err *e)
{
	struct results_writer *w = base_alloc(sizeof *w);

	w->in_place = -1;
	if (!append_open(&w->out, path, e)) {
		free(w);
		return NULL;
	}
	w->path = base_strdup(path);
	/* until the process ends, however it does: consan-run and `consan recover' ask for it */
	fcntl(w->out.fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK });
	w->in_place = base_open(path, O_WRONLY, 0);
	w->live = live_create(path, w->out.session);
	return w;
}

static void forget_places(struct results_writer *w)
{
	rj_sites_clear(&w->sites);
	for (size_t i = 0; i < w->place.n; i++)
		free(w->place.at[i].key);
	vec_free(&w->place);
	vec_free(&w->launch);
	number_map_free(&w->places);
	w->nlaunches = 0;
}

void results_close(struct results_writer *w)
{
	if (!w)
		return;
	if (append_is_ours(&w->out, w->in_place))
		close(w->in_place);
	append_close(&w->out);
	live_close(w->live, w->path);
	forget_places(w);
	free(w->path);
	free(w);
}

static void unlock(struct results_writer *w)
{
	const int cancel = w->cancel;

	pthread_mutex_unlock(&w->out.lock);
	pthread_setcancelstate(cancel, NULL);
}

/* A forked child goes on in the same file, without places. */
static void begin(struct results_writer *w)
{
	bool forked;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&w->out.lock);
	w->cancel = cancel;
	forked = append_forked(&w->out);
	if (w->out.removed && !w->lost) {
		w->lost = true;
		results_lose(w->path, "its records were removed while it ran");
	}
	if (!forked)
		return;
	forget_places(w);
	live_close(w->live, NULL);
	w->live = NULL;
}

/* The text of a record, n bytes with its newline. Takes ownership of o; free() it. */
static char *encode(struct results_writer *w, const char *type, json_t *o, size_t *n)
{
	char *line;

	rj_put_sites(&w->sites, o);
	json_object_set_new(o, "consan", json_integer(RESULTS_VERSION));
	json_object_set_new(o, "type", json_string(type));
	json_object_set_new(o, "pid", json_integer(w->out.pid));
	json_object_set_new(o, "session", json_integer((json_int_t)w->out.session));
	line = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (!line)
		base_die("a %s record cannot be encoded", type);
	*n = strlen(line) + 1;
	line[*n - 1] = '\n'; /* in place of the NUL: the length is known */
	return line;
}

/* On a full disk the reader finds an incomplete or empty line, or the number of those that are lost. */
static void append(struct results_writer *w, const char *line, size_t n)
{
	if (w->torn && append_write(&w->out, "\n", 1)) {
		live_lost(w->live);
		return;
	}
	w->torn = append_write(&w->out, line, n) != 0;
	if (w->torn)
		live_lost(w->live);
}

/* Writes the record after begin(). Takes ownership of o. */
static void end(struct results_writer *w, const char *type, json_t *o)
{
	size_t n;
	char *line = encode(w, type, o, &n);

	append(w, line, n);
	free(line);
	unlock(w);
}

static void put(struct results_writer *w, const char *type, json_t *o)
{
	begin(w);
	end(w, type, o);
}

/* ---- records with a place ---- */

static bool overwrite(struct results_writer *w, const struct place *p, const char *line)
{
	struct size_limit held;
	bool whole;

	if (!append_is_ours(&w->out, w->in_place))
		w->in_place = base_open(w->out.path ? w->out.path : w->path, O_WRONLY, 0);
	if (!append_is_ours(&w->out, w->in_place))
		return false;
	size_limit_begin(&held);
	whole = pwrite(w->in_place, line, p->bytes, p->at) == (ssize_t)p->bytes;
	size_limit_end(&held);
	return whole;
}

/* Writes the record after begin(), into its place if it fits: blanks may stand between a record and
 * its newline. One that does not is written again, behind the earlier one, which it replaces. */
static void end_in_place(struct results_writer *w, struct place *p, const char *type, json_t *o)
{
	size_t n;
	char *line = encode(w, type, o, &n);
	const size_t bytes = n <= p->bytes ? p->bytes : n + ROOM;
	off_t after;

	line = base_resize(line, bytes);
	memset(line + n - 1, ' ', bytes - n);
	line[bytes - 1] = '\n';
	if (bytes != p->bytes || !overwrite(w, p, line)) {
		append(w, line, bytes);
		after = lseek(w->out.fd, 0, SEEK_CUR); /* where O_APPEND has left off */
		p->bytes = after >= (off_t)bytes ? bytes : 0;
		p->at = after - (off_t)bytes;
	}
	free(line);
	unlock(w);
}

/* The place of the record about this; valid until the next call. */
static struct place *place_of(struct results_writer *w, char type, const char *about)
{
	struct text key = { 0 };
	uint64_t hash = 0xcbf29ce484222325u;
	size_t i;

	text_printf(&key, "%c%s", type, about);
	for (size_t k = 0; k < key.n; k++)
		hash = (hash ^ (unsigned char)key.at[k]) * 0x100000001b3u;
	for (hash |= 1; (i = (size_t)number_map_get(&w->places, hash)) != 0; hash += 2)
		if (!strcmp(w->place.at[i - 1].key, key.at)) {
			text_free(&key);
			return &w->place.at[i - 1];
		}
	vec_push(&w->place, ((struct place){ .key = key.at }));
	number_map_put(&w->places, hash, w->place.n);
	return &w->place.at[w->place.n - 1];
}

/* The place of a launch: one that runs, or else one that no launch needs any more, or a new one. */
static struct place *place_of_launch(struct results_writer *w, uint32_t id)
{
	struct place *spare = NULL;

	for (size_t i = 0; i < w->launch.n; i++) {
		struct place *p = &w->place.at[w->launch.at[i]];

		if (p->running && p->launch == id)
			return p;
		if (!p->running)
			spare = p;
	}
	if (!spare) {
		vec_push(&w->launch, w->place.n);
		vec_push(&w->place, ((struct place){ .bytes = 0 }));
		spare = &w->place.at[w->place.n - 1];
	}
	spare->launch = id;
	spare->running = true;
	spare->found = false;
	return spare;
}

/* A launch has ended. The reports have a bounded number of launches; coverage counts all. */
static void keep_launch(struct results_writer *w, struct place *p, bool good)
{
	const size_t index = (size_t)(p - w->place.at);

	p->running = false;
	if (w->nlaunches >= ((p->found || !good) ? LAUNCHES_MOST : LAUNCHES_KEPT))
		return;
	w->nlaunches++;
	for (size_t i = 0; i < w->launch.n; i++)
		if (w->launch.at[i] == index)
			w->launch.at[i] = w->launch.at[--w->launch.n];
}

/* ---- the records ---- */

void results_process(struct results_writer *w, const char *program, const char *device)
{
	json_t *o;

	if (!w)
		return;
	o = json_object();
	json_object_set_new(o, "program", rj_string(program));
	json_object_set_new(o, "device", rj_string(device));
	put(w, "process", o);
}

void results_launch(struct results_writer *w, const struct result_launch *l)
{
	json_t *o;

	const bool running = l->state == LAUNCH_RUNNING;
	struct place *p;

	if (!w)
		return;
	o = json_object();
	json_object_set_new(o, "id", json_integer(l->id));
	json_object_set_new(o, "kernel", rj_string(l->kernel));
	json_object_set_new(o, "grid", rj_from_triple(l->grid));
	json_object_set_new(o, "block", rj_from_triple(l->block));
	json_object_set_new(o, "cluster", rj_from_triple(l->cluster));
	json_object_set_new(o, "seed", json_integer((json_int_t)l->seed));
	json_object_set_new(o, "state", json_string(rj_state_name[l->state]));
	json_object_set_new(o, "status", rj_string(l->status ? l->status : ""));
	begin(w);
	p = place_of_launch(w, l->id);
	if (running)
		live_begin(w->live, l->id, l->whole);
	else
		keep_launch(w, p, l->status && !strcmp(l->status, "ok"));
	end_in_place(w, p, "launch", o);
	if (!running)
		live_end(w->live, l->id);
}

/* The page is that of the process which opened it. */
static struct results_live *own_page(const struct results_writer *w)
{
	return w && w->out.pid == getpid() ? w->live : NULL;
}

void results_issued(struct results_writer *w)
{
	live_issued(own_page(w));
}

void results_over(struct results_writer *w)
{
	live_over(own_page(w));
}

void results_next(struct results_writer *w, const struct results_next *next)
{
	live_next(own_page(w), next);
}

void results_cluster(struct results_writer *w, uint32_t launch)
{
	if (w)
		live_cluster(w->live, launch);
}

void results_finding(struct results_writer *w, uint32_t id, const struct finding *f)
{
	json_t *o;

	if (!w)
		return;
	begin(w);
	for (size_t i = 0; i < w->launch.n; i++)
		w->place.at[w->launch.at[i]].found |= w->place.at[w->launch.at[i]].launch == f->launch;
	o = rj_from_finding(f, &w->sites);
	json_object_set_new(o, "id", json_integer(id));
	end(w, "finding", o);
}

void results_coverage(struct results_writer *w, const struct coverage *c)
{
	if (!w)
		return;
	begin(w);
	end_in_place(w, place_of(w, 'c', c->kernel), "coverage", results_coverage_json(c));
}

void results_bank_use(struct results_writer *w, const struct bank_use *u)
{
	json_t *o;

	if (!w)
		return;
	begin(w);
	o = rj_from_bank_use(u, &w->sites);
	json_object_set_new(o, "id", json_integer(u->site));
	end(w, "banks", o);
}

void results_remark(struct results_writer *w, enum result_remark_kind kind, const char *text)
{
	struct place *p;
	json_t *o;

	if (!w || (unsigned)kind >= RESULT_REMARK_COUNT)
		return;
	o = json_object();
	json_object_set_new(o, "kind", json_string(rj_remark_name[kind]));
	json_object_set_new(o, "text", rj_string(text));
	begin(w);
	p = place_of(w, (char)('A' + (int)kind), text);
	json_object_set_new(o, "count", json_integer((json_int_t)++p->count));
	end_in_place(w, p, "remark", o);
}
