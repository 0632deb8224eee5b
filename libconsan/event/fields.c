/* event_fields: see fields.h. */
#include "fields.h"

#include <string.h>

/* How many fields of a kind are not numbers. */
enum {
#define FIELD(type, name, meaning) + (TYPE_##type >= TYPE_lanes)
#define EV_LIKE(id, member, like_id, like, meaning)
#define EV(id, member, meaning, fields) ARRAYS_##member = 0 fields,
#include "event.def"
#undef EV_LIKE
#undef EV
#undef FIELD
};

const struct event_fields *event_fields(enum ev_kind kind)
{
	static const struct event_fields none;

	switch (kind) {
#define FIELD(type, name, meaning) { #name, offsetof(struct event, word) + offsetof(self, name), \
	TYPE_##type, sizeof(event_##type##_t) },
#define EV_LIKE(id, member, like_id, like, meaning) \
	case EV_##id: return event_fields(EV_##like_id);
#define EV(id, member, meaning, fields) \
	case EV_##id: { \
		typedef struct event_##member self __attribute__((unused)); \
		static const struct event_field all[] = { fields { 0 } }; \
		static const struct event_fields f = { all, sizeof all / sizeof *all - 1, \
			ARRAYS_##member }; \
		return &f; \
	}
#include "event.def"
#undef EV_LIKE
#undef EV
#undef FIELD
	case EV_COUNT: break;
	}
	return &none;
}

static const struct event_field header[] = {
#define FIELD(name) { #name, offsetof(struct event, name), TYPE_number, \
	sizeof((struct event *)0)->name },
	FIELD(warp) FIELD(site) FIELD(lanes) FIELD(cta)
#undef FIELD
};
const struct event_fields event_header = { header, sizeof header / sizeof *header, 0 };

uint64_t event_number(const struct event *e, const struct event_field *f)
{
	const char *at = event_field(e, f);
	uint64_t v = 0;

	memcpy(&v, at, f->bytes); /* little-endian */
	return v;
}

void event_set_number(struct event *e, const struct event_field *f, uint64_t value)
{
	if (f->type == TYPE_flag) /* a bool is 0 or 1 */
		value = value != 0;
	memcpy((char *)e + f->at, &value, f->bytes);
}

uint32_t *event_other_site(struct event *e)
{
	switch (e->kind) {
	case EV_LOAD_USED: return &e->load_used.load_site;
	case EV_FAULT: return &e->fault.other_site;
	default: return NULL;
	}
}
