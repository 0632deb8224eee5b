/* append: a file to which several processes add, a piece at a time, so that pieces do
 * not mix. Knows nothing of what is in them. */
#ifndef CONSAN_APPEND_H
#define CONSAN_APPEND_H

#include "libconsan/err.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct append {
	pthread_mutex_t lock;      /* the user's: for all that is called between open and close */
	int fd;
	pid_t pid;
	uint64_t session;          /* tells processes apart even after exec or fork; 62 bits */
};

/* Made if there is none. False + ERR_IO. */
bool append_open(struct append *a, const char *path, struct err *e);
/* After fork() a child goes on in the same file, with a session of its own, from this
 * call on. True: it is new. */
bool append_forked(struct append *a);
/* Both: errno, or 0. A piece that fails may be there in part. */
int append_write(struct append *a, const void *piece, size_t n);
int append_close(struct append *a);

#endif
