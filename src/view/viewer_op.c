#include "view/viewer_op.h"

#include <string.h>

#include "analysis/tally.h"
#include "common/op.h"
#include "common/text.h"

static const char *name_of(const struct viewer_op *of, enum op_name_table table, uint8_t number)
{
	return recording_name(of->process, table, number);
}

/* What a reader should know before it clicks. */
static const char *remark(const struct viewer_op *of)
{
	if (of->place->kind == VIEWER_IN_FLIGHT)
		return " (in flight)";
	switch (of->op->state) {
	case OP_ABANDONED:
		return " (abandoned)";
	case OP_CAPTURED:
		return " (captured)";
	default:
		break;
	}
	if (of->place->kind == VIEWER_CALLED)
		return " (call only)";
	return of->place->kind == VIEWER_NOWHERE ? " (no time recorded)" : "";
}

void viewer_op_name(const struct viewer_op *of, char name[static VIEWER_NAME_TEXT])
{
	const struct op_record *op = of->op;
	char size[UNITS_TEXT], bytes[UNITS_TEXT + 1] = "", peer[24] = "";

	if (op->bytes != OP_BYTES_UNKNOWN)
		text_format(bytes, sizeof(bytes), " %s", units_bytes(size, op->bytes));
	if (op->peer >= 0)
		text_format(peer, sizeof(peer), " %s %d", op->function == OP_RECV ? "from" : "to",
			    (int)op->peer);
	text_format(name, VIEWER_NAME_TEXT, "%s%s%s%s",
		    name_of(of, OP_NAMES_FUNCTION, op->function), bytes, peer, remark(of));
}

static void put_flags(struct viewer_args *args, struct viewer_op_texts *texts, uint32_t flags)
{
	size_t at = 0;

	texts->flags[0] = '\0';
	for (unsigned int bit = 0; bit < 32; bit++) {
		const char *name = flags >> bit & 1 ? op_flag_name(bit) : NULL;

		if (name) {
			text_format(texts->flags + at, sizeof(texts->flags) - at, "%s%s",
				    at > 0 ? " " : "", name);
			at += strlen(texts->flags + at);
		}
	}
	if (at > 0)
		viewer_arg_text(args, "flags", texts->flags);
}

static void put_known(struct viewer_args *args, const char *name, uint64_t value)
{
	if (value != 0)
		viewer_arg_unsigned(args, name, value);
}

static void put_rank(struct viewer_args *args, const char *name, int32_t rank)
{
	if (rank >= 0)
		viewer_arg_signed(args, name, rank);
}

static bool has_root(uint8_t function)
{
	return function == OP_BROADCAST || function == OP_REDUCE || function == OP_GATHER ||
	       function == OP_SCATTER;
}

static void put_what(const struct viewer_op *of, struct viewer_args *args)
{
	const struct op_record *op = of->op;

	viewer_arg_text(args, "function", name_of(of, OP_NAMES_FUNCTION, op->function));
	if (of->seat) {
		const struct job_comm *comm = &of->job->comms[of->seat->comm];

		viewer_arg_text(args, "communicator", comm->label);
		if (comm->hash != 0)
			viewer_arg_hex(args, "comm_hash", comm->hash);
		put_rank(args, "comm_rank", of->seat->comm_rank);
		put_known(args, "comm_ranks", comm->nranks > 0 ? (uint64_t)comm->nranks : 0);
	}
	viewer_arg_unsigned(args, "number", op->number);
	put_known(args, "match", op->match);
	if (op->bytes != OP_BYTES_UNKNOWN)
		viewer_arg_unsigned(args, "bytes", op->bytes);
	viewer_arg_unsigned(args, "count", op->count);
	viewer_arg_text(args, "datatype", name_of(of, OP_NAMES_DATATYPE, op->datatype));
	if (has_root(op->function))
		put_rank(args, "root", op->root);
	put_rank(args, "peer", op->peer);
	viewer_arg_text(args, "algorithm", name_of(of, OP_NAMES_ALGORITHM, op->algorithm));
	viewer_arg_text(args, "protocol", name_of(of, OP_NAMES_PROTOCOL, op->protocol));
	put_known(args, "channels", op->channels);
	put_known(args, "user_tag", op->user_tag);
	put_known(args, "captured_number", op->captured_number);
}

double viewer_op_bus_bytes(const struct viewer_op *of)
{
	int32_t nranks = of->seat ? of->job->comms[of->seat->comm].nranks : 0;

	if (of->op->bytes == OP_BYTES_UNKNOWN)
		return 0;
	return (double)of->op->bytes * op_bus_factor(of->op->function, nranks);
}

