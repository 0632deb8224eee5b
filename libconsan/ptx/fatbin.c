/* fatbin: walks the container and unpacks images. Layout as nvcc 11 to 13
 * writes it; found by comparing containers made with different options. */
#include "fatbin.h"

#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define MAGIC 0xBA55ED50u

/* Container: magic u32, version u16, header bytes u16, bytes that follow u64. */
enum { BOX_HEADER = 6, BOX_BYTES = 8, BOX_MIN = 16 };
/* Image header; its payload follows it directly. */
enum { IMAGE_KIND = 0, IMAGE_HEADER = 4, IMAGE_BYTES = 8, IMAGE_PACKED = 16,
	IMAGE_SM = 28, IMAGE_FLAGS = 40, IMAGE_UNPACKED = 56, IMAGE_MIN = 64 };
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, FLAG_ARCH = 0x100000, FLAG_FAMILY = 0x200000 };

/* Larger than any PTX text; bounds the allocation for a damaged header. */
#define UNPACKED_MAX (UINT64_C(1) << 31)
/* So is what an image of a few bytes unpacks to: text shrinks to a tenth or a hundredth. */
#define FACTOR_MAX 1024

static uint16_t u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static uint32_t u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

bool fatbin_is(const void *bytes, size_t n)
{
	return n >= 4 && u32(bytes) == MAGIC;
}

uint64_t fatbin_size(const void *header)
{
	const uint8_t *p = header;

	if (u32(p) != MAGIC || u64(p + BOX_BYTES) > UNPACKED_MAX)
		return 0;
	return u16(p + BOX_HEADER) + u64(p + BOX_BYTES);
}

bool fatbin_find(const void *bytes, size_t n, size_t *cursor, size_t *at, size_t *size)
{
	const uint8_t *p = bytes;

	for (size_t k = *cursor; k < n && n - k >= BOX_MIN; k += 8) {
		const uint64_t all = fatbin_is(p + k, n - k) ? fatbin_size(p + k) : 0;

		if (!all || all > n - k)
			continue;
		*at = k;
		*size = all;
		*cursor = k + ((all + 7) & ~UINT64_C(7));
		return true;
	}
	return false;
}

bool fatbin_next(const void *bytes, size_t n, size_t *cursor,
	struct fatbin_image *out, struct consan_err *e)
{
	const uint8_t *p = bytes;
	uint64_t header, stored, packed, flags;
	size_t at = *cursor, end;

	if (n < BOX_MIN || u32(p) != MAGIC)
		return err_set(e, CONSAN_ERR_FATBIN, 0, 0, "not a fatbin: wrong magic number");
	header = u16(p + BOX_HEADER);
	if (header < BOX_MIN || header > n || u64(p + BOX_BYTES) > n - header)
		return err_set(e, CONSAN_ERR_FATBIN, 0, 0, "the fatbin is cut: %zu bytes are too few", n);
	end = header + u64(p + BOX_BYTES);
	if (!at)
		at = header;
	if (at == end)
		return false;
	if (end - at < IMAGE_MIN)
		return err_set(e, CONSAN_ERR_FATBIN, 0, 0,
			"the fatbin ends inside an image header at byte %zu", at);

	p += at;
	header = u32(p + IMAGE_HEADER);
	stored = u64(p + IMAGE_BYTES);
	if (header < IMAGE_MIN || header > end - at || stored > end - at - header)
		return err_set(e, CONSAN_ERR_FATBIN, 0, 0,
			"the image at byte %zu reaches beyond the fatbin", at);
	flags = u64(p + IMAGE_FLAGS);
	packed = u32(p + IMAGE_PACKED);
	*out = (struct fatbin_image){
		.kind = u16(p) == 1 ? FATBIN_PTX : u16(p) == 2 ? FATBIN_ELF : FATBIN_OTHER,
		.packing = flags & FLAG_ZSTD ? FATBIN_ZSTD : flags & FLAG_LZ4 ? FATBIN_LZ4 : FATBIN_PLAIN,
		.sm = u32(p + IMAGE_SM),
		.suffix = flags & FLAG_ARCH ? 'a' : flags & FLAG_FAMILY ? 'f' : 0,
		.at = p + header, .bytes = stored, .unpacked = stored,
	};
	if (out->packing != FATBIN_PLAIN) {
		if (packed > stored)
			return err_set(e, CONSAN_ERR_FATBIN, 0, 0,
				"the image at byte %zu is larger packed than stored", at);
		out->bytes = packed;
		out->unpacked = u64(p + IMAGE_UNPACKED);
	}
	*cursor = at + header + stored;
	return true;
}

