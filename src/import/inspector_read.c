/*
 * Reads NCCL Inspector's log. One operation is
 *
 *	coll_perf   coll, coll_algo and coll_proto (v4.2), coll_sn, coll_msg_size_bytes,
 *	            coll_exec_time_us, coll_timing_source, bandwidths, verbose: event_trace_sn and _ts
 *	p2p_perf    the same with p2p_, and p2p_peer
 */
#include "import/foreign.h"
#include "import/foreign_internal.h"

#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/text.h"

/* Parsing one line. */

/* A number that the line does not have. */
#define INSPECTOR_UNKNOWN UINT64_MAX

enum inspector_body {
	INSPECTOR_NO_BODY = 0,
	INSPECTOR_COLL = 1,
	INSPECTOR_P2P = 2,
	INSPECTOR_PROXY = 3,
	INSPECTOR_BODIES = 4,
};

enum inspector_source {
	INSPECTOR_SOURCE_UNKNOWN = 0,
	INSPECTOR_KERNEL_GPU = 1,
	INSPECTOR_KERNEL_CPU = 2,
	INSPECTOR_COLLECTIVE_CPU = 3,
};

struct inspector_metadata {
	char version[32];
	char host[256];
	int64_t pid;
	uint64_t dump_ns; /* 0: unknown */
};

/* coll_perf and p2p_perf have the same fields under different names. */
struct inspector_perf {
	uint8_t function;
	uint8_t algorithm;
	uint8_t protocol;
	uint8_t source; /* enum inspector_source */
	int32_t peer;
	uint64_t number; /* coll_sn, p2p_sn */
	uint64_t bytes;
	uint64_t time_ns;
	/* Verbose: wall time; 0: unknown. */
	uint64_t start_ns;
	uint64_t first_kernel_ns;
	uint64_t last_kernel_ns; /* its stop was recorded */
	uint64_t last_stop_ns;	 /* and seen */
	uint32_t kernels_started;
	uint32_t kernels_stopped;
};

/* dump_stats */
struct inspector_stats {
	uint64_t records[INSPECTOR_BODIES]; /* that follow, by enum inspector_body */
	uint64_t dropped_colls;		    /* since the communicator was created */
	uint64_t dropped_p2ps;
	uint64_t dropped_proxies;
	uint64_t dropped_proxy_ops;
	uint64_t foreign_ops;
};

/* Where the time of writing is in the text, so that the rest can be kept. */
struct place {
	const char *text;
	size_t length;
};

struct inspector_line {
	enum inspector_body body;
	bool has_header;
	bool has_metadata;
	bool has_stats;
	/* Identical to the previous line: `comm` is not filled in, `metadata` is still valid. */
	bool is_same_header;
	bool is_same_metadata;
	struct comm_info comm;
	struct inspector_metadata metadata;
	struct place dump_time; /* while metadata is parsed */
	struct inspector_perf perf;
	struct inspector_stats stats;
};

/*
 * What repeats on every line: the header; metadata around the time of writing. Length 0: none kept.
 */
enum { INSPECTOR_KEPT_BYTES = 512 };
struct inspector_kept {
	char header[INSPECTOR_KEPT_BYTES];
	char before[INSPECTOR_KEPT_BYTES];
	char after[INSPECTOR_KEPT_BYTES];
	size_t header_length;
	size_t before_length;
	size_t after_length;
};

/* Drop what is kept. */
static inline void inspector_forget(struct inspector_kept *kept)
{
	kept->header_length = kept->before_length = 0;
}

#define FIELD FOREIGN_FIELD
#define CALLS FOREIGN_CALLS
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

/* Both event_trace_ts and event_trace_sn have them; the second is not used. */
#define KERNEL_KEYS(unit)                                                                 \
	{                                                                                 \
		FIELD("channel_id", I32, struct kernel_event, channel),                   \
			FIELD("kernel_start_" unit, US, struct kernel_event, start_ns),   \
			FIELD("kernel_stop_" unit, US, struct kernel_event, stop_ns),     \
			FIELD("kernel_record_" unit, US, struct kernel_event, record_ns), \
	}

static bool take_kernel(struct foreign_reading *reading, void *perf)
{
	static const struct json_scan_key keys[] = KERNEL_KEYS("ts");
	struct kernel_event event = { .channel = -1 };

	if (!foreign_read_members(reading, keys, ARRAY_LENGTH(keys), &event))
		return false;
	add_kernel(reading, perf, &event);
	return true;
}

