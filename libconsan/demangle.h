/* demangle: kernel names as their author wrote them. */
#ifndef CONSAN_DEMANGLE_H
#define CONSAN_DEMANGLE_H

/* How names are shown; the order of --demangle's values. free() the result,
 * which is the name itself if it cannot be demangled. Uses the C++ runtime
 * library if there is one on the machine, and else knows plain functions. */
enum { NAME_FULL, NAME_SIMPLE, NAME_RAW };
char *demangle(const char *mangled, int how);
/* A variable's own name, without the function or namespace it stands in. */
char *demangle_variable(const char *mangled);

#endif
