/* write: writes records. */
#include "libconsan/base/base.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

struct results_writer {
	struct append out;
	struct rj_sites sites;  /* under out.lock */
};

struct results_writer *results_create(const char *path, struct consan_err *e)
{
	struct results_writer *w = base_alloc(sizeof *w);

	if (append_open(&w->out, path, e))
		return w;
	free(w);
	return NULL;
}

void results_close(struct results_writer *w)
{
	if (!w)
		return;
	append_close(&w->out);
	rj_sites_clear(&w->sites);
	free(w);
}

static void begin(struct results_writer *w)
{
	pthread_mutex_lock(&w->out.lock);
	if (append_forked(&w->out))
		rj_sites_clear(&w->sites);
}

/* Writes the record after begin(). Takes ownership of o. On a full disk the reader finds an
 * incomplete line. */
static void end(struct results_writer *w, const char *type, json_t *o)
{
	char *line;
	size_t n;

	rj_put_sites(&w->sites, o);
	json_object_set_new(o, "consan", json_integer(RESULTS_VERSION));
	json_object_set_new(o, "type", json_string(type));
	json_object_set_new(o, "pid", json_integer(w->out.pid));
	json_object_set_new(o, "session", json_integer((json_int_t)w->out.session));
	line = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (!line)
		base_die("a %s record cannot be encoded", type);
	n = strlen(line);
	line[n] = '\n'; /* in place of the NUL: the length is known */
	append_write(&w->out, line, n + 1);
	free(line);
	pthread_mutex_unlock(&w->out.lock);
}

static void put(struct results_writer *w, const char *type, json_t *o)
{
	begin(w);
	end(w, type, o);
}

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
	put(w, "launch", o);
}

void results_finding(struct results_writer *w, uint32_t id, const struct finding *f)
{
	json_t *o;

	if (!w)
		return;
	begin(w);
	o = rj_from_finding(f, &w->sites);
	json_object_set_new(o, "id", json_integer(id));
	end(w, "finding", o);
}

void results_coverage(struct results_writer *w, const struct coverage *c)
{
	if (w)
		put(w, "coverage", results_coverage_json(c));
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
	json_t *o;

	if (!w || (unsigned)kind >= RESULT_REMARK_COUNT)
		return;
	o = json_object();
	json_object_set_new(o, "kind", json_string(rj_remark_name[kind]));
	json_object_set_new(o, "text", rj_string(text));
	put(w, "remark", o);
}
