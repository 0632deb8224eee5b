/* sha256: the digest of FIPS 180-4, as a name for contents. */
#ifndef CONSAN_SHA256_H
#define CONSAN_SHA256_H

#include <stddef.h>

enum { SHA256_HEX = 65 };

/* Writes the digest of n bytes as 64 lower-case digits and a NUL. */
void sha256_hex(const void *bytes, size_t n, char hex[SHA256_HEX]);

#endif
