/* json: converts the structs of results.h to JSON objects and back. A missing field is read as
 * 0, because a file may be of another version. For results/ and the JSON reports; rj_ stands for
 * result JSON. */
#ifndef CONSAN_RESULTS_JSON_H
#define CONSAN_RESULTS_JSON_H

#include "results.h"

#include <jansson.h>

extern const char *const rj_state_name[3], *const rj_remark_name[RESULT_REMARK_COUNT];
json_t *rj_string(const char *s); /* bytes that are not UTF-8 become '?' */
/* Makes all strings of a file visible (base/visible.h); returns j, which may be NULL. */
json_t *rj_visible(json_t *j);
/* Do all numbers satisfy numbers.def? If not, says which one does not. Required before a file is read. */
bool rj_numbers(const json_t *j, struct text *why);
void rj_add32(uint32_t *count, uint32_t n); /* as results_sum() */
uint64_t rj_number(const json_t *o, const char *key); /* 0 if absent */
const char *rj_text(const json_t *o, const char *key); /* "" if absent */
void rj_triple(const json_t *o, const char *key, uint32_t to[3]);
json_t *rj_from_triple(const uint32_t at[3]);
void rj_put_text(json_t *o, const char *key, const char *s); /* nothing for NULL and "" */
void rj_put_number(json_t *o, const char *key, uint64_t n);

/* ---- sites.c ---- */

/* What a file of records has already: each site and each place of an inlining chain is written
 * once, by the first record that refers to it, and has a number from then on. Zeroed: nothing.
 * whole: sites stand by value in a document; each is made once, as most of them occur in many
 * histories. */
struct rj_sites {
	bool whole;
	struct number_map site;    /* ids; whole: id -> json_t * */
	struct number_map place;   /* struct site_loc * -> number */
	json_t *new_sites, *new_places; /* rows for the next record; or NULL */
};
/* The site's number, or the site by value if t is NULL or whole. */
json_t *rj_from_site(struct rj_sites *t, uint32_t site);
void rj_put_sites(struct rj_sites *t, json_t *record); /* adds the new rows to the record */
void rj_sites_clear(struct rj_sites *t);

/* The rows that were read of one session. */
struct rj_known {
	struct number_map site;    /* number -> id in the site table of this process */
	struct number_map place;   /* number -> struct site_loc * */
	struct arena arena;
};
void rj_get_sites(struct rj_known *k, const json_t *record); /* reads the record's rows */
void rj_known_clear(struct rj_known *k);
/* Adds the site to the site table. k: for a site by number; NULL: there are none. 0: unknown. */
uint32_t rj_site(const json_t *o, const struct rj_known *k);

/* ---- json.c, history.c ---- */

struct history;
json_t *rj_from_history(const struct history *h, struct rj_sites *t);
/* NULL if o is not an object */
struct history *rj_history(const json_t *o, const struct rj_known *k);
json_t *rj_from_finding(const struct finding *f, struct rj_sites *t);
json_t *rj_from_bank_use(const struct bank_use *u, struct rj_sites *t);

/* Read a record and add its sites to the site table. False if it is not such a record. */
bool rj_finding(const json_t *o, const struct rj_known *k, struct finding *f);
bool rj_coverage(const json_t *o, struct coverage *c);
bool rj_bank_use(const json_t *o, const struct rj_known *k, struct bank_use *u);

#endif
