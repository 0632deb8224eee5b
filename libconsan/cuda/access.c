/* access: decodes instructions; see access.h. Their encoding is that of Intel's Software Developer's Manual, volume
 * 2, "Instruction Format" and "Opcode Map". Only of the common accesses of compiled code and of the C library the
 * size is known, and whether what writes also reads. */
#include "access.h"

#include <signal.h>
#include <string.h>

enum { NO_PREFIX, P66, PF3, PF2 }; /* in the order of VEX.pp */
enum { PAGE = 4096, VECTOR = 64 };
enum { DIRECTION_FLAG = 0x400 };

struct code {
	const uint8_t *begin;    /* of the instruction */
	const uint8_t *start;    /* behind legacy prefixes: REX, VEX, EVEX or the opcode */
	const uint8_t *pc;       /* the opcode; of maps 1 to 3 without escapes */
	unsigned map;            /* 0: one byte; 1: 0f; ... */
	unsigned prefix;         /* the mandatory one, or that of the operand size */
	bool rex, wide;          /* wide: REX.W, VEX.W */
	bool lock, segment, narrow; /* narrow: addresses of 32 bits */
	bool r, x, b;            /* extend the numbers of registers: of ModRM.reg, of the index, of the base */
	unsigned vvvv;           /* VEX: one more register */
	bool vex, evex;
	bool masked;             /* EVEX: not all elements may be accessed */
	bool broadcast;          /* EVEX, if it has a memory operand: only one is, of 4 or 8 bytes */
	unsigned vector;         /* VEX and EVEX: bytes of a register; 0: neither */
};

static bool is_segment(uint8_t prefix)
{
	return prefix == 0x2e || prefix == 0x36 || prefix == 0x3e || prefix == 0x26 || prefix == 0x64 || prefix == 0x65;
}

static void decode_evex(struct code *c, const uint8_t *pc)
{
	c->map = pc[1] & 7;
	c->r = !(pc[1] & 0x80);
	c->x = !(pc[1] & 0x40);
	c->b = !(pc[1] & 0x20);
	c->prefix = pc[2] & 3;
	c->wide = pc[2] & 0x80;
	c->vvvv = ~pc[2] >> 3 & 15;
	c->vector = 16u << (pc[3] >> 5 & 3);
	c->masked = pc[3] & 7;
	c->broadcast = pc[3] & 0x10;
	c->evex = true;
	c->pc = pc + 4;
}

static void decode_vex(struct code *c, const uint8_t *pc)
{
	const bool three = *pc == 0xc4;
	const uint8_t last = three ? pc[2] : pc[1];

	c->map = three ? pc[1] & 31 : 1;
	c->r = !(pc[1] & 0x80);
	c->x = three && !(pc[1] & 0x40);
	c->b = three && !(pc[1] & 0x20);
	c->wide = three && last & 0x80;
	c->prefix = last & 3;
	c->vvvv = ~last >> 3 & 15;
	c->vector = last & 4 ? 32 : 16;
	c->vex = true;
	c->pc = pc + (three ? 3 : 2);
}

static struct code decode(const uint8_t *pc)
{
	struct code c = { .begin = pc };

	for (;; pc++) {
		if (*pc == 0x66)
			c.prefix = c.prefix ? c.prefix : P66;
		else if (*pc == 0xf2 || *pc == 0xf3)
			c.prefix = *pc == 0xf2 ? PF2 : PF3;
		else if (*pc == 0xf0)
			c.lock = true;
		else if (*pc == 0x67)
			c.narrow = true;
		else if (!is_segment(*pc))
			break;
		c.segment |= *pc == 0x64 || *pc == 0x65;
	}
	c.start = pc;
	if (*pc == 0x62) {
		decode_evex(&c, pc);
	} else if (*pc == 0xc4 || *pc == 0xc5) {
		decode_vex(&c, pc);
	} else {
		if ((*pc & 0xf0) == 0x40) {
			c.rex = true;
			c.wide = *pc & 8;
			c.r = *pc & 4;
			c.x = *pc & 2;
			c.b = *pc++ & 1;
		}
		if (*pc == 0x0f) {
			c.map = pc[1] == 0x38 ? 2 : pc[1] == 0x3a ? 3 : 1;
			pc += c.map == 1 ? 1 : 2;
		}
		c.pc = pc;
	}
	return c;
}

/* ---- what it accesses ---- */

