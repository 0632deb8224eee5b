/* hint_codes: the hints of hints.def, for code that gives one: HINT(never_waited) is its number and
 * its format, the two arguments that report_hint() takes before those of the format. */
#ifndef CONSAN_HINT_CODES_H
#define CONSAN_HINT_CODES_H

enum hint_code {
	HINT_NONE,
#define ADVICE(id, format) HINT_##id,
#include "hints.def"
#undef ADVICE
};

/* Arrays, so that the compiler checks the arguments against the format. */
#define ADVICE(id, format) static const char hint_format_##id[] __attribute__((unused)) = format;
#include "hints.def"
#undef ADVICE

#define HINT(id) HINT_##id, hint_format_##id

#endif
