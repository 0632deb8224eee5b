/* records: what a GPU has recorded, damaged between the launch and its check. An input is a specimen (PTX
 * with its launch, tests/cases/harness/specimen.h), a byte of 0, and edits of its records. The specimen
 * runs once on the emulated GPU; then a copy of its records, in which the edits are made, is checked as
 * those of another launch. What is certainly damaged must not be called checked; what is whole must not
 * be called damaged.
 *
 * The linker gives this file the calls of gpu_emulate_screen(): it comes between the launch and its
 * check. */
#include "fuzz.h"

#include "libconsan/order/order.h"
#include "libconsan/consan.h"
#include "libconsan/session/gpu.h"
#include "libconsan/session/gpu_parts.h"
#include "tests/cases/harness/specimen.h"

#include <stdio.h>
#include <unistd.h>

/* The bytes of an input after the specimen: two of these flags, then edits. */
enum {
	FIXED_TWIN = 1, STOPPED = 2, FAULTED = 4, DRAINED = 8, TOGETHER = 16, TICKETS = 32,
	MODES = 6                      /* shift: index of `mode` */
};
static const char *const mode[] = {
	"gpu-global=1", "gpu-global=1 gpu-each=1", "", "bank-conflicts=1 strict=1",
};

/* Places count modulo what there is. A unit is one of those in use, or the one after them. */
enum op {
	SET_WORD, FLIP_BIT, END_CHUNK, COPY_CHUNK, SET_CHUNK, SET_HEAD, SET_SITE, FILL_CHUNK, NO_SITE, NO_LEADER, OPS
};
struct edit { uint8_t op, chunk, unit, word; uint32_t value; };
enum { MOST_EDITS = 64 };

struct damage {
	uint8_t flags, reserved;
	size_t n;
	struct edit edit[MOST_EDITS];
};

/* ---- recording ---- */

/* The records of the specimen that ran last. */
static struct {
	uint8_t *text;
	size_t n;
	unsigned mode, twin;
	struct consan *c;
	struct consan_module *module;
	void *buffer[MAX_ARGS];
	size_t nbuffers;
	bool taken;
	struct gpu_launch l;
	uint32_t capacity;             /* of `pool`, in chunks with the head */
	char *pool;
	_Alignas(64) unsigned char params[1024];
} now;

struct screen_edge *__wrap_gpu_emulate_screen(struct consan *c, struct gpu_launch *g);
struct screen_edge *__real_gpu_emulate_screen(struct consan *c, struct gpu_launch *g);

struct screen_edge *__wrap_gpu_emulate_screen(struct consan *c, struct gpu_launch *g)
{
	(void)c;
	if (now.taken)
		return NULL;
	now.taken = true;
	now.l = *g;
	now.l.params = now.params;
	now.l.op = NULL;
	now.l.maps = NULL;
	now.capacity = g->chunks + 1;
	now.pool = base_alloc((size_t)now.capacity * RECORD_CHUNK_BYTES);
	memcpy(now.pool, g->pool, (size_t)now.capacity * RECORD_CHUNK_BYTES);
	return NULL;
}

static uint64_t new_buffer(const struct specimen_maker *make, const uint32_t *words, uint64_t bytes)
{
	void *at = consan_malloc_on(now.c, bytes, CONSAN_MEM_DEVICE, make->device, NULL);

	FUZZ_CHECK(at && now.nbuffers < MAX_ARGS);
	now.buffer[now.nbuffers++] = at;
	memcpy(at, words, bytes);
	return (uintptr_t)at;
}

static void new_map(void *user, const struct consan_tensormap_args *a, unsigned char *map)
{
	struct consan_err e = { 0 };

	(void)user;
	consan_tensormap(a, map, &e);
}

