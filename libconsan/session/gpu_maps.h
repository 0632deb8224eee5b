/* gpu_maps: the tensor maps through which a launch on a GPU copies, and the memory that such a
 * copy accesses. */
#ifndef CONSAN_GPU_MAPS_H
#define CONSAN_GPU_MAPS_H

#include "instrument/decode/decode.h"
#include "libconsan/exec/exec.h"
#include "gpu.h"

#include <pthread.h>

struct gpu_maps {
	const struct gpu_launch *l;
	uint32_t param_bytes;
	uint64_t base;             /* their generic address; 0: not known */
	/* of the first map that could not be read: where it is, and why; under the lock */
	pthread_mutex_t lock;
	char unread[160];
};

/* decode_launch.box */
bool gpu_maps_box(struct gpu_maps *m, struct decode_box *b);
/* Copies CONSAN_TENSORMAP_BYTES at this offset of the parameters. False: they cannot be read. */
bool gpu_maps_param(const struct gpu_maps *m, uint64_t at, void *bytes);
/* A hash of the maps among the parameters, which records name by their offset only. The
 * addresses that the maps hold are left out. */
uint64_t gpu_maps_hash(const struct gpu_maps *m);

#endif
