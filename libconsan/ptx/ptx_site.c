/* ptx_site: see ptx_site.h. */
#include "ptx_site.h"

#include "constant.h"
#include "flag.h"
#include "opcodes.h"
#include "order.h"
#include "unread.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

#include <stdlib.h>
#include <string.h>

size_t ptx_statement_end(const struct ptx_module *m, const struct ptx_insn *i)
{
	const size_t end = i->text_at + i->text_len;
	const char *semicolon = memchr(m->text + end, ';', m->ntext - end);

	return semicolon ? (size_t)(semicolon - m->text) + 1 : end;
}

/* Calls are written over several lines: what is shown is one. */
static void make_one_line(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		const bool blank = strchr(" \t\r\n", *from);

		if (!blank || (to > text && to[-1] != ' '))
			*to++ = blank ? ' ' : *from;
	}
	*to = 0;
}

static uint32_t add(const struct ptx_func *f, const struct ptx_insn *i,
	uint32_t (*to)(const struct site *))
{
	const struct ptx_module *m = f->module;
	const char *from = m->text + i->text_at, *end = m->text + ptx_statement_end(m, i);
	char *text = base_strndup(from, i->text_len);
	struct site s = { .kernel = f->name, .module = m->name, .ptx_line = i->line, .ptx = text,
		.ptx_col = i->col, .end_line = i->line, .end_col = i->col + (uint32_t)(end - from),
		.loc = i->loc };
	uint32_t id;

	for (; from < end; from++)
		if (*from == '\n') {
			s.end_line++;
			s.end_col = (uint32_t)(end - from);
		}
	if (strchr(text, '\n'))
		make_one_line(text);
	s.constant = ptx_stores_constant(f, i, &s.value);
	s.unread = ptx_result_unread(f, i);
	s.unread_load = ptx_load_unread(f, i);
	s.ticket = i->op == OP_atom && !ptx_is_polled(f, i);
	s.texture = ptx_reads_texture(i);
	id = to(&s);
	free(text);
	return id;
}

uint32_t ptx_site_add(const struct ptx_func *f, const struct ptx_insn *i)
{
	return add(f, i, site_add);
}

uint32_t ptx_site_intern(const struct ptx_func *f, const struct ptx_insn *i)
{
	return add(f, i, site_intern);
}
