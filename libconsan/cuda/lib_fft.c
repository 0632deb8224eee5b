/* lib_fft: cuFFT by FFTW, whose layouts cuFFT has taken over. A plan of FFTW is made for each
 * execution, by estimation, as it is one for these addresses. */
#include "library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CALL(name, ...) \
	__attribute__((visibility("default"))) int name(__VA_ARGS__); \
	int name(__VA_ARGS__)

enum { /* cufftResult */
	FFT_SUCCESS = 0,
	FFT_INVALID_PLAN = 1,
	FFT_INVALID_TYPE = 3,
	FFT_INVALID_VALUE = 4,
	FFT_EXEC_FAILED = 6,
	FFT_INVALID_SIZE = 8,
	FFT_NOT_SUPPORTED = 16,
};
enum { /* cufftType: bit 6 is set for doubles */
	R2C = 0x2a,
	C2R = 0x2c,
	C2C = 0x29,
	DOUBLES = 0x40,
	D2Z = R2C | DOUBLES,
	Z2D = C2R | DOUBLES,
	Z2Z = C2C | DOUBLES,
};
enum { RANKS = 3 };

/* Where the elements of input or output are: as FFTW's nembed, stride and dist. */
struct layout { bool basic; int embed[RANKS], stride, distance; };
struct plan {
	int type, rank, n[RANKS], batch;
	struct layout in, out;
	void *stream;
};
struct transform { struct library_call call; struct plan plan; void *in, *out; int direction; };

static struct plan *plan_of(int handle)
{
	return handle > 0 ? handle_get((void *)(intptr_t)handle, HANDLE_FFT) : NULL;
}

/* ---- plans ---- */

CALL(cufftCreate, int *out)
{
	static _Atomic int number;
	struct plan *p;

	if (!out)
		return FFT_INVALID_VALUE;
	p = base_alloc(sizeof *p);
	*p = (struct plan){ .rank = 0 };
	*out = ++number;
	handle_put((void *)(intptr_t)*out, HANDLE_FFT, p);
	return FFT_SUCCESS;
}

CALL(cufftDestroy, int handle)
{
	struct plan *p = plan_of(handle);

	if (!p || !handle_drop((void *)(intptr_t)handle, HANDLE_FFT))
		return FFT_INVALID_PLAN;
	free(p);
	return FFT_SUCCESS;
}

static bool is_type(int type)
{
	return (type & ~DOUBLES) == R2C || (type & ~DOUBLES) == C2R || (type & ~DOUBLES) == C2C;
}

static bool set_layout(struct layout *l, int rank, const long long *embed, long long stride,
	long long distance)
{
	*l = (struct layout){ .basic = !embed };
	for (int k = 0; embed && k < rank; k++) {
		if (embed[k] < 1 || embed[k] > INT32_MAX)
			return false;
		l->embed[k] = (int)embed[k];
	}
	if (embed && (stride < 1 || stride > INT32_MAX || distance < 0 || distance > INT32_MAX))
		return false;
	l->stride = (int)stride;
	l->distance = (int)distance;
	return true;
}

static int make(int handle, int rank, const long long *n, const long long *in_embed,
	long long in_stride, long long in_distance, const long long *out_embed,
	long long out_stride, long long out_distance, int type, long long batch, size_t *work)
{
	struct plan *p = plan_of(handle);
	struct plan made = { .type = type, .rank = rank, .batch = (int)batch };

	if (!p)
		return FFT_INVALID_PLAN;
	if (!is_type(type))
		return FFT_INVALID_TYPE;
	if (rank < 1 || rank > RANKS || !n || batch < 1 || batch > INT32_MAX)
		return FFT_INVALID_VALUE;
	for (int k = 0; k < rank; k++) {
		if (n[k] < 1 || n[k] > INT32_MAX)
			return FFT_INVALID_SIZE;
		made.n[k] = (int)n[k];
	}
	if (!in_embed || !out_embed) /* either: both are the basic layout */
		in_embed = out_embed = NULL;
	if (!set_layout(&made.in, rank, in_embed, in_stride, in_distance)
			|| !set_layout(&made.out, rank, out_embed, out_stride, out_distance))
		return FFT_INVALID_VALUE;
	made.stream = p->stream;
	*p = made;
	if (work)
		*work = 0;
	return FFT_SUCCESS;
}

