/* devices: several emulated devices, and which of them may access which memory. */
#ifndef CONSAN_SESSION_DEVICES_H
#define CONSAN_SESSION_DEVICES_H

#include "libconsan/consan.h"

enum { CONSAN_DEVICES = 16 };      /* at most; numbers 0 to 15 */
unsigned consan_devices(const struct consan *c); /* their number, by the option `devices` */

/* The devices that may access memory other than by cudaDeviceEnablePeerAccess(): of pools, and of
 * mappings. It must outlive the memory. */
struct exec_access;
struct exec_access *consan_access_new(void); /* no device may; free() it */
void consan_access_set(struct exec_access *a, unsigned device, bool read, bool write);
bool consan_access_get(const struct exec_access *a, unsigned device, bool *write);
/* Kernels on `device` may, or may not, access ordinary memory of `peer`. False: it was so before. */
bool consan_peer_access(unsigned device, unsigned peer, bool on);

/* consan_malloc() on a device. access: NULL: as ordinary memory of the device, or of the host. The
 * pages of an allocation hold nothing else. */
void *consan_malloc_on(struct consan *c, uint64_t bytes, enum consan_mem kind, unsigned device,
	const struct exec_access *access);
/* Lets kernels access memory of the caller as memory of a device, until consan_mem_unmap(). joins: an
 * access may reach into it from the mapping directly before it. */
void consan_mem_map(void *at, uint64_t bytes, unsigned device, const struct exec_access *access,
	bool joins);
/* Makes the addresses multicast addresses: an access is one to each memory that is bound there, of
 * all `devices`. No memory is behind them. Until consan_mem_unmap(). */
struct consan_binding { uint64_t from, bytes, at; unsigned device; }; /* from, at: addresses */
void consan_mem_multicast(void *at, uint64_t bytes, const struct exec_access *access, unsigned devices,
	const struct consan_binding *bound, size_t n);
void consan_mem_unmap(struct consan *c, void *at);
/* The device that has the allocation that contains `at`; -1: there is none. */
int consan_mem_device(const void *at);

/* A texture or surface object; its handle for kernels, which is never used again. */
struct consan_texture;
uint64_t consan_texture_add(const struct consan_texture *t);
bool consan_texture_remove(uint64_t handle); /* false: there is no such object */

/* consan_load_ptx() for a device. other: the same module on another device, or NULL. It has the
 * managed variables, so it is unloaded last. */
struct consan_module *consan_load_ptx_on(struct consan *c, const char *name, const char *text, size_t n,
	unsigned device, const struct consan_module *other, struct consan_err *e);

#endif