static bool check_kernel(struct foreign_reading *reading, void *perf)
{
	static const struct json_scan_key keys[] = KERNEL_KEYS("sn");
	struct kernel_event event;

	(void)perf;
	return foreign_read_members(reading, keys, ARRAY_LENGTH(keys), &event);
}

static const char not_a_kernel[] = "a kernel event is not an object";

static bool take_kernels(struct foreign_reading *reading, void *perf)
{
	return foreign_read_array(reading, not_a_kernel, take_kernel, perf);
}

static bool check_kernels(struct foreign_reading *reading, void *perf)
{
	return foreign_read_array(reading, not_a_kernel, check_kernel, perf);
}

static bool take_times(struct foreign_reading *reading, void *perf)
{
	static const struct json_scan_key keys[] = {
		FIELD("coll_start_ts", US, struct inspector_perf, start_ns),
		KEY("coll_stop_ts"),
		FIELD("p2p_start_ts", US, struct inspector_perf, start_ns),
		KEY("p2p_stop_ts"),
		CALLS("kernel_events", take_kernels),
	};

	return foreign_read_object(reading, keys, ARRAY_LENGTH(keys), perf);
}

static bool check_numbers(struct foreign_reading *reading, void *perf)
{
	static const struct json_scan_key keys[] = { KEY("coll_start_sn"), KEY("coll_stop_sn"),
						     KEY("p2p_start_sn"), KEY("p2p_stop_sn"),
						     CALLS("kernel_events", check_kernels) };

	return foreign_read_object(reading, keys, ARRAY_LENGTH(keys), perf);
}

static bool take_source(struct foreign_reading *reading, void *object)
{
	struct inspector_perf *perf = object;
	static const char *const names[] = { "\"kernel_gpu\"", "\"kernel_cpu\"",
					     "\"collective_cpu\"" };
	static const uint8_t sources[] = { INSPECTOR_KERNEL_GPU, INSPECTOR_KERNEL_CPU,
					   INSPECTOR_COLLECTIVE_CPU, INSPECTOR_SOURCE_UNKNOWN };
	uint8_t choice;

	if (!foreign_take_choice(reading, names, ARRAY_LENGTH(names), &choice))
		return false;
	perf->source = sources[choice];
	return true;
}

#define PERF_KEYS(kind)                                                                     \
	{                                                                                   \
		FIELD(kind, FUNCTION, struct inspector_perf, function),                     \
			FIELD(kind "_algo", ALGORITHM, struct inspector_perf, algorithm),   \
			FIELD(kind "_proto", PROTOCOL, struct inspector_perf, protocol),    \
			FIELD(kind "_sn", U64, struct inspector_perf, number),              \
			FIELD(kind "_peer", I32, struct inspector_perf, peer),              \
			FIELD(kind "_msg_size_bytes", U64, struct inspector_perf, bytes),   \
			FIELD(kind "_exec_time_us", US, struct inspector_perf, time_ns),    \
			CALLS(kind "_timing_source", take_source), KEY(kind "_algobw_gbs"), \
			KEY(kind "_busbw_gbs"), CALLS("event_trace_sn", check_numbers),     \
			CALLS("event_trace_ts", take_times),                                \
	}

/* The value of the key coll_perf or p2p_perf: fills line->perf and details. */
static bool inspector_parse_perf(struct foreign_reading *reading, enum inspector_body body,
				 struct inspector_line *line)
{
	static const struct json_scan_key coll_keys[] = PERF_KEYS("coll");
	static const struct json_scan_key p2p_keys[] = PERF_KEYS("p2p");

	line->perf = (struct inspector_perf){ .peer = OP_NOBODY,
					      .number = INSPECTOR_UNKNOWN,
					      .bytes = INSPECTOR_UNKNOWN,
					      .time_ns = INSPECTOR_UNKNOWN };
	if (!foreign_enter_object(reading))
		return reading->problem == NULL;
	line->body = body;
	return foreign_read_members(reading, body == INSPECTOR_COLL ? coll_keys : p2p_keys,
				    ARRAY_LENGTH(coll_keys), &line->perf);
}

/*
 * proxy_trace of v4.3 and v4.4: what proxy operations and their transfers ("steps") did, on the
 * host's clock. Each state is written when it is entered; one that was never entered is missing.
 *
 *	proxy_op          a complete one, with its steps if the output is nested
 *	proxy_op_segment  steps of one that is not over
 *	proxy_step        one step, if the output is flat
 *	proxy_op_start    one that has begun: its end is unknown
 */

