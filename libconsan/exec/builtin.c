/* builtin: the functions that the CUDA runtime supplies to kernels: vprintf, __assertfail, malloc,
 * free; those of the device runtime are in runtime.c. Arguments are in the caller's .param variables. */
#include "internal.h"

#include <stdio.h>

enum builtin call_builtin(const char *name)
{
	static const struct { const char *name; enum builtin is; } known[] = {
		{ "vprintf", BUILTIN_vprintf }, { "__assertfail", BUILTIN_assertfail },
		{ "malloc", BUILTIN_malloc }, { "free", BUILTIN_free },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].name, name))
			return known[i].is;
	return runtime_function(name) < RUNTIME_FUNCTIONS ? BUILTIN_runtime : BUILTIN_NONE;
}

unsigned char *builtin_frame(const struct warp *w, unsigned l, uint32_t at)
{
	const struct exec_kernel *k = w->worker->grid->k;

	return w->local + (size_t)l * k->local_stack + r32(w, k->sp_slot)[l] + at;
}

uint64_t builtin_argument(const struct warp *w, const struct call_site *s, unsigned l, unsigned n)
{
	uint64_t v = 0;

	if (n < s->narg)
		memcpy(&v, builtin_frame(w, l, s->arg[n].at), s->arg[n].bytes < 8 ? s->arg[n].bytes : 8);
	return v;
}

void builtin_give(const struct warp *w, const struct call_site *s, unsigned l, uint64_t v)
{
	if (s->nret)
		memcpy(builtin_frame(w, l, s->ret[0].at), &v, s->ret[0].bytes < 8 ? s->ret[0].bytes : 8);
}

/* Reads one byte of device memory; false after a fault. */
static bool byte_at(struct warp *w, const struct xop *x, unsigned l, uint64_t addr, char *c)
{
	struct xplace p;

	if (!ex_resolve(w, x, 1u << l, PS_none, addr, 1, 1, false, &p))
		return false;
	*c = (char)*p.host;
	return true;
}

static bool string_at(struct warp *w, const struct xop *x, unsigned l, uint64_t addr,
	struct text *out)
{
	char c;

	for (;; addr++) {
		if (!byte_at(w, x, l, addr, &c))
			return false;
		if (!c)
			return true;
		text_add(out, &c, 1);
	}
}

static bool bytes_at(struct warp *w, const struct xop *x, unsigned l, uint64_t *addr,
	unsigned size, void *to)
{
	struct xplace p;

	*addr = (*addr + size - 1) & ~(uint64_t)(size - 1);
	if (!ex_resolve(w, x, 1u << l, PS_none, *addr, size, 1, false, &p))
		return false;
	memcpy(to, p.host, size);
	*addr += size;
	return true;
}

/* Formats one conversion %..c of a device printf; spec ends with the letter. */
static bool convert(struct warp *w, const struct xop *x, unsigned l, const char *spec,
	size_t n, uint64_t *args, struct text *out)
{
	char flags[40], letter = spec[n - 1], buf[600];
	bool wide = memchr(spec, 'l', n) || memchr(spec, 'j', n) || memchr(spec, 'z', n)
		|| memchr(spec, 't', n);
	int star[2] = { 0, 0 }, stars = 0;
	size_t k = 0;

	for (size_t i = 0; i < n - 1 && k < sizeof flags - 16; i++) {
		if (strchr("hlLjzt", spec[i]))
			continue;
		if (spec[i] == '*') {
			if (stars < 2 && !bytes_at(w, x, l, args, 4, &star[stars++]))
				return false;
			k += (size_t)snprintf(flags + k, sizeof flags - k, "%d", star[stars - 1]);
			continue;
		}
		flags[k++] = spec[i];
	}
	flags[k] = 0;
	if (strchr("diouxXc", letter)) {
		uint64_t v = 0;
		int32_t narrow;
		char f[64];

		if (!bytes_at(w, x, l, args, wide ? 8 : 4, wide ? (void *)&v : (void *)&narrow))
			return false;
		if (letter == 'c') {
			snprintf(f, sizeof f, "%sc", flags);
			snprintf(buf, sizeof buf, f, wide ? (int)v : narrow);
		} else {
			if (!wide)
				v = letter == 'd' || letter == 'i' ? (uint64_t)(int64_t)narrow
					: (uint32_t)narrow;
			snprintf(f, sizeof f, "%sll%c", flags, letter);
			snprintf(buf, sizeof buf, f, (long long)v);
		}
	} else if (strchr("eEfFgGaA", letter)) {
		double v;
		char f[64];

		if (!bytes_at(w, x, l, args, 8, &v))
			return false;
		snprintf(f, sizeof f, "%s%c", flags, letter);
		snprintf(buf, sizeof buf, f, v);
	} else if (letter == 'p') {
		void *v;

		if (!bytes_at(w, x, l, args, 8, &v))
			return false;
		snprintf(buf, sizeof buf, "%p", v);
	} else if (letter == 's') {
		uint64_t at;
		struct text s = { 0 };
		char f[64];
		bool ok;

		if (!bytes_at(w, x, l, args, 8, &at))
			return false;
		ok = string_at(w, x, l, at, &s);
		snprintf(f, sizeof f, "%ss", flags);
		if (ok)
			text_printf(out, f, s.n ? s.at : "");
		text_free(&s);
		return ok;
	} else {
		snprintf(buf, sizeof buf, "%.*s", (int)n, spec);
	}
	text_add(out, buf, strlen(buf));
	return true;
}

