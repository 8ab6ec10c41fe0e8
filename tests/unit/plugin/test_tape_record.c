/*
 * Calls made by real NCCL, played into the recorder with the clock of the recording: every
 * operation is recorded with its function, count and bytes, with the duration given by its stamps,
 * and no stamp is rejected. The expectations are derived from the tapes themselves.
 */
#include "common/op.h"
#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "sim/host.h"
#include "tests/support/plugin_host.h"
#include "tests/tap.h"

enum { OPS_MAX = 128 };

/* What an operation's record must contain. */
struct wanted {
	const char *function;
	uint64_t count, bytes;
	uint64_t api, task; /* handles on the tape */
	bool is_captured, is_replay;
	uint64_t gpu_start_ns, gpu_stop_ns;
	unsigned int kernels;
};

static struct tape tape;
static size_t at; /* the current line, or the next */

/* Set the recorder's clock to the tape's clock when NCCL made this call. */
static void set_clock(uint8_t what, uint64_t type_or_state)
{
	for (; at < tape.count; at++) {
		const struct tape_line *line = &tape.lines[at];

		if (line->what == what && (what != TAPE_START || line->type == type_or_state) &&
		    (what != TAPE_STATE || (uint64_t)line->state == type_or_state))
			break;
	}
	if (at < tape.count)
		recorder.clock = (struct clock_source){ .kind = CLOCK_KIND_COUNTER,
							.base_ns = tape.lines[at++].time_ns };
}

/*
 * The tapes lack the datatype of API events: all were made with ncclInt32. Kernel events are
 * requested regardless of this host's /dev/shm: nothing here needs the space.
 */
#define WRAP(N)                                                                                \
	static int init_v##N(void **context, uint64_t hash, int *mask, const char *name,       \
			     int nnodes, int nranks, int rank, abi_log_fn log)                 \
	{                                                                                      \
		int result = ncclProfiler_v##N.init(context, hash, mask, name, nnodes, nranks, \
						    rank, log);                                \
		*mask |= ABI_KERNEL_CH;                                                        \
		return result;                                                                 \
	}                                                                                      \
	static int start_v##N(void *context, void **handle, struct abi_descr_v##N *descr)      \
	{                                                                                      \
		set_clock(TAPE_START, descr->type);                                            \
		if (descr->type == ABI_COLL_API)                                               \
			descr->coll_api.datatype = "ncclInt32";                                \
		if (descr->type == ABI_P2P_API)                                                \
			descr->p2p_api.datatype = "ncclInt32";                                 \
		return ncclProfiler_v##N.start_event(context, handle, descr);                  \
	}                                                                                      \
	static int stop_v##N(void *handle)                                                     \
	{                                                                                      \
		set_clock(TAPE_STOP, 0);                                                       \
		return ncclProfiler_v##N.stop_event(handle);                                   \
	}                                                                                      \
	static int state_v##N(void *handle, int state, union abi_args_v##N *args)              \
	{                                                                                      \
		set_clock(TAPE_STATE, (uint64_t)state);                                        \
		return ncclProfiler_v##N.record_event_state(handle, state, args);              \
	}                                                                                      \
	static const struct abi_plugin_v##N wrapped_v##N = {                                   \
		"tape", init_v##N, start_v##N, stop_v##N, state_v##N, finalize_v##N            \
	}

static int finalize_v5(void *context)
{
	return ncclProfiler_v5.finalize(context);
}

static int finalize_v6(void *context)
{
	return ncclProfiler_v6.finalize(context);
}

WRAP(5);
WRAP(6);

/* ---- what the tape says ---------------------------------------------------------------------- */

static struct wanted *wanted_of(struct wanted *ops, size_t count, uint64_t handle, bool is_task)
{
	for (size_t i = count; i-- > 0;)
		if ((is_task ? ops[i].task : ops[i].api) == handle)
			return &ops[i];
	return NULL;
}

static uint64_t bytes_of(const char *function, uint64_t count, int64_t nranks)
{
	bool is_per_rank =
		strcmp(function, "AllGather") == 0 || strcmp(function, "ReduceScatter") == 0;

	return count * 4 * (is_per_rank ? (uint64_t)nranks : 1);
}

/* A Coll or P2p event: the task of a call, or a replay of a captured one. */
static size_t take_task(struct wanted *ops, size_t count, const struct tape_line *line)
{
	struct wanted *call = wanted_of(ops, count, line->parent, false);

	if (call == NULL)
		return count;
	if (!call->is_captured) {
		call->task = line->handle;
		return count;
	}
	ops[count] = (struct wanted){ .function = call->function,
				      .count = call->count,
				      .bytes = call->bytes,
				      .task = line->handle,
				      .is_replay = true };
	return count + 1;
}

static void take_kernel(struct wanted *op, uint64_t gpu_ns, bool is_stop)
{
	if (op == NULL)
		return;
	if (is_stop) {
		op->gpu_stop_ns = gpu_ns > op->gpu_stop_ns ? gpu_ns : op->gpu_stop_ns;
		return;
	}
	op->kernels++;
	if (op->gpu_start_ns == 0 || gpu_ns < op->gpu_start_ns)
		op->gpu_start_ns = gpu_ns;
}