struct proxy {
	bool is_step;  /* flat: the record itself is a step */
	bool is_whole; /* proxy_op */
	bool is_send;
	int32_t channel;
	int32_t peer;
	int32_t steps; /* announced number */
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

static bool take_proxy_times(struct foreign_reading *reading, void *proxy)
{
	static const struct json_scan_key keys[] = {
		FIELD("proxy_op_start_ts", US, struct proxy, time_ns[TIME_OP_START]),
		FIELD("proxy_op_in_progress_ts", US, struct proxy, time_ns[TIME_OP_IN_PROGRESS]),
		FIELD("proxy_op_stop_ts", US, struct proxy, time_ns[TIME_OP_STOP]),
		FIELD("proxy_step_start_ts", US, struct proxy, time_ns[TIME_STEP_START]),
		FIELD("send_peer_wait_ts", US, struct proxy, time_ns[TIME_READY]),
		FIELD("recv_flush_wait_ts", US, struct proxy, time_ns[TIME_READY]),
		FIELD("send_wait_ts", US, struct proxy, time_ns[TIME_SENT]),
		FIELD("recv_gpu_wait_ts", US, struct proxy, time_ns[TIME_SENT]),
		FIELD("proxy_step_stop_ts", US, struct proxy, time_ns[TIME_STEP_STOP]),
	};

	return foreign_read_object(reading, keys, ARRAY_LENGTH(keys), proxy);
}

/* Steps come inside their operation, whose peer and channel may follow: filled in at the end. */
static bool take_step(struct foreign_reading *reading, void *proxy)
{
	static const struct json_scan_key keys[] = {
		FIELD("step", I32, struct proxy, step),
		FIELD("trans_size_bytes", U64, struct proxy, bytes),
		CALLS("event_trace_ts", take_proxy_times),
	};
	struct proxy step = { .peer = OP_NOBODY };
	struct op_detail *detail;

	(void)proxy;
	if (!foreign_read_members(reading, keys, ARRAY_LENGTH(keys), &step))
		return false;
	detail = foreign_add_detail(reading);
	if (detail == NULL)
		return true;
	detail->kind = OP_DETAIL_STEP;
	detail->step = step.step;
	detail->bytes = step.bytes;
	for (int i = 0; i < 4; i++)
		detail->time_ns[i] = step.time_ns[TIME_STEP_START + i];
	return true;
}

static bool take_steps(struct foreign_reading *reading, void *proxy)
{
	return foreign_read_array(reading, "a step is not an object", take_step, proxy);
}

static bool take_kind(struct foreign_reading *reading, void *object)
{
	struct proxy *proxy = object;
	char name[24] = "";

	if (!foreign_take_text(reading, name, sizeof(name)))
		return false;
	proxy->is_step = json_scan_is(&reading->scan, "proxy_step");
	proxy->is_whole = json_scan_is(&reading->scan, "proxy_op");
	return true;
}

static bool take_direction(struct foreign_reading *reading, void *object)
{
	struct proxy *proxy = object;
	char name[8] = "";

	if (!foreign_take_text(reading, name, sizeof(name)))
		return false;
	proxy->is_send = name[0] == 's';
	return true;
}

/* Add the record itself as a detail after its steps, and complete these. */
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

/* The value of the key proxy_trace: details. */
static bool inspector_parse_proxy(struct foreign_reading *reading)
{
	static const struct json_scan_key keys[] = {
		CALLS("record_type", take_kind),
		FIELD("channel_id", I32, struct proxy, channel),
		FIELD("peer", I32, struct proxy, peer),
		CALLS("direction", take_direction),
		FIELD("n_steps", I32, struct proxy, steps),
		FIELD("step", I32, struct proxy, step),
		FIELD("trans_size_bytes", U64, struct proxy, bytes),
		CALLS("event_trace_ts", take_proxy_times),
		CALLS("steps", take_steps),
	};
	struct proxy proxy = { .peer = OP_NOBODY, .channel = -1 };

	if (!foreign_enter_object(reading))
		return reading->problem == NULL;
	if (!foreign_read_members(reading, keys, ARRAY_LENGTH(keys), &proxy))
		return false;
	if (proxy.channel < 0 || proxy.channel > UINT8_MAX) {
		reading->problem = "a proxy operation without a channel";
		return false;
	}
	add_details(reading, &proxy);
	return true;
}

/*
 * The objects on a line of NCCL Inspector, in any order, with fields in any order:
 *
 *	header      id, comm_name, rank, n_ranks, nnodes
 *	metadata    inspector_output_format_version, dump_timestamp_us, hostname, pid, ...
 *	coll_perf   see above, like p2p_perf
 *	dump_stats  (v4.1) what follows, and what was dropped
 *	proxy_trace (v4.3) see above
 *
 * A missing field is unknown. A field of the wrong type makes the line a damaged one.
 */

/* ---- header and metadata --------------------------------------------------------------------- */

/*
 * "0x7f8c496ae9f661": the communicator's hash, of which Inspector keeps 14 digits. Anything else
 * serves as a name: it is the same for the same communicator.
 */
static uint64_t comm_hash(const char *text)
{
	uint64_t value;

	if (text[0] == '\0')
		return 0;
	return strlen(text) > 2 && foreign_hash(text, &value) ? value
							      : hash_bytes(text, strlen(text));
}

static bool take_id(struct foreign_reading *reading, void *object)
{
	struct comm_info *comm = object;
	char id[64] = "";

	if (!foreign_take_text(reading, id, sizeof(id)))
		return false;
	comm->hash = comm_hash(id);
	return true;
}

static bool take_name(struct foreign_reading *reading, void *object)
{
	struct comm_info *comm = object;
	char name[sizeof(comm->name) + 4] = "";

	if (!foreign_take_text(reading, name, sizeof(name)))
		return false;
	if (strcmp(name, "unknown") == 0)
		name[0] = '\0';
	if (!text_copy(comm->name, sizeof(comm->name), name))
		comm->flags |= COMM_FLAG_NAME_CUT;
	return true;
}

static bool parse_header(struct foreign_reading *reading, struct inspector_kept *kept,
			 struct inspector_line *line)
{
	static const struct json_scan_key keys[] = {
		CALLS("id", take_id),
		CALLS("comm_name", take_name),
		FIELD("rank", I32, struct comm_info, rank),
		FIELD("n_ranks", I32, struct comm_info, nranks),
		FIELD("nnodes", I32, struct comm_info, nnodes),
	};
	const char *start = reading->scan.at;