static bool unpack(const struct fatbin_image *image, char *to)
{
	size_t got;

	switch (image->packing) {
	case FATBIN_PLAIN:
		memcpy(to, image->at, image->bytes);
		return true;
	case FATBIN_LZ4:
		return LZ4_decompress_safe((const char *)image->at, to, (int)image->bytes,
			(int)image->unpacked) == (int)image->unpacked;
	case FATBIN_ZSTD:
		got = ZSTD_decompress(to, image->unpacked, image->at, image->bytes);
		return !ZSTD_isError(got) && got == image->unpacked;
	}
	return false;
}

char *fatbin_unpack(const struct fatbin_image *image, size_t *n, struct consan_err *e)
{
	char *to;

	if (image->unpacked >= UNPACKED_MAX || image->bytes >= UNPACKED_MAX
			|| image->unpacked / FACTOR_MAX > image->bytes) {
		err_set(e, CONSAN_ERR_FATBIN, 0, 0, "an image of %llu bytes claims to unpack to %llu, which is more than "
			"2 GiB or %u times as much", (unsigned long long)image->bytes,
			(unsigned long long)image->unpacked, FACTOR_MAX);
		return NULL;
	}
	/* not base_alloc: the size comes from the file */
	to = malloc(image->unpacked + 1);
	if (!to) {
		err_set(e, CONSAN_ERR_MEMORY, 0, 0, "no memory for an image of %llu bytes",
			(unsigned long long)image->unpacked);
		return NULL;
	}
	if (!unpack(image, to)) {
		free(to);
		err_set(e, CONSAN_ERR_FATBIN, 0, 0, "the %s data of the image for sm_%u are damaged",
			image->packing == FATBIN_ZSTD ? "zstd" : "lz4", image->sm);
		return NULL;
	}
	to[image->unpacked] = 0;
	*n = strnlen(to, image->unpacked); /* plain images are padded with NULs */
	return to;
}

unsigned fatbin_rank(unsigned sm, char suffix, unsigned device_sm, char device_suffix)
{
	if (suffix == 'a')
		return sm == device_sm && device_suffix == 'a' ? 4 * sm + 3 : 0;
	if (suffix == 'f')
		return sm / 10 == device_sm / 10 && sm <= device_sm ? 4 * sm + 2 : 0;
	return sm <= device_sm ? 4 * sm + 1 : 0;
}

bool fatbin_runs(const struct fatbin_image *image, unsigned device_sm, char device_suffix)
{
	return image->kind == FATBIN_ELF && image->sm / 10 == device_sm / 10
		&& fatbin_rank(image->sm, image->suffix, device_sm, device_suffix);
}

const char *fatbin_suffix(char suffix)
{
	return suffix == 'a' ? "a" : suffix == 'f' ? "f" : "";
}

bool fatbin_choose(const void *bytes, size_t n, unsigned device_sm, char device_suffix, bool newer,
	struct fatbin_image *best, struct text *has, struct consan_err *e)
{
	struct fatbin_image at, next = { 0 };
	unsigned rank = 0, r;
	size_t cursor = 0;

	while (fatbin_next(bytes, n, &cursor, &at, e)) {
		if (at.kind == FATBIN_OTHER)
			continue;
		text_printf(has, "%s%s_%u%s", has->n ? ", " : "",
			at.kind == FATBIN_PTX ? "compute" : "sm", at.sm, fatbin_suffix(at.suffix));
		if (at.kind != FATBIN_PTX)
			continue;
		r = fatbin_rank(at.sm, at.suffix, device_sm, device_suffix);
		if (r > rank) {
			rank = r;
			*best = at;
		}
		if (!r && !at.suffix && (!next.sm || at.sm < next.sm))
			next = at;
	}
	if (newer && !rank && next.sm) {
		rank = 1;
		*best = next;
	}
	return rank && !e->code;
}

unsigned fatbin_newest(const void *bytes, size_t n, char *suffix)
{
	struct fatbin_image at;
	struct consan_err e = { 0 };
	size_t cursor = 0;
	unsigned sm = 0;

	while (fatbin_next(bytes, n, &cursor, &at, &e))
		if (at.kind == FATBIN_PTX && (at.sm > sm || (at.sm == sm && at.suffix))) {
			sm = at.sm;
			*suffix = at.suffix;
		}
	return sm;
}

unsigned fatbin_ptx_target(const char *text, size_t n, char *suffix)
{
	const char *at = memmem(text, n < 4096 ? n : 4096, ".target", 7);
	char word[64] = "", c = 0; /* sscanf() reads up to a NUL */
	unsigned sm = 0;
	size_t left;

	if (!at)
		return 0;
	left = n - (size_t)(at - text);
	memcpy(word, at, left < sizeof word ? left : sizeof word - 1);
	if (sscanf(word, ".target sm_%u%c", &sm, &c) < 1)
		return 0;
	*suffix = c == 'a' || c == 'f' ? c : 0;
	return sm;
}