/* Of two-byte opcodes, with and without VEX: moves of vectors, and of their elements; and arithmetic. */
static size_t vector_bytes(const struct code *c)
{
	const size_t all = c->vector ? c->vector : 16;
	const uint8_t op = c->pc[0];

	switch (op) {
	case 0x10: case 0x11: case 0x51: case 0x58: case 0x59: case 0x5c: case 0x5d: case 0x5e: case 0x5f:
		return c->prefix == PF3 ? 4 : c->prefix == PF2 ? 8 : all;
	case 0x12: case 0x13: case 0x16: case 0x17: case 0xd6:
		return 8;
	case 0x28: case 0x29: case 0x2b: case 0x54: case 0x55: case 0x56: case 0x57: case 0xe7:
		return all;
	case 0x2e: case 0x2f:
		return c->prefix == P66 ? 8 : 4;
	case 0x2a: case 0x6e:
		return c->wide ? 8 : 4;
	case 0x2c: case 0x2d:
		return c->prefix == PF3 ? 4 : 8;
	case 0x6f: case 0x7f:
		return c->prefix == NO_PREFIX ? 8 : all;
	case 0x7e:
		return c->prefix == PF3 || c->wide ? 8 : 4;
	}
	return c->prefix == P66 && ((op >= 0x74 && op <= 0x76) || op == 0xdb || op == 0xdf || op == 0xeb || op == 0xef
		|| op == 0xd4 || (op >= 0xf8 && op <= 0xfe)) ? all : 0;
}

static size_t bytes_of(const struct code *c)
{
	const size_t word = c->wide ? 8 : c->prefix == P66 ? 2 : 4;
	const uint8_t op = c->pc[0];

	if (c->broadcast)
		return c->wide ? 8 : 4;
	if (c->vector || c->map > 1)
		return c->map == 1 && !c->masked && vector_bytes(c) ? vector_bytes(c) : 1;
	if (c->map == 1) {
		if (vector_bytes(c))
			return vector_bytes(c);
		if (op == 0xb7 || op == 0xbf)
			return 2;
		if (op == 0xc7)
			return c->wide ? 16 : 8; /* cmpxchg8b, cmpxchg16b */
		return (op >= 0x40 && op <= 0x4f) || op == 0xa3 || op == 0xa5 || op == 0xab || op == 0xad || op == 0xaf
			|| op == 0xb1 || op == 0xb3 || op == 0xb8 || (op >= 0xba && op <= 0xbd) || op == 0xc1
			|| op == 0xc3 ? word : 1;
	}
	if (op == 0x63)
		return 4;
	if (op < 0x40 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8b) || (op >= 0xa4 && op <= 0xa7)
			|| (op >= 0xaa && op <= 0xaf) || op == 0xc1 || op == 0xc6 || op == 0xc7 || op == 0xd1 || op == 0xd3
			|| op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff)
		return op & 1 ? word : 1;
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

/* ---- the operand ---- */

static uint64_t reg(const ucontext_t *u, unsigned number)
{
	static const int at[] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8,
		REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

	return (uint64_t)u->uc_mcontext.gregs[at[number]];
}

/* The operand of ModRM: its length with SIB and displacement, and its address; without a compressed displacement,
 * which is in *scaled. */
struct operand { unsigned length; uint64_t at; int scaled; bool relative; };

static struct operand operand_of(const struct code *c, const ucontext_t *u)
{
	const uint8_t *m = c->pc + 1;
	const unsigned mod = *m >> 6, rm = *m & 7;
	struct operand o = { .length = 1 };
	int32_t wide = 0;

	if (rm == 4) {
		const unsigned base = m[1] & 7, index = (m[1] >> 3 & 7) + (c->x ? 8 : 0);

		o.length = 2;
		if (index != 4)
			o.at += reg(u, index) << (m[1] >> 6);
		if (base != 5 || mod)
			o.at += reg(u, base + (c->b ? 8 : 0));
		if (base == 5 && !mod)
			goto displacement;
	} else if (rm == 5 && !mod) {
		o.relative = true;
		goto displacement;
	} else {
		o.at += reg(u, rm + (c->b ? 8 : 0));
	}
	if (mod == 1) {
		const int d = (int8_t)m[o.length++];

		if (c->evex)
			o.scaled = d;
		else
			o.at += (uint64_t)(int64_t)d;
		return o;
	}
	if (mod != 2)
		return o;
displacement:
	memcpy(&wide, m + o.length, sizeof wide);
	o.length += 4;
	o.at += (uint64_t)(int64_t)wide;
	return o;
}

