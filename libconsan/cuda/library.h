/* library: calls of cuBLAS, cuFFT and cuRAND by the program.
 *
 * The kernels of these libraries are machine code without PTX. Programs call them mostly for
 * reference results, so on the CPU backend a library of the distribution, or cuRAND's own code for
 * the host, does the work in device memory, which is host memory. lib_*.c export functions with the
 * libraries' names, which the dynamic linker finds first (and dlsym(), see makers/library.c). All
 * others of these libraries are refused (lib_refuse.c). They are unchecked. */
#ifndef CONSAN_CUDA_LIBRARY_H
#define CONSAN_CUDA_LIBRARY_H

#include "internal.h"

enum { LIBRARY_SPANS = 8 };

/* The beginning of what a call needs when its turn on the stream has come. */
struct library_call {
	const char *name;            /* of the function that the program called */
	bool part;                   /* of a call that another operation completes, which is counted */
	const void *stream;
	void (*run)(struct library_call *call);
	struct hb_span span[LIBRARY_SPANS];
	unsigned nspans;
	/* What is known only when the turn has come: tells more spans. May be NULL. */
	void (*more)(const struct library_call *call,
		void (*tell)(void *user, const struct hb_span *span), void *user);
	_Atomic unsigned users;      /* operations that have this call: of streams and graphs */
};

/* Notes bytes that a call will access; nothing if there are none. */
void library_span(struct library_call *call, bool write, const void *at, size_t width, size_t pitch,
	size_t rows, size_t slice, size_t slices);
/* Puts a call of `bytes` bytes, which are copied, on its stream; it is counted. Returns an enum
 * cudaError: invalid handles, a device after a fault, or bytes of no allocation. */
int library_issue(struct library_call *call, size_t bytes);
/* Runs the call of an operation, and tells libconsan/order what it accessed. Returns an enum cudaError:
 * bytes of no allocation. */
int library_run(struct library_call *call, struct order_op *order);
struct library_call *library_get(struct library_call *call); /* one more user */
void library_put(struct library_call *call);
void library_wait(const void *stream); /* until the calls issued to it are done */

/* A function of a library of the distribution; NULL: it is not installed, reported once. */
enum host_library { HOST_BLAS, HOST_FFT, HOST_FFTF };
void *host_function(enum host_library library, const char *name);
/* The library's own function; file: the beginning of its file's name. NULL: it is not loaded. */
void *library_own(const char *file, const char *name);
/* Reports a call, or a form of it, that is not done here; what: which form, or "". */
void library_refused(const char *name, const char *what);

/* Is it a library of which all calls are ours or refused? path: its file. */
bool library_is_replaced(const char *path);
/* What is to be executed instead of the library's own function of this name; NULL: that one itself.
 * Never freed. */
void *library_instead(const char *name);

void library_end(void); /* writes the remarks before the session is closed */

#endif
