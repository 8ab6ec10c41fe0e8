#include "programs/bench/bench_number.h"

#include <math.h>

#include "common/op_layout.h"

struct number_form {
	int mantissa_bits; /* 0: whole numbers */
	int bias;
	uint64_t finite_most; /* bits of the greatest finite number */
	uint64_t top;
};

static const struct number_form forms[OP_DATATYPES] = {
	[OP_INT8] = { 0, 0, 0, INT8_MAX },
	[OP_UINT8] = { 0, 0, 0, UINT8_MAX },
	[OP_INT32] = { 0, 0, 0, INT32_MAX },
	[OP_UINT32] = { 0, 0, 0, UINT32_MAX },
	[OP_INT64] = { 0, 0, 0, INT64_MAX },
	[OP_UINT64] = { 0, 0, 0, UINT64_MAX },
	[OP_FLOAT16] = { 10, 15, 0x7bff, 1u << 11 },
	[OP_FLOAT32] = { 23, 127, 0x7f7fffff, 1u << 24 },
	[OP_FLOAT64] = { 52, 1023, 0x7fefffffffffffff, UINT64_C(1) << 53 },
	[OP_BFLOAT16] = { 7, 127, 0x7f7f, 1u << 8 },
	[OP_FLOAT8_E4M3] = { 3, 7, 0x7e, 1u << 4 },
	[OP_FLOAT8_E5M2] = { 2, 15, 0x7b, 1u << 3 },
};

static const struct number_form *form_of(uint8_t datatype)
{
	return &forms[datatype < OP_DATATYPES ? datatype : OP_DATATYPE_UNKNOWN];
}

bool number_is_float(uint8_t datatype)
{
	return form_of(datatype)->mantissa_bits > 0;
}

uint64_t number_top(uint8_t datatype)
{
	return form_of(datatype)->top;
}

uint64_t number_bits(uint8_t datatype, uint64_t whole)
{
	return number_is_float(datatype) ? number_below(datatype, (double)whole) : whole;
}

double number_value(uint8_t datatype, uint64_t bits)
{
	const struct number_form *form = form_of(datatype);
	uint64_t one = UINT64_C(1) << form->mantissa_bits;
	uint64_t mantissa = bits & (one - 1);
	int exponent = (int)(bits >> form->mantissa_bits);

	if (exponent == 0) /* subnormal */
		return ldexp((double)mantissa, 1 - form->bias - form->mantissa_bits);
	return ldexp((double)(one + mantissa), exponent - form->bias - form->mantissa_bits);
}

uint64_t number_below(uint8_t datatype, double value)
{
	const struct number_form *form = form_of(datatype);
	int bits = form->mantissa_bits, exponent;
	double fraction;
	uint64_t below;

	if (!(value > 0))
		return 0;
	fraction = frexp(value, &exponent); /* in [1/2, 1) */
	exponent += form->bias - 1;
	if (exponent < 1) /* subnormal */
		below = (uint64_t)ldexp(value, form->bias - 1 + bits);
	else
		below = ((uint64_t)exponent << bits) + (uint64_t)ldexp(2 * fraction - 1, bits);
	return below < form->finite_most ? below : form->finite_most;
}

uint64_t number_above(uint8_t datatype, double value)
{
	uint64_t bits = number_below(datatype, value);

	if (number_value(datatype, bits) < value && bits < form_of(datatype)->finite_most)
		bits++;
	return bits;
}

double number_rounding(uint8_t datatype)
{
	return ldexp(1, -form_of(datatype)->mantissa_bits - 1);
}

double number_least(uint8_t datatype)
{
	return number_value(datatype, 1);
}
