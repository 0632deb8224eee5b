/* protobuf: see protobuf.h. */
#include "reports/protobuf.h"

#include "reports/markup.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT, FIXED64, BYTES };

static void varint(struct text *t, uint64_t v)
{
	char byte[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		byte[n++] = (char)(v | 0x80);
	byte[n++] = (char)v;
	text_add(t, byte, n);
}

static void key(struct text *t, unsigned field, unsigned type)
{
	varint(t, field << 3 | type);
}

void pb_uint(struct text *t, unsigned field, uint64_t v)
{
	key(t, field, VARINT);
	varint(t, v);
}

void pb_fixed64(struct text *t, unsigned field, uint64_t v)
{
	char byte[8];

	for (unsigned i = 0; i < 8; i++)
		byte[i] = (char)(v >> 8 * i);
	key(t, field, FIXED64);
	text_add(t, byte, sizeof byte);
}

void pb_string(struct text *t, unsigned field, const char *s)
{
	const size_t n = strlen(s);

	key(t, field, BYTES);
	varint(t, n);
	for (size_t i = 0, len; i < n; i += len) {
		len = markup_character(s + i, n - i);
		if (len)
			text_add(t, s + i, len);
		else
			text_add(t, "?", len = 1);
	}
}

void pb_message(struct text *t, unsigned field, struct text *m)
{
	key(t, field, BYTES);
	varint(t, m->n);
	text_add(t, m->n ? m->at : "", m->n);
	m->n = 0;
}
