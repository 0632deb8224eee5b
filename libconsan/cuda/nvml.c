/* nvml: the part of the NVIDIA Management Library with which frameworks look for GPUs (nvml.def). They
 * open libnvidia-ml.so.1, which is another name of this library's file. Signatures, structures and
 * numbers are those of the NVML API reference. As there, all devices are seen, whatever
 * $CUDA_VISIBLE_DEVICES says, and an index is the device's place. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#define CALL(name, ...) \
	__attribute__((visibility("default"))) int name(__VA_ARGS__); \
	int name(__VA_ARGS__)

enum { /* nvmlReturn_t */
	SUCCESS = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	UNKNOWN = 999,
};

/* The versions that a driver of DEVICE_CUDA_VERSION has. */
#define DRIVER "580.65.06"
#define LIBRARY "13." DRIVER

static _Atomic unsigned users; /* calls of nvmlInit() without their nvmlShutdown() */

#define NVML(name) extern const char done_##name[] __asm__(#name);
#define NVML_NONE(name) CALL(name, void) { return users ? NOT_SUPPORTED : UNINITIALIZED; }
#include "nvml.def"

/* A row without its function does not link. */
static const void *const done[] __attribute__((used)) = {
#define NVML(name) done_##name,
#include "nvml.def"
};

CALL(nvmlInitWithFlags, unsigned flags)
{
	if (device_open())
		return DRIVER_NOT_LOADED;
	users++;
	return SUCCESS;
}

CALL(nvmlInit_v2, void)
{
	return nvmlInitWithFlags(0);
}

CALL(nvmlInit, void)
{
	return nvmlInitWithFlags(0);
}

CALL(nvmlShutdown, void)
{
	if (!users)
		return UNINITIALIZED;
	users--;
	return SUCCESS;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int error);
const char *nvmlErrorString(int error)
{
	switch (error) {
	case SUCCESS: return "Success";
	case UNINITIALIZED: return "Uninitialized";
	case INVALID_ARGUMENT: return "Invalid Argument";
	case NOT_SUPPORTED: return "Not Supported";
	case NOT_FOUND: return "Not Found";
	case INSUFFICIENT_SIZE: return "Insufficient Size";
	case DRIVER_NOT_LOADED: return "Driver Not Loaded";
	}
	return "Unknown Error";
}

static int give(const char *text, char *to, unsigned n)
{
	if (!users)
		return UNINITIALIZED;
	if (!to)
		return INVALID_ARGUMENT;
	if (n <= strlen(text))
		return INSUFFICIENT_SIZE;
	memcpy(to, text, strlen(text) + 1);
	return SUCCESS;
}

CALL(nvmlSystemGetDriverVersion, char *to, unsigned n)
{
	return give(DRIVER, to, n);
}

CALL(nvmlSystemGetNVMLVersion, char *to, unsigned n)
{
	return give(LIBRARY, to, n);
}

CALL(nvmlSystemGetCudaDriverVersion_v2, int *version)
{
	if (!version)
		return INVALID_ARGUMENT;
	*version = DEVICE_CUDA_VERSION;
	return SUCCESS;
}