static void print(const struct warp *w, const struct text *t)
{
	const struct exec_observer *o = w->worker->grid->l->observer;

	if (!t->n)
		return;
	if (o && o->print)
		o->print(o->user, t->at, t->n);
	else
		fwrite(t->at, 1, t->n, stdout);
}

static bool do_vprintf(struct warp *w, const struct xop *x, const struct call_site *s, unsigned l,
	struct text *out)
{
	struct text fmt = { 0 };
	uint64_t args = builtin_argument(w, s, l, 1);
	uint64_t n = 0;
	bool ok = string_at(w, x, l, builtin_argument(w, s, l, 0), &fmt);

	for (size_t i = 0; ok && i < fmt.n;) {
		size_t end = i + 1;

		if (fmt.at[i] != '%') {
			text_add(out, &fmt.at[i++], 1);
			continue;
		}
		if (end < fmt.n && fmt.at[end] == '%') {
			text_add(out, "%", 1);
			i += 2;
			continue;
		}
		while (end < fmt.n && strchr("-+ #0123456789.*hlLjzt", fmt.at[end]))
			end++;
		if (end >= fmt.n)
			break;
		ok = convert(w, x, l, fmt.at + i, end + 1 - i, &args, out);
		n++;
		i = end + 1;
	}
	text_free(&fmt);
	builtin_give(w, s, l, n);
	return ok;
}

static enum step assertion(struct warp *w, const struct xop *x, const struct call_site *s,
	uint32_t lanes)
{
	const uint32_t *b = w->worker->grid->l->block, *id = w->cta->id;
	struct text out = { 0 }, part = { 0 };
	bool ok = true;
	enum step r = STEP_FAULT;

	for EACH_LANE(l, lanes) {
		uint32_t t = w->id * LANES + l;
		struct text expr = { 0 }, file = { 0 }, func = { 0 };

		ok = ok && string_at(w, x, l, builtin_argument(w, s, l, 0), &expr)
			&& string_at(w, x, l, builtin_argument(w, s, l, 1), &file)
			&& string_at(w, x, l, builtin_argument(w, s, l, 3), &func);
		if (ok)
			text_printf(&out, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] "
				"Assertion `%s` failed.\n", file.n ? file.at : "",
				(uint32_t)builtin_argument(w, s, l, 2), func.n ? func.at : "", id[0], id[1],
				id[2], t % b[0], t / b[0] % b[1], t / b[0] / b[1],
				expr.n ? expr.at : "");
		if (ok && !part.n && expr.n)
			text_add(&part, expr.at, expr.n);
		text_free(&expr);
		text_free(&file);
		text_free(&func);
	}
	print(w, &out);
	if (ok)
		r = ex_fault(w, x, lanes, FAULT_ASSERT, SP_ANY, 0, 0, "the assertion \"%s\" failed",
			part.n ? part.at : "of the kernel");
	text_free(&out);
	text_free(&part);
	return r;
}

/* A block changes hands between the events of free and malloc, as other workers may take it at
 * once. */
void builtin_heap_event(struct warp *w, const struct xop *x, unsigned l, const void *at, bool freed)
{
	struct event e = ex_event(w, x, EV_HEAP, 1u << l);

	if (!w->sink || !w->sink->want_global)
		return;
	e.heap = (struct event_heap){ .addr = (uintptr_t)at, .bytes = heap_bytes(at), .freed = freed };
	if (e.heap.bytes)
		ex_emit(w->cluster, &e);
}

static enum step free_blocks(struct warp *w, const struct xop *x, const struct call_site *s,
	uint32_t lanes)
{
	for EACH_LANE(l, lanes) {
		void *at = (void *)(uintptr_t)builtin_argument(w, s, l, 0);

		builtin_heap_event(w, x, l, at, true);
		if (at && !heap_free(at))
			return ex_fault(w, x, 1u << l, FAULT_TARGET, SP_ANY, (uintptr_t)at, 0,
				"free of 0x%llx, which malloc did not return",
				(unsigned long long)(uintptr_t)at);
	}
	ex_work(w);
	return STEP_NEXT;
}

enum step builtin_call(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct call_site *s)
{
	struct text out = { 0 };
	bool ok = true;

	switch (s->builtin) {
	case BUILTIN_NONE:
		break;
	case BUILTIN_vprintf:
		for EACH_LANE(l, lanes)
			ok = ok && do_vprintf(w, x, s, l, &out);
		print(w, &out);
		text_free(&out);
		break;
	case BUILTIN_assertfail:
		return assertion(w, x, s, lanes);
	case BUILTIN_malloc:
		for EACH_LANE(l, lanes) {
			void *at = heap_malloc(builtin_argument(w, s, l, 0));

			builtin_heap_event(w, x, l, at, false);
			builtin_give(w, s, l, (uint64_t)(uintptr_t)at);
		}
		break;
	case BUILTIN_free:
		return free_blocks(w, x, s, lanes);
	case BUILTIN_runtime:
		return runtime_call(w, x, lanes, s);
	}
	ex_work(w);
	return ok ? STEP_NEXT : STEP_FAULT;
}
