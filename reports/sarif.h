/* sarif: what the files of the SARIF report share. Private to them.
 *
 *   sarif.c        the log: results, invocations
 *   sarif_rule.c   the rules: help, tags, precision
 *   sarif_place.c  files and places in them */
#ifndef CONSAN_REPORTS_SARIF_H
#define CONSAN_REPORTS_SARIF_H

#include "reports/reports.h"

#include "libconsan/finding/finding.h"

json_t *sarif_message(const char *text);
const char *sarif_level(enum severity s);

/* sarif_rule.c: the index of the rule in `rules`, to which it is added the first time. */
size_t sarif_rule(json_t *rules, unsigned rule);

/* sarif_place.c */
struct sarif_places {
	const struct options *o;
	const struct results *r;
	json_t *artifacts;      /* files that the locations refer to by their index */
};
/* Where a site is: in the source at l, or, if l is NULL, in the PTX. text: or NULL. */
json_t *sarif_location(struct sarif_places *p, uint32_t site, const struct site_loc *l,
	const char *text);
/* The artifact of a PTX module. */
json_t *sarif_module(struct sarif_places *p, const char *module);
/* The folder of relative paths, as a URI. */
json_t *sarif_root(void);

#endif