CALL(nvmlSystemGetCudaDriverVersion, int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* ---- devices: a handle is the address of the element with the device's place ---- */

static const char place_of[CONSAN_DEVICES];

static int devices(void)
{
	return (int)consan_devices(device_session());
}

static int to_handle(int place, const void **handle)
{
	if (!users)
		return UNINITIALIZED;
	if (!handle || place < 0 || place >= devices())
		return INVALID_ARGUMENT;
	*handle = place_of + place;
	return SUCCESS;
}

/* Where the device is, and an error if there is no such device or nowhere to write the answer. */
static int check(const void *handle, const void *out, int *place)
{
	const char *at = handle;

	if (!users)
		return UNINITIALIZED;
	if (at < place_of || at >= place_of + devices() || !out)
		return INVALID_ARGUMENT;
	*place = (int)(at - place_of);
	return SUCCESS;
}

CALL(nvmlDeviceGetCount_v2, unsigned *count)
{
	if (!users)
		return UNINITIALIZED;
	if (!count)
		return INVALID_ARGUMENT;
	*count = (unsigned)devices();
	return SUCCESS;
}

CALL(nvmlDeviceGetCount, unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, const void **handle)
{
	return to_handle(index < CONSAN_DEVICES ? (int)index : -1, handle);
}

CALL(nvmlDeviceGetHandleByIndex, unsigned index, const void **handle)
{
	return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

struct pci {
	char legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char id[32];
};
/* of nvmlDeviceGetPciInfo() and ..._v2(), whose last member is shorter */
enum { PCI_V2_BYTES = 16 + 9 * 4 };

static void describe(int place, struct pci *p)
{
	*p = (struct pci){ .bus = (unsigned char)(place + 1), .device_id = 0x10de };
	snprintf(p->legacy, sizeof p->legacy, "0000:%02X:00.0", p->bus);
	snprintf(p->id, sizeof p->id, "00000000:%02X:00.0", p->bus);
}

/* "domain:bus:device.function", numbers in base 16, the domain in any number of digits */
CALL(nvmlDeviceGetHandleByPciBusId_v2, const char *id, const void **handle)
{
	unsigned domain, bus, device, function;

	if (!users)
		return UNINITIALIZED;
	if (!id || sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return INVALID_ARGUMENT;
	if (domain || device || function || !bus || bus > (unsigned)devices())
		return NOT_FOUND;
	return to_handle((int)bus - 1, handle);
}

CALL(nvmlDeviceGetHandleByPciBusId, const char *id, const void **handle)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, handle);
}

CALL(nvmlDeviceGetPciInfo_v3, const void *handle, struct pci *pci)
{
	int place, error = check(handle, pci, &place);

	if (!error)
		describe(place, pci);
	return error;
}

CALL(nvmlDeviceGetPciInfo_v2, const void *handle, void *pci)
{
	int place, error = check(handle, pci, &place);
	struct pci all;

	if (error)
		return error;
	describe(place, &all);
	memset(all.id, 0, sizeof all.id);
	memcpy(pci, &all, PCI_V2_BYTES);
	return SUCCESS;
}

CALL(nvmlDeviceGetPciInfo, const void *handle, void *pci)
{
	return nvmlDeviceGetPciInfo_v2(handle, pci);
}

enum { UUID_BYTES = 41 }; /* "GPU-" and 36 characters */

static void uuid_text(int place, char to[UUID_BYTES])
{
	unsigned char b[16];
	int n = snprintf(to, UUID_BYTES, "GPU");

	place_uuid(place, b);
	for (int i = 0; i < 16; i++)
		n += snprintf(to + n, (size_t)(UUID_BYTES - n), "%s%02x",
			i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

CALL(nvmlDeviceGetUUID, const void *handle, char *to, unsigned n)
{
	int place, error = check(handle, to, &place);
	char uuid[UUID_BYTES];

	if (error)
		return error;
	uuid_text(place, uuid);
	return give(uuid, to, n);
}

CALL(nvmlDeviceGetHandleByUUID, const char *uuid, const void **handle)
{
	char own[UUID_BYTES];

	if (!users)
		return UNINITIALIZED;
	if (!uuid || !handle)
		return INVALID_ARGUMENT;
	for (int place = 0; place < devices(); place++) {
		uuid_text(place, own);
		if (!strcmp(uuid, own))
			return to_handle(place, handle);
	}
	return NOT_FOUND;
}

CALL(nvmlDeviceGetName, const void *handle, char *to, unsigned n)
{
	int place, error = check(handle, to, &place);
	char name[64];

	if (error)
		return error;
	device_name(name, sizeof name);
	return give(name, to, n);
}

#define NUMBER(name, type, value) \
	CALL(name, const void *handle, type *number) \
	{ \
		int place, error = check(handle, number, &place); \
		if (!error) \
			*number = (type)(value); \
		return error; \
	}
NUMBER(nvmlDeviceGetIndex, unsigned, place)
NUMBER(nvmlDeviceGetMinorNumber, unsigned, place)
NUMBER(nvmlDeviceGetComputeMode, int, 0) /* default: any number of processes */
enum { PCIE_GENERATION = 5, PCIE_LANES = 16 };
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, PCIE_GENERATION)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, PCIE_GENERATION)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, PCIE_LANES)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, PCIE_LANES)

CALL(nvmlDeviceGetCudaComputeCapability, const void *handle, int *major, int *minor)
{
	int place, error = check(handle, major && minor ? major : NULL, &place);

	if (error)
		return error;
	*major = (int)device_info()->sm / 10;
	*minor = (int)device_info()->sm % 10;
	return SUCCESS;
}

CALL(nvmlDeviceGetMigMode, const void *handle, unsigned *now, unsigned *pending)
{
	int place, error = check(handle, now && pending ? now : NULL, &place);

	if (!error)
		*now = *pending = 0; /* disabled */
	return error;
}

/* ---- NVLink: all links of all devices end at switches, which belong to none ---- */

/* As GPUs of this architecture have them, if there are two devices; workstation GPUs have none. */
static unsigned links(void)
{
	const unsigned sm = device_info()->sm;

	if (devices() < 2)
		return 0;
	return sm == 80 ? 12 : sm >= 90 && sm < 110 ? 18 : 0;
}

static int check_link(const void *handle, unsigned link, const void *out)
{
	int place, error = check(handle, out, &place);

	return error ? error : !links() ? NOT_SUPPORTED : link >= links() ? INVALID_ARGUMENT : SUCCESS;
}

