/*
 * proxy_trace of v4.3 and v4.4: what proxy operations and their transfers ("steps") did, on the
 * host's clock. Each state is written when it is entered; one that was never entered is not there.
 *
 *	proxy_op          a whole one, with its steps when the output is nested
 *	proxy_op_segment  steps of one that is not over
 *	proxy_step        one step, when the output is flat
 *	proxy_op_start    one that has begun: says nothing about an end
 */
#include "common/attributes.h"
#include "foreign/inspector.h"

#define KEY JSON_SCAN_KEY_OF

struct proxy {
	bool is_step;  /* flat: the record itself is a step */
	bool is_whole; /* proxy_op */
	bool is_send;
	int32_t channel;
	int32_t peer;
	int32_t steps; /* how many were announced */
	int32_t step;
	uint64_t bytes;
	uint64_t time_ns[8]; /* by enum proxy_time */
};

enum proxy_time {
	TIME_OP_START,
	TIME_OP_IN_PROGRESS,
	TIME_OP_STOP,
	TIME_STEP_START,
	TIME_READY, /* send_peer_wait, recv_flush_wait: produced, arrived */
	TIME_SENT,  /* send_wait, recv_gpu_wait: handed to the network, flushed */
	TIME_STEP_STOP,
	TIME_NONE,
};

static bool parse_times(struct foreign_reading *reading, uint64_t times[static TIME_NONE])
{
	static const struct json_scan_key keys[] = {
		KEY("proxy_op_start_ts"),  KEY("proxy_op_in_progress_ts"),
		KEY("proxy_op_stop_ts"),   KEY("proxy_step_start_ts"),
		KEY("send_peer_wait_ts"),  KEY("recv_flush_wait_ts"),
		KEY("send_wait_ts"),	   KEY("recv_gpu_wait_ts"),
		KEY("proxy_step_stop_ts"),
	};
	static const uint8_t places[] = { TIME_OP_START,   TIME_OP_IN_PROGRESS, TIME_OP_STOP,
					  TIME_STEP_START, TIME_READY,		TIME_READY,
					  TIME_SENT,	   TIME_SENT,		TIME_STEP_STOP };
	int key, hint = 0;
	bool is_there;

	if (!foreign_take_object(reading, &is_there) || !is_there)
		return reading->problem == NULL;
	while ((key = foreign_next_key(reading, keys, ARRAY_LENGTH(keys), &hint)) !=
	       JSON_SCAN_KEY_NONE)
		if (key < 0 ? !foreign_take_skip(reading)
			    : !foreign_take_us(reading, &times[places[key]]))
			return false;
	return reading->problem == NULL;
}

static bool parse_step(struct foreign_reading *reading, struct proxy *step)
{
	static const struct json_scan_key keys[] = { KEY("step"), KEY("trans_size_bytes"),
						     KEY("event_trace_ts") };
	int key, hint = 0;

	while ((key = foreign_next_key(reading, keys, ARRAY_LENGTH(keys), &hint)) !=
	       JSON_SCAN_KEY_NONE) {
		bool is_fine;

		if (key == 0)
			is_fine = foreign_take_int32(reading, &step->step);
		else if (key == 1)
			is_fine = foreign_take_unsigned(reading, &step->bytes);
		else if (key == 2)
			is_fine = parse_times(reading, step->time_ns);
		else
			is_fine = foreign_take_skip(reading);
		if (!is_fine)
			return false;
	}
	return reading->problem == NULL;
}

/* Steps stand inside their operation, whose peer and channel may come later: filled in at the end. */
static bool parse_steps(struct foreign_reading *reading)
{
	enum json_scan_token token;
	bool is_there;

	if (!foreign_take_array(reading, &is_there) || !is_there)
		return reading->problem == NULL;
	while ((token = json_scan_next(&reading->scan)) == JSON_SCAN_OBJECT) {
		struct proxy step = { .peer = OP_NOBODY };
		struct op_detail *detail;

		if (!parse_step(reading, &step))
			return false;
		detail = foreign_add_detail(reading);
		if (detail == NULL)
			continue;
		detail->kind = OP_DETAIL_STEP;
		detail->step = step.step;
		detail->bytes = step.bytes;
		for (int i = 0; i < 4; i++)
			detail->time_ns[i] = step.time_ns[TIME_STEP_START + i];
	}
	if (token == JSON_SCAN_ARRAY_END)
		return true;
	reading->problem = token == JSON_SCAN_ERROR ? reading->scan.problem : "a step is no object";
	return false;
}

