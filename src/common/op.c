/* Names, sizes, checks and duration buckets of operations. */
#include "common/op.h"

#include <string.h>

#include "common/attributes.h"
#include "common/text.h"

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

static const char *or_question(const char *name)
{
	return name != NULL ? name : "?";
}

const char *op_function_name(uint8_t function)
{
	return or_question(op_name(OP_NAMES_FUNCTION, function));
}

const char *op_datatype_name(uint8_t datatype)
{
	return or_question(op_name(OP_NAMES_DATATYPE, datatype));
}

const char *op_algorithm_name(uint8_t algorithm)
{
	return or_question(op_name(OP_NAMES_ALGORITHM, algorithm));
}

const char *op_protocol_name(uint8_t protocol)
{
	return or_question(op_name(OP_NAMES_PROTOCOL, protocol));
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

static const char *const states[] = {
	"none", "issued", "launched", "running", "done", "abandoned", "captured",
};
_Static_assert(ARRAY_LENGTH(states) == OP_STATES, "a state has no name");

static const char *const time_sources[] = { "none", "kernel_gpu", "proxy",
					    "host", "cuda_event", "tool" };
_Static_assert(ARRAY_LENGTH(time_sources) == OP_TIME_SHOWN_SOURCES, "a time source has no name");

static const char *const waits[] = {
	"send_gpu", "send_peer", "send_net", "recv_net", "recv_flush", "recv_gpu",
};
_Static_assert(ARRAY_LENGTH(waits) == OP_WAITS, "a wait has no name");

static const char *const flags[32] = {
	[0] = "replay",		[1] = "api_only",	   [2] = "copy_engine",
	[3] = "self",		[4] = "untracked",	   [5] = "kernels_asked",
	[6] = "after_gap",	[7] = "not_sampled",	   [8] = "stamp_zero",
	[9] = "stamp_reversed", [10] = "stamp_stale",	   [11] = "stamp_overrun",
	[12] = "stamp_channel", [13] = "channels_missing", [14] = "foreign_stop",
	[15] = "cuda_event",	[16] = "shared_time",	   [17] = "seen_open",
	[18] = "replay_read",	[19] = "place_rough",	   [20] = "tool_time",
};

static const struct {
	const char *name, *words;
} losses[] = {
	[LOST_NO_COMM] = { "no_comm_slot", "too many communicators" },
	[LOST_RING_BUSY] = { "ring_busy", "ring buffer busy" },
	[LOST_RING_OVERRUN] = { "ring_overrun", "ring buffer overrun" },
	[LOST_QUOTA] = { "quota", "file size limit reached" },
	[LOST_NO_SPACE] = { "no_space", "no space on disk" },
	[LOST_WRITE_ERROR] = { "write_error", "write error" },
	[LOST_OFF] = { "switched_off", "recording switched off" },
	[LOST_DETAIL_OVERRUN] = { "detail_overrun", "detail buffer overrun" },
	[LOST_DETAIL_QUOTA] = { "detail_not_written", "details not written" },
	[LOST_PROXY_SLOT] = { "no_proxy_slot", "too many transfers" },
	[LOST_TOTALS] = { "totals_other", "too many kinds of operations" },
	[LOST_LATE_CHILD] = { "late_child", "events after the end" },
	[LOST_INSPECTOR] = { "not_in_inspector_file", "missing in the Inspector file" },
	[LOST_NOT_SHOWN] = { "not_shown", "not reported by NCCL" },
};

static const char *const oddities[] = {
	[ODD_NULL_HANDLE] = "null_handle",	   [ODD_STALE_HANDLE] = "stale_handle",
	[ODD_FOREIGN_HANDLE] = "foreign_handle",   [ODD_UNKNOWN_CONTEXT] = "unknown_context",
	[ODD_NULL_DESCRIPTOR] = "null_descriptor", [ODD_UNKNOWN_EVENT] = "unknown_event",
	[ODD_UNKNOWN_STATE] = "unknown_state",	   [ODD_REPEATED_STOP] = "repeated_stop",
	[ODD_REPEATED_START] = "repeated_start",   [ODD_REPEATED_STATE] = "repeated_state",
	[ODD_FOREIGN_PROCESS] = "foreign_process", [ODD_CHANNEL] = "untrusted_channel",
};

static const char *const modes[] = { "off", "flight", "profile", "trace", "full" };

#define NAME_FROM(names, index) ((index) < ARRAY_LENGTH(names) ? (names)[index] : NULL)

const char *op_state_name(uint8_t state)
{
	return or_question(NAME_FROM(states, state));
}

const char *op_lost_words(unsigned int reason)
{
	return reason < ARRAY_LENGTH(losses) ? losses[reason].words : "?";
}

uint64_t op_shown_number(uint64_t match)
{
	return match & ((UINT64_C(1) << 48) - 1);
}

const char *op_time_source_name(uint8_t source)
{
	return or_question(NAME_FROM(time_sources, source));
}

const char *op_time_name(uint8_t source, uint32_t op_flags)
{
	return op_time_source_name(op_shown_source(source, op_flags));
}

const char *op_wait_name(unsigned int wait)
{
	return or_question(NAME_FROM(waits, wait));
}

const char *op_flag_name(unsigned int bit)
{
	return NAME_FROM(flags, bit);
}

const char *op_lost_name(unsigned int reason)
{
	return reason < ARRAY_LENGTH(losses) ? losses[reason].name : NULL;
}

const char *op_odd_name(unsigned int reason)
{
	return NAME_FROM(oddities, reason);
}

const char *op_mode_name(unsigned int mode)
{
	return or_question(NAME_FROM(modes, mode));
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
	return number < OP_DATATYPES - OP_INT8 ? (uint8_t)(number + OP_INT8) : OP_DATATYPE_UNKNOWN;
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

static int is_per_rank(uint8_t function)
{
	return function == OP_ALL_GATHER || function == OP_REDUCE_SCATTER ||
	       function == OP_ALL_TO_ALL || function == OP_GATHER || function == OP_SCATTER;
}

uint64_t op_message_bytes(uint8_t function, uint64_t count, unsigned int element_bytes, int nranks)
{
	uint64_t bytes;

	if (element_bytes == 0 || function == OP_FUNCTION_UNKNOWN)
		return OP_BYTES_UNKNOWN;
	if (__builtin_mul_overflow(count, (uint64_t)element_bytes, &bytes))
		return OP_BYTES_UNKNOWN;
	if (!is_per_rank(function))
		return bytes;
	if (nranks <= 0 || __builtin_mul_overflow(bytes, (uint64_t)nranks, &bytes))
		return OP_BYTES_UNKNOWN;
	return bytes;
}

unsigned int op_size_class(uint64_t bytes)
{
	if (bytes == OP_BYTES_UNKNOWN)
		return 0;
	return bytes == 0 ? 1 : 2 + 63 - (unsigned int)__builtin_clzll(bytes);
}

bool op_size_range(unsigned int size_class, uint64_t *least, uint64_t *most)
{
	if (size_class == 0 || size_class > 2 + 63)
		return false;
	*least = size_class == 1 ? 0 : UINT64_C(1) << (size_class - 2);
	*most = size_class == 1 ? 0 : *least + (*least - 1);
	return true;
}

void op_size_text(char *to, size_t size, unsigned int size_class)
{
	char text[UNITS_TEXT];
	uint64_t least, most;

	if (op_size_range(size_class, &least, &most))
		text_copy(to, size, units_bytes(text, least));
	else
		text_copy(to, size, "unknown");
}

/* In the table, or interned by this process. */
static bool is_name(uint8_t number, unsigned int table_size)
{
	return number < table_size ||
	       (number >= OP_NAME_INTERNED && number < OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX);
}

const char *op_check_live(const struct op_record *op)
{
	if (op->comm == 0)
		return "it belongs to no communicator";
	if (op->number == 0)
		return "it has no number";
	if (!is_name(op->function, OP_FUNCTIONS))
		return "there is no such function";
	if (!is_name(op->datatype, OP_DATATYPES))
		return "there is no such datatype";
	if (!is_name(op->algorithm, OP_ALGORITHMS))
		return "there is no such algorithm";
	if (!is_name(op->protocol, OP_PROTOCOLS))
		return "there is no such protocol";
	if (op->state == OP_STATE_NONE || op->state >= OP_STATES)
		return "there is no such state";
	if (op->time_source >= OP_TIME_SOURCES)
		return "there is no such source of time";
	return NULL;
}

/* The top bit of a sequence marks a ring slot that is being written; no record has it. */
static bool is_sequence(uint64_t sequence)
{
	return sequence != 0 && sequence >> 63 == 0;
}

const char *op_check(const struct op_record *op)
{
	if (!is_sequence(op->sequence))
		return "its sequence is none";
	return op_check_live(op);
}

const char *op_check_detail(const struct op_detail *detail)
{
	if (!is_sequence(detail->sequence))
		return "its sequence is none";
	if (detail->kind < OP_DETAIL_KERNEL || detail->kind > OP_DETAIL_STEP)
		return "there is no such kind of detail";
	return NULL;
}

const char *op_check_comm(const struct comm_info *comm)
{
	if (comm->id == 0)
		return "it has no number";
	if (comm->nranks < 0 || comm->nnodes < 0)
		return "its size is negative";
	return NULL;
}

bool op_check_time(struct op_record *op)
{
	bool fits = true;

	switch (op->time_source) {
	case OP_TIME_KERNEL_GPU:
		fits = op->gpu_start_ns != 0 && op->gpu_stop_ns >= op->gpu_start_ns;
		break;
	case OP_TIME_PROXY:
		fits = op->active_ns != 0 && op->done_ns >= op->active_ns;
		break;
	case OP_TIME_HOST:
		fits = op->issue_ns != 0 && op->done_ns >= op->issue_ns;
		break;
	default:
		break;
	}
	if (!fits)
		op->time_source = OP_TIME_NONE;
	return fits;
}

/* 10^9 * 2^(k/8) * 2^32, rounded down: the eight steps of an octave in fixed point. */
static const uint64_t octave_steps[8] = {
	UINT64_C(4294967296000000000), UINT64_C(4683695047832392561), UINT64_C(5107605667107197932),
	UINT64_C(5569883475385291208), UINT64_C(6074000999952099384), UINT64_C(6623745058664271696),
	UINT64_C(7223245205676679009), UINT64_C(7877004751727667949),
};

uint64_t histogram_upper_ns(unsigned int bucket)
{
	return octave_steps[bucket % 8] >> (32 - HISTOGRAM_FIRST_EXPONENT - (int)(bucket / 8));
}

unsigned int histogram_bucket(uint64_t ns)
{
	/* 2^8 ns is just above bucket 0; an octave of ns spans at most two of ours. */
	unsigned int log2 = ns > 255 ? 63 - (unsigned int)__builtin_clzll(ns) : 8;
	unsigned int low = (log2 - 8) * 8;
	unsigned int high = low + 16;

	if (high > HISTOGRAM_BUCKETS - 1)
		high = HISTOGRAM_BUCKETS - 1;
	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (ns <= histogram_upper_ns(middle))
			high = middle;
		else
			low = middle + 1;
	}
	return high;
}
