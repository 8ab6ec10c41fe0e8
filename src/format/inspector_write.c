/* NCCL Inspector's lines: which operations have one, what is in it, and the same as metrics. */
#include "format/inspector_write.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"

/* How long it took, and by which clock; ns 0: unknown. */
struct inspector_time {
	uint64_t ns;
	uint8_t source; /* enum op_time_source */
};

enum { QUOTED_BYTES = 1600 }; /* 255 bytes, six each if escaped, and two quotes */

/* ---- which operations are written ------------------------------------------------------------ */

static bool has_function(uint8_t function)
{
	return (function >= OP_ALL_REDUCE && function <= OP_REDUCE) || inspector_is_p2p(function);
}

/* Kernel events with stamps of earlier operations are themselves too early. */
enum {
	END_UNTRUSTED = OP_FLAG_STAMP_STALE | OP_FLAG_STAMP_CHANNEL | OP_FLAG_STAMP_REVERSED |
			OP_FLAG_FOREIGN_STOP,
};

/*
 * The record's own time. If it has none but its end was seen: from its call until then, source
 * host. That is an upper bound that includes the time in the queue.
 */
static struct inspector_time inspector_time(const struct op_record *op)
{
	struct inspector_time time = { op_span_ns(op), op->time_source };

	if (op->time_source == OP_TIME_NONE && op->state == OP_DONE && op->issue_ns != 0 &&
	    op->done_ns != 0 && !(op->flags & END_UNTRUSTED))
		time = (struct inspector_time){ op->done_ns - op->issue_ns, OP_TIME_HOST };
	/* A stop before its start is not a time. */
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
	    (filter->is_without_bounds && !op_has_duration(op)))
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
		[INSPECTOR_SMALL] = "below the minimum size",
		[INSPECTOR_UNKNOWN_SIZE] = "of unknown size",
		[INSPECTOR_NO_TIME] = "without a time",
		[INSPECTOR_HOST_TIME] = "timed by the host only",
	};

	return (size_t)fate < ARRAY_LENGTH(texts) ? texts[fate] : "?";
}

/* ---- a line ---------------------------------------------------------------------------------- */

/* A JSON string. Bytes that are not UTF-8 become '?'. */
static const char *quote_json(char to[static QUOTED_BYTES], const char *text, const char *otherwise)
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

/* A growing line. If something does not fit, the line ends there: used is then size. */
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
	     (unsigned long long)comm->hash, quote_json(name, comm->name, "unknown"), comm->rank,
	     comm->nranks, comm->nnodes, (unsigned long long)(speaker->wall_ns / 1000),
	     quote_json(host, speaker->host, "unknown"),
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

/* ---- events of a line ------------------------------------------------------------------------ */

/* Inspector numbers the events of an operation in order of arrival; sort them again. */
struct event {
	uint64_t ns;
	uint32_t place; /* position of the channel, times two; odd: its stop */
};

