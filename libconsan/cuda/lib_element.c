/* lib_element: elements of matrices in all types of cuBLAS, as numbers. */
#include "lib_blas.h"

#include <math.h>
#include <string.h>

size_t element_bytes(int type)
{
	switch (type) {
	case EL_I8: case EL_U8: case EL_E4M3: case EL_E5M2:
		return 1;
	case EL_R16: case EL_BF16:
		return 2;
	case EL_R32: case EL_I32:
		return 4;
	case EL_R64: case EL_C32:
		return 8;
	case EL_C64:
		return 16;
	}
	return 0;
}

bool element_is_complex(int type)
{
	return type == EL_C32 || type == EL_C64;
}

static float of_bits(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

/* An 8-bit float of this many bits of mantissa. e4m3 has no infinity, and one NaN. */
static float of_f8(uint8_t v, unsigned mantissa, int bias, bool finite)
{
	unsigned exponent = (v & 0x7f) >> mantissa, fraction = v & ((1u << mantissa) - 1);
	unsigned all = 0x7f >> mantissa;
	float f;

	if (exponent == all && (!finite || fraction == (1u << mantissa) - 1))
		f = fraction ? NAN : INFINITY;
	else if (exponent)
		f = ldexpf(1 + ldexpf((float)fraction, -(int)mantissa), (int)exponent - bias);
	else
		f = ldexpf((float)fraction, 1 - bias - (int)mantissa);
	return v & 0x80 ? -f : f;
}

double complex element_load(int type, const void *at, size_t i)
{
	switch (type) {
	case EL_R32:
		return ((const float *)at)[i];
	case EL_R64:
		return ((const double *)at)[i];
	case EL_R16:
		return (double)((const _Float16 *)at)[i];
	case EL_BF16:
		return of_bits((uint32_t)((const uint16_t *)at)[i] << 16);
	case EL_I8:
		return ((const int8_t *)at)[i];
	case EL_U8:
		return ((const uint8_t *)at)[i];
	case EL_I32:
		return ((const int32_t *)at)[i];
	case EL_C32:
		return ((const float complex *)at)[i];
	case EL_C64:
		return ((const double complex *)at)[i];
	case EL_E4M3:
		return of_f8(((const uint8_t *)at)[i], 3, 7, true);
	case EL_E5M2:
		return of_f8(((const uint8_t *)at)[i], 2, 15, false);
	}
	return NAN;
}

static uint16_t to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	if (isnan(f))
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double cut(double v, double low, double high)
{
	return fmin(fmax(rint(v), low), high);
}

void element_store(int type, void *at, size_t i, double complex value)
{
	double v = creal(value);

	switch (type) {
	case EL_R32:
		((float *)at)[i] = (float)v;
		break;
	case EL_R64:
		((double *)at)[i] = v;
		break;
	case EL_R16:
		((_Float16 *)at)[i] = (_Float16)(float)v;
		break;
	case EL_BF16:
		((uint16_t *)at)[i] = to_bf16((float)v);
		break;
	case EL_I8:
		((int8_t *)at)[i] = (int8_t)cut(v, -128, 127);
		break;
	case EL_U8:
		((uint8_t *)at)[i] = (uint8_t)cut(v, 0, 255);
		break;
	case EL_I32:
		((int32_t *)at)[i] = (int32_t)cut(v, INT32_MIN, INT32_MAX);
		break;
	case EL_C32:
		((float complex *)at)[i] = (float complex)value;
		break;
	case EL_C64:
		((double complex *)at)[i] = value;
		break;
	}
}
