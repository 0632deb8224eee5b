/* device_copy: copies and fills that kernels issue. They are kernels, as in libcudadevrt. */
#include "device_runtime.h"

#include <stdio.h>
#include <string.h>

/* The threads share the bytes of each row: for %d12 below the depth %d15, for %d8 below the height %d5, for
 * %d9 below the width %d4. %d0: the row that is written, %d1 bytes from the next one; %d13: the first row of
 * its slice, %d14 bytes from that of the next one. */
#define PARAMS_WRITTEN \
	".param .u64 dst, .param .u64 dpitch, .param .u64 dslice,\n" \
	"	.param .u64 width, .param .u64 height, .param .u64 depth"
#define REGS \
	"	.reg .pred %p<3>;\n" \
	"	.reg .b16 %h<1>;\n" \
	"	.reg .b32 %r<3>;\n" \
	"	.reg .b64 %d<20>;\n" \
	"	ld.param.u64 %d13, [dst];\n" \
	"	ld.param.u64 %d1, [dpitch];\n" \
	"	ld.param.u64 %d14, [dslice];\n" \
	"	ld.param.u64 %d4, [width];\n" \
	"	ld.param.u64 %d5, [height];\n" \
	"	ld.param.u64 %d15, [depth];\n" \
	"	mov.u32 %r0, %tid.x;\n" \
	"	mov.u32 %r1, %ntid.x;\n" \
	"	cvt.u64.u32 %d6, %r0;\n" \
	"	cvt.u64.u32 %d7, %r1;\n" \
	"	mov.u64 %d12, 0;\n"
#define EACH_SLICE \
	"slice:\n" \
	"	setp.ge.u64 %p2, %d12, %d15;\n" \
	"	@%p2 bra end;\n" \
	"	mov.u64 %d0, %d13;\n" \
	"	mov.u64 %d8, 0;\n"
#define EACH_BYTE \
	"row:\n" \
	"	setp.ge.u64 %p0, %d8, %d5;\n" \
	"	@%p0 bra next_slice;\n" \
	"	mov.u64 %d9, %d6;\n" \
	"byte:\n" \
	"	setp.ge.u64 %p1, %d9, %d4;\n" \
	"	@%p1 bra next_row;\n"
#define NEXT_ROW \
	"	add.u64 %d9, %d9, %d7;\n" \
	"	bra byte;\n" \
	"next_row:\n" \
	"	add.u64 %d0, %d0, %d1;\n"
#define NEXT_SLICE \
	"	add.u64 %d8, %d8, 1;\n" \
	"	bra row;\n" \
	"next_slice:\n" \
	"	add.u64 %d13, %d13, %d14;\n"
#define END \
	"	add.u64 %d12, %d12, 1;\n" \
	"	bra slice;\n" \
	"end:\n" \
	"	ret;\n" \
	"}\n"
static const char kernels[] =
	".version 7.0\n"
	".target sm_80\n"
	".address_size 64\n"
	/* %d2, %d3: the row that is read; %d16, %d17: its slice */
	".visible .entry cudaMemcpyAsync(" PARAMS_WRITTEN ",\n"
	"	.param .u64 src, .param .u64 spitch, .param .u64 sslice)\n"
	"{\n"
	REGS
	"	ld.param.u64 %d16, [src];\n"
	"	ld.param.u64 %d3, [spitch];\n"
	"	ld.param.u64 %d17, [sslice];\n"
	EACH_SLICE
	"	mov.u64 %d2, %d16;\n"
	EACH_BYTE
	"	add.u64 %d10, %d2, %d9;\n"
	"	ld.u8 %h0, [%d10];\n"
	"	add.u64 %d11, %d0, %d9;\n"
	"	st.u8 [%d11], %h0;\n"
	NEXT_ROW
	"	add.u64 %d2, %d2, %d3;\n"
	NEXT_SLICE
	"	add.u64 %d16, %d16, %d17;\n"
	END
	".visible .entry cudaMemsetAsync(" PARAMS_WRITTEN ",\n"
	"	.param .u64 value)\n"
	"{\n"
	REGS
	"	ld.param.u64 %d2, [value];\n"
	"	cvt.u32.u64 %r2, %d2;\n"
	EACH_SLICE
	EACH_BYTE
	"	add.u64 %d11, %d0, %d9;\n"
	"	st.u8 [%d11], %r2;\n"
	NEXT_ROW
	NEXT_SLICE
	END;

