/* Textures and surfaces: what they return is compared with the formulas of "Texture Fetching" in the
 * CUDA C++ Programming Guide. `print` prints what is returned, to be compared with a GPU. One program, so
 * that all of it is compiled once, hence its length. */
#include <cuda.h>
#include <cuda_runtime.h>

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) do { \
	cudaError_t e_ = (call); \
	if (e_) { \
		printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(e_)); \
		exit(1); \
	} \
} while (0)
static bool printing;
#define CHECK(x) do { \
	if (!(x)) { \
		printf("%s:%d: %s\n", __FILE__, __LINE__, #x); \
		if (!printing) \
			exit(1); \
	} \
} while (0)

enum { W = 5, H = 4, D = 3, N = 64 };

/* ---- the guide's formulas ---- */

/* The index of a texel in one dimension; -1: the border. */
static int texel(int i, int n, int mode, bool normalized)
{
	if (mode == cudaAddressModeBorder)
		return i < 0 || i >= n ? -1 : i;
	if (mode == cudaAddressModeWrap && normalized) {
		while (i < 0)
			i += n;
		return i % n;
	}
	if (mode == cudaAddressModeMirror && normalized) {
		while (i < 0)
			i += 2 * n;
		i %= 2 * n;
		return i < n ? i : 2 * n - 1 - i;
	}
	return i < 0 ? 0 : i >= n ? n - 1 : i;
}

struct view { int dims, size[3], mode; bool normalized, linear; };

static float at(const struct view *v, const float *t, const int *i)
{
	int k[3] = { 0, 0, 0 };

	for (int d = 0; d < v->dims; d++) {
		k[d] = texel(i[d], v->size[d], v->mode, v->normalized);
		if (k[d] < 0)
			return 0;
	}
	return t[(k[2] * (v->dims > 1 ? v->size[1] : 1) + k[1]) * v->size[0] + k[0]];
}

static int split(int weight, int by)
{
	return (weight * by + 128) / 256;
}

/* What GPUs round: they split by z, then by y. */
static void weigh(const int w[3], int to[8])
{
	const int after = split(w[0], w[2]), before = split(w[0], 256 - w[2]), left = w[2] - after;
	const int first = 256 - w[2] - before;

	to[7] = split(after, w[1]), to[5] = after - to[7];
	to[3] = split(before, w[1]), to[1] = before - to[3];
	to[4] = split(left, 256 - w[1]), to[6] = left - to[4];
	to[0] = split(first, 256 - w[1]), to[2] = first - to[0];
}

static float fetched(const struct view *v, const float *t, const float *x)
{
	int low[3] = { 0, 0, 0 }, part[3] = { 0, 0, 0 }, weight[8];
	float sum = 0;

	for (int d = 0; d < v->dims; d++) {
		float u = v->normalized ? x[d] * v->size[d] : x[d];

		if (!v->linear) {
			low[d] = (int)floorf(u);
			continue;
		}
		u = roundf((u - 0.5f) * 256) / 256; /* 8 bits of fraction */
		low[d] = (int)floorf(u);
		part[d] = (int)((u - low[d]) * 256);
	}
	if (!v->linear)
		return at(v, t, low);
	if (v->dims == 1 && v->mode == cudaAddressModeBorder)
		part[1] = 128; /* one row, with the border before it */
	weigh(part, weight);
	for (int c = 0; c < 8; c++) {
		const int i[3] = { low[0] + (c & 1), low[1] + (c >> 1 & 1), low[2] + (c >> 2) };
		const bool before = v->dims == 1 && v->mode == cudaAddressModeBorder && !(c & 2);

		if (weight[c] && !before)
			sum += weight[c] / 256.0f * at(v, t, i);
	}
	return sum;
}

/* ---- objects ---- */

static cudaTextureObject_t texture_of(const cudaResourceDesc &r, cudaTextureAddressMode mode,
	bool linear, bool normalized, cudaTextureReadMode read = cudaReadModeElementType)
{
	cudaTextureDesc d = {};
	cudaTextureObject_t t;

	for (int k = 0; k < 3; k++)
		d.addressMode[k] = mode;
	d.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
	d.normalizedCoords = normalized;
	d.readMode = read;
	OK(cudaCreateTextureObject(&t, &r, &d, NULL));
	return t;
}

static cudaResourceDesc resource_of(cudaArray_t a)
{
	cudaResourceDesc r = {};

	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	return r;
}

template <typename T> static cudaArray_t array_of(const T *from, int w, int h, int d, unsigned flags = 0)
{
	cudaChannelFormatDesc c = cudaCreateChannelDesc<T>();
	cudaMemcpy3DParms p = {};
	cudaArray_t a;

	OK(cudaMalloc3DArray(&a, &c, make_cudaExtent(w, h, d), flags));
	p.srcPtr = make_cudaPitchedPtr((void *)from, w * sizeof(T), w, h ? h : 1);
	p.dstArray = a;
	p.extent = make_cudaExtent(w, h ? h : 1, d ? d : 1);
	p.kind = cudaMemcpyHostToDevice;
	OK(cudaMemcpy3D(&p));
	return a;
}

/* ---- fetches ---- */

