/* Calls of cuBLAS and cuFFT, compared with sums on the host. Linked with fake_library.c, or
 * (LOOKED_UP) looking its functions up. Exits with 0 if all results are right. */
#include <complex.h>
#include <cuda.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LOOKED_UP
#define CALL(name) static int (*name)();
#include "library.h"
#undef CALL
static void look_up(void)
{
	void *library = dlopen("libcublas.so.13", RTLD_LAZY | RTLD_LOCAL);

#define CALL(name) name = (int (*)())dlsym(library, #name);
#include "library.h"
}
#else
#define CALL(name) int name();
#include "library.h"
static void look_up(void)
{
}
#endif

static void check(const char *what, int ok)
{
	if (ok)
		return;
	printf("%s is wrong\n", what);
	exit(1);
}

static double number(int i)
{
	return (i * 37 % 19) / 8.0 - 1;
}

static void *device(const void *from, size_t bytes)
{
	CUdeviceptr at;

	check("cuMemAlloc", !cuMemAlloc(&at, bytes));
	if (from)
		check("cuMemcpyHtoD", !cuMemcpyHtoD(at, from, bytes));
	return (void *)at;
}

static void fetch(void *to, const void *from, size_t bytes)
{
	check("cuMemcpyDtoH", !cuMemcpyDtoH(to, (CUdeviceptr)from, bytes));
}

enum { M = 5, N = 4, K = 7, LDA = 9, LDB = 10, LDC = 6, BATCH = 3 };
enum { OP_N, OP_T, OP_C };

/* Element (i, j) of op(a) */
static double complex element(const double complex *a, int ld, int op, int i, int j)
{
	double complex v = op == OP_N ? a[i + j * ld] : a[j + i * ld];

	return op == OP_C ? conj(v) : v;
}

static double complex expected(const double complex *a, int op_a, const double complex *b, int op_b,
	int i, int j)
{
	double complex sum = 0;

	for (int k = 0; k < K; k++)
		sum += element(a, LDA, op_a, i, k) * element(b, LDB, op_b, k, j);
	return sum;
}

static double complex za[LDA * LDA], zb[LDB * LDB], zc[LDC * N];
static double da[BATCH * LDA * LDA], db[BATCH * LDB * LDB], dc[BATCH * LDC * N];