static bool parse_kind(struct foreign_reading *reading, struct proxy *proxy)
{
	char name[24] = "";

	if (!foreign_take_text(reading, name, sizeof(name)))
		return false;
	proxy->is_step = json_scan_is(&reading->scan, "proxy_step");
	proxy->is_whole = json_scan_is(&reading->scan, "proxy_op");
	return true;
}

static bool parse_direction(struct foreign_reading *reading, struct proxy *proxy)
{
	char name[8] = "";

	if (!foreign_take_text(reading, name, sizeof(name)))
		return false;
	proxy->is_send = name[0] == 's';
	return true;
}

static bool parse_field(struct foreign_reading *reading, int key, struct proxy *proxy)
{
	switch (key) {
	case 0:
		return parse_kind(reading, proxy);
	case 1:
		return foreign_take_int32(reading, &proxy->channel);
	case 2:
		return foreign_take_int32(reading, &proxy->peer);
	case 3:
		return parse_direction(reading, proxy);
	case 4:
		return foreign_take_int32(reading, &proxy->steps);
	case 5:
		return foreign_take_int32(reading, &proxy->step);
	case 6:
		return foreign_take_unsigned(reading, &proxy->bytes);
	case 7:
		return parse_times(reading, proxy->time_ns);
	case 8:
		return parse_steps(reading);
	default:
		return foreign_take_skip(reading);
	}
}

/* The record itself as a detail, behind its steps; what it knows about them. */
static void add_details(struct foreign_reading *reading, const struct proxy *proxy)
{
	struct foreign_details *details = &reading->details;
	struct op_detail *detail;

	if (proxy->is_step || proxy->is_whole) {
		detail = foreign_add_detail(reading);
		if (detail != NULL) {
			detail->kind = proxy->is_step ? OP_DETAIL_STEP : OP_DETAIL_PROXY;
			detail->step = proxy->is_step ? proxy->step : proxy->steps;
			detail->bytes = proxy->bytes;
			for (int i = 0; i < 4 && proxy->is_step; i++)
				detail->time_ns[i] = proxy->time_ns[TIME_STEP_START + i];
			if (proxy->is_whole) {
				detail->time_ns[0] = proxy->time_ns[TIME_OP_START];
				detail->time_ns[1] = proxy->time_ns[TIME_OP_IN_PROGRESS];
				detail->time_ns[3] = proxy->time_ns[TIME_OP_STOP];
			}
		}
	}
	for (size_t i = 0; i < details->count; i++) {
		details->list[i].channel = (uint8_t)proxy->channel;
		details->list[i].peer = proxy->peer;
		details->list[i].flags = proxy->is_send ? OP_DETAIL_IS_SEND : 0;
	}
}

bool inspector_parse_proxy(struct foreign_reading *reading)
{
	static const struct json_scan_key keys[] = {
		KEY("record_type"),	 KEY("channel_id"),	KEY("peer"),
		KEY("direction"),	 KEY("n_steps"),	KEY("step"),
		KEY("trans_size_bytes"), KEY("event_trace_ts"), KEY("steps"),
	};
	struct proxy proxy = { .peer = OP_NOBODY, .channel = -1 };
	int key, hint = 0;
	bool is_there;

	if (!foreign_take_object(reading, &is_there) || !is_there)
		return reading->problem == NULL;
	while ((key = foreign_next_key(reading, keys, ARRAY_LENGTH(keys), &hint)) !=
	       JSON_SCAN_KEY_NONE)
		if (!parse_field(reading, key, &proxy))
			return false;
	if (reading->problem != NULL)
		return false;
	if (proxy.channel < 0 || proxy.channel > UINT8_MAX) {
		reading->problem = "a proxy operation without a channel";
		return false;
	}
	add_details(reading, &proxy);
	return true;
}
