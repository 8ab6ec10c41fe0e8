/*
 * The tape recorder as NCCL sees it: seven versions of one plugin.
 */
#include <inttypes.h>
#include <string.h>

#include "common/order.h"
#include "programs/tape/tape_fields.h"

struct identity {
	uint64_t hash;
	const char *name;
	int nnodes, nranks, rank;
};

static int record_init(int version, void **context, int *mask, struct identity who, abi_log_fn log)
{
	uint64_t time_ns = tape_time();
	struct tape_text text = { .length = 0 };
	bool is_open;

	tape_text_put(&text, " id=%" PRIx64, who.hash);
	tape_text_word(&text, " name=", who.name);
	tape_text_put(&text, " nnodes=%d nranks=%d rank=%d", who.nnodes, who.nranks, who.rank);
	is_open = tape_write_init(time_ns, version, &text, context, log);
	/* Threads of other communicators may be reading it. */
	store_relaxed(mask, is_open ? tape_events(version) : 0);
	return NCCL_SUCCESS;
}

static int record_stop(void *handle)
{
	uint64_t time_ns = tape_time();
	struct tape_text text = { .length = 0 };

	tape_text_id(&text, "STOP ", handle);
	tape_write_line(time_ns, &text);
	return NCCL_SUCCESS;
}

static int record_finalize(void *context)
{
	uint64_t time_ns = tape_time();
	struct tape_text text = { .length = 0 };

	tape_text_id(&text, "FINI ctx=", context);
	tape_write_line(time_ns, &text);
	return NCCL_SUCCESS;
}

/* `size` bytes of argument; proxy operations of v1 to v3 have a count of steps behind the first 8. */
static int record_state(void *handle, int state, const void *args, size_t size)
{
	uint64_t time_ns = tape_time(), arg = 0;
	struct tape_text text = { .length = 0 };
	int steps = 0;

	tape_text_id(&text, "STATE ", handle);
	if (args)
		memcpy(&arg, args, sizeof(arg));
	if (args && state >= ABI_CTRL_IDLE && state <= ABI_CTRL_APPEND_END)
		arg = (uint32_t)arg; /* an int: what lies behind it is not part of it */
	if (state == ABI_NET_PLUGIN_UPDATE)
		arg = 0; /* a pointer, worth nothing after the call */
	tape_text_put(&text, " %d arg=%" PRIu64, state, arg);
	if (args == NULL)
		tape_text_put(&text, " null=1");
	if (args && size > sizeof(arg) && state <= ABI_OP_RECV_DONE) {
		memcpy(&steps, (const char *)args + sizeof(arg), sizeof(steps));
		tape_text_put(&text, " steps=%d", steps);
	}
	tape_write_line(time_ns, &text);
	return NCCL_SUCCESS;
}

/* Events that are the same in all versions. */
#define FIELDS_COMMON(text, d)                                                            \
	do {                                                                              \
		switch ((d)->type) {                                                      \
		case ABI_GROUP:                                                           \
			tape_text_put(text, " Group");                                    \
			break;                                                            \
		case ABI_PROXY_OP:                                                        \
			tape_text_put(text,                                               \
				      " ProxyOp pid=%d ch=%u peer=%d nsteps=%d chunk=%d " \
				      "send=%d",                                          \
				      (d)->proxy_op.pid, (d)->proxy_op.channel,           \
				      (d)->proxy_op.peer, (d)->proxy_op.steps,            \
				      (d)->proxy_op.chunk_bytes, (d)->proxy_op.is_send);  \
			break;                                                            \
		case ABI_PROXY_STEP:                                                      \
			tape_text_put(text, " ProxyStep %d", (d)->proxy_step.step);       \
			break;                                                            \
		case ABI_PROXY_CTRL:                                                      \
			tape_text_put(text, " ProxyCtrl");                                \
			break;                                                            \
		default:                                                                  \
			tape_text_put(text, " Unknown");                                  \
		}                                                                         \
	} while (0)

#define RECORDER(N, log, who, ...)                                                    \
	static int init_v##N(__VA_ARGS__)                                             \
	{                                                                             \
		return record_init(N, context, mask, (struct identity)who, log);      \
	}                                                                             \
	static int start_v##N(void *context, void **handle, struct abi_descr_v##N *d) \
	{                                                                             \
		uint64_t time_ns = tape_time();                                       \
		struct tape_text text = { .length = 0 };                              \
                                                                                      \
		tape_text_id(&text, " ctx=", context);                                \
		tape_text_put(&text, " type=%" PRIu64, (uint64_t)d->type);            \
		tape_text_id(&text, " parent=", d->parent);                           \
		tape_text_put(&text, " rank=%d", d->rank);                            \
		if (!tape_fields_v##N(&text, d))                                      \
			FIELDS_COMMON(&text, d);                                      \
		tape_write_start(time_ns, &text, handle);                             \
		return NCCL_SUCCESS;                                                  \
	}                                                                             \
	static int state_v##N(void *handle, int state, union abi_args_v##N *args)     \
	{                                                                             \
		return record_state(handle, state, args, sizeof(*args));              \
	}

#define CALLS(N)                                                                                  \
	{                                                                                         \
		"Ringside tape", init_v##N, start_v##N, record_stop, state_v##N, record_finalize, \
	}

#define NOBODY                    \
	{                         \
		0, NULL, 0, 0, -1 \
	}
#define SOMEBODY                                           \
	{                                                  \
		comm_hash, comm_name, nnodes, nranks, rank \
	}

RECORDER(1, NULL, NOBODY, void **context, int *mask)
RECORDER(2, NULL, NOBODY, void **context, int *mask)
RECORDER(3, NULL, NOBODY, void **context, int *mask)
RECORDER(4, log, SOMEBODY, void **context, int *mask, const char *comm_name, uint64_t comm_hash,
	 int nnodes, int nranks, int rank, abi_log_fn log)
RECORDER(5, log, SOMEBODY, void **context, uint64_t comm_hash, int *mask, const char *comm_name,
	 int nnodes, int nranks, int rank, abi_log_fn log)
RECORDER(6, log, SOMEBODY, void **context, uint64_t comm_hash, int *mask, const char *comm_name,
	 int nnodes, int nranks, int rank, abi_log_fn log)
RECORDER(7, log, SOMEBODY, void **context, uint64_t comm_hash, int *mask, const char *comm_name,
	 int nnodes, int nranks, int rank, abi_log_fn log)

#define EXPORT(N)                                                       \
	EXPORTED extern const struct abi_plugin_v##N ncclProfiler_v##N; \
	const struct abi_plugin_v##N ncclProfiler_v##N = CALLS(N)

EXPORT(1);
EXPORT(2);
EXPORT(3);
EXPORT(4);
EXPORT(5);
EXPORT(6);

/* Forks of NCCL that have another v7 find NULL behind its end. */
struct padded_v7 {
	struct abi_plugin_v7 plugin;
	void *nothing[8];
};
EXPORTED extern const struct padded_v7 ncclProfiler_v7;
const struct padded_v7 ncclProfiler_v7 = { .plugin = CALLS(7) };