static void products(void *h)
{
	const double complex alpha = 2 - I, beta = I;
	const float one = 1, none = 0;
	static float sa[BATCH * LDA * LDA], sb[BATCH * LDB * LDB], sc[BATCH * LDC * N];
	static uint16_t ha[LDA * LDA], hb[LDB * LDB];
	static double complex out[LDC * N];
	void *a, *b, *c, *pa[BATCH], *pb[BATCH], *pc[BATCH];

	for (int i = 0; i < LDA * LDA; i++)
		za[i] = number(i) + I * number(3 * i + 1);
	for (int i = 0; i < LDB * LDB; i++)
		zb[i] = number(5 * i) + I * number(i + 2);
	for (int i = 0; i < LDC * N; i++)
		zc[i] = number(i + 7);
	a = device(za, sizeof za);
	b = device(zb, sizeof zb);
	for (int op_a = OP_N; op_a <= OP_C; op_a++)
		for (int op_b = OP_N; op_b <= OP_C; op_b++) {
			c = device(zc, sizeof zc);
			check("cublasZgemm",
				!cublasZgemm_v2(h, op_a, op_b, M, N, K, &alpha, a, LDA, b, LDB,
					&beta, c, LDC));
			fetch(out, c, sizeof out);
			for (int j = 0; j < N; j++)
				for (int i = 0; i < LDC; i++) {
					double complex v = i < M
						? alpha * expected(za, op_a, zb, op_b, i, j)
							+ beta * zc[i + j * LDC]
						: zc[i + j * LDC];

					check("Zgemm", cabs(out[i + j * LDC] - v) < 1e-12);
				}
		}

	/* strided: B is the same for all */
	for (int i = 0; i < BATCH * LDA * LDA; i++)
		sa[i] = (float)number(i);
	for (int i = 0; i < LDB * LDB; i++)
		sb[i] = (float)number(2 * i);
	a = device(sa, sizeof sa);
	b = device(sb, sizeof sb);
	c = device(NULL, sizeof sc);
	check("cublasSgemmStridedBatched",
		!cublasSgemmStridedBatched(h, OP_N, OP_T, M, N, K, &one, a, LDA,
			(long long)LDA * LDA, b, LDB, 0LL, &none, c, LDC, (long long)LDC * N,
			BATCH));
	fetch(sc, c, sizeof sc);
	for (int k = 0; k < BATCH; k++)
		for (int j = 0; j < N; j++)
			for (int i = 0; i < M; i++) {
				float sum = 0;

				for (int l = 0; l < K; l++)
					sum += sa[k * LDA * LDA + i + l * LDA] * sb[j + l * LDB];
				check("strided",
					fabsf(sum - sc[k * LDC * N + i + j * LDC]) < 1e-4f);
			}

	/* bf16 in, f32 out: the numbers are exact in both */
	for (int i = 0; i < LDA * LDA; i++) {
		uint32_t bits;

		memcpy(&bits, &sa[i], 4);
		ha[i] = (uint16_t)(bits >> 16);
	}
	for (int i = 0; i < LDB * LDB; i++) {
		uint32_t bits;

		memcpy(&bits, &sb[i], 4);
		hb[i] = (uint16_t)(bits >> 16);
	}
	pa[0] = device(ha, sizeof ha);
	pb[0] = device(hb, sizeof hb);
	check("cublasGemmEx",
		!cublasGemmEx(h, OP_N, OP_N, M, N, K, &one, pa[0], 14, LDA, pb[0], 14, LDB, &none,
			c, 0, LDC, 68, -1));
	fetch(sc, c, sizeof sc);
	for (int j = 0; j < N; j++)
		for (int i = 0; i < M; i++) {
			float sum = 0;

			for (int l = 0; l < K; l++)
				sum += sa[i + l * LDA] * sb[l + j * LDB];
			check("bf16", sum == sc[i + j * LDC]);
		}

	/* an array of pointers */
	for (int i = 0; i < BATCH * LDA * LDA; i++)
		da[i] = number(i);
	for (int i = 0; i < BATCH * LDB * LDB; i++)
		db[i] = number(i + 3);
	for (int k = 0; k < BATCH; k++) {
		pa[k] = device(da + k * LDA * LDA, sizeof da / BATCH);
		pb[k] = device(db + k * LDB * LDB, sizeof db / BATCH);
		pc[k] = device(NULL, sizeof dc / BATCH);
	}
	check("cublasDgemmBatched",
		!cublasDgemmBatched(h, OP_T, OP_N, M, N, K, &(double){ 1 }, device(pa, sizeof pa),
			LDA, device(pb, sizeof pb), LDB, &(double){ 0 }, device(pc, sizeof pc), LDC,
			BATCH));
	fetch(dc, pc[2], sizeof dc / BATCH);
	for (int j = 0; j < N; j++)
		for (int i = 0; i < M; i++) {
			double sum = 0;

			for (int l = 0; l < K; l++)
				sum += da[2 * LDA * LDA + l + i * LDA]
					* db[2 * LDB * LDB + l + j * LDB];
			check("batched", fabs(sum - dc[i + j * LDC]) < 1e-12);
		}
}