__global__ void fetch(cudaTextureObject_t t, int dims, const float *x, float *out)
{
	const int i = threadIdx.x;

	out[i] = dims == 1 ? tex1D<float>(t, x[3 * i]) : dims == 2 ? tex2D<float>(t, x[3 * i], x[3 * i + 1])
		: tex3D<float>(t, x[3 * i], x[3 * i + 1], x[3 * i + 2]);
}

static void compare(const struct view *v, cudaTextureObject_t t, const float *texels)
{
	static float *x, *out;

	if (!x) {
		OK(cudaMallocManaged(&x, 3 * N * sizeof *x));
		OK(cudaMallocManaged(&out, N * sizeof *out));
	}
	srand(7);
	for (int i = 0; i < 3 * N; i++) { /* halves, eighths, and anything, from -size to 2 * size */
		const float n = v->normalized ? 1 : i % 3 < v->dims ? v->size[i % 3] : 1;
		const float u = (rand() % 3000 - 1000) / 1000.0f * n;

		x[i] = i % 2 ? u : roundf(u * 8) / 8;
	}
	fetch<<<1, N>>>(t, v->dims, x, out);
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++) {
		const float want = fetched(v, texels, &x[3 * i]);

		if (printing)
			printf("%d %d %d %d: %g,%g,%g: %.9g\n", v->dims, v->mode, v->normalized, v->linear,
				x[3 * i], x[3 * i + 1], x[3 * i + 2], out[i]);
		if (fabsf(out[i] - want) > 1e-5f * fabsf(want)) {
			printf("dims %d mode %d normalized %d linear %d at %.9g,%.9g,%.9g: %.9g, not %.9g\n", v->dims,
				v->mode, v->normalized, v->linear, x[3 * i], x[3 * i + 1], x[3 * i + 2], out[i], want);
			if (!printing)
				exit(1);
		}
	}
	OK(cudaDestroyTextureObject(t));
}

static int fetches(void)
{
	static const cudaTextureAddressMode modes[] = { cudaAddressModeWrap, cudaAddressModeClamp,
		cudaAddressModeMirror, cudaAddressModeBorder };
	float texels[W * H * D];
	cudaArray_t array[4] = {};

	for (int i = 0; i < W * H * D; i++)
		texels[i] = (float)(rand() % 4096) - 1000;
	array[1] = array_of(texels, W, 0, 0);
	array[2] = array_of(texels, W, H, 0);
	array[3] = array_of(texels, W, H, D);
	for (int dims = 1; dims <= 3; dims++)
		for (int k = 0; k < 16; k++) {
			const struct view v = { dims, { W, H, D }, modes[k % 4], (k & 4) != 0, (k & 8) != 0 };

			compare(&v, texture_of(resource_of(array[dims]), modes[k % 4], v.linear, v.normalized), texels);
		}
	for (int dims = 1; dims <= 3; dims++)
		OK(cudaFreeArray(array[dims]));
	return 0;
}

/* ---- formats and read modes ---- */

template <typename T, typename R> __global__ void formats(cudaTextureObject_t t, R *out)
{
	out[threadIdx.x] = tex2D<R>(t, threadIdx.x % W + 0.5f, threadIdx.x / W + 0.5f);
}

static float *value_at(void *out, int i)
{
	return (float *)out + i;
}

/* most: 0: values as they are; else the integer that is read as 1 */
template <typename T, typename C, typename R> static void format(int channels, float most)
{
	C texels[W * H * 4];
	cudaArray_t a;
	R *out;

	for (int i = 0; i < W * H * channels; i++)
		texels[i] = (C)(i * 7919 + 12345 * i * i - 40);
	a = array_of((const T *)texels, W, H, 0);
	OK(cudaMallocManaged(&out, W * H * sizeof *out));
	formats<T, R><<<1, W * H>>>(texture_of(resource_of(a), cudaAddressModeClamp, false, false,
		most ? cudaReadModeNormalizedFloat : cudaReadModeElementType), out);
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < W * H * channels; i++) {
		const int lanes = (int)(sizeof(R) / (most ? 4 : sizeof(C)));
		float want = most ? (float)texels[i] / most : 0;

		CHECK(lanes == channels);
		if (want < -1)
			want = -1;
		if (printing && most)
			printf("%d/%g: %.9g\n", (int)texels[i], most, *value_at(out, i));
		CHECK(most ? fabsf(*value_at(out, i) - want) <= 1e-6f : ((C *)out)[i] == texels[i]);
	}
	OK(cudaFree(out));
	OK(cudaFreeArray(a));
}

static int all_formats(void)
{
	format<uchar1, unsigned char, uchar1>(1, 0);
	format<uchar4, unsigned char, uchar4>(4, 0);
	format<char2, signed char, char2>(2, 0);
	format<short2, short, short2>(2, 0);
	format<ushort4, unsigned short, ushort4>(4, 0);
	format<int, int, int>(1, 0);
	format<uint4, unsigned, uint4>(4, 0);
	format<float2, float, float2>(2, 0);
	format<uchar4, unsigned char, float4>(4, 255);
	format<char2, signed char, float2>(2, 127);
	format<unsigned short, unsigned short, float>(1, 65535);
	format<short4, short, float4>(4, 32767);
	return 0;
}

/* ---- layers, cubemaps, linear and pitched memory, gathering ---- */

