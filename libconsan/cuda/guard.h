/* guard: what guard.c, guard_looks.c and guard_fault.c share. */
#ifndef CONSAN_CUDA_GUARD_H
#define CONSAN_CUDA_GUARD_H

#include "access.h"
#include "queue.h"

#include <signal.h>
#include <stdatomic.h>

enum { PAGE = 4096 };
enum { FREE_PAGE, NO_WRITES, NO_ACCESS };
enum { OPENED = UINT16_MAX };    /* in place of looks: it is free until something has changed memory */

struct area {
	uintptr_t at;
	size_t pages;
	uint8_t *wanted, *now;   /* FREE_PAGE, ... */
	uint16_t *looks;         /* host accesses that were looked at since something has changed memory */
	uint16_t *most;          /* looks until the page is opened; 0: as usual */
	bool *readable;          /* it is opened for reads only */
};

struct guard {
	pthread_mutex_t lock;    /* of all of this, but for what is atomic */
	VEC(struct area) area;
	size_t guarded;          /* pages; atomic */
	unsigned suspended;      /* how often guard_suspend() */
	bool queued;             /* operations have not run to their end */
	bool idle;               /* ... and none can run: the pages are protected */
	bool unseen;             /* what runs, runs beside host code */
	_Atomic bool changed;    /* what ran has changed memory */
	_Atomic bool written;    /* the host has, since something ran */
	bool opened;             /* ... or may have, in a page that is opened */
	unsigned vain;           /* how often something ran that has changed nothing */
	unsigned function_left;  /* accesses of the host function that are still looked at */
	_Atomic bool partly;     /* some memory shares a page with other memory: accesses to it are not seen */
};
extern struct guard guard;
extern _Thread_local bool guard_inside; /* has the lock: its own output is no access of the program */

/* ---- guard.c; under the lock, but for guard_lock() ---- */

void guard_lock(void);
void guard_unlock(void);
struct area *guard_area(uintptr_t at); /* NULL: none */
void guard_protect(struct area *a, size_t first, size_t n, uint8_t to);
/* What is wanted of all its pages, of one. */
void guard_want(struct area *a);
void guard_want_one(struct area *a, size_t page);
/* No page is protected until the next operation has run. */
void guard_free_all(void);

/* ---- guard_looks.c; under the lock ---- */

/* The page is accessed, often perhaps: then it is opened until something has changed memory, and earlier the next
 * time. What the host reads of it matters less, as long as no grid signals by words of it. */
void guard_count(struct area *a, size_t page, bool write);
/* Not all accesses of the host to it are seen from now on; readable: but writes are. */
void guard_open(struct area *a, size_t page, bool readable);
/* Does the thread access the word again, and nothing has changed memory since? *enough: and often enough that grids
 * look at memory again. */
bool guard_repeats(uintptr_t at, bool *enough);
/* Something has changed memory. */
void guard_forget_looks(void);

/* ---- guard_fault.c ---- */

/* Handlers; again each time, as the program may have installed its own since. */
void guard_install(void);

#endif
