/* Names of what op_record holds as numbers. NCCL's spelling, which is also what users know. */
#ifndef OP_NAMES_H
#define OP_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum op_name_table {
	OP_NAMES_FUNCTION = 0,
	OP_NAMES_DATATYPE = 1,
	OP_NAMES_ALGORITHM = 2,
	OP_NAMES_PROTOCOL = 3,
	OP_NAME_TABLES = 4,
};

/* NULL when the table has no such number; interned numbers are the caller's to look up. */
const char *op_name(enum op_name_table table, uint8_t number);

const char *op_function_name(uint8_t function);	  /* "AllReduce"; "?" past the table */
const char *op_datatype_name(uint8_t datatype);	  /* "float32" */
const char *op_algorithm_name(uint8_t algorithm); /* "RING" */
const char *op_protocol_name(uint8_t protocol);	  /* "LL128" */
const char *op_state_name(uint8_t state);	  /* "running" */
const char *op_time_source_name(uint8_t source);  /* "kernel_gpu" */
const char *op_wait_name(unsigned int wait);	  /* "send_gpu" */
const char *op_flag_name(unsigned int bit);	  /* "replay"; NULL for a bit without meaning */
const char *op_lost_name(unsigned int reason);	  /* "ring_overrun"; NULL past the table */
const char *op_odd_name(unsigned int reason);	  /* "stale_handle"; NULL past the table */
const char *op_mode_name(unsigned int mode);	  /* "flight" */

/* Is a whole operation missing? Else details of one that is recorded. */
bool op_lost_is_whole(unsigned int reason);
/* How many, over all reasons. */
uint64_t op_lost_operations(const uint64_t *lost);
/* Of these: not counted as issued, either. The others were, and were lost then. */
uint64_t op_lost_unseen(const uint64_t *lost);

/* NCCL's own spelling ("ncclFloat32"); NULL when the table has no such number. */
const char *op_name_of_nccl(enum op_name_table table, uint8_t number);

/* What NCCL's string means. A number without table entry is the table's "unknown", 0; *is_known
 * tells whether the name was in the table at all. `text` may be NULL. */
uint8_t op_name_find(enum op_name_table table, const char *text, int *is_known);

/* v1 of the interface sends numbers. */
uint8_t op_function_from_v1(uint8_t number);
uint8_t op_datatype_from_nccl(uint8_t number);
uint8_t op_algorithm_from_v1(uint8_t number);
uint8_t op_protocol_from_v1(uint8_t number);

/* Bytes of one element, 0 unknown. */
unsigned int op_datatype_bytes(uint8_t datatype);

#endif