static bool make_arguments(const struct specimen *s, const struct consan_kernel *k)
{
	struct specimen_maker make = { .buffer = new_buffer, .map = new_map };

	memset(now.params, 0, sizeof now.params);
	for (size_t i = 0; i < s->nargs; i++) {
		_Alignas(64) unsigned char value[CONSAN_TENSORMAP_BYTES];
		uint32_t offset, bytes;

		if (!consan_kernel_param(k, i, &offset, &bytes) || bytes > sizeof value)
			return false;
		specimen_argument(s, i, &make, value);
		memcpy(now.params + offset, value, bytes);
	}
	return true;
}

static void launch(const struct specimen *s)
{
	struct consan_err e = { 0 };
	char *text = specimen_twin(s, (enum twin)now.twin);
	const struct consan_kernel *k;

	now.module = consan_load_ptx(now.c, "specimen.ptx", text, strlen(text), &e);
	k = now.module ? consan_kernel(now.module, consan_kernel_name(now.module, 0), &e) : NULL;
	if (k && make_arguments(s, k))
		consan_launch(now.c, &(struct consan_launch){ .kernel = k, .grid = { s->grid, 1, 1 },
			.block = { s->block, 1, 1 },
			.cluster = { s->cluster > 1 ? s->cluster : 0, s->cluster > 1, s->cluster > 1 },
			.shared_dynamic = s->shared, .params = now.params }, &e);
	free(text);
}

static void forget(void)
{
	consan_unload(now.module);
	for (size_t i = 0; i < now.nbuffers; i++)
		consan_free(now.c, now.buffer[i]);
	consan_close(now.c);
	free(now.pool);
	free(now.text);
	memset(&now, 0, sizeof now);
}

/* Runs the specimen, if it is not the one that ran last. False: it records nothing. */
static bool record(const uint8_t *text, size_t n, unsigned as, unsigned twin)
{
	char options[128];
	struct specimen s;
	struct consan_err e = { 0 };

	if (now.text && now.n == n && now.mode == as && now.twin == twin && !memcmp(now.text, text, n))
		return now.taken;
	if (now.text)
		forget();
	now.text = base_alloc(n + 1);
	memcpy(now.text, text, n);
	now.n = n;
	now.mode = as;
	now.twin = twin;
	snprintf(options, sizeof options, "backend=gpu-emulated jobs=1 timeout=1 reads=newest verify-fixes=no "
		"log-file=/dev/null %s", mode[as]);
	now.c = consan_open(options, &e);
	FUZZ_CHECK(now.c);
	specimen_read(&s, fuzz_file(text, n));
	if (!s.cpu_only)
		launch(&s);
	free(s.text);
	return now.taken;
}

/* ---- damage ---- */

static void read_damage(const uint8_t *data, size_t n, struct damage *d)
{
	*d = (struct damage){ 0 };
	if (n < 2)
		return;
	d->flags = data[0];
	d->n = (n - 2) / sizeof *d->edit < MOST_EDITS ? (n - 2) / sizeof *d->edit : MOST_EDITS;
	if (d->n)
		memcpy(d->edit, data + 2, d->n * sizeof *d->edit);
}

static uint32_t *chunk_of(char *pool, uint32_t k)
{
	return (uint32_t *)(void *)(pool + (size_t)k * RECORD_CHUNK_BYTES);
}

static unsigned units_used(const uint32_t *chunk)
{
	unsigned n = RECORD_CHUNK_UNITS;

	while (n > 1 && !(chunk[4 * n - 4] | chunk[4 * n - 3] | chunk[4 * n - 2] | chunk[4 * n - 1]))
		n--;
	return n;
}

/* The site of the chunk's first record becomes one that the module does not have. */
static bool unknown_site(uint32_t *chunk)
{
	const bool holds = chunk[4];

	if (holds)
		chunk[4] |= ~0u << RECORD_SITE_SHIFT;
	return holds;
}

/* The lane of the chunk is none of those of its first record. */
static bool without_leader(uint32_t *chunk)
{
	chunk[5] &= ~(1u << chunk[1] % 32);
	return chunk[4];
}