	line->has_header = true;
	line->is_same_header = json_scan_again(&reading->scan, kept->header, kept->header_length);
	if (line->is_same_header)
		return true;
	kept->header_length = 0;
	line->comm = (struct comm_info){ .rank = -1 };
	line->has_header = foreign_enter_object(reading);
	if (!line->has_header)
		return reading->problem == NULL;
	if (!foreign_read_members(reading, keys, ARRAY_LENGTH(keys), &line->comm))
		return false;
	if (line->comm.nranks < 0 || line->comm.nnodes < 0 || line->comm.rank < -1) {
		reading->problem = "a communicator of negative size";
		return false;
	}
	if (*start == '{' && (size_t)(reading->scan.at - start) <= sizeof(kept->header)) {
		kept->header_length = (size_t)(reading->scan.at - start);
		memcpy(kept->header, start, kept->header_length);
	}
	return true;
}

static bool take_dump_time(struct foreign_reading *reading, void *object)
{
	struct inspector_line *line = object;

	if (!foreign_take_us(reading, &line->metadata.dump_ns))
		return false;
	if (reading->scan.token == JSON_SCAN_NUMBER && reading->scan.is_plain)
		line->dump_time = (struct place){ reading->scan.text, reading->scan.length };
	return true;
}

static void keep_metadata(struct inspector_kept *kept, const char *start, const char *end,
			  const struct place *place)
{
	const char *after;

	if (place->text == NULL || *start != '{')
		return;
	after = place->text + place->length;
	if ((size_t)(place->text - start) > sizeof(kept->before) ||
	    (size_t)(end - after) > sizeof(kept->after))
		return;
	kept->before_length = (size_t)(place->text - start);
	kept->after_length = (size_t)(end - after);
	memcpy(kept->before, start, kept->before_length);
	memcpy(kept->after, after, kept->after_length);
}

static bool is_same_metadata(struct foreign_reading *reading, const struct inspector_kept *kept,
			     struct inspector_metadata *metadata)
{
	uint64_t us;

