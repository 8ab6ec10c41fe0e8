#include "inspector/inspector_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/text.h"
#include "base/utf8.h"
#include "op/op_bus.h"
#include "op/op_names.h"
#include "op/op_time.h"

enum { QUOTED_BYTES = 1600 }; /* 255 bytes, each six when it is escaped, and two quotes */

/* ---- what becomes of an operation ------------------------------------------------------------ */

static bool has_function(uint8_t function)
{
	return (function >= OP_ALL_REDUCE && function <= OP_REDUCE) || inspector_is_p2p(function);
}

/* Kernel events that come with stamps of earlier operations come too early themselves. */
enum {
	END_UNTRUSTED = OP_FLAG_STAMP_STALE | OP_FLAG_STAMP_CHANNEL | OP_FLAG_STAMP_REVERSED |
			OP_FLAG_FOREIGN_STOP,
};

struct inspector_time inspector_time(const struct op_record *op)
{
	struct inspector_time time = { op_duration_ns(op), op->time_source };

	if (op->time_source == OP_TIME_NONE && op->state == OP_DONE && op->issue_ns != 0 &&
	    op->done_ns != 0 && !(op->flags & END_UNTRUSTED))
		time = (struct inspector_time){ op->done_ns - op->issue_ns, OP_TIME_HOST };
	/* Stamps that lie the wrong way around are no time. */
	if (time.ns > INT64_MAX)
		time.ns = 0;
	return time;
}

uint64_t inspector_rank_bytes(const struct op_record *op, const struct comm_info *comm)
{
	bool is_whole = op->function == OP_ALL_GATHER || op->function == OP_REDUCE_SCATTER;

	return is_whole ? op->bytes / (uint64_t)comm->nranks : op->bytes;
}

enum inspector_fate inspector_fate(const struct op_record *op, const struct comm_info *comm,
				   const struct inspector_filter *filter)
{
	struct inspector_time time = inspector_time(op);

	if (op->state == OP_CAPTURED)
		return INSPECTOR_CAPTURED;
	if (!has_function(op->function))
		return INSPECTOR_OTHER_FUNCTION;
	if (comm->rank < 0 || comm->nranks <= 0)
		return INSPECTOR_UNKNOWN_RANKS;
	if (filter->is_without_p2p && inspector_is_p2p(op->function))
		return INSPECTOR_NO_P2P;
	if (op->bytes == OP_BYTES_UNKNOWN)
		return INSPECTOR_UNKNOWN_SIZE;
	if (inspector_rank_bytes(op, comm) < filter->least_bytes)
		return INSPECTOR_SMALL;
	if (time.ns == 0)
		return INSPECTOR_NO_TIME;
	if ((filter->is_kernel_gpu_only && time.source != OP_TIME_KERNEL_GPU) ||
	    (filter->is_without_bounds && op->time_source == OP_TIME_NONE))
		return INSPECTOR_HOST_TIME;
	return INSPECTOR_WRITTEN;
}

const char *inspector_fate_text(enum inspector_fate fate)
{
	static const char *const texts[] = {
		[INSPECTOR_WRITTEN] = "written",
		[INSPECTOR_CAPTURED] = "captured into graphs",
		[INSPECTOR_OTHER_FUNCTION] = "of other functions",
		[INSPECTOR_UNKNOWN_RANKS] = "of communicators of unknown size",
		[INSPECTOR_NO_P2P] = "Send and Recv",
		[INSPECTOR_SMALL] = "below the least size",
		[INSPECTOR_UNKNOWN_SIZE] = "of unknown size",
		[INSPECTOR_NO_TIME] = "without a time",
		[INSPECTOR_HOST_TIME] = "timed by the host only",
	};

	return (size_t)fate < ARRAY_LENGTH(texts) ? texts[fate] : "?";
}

/* ---- a line ---------------------------------------------------------------------------------- */

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
			bytes = utf8_bytes((const unsigned char *)text + at, length - at);
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

