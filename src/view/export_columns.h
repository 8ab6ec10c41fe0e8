/*
 * What an exported operation consists of: one table for all formats. docs/EXPORT.md explains every
 * column, and a test compares it with this table.
 *
 * Columns whose values go together are filled together, once for each value of the word of the record
 * that they come from (a "group"); the others have a number of their own in every row.
 */
#ifndef EXPORT_COLUMNS_H
#define EXPORT_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

enum export_type {
	EXPORT_STRING,
	EXPORT_BOOL,
	EXPORT_INT32,
	EXPORT_INT64,
	EXPORT_UINT8,
	EXPORT_UINT16,
	EXPORT_UINT32,
	EXPORT_UINT64,
	EXPORT_TIME, /* nanoseconds since 1970 UTC, signed */
};

enum export_group {
	EXPORT_WHO = 0,	     /* process, communicator, names: OP_WORD_KIND */
	EXPORT_STATE = 1,    /* OP_WORD_STATE */
	EXPORT_ENDS = 2,     /* OP_WORD_ENDS */
	EXPORT_CHILDREN = 3, /* OP_WORD_CHILDREN */
	EXPORT_GROUPS = 4,
	EXPORT_EACH = 4, /* no group: a number in every row */
};

/* How the numbers of a column follow each other. */
enum export_habit {
	EXPORT_CLIMBS,	/* near to the one before */
	EXPORT_REPEATS, /* few that come again and again */
	EXPORT_JUMPS,	/* any number at all */
};

enum export_column_id {
	EXPORT_JOB,
	EXPORT_HOST,
	EXPORT_RANK,
	EXPORT_PID,
	EXPORT_COMM_ID,
	EXPORT_COMM_HASH,
	EXPORT_COMM_NAME,
	EXPORT_COMM_RANK,
	EXPORT_COMM_RANKS,
	EXPORT_COMM_NODES,
	EXPORT_COMM_KIND,
	EXPORT_GPU,
	EXPORT_GPU_UUID,
	EXPORT_INTERFACE,
	EXPORT_FUNCTION,
	EXPORT_DATATYPE,
	EXPORT_ALGORITHM,
	EXPORT_PROTOCOL,
	EXPORT_COUNT,
	EXPORT_BYTES,
	EXPORT_ROOT,
	EXPORT_PEER,
	EXPORT_SEQUENCE,
	EXPORT_NUMBER,
	EXPORT_MATCH,
	EXPORT_SIGNATURE,
	EXPORT_IS_REPLAY,
	EXPORT_CAPTURED_NUMBER,
	EXPORT_NCCL_SEQUENCE,
	EXPORT_STREAM,
	EXPORT_USER_TAG,
	EXPORT_STATE_NAME,
	EXPORT_FLAGS,
	EXPORT_TIME_SOURCE,
	EXPORT_DURATION,
	EXPORT_ISSUE_TIME,
	EXPORT_LAUNCH_TIME,
	EXPORT_TASK_TIME,
	EXPORT_ACTIVE_TIME,
	EXPORT_DONE_TIME,
	EXPORT_CLOCK_OFFSET,
	EXPORT_GPU_START,
	EXPORT_GPU_STOP,
	EXPORT_START_SPREAD,
	EXPORT_STOP_SPREAD,
	EXPORT_CHANNELS,
	EXPORT_WARPS,
	EXPORT_KERNELS_STARTED,
	EXPORT_KERNELS_STOPPED,
	EXPORT_PROXIES_STARTED,
	EXPORT_PROXIES_STOPPED,
	EXPORT_SEND_BYTES,
	EXPORT_RECV_BYTES,
	EXPORT_SEND_STEPS,
	EXPORT_RECV_STEPS,
	EXPORT_WAIT_SEND_GPU,
	EXPORT_WAIT_SEND_PEER,
	EXPORT_WAIT_SEND_NET,
	EXPORT_WAIT_RECV_NET,
	EXPORT_WAIT_RECV_FLUSH,
	EXPORT_WAIT_RECV_GPU,
	EXPORT_COLUMNS,
};

_Static_assert(EXPORT_COLUMNS <= 64, "a choice of columns is a word");

struct export_column {
	const char *name;
	enum export_type type;
	enum export_group group;
	enum export_habit habit; /* without a group */
	bool is_nullable;
	uint64_t null; /* without a group: what stands for "not known" */
	uint8_t word;  /* without a group: the word that is the number as it stands, or
			  EXPORT_NO_WORD */
};

enum { EXPORT_NO_WORD = 255 };

extern const struct export_column export_columns[EXPORT_COLUMNS];

/* Stands for "not known" where no word of the record does. */
#define EXPORT_NULL_SIGNED ((uint64_t)INT64_MIN)

#define EXPORT_ALL_COLUMNS (UINT64_MAX >> (64 - EXPORT_COLUMNS))
#define EXPORT_COLUMN_BIT(id) (UINT64_C(1) << (id))
/* What a directory's names say, its files need not. */
#define EXPORT_PARTITION_COLUMNS                                          \
	(EXPORT_COLUMN_BIT(EXPORT_JOB) | EXPORT_COLUMN_BIT(EXPORT_HOST) | \
	 EXPORT_COLUMN_BIT(EXPORT_RANK))

/* The words of a record that these columns come from. */
uint32_t export_words(void);

#endif
