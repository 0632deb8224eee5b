/* symbols: call stacks of the host. */
#ifndef CONSAN_CLI_SYMBOLS_H
#define CONSAN_CLI_SYMBOLS_H

#include <stdint.h>

struct symbols;
struct symbols *symbols_open(void);
void symbols_close(struct symbols *s);
/* Calls each() with the program's folder, and the folders in which it was compiled, as its debug
 * information says. */
void symbols_folders(struct symbols *s, const char *program, void (*each)(const char *folder));
/* For consan_report(). user: a struct symbols. */
uint32_t symbols_resolve(void *user, uint32_t raw);

#endif