	if (!json_scan_again_but(&reading->scan, kept->before, kept->before_length, kept->after,
				 kept->after_length, &us))
		return false;
	metadata->dump_ns = us < UINT64_MAX / 1000 ? us * 1000 : 0;
	return true;
}

static bool parse_metadata(struct foreign_reading *reading, struct inspector_kept *kept,
			   struct inspector_line *line)
{
	static const struct json_scan_key keys[] = {
		FIELD("inspector_output_format_version", TEXT, struct inspector_line,
		      metadata.version),
		KEY("git_rev"),
		KEY("rec_mechanism"),
		CALLS("dump_timestamp_us", take_dump_time),
		FIELD("hostname", TEXT, struct inspector_line, metadata.host),
		FIELD("pid", I64, struct inspector_line, metadata.pid),
	};
	struct inspector_metadata *metadata = &line->metadata;
	const char *start = reading->scan.at;

	line->has_metadata = true;
	line->is_same_metadata = is_same_metadata(reading, kept, metadata);
	if (line->is_same_metadata)
		return true;
	kept->before_length = 0;
	*metadata = (struct inspector_metadata){ .pid = -1 };
	line->dump_time = (struct place){ NULL, 0 };
	line->has_metadata = foreign_enter_object(reading);
	if (!line->has_metadata)
		return reading->problem == NULL;
	if (!foreign_read_members(reading, keys, ARRAY_LENGTH(keys), line))
		return false;
	keep_metadata(kept, start, reading->scan.at, &line->dump_time);
	return true;
}

/* ---- dump_stats ------------------------------------------------------------------------------ */

static bool parse_stats(struct foreign_reading *reading, struct inspector_line *line)
{
	static const struct json_scan_key keys[] = {
		FIELD("coll_records", U64, struct inspector_stats, records[INSPECTOR_COLL]),
		FIELD("coll_dropped_total", U64, struct inspector_stats, dropped_colls),
		FIELD("p2p_records", U64, struct inspector_stats, records[INSPECTOR_P2P]),
		FIELD("p2p_dropped_total", U64, struct inspector_stats, dropped_p2ps),
		FIELD("proxy_records", U64, struct inspector_stats, records[INSPECTOR_PROXY]),
		FIELD("proxy_dropped_total", U64, struct inspector_stats, dropped_proxies),
		FIELD("proxy_ops_dropped_total", U64, struct inspector_stats, dropped_proxy_ops),
		FIELD("proxy_pxn_skipped_process_total", U64, struct inspector_stats, foreign_ops),
	};

	line->stats = (struct inspector_stats){ .records = { 0, INSPECTOR_UNKNOWN,
							     INSPECTOR_UNKNOWN, 0 } };
	line->has_stats = foreign_enter_object(reading);
	if (!line->has_stats)
		return reading->problem == NULL;
	return foreign_read_members(reading, keys, ARRAY_LENGTH(keys), &line->stats);
}

/* ---- the line -------------------------------------------------------------------------------- */

static bool parse_part(struct foreign_reading *reading, int key, struct inspector_kept *kept,
		       struct inspector_line *line)
{
	bool is_body = key == 2 || key == 3 || key == 5;

	if ((key == 0 && line->has_header) || (key == 1 && line->has_metadata) ||
	    (key == 4 && line->has_stats) || (is_body && line->body != INSPECTOR_NO_BODY)) {
		reading->problem = "duplicate part";
		return false;
	}
	switch (key) {
	case 0:
		return parse_header(reading, kept, line);
	case 1:
		return parse_metadata(reading, kept, line);
	case 2:
		return inspector_parse_perf(reading, INSPECTOR_COLL, line);
	case 3:
		return inspector_parse_perf(reading, INSPECTOR_P2P, line);
	case 4:
		return parse_stats(reading, line);
	case 5:
		line->body = INSPECTOR_PROXY;
		return inspector_parse_proxy(reading);
	default:
		return foreign_take_skip(reading);
	}
}

/*
 * Parse reading->line into *line, which holds the previous line; details go to reading->details.
 * False: see reading->problem. Uses and updates *kept.
 */
static bool inspector_parse(struct foreign_reading *reading, struct inspector_kept *kept,
			    struct inspector_line *line)
{
	static const struct json_scan_key keys[] = { KEY("header"),	KEY("metadata"),
						     KEY("coll_perf"),	KEY("p2p_perf"),
						     KEY("dump_stats"), KEY("proxy_trace") };
	int key, hint = 0;

