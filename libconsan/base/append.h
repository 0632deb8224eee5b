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
	char *path;                /* absolute */
	dev_t dev;                 /* the file's: the program may close our descriptor, ... */
	ino_t ino;                 /* ... and open a file of its own under that number */
	pid_t pid;
	uint64_t session;          /* random id of this process image, 62 bits; new after fork */
	bool removed;              /* another process has removed the file: what is written is lost */
};

/* Opens or creates the file. False: CONSAN_ERR_IO in *e. */
bool append_open(struct append *a, const char *path, struct consan_err *e);
/* Called before each write: after fork(), a child continues in the same file with a new
 * session id and a file offset of its own. True: the id has changed. Opens the file again if the program
 * has closed our descriptor. */
bool append_forked(struct append *a);
bool append_is_ours(const struct append *a, int fd); /* is the file open under this descriptor? */
/* Both return 0 or an errno value. A record that fails may be written in part. */
int append_write(struct append *a, const void *piece, size_t n);
int append_close(struct append *a);

#endif
