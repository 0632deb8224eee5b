// Compares the CPU executor with a real GPU: barriers and pipelines of libcu++,
// cooperative groups, atomics, calls, recursion, local memory, clusters, spins
// between threads and between blocks. Prints a hash of the output of each kernel;
// machine.h200 has the output of an H200.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/atomic>

namespace cg = cooperative_groups;
#define T (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void m_barrier(unsigned *out, const unsigned *in, int n)
{
	__shared__ unsigned s[2][256];
	using B = cuda::barrier<cuda::thread_scope_block>;
	__shared__ B bar[2];
	auto g = cg::this_thread_block();
	if (threadIdx.x == 0) {
		init(&bar[0], blockDim.x);
		init(&bar[1], blockDim.x);
	}
	g.sync();
	unsigned acc = 0;
	cuda::memcpy_async(g, s[0], in, cuda::aligned_size_t<16>(1024), bar[0]);
	for (int i = 0; i < n; i++) {
		if (i + 1 < n)
			cuda::memcpy_async(g, s[(i + 1) & 1], in + (i + 1) * 256,
					   cuda::aligned_size_t<16>(1024), bar[(i + 1) & 1]);
		bar[i & 1].arrive_and_wait();
		acc = acc * 31 + s[i & 1][(threadIdx.x * 7 + i) & 255];
		g.sync();
	}
	out[T] = acc;
}

extern "C" __global__ void m_pipe(unsigned *out, const unsigned *in, int n)
{
	__shared__ unsigned s[4][128];
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 4> st;
	auto g = cg::this_thread_block();
	auto p = cuda::make_pipeline(g, &st);
	unsigned acc = 0;
	for (int f = 0, c = 0; c < n; c++) {
		for (; f < n && f < c + 4; f++) {
			p.producer_acquire();
			cuda::memcpy_async(g, s[f & 3], in + f * 128, 512, p);
			p.producer_commit();
		}
		p.consumer_wait();
		acc = acc * 33 + s[c & 3][threadIdx.x ^ (c & 127)];
		p.consumer_release();
	}
	out[T] = acc;
}

extern "C" __global__ void m_tile(unsigned *out, const unsigned *in, int n)
{
	__shared__ cg::block_tile_memory<256> mem;
	auto b = cg::this_thread_block(mem);
	auto t = cg::tiled_partition<64>(b);
	auto w = cg::tiled_partition<32>(b);
	unsigned v = in[T];
	unsigned r = cg::reduce(t, v, cg::plus<unsigned>());
	r ^= cg::inclusive_scan(w, v & 1023, cg::plus<unsigned>());
	r += cg::exclusive_scan(w, v & 255);
	auto lab = cg::labeled_partition(w, v % 3);
	r += cg::reduce(lab, v, cg::greater<unsigned>());
	t.sync();
	out[T] = r;
}

extern "C" __global__ void m_atomics(unsigned *out, const unsigned *in, int n)
{
	cuda::atomic_ref<unsigned, cuda::thread_scope_device> a(out[0]);
	a.fetch_add(in[T] & 15, cuda::memory_order_relaxed);
	atomicMax(&out[1], in[T]);
	atomicXor(&out[2], in[T]);
	atomicMin((int *)&out[3], (int)in[T]);
	atomicAdd((unsigned long long *)&out[4], (unsigned long long)in[T]);
	atomicAdd((float *)&out[6], 0.25f);
	atomicAdd((double *)&out[8], 0.5);
	atomicAdd((__half2 *)&out[10], __floats2half2_rn(0.f, 1.f));
	atomicAdd((__nv_bfloat16 *)&out[11], __float2bfloat16(0.5f));
	atomicAnd(&out[12], ~(1u << (T & 7)));
	atomicInc(&out[13], 1000);
	atomicDec(&out[14], 77);
	unsigned long long o = atomicCAS((unsigned long long *)&out[16], 0ull, 5ull);
	if (o != 0 && o != 5)
		out[18] = 1;
	__shared__ float f[4];
	if (threadIdx.x < 4)
		f[threadIdx.x] = 0;
	__syncthreads();
	atomicAdd(&f[threadIdx.x & 3], 1.f);
	__shared__ unsigned u;
	if (!threadIdx.x)
		u = 0;
	__syncthreads();
	atomicAdd(&u, threadIdx.x);
	atomicMax(&u, 3u);
	__syncthreads();
	if (threadIdx.x < 4)
		out[20 + blockIdx.x * 8 + threadIdx.x] = (unsigned)f[threadIdx.x];
	if (!threadIdx.x)
		out[24 + blockIdx.x * 8] = u;
	atomicAdd((float4 *)&out[200], make_float4(1, 2, 3, 4));
}

