/* Is this a record that can be worked with? For whatever comes from shared memory or a file. */
#ifndef OP_CHECK_H
#define OP_CHECK_H

#include <stdbool.h>

#include "op/comm_layout.h"
#include "op/op_layout.h"

/*
 * NULL when every number is within its range, else what is wrong, in a few words. Ranges only: a
 * record that passes can still lie, but no table is left because of it. Its times may be anything:
 * op_duration.h looks at them. Functions, datatypes, algorithms and protocols may be interned;
 * ranks, roots and peers may be any number; unknown flags are fine (a newer minor version may set
 * them).
 */
const char *op_check(const struct op_record *op);      /* finished: has a sequence */
const char *op_check_live(const struct op_record *op); /* has none yet */
const char *op_check_detail(const struct op_detail *detail);
const char *op_check_comm(const struct comm_info *comm);

/* Do the times fit the source that the record names, so that a duration can be taken from it? When
 * not, the source becomes none and the answer is false. */
bool op_check_time(struct op_record *op);

#endif
