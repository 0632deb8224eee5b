/* Compares outputs: with the reference, and the executor's with the GPU's. */
#include "conform.h"
#include "real.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t element(const unsigned char *out, const struct item *i, unsigned thread, unsigned k)
{
	uint64_t v = 0;

	memcpy(&v, out + (size_t)thread * i->out_bytes + (size_t)k * (i->element_bits / 8),
		i->element_bits / 8);
	return v;
}

static bool agrees(const struct want *w, uint64_t got)
{
	switch (w->how) {
	case WANT_ANY:
		return true;
	case WANT_NAN:
		return real_is_nan(w->type, got);
	case WANT_NEAR:
		if (!isfinite(w->real))
			return isnan(w->real) ? real_is_nan(w->type, got)
				: (got & type_mask(w->type)) == w->v;
		return fabsl(real_approx(real_of(w->type, got)) - w->real) <= w->tol;
	case WANT_BITS:
		break;
	}
	return ((got ^ w->v) & w->care) == 0;
}

static const char *statements(const struct item *i)
{
	const char *mark = strstr(i->ptx.at, "/**/");

	return mark ? mark + 4 : i->ptx.at;
}

static void print_item(const struct program *p, const struct item *i, unsigned cta,
	unsigned thread, unsigned k)
{
	const char *s = statements(i);
	const uint64_t *in = (const uint64_t *)(p->in + i->in_at
		+ ((uint64_t)cta * CTA_THREADS + thread) * i->in_bytes);

	printf("%s, item %td, CTA %u, thread %u, result %u:\n", p->class->name, i - p->item, cta,
		thread, k);
	if (!i->lane) {
		printf("%s", i->ptx.at);
		return;
	}
	printf("%.*s\n\t", (int)strcspn(s, "\n"), s);
	for (unsigned n = 0; n < i->nsrc; n++)
		printf("%c %" PRIx64 "  ", "abcef"[n], i->immediate >> n & 1 ? i->value[n] : in[n]);
	printf("\n");
}

static void print_wanted(const struct want *w)
{
	switch (w->how) {
	case WANT_NEAR:
		printf("%.10Lg +- %.3Lg", w->real, w->tol);
		break;
	case WANT_NAN:
		printf("a NaN");
		break;
	default:
		printf("%" PRIx64, w->v);
		if (w->care != ~0ull)
			printf(" (bits %" PRIx64 ")", w->care);
	}
}

static struct want *expected(const struct program *p, const struct item *i, unsigned cta)
{
	const size_t n = (size_t)CTA_THREADS * i->nout;
	struct want *w = base_alloc(n * sizeof *w);

	for (size_t k = 0; k < n; k++)
		w[k].care = ~0ull;
	i->expect(i, p->in + i->in_at + (uint64_t)cta * CTA_THREADS * i->in_bytes,
		p->out + i->out_at + (uint64_t)cta * CTA_THREADS * i->out_bytes, w);
	return w;
}

static const unsigned char *part(const struct item *i, const unsigned char *out, unsigned cta)
{
	return out + i->out_at + (uint64_t)cta * CTA_THREADS * i->out_bytes;
}

struct tally compare_reference(const struct program *p, const unsigned char *out,
	const char *who, unsigned show)
{
	struct tally t = { 0 };

	for (unsigned n = 0; n < p->n; n++) {
		const struct item *i = &p->item[n];
		bool shown = false;
		for (unsigned cta = 0; cta < p->ctas; cta++) {
			struct want *w = expected(p, i, cta);
			for (unsigned x = 0; x < CTA_THREADS * i->nout; x++) {
				uint64_t got = element(part(i, out, cta), i, x / i->nout,
					x % i->nout);
				t.compared++;
				t.undefined += w[x].how == WANT_ANY;
				if (agrees(&w[x], got))
					continue;
				t.wrong++;
				if (shown || !show)
					continue;
				shown = true;
				show--;
				print_item(p, i, cta, x / i->nout, x % i->nout);
				printf("\t%s %" PRIx64 ", reference ", who, got);
				print_wanted(&w[x]);
				printf("\n");
			}
			free(w);
		}
	}
	return t;
}

/* Do the two differ only where the ISA leaves it open: undefined results, the payload of a NaN,
 * bits that the reference does not care for? */
static bool open_result(const struct want *w, uint64_t a, uint64_t b)
{
	return w->how == WANT_ANY || ((w->how == WANT_NAN || w->care != ~0ull)
		&& agrees(w, a) && agrees(w, b));
}

/* ---- known deviations of a GPU ---- */

enum where { EVERYWHERE, GUARDED, NAN_RESULTS };
#define DEVIATION(class, start, where, reason) { #class, start, where },
static const struct deviation { const char *class, *start; enum where where; } deviations[] = {
#include "deviation.def"
};
#undef DEVIATION

/* The text behind the guard, or the first statement of several that has `start` */
static bool has_instruction(const struct item *i, const char *start)
{
	const char *at = strstr(statements(i), start);

	return at && (at == i->ptx.at || strchr(" \t\n", at[-1]));
}

static bool known(const struct program *p, const struct item *i, const struct want *w)
{
	for (size_t k = 0; k < sizeof deviations / sizeof *deviations; k++) {
		const struct deviation *d = &deviations[k];
		if (!strcmp(d->class, p->class->name) && has_instruction(i, d->start)
				&& (d->where != GUARDED || i->guard)
				&& (d->where != NAN_RESULTS || w->how == WANT_NAN
					|| (w->how == WANT_NEAR && isnan(w->real))))
			return true;
	}
	return false;
}

struct tally compare_gpu(const struct program *p, const unsigned char *cpu,
	const unsigned char *gpu, unsigned show, unsigned show_open)
{
	struct tally t = { 0 };

	for (unsigned n = 0; n < p->n; n++) {
		const struct item *i = &p->item[n];
		bool shown = false;
		for (unsigned cta = 0; cta < p->ctas; cta++) {
			struct want *w = expected(p, i, cta);
			for (unsigned x = 0; x < CTA_THREADS * i->nout; x++) {
				uint64_t a = element(part(i, cpu, cta), i, x / i->nout,
					x % i->nout);
				uint64_t b = element(part(i, gpu, cta), i, x / i->nout,
					x % i->nout);
				t.compared++;
				if (a == b || (w[x].how == WANT_NEAR && i->approximate
					&& agrees(&w[x], b)))
					continue;
				if (known(p, i, &w[x])) {
					t.known++;
					continue;
				}
				bool open = open_result(&w[x], a, b);
				unsigned *left = open ? &show_open : &show;
				*(open ? &t.undefined : &t.wrong) += 1;
				if (shown || !*left)
					continue;
				shown = true;
				(*left)--;
				print_item(p, i, cta, x / i->nout, x % i->nout);
				printf("\texecutor %" PRIx64 ", GPU %" PRIx64 ", reference ", a, b);
				print_wanted(&w[x]);
				printf("%s\n", open ? " (left open by the ISA)" : "");
			}
			free(w);
		}
	}
	return t;
}
