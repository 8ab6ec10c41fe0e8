/*
 * One operation in NCCL Inspector's log:
 *
 *	coll_perf   coll, coll_algo and coll_proto (v4.2), coll_sn, coll_msg_size_bytes,
 *	            coll_exec_time_us, coll_timing_source, bandwidths, verbose: event_trace_sn and _ts
 *	p2p_perf    the same with p2p_, and p2p_peer
 */
#include "common/attributes.h"
#include "foreign/inspector.h"

#define KEY JSON_SCAN_KEY_OF

struct kernel_event {
	int32_t channel;
	uint64_t start_ns;
	uint64_t stop_ns;
	uint64_t record_ns;
};

static void add_kernel(struct foreign_reading *reading, struct inspector_perf *perf,
		       const struct kernel_event *event)
{
	struct op_detail *detail;

	perf->kernels_started += event->start_ns != 0;
	perf->kernels_stopped += event->stop_ns != 0;
	if (event->start_ns != 0 &&
	    (perf->first_kernel_ns == 0 || event->start_ns < perf->first_kernel_ns))
		perf->first_kernel_ns = event->start_ns;
	if (event->stop_ns > perf->last_stop_ns)
		perf->last_stop_ns = event->stop_ns;
	if (event->record_ns > perf->last_kernel_ns)
		perf->last_kernel_ns = event->record_ns;
	if (event->start_ns == 0 || event->channel < 0 || event->channel > UINT8_MAX)
		return;
	detail = foreign_add_detail(reading);
	if (detail == NULL)
		return;
	detail->kind = OP_DETAIL_KERNEL;
	detail->channel = (uint8_t)event->channel;
	detail->time_ns[2] = event->start_ns;
	detail->time_ns[3] = event->stop_ns;
}

/* Both event_trace_ts and event_trace_sn have them; of the second nothing is wanted. */
static bool parse_kernel(struct foreign_reading *reading, bool is_times,
			 struct inspector_perf *perf)
{
	static const struct json_scan_key times[] = { KEY("channel_id"), KEY("kernel_start_ts"),
						      KEY("kernel_stop_ts"),
						      KEY("kernel_record_ts") };
	static const struct json_scan_key numbers[] = { KEY("channel_id"), KEY("kernel_start_sn"),
							KEY("kernel_stop_sn"),
							KEY("kernel_record_sn") };
	struct kernel_event event = { .channel = -1 };
	uint64_t *const fields[] = { NULL, &event.start_ns, &event.stop_ns, &event.record_ns };
	int key, hint = 0;
	bool is_fine = true;

	while (is_fine &&
	       (key = foreign_next_key(reading, is_times ? times : numbers, ARRAY_LENGTH(times),
				       &hint)) != JSON_SCAN_KEY_NONE) {
		if (key == 0)
			is_fine = foreign_take_int32(reading, &event.channel);
		else if (key > 0)
			is_fine = foreign_take_us(reading, fields[key]);
		else
			is_fine = foreign_take_skip(reading);
	}
	if (!is_fine || reading->problem != NULL)
		return false;
	if (is_times)
		add_kernel(reading, perf, &event);
	return true;
}

static bool parse_kernels(struct foreign_reading *reading, bool is_times,
			  struct inspector_perf *perf)
{
	enum json_scan_token token;
	bool is_there;

	if (!foreign_take_array(reading, &is_there) || !is_there)
		return reading->problem == NULL;
	while ((token = json_scan_next(&reading->scan)) == JSON_SCAN_OBJECT)
		if (!parse_kernel(reading, is_times, perf))
			return false;
	if (token == JSON_SCAN_ARRAY_END)
		return true;
	reading->problem =
		token == JSON_SCAN_ERROR ? reading->scan.problem : "a kernel event is no object";
	return false;
}

static bool parse_trace(struct foreign_reading *reading, bool is_times, struct inspector_perf *perf)
{
	static const struct json_scan_key times[] = { KEY("coll_start_ts"), KEY("coll_stop_ts"),
						      KEY("p2p_start_ts"), KEY("p2p_stop_ts"),
						      KEY("kernel_events") };
	static const struct json_scan_key numbers[] = { KEY("coll_start_sn"), KEY("coll_stop_sn"),
							KEY("p2p_start_sn"), KEY("p2p_stop_sn"),
							KEY("kernel_events") };
	int key, hint = 0;
	bool is_there;

	if (!foreign_take_object(reading, &is_there) || !is_there)
		return reading->problem == NULL;
	while ((key = foreign_next_key(reading, is_times ? times : numbers, ARRAY_LENGTH(times),
				       &hint)) != JSON_SCAN_KEY_NONE) {
		bool is_fine;

		if (is_times && (key == 0 || key == 2))
			is_fine = foreign_take_us(reading, &perf->start_ns);
		else if (key == 4)
			is_fine = parse_kernels(reading, is_times, perf);
		else
			is_fine = foreign_take_skip(reading);
		if (!is_fine)
			return false;
	}
	return reading->problem == NULL;
}

