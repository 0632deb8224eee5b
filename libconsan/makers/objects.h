/* objects: what we know of the objects of a library, by their handles. */
#ifndef CONSAN_MAKERS_OBJECTS_H
#define CONSAN_MAKERS_OBJECTS_H

#include "libconsan/base/base.h"

#include <pthread.h>

struct object { const void *handle; void *known; };
struct objects {
	pthread_mutex_t lock;
	VEC(struct object) at;
};
#define OBJECTS { .lock = PTHREAD_MUTEX_INITIALIZER }

void objects_add(struct objects *o, const void *handle, void *known);
void *objects_find(struct objects *o, const void *handle); /* NULL: not known */
void *objects_take(struct objects *o, const void *handle); /* the same, and forgets it */

#endif
