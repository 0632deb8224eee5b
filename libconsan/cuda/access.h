/* access: what the instruction of a fault does to memory, by its machine code, and how it is done without the
 * page being opened, as other threads would access it then, too.
 *
 * An instruction with a memory operand is run in the handler of the fault, with the registers of the thread, from
 * a copy of its code whose operand is a buffer: what it reads is copied there before, what it has changed is
 * copied back. Of string instructions the handler does what is in one page. */
#ifndef CONSAN_CUDA_ACCESS_H
#define CONSAN_CUDA_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

struct host_access {
	uintptr_t at;
	size_t bytes;            /* 1: not known */
	bool reads, writes;      /* both: a read-modify-write */
};

enum access_kind { ACCESS_OTHER,  /* not known how it is done */
	ACCESS_OPERAND, ACCESS_MOVS, ACCESS_STOS, ACCESS_LODS };

/* An instruction; or of one that is repeated as many elements as are in one page. */
struct instruction {
	enum access_kind kind;
	struct host_access access[2]; /* the second one is made by ACCESS_MOVS only */
	unsigned n;              /* of these */
	size_t elements, size;   /* of a string instruction: how many, bytes of one */
	bool repeats;            /* ... it has a count */
	uintptr_t operand;       /* ACCESS_OPERAND: where it is; */
	uint8_t code[24];        /* the copy, whose operand is where `base` points, and a return */
	unsigned code_bytes, base;
	unsigned length;         /* of the instruction */
	bool extended;           /* it needs the state of the processor beyond general registers */
};

/* at: the byte of the fault. */
struct instruction access_decode(const ucontext_t *u, uintptr_t at);
/* Does it, and sets the registers as it does. guarded[i]: the memory of access[i] may be protected by us. False: it
 * was not done. Not from several threads at once. */
bool access_run(const struct instruction *x, ucontext_t *u, const bool guarded[2]);

/* Memory of this process, also if the page is protected. False: it failed; some of it may be written. */
bool access_read(uintptr_t at, void *to, size_t bytes);
bool access_write(uintptr_t at, const void *from, size_t bytes);

#endif