	line->body = INSPECTOR_NO_BODY;
	line->has_header = line->has_metadata = line->has_stats = false;
	if (!foreign_begin_line(reading))
		return false;
	while ((key = foreign_next_key(reading, keys, ARRAY_LENGTH(keys), &hint)) !=
	       JSON_SCAN_KEY_NONE)
		if (!parse_part(reading, key, kept, line))
			return false;
	if (reading->problem == NULL && json_scan_next(&reading->scan) == JSON_SCAN_ERROR)
		reading->problem = reading->scan.problem;
	return reading->problem == NULL;
}

/*
 * From lines of NCCL Inspector to records.
 *
 * Up to v4.2 every line names its process. Since v4.3 a marker line (dump_stats) does so for all
 * lines that follow, and says how many there are. Nothing can come between a marker and its lines.
 * So a damaged line, which may have been a marker, ends the scope of the marker: lines after it
 * have no owner until the next one.
 */

/* No communicator reaches this: a greater number is damage. */
#define NUMBER_MAX (UINT64_C(1) << 40)

struct inspector {
	struct foreign_reading *reading;
	struct inspector_line line;
	struct inspector_kept kept; /* of comm and its process */
	uint32_t comm;		    /* of the previous line, with its process */
	/* From the last marker. */
	bool has_marker;
	bool is_counted; /* it gives the number of lines that follow */
	uint32_t marker_comm;
	uint64_t marker_ns;
	uint64_t left[INSPECTOR_BODIES];
};

/* ---- the owner of a line --------------------------------------------------------------------- */

static void drop_marker(struct inspector *inspector)
{
	inspector->has_marker = false;
	memset(inspector->left, 0, sizeof(inspector->left));
}

static uint64_t left_of_marker(const struct inspector *inspector)
{
	uint64_t left = 0;

	for (int i = 0; i < INSPECTOR_BODIES && inspector->is_counted; i++)
		left += inspector->left[i];
	return left;
}

/* Lines that the marker announced but that never came. */
static void note_missing(struct inspector *inspector, bool is_end)
{
	uint64_t left = left_of_marker(inspector);

	if (!inspector->has_marker || left == 0)
		return;
	foreign_damage_note(inspector->reading,
			    &(struct foreign_damage){
				    .line = inspector->reading->line.number,
				    .offset = inspector->reading->line.offset,
				    .missing = left,
				    .is_cut = is_end,
				    .what = is_end ? "log ends inside a dump"
						   : "dump before this line incomplete",
			    });
}

static bool inspector_refuse(struct inspector *inspector, const char *problem)
{
	inspector->reading->problem = problem;
	return false;
}

static bool refuse_status(struct inspector *inspector, enum status status, const char *problem)
{
	if (status == ERR_NO_SPACE)
		inspector->reading->status = status;
	return inspector_refuse(inspector, problem);
}

/* The process and the communicator named by header and metadata. */
static bool find_comm(struct inspector *inspector)
{
	struct inspector_line *line = &inspector->line;
	struct foreign_log *log = inspector->reading->log;
	enum status status;
	uint32_t process;

	if (line->is_same_metadata) {
		process = log->comms[inspector->comm].process;
		if (line->is_same_header)
			return true;
	} else {
		status = foreign_process_of(log, line->metadata.host, line->metadata.pid, &process);
		if (status != OK)
			return refuse_status(inspector, status, "too many processes in one file");
	}
	if (line->is_same_header) {
		line->comm = log->comms[inspector->comm].info;
		line->comm.flags &= COMM_FLAG_NAME_CUT;
		line->comm.gpu_offset_at_ns = 0;
	}
	status = foreign_comm_of(log, process, &line->comm, &inspector->comm);
	if (status != OK)
		return refuse_status(inspector, status, "too many communicators in one file");
	return true;
}

static void note_version(struct inspector *inspector)
{
	struct foreign_log *log = inspector->reading->log;
	struct foreign_process *process = &log->processes[log->comms[inspector->comm].process];
	const char *version = inspector->line.metadata.version;

	if (version[0] != '\0' && strcmp(process->version, version) != 0)
		text_copy(process->version, sizeof(process->version), version);
}

/* One of the marker's lines: is one of this kind still expected? */
static bool take_from_marker(struct inspector *inspector)
{
	uint64_t *left = &inspector->left[inspector->line.body];

	if (!inspector->has_marker)
		return inspector_refuse(inspector, "its marker line is missing");
	if (!inspector->is_counted || *left == INSPECTOR_UNKNOWN)
		return true;
	if (*left == 0)
		return inspector_refuse(inspector, "more lines than its marker line announced");
	(*left)--;
	return true;
}

/* The line names its process itself. In v4.1 and v4.2 a marker counts these lines, too. */
static void check_marker(struct inspector *inspector)
{
	uint64_t *left = &inspector->left[inspector->line.body];

	if (!inspector->has_marker || inspector->line.body == INSPECTOR_NO_BODY)
		return;
	if (inspector->marker_comm != inspector->comm) {
		note_missing(inspector, false);
		drop_marker(inspector);
	} else if (*left != INSPECTOR_UNKNOWN && *left > 0) {
		(*left)--;
	}
}

/* Sets inspector->comm; *dump_ns is when the line was written; 0: unknown. */
static bool find_owner(struct inspector *inspector, uint64_t *dump_ns)
{
	const struct inspector_line *line = &inspector->line;
	struct foreign_log *log = inspector->reading->log;

	if (line->has_header && line->has_metadata) {
		if (!find_comm(inspector))
			return false;
		if (!line->is_same_metadata)
			note_version(inspector);
		*dump_ns = line->metadata.dump_ns;
		check_marker(inspector);
		return true;
	}
	if (line->has_header || line->has_metadata)
		return inspector_refuse(inspector, "header or metadata missing");
	if (!take_from_marker(inspector)) {
		log->orphans++;
		return false;
	}
	inspector->comm = inspector->marker_comm;
	inspector_forget(&inspector->kept);
	*dump_ns = inspector->marker_ns;
	return true;
}

/* ---- records --------------------------------------------------------------------------------- */

/*
 * Put a duration onto the recorder's clock, which is the wall clock here. Verbose logs say when the
 * last channel's stop was seen; otherwise the operation was over when it was written.
 */
static void set_times(struct op_record *op, const struct inspector_perf *perf, uint64_t dump_ns)
{
	uint64_t stop_ns = perf->last_kernel_ns != 0 ? perf->last_kernel_ns : perf->last_stop_ns;

	op->task_ns = perf->start_ns;
	op->active_ns = perf->first_kernel_ns;
	op->done_ns = perf->last_stop_ns != 0 ? perf->last_stop_ns : dump_ns;
	if (stop_ns == 0)
		stop_ns = op->done_ns;
	/* Less than a microsecond is written as 0: no duration. */
	if (perf->time_ns == INSPECTOR_UNKNOWN || perf->time_ns == 0 ||
	    perf->time_ns >= op->done_ns || perf->time_ns >= stop_ns)
		return;
	switch (perf->source) {
	case INSPECTOR_KERNEL_GPU:
		op->time_source = OP_TIME_KERNEL_GPU;
		op->gpu_start_ns = stop_ns - perf->time_ns;
		op->gpu_stop_ns = stop_ns;
		break;
	case INSPECTOR_KERNEL_CPU:
		op->time_source = OP_TIME_PROXY;
		op->flags |= OP_FLAG_TOOL_TIME;
		op->active_ns = op->done_ns - perf->time_ns;
		break;
	case INSPECTOR_COLLECTIVE_CPU:
		op->time_source = OP_TIME_HOST;
		op->flags |= OP_FLAG_TOOL_TIME;
		op->issue_ns = op->done_ns - perf->time_ns;
		break;
	default:
		break;
	}
}

static uint8_t small(uint32_t number)
{
	return number > UINT8_MAX ? UINT8_MAX : (uint8_t)number;
}

static void count_number(const struct inspector_line *line, struct foreign_comm *comm,
			 struct op_record *op)
{
	const struct inspector_perf *perf = &line->perf;