CALL(nvmlDeviceGetNvLinkState, const void *handle, unsigned link, int *active)
{
	int error = check_link(handle, link, active);

	if (!error)
		*active = 1;
	return error;
}

CALL(nvmlDeviceGetNvLinkVersion, const void *handle, unsigned link, unsigned *version)
{
	enum { NVLINK_3 = 5, NVLINK_4 = 6, NVLINK_5 = 7 };
	int error = check_link(handle, link, version);

	if (!error)
		*version = device_info()->sm < 90 ? NVLINK_3 : device_info()->sm < 100 ? NVLINK_4 : NVLINK_5;
	return error;
}

CALL(nvmlDeviceGetNvLinkCapability, const void *handle, unsigned link, int capability,
	unsigned *can)
{
	enum { PEERS, SYSTEM_MEMORY, PEER_ATOMICS, SYSTEM_ATOMICS, SLI, VALID };
	int error = check_link(handle, link, can);

	if (!error)
		*can = capability == PEERS || capability == PEER_ATOMICS || capability == VALID;
	return error;
}

CALL(nvmlDeviceGetNvLinkRemoteDeviceType, const void *handle, unsigned link, int *type)
{
	enum { TO_GPU, TO_IBMNPU, TO_SWITCH };
	int error = check_link(handle, link, type);

	if (!error)
		*type = TO_SWITCH;
	return error;
}

/* As in a virtual machine, from which the switches are not visible. */
CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2, const void *handle, unsigned link, struct pci *pci)
{
	int error = check_link(handle, link, pci);

	if (error)
		return error;
	*pci = (struct pci){ .domain = 0xffffffff, .bus = 0xff, .device = 0xff };
	strcpy(pci->legacy, "FFFF:FF:FF.0");
	strcpy(pci->id, "FFFFFFF:FFFF:FF");
	return SUCCESS;
}

CALL(nvmlDeviceGetNvLinkRemotePciInfo, const void *handle, unsigned link, void *pci)
{
	struct pci all;
	int error = pci ? nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, link, &all) : INVALID_ARGUMENT;

	if (error)
		return error;
	memset(all.id, 0, sizeof all.id);
	memcpy(pci, &all, PCI_V2_BYTES);
	return SUCCESS;
}

struct field {
	unsigned id, link;
	long long stamp, latency;
	int type, error;
	union { unsigned number; unsigned long long wide; } value;
};

/* Each field has an error of its own; those that are not here are not supported. */
CALL(nvmlDeviceGetFieldValues, const void *handle, int n, struct field *f)
{
	enum { LINK_COUNT = 91, LINK_STATE = 165, LINK_VERSION = 166, UNSIGNED_INT = 1 };
	int place, state, error = check(handle, f, &place);

	if (error || n <= 0)
		return error ? error : INVALID_ARGUMENT;
	for (; n--; f++) {
		f->type = UNSIGNED_INT;
		f->value.wide = 0;
		f->error = NOT_SUPPORTED;
		if (f->id == LINK_COUNT) {
			f->error = SUCCESS;
			f->value.number = links();
		} else if (f->id == LINK_STATE) {
			f->error = nvmlDeviceGetNvLinkState(handle, f->link, &state);
			f->value.number = !f->error;
		} else if (f->id == LINK_VERSION) {
			f->error = nvmlDeviceGetNvLinkVersion(handle, f->link, &f->value.number);
		}
	}
	return SUCCESS;
}

/* NVML_P2P_STATUS_OK: each device can access each other one, by NVLink if there is any */
CALL(nvmlDeviceGetP2PStatus, const void *from, const void *to, int capability, int *status)
{
	enum { READ, WRITE, NVLINK, STATUS_OK = 0, STATUS_NOT_SUPPORTED = 5 };
	int place, error = check(from, status, &place);

	error = error ? error : check(to, status, &place);
	if (!error)
		*status = capability == NVLINK && !links() ? STATUS_NOT_SUPPORTED : STATUS_OK;
	return error;
}

struct memory { unsigned long long total, free, used; };
CALL(nvmlDeviceGetMemoryInfo, const void *handle, struct memory *m)
{
	int place, error = check(handle, m, &place);
	size_t total, used;

	if (error)
		return error;
	mem_info_at(place, &used, &total);
	*m = (struct memory){ total, total - used, used };
	return SUCCESS;
}

struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
CALL(nvmlDeviceGetMemoryInfo_v2, const void *handle, struct memory_v2 *m)
{
	struct memory now;
	int error = m ? nvmlDeviceGetMemoryInfo(handle, &now) : INVALID_ARGUMENT;

	if (!error)
		*m = (struct memory_v2){ m->version, now.total, 0, now.free, now.used };
	return error;
}
