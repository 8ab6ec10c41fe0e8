/*
 * Reads CoMMA's latency file: one object per line, like Chrome's trace events.
 *
 *	{"cat":"COLL","name":"all_reduce","comm_hash":"0x...","rank":0,"seq_num":57,"ts":...,"dur":...,
 *	 "child_start_ts":...,"child_dur":...,"args":{"size":...},"algo":"ring","proto":"simple",
 *	 "n_max_channel":8,"proxyops":[{"cat":"PROXY",...,"steps":[...]}]}
 *
 * cat P2P has a peer and no seq_num. `ts` is when the operation was enqueued; child_start_ts and
 * child_dur say when its first proxy operation began and its last one ended. Without them `dur` is
 * how long enqueueing took, and the end is unknown.
 */
#include "import/foreign.h"
#include "import/foreign_internal.h"

#include <string.h>

#include "common/attributes.h"

/* Parsing one line. */

/* A number that the line does not have. */
#define COMMA_UNKNOWN UINT64_MAX

enum comma_category {
	COMMA_CATEGORY_NONE,
	COMMA_CATEGORY_COLL,
	COMMA_CATEGORY_P2P,
	COMMA_CATEGORY_PROXY,
	COMMA_CATEGORY_OTHER
};

struct comma_event {
	enum comma_category category;
	uint8_t function;
	uint8_t algorithm;
	uint8_t protocol;
	bool is_send;
	bool is_reclaimed; /* given up: no end was seen */
	bool is_inside;	   /* a proxy operation of another event: has none inside itself */
	int32_t rank;
	int32_t peer;
	int32_t channel; /* -1: unknown */
	int32_t steps;
	int64_t pid;
	uint64_t hash;
	uint64_t number;
	uint64_t bytes;
	uint64_t channels;
	uint64_t start_ns; /* these four: COMMA_UNKNOWN if missing */
	uint64_t time_ns;
	uint64_t child_start_ns;
	uint64_t child_time_ns;
};

#define FIELD(text, kind, member) FOREIGN_FIELD(text, kind, struct comma_event, member)
#define CALLS FOREIGN_CALLS

