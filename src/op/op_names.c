#include "op/op_names.h"

#include <stddef.h>
#include <string.h>

#include "base/attributes.h"
#include "op/comm_layout.h"
#include "op/op_layout.h"

static const char *const functions[] = {
	[OP_FUNCTION_UNKNOWN] = "Unknown",
	[OP_ALL_REDUCE] = "AllReduce",
	[OP_ALL_GATHER] = "AllGather",
	[OP_REDUCE_SCATTER] = "ReduceScatter",
	[OP_BROADCAST] = "Broadcast",
	[OP_REDUCE] = "Reduce",
	[OP_SEND] = "Send",
	[OP_RECV] = "Recv",
	[OP_SEND_RECV] = "SendRecv",
	[OP_ALL_TO_ALL] = "AlltoAll",
	[OP_GATHER] = "Gather",
	[OP_SCATTER] = "Scatter",
	[OP_PUT_SIGNAL] = "PutSignal",
	[OP_SIGNAL] = "Signal",
	[OP_WAIT_SIGNAL] = "WaitSignal",
	[OP_FUNCTION_INVALID] = "Invalid",
};
_Static_assert(ARRAY_LENGTH(functions) == OP_FUNCTIONS, "a function has no name");

/* NCCL writes "ncclFloat32"; users say float32. */
static const char *const datatypes[] = {
	[OP_DATATYPE_UNKNOWN] = "Unknown",
	[OP_INT8] = "int8",
	[OP_UINT8] = "uint8",
	[OP_INT32] = "int32",
	[OP_UINT32] = "uint32",
	[OP_INT64] = "int64",
	[OP_UINT64] = "uint64",
	[OP_FLOAT16] = "float16",
	[OP_FLOAT32] = "float32",
	[OP_FLOAT64] = "float64",
	[OP_BFLOAT16] = "bfloat16",
	[OP_FLOAT8_E4M3] = "float8e4m3",
	[OP_FLOAT8_E5M2] = "float8e5m2",
};
_Static_assert(ARRAY_LENGTH(datatypes) == OP_DATATYPES, "a datatype has no name");

static const char *const nccl_datatypes[OP_DATATYPES] = {
	"Unknown",	"ncclInt8",	  "ncclUint8",	    "ncclInt32",   "ncclUint32",
	"ncclInt64",	"ncclUint64",	  "ncclFloat16",    "ncclFloat32", "ncclFloat64",
	"ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2",
};

static const char *const algorithms[] = {
	[OP_ALGORITHM_UNKNOWN] = "Unknown",
	[OP_TREE] = "TREE",
	[OP_RING] = "RING",
	[OP_COLLNET_DIRECT] = "COLLNET_DIRECT",
	[OP_COLLNET_CHAIN] = "COLLNET_CHAIN",
	[OP_NVLS] = "NVLS",
	[OP_NVLS_TREE] = "NVLS_TREE",
	[OP_PAT] = "PAT",
	[OP_COPY_ENGINE] = "COPY_ENGINE",
	[OP_SYMMETRIC] = "SYMMETRIC",
};
_Static_assert(ARRAY_LENGTH(algorithms) == OP_ALGORITHMS, "an algorithm has no name");

static const char *const protocols[] = {
	[OP_PROTOCOL_UNKNOWN] = "Unknown",
	[OP_LL] = "LL",
	[OP_LL128] = "LL128",
	[OP_SIMPLE] = "SIMPLE",
};
_Static_assert(ARRAY_LENGTH(protocols) == OP_PROTOCOLS, "a protocol has no name");

static const struct {
	const char *const *names;
	const char *const *nccl_names;
	size_t count;
} tables[OP_NAME_TABLES] = {
	[OP_NAMES_FUNCTION] = { functions, functions, OP_FUNCTIONS },
	[OP_NAMES_DATATYPE] = { datatypes, nccl_datatypes, OP_DATATYPES },
	[OP_NAMES_ALGORITHM] = { algorithms, algorithms, OP_ALGORITHMS },
	[OP_NAMES_PROTOCOL] = { protocols, protocols, OP_PROTOCOLS },
};

