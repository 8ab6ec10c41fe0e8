/* NCCL's types and operations, computed on the CPU. */
#ifndef FAKE_NUMBER_H
#define FAKE_NUMBER_H

#include <stddef.h>

enum fake_type { /* ncclDataType_t */
		 FAKE_INT8 = 0,
		 FAKE_UINT8 = 1,
		 FAKE_INT32 = 2,
		 FAKE_UINT32 = 3,
		 FAKE_INT64 = 4,
		 FAKE_UINT64 = 5,
		 FAKE_FLOAT16 = 6,
		 FAKE_FLOAT32 = 7,
		 FAKE_FLOAT64 = 8,
		 FAKE_BFLOAT16 = 9,
		 FAKE_FLOAT8_E4M3 = 10,
		 FAKE_FLOAT8_E5M2 = 11,
		 FAKE_TYPES = 12,
};

enum fake_op { /* ncclRedOp_t */
	       FAKE_SUM = 0,
	       FAKE_PROD = 1,
	       FAKE_MAX = 2,
	       FAKE_MIN = 3,
	       FAKE_AVG = 4,
	       FAKE_OPS = 5,
};

size_t fake_type_bytes(int type);

/*
 * into[i] = inputs[0][i] op inputs[1][i] ..., rounded to the type after each step, as in a ring. Avg like NCCL:
 * floating point is multiplied by 1/inputs before adding, integers are divided at the end. `into` can be one of the
 * inputs.
 */
void fake_fold(int type, int op, void *into, const void *const *inputs, size_t input_count,
	       size_t count);

#endif
