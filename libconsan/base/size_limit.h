/* size_limit: writing in the process of a program that has a limit for the size of its files (RLIMIT_FSIZE). What is
 * written beyond it is an error, and not the signal SIGXFSZ, which would end the program. */
#ifndef CONSAN_SIZE_LIMIT_H
#define CONSAN_SIZE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/select.h> /* sigset_t */

struct size_limit { sigset_t before; bool held; };
/* Before and after what writes to files or changes their sizes, in the same thread. */
void size_limit_begin(struct size_limit *s);
void size_limit_end(const struct size_limit *s); /* keeps errno */
bool size_limit_set(int fd, size_t bytes);       /* ftruncate() between the two */

#endif
