/* own_thread: which threads of the process are the library's own, and run no code of the program. */
#ifndef CONSAN_OWN_THREAD_H
#define CONSAN_OWN_THREAD_H

#include <stdbool.h>

/* The calling thread is one, until own_thread_end() or the end of the process. */
void own_thread_begin(void);
void own_thread_end(void);
bool own_thread(int tid);
unsigned own_threads(void);
/* In a forked child: there are none. */
void own_threads_forget(void);

#endif
