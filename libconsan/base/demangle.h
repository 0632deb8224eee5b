/* demangle: kernel names as in the source. */
#ifndef CONSAN_DEMANGLE_H
#define CONSAN_DEMANGLE_H

struct text;

/* In the order of --demangle's values; NAME_BARE also has no template arguments. Uses the C++
 * runtime library if it is installed; what that cannot demangle becomes the nested name, with <...>
 * for template arguments. Returns the mangled name if nothing fits; the caller free()s the result. */
enum { NAME_FULL, NAME_SIMPLE, NAME_RAW, NAME_BARE };
char *demangle(const char *mangled, int how);
/* A name that is not mangled, without template arguments; the caller free()s it. */
char *drop_template_arguments(const char *name);
/* The name of a variable without its function or namespace; the caller free()s it. */
char *demangle_variable(const char *mangled);
/* The same of the name that the recorder gives an object in shared memory: "full[1]" of
 * "_ZZ4ringE4full[1]". */
void demangle_symbol(struct text *t, const char *symbol);

#endif
