/* results_json: the structs of results.h as JSON objects and back. Reading is
 * lenient (a missing field is zero), as files outlive versions. Private to
 * results*.c, reports/json.c and tests. */
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
struct history *rj_history(const json_t *o); /* NULL: there is none */
uint32_t rj_site(const json_t *o); /* 0: null */

/* Adds the sites to this process's table. False: not a finding. */
bool rj_finding(const json_t *o, struct finding *f);
bool rj_coverage(const json_t *o, struct coverage *c);
bool rj_bank_use(const json_t *o, struct bank_use *u);

#endif
