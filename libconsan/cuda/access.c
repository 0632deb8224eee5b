/* access: see access.h. The encoding of instructions is that of Intel's Software Developer's Manual, volume 2,
 * "Instruction Format" and "Opcode Map". Only the common accesses of compiled code and of the C library are told
 * apart; of others the size is not known, and what writes may not read. */
#include "access.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
enum { TRAP_FLAG = 0x100 };
enum { NO_PREFIX, P66, PF3, PF2 }; /* in the order of VEX.pp */

struct code {
	const uint8_t *pc;       /* behind prefixes: the opcode; of maps 1 to 3 without escapes */
	unsigned map;            /* 0: one byte; 1: 0f; ... */
	unsigned prefix;         /* the mandatory one, or that of the operand size */
	bool lock, wide;         /* wide: REX.W, VEX.W */
	bool masked;             /* EVEX: not all elements may be accessed */
	unsigned vector;         /* VEX and EVEX: bytes of a register; 0: neither */
};

static struct code decode(const uint8_t *pc)
{
	static const uint8_t ignored[] = { 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x67 };
	struct code c = { 0 };

	for (;; pc++) {
		if (*pc == 0x66)
			c.prefix = c.prefix ? c.prefix : P66;
		else if (*pc == 0xf2 || *pc == 0xf3)
			c.prefix = *pc == 0xf2 ? PF2 : PF3;
		else if (*pc == 0xf0)
			c.lock = true;
		else if (!memchr(ignored, *pc, sizeof ignored))
			break;
	}
	if (*pc == 0xc5) {
		c.map = 1;
		c.prefix = pc[1] & 3;
		c.vector = pc[1] & 4 ? 32 : 16;
		pc += 2;
	} else if (*pc == 0xc4) {
		c.map = pc[1] & 31;
		c.prefix = pc[2] & 3;
		c.wide = pc[2] & 0x80;
		c.vector = pc[2] & 4 ? 32 : 16;
		pc += 3;
	} else if (*pc == 0x62) {
		c.map = pc[1] & 7;
		c.prefix = pc[2] & 3;
		c.wide = pc[2] & 0x80;
		c.vector = 16u << (pc[3] >> 5 & 3);
		c.masked = pc[3] & 7;
		pc += 4;
	} else {
		if ((*pc & 0xf0) == 0x40)
			c.wide = *pc++ & 8;
		if (*pc == 0x0f) {
			c.map = 1;
			pc++;
		}
	}
	c.pc = pc;
	return c;
}

/* Of two-byte opcodes, with and without VEX: moves of vectors, and of their elements. */
static size_t vector_bytes(const struct code *c)
{
	const size_t all = c->vector ? c->vector : 16;

	switch (c->pc[0]) {
	case 0x10: case 0x11:
		return c->prefix == PF3 ? 4 : c->prefix == PF2 ? 8 : all;
	case 0x12: case 0x13: case 0x16: case 0x17: case 0xd6:
		return 8;
	case 0x28: case 0x29: case 0x2b: case 0xe7:
		return all;
	case 0x6f: case 0x7f:
		return c->prefix == NO_PREFIX ? 8 : all;
	case 0x6e:
		return c->wide ? 8 : 4;
	case 0x7e:
		return c->prefix == PF3 || c->wide ? 8 : 4;
	}
	return 0;
}

static size_t bytes_of(const struct code *c)
{
	const size_t word = c->wide ? 8 : c->prefix == P66 ? 2 : 4;
	const uint8_t op = c->pc[0];

	if (c->vector || c->map > 1)
		return c->map == 1 && !c->masked && vector_bytes(c) ? vector_bytes(c) : 1;
	if (c->map == 1) {
		if (vector_bytes(c))
			return vector_bytes(c);
		if (op == 0xb6 || op == 0xbe || op == 0xb0 || op == 0xc0)
			return 1;
		return op == 0xb7 || op == 0xbf ? 2 : op == 0xb1 || op == 0xc1 || op == 0xc3 ? word : 1;
	}
	if (op == 0x63)
		return 4;
	if (op < 0x40 || (op >= 0x80 && op <= 0x8b) || (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf)
			|| op == 0xc6 || op == 0xc7 || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff)
		return op & 1 || op == 0x83 ? word : 1;
	return 1;
}

/* Of an instruction that writes memory: does it read it as well? It does with lock and in xchg, and if its memory
 * operand is source and destination. */
static bool updates(const struct code *c)
{
	const unsigned group = c->pc[1] >> 3 & 7;
	const uint8_t op = c->pc[0];

	if (c->lock || (!c->map && (op == 0x86 || op == 0x87)))
		return true;
	if (c->vector || c->map > 1)
		return false;
	if (c->map)
		return op == 0xb0 || op == 0xb1 || op == 0xc0 || op == 0xc1 || op == 0xab || op == 0xb3 || op == 0xbb
			|| op == 0xba || op == 0xc7;
	return op < 0x38 ? (op & 7) < 2 : (op >= 0x80 && op <= 0x83) || op == 0xc0 || op == 0xc1
		|| (op >= 0xd0 && op <= 0xd3) || ((op == 0xf6 || op == 0xf7) && (group == 2 || group == 3))
		|| ((op == 0xfe || op == 0xff) && group < 2);
}

struct host_access access_of_fault(const ucontext_t *u, bool may_read)
{
	const struct code c = decode((const uint8_t *)u->uc_mcontext.gregs[REG_RIP]);
	const bool writes = u->uc_mcontext.gregs[REG_ERR] & 2;

	(void)may_read;
	return (struct host_access){ bytes_of(&c), !writes || updates(&c), writes };
}

bool access_trap(ucontext_t *u, bool on)
{
	if (on)
		u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	else
		u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (on)
		sigdelset(&u->uc_sigmask, SIGTRAP);
	return true;
}
#else
struct host_access access_of_fault(const ucontext_t *u, bool may_read)
{
	(void)u;
	return (struct host_access){ 1, true, may_read };
}

bool access_trap(ucontext_t *u, bool on)
{
	(void)u, (void)on;
	return false;
}
#endif
