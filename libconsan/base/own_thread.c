/* own_thread: see own_thread.h. Threads that find no place count as the program's. */
#include "own_thread.h"

#include <stdatomic.h>
#include <unistd.h>

enum { MOST = 1024 };
static _Atomic int own[MOST];    /* 0: free */
static _Atomic int used;         /* places from here on never were */
static _Atomic unsigned n;
static _Thread_local int at;     /* of this thread, from 1; 0: it has none */

void own_thread_begin(void)
{
	const int tid = gettid();

	for (int i = 0; i < MOST && !at; i++) {
		int none = 0;

		if (!own[i] && atomic_compare_exchange_strong(&own[i], &none, tid))
			at = i + 1;
	}
	for (int was = used; was < at && !atomic_compare_exchange_weak(&used, &was, at);)
		;
	n += at != 0;
}

void own_thread_end(void)
{
	if (!at)
		return;
	n--;
	own[at - 1] = 0;
	at = 0;
}

bool own_thread(int tid)
{
	for (int i = 0; i < used; i++)
		if (own[i] == tid)
			return true;
	return false;
}

unsigned own_threads(void)
{
	return n;
}

void own_threads_forget(void)
{
	for (int i = 0; i < used; i++)
		own[i] = 0;
	n = 0;
	at = 0;
}
