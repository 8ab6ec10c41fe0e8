#include "programs/cli/cli_op.h"

#include "common/op.h"
#include "programs/cli/cli_process.h"

bool cli_op_duration(const struct op_record *op, uint64_t *ns)
{
	uint64_t from, to;

	switch (op->time_source) {
	case OP_TIME_KERNEL_GPU:
		from = op->gpu_start_ns;
		to = op->gpu_stop_ns;
		break;
	case OP_TIME_PROXY:
		from = op->active_ns;
		to = op->done_ns;
		break;
	case OP_TIME_HOST:
		from = op->issue_ns;
		to = op->done_ns;
		break;
	default:
		return false;
	}
	if (from == 0 || to < from)
		return false;
	*ns = op_duration_ns(op);
	return true;
}

static void put_name(struct json *json, const struct recording_process *process, const char *key,
		     enum op_name_table table, uint8_t number)
{
	/* 0 is "unknown" in all four tables. */
	json_put_string(json, key, number ? recording_name(process, table, number) : NULL);
}

static void put_what(struct json *json, const struct recording_process *process,
		     const struct op_record *op)
{
	put_name(json, process, "function", OP_NAMES_FUNCTION, op->function);
	put_name(json, process, "datatype", OP_NAMES_DATATYPE, op->datatype);
	put_name(json, process, "algorithm", OP_NAMES_ALGORITHM, op->algorithm);
	put_name(json, process, "protocol", OP_NAMES_PROTOCOL, op->protocol);
	json_put_unsigned(json, "count", op->count);
	if (op->bytes == OP_BYTES_UNKNOWN)
		json_put_null(json, "bytes");
	else
		json_put_unsigned(json, "bytes", op->bytes);
	cli_json_number_or_null(json, "root", op->root);
	cli_json_number_or_null(json, "peer", op->peer);
	json_put_unsigned(json, "channels", op->channels);
	json_put_unsigned(json, "warps", op->warps);
	json_put_hex(json, "stream", op->stream);
	json_put_unsigned(json, "user_tag", op->user_tag);
	json_put_unsigned(json, "nccl_sequence", op->nccl_sequence);
}

static void put_flags(struct json *json, uint32_t flags)
{
	json_put_array(json, "flags");
	for (unsigned int bit = 0; bit < 32; bit++)
		if (flags >> bit & 1 && op_flag_name(bit))
			json_string(json, op_flag_name(bit));
	json_end(json);
}

/* Without a stamp of the GPU it is not known how far the channels were apart. */
static void put_spread(struct json *json, const char *key, uint64_t stamp_ns, uint32_t spread_ns)
{
	if (stamp_ns != 0)
		json_put_unsigned(json, key, spread_ns);
	else
		json_put_null(json, key);
}

static void put_times(struct json *json, const struct recording_process *process,
		      const struct op_record *op)
{
	uint64_t ns = 0;

	if (cli_op_duration(op, &ns))
		json_put_unsigned(json, "duration_ns", ns);
	else
		json_put_null(json, "duration_ns");
	json_put_string(json, "time_source", op_time_source_name(op->time_source));
	if (op->issue_ns != 0 && recording_wall_ns(process, op->issue_ns, &ns))
		json_put_unsigned(json, "issue_wall_ns", ns);
	else
		json_put_null(json, "issue_wall_ns");
	cli_json_time_or_null(json, "issue_ns", op->issue_ns);
	cli_json_time_or_null(json, "launch_ns", op->launch_ns);
	cli_json_time_or_null(json, "task_ns", op->task_ns);
	cli_json_time_or_null(json, "active_ns", op->active_ns);
	cli_json_time_or_null(json, "done_ns", op->done_ns);
	cli_json_time_or_null(json, "gpu_start_ns", op->gpu_start_ns);
	cli_json_time_or_null(json, "gpu_stop_ns", op->gpu_stop_ns);
	put_spread(json, "start_spread_ns", op->gpu_start_ns, op->start_spread_ns);
	put_spread(json, "stop_spread_ns", op->gpu_stop_ns, op->stop_spread_ns);
}

