/* edit: what to change in the program so that a finding disappears, as data: struct finding_edit.
 * The checker names the instruction; hints.def and edits.def say what to do with it. */
#ifndef CONSAN_EDIT_H
#define CONSAN_EDIT_H

#include "types.h"

#include <stddef.h>

/* "change", "insert before", ...; "" for EDIT_NONE, and the reverse. */
const char *edit_name(unsigned kind);
unsigned edit_by_name(const char *name);
/* "clean", "part", "not clean"; "" for VERIFIED_NOT_TRIED, and the reverse. */
const char *edit_verified_name(unsigned verified);
unsigned edit_verified_by_name(const char *name);
/* The id of a row of untried.def, "" for 0, the reverse, and what the row says. */
const char *edit_untried_name(unsigned untried);
unsigned edit_untried_by_name(const char *name);
const char *edit_untried_why(unsigned untried);

/* Writes the statement that a CHANGE of hints.def makes of `ptx`. False, and "": the form does not
 * apply to it, or the result has more than n - 1 bytes. */
bool edit_statement(const char *ptx, const char *form, char *to, size_t n);
/* Sets f->edit. `until` is for EDIT_BETWEEN, else 0. form "?": not known. */
void edit_set(struct finding *f, enum finding_edit_kind kind, uint32_t site, uint32_t until,
	const char *form);
/* Sets the edit that follows from the rule (edits.def), if f has none. */
void edit_by_rule(struct finding *f);
/* Does the instruction have this modifier, as ".cta"? */
bool edit_has_modifier(const char *ptx, const char *modifier);
/* The same in CUDA C++, without the semicolon ("__syncthreads()"); "": no usual form. Returns
 * `to`. */
const char *edit_cuda(const char *ptx, char *to, size_t n);
/* The same edit of the same instruction. */
bool edit_same(const struct finding_edit *a, const struct finding_edit *b);

#endif
