/* objects: see objects.h. */
#include "objects.h"

#include <stdlib.h>

void objects_add(struct objects *o, const void *handle, void *known)
{
	pthread_mutex_lock(&o->lock);
	vec_push(&o->at, ((struct object){ handle, known }));
	pthread_mutex_unlock(&o->lock);
}

static void *find(struct objects *o, const void *handle, bool forget)
{
	void *known = NULL;
	size_t k = 0;

	pthread_mutex_lock(&o->lock);
	while (k < o->at.n && o->at.at[k].handle != handle)
		k++;
	if (k < o->at.n) {
		known = o->at.at[k].known;
		if (forget)
			o->at.at[k] = o->at.at[--o->at.n];
	}
	pthread_mutex_unlock(&o->lock);
	return known;
}

void *objects_find(struct objects *o, const void *handle)
{
	return find(o, handle, false);
}

void *objects_take(struct objects *o, const void *handle)
{
	return find(o, handle, true);
}
