#include "view/export_columns.h"

#include "common/op.h"

/* Numbers of the group's word. */
#define GROUP(label, kind, its_group, nullable)                                                  \
	{                                                                                        \
		.name = (label), .type = (kind), .group = (its_group), .is_nullable = (nullable) \
	}
/* A word of the record as it stands. */
#define WORD(label, kind, from, its_habit)                                                   \
	{                                                                                    \
		.name = (label), .type = (kind), .group = EXPORT_EACH, .habit = (its_habit), \
		.word = (from)                                                               \
	}
#define WORD_OR_NULL(label, kind, from, its_habit, none)                                     \
	{                                                                                    \
		.name = (label), .type = (kind), .group = EXPORT_EACH, .habit = (its_habit), \
		.is_nullable = true, .null = (none), .word = (from)                          \
	}
/* Worked out from several. */
#define MADE(label, kind, its_habit)                                                         \
	{                                                                                    \
		.name = (label), .type = (kind), .group = EXPORT_EACH, .habit = (its_habit), \
		.word = EXPORT_NO_WORD                                                       \
	}
#define MADE_OR_NULL(label, kind, its_habit)                                                 \
	{                                                                                    \
		.name = (label), .type = (kind), .group = EXPORT_EACH, .habit = (its_habit), \
		.is_nullable = true, .null = EXPORT_NULL_SIGNED, .word = EXPORT_NO_WORD      \
	}