/* True: records were lost. The last one of a chunk that is the only one is that of the lanes' exit. */
static bool end_chunk(uint32_t *chunk, uint32_t *unit)
{
	const bool lost = (size_t)(unit - chunk) < 4 * units_used(chunk);

	memset(unit, 0, (size_t)((char *)(chunk + 4 * RECORD_CHUNK_UNITS) - (char *)unit));
	return lost;
}

/* Is the launch damaged for certain, if it ended? */
static bool edit_pool(char *pool, const struct edit *e)
{
	const uint32_t chunks = now.capacity - 1, word = e->word % 4;
	uint32_t *chunk, *unit, last;

	if (!chunks)
		return false;
	chunk = chunk_of(pool, 1 + e->chunk % chunks);
	last = units_used(chunk);
	unit = chunk + 4 * (e->unit % (last + (last < RECORD_CHUNK_UNITS)));
	switch ((enum op)(e->op % OPS)) {
	case SET_WORD: unit[word] = e->value; break;
	case FLIP_BIT: unit[word] ^= 1u << e->value % 32; break;
	case END_CHUNK: return unit != chunk && end_chunk(chunk, unit) && chunks == 1;
	case COPY_CHUNK: memmove(chunk, chunk_of(pool, 1 + e->value % chunks), RECORD_CHUNK_BYTES); break;
	case SET_CHUNK: chunk[word] = e->value; break;
	case SET_HEAD: ((uint32_t *)(void *)pool)[(e->unit * 4 + word) % (RECORD_CHUNK_BYTES / 4)] = e->value; break;
	case SET_SITE:
		unit[0] = (e->value % (uint32_t)(now.l.module->code->site.n + 1)) << RECORD_SITE_SHIFT
			| (unit[0] & ((1u << RECORD_SITE_SHIFT) - 1));
		break;
	case FILL_CHUNK:
		for (uint32_t *to = unit == chunk ? unit + 4 : unit; to < chunk + 4 * RECORD_CHUNK_UNITS; to++)
			*to = e->value;
		break;
	case NO_SITE: return unknown_site(chunk);
	case NO_LEADER: return without_leader(chunk);
	case OPS: break;
	}
	return false;
}

/* ---- the check ---- */

static const void *whole(void *user, uint32_t *chunks)
{
	const struct gpu_launch *l = user;

	*chunks = l->chunks;
	return l->pool;
}

static void done(struct gpu_launch *l)
{
	(void)l;
}

static struct order_op *issue(struct consan *c)
{
	const struct order_call call = { .name = "kernel", .kernel = now.l.kernel };
	struct order *o = consan_order(c);

	return order_issue(o, order_line_open(o, ORDER_NON_BLOCKING, 0), &call);
}

static void begin(struct gpu_launch *l, const char *pool, uint32_t chunks, const struct damage *d)
{
	const struct record_head *head = (const void *)pool;

	*l = now.l;
	l->pool = pool;
	l->dropped = head->dropped;
	l->chunks = head->next && head->next - 1 < chunks ? head->next - 1 : chunks;
	l->ended &= !(d->flags & (STOPPED | FAULTED));
	if (d->flags & FAULTED)
		l->fault = "the kernel faulted";
	l->tickets = now.l.tickets != !!(d->flags & TICKETS);
	l->user = l;
	l->whole = whole;
	l->number = gpu_wants(now.c, l->kernel);
	gpu_begins(now.c, l);
	gpu_launch_open(l);
}

/* Drained records lie apart from each other; here, each chunk ends where its memory does. */
static const struct record_chunk **drained(const struct gpu_launch *l)
{
	const struct record_chunk **chunk = base_alloc((l->chunks + 1) * sizeof *chunk);

	for (uint32_t k = 0; k < l->chunks; k++) {
		void *copy = base_alloc(RECORD_CHUNK_BYTES);

		chunk[k] = memcpy(copy, (const char *)l->pool + (size_t)(k + 1) * RECORD_CHUNK_BYTES,
			RECORD_CHUNK_BYTES);
	}
	return chunk;
}

