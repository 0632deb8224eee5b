/* hint_codes: the hints of hints.def, for code that gives one: HINT(never_waited) is its number and
 * its format, the two arguments that report_hint() takes before those of the format; EDIT(never_waited)
 * is the kind and the form of its edit, for report_edit(). */
#ifndef CONSAN_HINT_CODES_H
#define CONSAN_HINT_CODES_H

#include "types.h"

enum hint_code {
	HINT_NONE,
#define ADVICE(id, edit, form, format) HINT_##id,
#include "hints.def"
#undef ADVICE
};

/* Arrays, so that the compiler checks the arguments against the format. */
#define ADVICE(id, edit, form, format) \
	enum { hint_edit_##id = EDIT_##edit }; \
	static const char hint_format_##id[] __attribute__((unused)) = format; \
	static const char hint_form_##id[] __attribute__((unused)) = form;
#include "hints.def"
#undef ADVICE

#define HINT(id) HINT_##id, hint_format_##id
#define EDIT(id) (enum finding_edit_kind)hint_edit_##id, hint_form_##id

#endif