static void put_time(const struct viewer_op *of, struct viewer_op_texts *texts,
		     struct viewer_args *args)
{
	const struct op_record *op = of->op;
	uint64_t duration_ns = op_duration_ns(op);
	double bus_bytes = viewer_op_bus_bytes(of);

	viewer_arg_text(args, "state", op_state_name(op->state));
	viewer_arg_text(args, "time_source", op_time_source_name(op->time_source));
	viewer_arg_text(args, "placed", viewer_place_name(of->place->kind));
	if (op->time_source != OP_TIME_NONE)
		viewer_arg_unsigned(args, "duration_ns", duration_ns);
	if (op->time_source != OP_TIME_NONE && duration_ns > 0 && bus_bytes > 0)
		viewer_arg_double(args, "busbw_gigabytes_per_s",
				  viewer_round(bus_bytes / (double)duration_ns));
	put_known(args, "in_flight_ns", of->in_flight_ns);
	if (op->issue_ns != 0 && op->launch_ns >= op->issue_ns)
		viewer_arg_unsigned(args, "issue_to_launch_ns", op->launch_ns - op->issue_ns);
	put_known(args, "start_spread_ns", op->start_spread_ns);
	put_known(args, "stop_spread_ns", op->stop_spread_ns);
	put_flags(args, texts, op->flags);
}

static void put_meeting(const struct viewer_op *of, struct viewer_op_texts *texts,
			struct viewer_args *args)
{
	const struct viewer_met *met = of->met;
	const struct job_rank *last;

	if (met->is_differing)
		viewer_arg_text(args, "mismatch", "other ranks called something else here");
	if (!met->has_wait)
		return;
	viewer_arg_unsigned(args, "wait_ns", met->wait_ns);
	last = &of->job->ranks[met->last->rank];
	if (met->last == of->seat)
		text_copy(texts->waits_for, sizeof(texts->waits_for), "nobody: came last");
	else
		text_format(texts->waits_for, sizeof(texts->waits_for), "rank %s", last->label);
	viewer_arg_text(args, "waits_for", texts->waits_for);
	if (met->is_partial)
		viewer_arg_text(args, "wait_is", "at least: not all ranks are recorded");
}

static void put_network(const struct viewer_op *of, struct viewer_args *args)
{
	static const char *const wait_names[OP_WAITS] = {
		[OP_WAIT_SEND_GPU] = "transfers_send_gpu_ns",
		[OP_WAIT_SEND_PEER] = "transfers_send_peer_ns",
		[OP_WAIT_SEND_NET] = "transfers_send_net_ns",
		[OP_WAIT_RECV_NET] = "transfers_recv_net_ns",
		[OP_WAIT_RECV_FLUSH] = "transfers_recv_flush_ns",
		[OP_WAIT_RECV_GPU] = "transfers_recv_gpu_ns",
	};
	const struct op_record *op = of->op;

	put_known(args, "kernels_started", op->kernels_started);
	put_known(args, "kernels_stopped", op->kernels_stopped);
	put_known(args, "proxies_started", op->proxies_started);
	put_known(args, "proxies_stopped", op->proxies_stopped);
	put_known(args, "send_bytes", op->send_bytes);
	put_known(args, "recv_bytes", op->recv_bytes);
	for (unsigned int i = 0; i < OP_WAITS; i++)
		put_known(args, wait_names[i], op->wait_ns[i]);
}

void viewer_op_args(const struct viewer_op *of, struct viewer_op_texts *texts,
		    struct viewer_args *args)
{
	const struct op_record *op = of->op;

	args->count = 0;
	args->is_cut = false;
	put_what(of, args);
	put_time(of, texts, args);
	put_meeting(of, texts, args);
	put_network(of, args);
	put_known(args, "nccl_sequence", op->nccl_sequence);
	put_known(args, "sequence", op->sequence);
	if (op->stream != 0)
		viewer_arg_hex(args, "stream", op->stream);
	viewer_arg_hex(args, "signature", op->signature);
}

enum viewer_colour viewer_op_colour(const struct viewer_op *of)
{
	if (of->place->kind == VIEWER_IN_FLIGHT || of->op->state == OP_ABANDONED)
		return VIEWER_UNFINISHED;
	if (of->place->kind == VIEWER_SEEN || of->op->flags & OP_STAMPS_UNTRUSTED)
		return VIEWER_DOUBTFUL;
	return VIEWER_PLAIN;
}
