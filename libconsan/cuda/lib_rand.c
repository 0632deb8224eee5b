/* lib_rand: cuRAND by its own generators for the host, whose sequences are those of the device. A
 * generator for the device is one for the host here, and calls take their turn on its stream. */
#include "library.h"

#include <stdlib.h>

#define CALL(name, ...) \
	__attribute__((visibility("default"))) int name(__VA_ARGS__); \
	int name(__VA_ARGS__)

enum { /* curandStatus_t */
	RAND_SUCCESS = 0,
	RAND_NOT_INITIALIZED = 101,
	RAND_LAUNCH_FAILURE = 201,
	RAND_NO_LIBRARY = 203,
};

struct generator { void *stream; };

static void *own(const char *name)
{
	void *function = library_own("libcurand.so", name);

	if (!function)
		library_refused(name, "(its library is linked statically)");
	return function;
}

CALL(curandCreateGenerator, void **out, int type)
{
	int (*create)(void **out, int type) =
		(int (*)(void **, int))own("curandCreateGeneratorHost");
	struct generator *g;
	int status;

	if (device_ready())
		return RAND_NOT_INITIALIZED;
	status = create ? create(out, type) : RAND_NO_LIBRARY;
	if (status)
		return status;
	g = base_alloc(sizeof *g);
	*g = (struct generator){ NULL };
	handle_put(*out, HANDLE_RAND, g);
	return RAND_SUCCESS;
}

CALL(curandDestroyGenerator, void *generator)
{
	int (*destroy)(void *generator) = (int (*)(void *))own("curandDestroyGenerator");
	struct generator *g = handle_get(generator, HANDLE_RAND);

	if (g) {
		library_wait(g->stream);
		handle_drop(generator, HANDLE_RAND);
		free(g);
	}
	return destroy ? destroy(generator) : RAND_NO_LIBRARY;
}

/* The library's own function would accept the stream, but never use it. */
CALL(curandSetStream, void *generator, void *stream)
{
	int (*set)(void *generator, void *stream) = (int (*)(void *, void *))own("curandSetStream");
	struct generator *g = handle_get(generator, HANDLE_RAND);

	if (!g)
		return set ? set(generator, stream) : RAND_NO_LIBRARY;
	g->stream = stream;
	return RAND_SUCCESS;
}

/* ---- generation ---- */

enum shape { PLAIN, MEAN_FLOATS, MEAN_DOUBLES, COUNTS };
struct generation {
	struct library_call call;
	void *function, *generator, *to;
	enum shape shape;
	size_t n;
	double a, b;                 /* mean and deviation, or the rate */
};

static int generate(const struct generation *g)
{
	switch (g->shape) {
	case PLAIN:
		return ((int (*)(void *, void *, size_t))g->function)(g->generator, g->to, g->n);
	case MEAN_FLOATS:
		return ((int (*)(void *, void *, size_t, float, float))g->function)(g->generator,
			g->to, g->n, (float)g->a, (float)g->b);
	case MEAN_DOUBLES:
		return ((int (*)(void *, void *, size_t, double, double))g->function)(g->generator,
			g->to, g->n, g->a, g->b);
	case COUNTS:
		return ((int (*)(void *, void *, size_t, double))g->function)(g->generator, g->to,
			g->n, g->a);
	}
	return RAND_LAUNCH_FAILURE;
}

static void run(struct library_call *call)
{
	generate((const struct generation *)call);
}

/* bytes: of a number */
static int issue(const char *name, void *generator, void *to, size_t n, size_t bytes,
	enum shape shape, double a, double b)
{
	struct generation g = { .call = { .name = name, .run = run },
		.function = own(name),
		.generator = generator,
		.to = to,
		.shape = shape,
		.n = n,
		.a = a,
		.b = b };
	const struct generator *known = handle_get(generator, HANDLE_RAND);

	if (!g.function)
		return RAND_NO_LIBRARY;
	if (!known) /* a generator for the host, or none */
		return generate(&g);
	g.call.stream = known->stream;
	library_span(&g.call, true, to, n * bytes, 0, 1, 0, 1);
	return library_issue(&g.call, sizeof g) ? RAND_LAUNCH_FAILURE : RAND_SUCCESS;
}

CALL(curandGenerateSeeds, void *generator)
{
	int (*seeds)(void *generator) = (int (*)(void *))own("curandGenerateSeeds");

	return seeds ? seeds(generator) : RAND_NO_LIBRARY;
}

#define NUMBERS(name, type) \
	CALL(name, void *generator, type *to, size_t n) \
	{ return issue(__func__, generator, to, n, sizeof *to, PLAIN, 0, 0); }
NUMBERS(curandGenerate, uint32_t)
NUMBERS(curandGenerateLongLong, uint64_t)
NUMBERS(curandGenerateUniform, float)
NUMBERS(curandGenerateUniformDouble, double)

#define WITH_MEAN(name, type, shape) \
	CALL(name, void *generator, type *to, size_t n, type mean, type deviation) \
	{ return issue(__func__, generator, to, n, sizeof *to, shape, mean, deviation); }
WITH_MEAN(curandGenerateNormal, float, MEAN_FLOATS)
WITH_MEAN(curandGenerateNormalDouble, double, MEAN_DOUBLES)
WITH_MEAN(curandGenerateLogNormal, float, MEAN_FLOATS)
WITH_MEAN(curandGenerateLogNormalDouble, double, MEAN_DOUBLES)

CALL(curandGeneratePoisson, void *generator, uint32_t *to, size_t n, double rate)
{
	return issue(__func__, generator, to, n, sizeof *to, COUNTS, rate, 0);
}
