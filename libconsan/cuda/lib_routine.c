/* lib_routine: see lib_routine.h. */
#include "lib_routine.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

int routine_begin(struct routine *r, const char *name, const char *function, const struct blas *b,
	int type, void (*run)(struct library_call *))
{
	if (!b)
		return BLAS_NOT_INITIALIZED;
	r->call = (struct library_call){ .name = name, .stream = b->stream, .run = run };
	r->type = type;
	if (!function)
		return BLAS_SUCCESS;
	r->function = host_function(HOST_BLAS, function);
	if (!r->function)
		library_refused(name, "(there is no BLAS with it)");
	return r->function ? BLAS_SUCCESS : BLAS_NOT_SUPPORTED;
}

int routine_put(struct library_call *call, size_t bytes, const int64_t *number, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (number[i] > INT_MAX || number[i] < -INT_MAX) {
			library_refused(call->name, "for sizes of more than 31 bits");
			return BLAS_NOT_SUPPORTED;
		}
	return blas_status(library_issue(call, bytes));
}

/* ---- the arguments ---- */

static char flag_of(char kind, int value)
{
	static const struct { char kind, letter[3]; } flag[] = {
		{ 's', { 'L', 'R' } }, { 'u', { 'L', 'U' } }, { 'd', { 'N', 'U' } },
		{ 't', { 'N', 'T', 'C' } }, { 'y', { 'N', 'T' } }, { 'h', { 'N', [2] = 'C' } },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(flag); i++)
		if (flag[i].kind == kind)
			return value >= 0 && value < 3 ? flag[i].letter[value] : 0;
	return 0;
}

static const struct argument *find(const struct routine *r, char kind)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->arg[i].kind == kind)
			return r->arg + i;
	return NULL;
}

static int64_t number(const struct routine *r, char kind)
{
	const struct argument *a = find(r, kind);

	return a ? a->number : 0;
}

static char flag(const struct routine *r, char kind)
{
	const struct argument *a = find(r, kind);

	return a ? a->flag : 0;
}

static bool is_transposed(const struct routine *r)
{
	return flag(r, 't') == 'T' || flag(r, 't') == 'C';
}

static size_t scalar_bytes(const struct routine *r, char kind)
{
	const size_t bytes = element_bytes(r->type);

	return (kind == 'r' || kind == 'e') && element_is_complex(r->type) ? bytes / 2 : bytes;
}

/* Reads all arguments; the leading dimension or step of an operand is an argument of kind 'i' behind it. */
static bool read_arguments(struct routine *r, const struct blas *b, const char *shape, va_list ap)
{
	for (const char *c = shape; *c; c++) {
		struct argument *a = r->arg + r->n;

		if (*c == '!')
			continue;
		r->n++;
		*a = (struct argument){ .kind = *c };
		if (strchr("sutdyh", *c)) {
			a->kind = *c == 'y' || *c == 'h' ? 't' : *c;
			a->flag = flag_of(*c, va_arg(ap, int));
			if (!a->flag)
				return false;
		} else if (strchr("mnklv", *c)) {
			a->number = va_arg(ap, int64_t);
			if (a->number < 0)
				return false;
		} else if (strchr("abre", *c)) {
			a->at = va_arg(ap, const void *);
			if (!a->at)
				return false;
			a->scalar = scalar_of(b, a->at, scalar_bytes(r, *c));
		} else {
			a->at = va_arg(ap, const void *);
			if (*c != 'P')
				r->arg[r->n++] = (struct argument){ .kind = 'i',
					.number = va_arg(ap, int64_t) };
		}
	}
	return true;
}

/* ---- the operands ---- */

/* Of a matrix as it lies in memory. */
static void extent(const struct routine *r, char kind, int64_t *rows, int64_t *columns)
{
	const int64_t m = number(r, 'm'), n = number(r, 'n'), k = number(r, 'k');
	const bool right = flag(r, 's') == 'R';

	*columns = kind == 'S' && !right ? m : kind == 'O' && !is_transposed(r) ? k : n;
	*rows = kind == 'D' ? number(r, 'l') + number(r, 'v') + 1 : kind == 'E' ? k + 1
		: kind == 'T' ? n : kind == 'S' ? *columns : kind == 'O' ? (is_transposed(r) ? k : n) : m;
}

static int64_t length(const struct routine *r, char kind)
{
	const bool by_rows = find(r, 'm') && (kind == 'X') == is_transposed(r);

	return by_rows ? number(r, 'm') : number(r, 'n');
}

