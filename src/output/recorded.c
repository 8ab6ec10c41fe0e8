/* Processes, communicators and operations as recorded. */
#include "output/recorded.h"

#include <inttypes.h>
#include <string.h>

#include "common/nccl_interface.h"
#include "common/op.h"
#include "common/text.h"

const char *flight_words_operation(const struct recording_process *process,
				   const struct recording_flight *flight,
				   char words[static FLIGHT_WORDS])
{
	const struct op_record *op = &flight->op;
	const char *name = recording_name(process, OP_NAMES_FUNCTION, op->function);

	if (op->function == OP_SEND && op->peer != OP_NOBODY)
		text_format(words, FLIGHT_WORDS, "%s to %d", name, op->peer);
	else if (op->function == OP_RECV && op->peer != OP_NOBODY)
		text_format(words, FLIGHT_WORDS, "%s from %d", name, op->peer);
	else if (op->function == OP_BROADCAST && op->root != OP_NOBODY)
		text_format(words, FLIGHT_WORDS, "%s from %d", name, op->root);
	else if (op->function == OP_REDUCE && op->root != OP_NOBODY)
		text_format(words, FLIGHT_WORDS, "%s to %d", name, op->root);
	else
		text_format(words, FLIGHT_WORDS, "%s%s", name,
			    op->flags & OP_FLAG_REPLAY ? " (graph)" : "");
	return words;
}

static unsigned int bits_set(const uint64_t bits[static 4])
{
	unsigned int count = 0;

	for (int i = 0; i < 4; i++)
		count += (unsigned int)__builtin_popcountll(bits[i]);
	return count;
}

static unsigned int larger_of(unsigned int a, unsigned int b)
{
	return a > b ? a : b;
}

const char *flight_words_kernel(const struct recording_process *process,
				const struct recording_flight *flight,
				char words[static FLIGHT_WORDS])
{
	const struct recording_comm *comm = recording_comm(process, flight->op.comm);
	/* Traces have counts, but not which channels. */
	unsigned int started = larger_of(bits_set(flight->started), flight->op.kernels_started);
	unsigned int stopped = larger_of(bits_set(flight->stopped), flight->op.kernels_stopped);

	words[0] = '\0';
	if (flight->op.state == OP_ISSUED)
		text_copy(words, FLIGHT_WORDS, "NCCL has not launched it");
	else if (started > 0 && flight->op.channels >= started)
		text_format(words, FLIGHT_WORDS, "kernel: %u of %u channels started, %u stopped",
			    started, flight->op.channels, stopped);
	else if (started > 0)
		text_format(words, FLIGHT_WORDS, "kernel: %u channels started, %u stopped", started,
			    stopped);
	else if (flight->op.state == OP_LAUNCHED && comm &&
		 comm->info.flags & COMM_FLAG_SEES_KERNELS)
		text_copy(words, FLIGHT_WORDS, "kernel: the GPU has not reached it");
	return words;
}

const char *flight_words_channels(const uint64_t bits[static 4],
				  char words[static FLIGHT_CHANNELS_TEXT])
{
	size_t used = 0;

	words[0] = '\0';
	for (unsigned int from = 0, to; from < 256; from = to + 1) {
		to = from;
		if (!(bits[from / 64] >> (from % 64) & 1))
			continue;
		while (to + 1 < 256 && bits[(to + 1) / 64] >> ((to + 1) % 64) & 1)
			to++;
		text_format(words + used, FLIGHT_CHANNELS_TEXT - used,
			    to > from ? "%s%u-%u" : "%s%u", used ? "," : "", from, to);
		used = strlen(words);
	}
	return words;
}

const char *flight_words_wait(const struct flight_wait *wait, char words[static FLIGHT_WORDS])
{
	char channels[FLIGHT_CHANNELS_TEXT], what[FLIGHT_WORDS - FLIGHT_CHANNELS_TEXT];
	unsigned int count = bits_set(wait->channels);

	/* The formats come from flight_reason_text(); each has one %d. */
	text_format(what, sizeof(what), flight_reason_text(wait->reason), wait->peer);
	flight_words_channels(wait->channels, channels);
	text_format(words, FLIGHT_WORDS, "%s%s%s", what,
		    count == 0	 ? ""
		    : count == 1 ? " on channel "
				 : " on channels ",
		    channels);
	return words;
}