static void put_progress(struct json *json, const struct op_record *op)
{
	json_put_unsigned(json, "kernels_started", op->kernels_started);
	json_put_unsigned(json, "kernels_stopped", op->kernels_stopped);
	json_put_unsigned(json, "proxies_started", op->proxies_started);
	json_put_unsigned(json, "proxies_stopped", op->proxies_stopped);
	json_put_unsigned(json, "send_bytes", op->send_bytes);
	json_put_unsigned(json, "recv_bytes", op->recv_bytes);
	json_put_unsigned(json, "send_steps", op->send_steps);
	json_put_unsigned(json, "recv_steps", op->recv_steps);
	json_put_object(json, "wait_ns");
	for (unsigned int i = 0; i < OP_WAITS; i++)
		json_put_unsigned(json, op_wait_name(i), op->wait_ns[i]);
	json_end(json);
}

void cli_op_json(struct json *json, const struct recording_process *process,
		 const struct op_record *op)
{
	cli_process_json(json, process);
	cli_comm_json(json, op->comm, recording_comm(process, op->comm));
	cli_json_time_or_null(json, "sequence", op->sequence);
	json_put_unsigned(json, "number", op->number);
	cli_json_time_or_null(json, "match", op->match);
	json_put_hex(json, "signature", op->signature);
	cli_json_time_or_null(json, "captured_number", op->captured_number);
	put_what(json, process, op);
	json_put_string(json, "state", op_state_name(op->state));
	put_flags(json, op->flags);
	put_times(json, process, op);
	put_progress(json, op);
}

static const char *detail_name(uint8_t kind)
{
	switch (kind) {
	case OP_DETAIL_KERNEL:
		return "kernel";
	case OP_DETAIL_PROXY:
		return "proxy";
	case OP_DETAIL_STEP:
		return "step";
	default:
		return "?";
	}
}

/* What the four times of a detail mean, by its kind; NULL: nothing. */
static void put_detail_times(struct json *json, const struct op_detail *detail)
{
	static const char *const names[][4] = {
		[OP_DETAIL_KERNEL] = { "gpu_start_ns", "gpu_stop_ns", "seen_start_ns",
				       "seen_stop_ns" },
		[OP_DETAIL_PROXY] = { "queued_ns", "active_ns", NULL, "done_ns" },
		[OP_DETAIL_STEP] = { "posted_ns", "ready_ns", "moved_ns", "done_ns" },
	};

	if (detail->kind < OP_DETAIL_KERNEL || detail->kind > OP_DETAIL_STEP)
		return;
	for (unsigned int i = 0; i < 4; i++)
		if (names[detail->kind][i])
			cli_json_time_or_null(json, names[detail->kind][i], detail->time_ns[i]);
}

void cli_detail_json(struct json *json, const struct recording_process *process,
		     const struct op_detail *detail)
{
	bool is_network = detail->kind != OP_DETAIL_KERNEL;

	cli_process_json(json, process);
	cli_json_time_or_null(json, "comm_id", detail->comm);
	cli_json_time_or_null(json, "number", detail->number);
	cli_json_time_or_null(json, "sequence", detail->sequence);
	json_put_string(json, "kind", detail_name(detail->kind));
	json_put_unsigned(json, "channel", detail->channel);
	if (is_network) {
		json_put_string(json, "direction",
				detail->flags & OP_DETAIL_IS_SEND ? "send" : "recv");
		cli_json_number_or_null(json, "peer", detail->peer);
		json_put_signed(json, detail->kind == OP_DETAIL_PROXY ? "steps" : "step",
				detail->step);
		json_put_unsigned(json, "bytes", detail->bytes);
		json_put_bool(json, "is_foreign", detail->flags & OP_DETAIL_IS_FOREIGN);
		json_put_unsigned(json, "origin_pid", detail->origin_pid);
	}
	put_detail_times(json, detail);
}
