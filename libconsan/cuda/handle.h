/* handle: which pointers of the program mean something to us.
 *
 * A table from (pointer, kind) to what it stands for. Streams, events and the
 * like are looked up here before they are touched, so that a stale or foreign
 * handle is an error and not a crash. Thread-safe; owns nothing. */
#ifndef CONSAN_CUDA_HANDLE_H
#define CONSAN_CUDA_HANDLE_H

#include "libconsan/base/base.h"

enum handle_kind {
	HANDLE_NONE,
	HANDLE_STREAM, HANDLE_EVENT, HANDLE_IMAGE, HANDLE_FUNC, HANDLE_GRAPH,
	HANDLE_GRAPH_EXEC, HANDLE_NODE, HANDLE_POOL, HANDLE_LINK, HANDLE_CONTEXT,
	HANDLE_STUB,    /* host stub of a kernel -> struct func */
	HANDLE_VAR,     /* host shadow of a variable -> struct var */
	HANDLE_MEMORY,  /* start of what mem_alloc() gave -> itself */
	HANDLE_HOST,    /* page-locked or registered host memory -> its flags */
};

void handle_put(const void *key, enum handle_kind kind, void *value);
void *handle_get(const void *key, enum handle_kind kind); /* NULL: unknown */
bool handle_drop(const void *key, enum handle_kind kind);
/* Calls for each handle of a kind, under the table's lock. */
void handle_each(enum handle_kind kind, void (*call)(void *value, void *user), void *user);

#endif
