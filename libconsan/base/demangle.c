/* demangle: see demangle.h. */
#include "demangle.h"

#include "base.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef char *cxa_demangle(const char *, char *, size_t *, int *);
static cxa_demangle *cxx;

static void find_cxx(void)
{
	void *lib, *at = dlsym(RTLD_DEFAULT, "__cxa_demangle");

	if (!at) {
		lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
		if (lib)
			at = dlsym(lib, "__cxa_demangle");
	}
	memcpy(&cxx, &at, sizeof cxx);
}

#define DEPTH 200 /* of lists in each other; names of CUTLASS have some twenty */

static const char *skip(const char *s, unsigned depth);

/* Past the E that ends the list at s; NULL if it has none. */
static const char *skip_list(const char *s, unsigned depth)
{
	while (s && *s && *s != 'E')
		s = skip(s, depth + 1);
	return s && *s ? s + 1 : NULL;
}

/* L <type> <value> E, or L _Z <encoding> E */
static const char *skip_literal(const char *s, unsigned depth)
{
	if (!strncmp(s, "_Z", 2))
		return skip_list(s + 2, depth);
	s = skip(s, depth + 1);
	s = s ? strchr(s, 'E') : NULL;
	return s ? s + 1 : NULL;
}

/* <length><name>, where s is at a digit; NULL if the name is too short. */
static const char *skip_name(const char *s)
{
	char *end;
	unsigned long n = strtoul(s, &end, 10);

	return n <= strlen(end) ? end + n : NULL;
}

/* Past one production of the Itanium C++ ABI's mangling (its section 5.1), or a letter of one that
 * is not a list; NULL if it does not end. Tells where template arguments end, not what they are. */
static const char *skip(const char *s, unsigned depth)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (!*s || depth > DEPTH)
		return NULL;
	if (isdigit((unsigned char)*s))
		return skip_name(s);
	if (strchr("NIJFXZ", *s))
		return skip_list(s + 1, depth);
	if (*s == 'L')
		return skip_literal(s + 1, depth);
	if (*s == 'D' && (s[1] == 't' || s[1] == 'T'))
		return skip_list(s + 2, depth);
	if (*s == 'U' && s[1] == 'l') {
		s = skip_list(s + 2, depth);
		s = s ? s + strspn(s, digits) : NULL;
		return s && *s ? s + 1 : NULL;
	}
	if (strchr("STA", *s) || (*s == 'U' && s[1] == 't')) {
		size_t n = strspn(s + 1 + (*s == 'U'), digits) + 1 + (*s == 'U');

		return s[n] ? s + n + 1 : NULL;
	}
	if (strchr("CD", *s) && s[1])
		return s + 2;
	return s + 1;
}

/* Without the C++ runtime, or for names that it refuses (some of CUTLASS's, of more than a
 * thousand characters): the name of the function, its template arguments as <...>. */
static char *plain(const char *s)
{
	bool nested = s[2] == 'N';
	struct text t = { 0 };
	const char *end, *last = NULL; /* the last name, of n characters */
	int n = 0;

	s += nested ? 3 : 2;
	if (nested)
		s += strspn(s, "rVKRO");
	for (; s && *s && *s != 'E'; s = end) {
		const char *sep = t.n ? "::" : "";

		end = skip(s, 0);
		if (isdigit((unsigned char)*s) && (nested || !last)) {
			if (!end)
				break;
			last = s + strspn(s, "0123456789");
			n = (int)(end - last);
			text_printf(&t, "%s%.*s", sep, n, last);
		} else if (*s == 'I' && last) {
			text_printf(&t, "<...>");
		} else if (!strncmp(s, "St", 2) && !t.n) {
			text_printf(&t, "std");
		} else if (nested && last && strchr("CD", *s) && isdigit((unsigned char)s[1])) {
			text_printf(&t, "::%s%.*s", *s == 'D' ? "~" : "", n, last);
		} else if (nested && t.n && islower((unsigned char)*s)) {
			text_printf(&t, "::operator%s", !strncmp(s, "cl", 2) ? "()" : "");
			break;
		} else {
			break;
		}
	}
	return t.at;
}