const char *op_name(enum op_name_table table, uint8_t number)
{
	return number < tables[table].count ? tables[table].names[number] : NULL;
}

const char *op_name_of_nccl(enum op_name_table table, uint8_t number)
{
	return number < tables[table].count ? tables[table].nccl_names[number] : NULL;
}

static const char *name_or_question(enum op_name_table table, uint8_t number)
{
	const char *name = op_name(table, number);

	return name ? name : "?";
}

const char *op_function_name(uint8_t function)
{
	return name_or_question(OP_NAMES_FUNCTION, function);
}

const char *op_datatype_name(uint8_t datatype)
{
	return name_or_question(OP_NAMES_DATATYPE, datatype);
}

const char *op_algorithm_name(uint8_t algorithm)
{
	return name_or_question(OP_NAMES_ALGORITHM, algorithm);
}

const char *op_protocol_name(uint8_t protocol)
{
	return name_or_question(OP_NAMES_PROTOCOL, protocol);
}

uint8_t op_name_find(enum op_name_table table, const char *text, int *is_known)
{
	*is_known = 1;
	if (text == NULL || text[0] == '\0')
		return 0;
	for (size_t i = 0; i < tables[table].count; i++)
		if (strcmp(tables[table].nccl_names[i], text) == 0 ||
		    strcmp(tables[table].names[i], text) == 0)
			return (uint8_t)i;
	*is_known = 0;
	return 0;
}

#define NAME_FROM(names, index) ((index) < ARRAY_LENGTH(names) ? (names)[index] : NULL)

const char *op_state_name(uint8_t state)
{
	static const char *const names[] = {
		"none", "issued", "launched", "running", "done", "abandoned", "captured",
	};
	const char *name = NAME_FROM(names, state);

	_Static_assert(ARRAY_LENGTH(names) == OP_STATES, "a state has no name");
	return name ? name : "?";
}

const char *op_time_source_name(uint8_t source)
{
	static const char *const names[] = { "none", "kernel_gpu", "proxy", "host" };
	const char *name = NAME_FROM(names, source);

	_Static_assert(ARRAY_LENGTH(names) == OP_TIME_SOURCES, "a time source has no name");
	return name ? name : "?";
}

const char *op_wait_name(unsigned int wait)
{
	static const char *const names[] = {
		"send_gpu", "send_peer", "send_net", "recv_net", "recv_flush", "recv_gpu",
	};
	const char *name = NAME_FROM(names, wait);

	_Static_assert(ARRAY_LENGTH(names) == OP_WAITS, "a wait has no name");
	return name ? name : "?";
}

const char *op_flag_name(unsigned int bit)
{
	static const char *const names[32] = {
		[0] = "replay",		[1] = "api_only",	   [2] = "copy_engine",
		[3] = "self",		[4] = "untracked",	   [5] = "kernels_asked",
		[6] = "after_gap",	[7] = "not_sampled",	   [8] = "stamp_zero",
		[9] = "stamp_reversed", [10] = "stamp_stale",	   [11] = "stamp_overrun",
		[12] = "stamp_channel", [13] = "channels_missing", [14] = "foreign_stop",
	};

	return NAME_FROM(names, bit);
}

const char *op_lost_name(unsigned int reason)
{
	static const char *const names[] = {
		[LOST_NO_COMM] = "no_comm_slot",
		[LOST_RING_BUSY] = "ring_busy",
		[LOST_RING_OVERRUN] = "ring_overrun",
		[LOST_QUOTA] = "quota",
		[LOST_NO_SPACE] = "no_space",
		[LOST_WRITE_ERROR] = "write_error",
		[LOST_OFF] = "switched_off",
		[LOST_DETAIL_OVERRUN] = "detail_overrun",
		[LOST_DETAIL_QUOTA] = "detail_not_written",
		[LOST_PROXY_SLOT] = "no_proxy_slot",
		[LOST_TOTALS] = "totals_other",
		[LOST_LATE_CHILD] = "late_child",
		[LOST_INSPECTOR] = "not_in_inspector_file",
		[LOST_NOT_SHOWN] = "not_shown",
	};

	return NAME_FROM(names, reason);
}

