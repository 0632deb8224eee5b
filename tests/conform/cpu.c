/* Runs a program on the executor. */
#include "conform.h"
#include "libconsan/exec/exec.h"

#include <stdlib.h>
#include <string.h>

static unsigned char *make_maps(const struct program *p, unsigned char *out, struct consan_err *e)
{
	unsigned char *maps = base_alloc_aligned(128, CONSAN_TENSORMAP_BYTES * (p->nmaps + 1));

	for (unsigned k = 0; k < p->n; k++) {
		const struct item *i = &p->item[k];
		if (!i->map)
			continue;
		struct consan_tensormap_args a = i->map->args;
		a.address += (uintptr_t)(i->map_out ? out + i->out_at : p->in + i->in_at);
		if (!exec_tensormap(&a, maps + CONSAN_TENSORMAP_BYTES * i->map_index, e)) {
			free(maps);
			return NULL;
		}
	}
	return maps;
}

/* No memory is behind these addresses. */
static struct exec_multicast *make_multicast(const struct program *p, unsigned char *out)
{
	struct exec_multicast *m = base_alloc(sizeof *m + 2 * sizeof m->bound[0]);
	const uint64_t at = (uintptr_t)out + MULTICAST_AT;

	m->devices = 2;
	m->n = 2;
	m->bound[0] = (struct exec_binding){ at, p->out_bytes, (uintptr_t)out, 0 };
	m->bound[1] = (struct exec_binding){ at, p->out_bytes - MULTICAST_PART,
		(uintptr_t)out + MULTICAST_PART, 1 };
	exec_mem_put(&(struct exec_mem){ at, p->out_bytes, MEM_DEVICE, false, 0, NULL, false, m });
	return m;
}

static bool launch(const struct program *p, struct exec_module *m, unsigned char *out,
	unsigned char *maps, struct consan_err *e)
{
	uint64_t params[] = { (uintptr_t)p->in, (uintptr_t)out, (uintptr_t)maps };
	struct exec_launch l = { .device = exec_device_for(p->class->sm),
		.grid = { p->ctas, 1, 1 }, .block = { CTA_THREADS, 1, 1 },
		.cluster = { p->class->cluster, 1, 1 }, .params = params, .jobs = 1,
		.timeout = 60,
		/* values must not depend on the schedule */
		.seed = p->seed, .async = (enum exec_async)(p->seed % 3) };
	struct exec_result r = { 0 };
	struct exec_multicast *multicast;

	l.kernel = exec_kernel(m, "conform", e);
	if (!l.kernel)
		return false;
	exec_mem_add(p->in, p->in_bytes, MEM_DEVICE, false);
	exec_mem_add(out, p->out_bytes, MEM_DEVICE, false);
	exec_mem_add(maps, CONSAN_TENSORMAP_BYTES * (p->nmaps + 1), MEM_DEVICE, false);
	multicast = make_multicast(p, out);
	exec_run(&l, &r);
	exec_mem_remove(out + MULTICAST_AT);
	free(multicast);
	exec_mem_remove(p->in);
	exec_mem_remove(out);
	exec_mem_remove(maps);
	if (r.status == EXEC_OK)
		return true;
	*e = r.err;
	if (!e->text[0])
		err_set(e, CONSAN_ERR_LAUNCH, 0, 0, "the executor stopped with status %d, fault %u, site "
			"%u",
			(int)r.status, r.fault, r.site);
	return false;
}

bool cpu_run(const struct program *p, unsigned char *out, struct consan_err *e)
{
	struct ptx_module *ptx = ptx_parse(p->class->name, p->ptx.at, p->ptx.n, e);
	struct exec_module *m = ptx ? exec_load(ptx, e) : NULL;
	unsigned char *maps = m ? make_maps(p, out, e) : NULL;
	bool ok;

	if (!m)
		return false;
	memcpy(out, p->out, p->out_bytes);
	ok = maps && launch(p, m, out, maps, e);
	free(maps);
	exec_unload(m);
	return ok;
}