enum { COPY_THREADS = 256 };

static struct image *kernels_image(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct image *image;

	pthread_mutex_lock(&lock);
	if (!image && image_open(kernels, 0, IMAGE_BORROW, &image))
		image = NULL;
	pthread_mutex_unlock(&lock);
	return image;
}

/* Rows and slices that are apart by so many bytes. */
struct box { uint64_t at, pitch, slice; };
struct size { uint64_t width, height, depth; };

static int launch(const char *kernel, const struct box *to, const struct size *s, const uint64_t *more, size_t n,
	int device, struct launch *l)
{
	uint64_t params[9] = { to->at, to->pitch, to->slice, s->width, s->height, s->depth };
	struct image *im = kernels_image();
	int error = im ? image_func_on(im, kernel, device, &l->func) : cudaErrorUnknown;

	if (error)
		return error;
	for (size_t i = 0; i < n; i++)
		params[6 + i] = more[i];
	for (unsigned d = 0; d < 3; d++)
		l->grid[d] = l->block[d] = 1;
	l->block[0] = COPY_THREADS;
	return launch_pack(l, NULL, params, (6 + n) * sizeof *params);
}

static int copy(struct box to, struct box from, struct size s, int device, struct launch *l)
{
	return launch("cudaMemcpyAsync", &to, &s, (uint64_t[]){ from.at, from.pitch, from.slice }, 3, device, l);
}

static int fill(struct box at, uint64_t value, struct size s, int device, struct launch *l)
{
	return launch("cudaMemsetAsync", &at, &s, &value, 1, device, l);
}

static struct box box_at(struct cudaPitchedPtr p, struct cudaPos at)
{
	const uint64_t slice = p.pitch * p.ysize;

	return (struct box){ (uintptr_t)p.ptr + at.z * slice + at.y * p.pitch + at.x, p.pitch, slice };
}

static int copy_boxes(const uint64_t *words, int device, struct launch *l)
{
	struct cudaMemcpy3DParms p;

	_Static_assert(sizeof p == 8 * (RUNTIME_WORDS - 1), "runtime.def has its size");
	memcpy(&p, words, sizeof p);
	if (p.srcArray || p.dstArray) {
		snprintf(l->reason, sizeof l->reason, "kernels cannot copy CUDA arrays");
		return cudaErrorInvalidValue;
	}
	return copy(box_at(p.dstPtr, p.dstPos), box_at(p.srcPtr, p.srcPos),
		(struct size){ p.extent.width, p.extent.height, p.extent.depth }, device, l);
}

static int fill_box(const uint64_t *words, int device, struct launch *l)
{
	struct cudaPitchedPtr p;
	struct cudaExtent e;

	memcpy(&p, words, sizeof p);
	memcpy(&e, words + 5, sizeof e);
	return fill(box_at(p, (struct cudaPos){ 0 }), words[4], (struct size){ e.width, e.height, e.depth },
		device, l);
}

int device_copy(struct exec_call *c, int device, struct launch *l)
{
	const uint64_t *a = c->arg;

	switch (c->function) {
	case RUNTIME_MemcpyAsync:
		c->stream = a[4];
		return copy((struct box){ a[0], 0, 0 }, (struct box){ a[1], 0, 0 }, (struct size){ a[2], 1, 1 },
			device, l);
	case RUNTIME_Memcpy2DAsync:
		c->stream = a[7];
		return copy((struct box){ a[0], a[1], 0 }, (struct box){ a[2], a[3], 0 },
			(struct size){ a[4], a[5], 1 }, device, l);
	case RUNTIME_Memcpy3DAsync:
		c->stream = a[RUNTIME_WORDS - 1];
		return copy_boxes(a, device, l);
	case RUNTIME_MemsetAsync:
		c->stream = a[3];
		return fill((struct box){ a[0], 0, 0 }, a[1], (struct size){ a[2], 1, 1 }, device, l);
	case RUNTIME_Memset2DAsync:
		c->stream = a[5];
		return fill((struct box){ a[0], a[1], 0 }, a[2], (struct size){ a[3], a[4], 1 }, device, l);
	case RUNTIME_Memset3DAsync:
		c->stream = a[8];
		return fill_box(a, device, l);
	default:
		return cudaErrorNotSupported;
	}
}