static void check(char *pool, const struct damage *d)
{
	const unsigned n = d->flags & TOGETHER ? 2 : 1;
	const struct record_chunk **chunk = NULL;
	struct screen_edge *edge[2] = { NULL };
	struct gpu_launch l[2];

	for (unsigned i = 0; i < n; i++) {
		begin(&l[i], pool, now.capacity - 1, d);
		if (n > 1)
			l[i].op = issue(now.c);
		gpu_runs(now.c);
	}
	if (d->flags & DRAINED)
		chunk = drained(&l[0]);
	for (unsigned i = 0; i < n; i++) {
		l[i].chunk = chunk;
		edge[i] = __real_gpu_emulate_screen(now.c, &l[i]);
		gpu_ran(now.c, &l[i], done);
	}
	for (unsigned i = 0; i < n; i++) {
		gpu_launch_close(&l[i]);
		if (l[i].op)
			order_op_put(consan_order(now.c), l[i].op);
		free(edge[i]);
	}
	for (uint32_t k = 0; chunk && k < l[0].chunks; k++)
		free((void *)(uintptr_t)chunk[k]);
	free(chunk);
}

static bool is_called_damaged(struct consan *c)
{
	for (size_t k = 0; k < consan_kernels(c); k++)
		if (strstr(consan_coverage(c, k)->unchecked, "damaged"))
			return true;
	return false;
}

/* Does the session call the launch checked, without a finding? */
static bool is_clean(struct consan *c)
{
	for (size_t k = 0; k < consan_kernels(c); k++)
		if (*consan_coverage(c, k)->unchecked)
			return false;
	return !consan_findings(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = n ? memchr(data, 0, n) : NULL;
	const size_t text = end ? (size_t)(end - data) : n;
	bool damaged = false;
	struct damage d;
	char *pool;

	read_damage(end ? end + 1 : data, end ? n - text - 1 : 0, &d);
	if (!text || !record(data, text, d.flags >> MODES, d.flags & FIXED_TWIN ? FIXED : RACY))
		return 0;
	consan_clear(now.c);
	pool = base_alloc((size_t)now.capacity * RECORD_CHUNK_BYTES);
	memcpy(pool, now.pool, (size_t)now.capacity * RECORD_CHUNK_BYTES);
	for (size_t i = 0; i < d.n; i++)
		damaged = edit_pool(pool, &d.edit[i]) && i + 1 == d.n;
	check(pool, &d);
	FUZZ_CHECK(!damaged || d.flags & (STOPPED | FAULTED) || !is_clean(now.c));
	FUZZ_CHECK(d.n || d.flags & (TICKETS | STOPPED | FAULTED) || !is_called_damaged(now.c));
	free(pool);
	return 0;
}

#ifdef FUZZ_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);

/* The specimen stays as it is. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
	const uint8_t *end = n ? memchr(data, 0, n) : NULL;
	size_t text = end ? (size_t)(end - data) : n, rest = end ? n - text - 1 : 0;
	const size_t most = 2 + MOST_EDITS * sizeof(struct edit);

	if (text + 1 + most > max)
		return n;
	data[text] = 0;
	if (rest < 2) {
		data[text + 1] = (uint8_t)seed;
		data[text + 2] = 0;
		rest = 2;
	}
	if (seed % 8 == 0)
		data[text + 1] = (uint8_t)(seed >> 3);
	if (rest > most)
		rest = most;
	/* whole edits, most of the time one more */
	if (seed % 4 && rest + sizeof(struct edit) <= most) {
		const struct edit e = { (uint8_t)(seed >> 4), (uint8_t)(seed >> 8), (uint8_t)(seed >> 14),
			(uint8_t)(seed >> 22), seed * 2654435761u >> (seed >> 27) };

		rest = 2 + (rest - 2) / sizeof e * sizeof e;
		memcpy(data + text + 1 + rest, &e, sizeof e);
		rest += sizeof e;
	}
	return text + 1 + LLVMFuzzerMutate(data + text + 1, rest, most);
}
#endif