	if (perf->number == INSPECTOR_UNKNOWN)
		return;
	op->nccl_sequence = perf->number;
	if (line->body == INSPECTOR_COLL) {
		op->match = foreign_count_collective(comm, perf->function, perf->number);
		return;
	}
	if (perf->number > comm->counted_p2p)
		comm->counted_p2p = perf->number;
	comm->found_p2p++;
}

static void give_op(struct inspector *inspector, uint64_t dump_ns)
{
	struct foreign_log *log = inspector->reading->log;
	struct foreign_comm *comm = &log->comms[inspector->comm];
	const struct inspector_perf *perf = &inspector->line.perf;
	struct op_record op = {
		.function = perf->function,
		.algorithm = perf->algorithm,
		.protocol = perf->protocol,
		.bytes = foreign_message_bytes(perf->function, perf->bytes, comm->info.nranks),
		.root = OP_NOBODY,
		.peer = perf->peer,
		.state = OP_DONE,
		.channels = small(perf->kernels_started),
		.kernels_started = small(perf->kernels_started),
		.kernels_stopped = small(perf->kernels_stopped),
	};

	count_number(&inspector->line, comm, &op);
	set_times(&op, perf, dump_ns);
	log->processes[comm->process].coarse += perf->last_stop_ns == 0;
	foreign_give_op(inspector->reading, inspector->comm, &op);
	foreign_give_details(inspector->reading, comm->process, op.comm, op.number);
}

static void keep_greatest(uint64_t *to, uint64_t value)
{
	if (value > *to)
		*to = value;
}

/* Its counts are totals, so the last marker of a communicator has all of them. */
static void take_marker(struct inspector *inspector, uint64_t dump_ns)
{
	const struct inspector_stats *stats = &inspector->line.stats;
	struct foreign_log *log = inspector->reading->log;
	struct foreign_comm *comm = &log->comms[inspector->comm];

	note_missing(inspector, false);
	inspector->has_marker = true;
	inspector->is_counted = true;
	inspector->marker_comm = inspector->comm;
	inspector->marker_ns = dump_ns;
	memcpy(inspector->left, stats->records, sizeof(inspector->left));
	for (int i = 0; i < INSPECTOR_BODIES; i++)
		if (inspector->left[i] == INSPECTOR_UNKNOWN)
			inspector->is_counted = false;
	keep_greatest(&comm->dropped, stats->dropped_colls + stats->dropped_p2ps);
	keep_greatest(&comm->dropped_details, stats->dropped_proxies + stats->dropped_proxy_ops);
	keep_greatest(&log->processes[comm->process].foreign_ops, stats->foreign_ops);
}

static bool is_absurd(const struct inspector_line *line)
{
	const struct inspector_stats *stats = &line->stats;

	if (line->has_stats &&
	    (stats->dropped_colls > NUMBER_MAX || stats->dropped_p2ps > NUMBER_MAX ||
	     stats->dropped_proxies > NUMBER_MAX || stats->dropped_proxy_ops > NUMBER_MAX))
		return true;
	for (int i = 0; i < INSPECTOR_BODIES && line->has_stats; i++)
		if (stats->records[i] > NUMBER_MAX && stats->records[i] != INSPECTOR_UNKNOWN)
			return true;
	return (line->body == INSPECTOR_COLL || line->body == INSPECTOR_P2P) &&
	       line->perf.number != INSPECTOR_UNKNOWN && line->perf.number > NUMBER_MAX;
}

static bool take_line(struct inspector *inspector)
{
	const struct inspector_line *line = &inspector->line;
	const struct foreign_comm *comm;
	uint64_t dump_ns = 0;

	if (!inspector_parse(inspector->reading, &inspector->kept, &inspector->line))
		return false;
	if (is_absurd(line))
		return inspector_refuse(inspector, "impossible count");
	if (line->body == INSPECTOR_NO_BODY && !line->has_stats) {
		/* The line was parsed but rejected: its cached parts are of no use. */
		inspector_forget(&inspector->kept);
		inspector->reading->log->ignored++;
		return true;
	}
	if (!find_owner(inspector, &dump_ns))
		return false;
	if (line->has_stats)
		take_marker(inspector, dump_ns);
	comm = &inspector->reading->log->comms[inspector->comm];
	if (line->body == INSPECTOR_PROXY)
		/* It refers to its parent by a number that several operations may have. */
		foreign_give_details(inspector->reading, comm->process, comm->info.id, 0);
	else if (line->body != INSPECTOR_NO_BODY)
		give_op(inspector, dump_ns);
	return true;
}

static bool is_blank(const struct foreign_line *line)
{
	for (size_t i = 0; i < line->length; i++)
		if (line->text[i] != ' ' && line->text[i] != '\t' && line->text[i] != '\r')
			return false;
	return !line->is_too_long;
}

void foreign_read_inspector(struct foreign_reading *reading, struct foreign_lines *lines)
{
	struct inspector inspector = { .reading = reading };
	enum status status = OK;

	while (reading->status == OK && !reading->is_over &&
	       (status = foreign_lines_next(lines, &reading->line)) == OK) {
		reading->log->lines++;
		if (is_blank(&reading->line))
			continue;
		reading->problem = "line too long";
		if (reading->line.is_too_long || !take_line(&inspector)) {
			foreign_damage_line(reading);
			inspector_forget(&inspector.kept);
			drop_marker(&inspector);
		}
	}
	if (status == ERR_NO_SPACE)
		reading->status = status;
	if (reading->status == OK && !reading->is_over)
		note_missing(&inspector, true);
}
