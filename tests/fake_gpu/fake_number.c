#include "tests/fake_gpu/fake_number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

size_t fake_type_bytes(int type)
{
	static const unsigned char bytes[FAKE_TYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return type >= 0 && type < FAKE_TYPES ? bytes[type] : 0;
}

/* ---- small floating point -------------------------------------------------------------------- */

/*
 * A format by its bits below the sign. Values above `most` become infinity or, if there is none (or as CUDA
 * rounds), the largest number.
 */
struct small {
	int mantissa;
	int bias;
	uint32_t most;
	uint32_t overflow;
	uint32_t nan;
	int sign;
};

static const struct small *small_of(int type)
{
	static const struct small half = { 10, 15, 0x7bff, 0x7c00, 0x7e00, 15 };
	static const struct small brain = { 7, 127, 0x7f7f, 0x7f80, 0x7fc0, 15 };
	static const struct small e4m3 = { 3, 7, 0x7e, 0x7e, 0x7f, 7 };
	static const struct small e5m2 = { 2, 15, 0x7b, 0x7b, 0x7e, 7 };

	switch (type) {
	case FAKE_FLOAT16:
		return &half;
	case FAKE_BFLOAT16:
		return &brain;
	case FAKE_FLOAT8_E4M3:
		return &e4m3;
	default:
		return &e5m2;
	}
}

enum { DOUBLE_MANTISSA = 52, DOUBLE_BIAS = 1023 };

static double small_read(const struct small *format, uint32_t bits)
{
	uint64_t code = bits & ((1u << format->sign) - 1), wide;
	int exponent = (int)(code >> format->mantissa);
	uint64_t mantissa = code & ((1u << format->mantissa) - 1);
	double value;

	wide = (uint64_t)(exponent - format->bias + DOUBLE_BIAS) << DOUBLE_MANTISSA |
	       mantissa << (DOUBLE_MANTISSA - format->mantissa);
	memcpy(&value, &wide, sizeof(value));
	if (code > format->most)
		value = code == format->overflow ? HUGE_VAL : NAN;
	else if (exponent == 0)
		value = ldexp((double)mantissa, 1 - format->bias - format->mantissa);
	return bits >> format->sign & 1 ? -value : value;
}

/* Round to nearest, ties to even. */
static uint32_t small_write(const struct small *format, double value)
{
	int exponent, least = 1 - format->bias, shift = DOUBLE_MANTISSA - format->mantissa;
	uint32_t sign = (signbit(value) ? 1u : 0u) << format->sign;
	uint64_t wide, kept, rest, half;

	if (isnan(value))
		return format->nan;
	memcpy(&wide, &value, sizeof(wide));
	exponent = (int)(wide >> DOUBLE_MANTISSA & 0x7ff) - DOUBLE_BIAS;
	if (exponent < least) {
		shift += least - exponent;
		exponent = least;
	}
	if (shift > DOUBLE_MANTISSA + 1)
		return sign; /* less than half of the smallest */
	wide = (wide & ((UINT64_C(1) << DOUBLE_MANTISSA) - 1)) | UINT64_C(1) << DOUBLE_MANTISSA;
	half = UINT64_C(1) << (shift - 1);
	kept = wide >> shift;
	rest = wide & (2 * half - 1);
	kept += rest > half || (rest == half && (kept & 1));
	kept += (uint64_t)(exponent - least) << format->mantissa;
	return sign | (kept > format->most ? format->overflow : (uint32_t)kept);
}

/* ---- floating point -------------------------------------------------------------------------- */

static inline double real_read(int type, const void *from, size_t i)
{
	uint16_t two;

	switch (type) {
	case FAKE_FLOAT32:
		return ((const float *)from)[i];
	case FAKE_FLOAT64:
		return ((const double *)from)[i];
	case FAKE_FLOAT8_E4M3:
	case FAKE_FLOAT8_E5M2:
		return small_read(small_of(type), ((const uint8_t *)from)[i]);
	default:
		memcpy(&two, (const char *)from + 2 * i, 2);
		return small_read(small_of(type), two);
	}
}

static inline void real_write(int type, void *to, size_t i, double value)
{
	uint16_t two;

	switch (type) {
	case FAKE_FLOAT32:
		((float *)to)[i] = (float)value;
		break;
	case FAKE_FLOAT64:
		((double *)to)[i] = value;
		break;
	case FAKE_FLOAT8_E4M3:
	case FAKE_FLOAT8_E5M2:
		((uint8_t *)to)[i] = (uint8_t)small_write(small_of(type), value);
		break;
	default:
		two = (uint16_t)small_write(small_of(type), value);
		memcpy((char *)to + 2 * i, &two, 2);
	}
}

static inline double real_round(int type, double value)
{
	uint64_t room;

	real_write(type, &room, 0, value);
	return real_read(type, &room, 0);
}

static inline double real_step(int op, double left, double right)
{
	switch (op) {
	case FAKE_PROD:
		return left * right;
	case FAKE_MAX:
		return fmax(left, right);
	case FAKE_MIN:
		return fmin(left, right);
	default:
		return left + right;
	}
}

static inline double real_fold(int type, int op, const void *const *inputs, size_t inputs_count,
			       size_t i)
{
	double share = op == FAKE_AVG ? real_round(type, 1.0 / (double)inputs_count) : 1;
	double value = 0;

	for (size_t input = 0; input < inputs_count; input++) {
		double next = real_read(type, inputs[input], i);

		if (op == FAKE_AVG)
			next = real_round(type, next * share);
		value = input == 0 ? next : real_round(type, real_step(op, value, next));
	}
	return value;
}

/* ---- integers -------------------------------------------------------------------------------- */

static bool is_signed(int type)
{
	return type == FAKE_INT8 || type == FAKE_INT32 || type == FAKE_INT64;
}

/* Widened to 64 bits, sign-extended if signed. */
static uint64_t whole_read(int type, const void *from, size_t i)
{
	size_t bytes = fake_type_bytes(type);
	unsigned int unused = 64 - 8 * (unsigned int)bytes;
	uint64_t value = 0;

	memcpy(&value, (const char *)from + i * bytes, bytes);
	return is_signed(type) ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

static bool whole_is_less(int type, uint64_t left, uint64_t right)
{
	return is_signed(type) ? (int64_t)left < (int64_t)right : left < right;
}

static uint64_t whole_step(int type, int op, uint64_t left, uint64_t right)
{
	switch (op) {
	case FAKE_PROD:
		return left * right;
	case FAKE_MAX:
		return whole_is_less(type, left, right) ? right : left;
	case FAKE_MIN:
		return whole_is_less(type, left, right) ? left : right;
	default:
		return left + right;
	}
}

static uint64_t whole_fold(int type, int op, const void *const *inputs, size_t inputs_count,
			   size_t i)
{
	uint64_t value = whole_read(type, inputs[0], i);

	for (size_t input = 1; input < inputs_count; input++) {
		value = whole_step(type, op, value, whole_read(type, inputs[input], i));
		value = whole_read(type, &value, 0); /* wraps around in its own width */
	}
	if (op != FAKE_AVG)
		return value;
	return is_signed(type) ? (uint64_t)((int64_t)value / (int64_t)inputs_count)
			       : value / inputs_count;
}

/* With a constant type, which most data has, there is nothing to decide for each element. */
static inline void reals_fold(int type, int op, void *into, const void *const *inputs,
			      size_t input_count, size_t count)
{
	for (size_t i = 0; i < count; i++)
		real_write(type, into, i, real_fold(type, op, inputs, input_count, i));
}

void fake_fold(int type, int op, void *into, const void *const *inputs, size_t input_count,
	       size_t count)
{
	size_t bytes = fake_type_bytes(type);

	if (type == FAKE_FLOAT32 && op == FAKE_SUM) {
		reals_fold(FAKE_FLOAT32, FAKE_SUM, into, inputs, input_count, count);
		return;
	}
	if (type >= FAKE_FLOAT16) {
		reals_fold(type, op, into, inputs, input_count, count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t value = whole_fold(type, op, inputs, input_count, i);

		memcpy((char *)into + i * bytes, &value, bytes);
	}
}