const struct export_column export_columns[EXPORT_COLUMNS] = {
	[EXPORT_JOB] = GROUP("job", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_HOST] = GROUP("host", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_RANK] = GROUP("rank", EXPORT_INT64, EXPORT_WHO, true),
	[EXPORT_PID] = GROUP("pid", EXPORT_INT64, EXPORT_WHO, true),
	[EXPORT_COMM_ID] = GROUP("comm_id", EXPORT_UINT32, EXPORT_WHO, false),
	[EXPORT_COMM_HASH] = GROUP("comm_hash", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_COMM_NAME] = GROUP("comm_name", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_COMM_RANK] = GROUP("comm_rank", EXPORT_INT32, EXPORT_WHO, true),
	[EXPORT_COMM_RANKS] = GROUP("comm_ranks", EXPORT_INT32, EXPORT_WHO, true),
	[EXPORT_COMM_NODES] = GROUP("comm_nodes", EXPORT_INT32, EXPORT_WHO, true),
	[EXPORT_COMM_KIND] = GROUP("comm_kind", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_GPU] = GROUP("gpu", EXPORT_INT32, EXPORT_WHO, true),
	[EXPORT_GPU_UUID] = GROUP("gpu_uuid", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_INTERFACE] = GROUP("interface", EXPORT_UINT32, EXPORT_WHO, true),
	[EXPORT_FUNCTION] = GROUP("function", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_DATATYPE] = GROUP("datatype", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_ALGORITHM] = GROUP("algorithm", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_PROTOCOL] = GROUP("protocol", EXPORT_STRING, EXPORT_WHO, true),
	[EXPORT_COUNT] = WORD("count", EXPORT_UINT64, OP_WORD_COUNT, EXPORT_REPEATS),
	[EXPORT_BYTES] = WORD_OR_NULL("bytes", EXPORT_UINT64, OP_WORD_BYTES, EXPORT_REPEATS,
				      OP_BYTES_UNKNOWN),
	[EXPORT_ROOT] = GROUP("root", EXPORT_INT32, EXPORT_ENDS, true),
	[EXPORT_PEER] = GROUP("peer", EXPORT_INT32, EXPORT_ENDS, true),
	[EXPORT_SEQUENCE] =
		WORD_OR_NULL("sequence", EXPORT_UINT64, OP_WORD_SEQUENCE, EXPORT_CLIMBS, 0),
	[EXPORT_NUMBER] = WORD("number", EXPORT_UINT64, OP_WORD_NUMBER, EXPORT_CLIMBS),
	[EXPORT_MATCH] = WORD_OR_NULL("match", EXPORT_UINT64, OP_WORD_MATCH, EXPORT_CLIMBS, 0),
	[EXPORT_SIGNATURE] = WORD("signature", EXPORT_UINT64, OP_WORD_SIGNATURE, EXPORT_JUMPS),
	[EXPORT_IS_REPLAY] = GROUP("is_replay", EXPORT_BOOL, EXPORT_STATE, false),
	[EXPORT_CAPTURED_NUMBER] = WORD_OR_NULL("captured_number", EXPORT_UINT64,
						OP_WORD_CAPTURED_NUMBER, EXPORT_CLIMBS, 0),
	[EXPORT_NCCL_SEQUENCE] =
		WORD("nccl_sequence", EXPORT_UINT64, OP_WORD_NCCL_SEQUENCE, EXPORT_CLIMBS),
	[EXPORT_STREAM] = WORD("stream", EXPORT_UINT64, OP_WORD_STREAM, EXPORT_REPEATS),
	[EXPORT_USER_TAG] = WORD("user_tag", EXPORT_UINT64, OP_WORD_USER_TAG, EXPORT_REPEATS),
	[EXPORT_STATE_NAME] = GROUP("state", EXPORT_STRING, EXPORT_STATE, false),
	[EXPORT_FLAGS] = GROUP("flags", EXPORT_STRING, EXPORT_STATE, false),
	[EXPORT_TIME_SOURCE] = GROUP("time_source", EXPORT_STRING, EXPORT_STATE, false),
	[EXPORT_DURATION] = MADE_OR_NULL("duration_ns", EXPORT_INT64, EXPORT_CLIMBS),
	[EXPORT_ISSUE_TIME] = MADE_OR_NULL("issue_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_LAUNCH_TIME] = MADE_OR_NULL("launch_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_TASK_TIME] = MADE_OR_NULL("task_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_ACTIVE_TIME] = MADE_OR_NULL("active_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_DONE_TIME] = MADE_OR_NULL("done_time", EXPORT_TIME, EXPORT_CLIMBS),
	[EXPORT_CLOCK_OFFSET] = MADE_OR_NULL("clock_offset_ns", EXPORT_INT64, EXPORT_REPEATS),
	[EXPORT_GPU_START] =
		WORD_OR_NULL("gpu_start_ns", EXPORT_UINT64, OP_WORD_GPU_START, EXPORT_CLIMBS, 0),
	[EXPORT_GPU_STOP] =
		WORD_OR_NULL("gpu_stop_ns", EXPORT_UINT64, OP_WORD_GPU_STOP, EXPORT_CLIMBS, 0),
	[EXPORT_START_SPREAD] = MADE_OR_NULL("start_spread_ns", EXPORT_UINT32, EXPORT_CLIMBS),
	[EXPORT_STOP_SPREAD] = MADE_OR_NULL("stop_spread_ns", EXPORT_UINT32, EXPORT_CLIMBS),
	[EXPORT_CHANNELS] = GROUP("channels", EXPORT_UINT8, EXPORT_STATE, false),
	[EXPORT_WARPS] = GROUP("warps", EXPORT_UINT8, EXPORT_STATE, false),
	[EXPORT_KERNELS_STARTED] = GROUP("kernels_started", EXPORT_UINT16, EXPORT_CHILDREN, false),
	[EXPORT_KERNELS_STOPPED] = GROUP("kernels_stopped", EXPORT_UINT16, EXPORT_CHILDREN, false),
	[EXPORT_PROXIES_STARTED] = GROUP("proxies_started", EXPORT_UINT16, EXPORT_CHILDREN, false),
	[EXPORT_PROXIES_STOPPED] = GROUP("proxies_stopped", EXPORT_UINT16, EXPORT_CHILDREN, false),
	[EXPORT_SEND_BYTES] = WORD("send_bytes", EXPORT_UINT64, OP_WORD_SEND_BYTES, EXPORT_REPEATS),
	[EXPORT_RECV_BYTES] = WORD("recv_bytes", EXPORT_UINT64, OP_WORD_RECV_BYTES, EXPORT_REPEATS),
	[EXPORT_SEND_STEPS] = MADE("send_steps", EXPORT_UINT32, EXPORT_REPEATS),
	[EXPORT_RECV_STEPS] = MADE("recv_steps", EXPORT_UINT32, EXPORT_REPEATS),
	[EXPORT_WAIT_SEND_GPU] =
		WORD("wait_send_gpu_ns", EXPORT_UINT64, OP_WORD_WAITS + 0, EXPORT_CLIMBS),
	[EXPORT_WAIT_SEND_PEER] =
		WORD("wait_send_peer_ns", EXPORT_UINT64, OP_WORD_WAITS + 1, EXPORT_CLIMBS),
	[EXPORT_WAIT_SEND_NET] =
		WORD("wait_send_net_ns", EXPORT_UINT64, OP_WORD_WAITS + 2, EXPORT_CLIMBS),
	[EXPORT_WAIT_RECV_NET] =
		WORD("wait_recv_net_ns", EXPORT_UINT64, OP_WORD_WAITS + 3, EXPORT_CLIMBS),
	[EXPORT_WAIT_RECV_FLUSH] =
		WORD("wait_recv_flush_ns", EXPORT_UINT64, OP_WORD_WAITS + 4, EXPORT_CLIMBS),
	[EXPORT_WAIT_RECV_GPU] =
		WORD("wait_recv_gpu_ns", EXPORT_UINT64, OP_WORD_WAITS + 5, EXPORT_CLIMBS),
};

uint32_t export_words(void)
{
	return OP_WORDS_ALL & ~OP_WORD_BIT(OP_WORD_RESERVED);
}
