/* table: cuda.def as data. */
#ifndef CONSAN_CUDA_TABLE_H
#define CONSAN_CUDA_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct table_row {
	const char *name;
	void *call;
	int since;      /* CUDA version that brought a driver call, or 0 */
	bool driver;
};
extern const struct table_row table_rows[];
extern const size_t table_count;

/* The newest spelling of a driver call that a program of this CUDA version
 * knows; base names ("cuMemAlloc") find their versions ("cuMemAlloc_v2").
 * per_thread: prefer the _ptsz spelling. NULL: no such call. */
void *table_find(const char *name, int version, bool per_thread);
/* Exactly this symbol of the runtime API; NULL: none. */
void *table_runtime(const char *name);

#endif