static void levels(void *h)
{
	static double x[LDA], y[LDA], tri[M * M], left[M * N], out[M * N], two = 2, none = 0;
	double dot, sum = 0, *dx, *dy, *dt, *dl, *dd;
	int least;

	for (int i = 0; i < LDA; i++) {
		x[i] = number(i) + 0.5;
		y[i] = number(i + 5);
		sum += x[i] * y[i];
	}
	dx = device(x, sizeof x);
	dy = device(y, sizeof y);
	check("cublasDdot", !cublasDdot_v2(h, LDA, dx, 1, dy, 1, &dot) && fabs(dot - sum) < 1e-12);
	check("cublasIdamin", !cublasIdamin_v2(h, LDA, dx, 1, &least));
	for (int i = 0; i < LDA; i++)
		check("Idamin", fabs(x[least - 1]) <= fabs(x[i]));
	/* the result on the device */
	cublasSetPointerMode_v2(h, 1);
	dd = device(NULL, sizeof *dd);
	check("cublasDdot", !cublasDdot_v2(h, LDA, dx, 1, dy, 1, dd));
	fetch(&dot, dd, sizeof dot);
	check("Ddot", fabs(dot - sum) < 1e-12);
	cublasSetPointerMode_v2(h, 0);

	for (int i = 0; i < M * M; i++)
		tri[i] = number(i) + 3;
	for (int i = 0; i < M * N; i++)
		left[i] = number(i);
	dt = device(tri, sizeof tri);
	dl = device(left, sizeof left);
	dd = device(NULL, sizeof left);
	/* trsm undoes trmm, which leaves its operand as it is */
	check("cublasDtrmm", !cublasDtrmm_v2(h, 0, 1, OP_N, 0, M, N, &two, dt, M, dl, M, dd, M));
	check("cublasDtrsm",
		!cublasDtrsm_v2(h, 0, 1, OP_N, 0, M, N, &(double){ 0.5 }, dt, M, dd, M));
	fetch(out, dd, sizeof out);
	for (int i = 0; i < M * N; i++)
		check("Dtrmm, Dtrsm", fabs(out[i] - left[i]) < 1e-12);
	check("cublasDgeam", !cublasDgeam(h, OP_T, OP_N, N, M, &two, dl, M, &none, NULL, N, dd, N));
	fetch(out, dd, sizeof out);
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			check("Dgeam", out[j + i * N] == 2 * left[i + j * M]);
	check("cublasDdgmm", !cublasDdgmm(h, 1, M, N, dl, M, dx, 2, dd, M));
	fetch(out, dd, sizeof out);
	for (int j = 0; j < N; j++)
		check("Ddgmm", out[1 + j * M] == left[1 + j * M] * x[2 * j]);
	check("cublasDgemv", !cublasDgemv_v2(h, OP_N, M, N, &two, dl, M, dx, 1, &none, dd, 1));
	fetch(out, dd, sizeof out);
	sum = 0;
	for (int j = 0; j < N; j++)
		sum += 2 * left[3 + j * M] * x[j];
	check("Dgemv", fabs(out[3] - sum) < 1e-12);
}