CALL(cufftMakePlanMany64, int handle, int rank, long long *n, long long *in_embed,
	long long in_stride, long long in_distance, long long *out_embed, long long out_stride,
	long long out_distance, int type, long long batch, size_t *work)
{
	return make(handle, rank, n, in_embed, in_stride, in_distance, out_embed, out_stride,
		out_distance, type, batch, work);
}

static const long long *wide(long long to[RANKS], const int *from, int rank)
{
	for (int k = 0; from && k < rank && k < RANKS; k++)
		to[k] = from[k];
	return from ? to : NULL;
}

CALL(cufftMakePlanMany, int handle, int rank, int *n, int *in_embed, int in_stride, int in_distance,
	int *out_embed, int out_stride, int out_distance, int type, int batch, size_t *work)
{
	long long size[RANKS], in[RANKS], out[RANKS];

	return make(handle, rank, wide(size, n, rank), wide(in, in_embed, rank), in_stride,
		in_distance, wide(out, out_embed, rank), out_stride, out_distance, type, batch,
		work);
}

/* Types are cudaDataType: single and double, real and complex. */
CALL(cufftXtMakePlanMany, int handle, int rank, long long *n, long long *in_embed,
	long long in_stride, long long in_distance, int in_type, long long *out_embed,
	long long out_stride, long long out_distance, int out_type, long long batch, size_t *work,
	int execution)
{
	static const struct { int in, out, type;
	} row[] = {
		{ 4, 4, C2C },
		{ 0, 4, R2C },
		{ 4, 0, C2R },
		{ 5, 5, Z2Z },
		{ 1, 5, D2Z },
		{ 5, 1, Z2D },
	};

	for (size_t k = 0; k < ARRAY_SIZE(row); k++)
		if (row[k].in == in_type && row[k].out == out_type)
			return make(handle, rank, n, in_embed, in_stride, in_distance, out_embed,
				out_stride, out_distance, row[k].type, batch, work);
	library_refused(__func__, "for these types");
	return FFT_NOT_SUPPORTED;
}

CALL(cufftMakePlan1d, int handle, int nx, int type, int batch, size_t *work)
{
	return make(handle, 1, (long long[]){ nx }, NULL, 1, 0, NULL, 1, 0, type, batch, work);
}

CALL(cufftMakePlan2d, int handle, int nx, int ny, int type, size_t *work)
{
	return make(handle, 2, (long long[]){ nx, ny }, NULL, 1, 0, NULL, 1, 0, type, 1, work);
}

CALL(cufftMakePlan3d, int handle, int nx, int ny, int nz, int type, size_t *work)
{
	return make(handle, 3, (long long[]){ nx, ny, nz }, NULL, 1, 0, NULL, 1, 0, type, 1, work);
}

/* Makes a plan with a new handle. */
#define PLAN(made) \
	int status = cufftCreate(out); \
	if (status) \
		return status; \
	status = made; \
	if (status) \
		cufftDestroy(*out); \
	return status

CALL(cufftPlan1d, int *out, int nx, int type, int batch)
{
	PLAN(cufftMakePlan1d(*out, nx, type, batch, NULL));
}

CALL(cufftPlan2d, int *out, int nx, int ny, int type)
{
	PLAN(cufftMakePlan2d(*out, nx, ny, type, NULL));
}

CALL(cufftPlan3d, int *out, int nx, int ny, int nz, int type)
{
	PLAN(cufftMakePlan3d(*out, nx, ny, nz, type, NULL));
}

CALL(cufftPlanMany, int *out, int rank, int *n, int *in_embed, int in_stride, int in_distance,
	int *out_embed, int out_stride, int out_distance, int type, int batch)
{
	PLAN(cufftMakePlanMany(*out, rank, n, in_embed, in_stride, in_distance, out_embed,
		out_stride, out_distance, type, batch, NULL));
}

/* No device memory is needed beside the operands. */
static int no_work(size_t *work)
{
	if (!work)
		return FFT_INVALID_VALUE;
	*work = 0;
	return FFT_SUCCESS;
}

CALL(cufftEstimate1d, int nx, int type, int batch, size_t *work)
{
	return no_work(work);
}

