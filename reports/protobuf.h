/* protobuf: writes messages in the wire format of Protocol Buffers. A message is built in a text,
 * and then appended to the one that contains it. */
#ifndef CONSAN_PROTOBUF_H
#define CONSAN_PROTOBUF_H

#include "libconsan/base/base.h"

void pb_uint(struct text *t, unsigned field, uint64_t v);    /* enum, bool, uint32, uint64 */
void pb_fixed64(struct text *t, unsigned field, uint64_t v);
/* A string: bytes that are not UTF-8 become '?'. */
void pb_string(struct text *t, unsigned field, const char *s);
/* A message, which is emptied for the next one. */
void pb_message(struct text *t, unsigned field, struct text *m);

#endif