/* One symmetric matrix of bandwidth 2 as such, as a band and packed, and a triangle of it. */
static void stored(void *h)
{
	enum { SIZE = 6, BAND = 2, LD = SIZE + 1 };
	static double full[LD * SIZE], band[(BAND + 1) * SIZE], packed[SIZE * (SIZE + 1) / 2];
	static double both[(2 * BAND + 1) * SIZE], x[SIZE], y[SIZE], expect[SIZE], out[SIZE];
	const double one = 1, half = 0.5;
	double *df, *db, *dp, *dx, *dy, *dg;
	int n = 0;

	for (int j = 0; j < SIZE; j++) {
		x[j] = number(j);
		y[j] = number(j + 7);
		for (int i = 0; i <= j; i++) {
			double v = j - i > BAND ? 0 : number(i + SIZE * j) + 3;

			full[i + j * LD] = full[j + i * LD] = v;
			packed[n++] = v; /* upper, by columns */
			if (j - i <= BAND)
				band[BAND + i - j + j * (BAND + 1)] = v;
		}
	}
	for (int j = 0; j < SIZE; j++)
		for (int i = 0; i < SIZE; i++)
			if (abs(i - j) <= BAND)
				both[BAND + i - j + j * (2 * BAND + 1)] = full[i + j * LD];
	for (int i = 0; i < SIZE; i++) {
		expect[i] = half * y[i];
		for (int j = 0; j < SIZE; j++)
			expect[i] += full[i + j * LD] * x[j];
	}
	df = device(full, sizeof full);
	db = device(band, sizeof band);
	dp = device(packed, sizeof packed);
	dg = device(both, sizeof both);
	dx = device(x, sizeof x);
	for (int form = 0; form < 4; form++) {
		dy = device(y, sizeof y);
		check("symmetric", form == 0 ? !cublasDsymv_v2(h, 1, SIZE, &one, df, LD, dx, 1, &half, dy, 1)
			: form == 1 ? !cublasDsbmv_v2(h, 1, SIZE, BAND, &one, db, BAND + 1, dx, 1, &half, dy, 1)
			: form == 2 ? !cublasDspmv_v2_64(h, 1, (int64_t)SIZE, &one, dp, dx, (int64_t)1, &half,
				dy, (int64_t)1)
			: !cublasDgbmv_v2(h, OP_T, SIZE, SIZE, BAND, BAND, &one, dg, 2 * BAND + 1, dx, 1, &half,
				dy, 1));
		fetch(out, dy, sizeof out);
		for (int i = 0; i < SIZE; i++)
			check("symmetric", fabs(out[i] - expect[i]) < 1e-12);
	}
	/* a step that is too short, a step of 0, a flag that is none */
	check("invalid", cublasDsbmv_v2(h, 1, SIZE, BAND, &one, db, BAND, dx, 1, &half, dy, 1) == 7
		&& cublasDsymv_v2(h, 1, SIZE, &one, df, LD, dx, 0, &half, dy, 1) == 7
		&& cublasDsymv_v2(h, 2, SIZE, &one, df, LD, dx, 1, &half, dy, 1) == 7);
	/* a solver undoes a product */
	check("tbmv", !cublasDtbmv_v2(h, 1, OP_T, 0, SIZE, BAND, db, BAND + 1, dx, 1)
		&& !cublasDtbsv_v2_64(h, 1, OP_T, 0, (int64_t)SIZE, (int64_t)BAND, db, (int64_t)(BAND + 1),
			dx, (int64_t)1)
		&& !cublasDtpmv_v2(h, 1, OP_N, 1, SIZE, dp, dx, 1));
	fetch(out, dx, sizeof out);
	for (int i = 0; i < SIZE; i++) {
		double sum = x[i]; /* the diagonal is of ones */

		for (int j = i + 1; j < SIZE; j++)
			sum += full[i + j * LD] * x[j];
		check("tpmv", fabs(out[i] - sum) < 1e-12);
	}
	check("tpsv", !cublasDtpsv_v2(h, 1, OP_N, 1, SIZE, dp, dx, 1));
	check("rot", !cublasDrot_v2(h, SIZE, dx, 1, dy, 1, &(double){ 0 }, &one));
	fetch(out, dy, sizeof out);
	for (int i = 0; i < SIZE; i++)
		check("tpsv, rot", fabs(out[i] + x[i]) < 1e-12);
}