__global__ void others(cudaTextureObject_t layered, cudaTextureObject_t cube, cudaTextureObject_t linear,
	cudaTextureObject_t pitched, cudaTextureObject_t plane, cudaTextureObject_t cubes, float4 *out)
{
	const float s[6] = { 0.9f, -0.5f, 0.1f, 0.2f, -0.8f, 0.3f };
	const int i = threadIdx.x;
	float4 all;

	if (i < 6) {
		out[i].x = tex2DLayered<float>(layered, 1.5f, 2.5f, i - 1);
		out[i].y = texCubemap<float>(cube, s[i], s[(i + 1) % 6], s[(i + 2) % 6]);
		out[i].z = tex1Dfetch<float>(linear, i * 4 - 4);
		out[i].w = tex2D<float>(pitched, i + 0.5f, 1.5f);
		out[6 + i] = tex2Dgather<float4>(plane, 1.3f + i * 0.25f, 2.1f, 0);
		out[12 + i].x = tex2DLod<float>(plane, 1.5f, 1.5f, (float)i);
		out[12 + i].y = tex2DGrad<float>(plane, 1.5f, 1.5f, make_float2(4, 4), make_float2(4, 4));
		all = tex2D<float4>(plane, 1.5f, 1.5f); /* of one channel */
		out[6 + i].y += 1000 * (texCubemapLayered<float>(cubes, s[i], s[(i + 1) % 6], s[(i + 2) % 6], 0)
			- out[i].y);
		out[12 + i].z = all.y + 10 * all.z;
		out[12 + i].w = all.w;
	}
}

