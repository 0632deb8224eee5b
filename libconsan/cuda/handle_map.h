/* handle_map: maps the handles that the program holds to our objects.
 *
 * The key is (pointer, kind). Each handle is looked up here before it is dereferenced, so
 * that a stale or unknown handle leads to an error and not to a crash. Thread-safe. The map
 * does not own the objects. */
#ifndef CONSAN_CUDA_HANDLE_MAP_H
#define CONSAN_CUDA_HANDLE_MAP_H

#include "libconsan/base/base.h"

enum handle_kind {
	HANDLE_NONE,
	HANDLE_STREAM, HANDLE_EVENT, HANDLE_IMAGE, HANDLE_FUNC, HANDLE_GRAPH,
	HANDLE_GRAPH_EXEC, HANDLE_NODE, HANDLE_POOL, HANDLE_LINK, HANDLE_CONTEXT, HANDLE_OBJECT, HANDLE_VMM,
	HANDLE_GREEN, HANDLE_RESOURCES, /* green.c */
	HANDLE_BLAS, HANDLE_LT, HANDLE_FFT, HANDLE_RAND, HANDLE_DNN,
	HANDLE_ARRAY, HANDLE_MIPMAPPED, HANDLE_TEXTURE, HANDLE_SURFACE,
	HANDLE_STUB,    /* host stub of a kernel -> struct func */
	HANDLE_VAR,     /* host copy of a variable -> struct var */
	HANDLE_MEMORY,  /* start of an allocation of mem_alloc() -> itself */
	HANDLE_OWNED,   /* start of memory that a graph owns -> its record */
	HANDLE_HOST,    /* page-locked or registered host memory -> its flags + 1 */
};

/* Adds or replaces an entry. key and value are not NULL. */
void handle_put(const void *key, enum handle_kind kind, void *value);
void *handle_get(const void *key, enum handle_kind kind); /* NULL: unknown */
bool handle_drop(const void *key, enum handle_kind kind); /* false: unknown */
/* Calls `call` for each handle of a kind while the lock of the map is held. */
void handle_each(enum handle_kind kind, void (*call)(void *value, void *user), void *user);

#endif