void comm_json_put_kind(struct json *json, enum job_comm_kind kind)
{
	json_put_string(json, "kind", kind == JOB_COMM_UNKNOWN ? NULL : job_comm_kind_name(kind));
}

void comm_json_put_identity(struct json *json, const struct job_comm *comm)
{
	json_put_string(json, "label", comm->label);
	json_put_string(json, "name", comm->name[0] != '\0' ? comm->name : NULL);
	if (comm->hash != 0)
		json_put_hex(json, "hash", comm->hash);
	else
		json_put_null(json, "hash");
	json_put_unsigned(json, "generation", comm->generation);
	json_put_unsigned(json, "job_index", comm->group);
	comm_json_put_kind(json, comm->kind);
	json_put_known_signed(json, "ranks", comm->nranks > 0, comm->nranks);
	json_put_known_signed(json, "nodes", comm->nnodes > 0, comm->nnodes);
	json_put_unsigned(json, "recorded_ranks", comm->seat_count);
}

const char *recorded_process_text(const struct recording_process *process,
				  char text[static RECORDED_PROCESS_TEXT])
{
	char rank[40] = "process";

	if (process->rank >= 0)
		text_format(rank, sizeof(rank), "rank %" PRId64, process->rank);
	text_format(text, RECORDED_PROCESS_TEXT, "%s (pid %" PRId64 "%s%s%s%s)", rank, process->pid,
		    process->host[0] ? " on " : "", process->host, process->job[0] ? ", job " : "",
		    process->job);
	return text;
}

void recorded_process_here(struct sink *sink, const struct recording_process *process)
{
	sink_format(sink, "pid %" PRId64, recording_pid(process));
	if (process->rank >= 0)
		sink_format(sink, ", rank %" PRId64, process->rank);
	if (process->job[0] != '\0')
		sink_format(sink, " of %s", process->job);
}

void recorded_process_json(struct json *json, const struct recording_process *process)
{
	json_put_text_or_null(json, "job", process->job);
	json_put_number_or_null(json, "rank", process->rank);
	json_put_text_or_null(json, "host", process->host);
	json_put_number_or_null(json, "pid", process->pid);
}

void recorded_times_json(struct json *json, const struct recording_process *process)
{
	struct recording_times times;

	recording_times(process, &times);
	json_put_text_or_null(json, "times", times.in_effect);
	json_put_text_or_null(json, "times_reason", times.reason);
	json_put_known(json, "timed_launches", times.has_counts, times.timed_launches);
	json_put_known(json, "untimed_launches", times.has_counts, times.untimed_launches);
	json_put_known(json, "recording_ns", times.has_counts, times.recording_ns);
	json_put_known(json, "times_taken", times.has_counts, times.taken);
	json_put_known(json, "times_dropped", times.has_counts, times.dropped);
	json_put_known(json, "timed_captures", times.has_counts, times.timed_captures);
	json_put_known(json, "untimed_captures", times.has_counts, times.untimed_captures);
	json_put_known(json, "closed_captures", times.has_counts, times.closed_captures);
	json_put_known(json, "replays_read", times.has_counts, times.replays_read);
	json_put_known(json, "replays_dropped", times.has_counts, times.replays_dropped);
}