bool op_lost_is_whole(unsigned int reason)
{
	return reason <= LOST_OFF || reason == LOST_NOT_SHOWN;
}

uint64_t op_lost_operations(const uint64_t *lost)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < LOST_REASONS; i++)
		sum += op_lost_is_whole(i) ? lost[i] : 0;
	return sum;
}

uint64_t op_lost_unseen(const uint64_t *lost)
{
	return lost[LOST_NO_COMM] + lost[LOST_OFF] + lost[LOST_NOT_SHOWN];
}

const char *op_odd_name(unsigned int reason)
{
	static const char *const names[] = {
		[ODD_NULL_HANDLE] = "null_handle",
		[ODD_STALE_HANDLE] = "stale_handle",
		[ODD_FOREIGN_HANDLE] = "foreign_handle",
		[ODD_UNKNOWN_CONTEXT] = "unknown_context",
		[ODD_NULL_DESCRIPTOR] = "null_descriptor",
		[ODD_UNKNOWN_EVENT] = "unknown_event",
		[ODD_UNKNOWN_STATE] = "unknown_state",
		[ODD_REPEATED_STOP] = "repeated_stop",
		[ODD_REPEATED_START] = "repeated_start",
		[ODD_REPEATED_STATE] = "repeated_state",
		[ODD_FOREIGN_PROCESS] = "foreign_process",
		[ODD_CHANNEL] = "untrusted_channel",
	};

	return NAME_FROM(names, reason);
}

const char *op_mode_name(unsigned int mode)
{
	static const char *const names[] = { "off", "flight", "profile", "trace", "full" };
	const char *name = NAME_FROM(names, mode);

	return name ? name : "?";
}

uint8_t op_function_from_v1(uint8_t number)
{
	static const uint8_t functions_v1[] = {
		OP_BROADCAST,  OP_REDUCE,    OP_ALL_GATHER, OP_REDUCE_SCATTER,
		OP_ALL_REDUCE, OP_SEND_RECV, OP_SEND,	    OP_RECV,
	};

	return number < ARRAY_LENGTH(functions_v1) ? functions_v1[number] : OP_FUNCTION_UNKNOWN;
}

uint8_t op_datatype_from_nccl(uint8_t number)
{
	static const uint8_t types[] = {
		OP_INT8,    OP_UINT8,	OP_INT32,   OP_UINT32,	 OP_INT64,	 OP_UINT64,
		OP_FLOAT16, OP_FLOAT32, OP_FLOAT64, OP_BFLOAT16, OP_FLOAT8_E4M3, OP_FLOAT8_E5M2,
	};

	return number < ARRAY_LENGTH(types) ? types[number] : OP_DATATYPE_UNKNOWN;
}

uint8_t op_algorithm_from_v1(uint8_t number)
{
	return number <= OP_PAT - OP_TREE ? (uint8_t)(number + OP_TREE) : OP_ALGORITHM_UNKNOWN;
}

uint8_t op_protocol_from_v1(uint8_t number)
{
	return number <= OP_SIMPLE - OP_LL ? (uint8_t)(number + OP_LL) : OP_PROTOCOL_UNKNOWN;
}

unsigned int op_datatype_bytes(uint8_t datatype)
{
	static const uint8_t sizes[OP_DATATYPES] = {
		[OP_INT8] = 1,	  [OP_UINT8] = 1,    [OP_INT32] = 4,	   [OP_UINT32] = 4,
		[OP_INT64] = 8,	  [OP_UINT64] = 8,   [OP_FLOAT16] = 2,	   [OP_FLOAT32] = 4,
		[OP_FLOAT64] = 8, [OP_BFLOAT16] = 2, [OP_FLOAT8_E4M3] = 1, [OP_FLOAT8_E5M2] = 1,
	};

	return datatype < OP_DATATYPES ? sizes[datatype] : 0;
}