static int compare_events(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	return ORDER(a->ns, b->ns) ?: ORDER(a->place, b->place);
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

/* The format version as NCCL Inspector gives it: profiler interface 5, first revision. */
#define FORMAT_VERSION "v5.1"

static const struct {
	const char *name, *help;
} metrics[] = {
	[INSPECTOR_BUS_BANDWIDTH] = { "nccl_bus_bandwidth_gbs",
				      "Bus bandwidth of timed collectives finished in the "
				      "last interval, in GB/s (10^9 bytes)." },
	[INSPECTOR_EXEC_TIME] = { "nccl_collective_exec_time_microseconds",
				  "Mean execution time of timed collectives finished in the "
				  "last interval, in microseconds." },
	[INSPECTOR_P2P_BUS_BANDWIDTH] = { "nccl_p2p_bus_bandwidth_gbs",
					  "Bandwidth of timed Send and Recv finished in the "
					  "last interval, in GB/s (10^9 bytes)." },
	[INSPECTOR_P2P_EXEC_TIME] = { "nccl_p2p_exec_time_microseconds",
				      "Mean execution time of timed Send and Recv finished in the "
				      "last interval, in microseconds." },
};

/* ---- sizes ----------------------------------------------------------------------------------- */

/* 0: nothing, 1: below 1 KiB, then one per power of two. */
enum { SIZE_KIB = 2, SIZE_MIB = 12, SIZE_GIB = 22, SIZE_64GIB = 28, SIZE_TIB = 29 };

unsigned int inspector_size_class(uint64_t bytes)
{
	unsigned int power;

	if (bytes < 1024)
		return bytes > 0;
	power = 63 - (unsigned int)__builtin_clzll(bytes);
	if (power >= 40)
		return SIZE_TIB;
	return power - 10 + SIZE_KIB < SIZE_64GIB ? power - 10 + SIZE_KIB : SIZE_64GIB;
}

const char *inspector_size_text(char text[static INSPECTOR_SIZE_BYTES], unsigned int size_class)
{
	static const char *const units[] = { "KB", "MB", "GB" };
	unsigned int power = size_class - SIZE_KIB;

	if (size_class < SIZE_KIB)
		text_copy(text, INSPECTOR_SIZE_BYTES, size_class == 0 ? "0B" : "1-1024B");
	else if (size_class >= SIZE_64GIB)
		text_copy(text, INSPECTOR_SIZE_BYTES,
			  size_class == SIZE_64GIB ? "64-1024GB" : "1-1024TB");
	else
		text_format(text, INSPECTOR_SIZE_BYTES, "%u-%u%s", 1u << power % 10,
			    2u << power % 10, units[power / 10]);
	return text;
}

/* ---- lines ----------------------------------------------------------------------------------- */

enum { VALUE_BYTES = 520 }; /* 255 bytes, two each if escaped */

/* The text between the quotes of a label; bytes that are not UTF-8 become '?'. */
static const char *escape_label(char to[static VALUE_BYTES], const char *text)
{
	size_t length, used = 0;

	if (text == NULL || text[0] == '\0')
		text = "unknown";
	length = strnlen(text, 255);
	for (size_t at = 0, bytes; at < length; at += bytes) {
		unsigned char byte = (unsigned char)text[at];

		bytes = byte < 0x80 ? 1 : utf8_bytes((const unsigned char *)text + at, length - at);
		if (bytes > 1) {
			memcpy(to + used, text + at, bytes);
			used += bytes;
		} else if (byte == '"' || byte == '\\' || byte == '\n') {
			to[used++] = '\\';
			to[used++] = byte == '\n' ? 'n' : (char)byte;
		} else {
			to[used++] = bytes == 1 && byte >= 0x20 && byte != 0x7f ? (char)byte : '?';
			bytes = 1;
		}
	}
	to[used] = '\0';
	return to;
}

static bool is_p2p_metric(enum inspector_metric metric)
{
	return metric == INSPECTOR_P2P_BUS_BANDWIDTH || metric == INSPECTOR_P2P_EXEC_TIME;
}

size_t inspector_metric_head(char text[static INSPECTOR_SAMPLE_BYTES], enum inspector_metric metric)
{
	text_format(text, INSPECTOR_SAMPLE_BYTES, "# HELP %s %s\n# TYPE %s gauge\n",
		    metrics[metric].name, metrics[metric].help, metrics[metric].name);
	return strlen(text);
}

/* Labels that Inspector does not have come after all of its own. */
static void add_own_labels(char *to, size_t size, const struct inspector_labels *labels)
{
	char uuid[VALUE_BYTES], process[40] = "";

	if (labels->process > 1)
		text_format(process, sizeof(process), ",process=\"%u\"", labels->process);
	text_format(to, size, ",gpu_uuid=\"%s\"%s", escape_label(uuid, labels->gpu_uuid), process);
}

size_t inspector_metric_sample(char text[static INSPECTOR_SAMPLE_BYTES],
			       enum inspector_metric metric, const struct inspector_labels *labels,
			       double value)
{
	char job[VALUE_BYTES], node[VALUE_BYTES], name[VALUE_BYTES], algorithm[VALUE_BYTES];
	char protocol[VALUE_BYTES], own[VALUE_BYTES + 64], kind[2 * VALUE_BYTES + 32] = "";
	char gpu[24] = "unknown", size[INSPECTOR_SIZE_BYTES], number[INSPECTOR_NUMBER_BYTES];

	if (labels->gpu >= 0)
		text_format(gpu, sizeof(gpu), "GPU%d", labels->gpu);
	if (!is_p2p_metric(metric))
		text_format(kind, sizeof(kind), ",algo_proto=\"%s_%s\"",
			    escape_label(algorithm, labels->algorithm),
			    escape_label(protocol, labels->protocol));
	add_own_labels(own, sizeof(own), labels);
	text_format(text, INSPECTOR_SAMPLE_BYTES,
		    "%s{version=\"" FORMAT_VERSION "\",slurm_job_id=\"%s\",node=\"%s\",gpu=\"%s\","
		    "comm_name=\"%s\",n_nodes=\"%d\",nranks=\"%d\",%s=\"%s\",message_size=\"%s\""
		    "%s%s} %s\n",
		    metrics[metric].name, escape_label(job, labels->job),
		    escape_label(node, labels->node), gpu, escape_label(name, labels->comm_name),
		    labels->nnodes, labels->nranks,
		    is_p2p_metric(metric) ? "p2p_operation" : "collective", labels->function,
		    inspector_size_text(size, labels->size), kind, own,
		    inspector_number(number, value));
	return strlen(text);
}

/* A file name must not lead to another directory, whatever the driver reports. */
void inspector_prom_name(char name[static INSPECTOR_PROM_NAME_BYTES], const char *gpu_uuid,
			 uint32_t process)
{
	char uuid[48], number[16] = "";

	if (strncmp(gpu_uuid, "GPU-", 4) == 0)
		gpu_uuid += 4;
	text_copy(uuid, sizeof(uuid), gpu_uuid[0] != '\0' ? gpu_uuid : "unknown");
	for (char *at = uuid; *at != '\0'; at++)
		if (*at == '/' || (unsigned char)*at <= 0x20 || (unsigned char)*at >= 0x7f)
			*at = '_';
	if (process > 1)
		text_format(number, sizeof(number), "_%u", process);
	text_format(name, INSPECTOR_PROM_NAME_BYTES, "nccl_inspector_metrics_%s%s.prom", uuid,
		    number);
}
