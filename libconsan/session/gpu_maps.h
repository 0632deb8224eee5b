/* gpu_maps: the tensor maps that a launch on a GPU copies through, and the boxes that
 * they stand for. */
#ifndef CONSAN_GPU_MAPS_H
#define CONSAN_GPU_MAPS_H

#include "instrument/decode/decode.h"
#include "libconsan/exec/exec.h"
#include "gpu.h"

struct gpu_maps {
	const struct gpu_launch *l;
	uint32_t param_bytes;
	uint64_t base;             /* their generic address; 0: not known */
	/* by place there; found by gpu_launch_open(), as several threads will ask */
	VEC(struct gpu_map { uint32_t at; struct tensormap map; }) param;
};

/* Answers for decode_launch.box. */
bool gpu_maps_box(const struct gpu_maps *m, struct decode_box *b);
/* What the maps among the parameters say, as records name them by their place only;
 * what they point at does not count. */
uint64_t gpu_maps_hash(const struct gpu_maps *m);

#endif
