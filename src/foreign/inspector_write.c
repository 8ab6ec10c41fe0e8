#include "foreign/inspector_write.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "foreign/expected.h"
#include "foreign/json_chars.h"
#include "op/op_names.h"
#include "op/op_time.h"

enum { QUOTED_BYTES = 1600 }; /* 255 bytes, each six when it is escaped, and two quotes */

/* A JSON string. Bytes that are not UTF-8 become '?'. */
static const char *quote(char to[static QUOTED_BYTES], const char *text, const char *otherwise)
{
	size_t length = strnlen(text, 255), at = 0, used = 0;

	if (length == 0) {
		text = otherwise;
		length = strlen(otherwise);
	}
	to[used++] = '"';
	while (at < length) {
		unsigned char byte = (unsigned char)text[at];
		size_t bytes = 1;

		if (byte >= 0x80) {
			bytes = json_utf8_bytes((const unsigned char *)text + at, length - at);
			memcpy(to + used, bytes > 0 ? text + at : "?", bytes > 0 ? bytes : 1);
			used += bytes > 0 ? bytes : 1;
			bytes += bytes == 0;
		} else if (byte == '"' || byte == '\\') {
			to[used++] = '\\';
			to[used++] = (char)byte;
		} else if (byte < 0x20 || byte == 0x7f) {
			text_format(to + used, 8, "\\u%04x", byte);
			used += 6;
		} else {
			to[used++] = (char)byte;
		}
		at += bytes;
	}
	to[used++] = '"';
	to[used] = '\0';
	return to;
}

static const char *source_name(uint8_t source)
{
	switch (source) {
	case OP_TIME_KERNEL_GPU:
		return "kernel_gpu";
	case OP_TIME_PROXY:
		return "kernel_cpu";
	default:
		return "collective_cpu";
	}
}

/* What Inspector calls the size: what one rank gave to AllGather, what it got from ReduceScatter. */
static uint64_t rank_bytes(const struct op_record *op, const struct comm_info *comm)
{
	bool is_whole = op->function == OP_ALL_GATHER || op->function == OP_REDUCE_SCATTER;

	return is_whole ? op->bytes / (uint64_t)comm->nranks : op->bytes;
}

static bool is_p2p(uint8_t function)
{
	return function == OP_SEND || function == OP_RECV;
}

static bool has_line(const struct op_record *op, const struct comm_info *comm)
{
	bool is_known = (op->function >= OP_ALL_REDUCE && op->function <= OP_REDUCE) ||
			is_p2p(op->function);

	return is_known && op->bytes != OP_BYTES_UNKNOWN && comm->rank >= 0 && comm->nranks > 0 &&
	       op_duration_ns(op) > 0;
}

size_t inspector_write_op(char line[static INSPECTOR_LINE_BYTES],
			  const struct inspector_speaker *speaker, const struct comm_info *comm,
			  const struct op_record *op, uint64_t p2p_number)
{
	const char *kind = is_p2p(op->function) ? "p2p" : "coll";
	uint64_t duration_ns = op_duration_ns(op);
	char host[QUOTED_BYTES], name[QUOTED_BYTES], peer[32] = "";
	double algbw;

	if (!has_line(op, comm))
		return 0;
	algbw = (double)op->bytes / (double)duration_ns;
	if (is_p2p(op->function))
		text_format(peer, sizeof(peer), "\"p2p_peer\":%d,", op->peer);
	text_format(
		line, INSPECTOR_LINE_BYTES,
		"{\"header\":{\"id\":\"0x%llx\",\"comm_name\":%s,\"rank\":%d,\"n_ranks\":%d,"
		"\"nnodes\":%d},\"metadata\":{\"inspector_output_format_version\":\"v4.0\","
		"\"git_rev\":\"ringside-" RINGSIDE_VERSION "\","
		"\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":%llu,"
		"\"hostname\":%s,\"pid\":%lld},\"%s_perf\":{\"%s\":\"%s\",\"%s_sn\":%llu,%s"
		"\"%s_msg_size_bytes\":%llu,\"%s_exec_time_us\":%llu,\"%s_timing_source\":\"%s\","
		"\"%s_algobw_gbs\":%.6f,\"%s_busbw_gbs\":%.6f}}\n",
		(unsigned long long)comm->hash, quote(name, comm->name, "unknown"), comm->rank,
		comm->nranks, comm->nnodes, (unsigned long long)(speaker->wall_ns / 1000),
		quote(host, speaker->host, "unknown"),
		(long long)(speaker->pid < 0 ? 0 : speaker->pid), kind, kind,
		op_function_name(op->function), kind,
		(unsigned long long)(is_p2p(op->function) ? p2p_number : op->nccl_sequence), peer,
		kind, (unsigned long long)rank_bytes(op, comm), kind,
		(unsigned long long)((duration_ns + 500) / 1000), kind,
		source_name(op->time_source), kind, algbw, kind,
		algbw * expected_bus_factor(op->function, comm->nranks));
	return strnlen(line, INSPECTOR_LINE_BYTES);
}

void inspector_file_name(char name[static INSPECTOR_NAME_BYTES], const char *host, int64_t pid)
{
	char clean[256];

	text_copy(clean, sizeof(clean), host[0] != '\0' ? host : "unknown");
	for (char *at = clean; *at != '\0'; at++)
		if (*at == '/' || (unsigned char)*at <= 0x20 || *at == 0x7f ||
		    (*at == '.' && at == clean))
			*at = '_';
	text_format(name, INSPECTOR_NAME_BYTES, "%s-pid%lld.log", clean,
		    (long long)(pid < 0 ? 0 : pid));
}