/* Removes template arguments. */
static void drop_arguments(char *name)
{
	char *to = name;
	int depth = 0;

	for (const char *c = name; *c; c++) {
		bool operator = *c == '<' && c - name >= 8 && !strncmp(c - 8, "operator", 8);

		if (*c == '<' && !operator)
			depth++;
		if (!depth)
			*to++ = *c;
		if (*c == '>' && depth)
			depth--;
	}
	*to = 0;
}

char *drop_template_arguments(const char *name)
{
	char *bare = base_strdup(name);

	drop_arguments(bare);
	return bare;
}

/* Removes the names that nvcc gives to unnamed namespaces:
 * _INTERNAL_<hash>_<n>_<file>_cu_<name>:: or _GLOBAL__N__<hash>_...:: */
static void drop_internal(char *name)
{
	static const char *const begins[] = { "_INTERNAL_", "_GLOBAL__N_" };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		char *at, *end;

		while ((at = strstr(name, begins[i])) && (end = strstr(at, "::")))
			memmove(at, end + 2, strlen(end + 2) + 1);
	}
}

/* Numba marks each version of a function that it compiles by two ABI tags: [abi:v1][abi:c<options>] */
static void drop_versions(char *name)
{
	char *at = strstr(name, "[abi:v"), *next, *end;

	next = at ? at + strlen("[abi:v") : name;
	next += strspn(next, "0123456789");
	end = at && !strncmp(next, "][abi:c", 7) ? strchr(next + 1, ']') : NULL;
	if (end)
		memmove(at, end + 1, strlen(end + 1) + 1);
}

char *demangle_variable(const char *mangled)
{
	const char *name = mangled;
	size_t length = strlen(mangled);
	char *end;

	if (strncmp(mangled, "_Z", 2))
		return base_strdup(mangled);
	/* the last <length><name>, which only E and _<number> may follow */
	for (const char *s = mangled + 2; *s; s++) {
		unsigned long n;

		if (!isdigit((unsigned char)*s) || isdigit((unsigned char)s[-1]))
			continue;
		n = strtoul(s, &end, 10);
		if (n && n <= strlen(end) && strspn(end + n, "E_0123456789") == strlen(end + n)
				&& !isdigit((unsigned char)*end)) {
			name = end;
			length = n;
			break;
		}
	}
	return base_strndup(name, length);
}

void demangle_symbol(struct text *t, const char *symbol)
{
	const size_t n = strcspn(symbol, "+[");
	char *bare = base_strndup(symbol, n), *own = demangle_variable(bare);

	text_printf(t, "%s%s", own, symbol + n);
	free(own);
	free(bare);
}

/* Removes the parameters, and the return type of a template function. */
static void simplify(char *name)
{
	int depth = 0;
	char *from = name;

	if (!strchr(name, '('))
		return;
	for (char *c = name; *c; c++) {
		if (*c == '<')
			depth++;
		else if (*c == '>')
			depth--;
		else if (*c == ' ' && !depth)
			from = c + 1;
		else if (!strncmp(c, "operator()", 10) && !depth)
			c += 9;
		else if (*c == '(' && !depth && strncmp(c, "(anonymous namespace)", 21)) {
			*c = 0;
			break;
		} else if (*c == '(' && !depth) {
			c += 20;
		}
	}
	memmove(name, from, strlen(from) + 1);
}

char *demangle(const char *mangled, int how)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *cut = strrchr(mangled, '~'); /* finding_set_kernel() */
	char *name = NULL;
	struct text t = { 0 };
	int status = 0;

	if (how == NAME_RAW || strncmp(mangled, "_Z", 2))
		return base_strdup(mangled);
	pthread_once(&once, find_cxx);
	name = cxx && !cut ? cxx(mangled, NULL, NULL, &status) : NULL;
	if (!name)
		name = plain(mangled);
	if (!name)
		return base_strdup(mangled);
	drop_internal(name);
	drop_versions(name);
	if (cut) {
		text_printf(&t, "%s %s", name, cut);
		free(name);
		return t.at;
	}
	if (how == NAME_BARE)
		drop_arguments(name);
	if (how == NAME_SIMPLE || how == NAME_BARE)
		simplify(name);
	return name;
}