extern "C" __global__ void m_warp(unsigned *out, const unsigned *in, int n)
{
	unsigned v = in[T], m = ~0u,
		 r = __reduce_add_sync(m, v) + __reduce_max_sync(m, v) + __reduce_xor_sync(m, v);
	r ^= __match_any_sync(m, v & 3);
	int p;
	r += __match_all_sync(m, v & 0, &p) + p;
	r += __shfl_up_sync(m, v, 3) ^ __shfl_down_sync(m, v, 5, 16);
	if (threadIdx.x & 1) {
		r += __ballot_sync(0xaaaaaaaa, v & 2);
		__syncwarp(0xaaaaaaaa);
		r += __popc(__activemask());
	} else {
		r ^= __any_sync(0x55555555, v & 4) + __all_sync(0x55555555, v & 8);
	}
	if (v & 1)
		r += 5;
	__syncwarp();
	out[T] = r;
}

extern "C" __global__ void m_lastblock(unsigned *out, const unsigned *in, int n)
{
	__shared__ bool last;
	__shared__ unsigned sum;
	if (!threadIdx.x)
		sum = 0;
	__syncthreads();
	atomicAdd(&sum, in[T]);
	__syncthreads();
	if (!threadIdx.x) {
		out[16 + blockIdx.x] = sum;
		__threadfence();
		last = atomicAdd(&out[1], 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (last && !threadIdx.x) {
		unsigned t = 0;
		for (int i = 0; i < gridDim.x; i++)
			t += ((volatile unsigned *)out)[16 + i];
		out[0] = t;
	}
}

extern "C" __global__ void m_sem(unsigned *out, const unsigned *in, int n)
{
	unsigned me = gridDim.x - 1 - blockIdx.x;
	if (!threadIdx.x) {
		while (atomicAdd(&out[0], 0) != me)
			__nanosleep(50);
	}
	__syncthreads();
	out[16 + threadIdx.x] = out[16 + threadIdx.x] * 3 + in[T];
	__syncthreads();
	if (!threadIdx.x) {
		__threadfence();
		atomicAdd(&out[0], 1);
	}
}

extern "C" __global__ void __cluster_dims__(4, 1, 1)
    m_cluster(unsigned *out, const unsigned *in, int n)
{
	__shared__ unsigned s[128];
	auto c = cg::this_cluster();
	s[threadIdx.x] = in[T];
	c.sync();
	unsigned acc = 0;
	for (unsigned r = 0; r < c.num_blocks(); r++) {
		unsigned *q = c.map_shared_rank(s, (c.block_rank() + r) % c.num_blocks());
		acc = acc * 3 + q[threadIdx.x ^ r];
	}
	c.sync();
	unsigned *q = c.map_shared_rank(s, 0);
	atomicAdd(&q[threadIdx.x & 7], acc);
	c.sync();
	out[T] = acc + s[threadIdx.x & 7] * (c.block_rank() == 0) + c.query_shared_rank(q);
}

struct S {
	int a[6];
	float f;
};
__device__ __noinline__ S mk(int x, S s)
{
	for (int i = 0; i < 6; i++)
		s.a[i] += x * i;
	s.f *= 2;
	return s;
}

__device__ int gtab[4] = {3, 1, 4, 1};
__constant__ short ctab[8] = {1, -2, 3, -4, 5, -6, 7, -8};
__device__ int *gptr = &gtab[2];
extern "C" __global__ void m_local(unsigned *out, const unsigned *in, int n)
{
	unsigned a[32];
	for (int i = 0; i < 32; i++)
		a[i] = in[(T * 3 + i) & 1023];
	for (int i = 0; i < n; i++) {
		unsigned j = a[i & 31] & 31;
		a[j] += a[(j * 7 + i) & 31] ^ i;
	}
	S s{};
	s.f = 1.5f;
	for (int i = 0; i < 6; i++)
		s.a[i] = a[i] & 255;
	s = mk(threadIdx.x, s);
	unsigned r = 0;
	for (int i = 0; i < 32; i++)
		r = r * 17 + a[i];
	unsigned char *cb = (unsigned char *)a;
	for (int i = 0; i < 128; i += 3)
		r += cb[(i * (r & 3)) & 127];
	out[T] = r + s.a[n % 6] + (int)s.f + gtab[T & 3] + ctab[T & 7] + *gptr;
}

typedef unsigned (*fp)(unsigned);
__device__ unsigned fa(unsigned x)
{
	return x + 1;
}

__device__ unsigned fb(unsigned x)
{
	return x * 3;
}

__device__ unsigned fc(unsigned x)
{
	return x > 100 ? fa(x) : fb(x);
}

__device__ fp ftab[3] = {fa, fb, fc};
extern "C" __global__ void m_fptr(unsigned *out, const unsigned *in, int n)
{
	unsigned v = in[T];
	for (int i = 0; i < n; i++)
		v = ftab[(v + i) % 3](v);
	out[T] = v;
}

__device__ __noinline__ unsigned ack(unsigned m, unsigned n)
{
	return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1));
}

extern "C" __global__ void m_ack(unsigned *out, const unsigned *in, int n)
{
	out[T] = ack(T % 3, in[T] & 3);
}