static size_t read_wanted(struct wanted ops[OPS_MAX])
{
	static struct {
		uint64_t handle, parent;
	} kernels[4 * OPS_MAX];
	size_t count = 0, kernel_count = 0;

	memset(ops, 0, sizeof(*ops) * OPS_MAX);
	for (size_t i = 0; i < tape.count; i++) {
		const struct tape_line *line = &tape.lines[i];

		if (line->what == TAPE_START && line->type & (ABI_COLL_API | ABI_P2P_API)) {
			ops[count].function = line->function;
			ops[count].count = line->count;
			ops[count].bytes =
				bytes_of(line->function, line->count, tape.lines[0].nranks);
			ops[count].is_captured = line->is_captured;
			ops[count++].api = line->handle;
		} else if (line->what == TAPE_START && line->type & (ABI_COLL | ABI_P2P)) {
			count = take_task(ops, count, line);
		} else if (line->what == TAPE_START && line->type == ABI_KERNEL_CH) {
			kernels[kernel_count].handle = line->handle;
			kernels[kernel_count++].parent = line->parent;
			take_kernel(wanted_of(ops, count, line->parent, true), line->gpu_ns, false);
		} else if (line->what == TAPE_STATE && line->state == ABI_KERNEL_CH_STOP) {
			for (size_t k = 0; k < kernel_count; k++)
				if (kernels[k].handle == line->handle)
					take_kernel(wanted_of(ops, count, kernels[k].parent, true),
						    line->arg, true);
		}
	}
	return count;
}

/* ---- what the recorder says ------------------------------------------------------------------ */

static bool is_as_wanted(const struct op_record *op, const struct wanted *wanted)
{
	bool is_timed = wanted->kernels > 0 && op->time_source == OP_TIME_KERNEL_GPU &&
			op_duration_ns(op) == wanted->gpu_stop_ns - wanted->gpu_start_ns;
	bool is_over = wanted->is_captured ? op->state == OP_CAPTURED : op->state == OP_DONE;
	bool is_call_only = wanted->task == 0 && !wanted->is_captured;

	return strcmp(op_function_name(op->function), wanted->function) == 0 &&
	       op->count == wanted->count && op->bytes == wanted->bytes &&
	       !!(op->flags & OP_FLAG_REPLAY) == wanted->is_replay &&
	       op->kernels_started == wanted->kernels &&
	       (is_call_only ? op->flags & OP_FLAG_API_ONLY : is_over) &&
	       (is_timed || wanted->kernels == 0) && !(op->flags & OP_STAMPS_UNTRUSTED);
}

static void play(const char *path, int version)
{
	struct host_linked linked = { .v5 = version == 5 ? &wrapped_v5 : NULL,
				      .v6 = version == 6 ? &wrapped_v6 : NULL };
	struct tape_config config = { .linked = &linked, .keeps_stamps = true };
	struct tape_counts counts;
	struct tape_error error;

	at = 0;
	if (tape_read(&tape, path, version, &error) != OK ||
	    tape_play(&tape, &config, &counts, &error) != OK) {
		printf("Bail out! %s: %s\n", path, error.text);
		exit(1);
	}
	EXPECT_EQUAL(counts.version, version);
}

static void a_tape_is_recorded(const char *path, int version, size_t calls)
{
	static struct wanted ops[OPS_MAX];
	uint32_t id = (uint32_t)recorder.region.header->comms_made + 1;
	const struct comm_counts *counts = &recorder.region.comms[id - 1].counts;
	uint64_t lost = plugin_host_lost();
	size_t wrong = 0, timed = 0, count;

	printf("# %s\n", path);
	play(path, version);
	count = read_wanted(ops);
	for (size_t i = 0; i < count; i++) {
		const struct op_record *op = plugin_host_record(id, i + 1);

		timed += ops[i].kernels > 0;
		if (is_as_wanted(op, &ops[i]))
			continue;
		wrong++;
		printf("# operation %zu, %s: flags 0x%x, state %u, bytes %llu, time source %u\n",
		       i + 1, ops[i].function, op->flags, op->state, (unsigned long long)op->bytes,
		       op->time_source);
	}
	EXPECT_EQUAL(count, calls);
	EXPECT_EQUAL(counts->issued, count);
	EXPECT_EQUAL(counts->recorded, count);
	EXPECT_EQUAL(wrong, 0);
	EXPECT_EQUAL(counts->timed, timed);
	EXPECT_EQUAL(counts->untrusted, 0);
	EXPECT_EQUAL(plugin_host_lost() - lost, 0);
	tape_release(&tape);
}

int main(void)
{
	int mask = 0;
	void *context;

	plugin_host_setup("flight");
	/* It would read the clock that the tape sets. */
	setenv("RINGSIDE_HEARTBEAT", "0", 1);
	ncclProfiler_v5.init(&context, 1, &mask, NULL, 1, 2, 0, NULL);
	ncclProfiler_v5.finalize(context);
	a_tape_is_recorded("tests/tapes/six-ops-rank0.tap", 5, 42);
	a_tape_is_recorded("tests/tapes/six-ops-rank1.tap", 5, 42);
	a_tape_is_recorded("tests/tapes/graph-replay-a.tap", 5, 30);
	a_tape_is_recorded("tests/tapes/six-ops-v6-rank0.tap", 6, 42);
	return tap_done();
}
