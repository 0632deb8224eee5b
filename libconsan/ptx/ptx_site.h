/* ptx_site: an instruction as a site (event/site.h). */
#ifndef CONSAN_PTX_SITE_H
#define CONSAN_PTX_SITE_H

#include "ir.h"

/* A site of its own for the instruction. */
uint32_t ptx_site_add(const struct ptx_func *f, const struct ptx_insn *i);
/* The same id for equal sites. */
uint32_t ptx_site_intern(const struct ptx_func *f, const struct ptx_insn *i);
/* The offset in the module's text behind the instruction's semicolon. */
size_t ptx_statement_end(const struct ptx_module *m, const struct ptx_insn *i);

#endif