__device__ __noinline__ int qs(int *a, int lo, int hi)
{
	if (lo >= hi)
		return 0;
	int p = a[hi], i = lo, c = 1;
	for (int j = lo; j < hi; j++)
		if (a[j] < p) {
			int t = a[i];
			a[i] = a[j];
			a[j] = t;
			i++;
		}
	a[hi] = a[i];
	a[i] = p;
	c += qs(a, lo, i - 1);
	c += qs(a, i + 1, hi);
	return c;
}

extern "C" __global__ void m_qs(unsigned *out, const unsigned *in, int n)
{
	int a[24];
	for (int i = 0; i < 24; i++)
		a[i] = in[(T * 24 + i) & 4095] & 0xffff;
	int c = qs(a, 0, 23);
	unsigned r = c;
	for (int i = 0; i < 24; i++)
		r = r * 31 + a[i];
	out[T] = r;
}

extern "C" __global__ void m_goto(unsigned *out, const unsigned *in, int n)
{
	unsigned x = in[T], r = 0;
	int i = 0;
a:
	r += x & 7;
	if (++i > n)
		goto e;
	if (x & 1) {
		x = x * 5 + 1;
		goto b;
	}
	x >>= 1;
	if (x % 5 == 0)
		goto a;
b:
	r ^= x;
	if ((x & 3) == 2) {
		x += 7;
		goto a;
	}
	if (i & 1)
		goto a;
	x ^= r;
	goto b2;
b2:
	if (r & 16) {
		r += 3;
		if (++i < n)
			goto b;
	}
	if (i < n)
		goto a;
e:
	out[T] = r + i;
}

extern "C" __global__ void m_vec(uint4 *out, const uint4 *in, int n)
{
	uint4 v = in[T];
	ushort4 h = ((const ushort4 *)in)[T];
	uchar4 c = ((const uchar4 *)in)[T];
	char2 d = ((const char2 *)in)[T];
	double2 z = make_double2(v.x, v.y);
	v.x += h.x * h.w;
	v.y ^= c.x * c.w + (int)d.x * d.y;
	v.z += (unsigned)z.x;
	out[T] = v;
	((unsigned char *)(out + 4096))[T] = v.x;
	((short *)(out + 8192))[T] = v.y;
}
extern "C" __global__ void m_prodcons(unsigned *out, const unsigned *in, int n)
{
	volatile __shared__ unsigned head, tail, q[8];
	if (!threadIdx.x)
		head = tail = 0;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int i = 0; i < n; i++) {
			while (head - tail == 8)
				;
			q[head & 7] = in[i];
			__threadfence_block();
			head = head + 1;
		}
	} else if (threadIdx.x == 33) {
		unsigned r = 0;
		for (int i = 0; i < n; i++) {
			while (head == tail)
				;
			r = r * 7 + q[tail & 7];
			__threadfence_block();
			tail = tail + 1;
		}
		out[blockIdx.x] = r;
	} else if (threadIdx.x == 5)
		out[64 + blockIdx.x] = in[5];
}

#define CK(x) \
	do { \
		cudaError_t e_ = (x); \
		if (e_) \
			printf("%s: %s\n", #x, cudaGetErrorString(e_)); \
	} while (0)

static unsigned *o, *q, *ho;

template <class F, class... A> void go(const char *n, F f, dim3 g, dim3 b, A... a)
{
	CK(cudaMemset(o, 0, 1 << 20));
	f<<<g, b>>>(a...);
	CK(cudaDeviceSynchronize());
	CK(cudaMemcpy(ho, o, 1 << 20, cudaMemcpyDeviceToHost));
	unsigned h = 0;
	for (int j = 0; j < 1 << 18; j++)
		h = h * 31 + ho[j];
	printf("%s hash %08x out %u %u %u %u\n", n, h, ho[0], ho[1], ho[2], ho[33]);
}

int main()
{
	ho = (unsigned *)malloc(1 << 20);
	CK(cudaMalloc(&o, 1 << 20));
	CK(cudaMalloc(&q, 1 << 20));
	for (int j = 0; j < 1 << 18; j++)
		ho[j] = (j * 2654435761u) ^ (j >> 3);
	CK(cudaMemcpy(q, ho, 1 << 20, cudaMemcpyHostToDevice));

#define R(k, g, b, n) go(#k, k, g, b, o, q, n)
	R(m_barrier, 3, 256, 9);
	R(m_pipe, 2, 128, 11);
	R(m_tile, 2, 256, 1);
	R(m_atomics, 5, 128, 1);
	R(m_warp, 3, 96, 1);
	R(m_lastblock, 9, 64, 1);
	R(m_sem, 7, 64, 1);
	R(m_cluster, 8, 128, 1);
	R(m_local, 3, 64, 40);
	R(m_fptr, 2, 64, 9);
	R(m_ack, 1, 64, 1);
	R(m_qs, 2, 64, 1);
	R(m_goto, 3, 100, 60);
	go("m_vec", m_vec, 2, 64, (uint4 *)o, (const uint4 *)q, 1);
	R(m_prodcons, 3, 64, 50);
}