static void hermitian(void *h)
{
	enum { SIZE = 4 };
	static double complex x[SIZE], out[SIZE * SIZE], packed[SIZE * (SIZE + 1) / 2];
	const double alpha = -2;
	double complex *df, *dp, *dx;
	double *df64;
	int64_t greatest;
	int n = 0;

	for (int i = 0; i < SIZE; i++)
		x[i] = number(i) + I * number(i + 2);
	dx = device(x, sizeof x);
	df = device(out, sizeof out);
	dp = device(packed, sizeof packed);
	check("her", !cublasZher_v2(h, 0, SIZE, &alpha, dx, 1, df, SIZE)
		&& !cublasZhpr_v2_64(h, 0, (int64_t)SIZE, &alpha, dx, (int64_t)1, dp));
	fetch(out, df, sizeof out);
	fetch(packed, dp, sizeof packed);
	for (int j = 0; j < SIZE; j++)
		for (int i = j; i < SIZE; i++) {
			check("hpr", cabs(packed[n++] - alpha * x[i] * conj(x[j])) < 1e-12);
			check("her", cabs(out[i + j * SIZE] - alpha * x[i] * conj(x[j])) < 1e-12);
		}
	/* sizes of 64 bits, and those that are too large for the BLAS */
	df64 = device(da, LDA * LDA * sizeof *da);
	check("gemm_64", !cublasDgemm_v2_64(h, OP_N, OP_T, (int64_t)2, (int64_t)2, (int64_t)3, &(double){ 1 },
			df64, (int64_t)LDA, df64, (int64_t)LDA, &(double){ 0 }, df, (int64_t)2)
		&& cublasDgemm_v2_64(h, OP_N, OP_T, (int64_t)1 << 32, (int64_t)2, (int64_t)3, &(double){ 1 },
			df64, (int64_t)1 << 32, df64, (int64_t)LDA, &(double){ 0 }, df, (int64_t)1 << 32) == 15);
	fetch(dc, df, 4 * sizeof *dc);
	check("gemm_64", fabs(dc[1] - (da[1] * da[0] + da[1 + LDA] * da[LDA]
		+ da[1 + 2 * LDA] * da[2 * LDA])) < 1e-12);
	check("amax_64", !cublasIdamax_v2_64(h, (int64_t)LDA, df64, (int64_t)1, &greatest)
		&& greatest > 0 && greatest <= LDA);
}

/* A call on one stream, and a copy of a part of what it accesses on another. */
static void race(void *h, const char *what, int fixed)
{
	const double one = 1, none = 0;
	double *a = device(NULL, sizeof da), *c = device(NULL, 64 * 64 * 8), *to = device(NULL, 8);
	double *from = c, *lists = device((void *[]){ a, c }, 16);
	CUstream s, t;
	CUevent e;

	check("streams", !cuStreamCreate(&s, CU_STREAM_NON_BLOCKING)
		&& !cuStreamCreate(&t, CU_STREAM_NON_BLOCKING) && !cuEventCreate(&e, 0));
	cuMemsetD8((CUdeviceptr)a, 0, sizeof da);
	cuMemsetD8((CUdeviceptr)c, 0, 64 * 64 * 8);
	cuCtxSynchronize();
	cublasSetStream_v2(h, s);
	if (!strcmp(what, "gemm")) {
		cublasDgemm_v2_64(h, OP_N, OP_N, (int64_t)8, (int64_t)8, (int64_t)8, &one, a, (int64_t)8, a,
			(int64_t)8, &none, c, (int64_t)64);
		from = c + 7 * 64 + 7;
	} else if (!strcmp(what, "between")) { /* what lies between its columns is not C */
		cublasDgemm_v2_64(h, OP_N, OP_N, (int64_t)8, (int64_t)8, (int64_t)8, &one, a, (int64_t)8, a,
			(int64_t)8, &none, c, (int64_t)64);
		from = c + 6 * 64 + 8;
	} else if (!strcmp(what, "batched")) {
		cublasDgemmBatched(h, OP_N, OP_N, 4, 4, 4, &one, lists, 4, lists, 4, &none, lists + 1, 4, 1);
		from = c + 15;
	} else if (!strcmp(what, "triangle")) { /* the upper one, of which row 1 column 2 is a part */
		cublasDsyrk_v2(h, 1, OP_N, 4, 4, &one, a, 4, &none, c, 64);
		from = c + 2 * 64 + 1;
	} else if (!strcmp(what, "lower")) {
		cublasDsyrk_v2(h, 1, OP_N, 4, 4, &one, a, 4, &none, c, 64);
		from = c + 64 + 2;
	} else if (!strcmp(what, "read")) {
		cublasDscal_v2(h, 4, &one, a, 2);
		cublasDgeam(h, OP_N, OP_N, 4, 4, &one, a, 4, &none, a, 4, c, 4);
		to = a + 15;
		from = c + 100;
	}
	if (fixed) {
		cuEventRecord(e, s);
		cuStreamWaitEvent(t, e, 0);
	}
	cuMemcpyDtoDAsync((CUdeviceptr)to, (CUdeviceptr)from, 8, t);
	cuCtxSynchronize();
}