static int more(void)
{
	float texels[W * H * 6], *memory, *pitched;
	cudaResourceDesc r = {};
	cudaTextureObject_t t[6];
	cudaArray_t a, cube, plane;
	float4 *out;
	size_t pitch;

	for (int i = 0; i < W * H * 6; i++)
		texels[i] = i;
	a = array_of(texels, W, H, D, cudaArrayLayered);
	cube = array_of(texels, H, H, 6, cudaArrayCubemap);
	plane = array_of(texels, W, H, 0, cudaArrayTextureGather);
	t[0] = texture_of(resource_of(a), cudaAddressModeClamp, false, false);
	t[1] = texture_of(resource_of(cube), cudaAddressModeClamp, false, true);
	OK(cudaMalloc(&memory, 16 * 4));
	OK(cudaMemcpy(memory, texels, 16 * 4, cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypeLinear;
	r.res.linear.devPtr = memory;
	r.res.linear.desc = cudaCreateChannelDesc<float>();
	r.res.linear.sizeInBytes = 16 * 4;
	t[2] = texture_of(r, cudaAddressModeClamp, false, false);
	OK(cudaMallocPitch(&pitched, &pitch, W * 4, H));
	OK(cudaMemcpy2D(pitched, pitch, texels, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypePitch2D;
	r.res.pitch2D.devPtr = pitched;
	r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
	r.res.pitch2D.width = W;
	r.res.pitch2D.height = H;
	r.res.pitch2D.pitchInBytes = pitch;
	t[3] = texture_of(r, cudaAddressModeClamp, false, false);
	t[4] = texture_of(resource_of(plane), cudaAddressModeClamp, false, false);
	OK(cudaMallocManaged(&out, 18 * sizeof *out));
	t[5] = texture_of(resource_of(array_of(texels, H, H, 6, cudaArrayCubemap | cudaArrayLayered)),
		cudaAddressModeClamp, false, true);
	others<<<1, 32>>>(t[0], t[1], t[2], t[3], t[4], t[5], out);
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < 18; i++)
		if (printing)
			printf("%d: %g %g %g %g\n", i, out[i].x, out[i].y, out[i].z, out[i].w);
	for (int i = 0; i < 6; i++) {
		const int layer = i < 1 ? 0 : i - 1 > D - 1 ? D - 1 : i - 1, x = i * 4 - 4;

		CHECK(i == 0 || out[i].x == (layer * H + 2) * W + 1);
		CHECK(out[i].z == (x >= 0 && x < 16 ? x : 0));
		CHECK(out[i].w == W + (i < W ? i : W - 1));
		CHECK(out[12 + i].x == W + 1 && out[12 + i].y == W + 1);
	}
	CHECK(out[0].y == 0 * 16 + 3 * 4 + 1); /* face 0: -z / x = -0.11, -y / x = 0.56 */
	CHECK(out[2].y == 5 * 16 + 1 * 4 + 1); /* face 5: -x / 0.8, -y / 0.8 */
	CHECK(out[6].w == W + 0 && out[6].x == 2 * W + 0 && out[6].y == 2 * W + 1 && out[6].z == W + 1);
	return 0;
}

/* ---- surfaces ---- */

__global__ void surfaces(cudaSurfaceObject_t s, cudaSurfaceObject_t to, int w, int h)
{
	const int x = threadIdx.x, y = blockIdx.x;
	float v = surf2Dread<float>(s, (w - 1 - x) * 4, y);

	surf2Dwrite(v + 1, to, x * 4, y);
	if (!x)
		surf2Dwrite(-1.0f, to, -4, y, cudaBoundaryModeZero);
}

static int surface(void)
{
	float texels[W * H], back[W * H];
	cudaArray_t a, b;
	cudaSurfaceObject_t s[2];
	cudaResourceDesc r;

	for (int i = 0; i < W * H; i++)
		texels[i] = i;
	a = array_of(texels, W, H, 0, cudaArraySurfaceLoadStore);
	b = array_of(texels, W, H, 0, cudaArraySurfaceLoadStore);
	r = resource_of(a);
	OK(cudaCreateSurfaceObject(&s[0], &r));
	r = resource_of(b);
	OK(cudaCreateSurfaceObject(&s[1], &r));
	surfaces<<<H, W>>>(s[0], s[1], W, H);
	OK(cudaMemcpy2DFromArray(back, W * 4, b, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
	for (int i = 0; i < W * H; i++)
		CHECK(back[i] == i / W * W + (W - 1 - i % W) + 1);
	return 0;
}

/* ---- arrays ---- */

static int arrays(void)
{
	unsigned short texels[W * H * D], back[W * H * D] = {};
	cudaChannelFormatDesc c = cudaCreateChannelDesc<ushort2>(), d;
	cudaExtent e;
	cudaArray_t a, b;
	cudaStream_t s;
	unsigned flags;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	cudaMemcpy3DParms p = {};
	cudaMemcpy3DBatchOp batch = {};
	unsigned char *memory;

	cudaDeviceProp limits;

	OK(cudaGetDeviceProperties(&limits, 0));
	CHECK(limits.maxTexture2D[0] >= 65536 && limits.maxSurface3D[2] >= 2048
		&& limits.maxTexture1D >= 65536);
	CHECK(cudaMallocArray(&b, &c, (size_t)limits.maxTexture2D[0] + 1, 1, 0) == cudaErrorInvalidValue);
	for (int i = 0; i < W * H * D; i++)
		texels[i] = (unsigned short)i;
	OK(cudaMallocArray(&a, &c, W, H, cudaArraySurfaceLoadStore));
	OK(cudaArrayGetInfo(&d, &e, &flags, a));
	CHECK(d.x == 16 && d.y == 16 && !d.z && d.f == cudaChannelFormatKindUnsigned);
	CHECK(e.width == W && e.height == H && e.depth == 0 && flags == cudaArraySurfaceLoadStore);
	CHECK(!cuArray3DGetDescriptor(&desc, (CUarray)a) && desc.NumChannels == 2 && desc.Width == W
		&& desc.Format == CU_AD_FORMAT_UNSIGNED_INT16);
	CHECK(cudaMallocArray(&b, &c, 0, H, 0) == cudaErrorInvalidValue);
	c.z = 16;
	CHECK(cudaMallocArray(&b, &c, W, H, 0) == cudaErrorInvalidChannelDescriptor);
	OK(cudaFreeArray(a));
	c = cudaCreateChannelDesc<unsigned short>();
	OK(cudaMalloc3DArray(&a, &c, make_cudaExtent(W, H, D), 0));
	p.srcPtr = make_cudaPitchedPtr(texels, W * 2, W, H);
	p.dstArray = a;
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyHostToDevice;
	OK(cudaMemcpy3D(&p));
	p = {};
	p.srcArray = a;
	p.srcPos = make_cudaPos(1, 1, 1);
	p.dstPtr = make_cudaPitchedPtr(back, 4 * 2, 4, 3);
	p.extent = make_cudaExtent(4, 3, 2);
	p.kind = cudaMemcpyDeviceToHost;
	OK(cudaMemcpy3D(&p));
	for (int i = 0; i < 24; i++)
		CHECK(back[i] == texels[((i / 12 + 1) * H + i / 4 % 3 + 1) * W + i % 4 + 1]);
	OK(cudaMallocArray(&b, &c, W, H, 0));
	OK(cudaStreamCreate(&s));
	memset(back, 0, sizeof back);
	batch.src.type = cudaMemcpyOperandTypeArray;
	batch.src.op.array.array = a;
	batch.src.op.array.offset = { 1, 1, 1 };
	batch.dst.type = cudaMemcpyOperandTypePointer;
	batch.dst.op.ptr.ptr = back;
	batch.dst.op.ptr.rowLength = 6;
	batch.extent = make_cudaExtent(4, 3, 2);
	batch.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	OK(cudaMemcpy3DBatchAsync(1, &batch, 0, s));
	OK(cudaStreamSynchronize(s));
	for (int i = 0; i < 24; i++)
		CHECK(back[i / 4 * 6 + i % 4] == texels[((i / 12 + 1) * H + i / 4 % 3 + 1) * W + i % 4 + 1]);
	CHECK(back[4] == 0);
	batch.dst.op.ptr.rowLength = 3;
	CHECK(cudaMemcpy3DBatchAsync(1, &batch, 0, s) == cudaErrorInvalidValue);
	OK(cudaMalloc(&memory, W * H * 2));
	OK(cudaMemcpyAsync(memory, texels, W * H * 2, cudaMemcpyHostToDevice, s));
	OK(cudaMemcpy2DToArrayAsync(b, 0, 0, memory, W * 2, W * 2, H, cudaMemcpyDeviceToDevice, s));
	OK(cudaMemcpy2DFromArrayAsync(back, W * 2, b, 0, 0, W * 2, H, cudaMemcpyDeviceToHost, s));
	OK(cudaStreamSynchronize(s));
	CHECK(!memcmp(back, texels, W * H * 2));
	CHECK(cudaMemcpy2DToArray(b, 0, 1, texels, W * 2, W * 2, H, cudaMemcpyHostToDevice)
		== cudaErrorInvalidValue);
	OK(cudaMemcpy2DArrayToArray(b, 0, 0, b, 4, 1, 6, 2, cudaMemcpyDeviceToDevice));
	OK(cudaMemcpy2DFromArray(back, W * 2, b, 0, 0, W * 2, 1, cudaMemcpyDeviceToHost));
	CHECK(back[0] == W + 2 && back[2] == W + 4 && back[3] == 3);
	CHECK(!cuMemcpyHtoA((CUarray)b, 4, texels, 6));
	CHECK(!cuMemcpyAtoH(back, (CUarray)b, 2, 8));
	CHECK(back[1] == 0 && back[3] == 2);
	return 0;
}

/* ---- mipmapped arrays ---- */

enum { LEVELS = 5 };             /* of 16 by 8 texels; each texel of level l is 100 * l */

static cudaMipmappedArray_t mipmapped(unsigned flags = 0)
{
	cudaChannelFormatDesc c = cudaCreateChannelDesc<float>();
	cudaMipmappedArray_t m;
	float texels[16 * 8];

	OK(cudaMallocMipmappedArray(&m, &c, make_cudaExtent(16, 8, 0), 9, flags));
	for (int l = 0; l < LEVELS; l++) {
		cudaArray_t a;
		cudaExtent e;

		OK(cudaGetMipmappedArrayLevel(&a, m, l));
		OK(cudaArrayGetInfo(&c, &e, NULL, a));
		CHECK((int)e.width == (16 >> l) && e.height == (l < 3 ? 8u >> l : 1u) && !e.depth);
		for (size_t i = 0; i < e.width * e.height; i++)
			texels[i] = 100 * l;
		OK(cudaMemcpy2DToArray(a, 0, 0, texels, e.width * 4, e.width * 4, e.height, cudaMemcpyHostToDevice));
	}
	return m;
}

static cudaTextureObject_t mip_texture(cudaMipmappedArray_t m, bool linear, float bias = 0, float least = 0,
	float most = 99, const cudaResourceViewDesc *view = NULL)
{
	cudaResourceDesc r = {};
	cudaTextureDesc d = {};
	cudaTextureObject_t t;

	r.resType = cudaResourceTypeMipmappedArray;
	r.res.mipmap.mipmap = m;
	d.normalizedCoords = 1;
	d.mipmapFilterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
	d.mipmapLevelBias = bias;
	d.minMipmapLevelClamp = least;
	d.maxMipmapLevelClamp = most;
	OK(cudaCreateTextureObject(&t, &r, &d, view));
	return t;
}

__global__ void details(cudaTextureObject_t t, const float *lod, float *out)
{
	out[threadIdx.x] = threadIdx.x ? tex2DLod<float>(t, 0.5f, 0.5f, lod[threadIdx.x])
		: tex2D<float>(t, 0.5f, 0.5f);
}

/* x[0] and x[1] are texels of level 0. */
__global__ void gradients(cudaTextureObject_t t, const float *x, float *out)
{
	const float *g = x + 4 * threadIdx.x;

	out[threadIdx.x] = tex2DGrad<float>(t, 0.5f, 0.5f, make_float2(g[0] / 16, g[1] / 8),
		make_float2(g[2] / 16, g[3] / 8));
}

__global__ void bits(cudaTextureObject_t one, cudaTextureObject_t two, unsigned *out)
{
	const ushort2 v = tex2D<ushort2>(two, 0.5f, 0.5f);

	out[0] = tex2D<unsigned>(one, 0.5f, 0.5f);
	out[1] = v.x | (unsigned)v.y << 16;
}

/* A view may give texels another format of the same size. */
static int view_formats(void)
{
	cudaMipmappedArray_t m = mipmapped();
	cudaResourceViewDesc one = {}, two;
	unsigned *out;

	OK(cudaMallocManaged(&out, 8));
	one.format = cudaResViewFormatUnsignedInt1;
	one.width = 16;
	one.height = 8;
	one.firstMipmapLevel = one.lastMipmapLevel = 1;
	two = one;
	two.format = cudaResViewFormatUnsignedShort2;
	bits<<<1, 1>>>(mip_texture(m, false, 0, 0, 99, &one), mip_texture(m, false, 0, 0, 99, &two), out);
	OK(cudaDeviceSynchronize());
	CHECK(out[0] == 0x42c80000 && out[1] == out[0]); /* 100.0f */
	return 0;
}

/* The values are those of an H100. */
static int mips(void)
{
	/* [0] is a fetch without a level */
	static const struct { bool linear; float bias, least, most, lod[8], want[8]; } all[] = {
		{ false, 0, 0, 99, { 0, -1, 0, .49f, .5f, 1.5f, 2.3f, 9 }, { 0, 0, 0, 0, 100, 200, 200, 400 } },
		{ true, 0, 0, 99, { 0, -1, .25f, .49f, .499f, 1.006f, 1.998f, 9 },
			{ 0, 0, 25, 48.828125f, 49.609375f, 100.390625f, 199.609375f, 400 } },
		{ true, .75f, 0, 99, { 0, -.5f, 0, .49f, 1.001f, 1.998f, 2.3f, 9 },
			{ 0, 25, 75, 123.828125f, 175, 274.609375f, 304.6875f, 400 } },
		{ true, 0, 1.25f, 2.25f, { 0, -1, 0, 1, 1.5f, 2.3f, 3, 9 }, { 125, 125, 125, 125, 150, 225, 225, 225 } },
		{ false, 0, 3, 1, { 0, -1, 0, 1, 2, 3, 4, 5 }, { 300, 300, 300, 300, 300, 300, 300, 300 } },
	};
	static const float by[6][4] = { { 1 }, { 2 }, { 3 }, { 0, 3 }, { 6 }, { .5f } };
	static const float levels[6] = { 0, 100, 158.59375f, 158.59375f, 258.59375f, 0 };
	cudaMipmappedArray_t m = mipmapped(), level;
	cudaResourceViewDesc view = {};
	cudaArray_t a;
	float *x, *out;

	OK(cudaMallocManaged(&x, 256));
	OK(cudaMallocManaged(&out, 256));
	for (const auto &c : all) {
		memcpy(x, c.lod, sizeof c.lod);
		details<<<1, 8>>>(mip_texture(m, c.linear, c.bias, c.least, c.most), x, out);
		OK(cudaDeviceSynchronize());
		for (int i = 0; i < 8; i++)
			CHECK(out[i] == c.want[i]);
	}
	memcpy(x, by, sizeof by);
	gradients<<<1, 6>>>(mip_texture(m, true), x, out);
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < 6; i++)
		CHECK(out[i] == levels[i]);
	view.format = cudaResViewFormatFloat1;
	view.width = 16;
	view.height = 8;
	view.firstMipmapLevel = 1;
	view.lastMipmapLevel = 2;
	memcpy(x, all[0].lod, sizeof all[0].lod);
	details<<<1, 8>>>(mip_texture(m, false, 0, 0, 99, &view), x, out);
	OK(cudaDeviceSynchronize());
	CHECK(out[0] == 100 && out[1] == 100 && out[4] == 200 && out[7] == 200);
	CHECK(cudaGetMipmappedArrayLevel(&a, m, LEVELS) == cudaErrorInvalidValue);
	OK(cudaGetMipmappedArrayLevel(&a, m, 2));
	level = m;
	OK(cudaFreeMipmappedArray(level));
	OK(cudaDeviceSynchronize());
	return 0;
}

/* ---- formatted stores, and reductions ---- */

/* The values are those of an H100. */
__global__ void formatted(cudaSurfaceObject_t bytes, cudaSurfaceObject_t halves)
{
	asm volatile("sust.p.1d.v4.b32.trap [%0, {1}], {%1, %2, %3, %4};" :: "l"(bytes), "r"(1), "r"(200), "r"(-200),
		"r"(INT_MIN));
	asm volatile("sust.p.1d.v4.b32.trap [%0, {1}], {%1, %2, %3, %4};" :: "l"(halves), "r"(0x3f801fff),
		"r"(0x3f803000), "r"(0x47c35000), "r"(0xc0000000));
}

__global__ void reduces(cudaSurfaceObject_t s, int v)
{
	const int x = threadIdx.x % 4;

	asm volatile("sured.b.add.1d.s32.trap [%0, {%1}], %2;" :: "l"(s), "r"(x * 4), "r"(v));
	asm volatile("sured.b.min.1d.s32.zero [%0, {%1}], %2;" :: "l"(s), "r"(16 + x * 4), "r"(v - (int)threadIdx.x));
	asm volatile("sured.p.max.1d.b32.trap [%0, {%1}], %2;" :: "l"(s), "r"(8 + x), "r"(v + (int)threadIdx.x));
}

static int stores(void)
{
	cudaChannelFormatDesc half4 = { 16, 16, 16, 16, cudaChannelFormatKindFloat };
	char4 none[2] = {}, bytes[2];
	int zero[16] = {}, is[16];
	unsigned short halves[8];
	cudaSurfaceObject_t s[3];
	cudaArray_t a[3];
	cudaResourceDesc r;

	a[0] = array_of(none, 2, 0, 0, cudaArraySurfaceLoadStore);
	OK(cudaMallocArray(&a[1], &half4, 2, 0, cudaArraySurfaceLoadStore));
	a[2] = array_of(zero, 16, 0, 0, cudaArraySurfaceLoadStore);
	for (int k = 0; k < 3; k++) {
		r = resource_of(a[k]);
		OK(cudaCreateSurfaceObject(&s[k], &r));
	}
	formatted<<<1, 1>>>(s[0], s[1]);
	reduces<<<2, 64>>>(s[2], 3);
	OK(cudaMemcpy2DFromArray(bytes, 8, a[0], 0, 0, 8, 1, cudaMemcpyDeviceToHost));
	OK(cudaMemcpy2DFromArray(halves, 16, a[1], 0, 0, 16, 1, cudaMemcpyDeviceToHost));
	OK(cudaMemcpy2DFromArray(is, 64, a[2], 0, 0, 64, 1, cudaMemcpyDeviceToHost));
	CHECK(bytes[1].x == 1 && bytes[1].y == 127 && bytes[1].z == -128 && bytes[1].w == -128);
	CHECK(halves[4] == 0x3c00 && halves[5] == 0x3c01 && halves[6] == 0x7bff && halves[7] == 0xc000);
	for (int k = 0; k < 4; k++) {
		CHECK(is[k] == 2 * 16 * 3);
		CHECK(is[4 + k] == 3 - 60 - k);
		CHECK(is[8 + k] == 3 + 60 + k);
	}
	return 0;
}

/* ---- what is reported ---- */

static cudaStream_t new_stream(void)
{
	cudaStream_t s;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	return s;
}

__global__ void fill_level(cudaSurfaceObject_t s)
{
	surf2Dwrite((float)threadIdx.x, s, threadIdx.x * 4, 2); /* the row in the middle */
}

/* A grid writes level 1 through a surface, another one reads it through a texture of all levels, or the
 * level before it. */
static int level_written(bool ordered, float lod)
{
	cudaMipmappedArray_t m = mipmapped(cudaArraySurfaceLoadStore);
	cudaStream_t a = new_stream(), b = ordered ? a : new_stream();
	cudaTextureObject_t t = mip_texture(m, true);
	cudaSurfaceObject_t s;
	cudaResourceDesc r;
	cudaArray_t level;
	float *x, *out;

	OK(cudaGetMipmappedArrayLevel(&level, m, 1));
	r = resource_of(level);
	OK(cudaCreateSurfaceObject(&s, &r));
	OK(cudaMallocManaged(&x, 256));
	OK(cudaMalloc(&out, 256));
	for (int i = 0; i < 8; i++)
		x[i] = lod;
	OK(cudaDeviceSynchronize());
	fill_level<<<1, 8, 0, a>>>(s);
	details<<<1, 8, 0, b>>>(t, x, out);
	OK(cudaDeviceSynchronize());
	return 0;
}

__global__ void adds(cudaSurfaceObject_t s)
{
	asm volatile("sured.b.add.2d.u32.trap [%0, {%1, 0}], 1;" :: "l"(s), "r"((int)threadIdx.x % 4 * 4));
}

/* Two grids reduce the same texels, which is no race; a third one fetches them. */
static int reduced(bool ordered)
{
	unsigned texels[W * H] = {};
	float *x, *out;
	cudaArray_t a = array_of(texels, W, H, 0, cudaArraySurfaceLoadStore);
	cudaStream_t s[3] = { new_stream(), new_stream(), new_stream() };
	cudaResourceDesc r = resource_of(a);
	cudaSurfaceObject_t surface;
	cudaTextureObject_t t = texture_of(r, cudaAddressModeClamp, false, false);

	OK(cudaCreateSurfaceObject(&surface, &r));
	OK(cudaMalloc(&out, N * 4));
	OK(cudaMalloc(&x, 3 * N * 4));
	OK(cudaMemset(x, 0, 3 * N * 4));
	OK(cudaDeviceSynchronize());
	adds<<<1, 64, 0, s[0]>>>(surface);
	adds<<<1, 64, 0, s[1]>>>(surface);
	if (ordered)
		OK(cudaDeviceSynchronize());
	fetch<<<1, N, 0, s[2]>>>(t, 2, x, out);
	OK(cudaDeviceSynchronize());
	return 0;
}

/* A copy of a box between two arrays in one stream, a kernel that reads the result in another one. */
static int box(bool ordered)
{
	float texels[W * H * D] = {}, *x, *out;
	cudaArray_t from = array_of(texels, W, H, D), to = array_of(texels, W, H, D);
	cudaStream_t a = new_stream(), b = ordered ? a : new_stream();
	cudaTextureObject_t t = texture_of(resource_of(to), cudaAddressModeClamp, false, false);
	cudaMemcpy3DPeerParms p = {};

	OK(cudaMalloc(&out, N * 4));
	OK(cudaMalloc(&x, 3 * N * 4));
	OK(cudaMemset(x, 0, 3 * N * 4));
	OK(cudaDeviceSynchronize());
	p.srcArray = from;
	p.dstArray = to;
	p.extent = make_cudaExtent(W, H, 2);
	OK(cudaMemcpy3DPeerAsync(&p, a));
	fetch<<<1, N, 0, b>>>(t, 3, x, out);
	OK(cudaDeviceSynchronize());
	return 0;
}

/* A surface that the same kernel has written is read through a texture, or not. */
__global__ void written(cudaSurfaceObject_t s, cudaTextureObject_t t, cudaTextureObject_t other,
	float *out)
{
	surf2Dwrite((float)threadIdx.x, s, threadIdx.x * 4, 0);
	__syncthreads();
	out[threadIdx.x] = tex2D<float>(other ? other : t, threadIdx.x + 0.5f, 0.5f);
}

static int same_kernel(bool fixed)
{
	float texels[W * H] = {}, *out;
	cudaArray_t a = array_of(texels, W, H, 0, cudaArraySurfaceLoadStore), b = array_of(texels, W, H, 0);
	cudaResourceDesc r = resource_of(a);
	cudaSurfaceObject_t s;

	OK(cudaMalloc(&out, W * 4));
	OK(cudaCreateSurfaceObject(&s, &r));
	written<<<1, W>>>(s, texture_of(r, cudaAddressModeClamp, false, false), fixed
		? texture_of(resource_of(b), cudaAddressModeClamp, false, false) : 0, out);
	OK(cudaDeviceSynchronize());
	return 0;
}

/* A copy to an array in one stream, a kernel that reads it in another one. */
static int two_streams(bool fixed)
{
	float texels[W * H] = {}, *from, *x, *out;
	cudaArray_t a = array_of(texels, W, H, 0);
	cudaStream_t s[2];
	cudaEvent_t e;
	cudaTextureObject_t t = texture_of(resource_of(a), cudaAddressModeClamp, true, false);

	OK(cudaMalloc(&from, sizeof texels));
	OK(cudaMalloc(&out, N * 4));
	OK(cudaMalloc(&x, 3 * N * 4));
	OK(cudaMemset(x, 0, 3 * N * 4));
	OK(cudaMemset(from, 0, sizeof texels));
	OK(cudaDeviceSynchronize());
	for (int k = 0; k < 2; k++)
		OK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
	OK(cudaEventCreate(&e));
	OK(cudaMemcpy2DToArrayAsync(a, 0, 0, from, W * 4, W * 4, H, cudaMemcpyDeviceToDevice, s[0]));
	OK(cudaEventRecord(e, s[0]));
	if (fixed)
		OK(cudaStreamWaitEvent(s[1], e, 0));
	fetch<<<1, N, 0, s[1]>>>(t, 2, x, out);
	OK(cudaDestroyTextureObject(t)); /* the kernel has not run yet */
	OK(cudaDeviceSynchronize());
	return 0;
}

static int destroyed(void)
{
	float texels[W * H] = {}, *x, *out;
	cudaArray_t a = array_of(texels, W, H, 0);
	cudaTextureObject_t t = texture_of(resource_of(a), cudaAddressModeClamp, true, false);

	OK(cudaMalloc(&out, N * 4));
	OK(cudaMalloc(&x, 3 * N * 4));
	OK(cudaDestroyTextureObject(t));
	fetch<<<1, N>>>(t, 2, x, out);
	return cudaDeviceSynchronize() == cudaSuccess;
}

static int refused(void)
{
	cudaChannelFormatDesc c = cudaCreateChannelDesc<float>();
	float texels[W * H] = {};
	cudaResourceDesc r = resource_of(array_of(texels, W, H, 0));
	cudaTextureDesc d = {};
	cudaTextureObject_t t;
	cudaArray_t a;

	CHECK(cudaMallocArray(&a, &c, W, H, cudaArraySparse) == cudaErrorNotSupported);
	d.sRGB = 1;
	CHECK(cudaCreateTextureObject(&t, &r, &d, NULL) == cudaErrorNotSupported);
	d.sRGB = 0;
	for (cudaResourceViewFormat f : { cudaResViewFormatFloat2, cudaResViewFormatUnsignedBlockCompressed1 }) {
		cudaResourceViewDesc view = {};
		view.format = f;
		CHECK(cudaCreateTextureObject(&t, &r, &d, &view) == cudaErrorNotSupported);
	}
	return 0;
}

/* For consan only: drivers do not look handles up, and crash. */
static int freed_twice(void)
{
	float texels[W * H] = {};
	cudaArray_t a = array_of(texels, W, H, 0), level;
	cudaMipmappedArray_t m = mipmapped();

	OK(cudaFreeArray(a));
	CHECK(cudaFreeArray(a) == cudaErrorInvalidResourceHandle);
	OK(cudaGetMipmappedArrayLevel(&level, m, 1));
	CHECK(cudaFreeArray(level) == cudaErrorInvalidResourceHandle);
	OK(cudaFreeMipmappedArray(m));
	CHECK(cudaFreeMipmappedArray(m) == cudaErrorInvalidResourceHandle);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	printing = !strcmp(what, "print");
	if (printing)
		return fetches() || all_formats() || more() || surface();
	if (!strcmp(what, "fetches"))
		return fetches() || all_formats();
	if (!strcmp(what, "more"))
		return more() || surface() || arrays() || mips() || view_formats() || stores();
	if (!strcmp(what, "written") || !strcmp(what, "written-elsewhere"))
		return same_kernel(what[7] != 0);
	if (!strcmp(what, "streams") || !strcmp(what, "streams-ordered"))
		return two_streams(what[7] != 0);
	if (!strcmp(what, "destroyed"))
		return destroyed();
	if (!strcmp(what, "level") || !strcmp(what, "level-ordered"))
		return level_written(what[5] != 0, 0.5f);
	if (!strcmp(what, "level-above"))
		return level_written(false, 0);
	if (!strcmp(what, "reduced") || !strcmp(what, "reduced-ordered"))
		return reduced(what[7] != 0);
	if (!strcmp(what, "box") || !strcmp(what, "box-ordered"))
		return box(what[3] != 0);
	if (!strcmp(what, "refused"))
		return refused();
	if (!strcmp(what, "freed-twice"))
		return freed_twice();
	return 2;
}