static unsigned immediate(const struct code *c)
{
	const unsigned group = c->pc[1] >> 3 & 7, word = c->prefix == P66 ? 2 : 4;
	const uint8_t op = c->pc[0];

	if (c->map == 3)
		return 1;
	if (c->map == 1)
		return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2
			|| (op >= 0xc4 && op <= 0xc6);
	if (c->map || c->vector)
		return 0;
	switch (op) {
	case 0x6b: case 0x80: case 0x83: case 0xc0: case 0xc1: case 0xc6:
		return 1;
	case 0x69: case 0x81: case 0xc7:
		return word;
	case 0xf6:
		return group < 2;
	case 0xf7:
		return group < 2 ? word : 0;
	}
	return 0;
}

static bool is_x87(const struct code *c)
{
	return !c->map && !c->vector && c->pc[0] >= 0xd8 && c->pc[0] <= 0xdf;
}

/* Is ModRM.reg a part of the opcode? */
static bool is_group(const struct code *c)
{
	const uint8_t op = c->pc[0];

	if (c->map)
		return c->map == 1 && (op == 0xba || op == 0xc7);
	return (op >= 0x80 && op <= 0x83) || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7
		|| (op >= 0xd0 && op <= 0xd3) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

/* Does it use no other registers than the general ones, and the flags? */
static bool is_general(const struct code *c)
{
	const uint8_t op = c->pc[0];

	if (c->vector)
		return c->vex && ((c->map == 2 && op >= 0xf0) || (c->map == 3 && op == 0xf0)); /* BMI */
	if (c->map == 1)
		return (op >= 0x40 && op <= 0x4f) || (op >= 0x90 && op <= 0xc1) || op == 0xc3 || op == 0xc7;
	return c->map ? c->map == 2 && op >= 0xf0 : !is_x87(c);
}

/* Do these have a memory operand by ModRM, of at most 64 bytes, and access nothing else but registers? They may
 * not raise an exception either, such as a division does. */
static bool is_plain_general(const struct code *c)
{
	const unsigned group = c->pc[1] >> 3 & 7;
	const uint8_t op = c->pc[0];

	if (op < 0x40)
		return (op & 7) < 4;
	if (op == 0xfe || op == 0xff)
		return group < 2;
	if (op == 0xf6 || op == 0xf7)
		return group < 6;
	if (op == 0xd9 || op == 0xdd)
		return group != 4 && group != 6; /* the environment, all of the state */
	return op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8b) || is_group(c) || is_x87(c);
}

static bool is_plain(const struct code *c, const ucontext_t *u)
{
	const unsigned group = c->pc[1] >> 3 & 7, number = group + (c->r ? 8 : 0);
	const uint8_t op = c->pc[0];

	if (c->pc[1] >> 6 == 3 || c->narrow || c->map > 6 || c->vector > VECTOR || *c->start == 0xd5)
		return false;
	if (is_general(c) && !is_group(c) && number == 4 && (c->map || c->rex || op & 1))
		return false; /* the stack pointer */
	if (!c->map && !c->vector)
		return is_plain_general(c);
	if (c->map == 1 && !c->vector) {
		if (op == 0xa3 || op == 0xab || op == 0xb3 || op == 0xbb) /* bits of a string of words */
			return reg(u, number) < bytes_of(c) * 8;
		return op >= 0x10 && !(op >= 0x18 && op <= 0x27) && !(op >= 0x30 && op <= 0x3f)
			&& !(op >= 0x80 && op <= 0x8f) && op != 0xae && (op != 0xc7 || group == 1);
	}
	if (c->map == 1)
		return op >= 0x10 && op != 0xae && op != 0xc7;
	if (c->map == 2 && c->vector) /* gathers, scatters, tiles */
		return !(op >= 0x90 && op <= 0x93) && !(op >= 0xa0 && op <= 0xa3) && op != 0xc6 && op != 0xc7
			&& op != 0x49 && op != 0x4b;
	return c->map != 2 || op < 0xd0 || op == 0xf0 || op == 0xf1 || op == 0xf6;
}

/* Of a compressed displacement: its unit is what the instruction accesses, or one element. */
static bool scale(const struct code *c, uintptr_t at, size_t bytes, struct operand *o)
{
	const uintptr_t base = o->at;

	for (size_t unit = c->vector; unit; unit /= 2) {
		o->at = base + (uintptr_t)((intptr_t)o->scaled * (intptr_t)unit);
		if ((bytes == 1 || unit == bytes) && (o->at == at
				|| ((at % PAGE == 0 || c->masked) && at - o->at < c->vector)))
			return true;
	}
	return false;
}

