/* access_run: does in the handler of a fault what the instruction does; see access.h.
 *
 * Memory behind protected pages is accessed by /proc/self/mem, whose writes and reads the protection of pages does
 * not stop (proc_pid_mem(5)). The state of the processor is where the kernel has saved it for the handler, in the
 * format of XSAVE (Intel's Software Developer's Manual, volume 1, 13.4; struct _fpx_sw_bytes in Linux). */
#include "access.h"
#include "libconsan/base/base.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { VECTOR = 64, PAGE = 4096 };

/* ---- memory ---- */

/* The program may have closed the file, and opened another one under its number; a forked child has other memory. */
static int memory(void)
{
	static int fd = -1;
	static pid_t of;
	static struct stat is;
	struct stat now;

	if (fd >= 0 && of == getpid() && !fstat(fd, &now) && now.st_dev == is.st_dev && now.st_ino == is.st_ino)
		return fd;
	of = getpid();
	fd = base_open("/proc/self/mem", O_RDWR, 0);
	if (fd >= 0 && fstat(fd, &is))
		fd = -1;
	return fd;
}

bool access_read(uintptr_t at, void *to, size_t bytes)
{
	return pread(memory(), to, bytes, (off_t)at) == (ssize_t)bytes;
}

bool access_write(uintptr_t at, const void *from, size_t bytes)
{
	return pwrite(memory(), from, bytes, (off_t)at) == (ssize_t)bytes;
}

/* With the protection that the program's pages have. */
static bool copy_as_program(uintptr_t at, void *buffer, size_t bytes, bool write)
{
	const struct iovec own = { buffer, bytes }, other = { (void *)at, bytes };
	const ssize_t n = write ? process_vm_writev(getpid(), &own, 1, &other, 1, 0)
		: process_vm_readv(getpid(), &own, 1, &other, 1, 0);

	return n == (ssize_t)bytes;
}

/* ---- instructions with an operand ---- */

enum { REGISTERS = 16 };
static const int register_at[REGISTERS] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
enum { STATUS = 0x8d5 };   /* flags: CF, PF, AF, ZF, SF, OF */
/* In the saved state: at XSTATE, that it is in the format of XSAVE, and its components. Of these, x87, SSE, AVX and
 * AVX-512 (opmask, ZMM_Hi256, Hi16_ZMM). */
enum { XSTATE = 464, XSTATE_MAGIC = 0x46505853, COMPONENTS = 0xe7 };
enum { MASKED = 0x1f80, MASKED_X87 = 0x3f }; /* exceptions, in MXCSR and in the control word */

struct state {
	uint64_t r[REGISTERS];   /* but for the stack pointer */
	uint64_t flags;
	const void *code;
	void *saved;             /* NULL: it needs general registers only */
	uint64_t components;
	uint64_t own;            /* MXCSR */
};

void access_call(struct state *s) __attribute__((visibility("hidden")));
__asm__(
	".pushsection .text\n"
	"	.hidden access_call\n"
	"	.globl access_call\n"
	"	.type access_call, @function\n"
	"access_call:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	push %rdi\n"
	"	push 136(%rdi)\n"                      /* code */
	"	mov 144(%rdi), %rcx\n"
	"	test %rcx, %rcx\n"
	"	jz 1f\n"
	"	stmxcsr 160(%rdi)\n"
	"	mov 152(%rdi), %eax\n"
	"	xor %edx, %edx\n"
	"	xrstor64 (%rcx)\n"
	"1:	push 128(%rdi)\n	popf\n"
	"	mov (%rdi), %rax\n	mov 8(%rdi), %rcx\n	mov 16(%rdi), %rdx\n	mov 24(%rdi), %rbx\n"
	"	mov 40(%rdi), %rbp\n	mov 48(%rdi), %rsi\n"
	"	mov 64(%rdi), %r8\n	mov 72(%rdi), %r9\n	mov 80(%rdi), %r10\n	mov 88(%rdi), %r11\n"
	"	mov 96(%rdi), %r12\n	mov 104(%rdi), %r13\n	mov 112(%rdi), %r14\n	mov 120(%rdi), %r15\n"
	"	mov 56(%rdi), %rdi\n"
	"	call *(%rsp)\n"
	"	mov %rax, (%rsp)\n"
	"	mov 8(%rsp), %rax\n"
	"	mov %rcx, 8(%rax)\n	mov %rdx, 16(%rax)\n	mov %rbx, 24(%rax)\n"
	"	mov %rbp, 40(%rax)\n	mov %rsi, 48(%rax)\n	mov %rdi, 56(%rax)\n"
	"	mov %r8, 64(%rax)\n	mov %r9, 72(%rax)\n	mov %r10, 80(%rax)\n	mov %r11, 88(%rax)\n"
	"	mov %r12, 96(%rax)\n	mov %r13, 104(%rax)\n	mov %r14, 112(%rax)\n	mov %r15, 120(%rax)\n"
	"	pop (%rax)\n"
	"	pushf\n	pop 128(%rax)\n"
	"	pop %rdi\n"
	"	mov 144(%rdi), %rcx\n"
	"	test %rcx, %rcx\n"
	"	jz 2f\n"
	"	mov 152(%rdi), %eax\n"
	"	xor %edx, %edx\n"
	"	xsave64 (%rcx)\n"
	"	fninit\n"
	"	ldmxcsr 160(%rdi)\n"
	"2:	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	"	.size access_call, . - access_call\n"
	".popsection\n");

