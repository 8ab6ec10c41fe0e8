/*
 * Numbers of NCCL's types as bits: non-negative ones only, whose bits order as their values do. By hand, as
 * the host has no half, bfloat16 or float8. Pure.
 */
#ifndef BENCH_NUMBER_H
#define BENCH_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

bool number_is_float(uint8_t datatype); /* enum op_datatype */

/* Up to here the type has every whole number. 0: no such type. */
uint64_t number_top(uint8_t datatype);

/* A whole number up to number_top(), as bits. */
uint64_t number_bits(uint8_t datatype, uint64_t whole);

/* Floating point types only. What finite, non-negative bits stand for; */
double number_value(uint8_t datatype, uint64_t bits);
/* the bits of the greatest number that is not above `value`, and of the least that is not below; within
 * what the type has. */
uint64_t number_below(uint8_t datatype, double value);
uint64_t number_above(uint8_t datatype, double value);
/* The half of the distance between 1 and the next number: what rounding may add, relatively; */
double number_rounding(uint8_t datatype);
/* and the least number above 0. */
double number_least(uint8_t datatype);

#endif