static void event_init(struct comma_event *event)
{
	*event = (struct comma_event){
		.rank = -1,
		.peer = OP_NOBODY,
		.channel = -1,
		.pid = -1,
		.number = COMMA_UNKNOWN,
		.bytes = COMMA_UNKNOWN,
		.start_ns = COMMA_UNKNOWN,
		.time_ns = COMMA_UNKNOWN,
		.child_start_ns = COMMA_UNKNOWN,
		.child_time_ns = COMMA_UNKNOWN,
	};
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool take_category(struct foreign_reading *reading, void *object)
{
	struct comma_event *event = object;
	static const char *const names[] = { "\"COLL\"", "\"P2P\"", "\"PROXY\"" };
	static const uint8_t categories[] = { COMMA_CATEGORY_COLL, COMMA_CATEGORY_P2P,
					      COMMA_CATEGORY_PROXY, COMMA_CATEGORY_OTHER };
	uint8_t choice;

	if (!foreign_take_choice(reading, names, ARRAY_LENGTH(names), &choice))
		return false;
	event->category = (enum comma_category)categories[choice];
	return true;
}

static bool take_hash(struct foreign_reading *reading, void *object)
{
	struct comma_event *event = object;
	char text[24] = "";

	if (!foreign_take_text(reading, text, sizeof(text)))
		return false;
	if (text[0] != '\0' && !foreign_hash(text, &event->hash))
		reading->problem = "invalid comm_hash";
	return reading->problem == NULL;
}

static bool take_args(struct foreign_reading *reading, void *object)
{
	static const struct json_scan_key keys[] = { FIELD("size", U64, bytes) };

	return foreign_read_object(reading, keys, ARRAY_LENGTH(keys), object);
}

/* ---- proxy operations and their steps -------------------------------------------------------- */

static bool take_step(struct foreign_reading *reading, void *event)
{
	static const struct json_scan_key keys[] = {
		FOREIGN_FIELD("end_time", US, struct op_detail, time_ns[3]),
		FOREIGN_FIELD("fifo_ready_time", US, struct op_detail, time_ns[1]),
		FOREIGN_FIELD("size", U64, struct op_detail, bytes),
		FOREIGN_FIELD("start_time", US, struct op_detail, time_ns[0]),
		FOREIGN_FIELD("step", I32, struct op_detail, step),
	};
	struct op_detail step = { .kind = OP_DETAIL_STEP, .peer = OP_NOBODY };
	struct op_detail *detail;

	(void)event;
	if (!foreign_read_members(reading, keys, ARRAY_LENGTH(keys), &step))
		return false;
	detail = foreign_add_detail(reading);
	if (detail != NULL)
		*detail = step;
	return true;
}

static bool take_steps(struct foreign_reading *reading, void *object)
{
	return foreign_read_array(reading, "a step is not an object", take_step, object);
}

/*
 * Steps are timed from CoMMA's start, their operation since 1970: those outside their operation are
 * on the other clock and are dropped.
 */
static void drop_steps(struct foreign_reading *reading, size_t from, uint64_t start_ns,
		       uint64_t end_ns)
{
	struct foreign_details *details = &reading->details;
	size_t kept = from;

	for (size_t i = from; i < details->count; i++) {
		const uint64_t *times = details->list[i].time_ns;

		if (times[0] + 1000 >= start_ns && times[3] <= end_ns + 1000)
			details->list[kept++] = details->list[i];
		else
			reading->log->skipped_details++;
	}
	details->total -= details->count - kept;
	details->count = kept;
}

static void add_proxy(struct foreign_reading *reading, const struct comma_event *event, size_t from)
{
	uint64_t start_ns = event->start_ns != COMMA_UNKNOWN ? event->start_ns : 0;
	uint64_t end_ns = event->time_ns != COMMA_UNKNOWN ? start_ns + event->time_ns : start_ns;
	uint16_t flags = (uint16_t)((event->is_send ? OP_DETAIL_IS_SEND : 0) |
				    (event->is_inside ? 0 : OP_DETAIL_IS_FOREIGN));
	struct op_detail *detail;

	drop_steps(reading, from, start_ns, end_ns);
	detail = foreign_add_detail(reading);
	if (detail == NULL)
		return;
	detail->kind = OP_DETAIL_PROXY;
	detail->step = event->steps;
	detail->time_ns[0] = start_ns;
	detail->time_ns[3] = event->is_reclaimed ? 0 : end_ns;
	for (size_t i = from; i < reading->details.count; i++) {
		reading->details.list[i].channel =
			event->channel >= 0 && event->channel <= UINT8_MAX ? (uint8_t)event->channel
									   : 0;
		reading->details.list[i].peer = event->peer;
		reading->details.list[i].flags = flags;
		reading->details.list[i].origin_pid = event->pid > 0 ? (uint64_t)event->pid : 0;
	}
}

static bool parse_event(struct foreign_reading *reading, struct comma_event *event);

static bool take_proxy(struct foreign_reading *reading, void *object)
{
	struct comma_event *event = object, proxy;

	event_init(&proxy);
	proxy.is_inside = true;
	if (!parse_event(reading, &proxy))
		return false;
	if (event->pid < 0)
		event->pid = proxy.pid;
	return true;
}

static bool take_proxies(struct foreign_reading *reading, void *object)
{
	const struct comma_event *event = object;

	if (event->is_inside)
		return foreign_take_skip(reading);
	return foreign_read_array(reading, "a proxy operation is not an object", take_proxy,
				  object);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* After the start of an object. */
static bool parse_event(struct foreign_reading *reading, struct comma_event *event)
{
	/* In serde's order. */
	static const struct json_scan_key keys[] = {
		FIELD("algo", ALGORITHM, algorithm),
		CALLS("args", take_args),
		CALLS("cat", take_category),
		FIELD("channel_id", I32, channel),
		FIELD("child_dur", US, child_time_ns),
		FIELD("child_start_ts", US, child_start_ns),
		CALLS("comm_hash", take_hash),
		FIELD("dur", US, time_ns),
		FIELD("is_send", BOOL, is_send),
		FIELD("n_max_channel", U64, channels),
		FIELD("n_steps", I32, steps),
		FIELD("name", FUNCTION, function),
		FIELD("peer", I32, peer),
		JSON_SCAN_KEY_OF("ph"),
		FIELD("pid", I64, pid),
		FIELD("proto", PROTOCOL, protocol),
		CALLS("proxyops", take_proxies),
		FIELD("rank", I32, rank),
		FIELD("reclaimed", BOOL, is_reclaimed),
		FIELD("seq_num", U64, number),
		CALLS("steps", take_steps),
		FIELD("ts", US, start_ns),
	};
	size_t from = reading->details.count;

	if (!foreign_read_members(reading, keys, ARRAY_LENGTH(keys), event))
		return false;
	if (event->category == COMMA_CATEGORY_PROXY)
		add_proxy(reading, event, from);
	return true;
}

/* Parse reading->line into *event; details go to reading->details. False: see reading->problem. */
static bool comma_parse(struct foreign_reading *reading, struct comma_event *event)
{
	event_init(event);
	if (!foreign_begin_line(reading) || !parse_event(reading, event))
		return false;
	if (json_scan_next(&reading->scan) == JSON_SCAN_ERROR)
		reading->problem = reading->scan.problem;
	return reading->problem == NULL;
}

/* From events of CoMMA's latency file to records. */

#define NUMBER_MAX (UINT64_C(1) << 40)

static void set_times(struct op_record *op, const struct comma_event *event)
{
	if (event->start_ns != COMMA_UNKNOWN)
		op->issue_ns = op->task_ns = event->start_ns;
	op->state = OP_LAUNCHED;
	if (event->child_start_ns == COMMA_UNKNOWN)
		return;
	op->state = OP_RUNNING;
	op->active_ns = event->child_start_ns;
	if (event->is_reclaimed || event->child_time_ns == COMMA_UNKNOWN ||
	    event->child_time_ns > UINT64_MAX - event->child_start_ns)
		return;
	op->state = OP_DONE;
	op->done_ns = event->child_start_ns + event->child_time_ns;
	if (event->child_time_ns > 0 && op->active_ns > 0) {
		op->time_source = OP_TIME_PROXY;
		op->flags |= OP_FLAG_TOOL_TIME;
	}
}

static void give_op(struct foreign_reading *reading, const struct comma_event *event,
		    uint32_t number)
{
	struct foreign_comm *comm = &reading->log->comms[number];
	struct op_record op = {
		.function = event->function,
		.algorithm = event->algorithm,
		.protocol = event->protocol,
		.bytes = foreign_message_bytes(event->function, event->bytes, 0),
		.root = OP_NOBODY,
		.peer = event->peer,
		.channels = event->channels > UINT8_MAX ? UINT8_MAX : (uint8_t)event->channels,
	};

	if (event->category == COMMA_CATEGORY_COLL && event->number != COMMA_UNKNOWN) {
		op.nccl_sequence = event->number;
		op.match = foreign_count_collective(comm, event->function, event->number);
	}
	set_times(&op, event);
	comm->info.flags |= op.active_ns != 0 ? COMM_FLAG_SEES_PROXIES : 0;
	foreign_give_op(reading, number, &op);
	foreign_give_details(reading, comm->process, op.comm, op.number);
}

static bool comma_refuse(struct foreign_reading *reading, enum status status)
{
	reading->problem = "too many communicators in one file";
	if (status == ERR_NO_SPACE)
		reading->status = status;
	return false;
}

/* A file is one process; only transfers give its pid. */
static enum status find_process(struct foreign_log *log, const struct comma_event *event)
{
	uint32_t process;
	enum status status =
		log->process_count > 0 ? OK : foreign_process_of(log, "", -1, &process);

	if (status == OK && log->processes[0].pid < 0 && event->pid > 0 &&
	    event->category != COMMA_CATEGORY_PROXY)
		log->processes[0].pid = event->pid;
	return status;
}

static bool take_event(struct foreign_reading *reading, const struct comma_event *event)
{
	const struct comm_info info = { .hash = event->hash, .rank = event->rank };
	struct foreign_log *log = reading->log;
	enum status status;
	uint32_t comm;

	if (event->category == COMMA_CATEGORY_NONE || event->category == COMMA_CATEGORY_OTHER) {
		log->ignored++;
		return true;
	}
	if (event->number != COMMA_UNKNOWN && event->number > NUMBER_MAX) {
		reading->problem = "impossible count";
		return false;
	}
	status = find_process(log, event);
	if (status != OK)
		return comma_refuse(reading, status);
	if (event->category == COMMA_CATEGORY_PROXY) {
		/* A transfer for another process, or with an unknown owner. */
		foreign_give_details(reading, 0, 0, 0);
		return true;
	}
	status = foreign_comm_of(log, 0, &info, &comm);
	if (status != OK)
		return comma_refuse(reading, status);
	give_op(reading, event, comm);
	return true;
}

static bool take_line(struct foreign_reading *reading)
{
	struct comma_event event;

	return comma_parse(reading, &event) && take_event(reading, &event);
}

void foreign_read_comma(struct foreign_reading *reading, struct foreign_lines *lines)
{
	enum status status = OK;

	/* Which steps are kept is known only after parsing them. */
	reading->details.is_wanted = true;
	while (reading->status == OK && !reading->is_over &&
	       (status = foreign_lines_next(lines, &reading->line)) == OK) {
		reading->log->lines++;
		if (reading->line.length == 0 && !reading->line.is_too_long)
			continue;
		reading->problem = "line too long";
		if (reading->line.is_too_long || !take_line(reading))
			foreign_damage_line(reading);
	}
	if (status == ERR_NO_SPACE)
		reading->status = status;
}
