/* demangle: kernel names as their author wrote them. */
#ifndef CONSAN_DEMANGLE_H
#define CONSAN_DEMANGLE_H

/* How names are shown; in the order of --demangle's values, and NAME_BARE, which
 * has no template arguments either. free() the result,
 * which is the name itself if it cannot be demangled. Uses the C++ runtime
 * library if there is one on the machine, and else knows plain functions. */
enum { NAME_FULL, NAME_SIMPLE, NAME_RAW, NAME_BARE };
char *demangle(const char *mangled, int how);
/* A variable's own name, without the function or namespace it stands in. */
char *demangle_variable(const char *mangled);

#endif