/* Are leading dimensions large enough, and steps not 0? Vectors of level 1 may have no step. */
static bool is_laid_out(const struct routine *r)
{
	const bool has_matrix = find(r, 'G') || find(r, 'D') || find(r, 'T') || find(r, 'E')
		|| find(r, 'P');
	int64_t rows, columns;

	for (unsigned i = 0; i + 1 < r->n; i++) {
		if (r->arg[i + 1].kind != 'i')
			continue;
		if (strchr("XY", r->arg[i].kind)) {
			if (has_matrix && !r->arg[i + 1].number)
				return false;
			continue;
		}
		extent(r, r->arg[i].kind, &rows, &columns);
		if (r->arg[i + 1].number < (rows > 1 ? rows : 1))
			return false;
	}
	return true;
}

static void note_operand(struct routine *r, const struct argument *a, bool write)
{
	const size_t bytes = element_bytes(r->type);
	const int64_t n = number(r, 'n'), step = a + 1 < r->arg + r->n ? a[1].number : 0;
	int64_t rows, columns;

	switch (a->kind) {
	case 'X': case 'Y':
		blas_vector(&r->call, write, a->at, length(r, a->kind), step, bytes);
		break;
	case 'P':
		blas_vector(&r->call, write, a->at, n * (n + 1) / 2, 1, bytes);
		break;
	case 'T': case 'S':
		extent(r, a->kind, &rows, &columns);
		blas_triangle(&r->call, write, a->at, flag(r, 'u') == 'U', flag(r, 'd') == 'U', rows,
			step, bytes);
		break;
	default:
		extent(r, a->kind, &rows, &columns);
		blas_matrix(&r->call, write, a->at, rows, columns, step, bytes);
	}
}

static bool is_zero(const struct routine *r, const struct argument *a)
{
	static const char zero[sizeof a->scalar.host];

	return a && !a->scalar.device && !memcmp(a->scalar.host, zero, scalar_bytes(r, a->kind));
}

/* With an alpha of 0 only the operand that is written counts. */
static void note_accesses(struct routine *r, const char *shape)
{
	const struct argument *alpha = find(r, 'a') ? find(r, 'a') : find(r, 'r');
	const bool nothing = alpha && is_zero(r, alpha);
	unsigned i = 0;

	for (const char *c = shape; *c; c++) {
		const struct argument *a = r->arg + i;

		if (*c == '!')
			continue;
		if (strchr("abre", *c) && a->scalar.device)
			library_span(&r->call, false, a->scalar.device, scalar_bytes(r, *c), 0, 1, 0, 1);
		if (strchr("GDTEPSORXY", *c) && (c[1] == '!' || !nothing))
			note_operand(r, a, c[1] == '!');
		i += strchr("GDTESORXY", *c) ? 2 : 1;
	}
}

/* ---- the call ---- */

static void run(struct library_call *call)
{
	const struct routine *r = (const struct routine *)call;
	P p[ROUTINE_ARGS] = { NULL };

	for (unsigned i = 0; i < r->n; i++) {
		const struct argument *a = r->arg + i;

		p[i] = strchr("sutd", a->kind) ? &a->flag : strchr("mnklvi", a->kind) ? (P)&a->number
			: strchr("abre", a->kind) ? scalar_at(&a->scalar) : a->at;
	}
	/* arguments that the routine does not have are not looked at */
	((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P))r->function)(p[0], p[1], p[2], p[3],
		p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13]);
}

int routine_issue(const char *name, const char *function, int type, const char *shape, void *handle, ...)
{
	struct routine r = { .n = 0 };
	const struct blas *b = blas_of(handle);
	int status = routine_begin(&r, name, function, b, type, run);
	int64_t all[ROUTINE_ARGS];
	bool fine;
	va_list ap;

	if (status)
		return status;
	va_start(ap, handle);
	fine = read_arguments(&r, b, shape, ap);
	va_end(ap);
	if (!fine || !is_laid_out(&r))
		return BLAS_INVALID_VALUE;
	if (!number(&r, 'n') || (find(&r, 'm') && !number(&r, 'm')))
		return BLAS_SUCCESS;
	note_accesses(&r, shape);
	for (unsigned i = 0; i < r.n; i++)
		all[i] = r.arg[i].number;
	return routine_put(&r.call, sizeof r, all, r.n);
}
