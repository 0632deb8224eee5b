/* fatbin: NVIDIA's container of device code, as nvcc embeds it.
 *
 * Finds the images in a container and unpacks their text. Every length is
 * checked against the bytes at hand; it judges neither PTX nor SASS. */
#ifndef CONSAN_CUDA_FATBIN_H
#define CONSAN_CUDA_FATBIN_H

#include "../base.h"

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

/* Whether these bytes start like a container. */
bool fatbin_is(const void *bytes, size_t n);
/* Bytes of the container that starts here, by its own header; 0: none. */
uint64_t fatbin_size(const void *header);

/* Steps through the images: *cursor is 0 at first. False at the end, or with e
 * set if the container is damaged. */
bool fatbin_next(const void *bytes, size_t n, size_t *cursor,
	struct fatbin_image *out, struct err *e);

/* The image's bytes, NUL-terminated, *n without the NUL. free() them. NULL + e
 * if they do not unpack to what the header says. */
char *fatbin_unpack(const struct fatbin_image *image, size_t *n, struct err *e);

/* How well PTX for sm+suffix fits a device: 0 not at all, else more is better.
 * An 'a' image runs on its own device only, an 'f' one on its family. */
unsigned fatbin_rank(unsigned sm, char suffix, unsigned device_sm, char device_suffix);

#endif
