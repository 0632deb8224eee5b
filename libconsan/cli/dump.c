/* dump: `consan dump`. */
#include "internal.h"

#include "libconsan/event/event.h"
#include "libconsan/ptx/ptx.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dump_args {
	const char *file;
	bool cfg;
};

static error_t dump_key(int key, char *arg, struct argp_state *state)
{
	struct dump_args *a = state->input;

	if (key != 'g')
		return command_one_file(&a->file, key, arg, state);
	a->cfg = true;
	return 0;
}

static void print_cfg(const struct ptx_func *f)
{
	const struct ptx_cfg *g = f->cfg;

	printf("\n// %s: %zu blocks\n", f->name, g->nblock);
	for (size_t k = 0; k < g->nblock; k++) {
		const struct ptx_block *b = &g->block[g->order[k]];
		const struct ptx_insn *last = b->end > b->first ? &f->insn[b->end - 1] : NULL;

		printf("// %4u: instructions %u..%u", g->order[k], b->first, b->end);
		if (last)
			printf(" (lines %u-%u)", f->insn[b->first].line, last->line);
		printf("%s", b->nsucc ? ", then" : "");
		for (uint32_t s = 0; s < b->nsucc; s++)
			printf(" %u", b->succ[s]);
		for (uint32_t t = 0; !b->nsucc && last && t < last->ntarget; t++)
			printf("%s %u", t ? "" : ", then", g->block_of[last->target[t]]);
		if (b->ipdom != UINT32_MAX)
			printf(", joins at %u", b->ipdom);
		if (b->loop != UINT32_MAX)
			printf(", in loop %u", b->loop);
		printf("\n");
	}
}

static int dump_ptx(const struct dump_args *a)
{
	struct text out = { 0 };
	struct text in = { 0 };
	struct consan_err e = { 0 };
	struct ptx_module *m = NULL;
	bool sound;

	if (text_read(&in, a->file, &e))
		m = ptx_parse(a->file, in.at, in.n, &e);
	text_free(&in);
	if (!m)
		return command_fail(&e);
	ptx_print(m, &out);
	fwrite(out.at ? out.at : "", 1, out.n, stdout);
	text_free(&out);
	for (size_t i = 0; a->cfg && i < m->nfunc; i++)
		if (m->func[i].cfg)
			print_cfg(&m->func[i]);
	sound = ptx_verify(m, &e);
	ptx_free(m);
	return sound ? 0 : command_fail(&e);
}

struct dump_sink {
	struct event_sink sink; /* first, so that a pointer to it is one to the struct */
	const struct cluster_info *c;
};

static void dump_event(struct event_sink *sink, const struct event *e)
{
	const struct dump_sink *s = (const struct dump_sink *)sink;
	struct text t = { 0 };

	event_print(e, &t);
	printf("%u/%u %s\n", s->c->launch->id, s->c->id, t.at);
	text_free(&t);
}

static void dump_launch(void *user, const struct launch_info *l)
{
	(void)user;
	printf("# launch %u: %s grid %ux%ux%u block %ux%ux%u cluster %ux%ux%u shared %u+%u "
		"sm_%u seed %llu\n", l->id, l->kernel, l->grid[0], l->grid[1], l->grid[2],
		l->block[0], l->block[1], l->block[2], l->cluster[0], l->cluster[1],
		l->cluster[2], l->shared_static, l->shared_dynamic, l->sm,
		(unsigned long long)l->seed);
	for (size_t i = 0; i < l->nsymbols; i++)
		printf("# shared %#x+%u %s\n", l->symbols[i].addr, l->symbols[i].bytes,
			l->symbols[i].name);
}

static struct event_sink *dump_begin(void *user, const struct cluster_info *c)
{
	struct dump_sink *s = base_alloc(sizeof *s);

	(void)user;
	s->sink.event = dump_event;
	s->c = c;
	return &s->sink;
}

static void dump_end(void *user, const struct cluster_info *c, struct event_sink *sink,
	bool whole)
{
	(void)user;
	if (!whole)
		printf("# launch %u, cluster %u: incomplete\n", c->launch->id, c->id);
	free(sink);
}

int command_dump(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "cfg", 'g', NULL, 0, "Print the control-flow graph of each function as well", 0 },
		{ 0 },
	};
	static const struct argp argp = { options, dump_key, "FILE",
		"Prints PTX as consan parsed it, or the events in a file that "
		"`consan-run --save' wrote: one event a line, after LAUNCH/CLUSTER.",
		NULL, NULL, NULL };
	static const struct event_reader reader = {
		.launch = dump_launch, .cluster_begin = dump_begin, .cluster_end = dump_end,
	};
	struct event_read_stats stats;
	struct dump_args a = { 0 };
	struct consan_err e = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (!event_is_stream(a.file))
		return dump_ptx(&a);
	if (!event_read(a.file, &reader, &stats, &e))
		return command_fail(&e);
	printf("# %llu launches, %llu clusters, %llu events; %llu clusters incomplete, "
		"%llu damaged parts\n", (unsigned long long)stats.launches,
		(unsigned long long)stats.clusters, (unsigned long long)stats.events,
		(unsigned long long)stats.incomplete, (unsigned long long)stats.damaged);
	return stats.damaged || stats.incomplete ? 1 : 0;
}
