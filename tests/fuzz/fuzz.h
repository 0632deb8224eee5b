/* fuzz: what the fuzz targets of this folder share. Each NAME.c has one libFuzzer target; its corpus is
 * corpus/NAME/. By clang, `make fuzz` links it with libFuzzer; by any compiler, driver.c runs it on the
 * files of the corpus, which is a test of `make check`. */
#ifndef CONSAN_TESTS_FUZZ_H
#define CONSAN_TESTS_FUZZ_H

#include "libconsan/base/base.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The path of a file in memory that holds these bytes, until the next call. */
const char *fuzz_file(const void *bytes, size_t n);

/* Ends the process: the target found what must not be. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : abort())

#endif