static void launches_text(const struct recording_times *times, char *to, size_t size)
{
	char count[UNITS_TEXT], each[UNITS_TEXT];

	if (times->timed_launches > 0)
		text_append(to, size, "; CUDA events around %s %s, %s each",
			    units_count(count, times->timed_launches),
			    text_which(times->timed_launches, "launch", "launches"),
			    units_duration(each, times->recording_ns / times->timed_launches));
	if (times->untimed_launches > 0)
		text_append(to, size, "; %s %s no free events",
			    units_count(count, times->untimed_launches),
			    text_which(times->untimed_launches, "launch had", "launches had"));
	if (times->dropped > 0)
		text_append(to, size, "; %s of %s times dropped",
			    units_count(count, times->dropped),
			    units_count(each, times->dropped + times->taken));
	if (times->timed_captures > 0)
		text_append(to, size, "; around %s %s in CUDA graphs, %s replays read",
			    units_count(count, times->timed_captures),
			    text_which(times->timed_captures, "launch", "launches"),
			    units_count(each, times->replays_read));
	if (times->replays_dropped > 0)
		text_append(to, size, " and %s too late",
			    units_count(count, times->replays_dropped));
	if (times->untimed_captures > 0)
		text_append(to, size, "; %s %s in CUDA graphs had no free events",
			    units_count(count, times->untimed_captures),
			    text_which(times->untimed_captures, "launch", "launches"));
}

void recorded_times_text(const struct recording_process *process, uint64_t timed, uint64_t recorded,
			 char to[static RECORDED_TIMES_TEXT])
{
	char some[UNITS_TEXT], all[UNITS_TEXT];
	struct recording_times times;

	recording_times(process, &times);
	text_format(to, RECORDED_TIMES_TEXT, "%s%s%s", times.in_effect, times.reason[0] ? ": " : "",
		    times.reason);
	if (times.in_effect[0] == '\0')
		return;
	if (strcmp(times.in_effect, "off") == 0) {
		text_append(to, RECORDED_TIMES_TEXT, "; so %s", op_times_missed());
		return;
	}
	if (recorded > 0)
		text_append(to, RECORDED_TIMES_TEXT, "; %s of %s operations timed",
			    units_count(some, timed), units_count(all, recorded));
	launches_text(&times, to, RECORDED_TIMES_TEXT);
}

size_t recorded_live_comms(const struct recording_process *process)
{
	size_t live = 0;

	for (size_t i = 0; i < process->comm_count; i++)
		live += !(process->comms[i].info.flags & COMM_FLAG_FINALIZED) &&
			process->comms[i].info.finalize_ns == 0;
	return live;
}

uint64_t recorded_all_comms(const struct recording_process *process)
{
	uint64_t most = process->comm_count;

	if (process->region)
		return process->region->header.comms_made;
	/* Numbers are never reused, so the highest one is the count. */
	for (size_t i = 0; i < process->comm_count; i++)
		if (process->comms[i].info.id > most)
			most = process->comms[i].info.id;
	return most;
}

uint64_t recorded_lost(const struct recording_process *process)
{
	return op_lost_operations(process->lost);
}

void recorded_gpus(const struct recording_process *process, char *text, size_t size)
{
	uint64_t seen = 0;
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < process->comm_count; i++) {
		int gpu = process->comms[i].info.gpu;

		if (gpu >= 0 && gpu < 64)
			seen |= UINT64_C(1) << gpu;
	}
	for (int gpu = 0; gpu < 64; gpu++) {
		if (!(seen >> gpu & 1))
			continue;
		text_format(text + used, size - used, "%s%d", used ? "," : "", gpu);
		used = strlen(text);
	}
}

const char *recorded_comm_text(const struct recording_comm *comm,
			       char text[static RECORDED_COMM_TEXT])
{
	if (comm == NULL)
		text_copy(text, RECORDED_COMM_TEXT, "?");
	else if (comm->info.name[0])
		text_copy(text, RECORDED_COMM_TEXT, comm->info.name);
	else if (comm->info.hash != 0)
		text_format(text, RECORDED_COMM_TEXT, "0x%016" PRIx64, comm->info.hash);
	else
		text_format(text, RECORDED_COMM_TEXT, "#%u", comm->info.id);
	return text;
}