/* Makes a copy that accesses what a register points to that it does not use. */
static void copy(const struct code *c, struct instruction *x, const struct operand *o, unsigned immediate)
{
	static const uint8_t bases[] = { 6, 7, 3 };
	const unsigned used = c->pc[1] >> 3 & 7;
	const uint8_t *pc = c->begin;
	unsigned n = 0, i = 0;

	while (bases[i] == used || (c->vector && bases[i] == (c->vvvv & 7)))
		i++;
	x->base = bases[i];
	for (; pc < c->start; pc++)
		if (!is_segment(*pc))
			x->code[n++] = *pc;
	if (c->rex)
		x->code[n++] = *pc++ & 0xfc;
	else if (c->vector) {
		x->code[n++] = *pc++;
		x->code[n++] = *c->start == 0xc5 ? *pc : *pc | 0x60;
		pc++;
	}
	while (pc <= c->pc)
		x->code[n++] = *pc++;
	x->code[n++] = (uint8_t)((c->pc[1] & 0x38) | x->base);
	memcpy(x->code + n, c->pc + 1 + o->length, immediate);
	n += immediate;
	x->code[n++] = 0xc3;
	x->code_bytes = n;
}

static void decode_operand(const struct code *c, const ucontext_t *u, uintptr_t at, struct instruction *x)
{
	const unsigned wide = immediate(c);
	struct operand o = operand_of(c, u);

	x->length = (unsigned)(c->pc + 1 + o.length + wide - c->begin);
	if (o.relative)
		o.at += (uintptr_t)c->begin + x->length;
	if (o.scaled && !scale(c, at, x->access[0].bytes, &o))
		return;
	if (c->segment)
		o.at = at; /* its base is not known */
	if (at - o.at >= VECTOR || (at != o.at && at % PAGE && !c->masked))
		return;
	if (!c->masked) /* else it may begin in front of what is accessed */
		x->access[0].at = o.at;
	x->operand = o.at;
	copy(c, x, &o, wide);
	x->extended = !is_general(c);
	x->kind = ACCESS_OPERAND;
}

/* ---- string instructions ---- */

static size_t in_page(uintptr_t at)
{
	return PAGE - at % PAGE;
}

static void decode_string(const struct code *c, const ucontext_t *u, struct instruction *x)
{
	static const enum access_kind kind[] = { ACCESS_MOVS, ACCESS_MOVS, ACCESS_OTHER, ACCESS_OTHER, ACCESS_OTHER,
		ACCESS_OTHER, ACCESS_STOS, ACCESS_STOS, ACCESS_LODS, ACCESS_LODS };
	const enum access_kind is = kind[c->pc[0] - 0xa4];
	const uintptr_t from = reg(u, 6), to = reg(u, 7);
	size_t n = c->prefix == PF3 || c->prefix == PF2 ? reg(u, 1) : 1, room = PAGE;

	if (is == ACCESS_OTHER || c->narrow || c->segment || u->uc_mcontext.gregs[REG_EFL] & DIRECTION_FLAG)
		return;
	x->size = bytes_of(c);
	room = is != ACCESS_STOS && in_page(from) < room ? in_page(from) : room;
	room = is != ACCESS_LODS && in_page(to) < room ? in_page(to) : room;
	if (is == ACCESS_MOVS && to - from < room)
		room = to - from; /* one element may be the source of another */
	if (is == ACCESS_LODS || room < x->size)
		room = x->size;
	x->repeats = c->prefix == PF3 || c->prefix == PF2;
	x->elements = n < room / x->size ? n : room / x->size;
	x->kind = is;
	x->length = (unsigned)(c->pc + 1 - c->begin);
	x->n = 0;
	if (is != ACCESS_STOS)
		x->access[x->n++] = (struct host_access){ from, x->elements * x->size, true, false };
	if (is != ACCESS_LODS)
		x->access[x->n++] = (struct host_access){ to, x->elements * x->size, false, true };
}

struct instruction access_decode(const ucontext_t *u, uintptr_t at)
{
	const struct code c = decode((const uint8_t *)u->uc_mcontext.gregs[REG_RIP]);
	const bool writes = u->uc_mcontext.gregs[REG_ERR] & 2;
	const uint8_t op = c.pc[0];
	struct instruction x = { .n = 1, .access = { { at, bytes_of(&c), !writes || updates(&c), writes } } };

	if (!c.map && !c.vector && op >= 0xa4 && op <= 0xad && op != 0xa8 && op != 0xa9)
		decode_string(&c, u, &x);
	else if (is_plain(&c, u))
		decode_operand(&c, u, at, &x);
	/* the rest of an access that begins in the page before */
	if (x.kind == ACCESS_OTHER && (at % PAGE == 0 || at % PAGE + x.access[0].bytes > PAGE))
		x.access[0].bytes = 1;
	return x;
}