const char *inspector_number(char to[static INSPECTOR_NUMBER_BYTES], double number)
{
	uint64_t millionths = number > 0 && number < 1e12 ? (uint64_t)(number * 1e6 + 0.5) : 0;

	text_format(to, INSPECTOR_NUMBER_BYTES, "%llu.%06llu",
		    (unsigned long long)(millionths / 1000000),
		    (unsigned long long)(millionths % 1000000));
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

/* A line that grows. What does not fit any more makes it end: used is size then. */
struct growing {
	char *text;
	size_t size, used;
};

static PRINTF_LIKE(2, 3) void grow(struct growing *line, const char *format, ...)
{
	size_t room = line->size - line->used;
	va_list values;
	int length;

	va_start(values, format);
	length = room > 0 ? vsnprintf(line->text + line->used, room, format, values) : -1;
	va_end(values);
	line->used =
		length >= 0 && (size_t)length < room ? line->used + (size_t)length : line->size;
}

static void grow_header(struct growing *line, const struct inspector_speaker *speaker,
			const struct comm_info *comm)
{
	char host[QUOTED_BYTES], name[QUOTED_BYTES];

	grow(line,
	     "{\"header\":{\"id\":\"0x%llx\",\"comm_name\":%s,\"rank\":%d,\"n_ranks\":%d,"
	     "\"nnodes\":%d},\"metadata\":{\"inspector_output_format_version\":\"v4.0\","
	     "\"git_rev\":\"ringside-" RINGSIDE_VERSION "\","
	     "\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":%llu,"
	     "\"hostname\":%s,\"pid\":%lld},",
	     (unsigned long long)comm->hash, quote(name, comm->name, "unknown"), comm->rank,
	     comm->nranks, comm->nnodes, (unsigned long long)(speaker->wall_ns / 1000),
	     quote(host, speaker->host, "unknown"),
	     (long long)(speaker->pid < 0 ? 0 : speaker->pid));
}

static void grow_figures(struct growing *line, const struct comm_info *comm,
			 const struct op_record *op, uint64_t p2p_number)
{
	const char *kind = inspector_is_p2p(op->function) ? "p2p" : "coll";
	struct inspector_time time = inspector_time(op);
	double algbw = (double)op->bytes / (double)time.ns;
	char algorithm[INSPECTOR_NUMBER_BYTES], bus[INSPECTOR_NUMBER_BYTES], peer[32] = "";

	if (inspector_is_p2p(op->function))
		text_format(peer, sizeof(peer), "\"p2p_peer\":%d,", op->peer);
	grow(line,
	     "\"%s_perf\":{\"%s\":\"%s\",\"%s_sn\":%llu,%s\"%s_msg_size_bytes\":%llu,"
	     "\"%s_exec_time_us\":%llu,\"%s_timing_source\":\"%s\",\"%s_algobw_gbs\":%s,"
	     "\"%s_busbw_gbs\":%s",
	     kind, kind, op_function_name(op->function), kind,
	     (unsigned long long)(inspector_is_p2p(op->function) ? p2p_number : op->nccl_sequence),
	     peer, kind, (unsigned long long)inspector_rank_bytes(op, comm), kind,
	     (unsigned long long)((time.ns + 500) / 1000), kind, source_name(time.source), kind,
	     inspector_number(algorithm, algbw), kind,
	     inspector_number(bus, algbw * op_bus_factor(op->function, comm->nranks)));
}

/* ---- its events ------------------------------------------------------------------------------ */

/* Inspector numbers the events of an operation as they come; here they are put in order again. */
struct event {
	uint64_t ns;
	uint32_t place; /* channel's place, times two; odd: its stop */
};

static int compare_events(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

/* The first event is the operation's own. A stop counts twice: its record comes just before. */
static void number_events(const struct inspector_events *events, uint32_t *numbers)
{
	struct event order[2 * INSPECTOR_CHANNELS];
	uint32_t next = 2;

	for (size_t i = 0; i < events->count; i++) {
		order[2 * i] = (struct event){ events->channels[i].start_ns, (uint32_t)(2 * i) };
		order[2 * i + 1] =
			(struct event){ events->channels[i].stop_ns, (uint32_t)(2 * i + 1) };
	}
	qsort(order, 2 * events->count, sizeof(*order), compare_events);
	for (size_t i = 0; i < 2 * events->count; i++) {
		next += order[i].place & 1;
		numbers[order[i].place] = order[i].ns != 0 ? next : 0;
		next++;
	}
}

static void grow_numbers(struct growing *line, const char *kind,
			 const struct inspector_events *events)
{
	uint32_t numbers[2 * INSPECTOR_CHANNELS];

	number_events(events, numbers);
	grow(line, ",\"event_trace_sn\":{\"%s_start_sn\":1,\"%s_stop_sn\":0,\"kernel_events\":[",
	     kind, kind);
	for (size_t i = 0; i < events->count; i++) {
		uint32_t stop = numbers[2 * i + 1];

		grow(line,
		     "%s{\"channel_id\":%u,\"kernel_start_sn\":%u,\"kernel_stop_sn\":%u,"
		     "\"kernel_record_sn\":%u}",
		     i == 0 ? "" : ",", events->channels[i].channel, numbers[2 * i], stop,
		     stop > 0 ? stop - 1 : 0);
	}
	grow(line, "]}");
}

static void grow_times(struct growing *line, const char *kind,
		       const struct inspector_events *events)
{
	grow(line, ",\"event_trace_ts\":{\"%s_start_ts\":%llu,\"%s_stop_ts\":0,\"kernel_events\":[",
	     kind, (unsigned long long)(events->op_ns / 1000), kind);
	for (size_t i = 0; i < events->count; i++) {
		const struct inspector_channel *of = &events->channels[i];
		unsigned long long stop = (unsigned long long)(of->stop_ns / 1000);

		grow(line,
		     "%s{\"channel_id\":%u,\"kernel_start_ts\":%llu,\"kernel_stop_ts\":%llu,"
		     "\"kernel_record_ts\":%llu}",
		     i == 0 ? "" : ",", of->channel, (unsigned long long)(of->start_ns / 1000),
		     stop, stop);
	}
	grow(line, "]}");
}

size_t inspector_line(char *line, size_t size, const struct inspector_speaker *speaker,
		      const struct comm_info *comm, const struct op_record *op, uint64_t p2p_number,
		      const struct inspector_events *events)
{
	static const struct inspector_filter everything;
	const char *kind = inspector_is_p2p(op->function) ? "p2p" : "coll";
	struct growing growing = { line, size, 0 };

	if (inspector_fate(op, comm, &everything) != INSPECTOR_WRITTEN)
		return 0;
	grow_header(&growing, speaker, comm);
	grow_figures(&growing, comm, op, p2p_number);
	if (events != NULL && events->count <= INSPECTOR_CHANNELS) {
		grow_numbers(&growing, kind, events);
		grow_times(&growing, kind, events);
	}
	grow(&growing, "}}\n");
	return growing.used < size ? growing.used : 0;
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
