/* tmem_alloc: the allocation protocol of tensor memory, and rules about how tcgen05 instructions
 * are issued that need no order between threads (E01 to E06, E10 to E12, E26, E29). */
#ifndef CONSAN_CHECK_TMEM_ALLOC_H
#define CONSAN_CHECK_TMEM_ALLOC_H

#include "libconsan/base/base.h"

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct event;
struct finding;

/* An instruction of a warp of the CTA. site 0: none */
struct alloc_site {
	uint32_t site, warp;
};

struct allocation {
	struct alloc_site by;
	uint16_t column, columns;
	bool pair;
};

#define COLLECTORS 5         /* A, B0 to B3 */

struct collector {
	struct alloc_site fill;  /* site 0: the buffer holds nothing */
	uint64_t matrix;         /* descriptor or address */
	struct alloc_site gone;  /* the operation that discarded the contents */
};

/* Instructions that only order others, and what each acts on. before_thread_sync: tcgen05
 * operations and synchronisations since the last one; after_thread_sync: synchronisations */
enum alloc_order { ORDERS_LOADS, ORDERS_STORES, ORDERS_BEFORE, ORDERS_AFTER };

struct alloc_use {
	struct alloc_site by;    /* one warp that executed it */
	enum alloc_order kind;
	bool useful;             /* some execution had something to order */
};

struct tmem_allocs {         /* of one CTA */
	VEC(struct allocation) live;
	VEC(struct alloc_use) use;   /* one for each site */
	struct allocation last;      /* the newest allocation; by.site 0: none */
	struct alloc_site group[2];  /* the first instruction of .cta_group::1 and ::2 */
	struct collector collector[COLLECTORS];
	uint32_t pending[4];         /* by what they order: warps with something to order */
	bool used[4];                /* some warp had */
	bool relinquished;
	struct {                     /* the newest operation of an instruction of several lanes */
		uint64_t count;      /* of events, when it was handled */
		uint32_t site, warp, d;
	} several;
};

/* An event of tensor memory: checks it and updates the state of its CTA. */
void alloc_on_event(struct cluster *c, const struct event *e);
void alloc_cta_end(struct cluster *c, const struct event *e);
void alloc_reset(struct tmem_allocs *t);
void alloc_free(struct tmem_allocs *t);
/* The instructions that hold columns of a CTA, as text for a hang: "columns 0 to 255 by warp 1 at
 * file.cu:12"; returns to. */
char *alloc_holders(const struct cluster *c, unsigned cta, char *to, size_t n);
unsigned alloc_free_columns(const struct cluster *c, unsigned cta);
/* The newest allocation that is still live; by.site 0: none */
struct allocation alloc_newest(const struct cluster *c, unsigned cta);

#endif
