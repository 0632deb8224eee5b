/* event_fields: the fields of events as tables, made from event.def, for code that handles all
 * kinds in the same way: saving, loading and printing. */
#ifndef CONSAN_EVENT_FIELDS_H
#define CONSAN_EVENT_FIELDS_H

#include "event.h"

enum event_type {
#define TYPE(id, type) TYPE_##id,
	EVENT_TYPES(TYPE)
#undef TYPE
	TYPE_COUNT
};

struct event_field {
	const char *name;
	uint16_t at;       /* offset in struct event */
	uint8_t type;      /* enum event_type */
	uint8_t bytes;     /* size in struct event */
};

struct event_fields {
	const struct event_field *at;
	uint8_t n;
	uint8_t narrays;   /* the first ones, which are not numbers */
};
const struct event_fields *event_fields(enum ev_kind kind);
extern const struct event_fields event_header; /* cta, warp, lanes, site */

static inline bool field_is_number(const struct event_field *f)
{
	return f->type < TYPE_lanes;
}
/* The value of a number; of a signed one, its bits. */
uint64_t event_number(const struct event *e, const struct event_field *f);
void event_set_number(struct event *e, const struct event_field *f, uint64_t value);
/* The field itself, for the other types. */
static inline const void *event_field(const struct event *e, const struct event_field *f)
{
	return (const char *)e + f->at;
}
/* The site that LOAD_USED and FAULT name beside the header's; else NULL. */
uint32_t *event_other_site(struct event *e);

#endif
