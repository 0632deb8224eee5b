/* fatbin: NVIDIA's container of device code, as nvcc embeds it.
 *
 * Finds the images in a container and unpacks their text. Every length is
 * checked against the bytes that are there; PTX and SASS are not interpreted. */
#ifndef CONSAN_FATBIN_H
#define CONSAN_FATBIN_H

#include "libconsan/base/base.h"

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_ELF = 2, FATBIN_OTHER = 0 };
enum fatbin_packing { FATBIN_PLAIN, FATBIN_LZ4, FATBIN_ZSTD };

/* One image. Points into the container. */
struct fatbin_image {
	enum fatbin_kind kind;
	enum fatbin_packing packing;
	unsigned sm;            /* 90 */
	char suffix;            /* 'a', 'f' or 0 */
	const uint8_t *at;
	uint64_t bytes;         /* as stored */
	uint64_t unpacked;      /* as text; equals bytes when plain */
};

/* Do these bytes begin with a container's header? */
bool fatbin_is(const void *bytes, size_t n);
/* Size in bytes of the container at `at`, from its own header; 0: no container. */
uint64_t fatbin_size(const void *header);
/* The next whole container in a file or section, where they lie at multiples of 8: *at, of *size bytes.
 * *cursor is 0 at first. False: there is no other. */
bool fatbin_find(const void *bytes, size_t n, size_t *cursor, size_t *at, size_t *size);

/* Steps through the images: *cursor is 0 at first. False at the end, or with e
 * set if the container is damaged. */
bool fatbin_next(const void *bytes, size_t n, size_t *cursor,
	struct fatbin_image *out, struct consan_err *e);

/* The image's bytes, NUL-terminated, *n without the NUL. free() them. NULL + e
 * if they do not unpack to what the header says. */
char *fatbin_unpack(const struct fatbin_image *image, size_t *n, struct consan_err *e);

/* How well PTX for sm+suffix fits a device: 0 not at all, otherwise higher is better.
 * An 'a' image runs on its own device only, an 'f' one on its family. */
unsigned fatbin_rank(unsigned sm, char suffix, unsigned device_sm, char device_suffix);

/* Is it machine code that the device runs? That of its own generation only. */
bool fatbin_runs(const struct fatbin_image *image, unsigned device_sm, char device_suffix);

/* Finds the PTX that fits the device best. `has` receives the list of images
 * ("sm_90a, compute_90a") for messages. newer: if none fits, the generic PTX of the oldest newer
 * architecture; a GPU refuses that, the executor runs it. False: no image fits or, with e set, the
 * container is damaged. */
bool fatbin_choose(const void *bytes, size_t n, unsigned device_sm, char device_suffix, bool newer,
	struct fatbin_image *best, struct text *has, struct consan_err *e);
/* The newest PTX's sm; 0: there is none. */
unsigned fatbin_newest(const void *bytes, size_t n, char *suffix);
/* The same of PTX text: its ".target"; 0: none. */
unsigned fatbin_ptx_target(const char *text, size_t n, char *suffix);
/* "a", "f" or "" */
const char *fatbin_suffix(char suffix);

#endif
