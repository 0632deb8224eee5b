/* group_internal: what group.c and group_link.c share. Private to them. */
#ifndef CONSAN_GROUP_INTERNAL_H
#define CONSAN_GROUP_INTERNAL_H

#include "libconsan/base/base.h"
#include "types.h"

enum family {
#define FAMILY(name, span, meaning) FAMILY_##name,
#define MEMBER(rule, family, family_mbarrier, sure)
#define BY_HINT(hint, rule, family, surer, surer_in_warp)
#define SURER(rule, with, surer)
#define RELATED(a, b, link)
#define FOLLOWS(consequence, cause, link)
#include "group.def"
#undef FAMILY
};

/* Those before LINK_LATER are equality of a key. */
enum link { LINK_PAIR, LINK_PLACE, LINK_BARRIER, LINK_SPAN, LINK_TWIN, LINK_OPERATION, LINK_KERNEL, LINK_EDIT,
	LINK_LATER };
enum { KEY_LINKS = LINK_LATER };

struct group_item {
	struct finding *f;
	enum family family;
	unsigned span;           /* of the family */
	int sure;
	bool consequence;        /* it is in a set that joined the set of its cause */
	uint32_t parent;         /* another item of its group, or itself */
};

/* The items with one key have a link in common. */
struct group_key { uint64_t key; uint32_t item; };
struct group_keys { VEC(struct group_key) link[KEY_LINKS]; };

/* Adds the keys of all items, in ascending order of key and item. */
void group_make_keys(struct group_keys *to, const struct group_item *item, size_t n);

#endif
