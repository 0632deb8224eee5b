/* gpu_parts: what the files behind gpu.h share. Private to them. */
#ifndef CONSAN_GPU_PARTS_H
#define CONSAN_GPU_PARTS_H

#include "instrument/decode/decode.h"
#include "libconsan/check/check.h"
#include "gpu.h"

struct gpu_module {
	struct ptx_module *ptx;
	struct rewrite *code;
	struct decode_sites *sites;
	uint32_t *site;            /* site.h's, of code->site, then of code->batch */
	char variable[32];
	struct number_set {
		uint64_t *at;      /* 0: none */
		size_t n, cap;
	} clean,                   /* signatures of clusters in which nothing was found */
		shapes;            /* of launches so far */
	uint64_t *signature;       /* of the launch at hand: those not skipped */
	uint32_t nsignatures;
	bool told;                 /* that global memory is not looked at */
};

/* Threads that wait for the end of a launch awake: those of two clusters, and as many again,
 * so that there is a choice. */
#define GPU_AWAKE 12u

/* A later launch need not look at clusters of this signature. */
void gpu_note_clean(struct gpu_module *m, uint64_t signature);

/* ---- gpu_brief.c ---- */
/* Is it worth asking in this session? */
bool gpu_brief_asks(const struct consan *c);
/* True: there is nothing to find in the launch. d's sinks are gpu_brief_begin()'s
 * meanwhile. Into cost go the threads of a cluster, whose clusters are known. */
bool gpu_brief(struct consan *c, const struct check_config *config, const struct rewrite_func *f,
	struct decode_launch *d, struct decode_result *r, struct gpu_cost *cost);
struct event_sink *gpu_brief_begin(struct consan *c, const struct cluster_info *info, bool registers);
void gpu_brief_end(struct consan *c, struct event_sink *sink, bool registers);
/* See gpu_stand_by(), gpu_expect(). */
void gpu_brief_stand_by(struct consan *c);
void gpu_brief_expect(struct consan *c, const struct gpu_launch *l);

#endif