CALL(cufftEstimate2d, int nx, int ny, int type, size_t *work)
{
	return no_work(work);
}

CALL(cufftEstimate3d, int nx, int ny, int nz, int type, size_t *work)
{
	return no_work(work);
}

CALL(cufftEstimateMany, int rank, int *n, int *in_embed, int in_stride, int in_distance,
	int *out_embed, int out_stride, int out_distance, int type, int batch, size_t *work)
{
	return no_work(work);
}

CALL(cufftGetSize, int handle, size_t *work)
{
	return plan_of(handle) ? no_work(work) : FFT_INVALID_PLAN;
}

CALL(cufftSetWorkArea, int handle, void *work)
{
	return plan_of(handle) ? FFT_SUCCESS : FFT_INVALID_PLAN;
}

CALL(cufftSetAutoAllocation, int handle, int automatic)
{
	return plan_of(handle) ? FFT_SUCCESS : FFT_INVALID_PLAN;
}

CALL(cufftSetStream, int handle, void *stream)
{
	struct plan *p = plan_of(handle);

	if (!p)
		return FFT_INVALID_PLAN;
	p->stream = stream;
	return FFT_SUCCESS;
}

/* ---- execution ---- */

/* The basic layout has no gaps, but that real numbers transformed in place have the room of the
 * complex ones. complex: of this side; halved: the last dimension of complex numbers is n/2 + 1. */
static struct layout layout_of(const struct plan *p, const struct layout *given, bool complex,
	bool in_place)
{
	const bool real = (p->type & ~DOUBLES) != C2C;
	const int last = p->n[p->rank - 1];
	struct layout l = *given;

	if (!l.basic)
		return l;
	memcpy(l.embed, p->n, sizeof l.embed);
	if (real && complex)
		l.embed[p->rank - 1] = last / 2 + 1;
	else if (real && in_place)
		l.embed[p->rank - 1] = 2 * (last / 2 + 1);
	l.stride = l.distance = 1;
	for (int k = 0; k < p->rank; k++)
		l.distance *= l.embed[k];
	return l;
}

static size_t element(const struct plan *p, bool complex)
{
	return (p->type & DOUBLES ? sizeof(double) : sizeof(float)) * (complex ? 2 : 1);
}

/* Bytes from the first to the last element of one transform. */
static size_t extent(const struct plan *p, const struct layout *l, bool complex)
{
	size_t last = 0, step = (size_t)l->stride;

	for (int k = p->rank - 1; k >= 0; k--) {
		bool halved = complex && k == p->rank - 1 && (p->type & ~DOUBLES) != C2C;

		last += step * (size_t)(halved ? p->n[k] / 2 : p->n[k] - 1);
		step *= (size_t)l->embed[k];
	}
	return (last + 1) * element(p, complex);
}

static void note(struct transform *t, bool write, const void *at, const struct layout *l,
	bool complex)
{
	size_t bytes = extent(&t->plan, l, complex);
	size_t step = (size_t)l->distance * element(&t->plan, complex);
	size_t batch = (size_t)t->plan.batch;

	if (step >= bytes || batch == 1)
		library_span(&t->call, write, at, bytes, 0, 1, step, batch);
	else /* the transforms lie between each other */
		library_span(&t->call, write, at, (batch - 1) * step + bytes, 0, 1, 0, 1);
}

static bool complex_in(const struct plan *p)
{
	return (p->type & ~DOUBLES) != R2C;
}

static bool complex_out(const struct plan *p)
{
	return (p->type & ~DOUBLES) != C2R;
}

typedef void *plan_complex(int rank, const int *n, int batch, void *in, const int *in_embed,
	int in_stride, int in_distance, void *out, const int *out_embed, int out_stride,
	int out_distance, int sign, unsigned flags);
typedef void *plan_real(int rank, const int *n, int batch, void *in, const int *in_embed,
	int in_stride, int in_distance, void *out, const int *out_embed, int out_stride,
	int out_distance, unsigned flags);
typedef void use_plan(void *plan);

static void *fftw(const struct plan *p, const char *name)
{
	char symbol[64];

	snprintf(symbol, sizeof symbol, "%s_%s", p->type & DOUBLES ? "fftw" : "fftwf", name);
	return host_function(p->type & DOUBLES ? HOST_FFT : HOST_FFTF, symbol);
}