_Static_assert(offsetof(struct state, flags) == 128 && offsetof(struct state, code) == 136
	&& offsetof(struct state, saved) == 144 && offsetof(struct state, components) == 152
	&& offsetof(struct state, own) == 160, "as access_call() has it");

/* False: it is not there, or the instruction could raise an exception. */
static bool find_saved(const ucontext_t *u, struct state *s)
{
	char *saved = (char *)u->uc_mcontext.fpregs;
	uint32_t magic;

	if (!saved || (u->uc_mcontext.fpregs->mxcsr & MASKED) != MASKED
			|| (u->uc_mcontext.fpregs->cwd & MASKED_X87) != MASKED_X87)
		return false;
	memcpy(&magic, saved + XSTATE, sizeof magic);
	memcpy(&s->components, saved + XSTATE + 8, sizeof s->components);
	s->components &= COMPONENTS;
	s->saved = saved;
	return magic == XSTATE_MAGIC;
}

/* A page for the copy of the instruction, which is often the one that is there. */
static const void *place_code(const struct instruction *x)
{
	static uint8_t *page;

	if (!page) {
		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		page = page == MAP_FAILED ? NULL : page;
	}
	if (page && memcmp(page, x->code, x->code_bytes))
		memcpy(page, x->code, x->code_bytes);
	return page;
}

/* Copies back what differs: bytes behind the operand are not written. */
static bool write_changed(uintptr_t at, const uint8_t *was, const uint8_t *is, size_t bytes)
{
	size_t first = 0, end = bytes;

	while (first < end && was[first] == is[first])
		first++;
	while (end > first && was[end - 1] == is[end - 1])
		end--;
	return first == end || access_write(at + first, is + first, end - first);
}

static bool run_operand(const struct instruction *x, ucontext_t *u)
{
	static uint8_t __attribute__((aligned(VECTOR))) buffer[2 * VECTOR], was[VECTOR];
	uint8_t *operand = buffer + x->operand % VECTOR; /* as far from a multiple of 64 bytes as it is */
	greg_t *g = u->uc_mcontext.gregs;
	struct state s = { .flags = 0x2 | ((uint64_t)g[REG_EFL] & STATUS), .code = place_code(x) };
	size_t bytes = VECTOR;

	if (!s.code || (x->extended && !find_saved(u, &s)))
		return false;
	/* no memory may be behind the page in which it ends */
	if (!access_read(x->operand, operand, bytes)) {
		const size_t left = PAGE - x->operand % PAGE;

		if (left >= VECTOR || x->access[0].bytes > left || x->access[0].bytes == 1
				|| !access_read(x->operand, operand, left))
			return false;
		bytes = left;
	}
	memcpy(was, operand, bytes);
	/* it cannot be undone: a store of x87 pops its stack */
	if (x->extended && x->access[0].writes && !access_write(x->operand, was, 1))
		return false;
	for (unsigned i = 0; i < REGISTERS; i++)
		s.r[i] = (uint64_t)g[register_at[i]];
	s.r[x->base] = (uintptr_t)operand;
	access_call(&s);
	if (x->access[0].writes && !write_changed(x->operand, was, operand, bytes))
		return false;
	s.r[x->base] = (uint64_t)g[register_at[x->base]];
	s.r[4] = (uint64_t)g[REG_RSP];
	for (unsigned i = 0; i < REGISTERS; i++)
		g[register_at[i]] = (greg_t)s.r[i];
	g[REG_EFL] = (g[REG_EFL] & ~(greg_t)STATUS) | (greg_t)(s.flags & STATUS);
	return true;
}

/* ---- string instructions ---- */

static bool run_string(const struct instruction *x, ucontext_t *u, const bool guarded[2])
{
	static uint8_t buffer[PAGE];
	const size_t bytes = x->elements * x->size;
	const struct host_access *to = &x->access[x->n - 1];
	greg_t *g = u->uc_mcontext.gregs;

	if (x->kind == ACCESS_STOS)
		for (size_t i = 0; i < bytes; i += x->size)
			memcpy(buffer + i, &g[REG_RAX], x->size);
	else if (!(guarded[0] ? access_read(x->access[0].at, buffer, bytes)
			: copy_as_program(x->access[0].at, buffer, bytes, false)))
		return false;
	if (x->kind == ACCESS_LODS) {
		if (x->size == 4)
			g[REG_RAX] = 0;
		memcpy(&g[REG_RAX], buffer, x->size);
	} else if (!(guarded[x->n - 1] ? access_write(to->at, buffer, bytes)
			: copy_as_program(to->at, buffer, bytes, true))) {
		return false;
	}
	g[REG_RSI] += x->kind == ACCESS_STOS ? 0 : (greg_t)bytes;
	g[REG_RDI] += x->kind == ACCESS_LODS ? 0 : (greg_t)bytes;
	g[REG_RCX] -= x->repeats ? (greg_t)x->elements : 0;
	return true;
}

bool access_run(const struct instruction *x, ucontext_t *u, const bool guarded[2])
{
	bool done = false;

	if (x->kind == ACCESS_OPERAND)
		done = run_operand(x, u);
	else if (x->kind != ACCESS_OTHER)
		done = run_string(x, u, guarded);
	if (done && (!x->repeats || !u->uc_mcontext.gregs[REG_RCX]))
		u->uc_mcontext.gregs[REG_RIP] += x->length;
	return done;
}
