/* entry_points: the calls of cuda.def by name. */
#ifndef CONSAN_CUDA_ENTRY_POINTS_H
#define CONSAN_CUDA_ENTRY_POINTS_H

#include <stdbool.h>
#include <stddef.h>

struct entry_point {
	const char *name;
	void *call;
	int since;      /* CUDA version that introduced this driver call, or 0 */
	bool driver;
};
extern const struct entry_point entry_points[];
extern const size_t entry_point_count;

/* The newest version of a driver call that exists in this CUDA version (12080 for 12.8): the
 * base name "cuMemAlloc" finds "cuMemAlloc_v2". per_thread: prefer the _ptsz variant, which
 * uses the per-thread default stream. NULL: no such call. */
void *entry_point_find(const char *name, int version, bool per_thread);
/* The symbol of the runtime API of exactly this name; NULL: none. */
void *entry_point_runtime(const char *name);

#endif
