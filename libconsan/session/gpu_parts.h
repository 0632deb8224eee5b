/* gpu_parts: what the files behind gpu.h share. Private to them. */
#ifndef CONSAN_GPU_PARTS_H
#define CONSAN_GPU_PARTS_H

#include "instrument/decode/decode.h"
#include "libconsan/check/check.h"
#include "gpu.h"
#include "libconsan/base/base.h"

struct gpu_module {
	struct ptx_module *ptx;
	struct rewrite *code;
	struct decode_sites *sites;
	struct decode_screen_sites screen;
	uint16_t *place, *like;    /* struct screen_job's; NULL: there are too many places */
	VEC(struct gpu_place { uint32_t site; bool reduces; }) places; /* 0 is not used; site: of site.h */
	char *unrecorded;          /* why accesses to global memory are not recorded, though they are of other
				      modules; NULL: they are, or of none */
	struct number_set noted;   /* its kernels, by rewrite_func, of which the report says so */
	uint32_t *site;            /* site.h's ids of code->site, then of code->batch */
	char variable[32];
	struct number_set clean;   /* signatures of clusters in which nothing was found */
	uint64_t *signature;       /* of the clusters of this launch that are not skipped */
	uint32_t nsignatures;
};

/* A launch that is being checked; not to be moved. */
struct gpu_running {
	struct consan *c;
	struct check *check;
	const struct gpu_launch *l;
	const struct rewrite_func *func;
	struct check_config config;
	struct check_memory *memory; /* what config has if the launch is not screened */
	struct decode_launch decode;
	struct decode_result result;
	struct ev_symbol *symbols;
	bool queued;               /* the pre-check decodes on one thread and checks on another */
};
/* What gpu_check() does before and after decoding, under consan.launching. */
void gpu_running_begin(struct gpu_running *f, struct consan *c, const struct gpu_launch *l);
void gpu_running_end(struct gpu_running *f);

/* gpu_screen.c: sets and frees `screen` and what follows it. */
void gpu_screen_open(struct gpu_module *m);
void gpu_screen_close(struct gpu_module *m);
/* Calls each() for the ranges that a screened launch accessed. */
void gpu_screen_accesses(const struct gpu_launch *l, void (*each)(void *user, const struct check_range *r),
	void *user);

/* gpu_emulate_screen.c: sets l->screened and what belongs to it. Returns the edges, which the caller frees. */
struct screen_edge *gpu_emulate_screen(struct consan *c, struct gpu_launch *l);

/* In later launches, clusters of this signature are skipped. */
void gpu_add_clean(struct gpu_module *m, uint64_t signature);

#endif
