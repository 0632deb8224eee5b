/* tc_book: see tc_book.h. */
#include "tc_book.h"

#include "tc_desc.h"
#include "wg_desc.h"

#include <stdlib.h>

static void look_up(struct tc_reads *r)
{
	const struct tc_matrix *m = &r->of;
	const struct tc_desc d = tc_desc_decode(m->desc);
	const unsigned element = tc_bytes_of(m->type);

	if (m->mn) {
		tc_desc_mn_pieces(&d, m->bytes / element, m->rows * element / 16, r->piece);
		r->n = (uint16_t)(m->bytes / element * (m->rows * element / 16));
	} else {
		tc_desc_k_pieces(&d, m->rows, m->bytes / 16, r->piece);
		r->n = (uint16_t)(m->rows * m->bytes / 16);
	}
	r->top = tc_desc_top(r->piece, r->n);
	r->nspans = (uint16_t)wg_desc_spans(r->piece, r->n, r->span);
}

static bool same(const struct tc_matrix *x, const struct tc_matrix *y)
{
	return x->desc == y->desc && x->rows == y->rows && x->bytes == y->bytes && x->type == y->type
		&& x->mn == y->mn;
}

static const struct tc_reads *find(struct tc_book *book, struct tc_matrix m)
{
	const uint64_t h = (m.desc * 0x9e3779b97f4a7c15u ^ m.rows) * 0x9e3779b97f4a7c15u;
	struct tc_reads **r = &book->page[h >> 32 & (ARRAY_SIZE(book->page) - 1)];

	if (*r && same(&(*r)->of, &m))
		return *r;
	if (!*r)
		*r = base_alloc(sizeof **r);
	(*r)->of = m;
	look_up(*r);
	return *r;
}

const struct tc_reads *tc_book_a(struct tc_book *book, const struct tc_shape *s, uint64_t desc)
{
	return find(book, (struct tc_matrix){ desc, s->rows, s->a_bytes, s->a_type, s->a_mn });
}

const struct tc_reads *tc_book_b(struct tc_book *book, const struct tc_shape *s, uint64_t desc,
	unsigned more)
{
	return find(book, (struct tc_matrix){ desc, (uint16_t)(s->b_rows + more), s->b_bytes, s->b_type,
		s->b_mn });
}

void tc_book_close(struct tc_book *book)
{
	for (size_t i = 0; i < ARRAY_SIZE(book->page); i++)
		free(book->page[i]);
}