enum { LENGTH = 12 };

static void transforms(void)
{
	static double x[2 * LENGTH], back[2 * LENGTH];
	static double complex f[2 * (LENGTH / 2 + 1)], z[LENGTH * 2], zf[LENGTH * 2];
	int plan, inverse, n = LENGTH, across;
	void *dx, *df, *dz;

	for (int i = 0; i < 2 * LENGTH; i++)
		x[i] = number(i);
	dx = device(x, sizeof x);
	df = device(NULL, sizeof f);
	check("cufftPlan1d",
		!cufftPlan1d(&plan, LENGTH, 0x6a, 2) && !cufftPlan1d(&inverse, LENGTH, 0x6c, 2));
	check("cufftExecD2Z", !cufftExecD2Z(plan, dx, df));
	fetch(f, df, sizeof f);
	for (int batch = 0; batch < 2; batch++)
		for (int k = 0; k <= LENGTH / 2; k++) {
			double complex sum = 0;

			for (int i = 0; i < LENGTH; i++)
				sum += x[batch * LENGTH + i]
					* cexp(-2 * acos(-1) * I * i * k / LENGTH);
			check("D2Z", cabs(sum - f[batch * (LENGTH / 2 + 1) + k]) < 1e-12);
		}
	check("cufftExecZ2D", !cufftExecZ2D(inverse, df, dx));
	fetch(back, dx, sizeof back);
	for (int i = 0; i < 2 * LENGTH; i++)
		check("Z2D", fabs(back[i] / LENGTH - x[i]) < 1e-12);

	/* two transforms between each other, in place */
	for (int i = 0; i < 2 * LENGTH; i++)
		z[i] = x[i] + I;
	dz = device(z, sizeof z);
	check("cufftPlanMany", !cufftPlanMany(&across, 1, &n, &n, 2, 1, &n, 2, 1, 0x69, 2));
	check("cufftExecZ2Z", !cufftExecZ2Z(across, dz, dz, -1));
	fetch(zf, dz, sizeof zf);
	for (int k = 0; k < LENGTH; k++) {
		double complex sum = 0;

		for (int i = 0; i < LENGTH; i++)
			sum += z[2 * i + 1] * cexp(-2 * acos(-1) * I * i * k / LENGTH);
		check("Z2Z", cabs(sum - zf[2 * k + 1]) < 1e-12);
	}
	check("cufftDestroy", !cufftDestroy(plan) && cufftDestroy(plan) == 1);
}

/* libraries [bounds | refused | race WHAT | fixed WHAT] */
int main(int argc, char **argv)
{
	const char *test = argc > 1 ? argv[1] : "";
	CUcontext context;
	double two = 2;
	void *h;
	int version;

	check("cuInit",
		!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
	look_up();
	check("cublasCreate", !cublasCreate_v2(&h));
	if (!strcmp(test, "bounds"))
		return cublasDscal_v2(h, 101, &two, device(NULL, 800), 1) != 13;
	if (!strcmp(test, "refused"))
		return cublasSgetrfBatched(h) != 15 || cufftXtMalloc(0) != 16
			|| cublasGetProperty(0, &version) != 99;
	if (!strcmp(test, "race") || !strcmp(test, "fixed")) {
		race(h, argv[2], !strcmp(test, "fixed"));
		return 0;
	}
	products(h);
	levels(h);
	stored(h);
	hermitian(h);
	transforms();
	return cublasDestroy_v2(h) || cublasDestroy_v2(h) != 1;
}
