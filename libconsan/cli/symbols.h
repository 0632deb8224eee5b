/* symbols: call stacks of the host. */
#ifndef CONSAN_CLI_SYMBOLS_H
#define CONSAN_CLI_SYMBOLS_H

#include <stdint.h>

struct symbols;
struct symbols *symbols_open(void);
void symbols_close(struct symbols *s);
/* For consan_report(). user: a struct symbols. */
uint32_t symbols_resolve(void *user, uint32_t raw);

#endif
