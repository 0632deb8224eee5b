/* Stands for libcublas.so and libcufft.so: if one of its functions is executed, it returns 99. */
#define CALL(name) int name(void); int name(void) { return 99; }
#include "library.h"
