/* link: the driver's linker (cuLinkCreate() and so on). Its output is machine code; its PTX, which is
 * that of the inputs, goes into the store, where it is found when the program loads the output. */
#include "callback.h"

#include <pthread.h>
#include <stdlib.h>

#include "libconsan/origin/origin.h"

struct link { CUlinkState state; struct parts parts; };

static struct {
	pthread_mutex_t lock;
	VEC(struct link) at;
} links = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* With the lock held. The linker; a new one if it is not known. */
static struct link *link_of(CUlinkState state)
{
	for (size_t k = 0; k < links.at.n; k++)
		if (links.at.at[k].state == state)
			return &links.at.at[k];
	vec_push(&links.at, ((struct link){ .state = state }));
	return &links.at.at[links.at.n - 1];
}

static void on_add(const struct inject_call *c)
{
	const cuLinkAddData_v2_params *p = c->params;
	struct link *l;
	char suffix;
	unsigned sm;

	if (!c->succeeded)
		return;
	sm = inject_sm(&suffix);
	pthread_mutex_lock(&links.lock);
	l = link_of(p->state);
	if (p->type == CU_JIT_INPUT_PTX)
		parts_add_ptx(&l->parts, p->data, p->size);
	else
		parts_add(&l->parts, p->data, p->size, sm, suffix);
	pthread_mutex_unlock(&links.lock);
}

static void on_add_file(const struct inject_call *c)
{
	const cuLinkAddFile_v2_params *p = c->params;
	char suffix;
	unsigned sm;

	if (!c->succeeded)
		return;
	sm = inject_sm(&suffix);
	pthread_mutex_lock(&links.lock);
	parts_add_file(&link_of(p->state)->parts, p->path, sm, suffix);
	pthread_mutex_unlock(&links.lock);
}

static void on_complete(const struct inject_call *c)
{
	const cuLinkComplete_params *p = c->params;

	if (!c->succeeded || !p->cubinOut || !*p->cubinOut)
		return;
	pthread_mutex_lock(&links.lock);
	parts_put(&link_of(p->state)->parts, *p->cubinOut, p->sizeOut ? *p->sizeOut : SIZE_MAX);
	pthread_mutex_unlock(&links.lock);
}

static void on_destroy(const struct inject_call *c)
{
	const cuLinkDestroy_params *p = c->params;
	struct link *l;

	if (!c->enter)
		return;
	pthread_mutex_lock(&links.lock);
	l = link_of(p->state);
	parts_free(&l->parts);
	*l = links.at.at[--links.at.n];
	pthread_mutex_unlock(&links.lock);
}

const struct inject_handler inject_link_handlers[] = {
	INJECT_HANDLER(cuLinkAddData_v2, on_add)
	INJECT_HANDLER(cuLinkAddFile_v2, on_add_file)
	INJECT_HANDLER(cuLinkComplete, on_complete)
	INJECT_HANDLER(cuLinkDestroy, on_destroy)
	{ 0, NULL },
};