static void *plan_fftw(const struct transform *t, void *in, const struct layout *i,
	const struct layout *o)
{
	enum { UNALIGNED = 1 << 1, ESTIMATE = 1 << 6 };
	const struct plan *p = &t->plan;
	const int kind = p->type & ~DOUBLES;

	if (kind == C2C)
		return ((plan_complex *)fftw(p, "plan_many_dft"))(p->rank, p->n, p->batch, in,
			i->embed, i->stride, i->distance, t->out, o->embed, o->stride, o->distance,
			t->direction, ESTIMATE | UNALIGNED);
	return ((plan_real *)fftw(p,
		kind == R2C ? "plan_many_dft_r2c" : "plan_many_dft_c2r"))(p->rank, p->n, p->batch,
		in, i->embed, i->stride, i->distance, t->out, o->embed, o->stride, o->distance,
		ESTIMATE | UNALIGNED);
}

static void run(struct library_call *call)
{
	static pthread_mutex_t planning = PTHREAD_MUTEX_INITIALIZER;
	const struct transform *t = (const struct transform *)call;
	const struct plan *p = &t->plan;
	const bool in_place = t->in == t->out;
	const struct layout i = layout_of(p, &p->in, complex_in(p), in_place);
	const struct layout o = layout_of(p, &p->out, complex_out(p), in_place);
	size_t bytes = (size_t)(p->batch - 1) * (size_t)i.distance * element(p, complex_in(p))
		+ extent(p, &i, complex_in(p));
	void *in = t->in, *made;

	if (!in_place) { /* FFTW overwrites the input of c2r */
		in = base_alloc(bytes);
		memcpy(in, t->in, bytes);
	}
	pthread_mutex_lock(&planning);
	made = plan_fftw(t, in, &i, &o);
	pthread_mutex_unlock(&planning);
	if (made) {
		((use_plan *)fftw(p, "execute"))(made);
		pthread_mutex_lock(&planning);
		((use_plan *)fftw(p, "destroy_plan"))(made);
		pthread_mutex_unlock(&planning);
	} else {
		library_refused(t->call.name, "with this layout");
	}
	if (!in_place)
		free(in);
}

/* type: 0 for any */
static int execute(const char *name, int handle, int type, void *in, void *out, int direction)
{
	const struct plan *p = plan_of(handle);
	struct transform t = { .call = { .name = name, .run = run },
		.in = in,
		.out = out,
		.direction = direction };
	struct layout i, o;

	if (!p || !p->rank)
		return FFT_INVALID_PLAN;
	if (type && p->type != type)
		return FFT_INVALID_TYPE;
	if (direction != 1 && direction != -1)
		return FFT_INVALID_VALUE;
	t.plan = *p;
	t.call.stream = p->stream;
	i = layout_of(p, &p->in, complex_in(p), in == out);
	o = layout_of(p, &p->out, complex_out(p), in == out);
	note(&t, false, in, &i, complex_in(p));
	note(&t, true, out, &o, complex_out(p));
	if (!fftw(p, "execute"))
		return FFT_NOT_SUPPORTED;
	return library_issue(&t.call, sizeof t) ? FFT_EXEC_FAILED : FFT_SUCCESS;
}

CALL(cufftExecC2C, int handle, void *in, void *out, int direction)
{
	return execute(__func__, handle, C2C, in, out, direction);
}

CALL(cufftExecZ2Z, int handle, void *in, void *out, int direction)
{
	return execute(__func__, handle, Z2Z, in, out, direction);
}

CALL(cufftExecR2C, int handle, void *in, void *out)
{
	return execute(__func__, handle, R2C, in, out, -1);
}

CALL(cufftExecD2Z, int handle, void *in, void *out)
{
	return execute(__func__, handle, D2Z, in, out, -1);
}

CALL(cufftExecC2R, int handle, void *in, void *out)
{
	return execute(__func__, handle, C2R, in, out, 1);
}

CALL(cufftExecZ2D, int handle, void *in, void *out)
{
	return execute(__func__, handle, Z2D, in, out, 1);
}

CALL(cufftXtExec, int handle, void *in, void *out, int direction)
{
	return execute(__func__, handle, 0, in, out, direction);
}
