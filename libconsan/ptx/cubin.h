/* cubin: where machine code ends, and what it says about a kernel that its PTX does not. */
#ifndef CONSAN_PTX_CUBIN_H
#define CONSAN_PTX_CUBIN_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the cubin that begins here, from its headers: the end of what lies last. At most `most`
 * bytes are read. 0: no cubin, or it is longer than that. */
size_t cubin_size(const void *elf, size_t most);

/* Calls each() with the registers per thread of each function of a cubin, as ptxas assigned them
 * (EIATTR_REGCOUNT in .nv.info). Every offset is checked against n; what is damaged is left out. */
void cubin_registers(const void *elf, size_t n,
	void (*each)(void *user, const char *function, uint32_t registers), void *user);

/* The same for the machine code of a fatbin that a device of this architecture would run. */
void fatbin_registers(const void *bytes, size_t n, unsigned device_sm, char device_suffix,
	void (*each)(void *user, const char *function, uint32_t registers), void *user);

#endif