static bool parse_source(struct foreign_reading *reading, uint8_t *source)
{
	static const char *const names[] = { "\"kernel_gpu\"", "\"kernel_cpu\"",
					     "\"collective_cpu\"" };
	static const uint8_t sources[] = { INSPECTOR_KERNEL_GPU, INSPECTOR_KERNEL_CPU,
					   INSPECTOR_COLLECTIVE_CPU, INSPECTOR_SOURCE_UNKNOWN };
	uint8_t choice;

	if (!foreign_take_choice(reading, names, ARRAY_LENGTH(names), &choice))
		return false;
	*source = sources[choice];
	return true;
}

enum perf_key {
	PERF_NAME,
	PERF_ALGORITHM,
	PERF_PROTOCOL,
	PERF_NUMBER,
	PERF_PEER,
	PERF_BYTES,
	PERF_TIME,
	PERF_SOURCE,
	PERF_ALGBW,
	PERF_BUSBW,
	PERF_TRACE_SN,
	PERF_TRACE_TS,
	PERF_KEYS,
};

static bool parse_perf_field(struct foreign_reading *reading, int key, struct inspector_perf *perf)
{
	switch (key) {
	case PERF_NAME:
		return foreign_take_name(reading, OP_NAMES_FUNCTION, &perf->function);
	case PERF_ALGORITHM:
		return foreign_take_name(reading, OP_NAMES_ALGORITHM, &perf->algorithm);
	case PERF_PROTOCOL:
		return foreign_take_name(reading, OP_NAMES_PROTOCOL, &perf->protocol);
	case PERF_NUMBER:
		return foreign_take_unsigned(reading, &perf->number);
	case PERF_PEER:
		return foreign_take_int32(reading, &perf->peer);
	case PERF_BYTES:
		return foreign_take_unsigned(reading, &perf->bytes);
	case PERF_TIME:
		return foreign_take_us(reading, &perf->time_ns);
	case PERF_SOURCE:
		return parse_source(reading, &perf->source);
	case PERF_TRACE_SN:
		return parse_trace(reading, false, perf);
	case PERF_TRACE_TS:
		return parse_trace(reading, true, perf);
	default:
		return foreign_take_skip(reading);
	}
}

bool inspector_parse_perf(struct foreign_reading *reading, enum inspector_body body,
			  struct inspector_line *line)
{
	static const struct json_scan_key coll_keys[PERF_KEYS] = {
		[PERF_NAME] = KEY("coll"),
		[PERF_ALGORITHM] = KEY("coll_algo"),
		[PERF_PROTOCOL] = KEY("coll_proto"),
		[PERF_NUMBER] = KEY("coll_sn"),
		[PERF_PEER] = KEY("coll_peer"),
		[PERF_BYTES] = KEY("coll_msg_size_bytes"),
		[PERF_TIME] = KEY("coll_exec_time_us"),
		[PERF_SOURCE] = KEY("coll_timing_source"),
		[PERF_ALGBW] = KEY("coll_algobw_gbs"),
		[PERF_BUSBW] = KEY("coll_busbw_gbs"),
		[PERF_TRACE_SN] = KEY("event_trace_sn"),
		[PERF_TRACE_TS] = KEY("event_trace_ts"),
	};
	static const struct json_scan_key p2p_keys[PERF_KEYS] = {
		[PERF_NAME] = KEY("p2p"),
		[PERF_ALGORITHM] = KEY("p2p_algo"),
		[PERF_PROTOCOL] = KEY("p2p_proto"),
		[PERF_NUMBER] = KEY("p2p_sn"),
		[PERF_PEER] = KEY("p2p_peer"),
		[PERF_BYTES] = KEY("p2p_msg_size_bytes"),
		[PERF_TIME] = KEY("p2p_exec_time_us"),
		[PERF_SOURCE] = KEY("p2p_timing_source"),
		[PERF_ALGBW] = KEY("p2p_algobw_gbs"),
		[PERF_BUSBW] = KEY("p2p_busbw_gbs"),
		[PERF_TRACE_SN] = KEY("event_trace_sn"),
		[PERF_TRACE_TS] = KEY("event_trace_ts"),
	};
	const struct json_scan_key *keys = body == INSPECTOR_COLL ? coll_keys : p2p_keys;
	int key, hint = 0;
	bool is_there;

	line->perf = (struct inspector_perf){ .peer = OP_NOBODY,
					      .number = INSPECTOR_UNKNOWN,
					      .bytes = INSPECTOR_UNKNOWN,
					      .time_ns = INSPECTOR_UNKNOWN };
	if (!foreign_take_object(reading, &is_there) || !is_there)
		return reading->problem == NULL;
	line->body = body;
	while ((key = foreign_next_key(reading, keys, PERF_KEYS, &hint)) != JSON_SCAN_KEY_NONE)
		if (!parse_perf_field(reading, key, &line->perf))
			return false;
	return reading->problem == NULL;
}
