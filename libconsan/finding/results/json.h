/* json: converts the structs of results.h to JSON objects and back. A missing field is read as
 * 0, because a file may be of another version. For results/ and the JSON reports; rj_ stands for
 * result JSON. */
#ifndef CONSAN_RESULTS_JSON_H
#define CONSAN_RESULTS_JSON_H

#include "results.h"

#include <jansson.h>

extern const char *const rj_state_name[3], *const rj_remark_name[RESULT_REMARK_COUNT];
json_t *rj_string(const char *s); /* bytes that are not UTF-8 become '?' */
uint64_t rj_number(const json_t *o, const char *key); /* 0 if absent */
const char *rj_text(const json_t *o, const char *key); /* "" if absent */
void rj_triple(const json_t *o, const char *key, uint32_t to[3]);
json_t *rj_from_triple(const uint32_t at[3]);

struct history;
json_t *rj_from_history(const struct history *h);
struct history *rj_history(const json_t *o); /* NULL if o is not an object */
uint32_t rj_site(const json_t *o); /* adds the site to the site table; 0 for null */

/* Read a record and add its sites to the site table. False if it is not such a record. */
bool rj_finding(const json_t *o, struct finding *f);
bool rj_coverage(const json_t *o, struct coverage *c);
bool rj_bank_use(const json_t *o, struct bank_use *u);

#endif
