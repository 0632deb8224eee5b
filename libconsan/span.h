/* span: bytes of one CTA's shared memory; events and the shadow both list them. */
#ifndef CONSAN_SPAN_H
#define CONSAN_SPAN_H

#include <stdint.h>

struct ev_span {
	uint32_t addr, bytes; /* shared offset */
};

#endif
