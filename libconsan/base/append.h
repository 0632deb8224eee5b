/* append: a file to which several processes append records, each in one write, so that
 * records do not interleave. */
#ifndef CONSAN_APPEND_H
#define CONSAN_APPEND_H

#include "libconsan/err.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct append {
	pthread_mutex_t lock;      /* for the caller, who serializes calls between open and close */
	int fd;
	pid_t pid;
	uint64_t session;          /* random id of this process image, 62 bits; new after fork */
};

/* Opens or creates the file. False: CONSAN_ERR_IO in *e. */
bool append_open(struct append *a, const char *path, struct consan_err *e);
/* Called before each write: after fork(), a child continues in the same file with a new
 * session id. True: the id has changed. */
bool append_forked(struct append *a);
/* Both return 0 or an errno value. A record that fails may be written in part. */
int append_write(struct append *a, const void *piece, size_t n);
int append_close(struct append *a);

#endif
