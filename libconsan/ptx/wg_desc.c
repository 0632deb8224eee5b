/* wg_desc: decodes wgmma descriptors and lists the shared memory that they cover. */
#include "wg_desc.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

struct wg_desc wg_desc_decode(uint64_t u)
{
	static const uint8_t span[4] = { 16, 128, 64, 32 };

	return (struct wg_desc){ .start = (uint32_t)(u & 0x3fff) << 4,
		.lead = (uint32_t)(u >> 16 & 0x3fff) << 4,
		.stride = (uint32_t)(u >> 32 & 0x3fff) << 4,
		.base = (uint32_t)(u >> 49 & 7), .span = span[u >> 62] };
}

static inline uint32_t swizzled(const struct wg_desc *d, uint32_t at)
{
	uint32_t phase = ((at >> 7) - d->base) << 4;

	return (at ^ (phase & (d->span - 16))) & 0x3ffff;
}

void wg_desc_mn_pieces(const struct wg_desc *d, unsigned k, unsigned n, uint32_t *out)
{
	/* blocks of `per` pieces in a row of the swizzle's span */
	uint32_t per = d->span / 16, block = d->span == 16 ? d->stride : d->lead;
	uint32_t half = d->span == 16 ? d->lead : d->stride;

	for (unsigned i = 0; i < k; i++) {
		uint32_t row = d->start + i % 8 * d->span + i / 8 * half;

		for (unsigned c = 0; c < n; row += block)
			for (unsigned j = 0; j < per && c < n; j++, c++)
				*out++ = swizzled(d, row + 16 * j);
	}
}

void wg_desc_pieces(const struct wg_desc *d, bool mn, unsigned n, uint32_t *out)
{
	if (!mn) {
		uint32_t next = d->span == 16 ? d->lead : 16;

		for (unsigned g = 0; g < n / 8; g++, out += 16)
			for (unsigned r = 0; r < 8; r++) {
				uint32_t at = d->start + g * d->stride + r * d->span;

				out[2 * r] = swizzled(d, at);
				out[2 * r + 1] = swizzled(d, at + next);
			}
		return;
	}
	wg_desc_mn_pieces(d, 16, n / 8, out);
}

/* K-major, 64 bytes deep. Pieces beyond the swizzle's span are in the next core matrix along K. */
static void wg_desc_deep_pieces(const struct wg_desc *d, unsigned n, uint32_t *out)
{
	for (unsigned r = 0; r < n; r++)
		for (unsigned j = 0; j < 4; j++)
			*out++ = swizzled(d, d->start + r / 8 * d->stride + r % 8 * d->span
				+ 16 * j / d->span * d->lead + 16 * j % d->span);
}

unsigned wg_desc_b_pieces(const struct wg_desc *d, bool mn, bool deep, unsigned n, uint32_t *out)
{
	if (!deep)
		wg_desc_pieces(d, mn, n, out);
	else if (mn)
		wg_desc_mn_pieces(d, 32, n / 8, out);
	else
		wg_desc_deep_pieces(d, n, out);
	return (deep ? 4 : 2) * n;
}

unsigned wg_desc_spans(const uint32_t *piece, unsigned n, struct ev_span *out)
{
	uint64_t set[0x40000 / 16 / 64];
	uint32_t low = piece[0], high = piece[0];

	for (unsigned i = 1; i < n; i++) {
		low = piece[i] < low ? piece[i] : low;
		high = piece[i] > high ? piece[i] : high;
	}
	low /= 16 * 64;
	high /= 16 * 64;
	memset(set + low, 0, (high - low + 1) * sizeof *set);
	/* the next piece is mostly in the same word, which is kept in a register */
	for (unsigned i = 0; i < n;) {
		const uint32_t at = piece[i] / (16 * 64);
		uint64_t bits = 0;

		for (; i < n && piece[i] / (16 * 64) == at; i++)
			bits |= 1ull << (piece[i] / 16 % 64);
		set[at] |= bits;
	}
	return span_runs(set, low, high, out);
}

void wg_desc_rows(const uint32_t *piece, bool mn, unsigned i, uint32_t out[32])
{
	if (!mn)
		memcpy(out, piece + 32 * i, 32 * sizeof *out);
	for (unsigned k = 0; mn && k < 16; k++)
		memcpy(out + 2 * k, piece + 8 * k + 2 * i, 2 * sizeof *out);
}

/* ---- all that a wgmma reads ---- */

static uint32_t top_of(const uint32_t *piece, unsigned n)
{
	uint32_t top = 0;

	for (unsigned i = 0; i < n; i++)
		top = piece[i] > top ? piece[i] : top;
	return top;
}

static void look_up(struct wg_reads *r)
{
	const struct wg_operands *of = &r->of;
	struct wg_desc d = wg_desc_decode(of->a);
	uint32_t rows[32];
	unsigned n = 0, pieces;

	r->top_a = 0;
	if (!of->a_regs) {
		wg_desc_pieces(&d, of->a_mn, 64, r->a);
		r->top_a = top_of(r->a, 128);
	}
	for (unsigned i = 0; i < 4; i++) {
		r->part[i] = (uint16_t)n;
		if (of->a_regs)
			continue;
		wg_desc_rows(r->a, of->a_mn, i, rows);
		n += wg_desc_spans(rows, 32, r->span + n);
	}
	d = wg_desc_decode(of->b);
	pieces = wg_desc_b_pieces(&d, of->b_mn, of->b_deep, of->n, r->b);
	r->top_b = top_of(r->b, pieces);
	r->part[4] = (uint16_t)n;
	n += wg_desc_spans(r->b, pieces, r->span + n);
	r->part[5] = (uint16_t)n;
}

static bool same(const struct wg_operands *x, const struct wg_operands *y)
{
	return x->a == y->a && x->b == y->b && x->n == y->n && x->a_regs == y->a_regs
		&& x->a_mn == y->a_mn && x->b_mn == y->b_mn
		&& x->b_deep == y->b_deep;
}

const struct wg_reads *wg_book_find(struct wg_book *book, const struct wg_operands *of)
{
	uint64_t h = (of->a * 0x9e3779b97f4a7c15u ^ of->b) * 0x9e3779b97f4a7c15u;
	struct wg_reads **r = &book->page[h >> 32 & (ARRAY_SIZE(book->page) - 1)];

	if (*r && same(&(*r)->of, of))
		return *r;
	if (!*r)
		*r = base_alloc(sizeof **r);
	(*r)->of = *of;
	look_up(*r);
	return *r;
}

void wg_book_close(struct wg_book *book)
{
	for (size_t i = 0; i < ARRAY_SIZE(book->page); i++)
		free(book->page[i]);
}
