/* gpu_parts: what the files behind gpu.h share. Private to them. */
#ifndef CONSAN_GPU_PARTS_H
#define CONSAN_GPU_PARTS_H

#include "../instrument/decode.h"
#include "gpu.h"

struct gpu_module {
	struct ptx_module *ptx;
	struct rewrite *code;
	uint32_t *site;            /* site.h's, of code->site, then of code->batch */
	char variable[32];
	uint64_t *clean;           /* signatures of clusters in which nothing was found */
	size_t nclean, cap_clean;
	uint64_t *signature;       /* of the launch at hand: those not skipped */
	uint32_t nsignatures;
	bool told;                 /* that global memory is not looked at */
};

/* A later launch need not look at clusters of this signature. */
void gpu_note_clean(struct gpu_module *m, uint64_t signature);

#endif
