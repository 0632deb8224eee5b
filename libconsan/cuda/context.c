/* context: the emulated devices, which are all alike, the contexts of both APIs, which say which
 * device is current, and the access of devices to each other's memory. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices ---- */

/* A device that the program may use is any entry of $CUDA_VISIBLE_DEVICES; without one, as on a
 * machine whose GPUs are hidden, all are. */
int device_count(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int n = (int)consan_devices(device_session()), entries = 0;

	while (visible && *visible && *visible != '-') {
		visible += strcspn(visible, ",");
		visible += *visible == ',';
		entries++;
	}
	return entries && entries < n ? entries : n;
}

/* The entry is a number; or a UUID, which is that of another machine. */
int device_place(int device)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	char *end;
	long n;

	for (int k = 0; visible && k < device; k++) {
		visible = strchr(visible, ',');
		visible += visible != NULL;
	}
	n = visible ? strtol(visible, &end, 10) : 0;
	return visible && end > visible && n >= 0 && n < CONSAN_DEVICES ? (int)n : device;
}

int device_check(int device)
{
	int error = device_open();

	return error ? error : device < 0 || device >= device_count() ? cudaErrorInvalidDevice : 0;
}

void device_pci_id(int device, char to[DEVICE_PCI_ID_BYTES])
{
	snprintf(to, DEVICE_PCI_ID_BYTES, "0000:%02x:00.0", (unsigned char)(device_place(device) + 1));
}

int device_by_pci_id(const char *id, int *device)
{
	char own[DEVICE_PCI_ID_BYTES];

	if (!id || !device)
		return cudaErrorInvalidValue;
	for (int d = 0; d < device_count(); d++) {
		device_pci_id(d, own);
		if (!strcasecmp(id, own)) {
			*device = d;
			return 0;
		}
	}
	return cudaErrorInvalidValue;
}

void place_uuid(int place, void *to)
{
	memcpy(to, "consan emulated", 16);
	((char *)to)[15] = (char)place;
}

void device_uuid(int device, void *to)
{
	place_uuid(device_place(device), to);
}

/* ---- contexts ---- */

static struct context primary[CONSAN_DEVICES];
static int users[CONSAN_DEVICES];
static _Atomic unsigned long long ids = CONSAN_DEVICES;

__attribute__((constructor)) static void number_primary_contexts(void)
{
	for (int d = 0; d < CONSAN_DEVICES; d++)
		primary[d] = (struct context){ .device = d, .primary = true, .id = (unsigned)d + 1 };
}

enum { STACK_MAX = 64 };
static _Thread_local struct { struct context *at[STACK_MAX]; unsigned n; } stack;

struct context *cuda_context_now(void)
{
	if (stack.n)
		return stack.at[stack.n - 1];
	return rt_used() ? &primary[0] : NULL;
}

int device_now(void)
{
	return stack.n ? stack.at[stack.n - 1]->device : 0;
}

struct context *cuda_context_primary(int device)
{
	return &primary[device];
}

struct context *cuda_context_of(const void *handle)
{
	for (int d = 0; d < CONSAN_DEVICES; d++)
		if (handle == &primary[d])
			return &primary[d];
	return handle_get(handle, HANDLE_CONTEXT);
}

int *cuda_context_users(int device)
{
	return &users[device];
}

struct context *cuda_context_new(int device, unsigned flags)
{
	struct context *c = base_alloc(sizeof *c);

	*c = (struct context){ .device = device, .flags = flags, .id = ++ids };
	handle_put(c, HANDLE_CONTEXT, c);
	return c;
}

int cuda_context_free(const void *handle)
{
	struct context *c = handle_get(handle, HANDLE_CONTEXT);

	if (!c)
		return cudaErrorDeviceUninitialized;
	if (cuda_context_now() == c)
		stack.n--;
	handle_drop(c, HANDLE_CONTEXT);
	free(c);
	return 0;
}

int cuda_context_push(struct context *c)
{
	if (!c)
		return cudaErrorDeviceUninitialized;
	if (stack.n == STACK_MAX)
		return cudaErrorInvalidValue;
	stack.at[stack.n++] = c;
	return 0;
}

int cuda_context_pop(struct context **out)
{
	if (!stack.n)
		return cudaErrorDeviceUninitialized;
	stack.n--;
	if (out)
		*out = stack.at[stack.n];
	return 0;
}

void cuda_context_set(struct context *c)
{
	if (stack.n)
		stack.n--;
	if (c)
		stack.at[stack.n++] = c;
}

/* ---- peers: each device can access each other one ---- */

int peer_can(int device, int peer, int *can)
{
	int error = device_check(device);

	if (!error)
		error = device_check(peer);
	if (!error && !can)
		error = cudaErrorInvalidValue;
	if (!error)
		*can = device != peer;
	return error;
}

int peer_access(int peer, bool on)
{
	const int own = device_now();
	int error = device_ready();

	if (!error)
		error = device_check(peer);
	if (error || peer == own)
		return error ? error : cudaErrorInvalidDevice;
	if (consan_peer_access((unsigned)own, (unsigned)peer, on))
		return 0;
	return on ? cudaErrorPeerAccessAlreadyEnabled : cudaErrorPeerAccessNotEnabled;
}

int peer_attribute(int *value, int attribute, int device, int peer)
{
	int error = device_check(device);

	if (!error)
		error = device_check(peer);
	if (error)
		return error;
	if (!value || device == peer)
		return value ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
	switch (attribute) {
	case cudaDevP2PAttrPerformanceRank:
		*value = 0;
		return 0;
	case cudaDevP2PAttrAccessSupported:
	case cudaDevP2PAttrNativeAtomicSupported:
	case cudaDevP2PAttrOnlyPartialNativeAtomicSupported:
		*value = attribute != cudaDevP2PAttrOnlyPartialNativeAtomicSupported;
		return 0;
	case cudaDevP2PAttrCudaArrayAccessSupported:
		*value = 0;
		return 0;
	}
	return cudaErrorInvalidValue;
}