void recorded_comm_json(struct json *json, uint32_t id, const struct recording_comm *comm)
{
	const struct comm_info unknown = { .rank = -1 };
	const struct comm_info *info = comm ? &comm->info : &unknown;

	json_put_unsigned(json, "comm_id", id);
	if (info->hash != 0)
		json_put_hex(json, "comm_hash", info->hash);
	else
		json_put_null(json, "comm_hash");
	json_put_text_or_null(json, "comm_name", info->name);
	json_put_number_or_null(json, "comm_rank", info->rank);
	json_put_known_signed(json, "comm_ranks", info->nranks > 0, info->nranks);
	json_put_known_signed(json, "comm_nodes", info->nnodes > 0, info->nnodes);
}

/* False also if times contradict each other, and of spans and bounds. */
static bool has_duration(const struct op_record *op)
{
	struct op_record checked = *op;

	op_check_time(&checked);
	return op_has_duration(&checked);
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
	json_put_known(json, "bytes", op->bytes != OP_BYTES_UNKNOWN, op->bytes);
	json_put_number_or_null(json, "root", op->root);
	json_put_number_or_null(json, "peer", op->peer);
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

static void put_times(struct json *json, const struct recording_process *process,
		      const struct op_record *op)
{
	bool is_known = has_duration(op);
	uint64_t ns = 0;

	json_put_known(json, "duration_ns", is_known, is_known ? op_duration_ns(op) : 0);
	json_put_string(json, "time_source", op_time_name(op->time_source, op->flags));
	is_known = op->issue_ns != 0 && recording_wall_ns(process, op->issue_ns, &ns);
	json_put_known(json, "issue_wall_ns", is_known, ns);
	json_put_time_or_null(json, "issue_ns", op->issue_ns);
	json_put_time_or_null(json, "launch_ns", op->launch_ns);
	json_put_time_or_null(json, "task_ns", op->task_ns);
	json_put_time_or_null(json, "active_ns", op->active_ns);
	json_put_time_or_null(json, "done_ns", op->done_ns);
	json_put_time_or_null(json, "gpu_start_ns", op->gpu_start_ns);
	json_put_time_or_null(json, "gpu_stop_ns", op->gpu_stop_ns);
	/* Without timestamps of its channels their spread is unknown. */
	is_known = !(op->flags & OP_FLAG_CUDA_EVENT);
	json_put_known(json, "start_spread_ns", is_known && op->gpu_start_ns != 0,
		       op->start_spread_ns);
	json_put_known(json, "stop_spread_ns", is_known && op->gpu_stop_ns != 0,
		       op->stop_spread_ns);
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

void recorded_op_json(struct json *json, const struct recording_process *process,
		      const struct op_record *op)
{
	recorded_process_json(json, process);
	recorded_comm_json(json, op->comm, recording_comm(process, op->comm));
	json_put_time_or_null(json, "sequence", op->sequence);
	json_put_unsigned(json, "number", op->number);
	json_put_time_or_null(json, "match", op->match);
	json_put_hex(json, "signature", op->signature);
	json_put_time_or_null(json, "captured_number", op->captured_number);
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

/* Keys of the four times of a detail, by kind; NULL: none. */
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
			json_put_time_or_null(json, names[detail->kind][i], detail->time_ns[i]);
}

void recorded_detail_json(struct json *json, const struct recording_process *process,
			  const struct op_detail *detail)
{
	bool is_network = detail->kind != OP_DETAIL_KERNEL;

	recorded_process_json(json, process);
	json_put_time_or_null(json, "comm_id", detail->comm);
	json_put_time_or_null(json, "number", detail->number);
	json_put_time_or_null(json, "sequence", detail->sequence);
	json_put_string(json, "kind", detail_name(detail->kind));
	json_put_unsigned(json, "channel", detail->channel);
	if (is_network) {
		json_put_string(json, "direction",
				detail->flags & OP_DETAIL_IS_SEND ? "send" : "recv");
		json_put_number_or_null(json, "peer", detail->peer);
		json_put_signed(json, detail->kind == OP_DETAIL_PROXY ? "steps" : "step",
				detail->step);
		json_put_unsigned(json, "bytes", detail->bytes);
		json_put_bool(json, "is_foreign", detail->flags & OP_DETAIL_IS_FOREIGN);
		json_put_unsigned(json, "origin_pid", detail->origin_pid);
	}
	put_detail_times(json, detail);
}
