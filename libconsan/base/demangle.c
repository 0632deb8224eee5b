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

/* Without a C++ runtime: _Z <length><name> ... and _ZN (<length><name>)+ E ... */
static char *plain(const char *s)
{
	bool nested = s[2] == 'N';
	struct text t = { 0 };
	char *end;

	for (s += nested ? 3 : 2; isdigit((unsigned char)*s); s = end) {
		unsigned long n = strtoul(s, &end, 10);

		if (n > strlen(end) || (t.n && !nested))
			break;
		text_printf(&t, "%s%.*s", t.n ? "::" : "", (int)n, end);
		end += n;
	}
	if (t.n && *s == 'I')
		text_printf(&t, "<...>");
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
	name = cxx && !cut ? cxx(mangled, NULL, NULL, &status) : plain(mangled);
	if (!name)
		return base_strdup(mangled);
	drop_internal(name);
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
