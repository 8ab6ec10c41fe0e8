/*
 * One moment of a process as a trace file:
 *
 *	PROCESS   snapshot_...=, then its own info text
 *	COMM, NAME, ANCHOR
 *	OPS       some of the past, the last finished ones, then those in live slots, with the following sequences
 *	DETAILS   of what is in flight: channels, proxy operations, open transfers
 *	LINKS     what was moved to and from each peer so far
 *	COUNTS    as of that moment; CLOSE if the process had ended its recording
 *
 * What a live slot has and a record lacks goes into the record's reserved word (SNAPSHOT_OPEN and
 * others).
 */
#include "recording/recording.h"
#include "recording/recording_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/secret.h"
#include "common/status.h"
#include "common/text.h"
#include "format/region_read.h"
#include "format/trace_read.h"
#include "format/trace_write.h"

enum { RECORDING_SNAPSHOT_MAX = 1 << 20 }; /* operations */

/* op_record.reserved of an operation in a live slot. A finished record has 0 there. */
#define SNAPSHOT_OPEN UINT64_C(0x7fffffff)     /* open children */
#define SNAPSHOT_RETIRING UINT64_C(0x80000000) /* over, being moved to the ring */
#define SNAPSHOT_LIVE (UINT64_C(1) << 32)
#define SNAPSHOT_RECORDED (UINT64_C(1) << 33) /* counted among the finished ones */

enum {
	COMMS_PER_BLOCK = 2048,
	/* With more than this, finalized ones are left out: a snapshot is small. */
	COMMS_MAX = 4096,
	WHERE_ROOM = RECORDING_WHERES_KEPT * (RECORDING_WHERE_BYTES + 80),
	INFO_ROOM = 1024 + RECORDING_WHERE_BYTES + WHERE_ROOM +
		    RECORDING_PAST_TEXT, /* for the lines that a snapshot adds */
};

struct snapshot {
	const struct recording_process *process;
	struct trace_writer writer;
	struct op_record *ops; /* the last finished ones, a ring of ops_most */
	size_t ops_most;
	uint64_t ops_met;
	struct recording_past_ops past; /* before those */
	struct op_detail *details;
	uint64_t detail_count; /* so far */
	size_t detail_pending;
	uint64_t wall_ns;
	enum status status;
};

/* ---- the moment -------------------------------------------------------------------------------- */

/*
 * Of a process that is gone: its last sign of life. When the snapshot is made has no meaning for it:
 * nothing grows older in a dead process.
 */
static uint64_t moment_of(const struct recording_process *process)
{
	uint64_t last_ns = recording_last_ns(process);

	if (last_ns != 0 &&
	    (process->life == RECORDING_KILLED || process->life == RECORDING_ENDED ||
	     (process->life == RECORDING_UNKNOWN && process->heartbeat_ns != 0)))
		return last_ns;
	if (process->counts_ns != 0 || process->anchor_count == 0)
		return process->counts_ns;
	return process->anchors[process->anchor_count - 1].clock_ns;
}

/* The current wall clock is best if the process is on our host. */
static uint64_t wall_of(const struct recording_process *process, uint64_t moment_ns)
{
	uint64_t now_ns, wall_ns = 0;

	if (moment_ns != process->counts_ns && recording_wall_ns(process, moment_ns, &wall_ns))
		return wall_ns;
	if (recording_now(process, &now_ns) && now_ns >= moment_ns)
		return clock_system_ns(CLOCK_REALTIME) - (now_ns - moment_ns);
	if (process->snapshot_wall_ns != 0)
		return process->snapshot_wall_ns;
	return recording_wall_ns(process, moment_ns, &wall_ns) ? wall_ns : 0;
}

/* ---- finished operations ----------------------------------------------------------------------- */

static void keep_op(struct snapshot *snapshot, const struct op_record *op)
{
	snapshot->ops[snapshot->ops_met++ % snapshot->ops_most] = *op;
}

static bool take_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct snapshot *snapshot = context;

	if (place != RECORDING_IN_LIVE && op->sequence <= snapshot->process->recorded)
		keep_op(snapshot, op);
	return true;
}

/* A region that can no longer be read still has its last state, but no operations. */
static enum status take_ring(struct snapshot *snapshot)
{
	uint64_t recorded = snapshot->process->recorded;
	struct region_ring ring;
	struct op_record op;
	enum status status;

	status =
		region_ring_open(&ring, snapshot->process->region, REGION_RING,
				 recorded > snapshot->ops_most ? recorded - snapshot->ops_most : 0);
	while (status == OK && (status = region_ring_next_op(&ring, &op)) == OK &&
	       op.sequence <= recorded)
		keep_op(snapshot, &op);
	region_ring_close(&ring);
	return status == ERR_NO_SPACE ? status : OK;
}

static enum status find_ops(struct snapshot *snapshot, size_t last_operations)
{
	const struct recording_process *process = snapshot->process;

	if (last_operations > process->recorded)
		last_operations = (size_t)process->recorded;
	if (last_operations > RECORDING_SNAPSHOT_MAX)
		last_operations = RECORDING_SNAPSHOT_MAX;
	if (last_operations == 0)
		return OK;
	snapshot->ops_most = last_operations;
	snapshot->ops = calloc(last_operations, sizeof(*snapshot->ops));
	if (snapshot->ops == NULL)
		return ERR_NO_SPACE;
	if (process->region != NULL)
		return take_ring(snapshot);
	return recording_each_op(process, take_op, snapshot, NULL);
}

static uint64_t op_count(const struct snapshot *snapshot)
{
	return snapshot->ops_met < snapshot->ops_most ? snapshot->ops_met : snapshot->ops_most;
}

static enum status write_ops(struct snapshot *snapshot, const struct op_record *ops, size_t count)
{
	enum status status = OK;

	for (size_t at = 0, some; at < count && status == OK; at += some) {
		some = count - at < TRACE_OPS_PER_BLOCK ? count - at : TRACE_OPS_PER_BLOCK;
		status = trace_write_ops(&snapshot->writer, ops + at, (uint32_t)some);
	}
	return status;
}

/* In the ring of the last ones. */
static size_t oldest_of(const struct snapshot *snapshot)
{
	return op_count(snapshot) > 0 ? (size_t)(snapshot->ops_met % op_count(snapshot)) : 0;
}

static enum status find_past(struct snapshot *snapshot, size_t past_operations)
{
	if (op_count(snapshot) == 0)
		return OK;
	return recording_past_copy(&snapshot->past, snapshot->process,
				   snapshot->ops[oldest_of(snapshot)].sequence, past_operations);
}

/* The ring, oldest first. */
static enum status write_finished(struct snapshot *snapshot)
{
	size_t count = (size_t)op_count(snapshot), oldest = oldest_of(snapshot);
	enum status status = write_ops(snapshot, snapshot->past.ops, snapshot->past.count);

	if (status == OK)
		status = write_ops(snapshot, snapshot->ops + oldest, count - oldest);
	return status == OK ? write_ops(snapshot, snapshot->ops, oldest) : status;
}

/* ---- operations in flight ---------------------------------------------------------------------- */

static enum status write_flights(struct snapshot *snapshot)
{
	const struct recording_process *process = snapshot->process;
	struct op_record *rows = calloc(process->flight_count + 1, sizeof(*rows));
	enum status status;

	if (rows == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];

		rows[i] = flight->op;
		rows[i].sequence = process->recorded + 1 + i;
		rows[i].reserved = SNAPSHOT_LIVE | (flight->open_children & SNAPSHOT_OPEN);
		if (flight->is_retiring)
			rows[i].reserved |= SNAPSHOT_RETIRING;
		if (flight->op.sequence != 0)
			rows[i].reserved |= SNAPSHOT_RECORDED;
	}
	status = write_ops(snapshot, rows, process->flight_count);
	free(rows);
	return status;
}

static void put_detail(struct snapshot *snapshot, const struct op_detail *detail)
{
	if (snapshot->status != OK)
		return;
	if (snapshot->details == NULL)
		snapshot->details = calloc(TRACE_OPS_PER_BLOCK, sizeof(*snapshot->details));
	if (snapshot->details == NULL) {
		snapshot->status = ERR_NO_SPACE;
		return;
	}
	snapshot->details[snapshot->detail_pending] = *detail;
	snapshot->details[snapshot->detail_pending].sequence = ++snapshot->detail_count;
	if (++snapshot->detail_pending < TRACE_OPS_PER_BLOCK)
		return;
	snapshot->status = trace_write_details(&snapshot->writer, snapshot->details,
					       (uint32_t)snapshot->detail_pending);
	snapshot->detail_pending = 0;
}

static void put_kernels(struct snapshot *snapshot, const struct recording_flight *flight)
{
	for (unsigned int channel = 0; channel < 256; channel++) {
		uint64_t bit = UINT64_C(1) << channel % 64;
		struct op_detail detail = { .comm = flight->op.comm,
					    .kind = OP_DETAIL_KERNEL,
					    .channel = (uint8_t)channel,
					    .number = flight->op.number,
					    .peer = OP_NOBODY };

		if (flight->stopped[channel / 64] & bit)
			detail.flags = OP_DETAIL_IS_OVER;
		if ((flight->started[channel / 64] | flight->stopped[channel / 64]) & bit)
			put_detail(snapshot, &detail);
	}
}

/* The proxy operation, the last of its finished transfers, those that are open. */
static void put_proxy(struct snapshot *snapshot, const struct recording_proxy *of, uint32_t comm,
		      uint64_t number)
{
	const struct region_proxy *proxy = &of->proxy;
	struct op_detail detail = { .comm = comm,
				    .kind = OP_DETAIL_PROXY,
				    .channel = proxy->channel,
				    .flags = proxy->flags & (PROXY_IS_SEND | PROXY_IS_FOREIGN),
				    .number = number,
				    .peer = proxy->peer,
				    .step = proxy->steps,
				    .time_ns = { proxy->start_ns, proxy->active_ns },
				    .bytes = proxy->bytes,
				    .origin_pid = (uint64_t)proxy->origin_pid };

	put_detail(snapshot, &detail);
	detail.kind = OP_DETAIL_STEP;
	memset(detail.time_ns, 0, sizeof(detail.time_ns));
	/* If none of them is done, this says so, and when anything last happened. */
	detail.flags |= OP_DETAIL_IS_OVER;
	detail.step = (int32_t)(proxy->done - 1);
	detail.time_ns[3] = proxy->since_ns;
	detail.bytes = 0;
	put_detail(snapshot, &detail);
	for (unsigned int i = 0; i < of->step_count; i++) {
		const struct region_step *step = &of->steps[i];

		detail.flags = (uint16_t)((proxy->flags & (PROXY_IS_SEND | PROXY_IS_FOREIGN)) |
					  step->state << 8);
		detail.step = (int32_t)(step->step_plus_1 - 1);
		memcpy(detail.time_ns, step->time_ns, sizeof(step->time_ns));
		detail.time_ns[3] = 0;
		detail.bytes = step->bytes;
		put_detail(snapshot, &detail);
	}
}

static enum status write_details(struct snapshot *snapshot)
{
	const struct recording_process *process = snapshot->process;

	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];

		if (flight->op.state == OP_DONE)
			continue;
		put_kernels(snapshot, flight);
		for (size_t j = 0; j < flight->proxy_count; j++)
			put_proxy(snapshot, &flight->proxies[j], flight->op.comm,
				  flight->op.number);
	}
	for (size_t i = 0; i < process->proxy_count; i++)
		put_proxy(snapshot, &process->proxies[i], process->proxies[i].proxy.comm,
			  process->proxies[i].proxy.number);
	if (snapshot->status == OK)
		snapshot->status = trace_write_details(&snapshot->writer, snapshot->details,
						       (uint32_t)snapshot->detail_pending);
	return snapshot->status;
}

/* ---- everything else --------------------------------------------------------------------------- */

/*
 * Omits lines that a snapshot of a snapshot writes again, and secrets that should not be recorded.
 */
static size_t copy_info(char *to, const struct recording_process *process)
{
	static const char own[] = "snapshot_";
	size_t length = 0;

	for (size_t at = 0; at < process->info_bytes;) {
		const char *line = process->info + at;
		const char *end = memchr(line, '\n', process->info_bytes - at);
		size_t bytes = end ? (size_t)(end - line) : process->info_bytes - at;

		at += bytes + 1;
		if (bytes == 0 || secret_is_line(line, bytes) ||
		    (bytes >= sizeof(own) - 1 && memcmp(line, own, sizeof(own) - 1) == 0))
			continue;
		memcpy(to + length, line, bytes);
		to[length + bytes] = '\n';
		length += bytes + 1;
	}
	return length;
}

/* What the region's header has and its text may lack; the first occurrence counts. */
static void put_identity(char *to, size_t size, const struct recording_process *process)
{
	text_append(to, size,
		    "boot_id=%s\npid=%" PRId64 "\npid_namespace=%" PRIu64 "\nstart_ticks=%" PRIu64
		    "\nmode=%s\ninterface=%u\n",
		    process->boot_id, process->pid, process->pid_namespace, process->start_ticks,
		    process->mode, process->interface);
}

/*
 * A scan of what changed skips operations that are done and wait in their slots: issued, not yet
 * recorded, and not among the flights.
 */
static uint64_t held_back(const struct recording_process *process)
{
	uint64_t held = 0, open = 0;

	if (process->follow == NULL)
		return 0;
	for (size_t i = 0; i < process->comm_count; i++)
		held += process->comms[i].counts.issued - process->comms[i].counts.recorded;
	for (size_t i = 0; i < process->flight_count; i++)
		open += process->flights[i].op.sequence == 0;
	return held > open && held - open < INT32_MAX ? held - open : 0;
}

/* Those in flight first: of the calls that are over, only the last one may matter. */
static void put_wheres(char *text, size_t size, const struct recording_process *process)
{
	unsigned int kept = 0;

	for (int is_open = 1; is_open >= 0; is_open--) {
		for (size_t i = 0; i < process->where_count && kept < RECORDING_WHERES_KEPT; i++) {
			const struct recording_where *where = &process->wheres[i];

			if (where->is_open != is_open || where->text == NULL)
				continue;
			text_append(text, size,
				    "snapshot_where_%u=%" PRIu32 " %" PRIu64 " %" PRIu64
				    " %d %.*s\n",
				    ++kept, where->comm, where->number, where->issue_ns, is_open,
				    RECORDING_WHERE_BYTES - 1, where->text);
		}
	}
}

static enum status write_info(struct snapshot *snapshot)
{
	const struct recording_process *process = snapshot->process;
	char *text = malloc(INFO_ROOM + process->info_bytes + 1);
	uint64_t filling = process->filling + held_back(process);
	enum status status;
	size_t length;

	if (text == NULL)
		return ERR_NO_SPACE;
	text_format(text, INFO_ROOM,
		    "snapshot_wall_ns=%" PRIu64 "\nsnapshot_life=%s\nsnapshot_operations=%" PRIu64
		    "\n",
		    snapshot->wall_ns, recording_life_name(process->life), op_count(snapshot));
	if (snapshot->past.count > 0)
		text_append(text, INFO_ROOM, "snapshot_past=%s\n", snapshot->past.text);
	if (process->owner >= 0)
		text_append(text, INFO_ROOM, "snapshot_owner=%" PRId64 "\n", process->owner);
	if (process->life == RECORDING_KILLED)
		text_append(text, INFO_ROOM, "snapshot_alive_ns=%" PRIu64 "\n", moment_of(process));
	if (process->process_state != 0)
		text_append(text, INFO_ROOM, "snapshot_state=%c\n", process->process_state);
	if (process->is_undated)
		text_append(text, INFO_ROOM, "snapshot_undated=1\n");
	if (process->is_moving)
		text_append(text, INFO_ROOM, "snapshot_moving=1\n");
	if (process->times_read_ns != 0)
		text_append(text, INFO_ROOM, "snapshot_times_read_ns=%" PRIu64 "\n",
			    process->times_read_ns);
	if (filling > 0)
		text_append(text, INFO_ROOM, "snapshot_filling=%" PRIu64 "\n", filling);
	if (process->refused > 0)
		text_append(text, INFO_ROOM, "snapshot_refused=%zu\n", process->refused);
	if (process->region != NULL)
		put_identity(text, INFO_ROOM, process);
	if (process->stack != NULL)
		text_append(text, INFO_ROOM, "snapshot_stack=%.*s\n", RECORDING_WHERE_BYTES - 1,
			    process->stack);
	put_wheres(text, INFO_ROOM, process);
	length = strlen(text);
	length += copy_info(text + length, process);
	status = trace_write_text(&snapshot->writer, TRACE_PROCESS, text, length);
	free(text);
	return status;
}

static bool is_comm_kept(const struct recording_process *process, const struct recording_comm *comm)
{
	return process->comm_count <= COMMS_MAX || comm->info.finalize_ns == 0;
}

static enum status write_comms(struct snapshot *snapshot)
{
	const struct recording_process *process = snapshot->process;
	struct comm_info *infos = calloc(COMMS_PER_BLOCK, sizeof(*infos));
	enum status status = infos != NULL ? OK : ERR_NO_SPACE;
	uint32_t pending = 0;

	for (size_t i = 0; i < process->comm_count && status == OK; i++) {
		if (is_comm_kept(process, &process->comms[i]))
			infos[pending++] = process->comms[i].info;
		if (pending < COMMS_PER_BLOCK)
			continue;
		status = trace_write_records(&snapshot->writer, TRACE_COMM, infos, sizeof(*infos),
					     pending);
		pending = 0;
	}
	if (status == OK && pending > 0)
		status = trace_write_records(&snapshot->writer, TRACE_COMM, infos, sizeof(*infos),
					     pending);
	free(infos);
	return status;
}

static enum status write_names(struct snapshot *snapshot)
{
	struct trace_name names[OP_NAMES_INTERNED_MAX];
	uint32_t count = 0;

	memset(names, 0, sizeof(names));
	for (uint32_t i = 0; i < OP_NAMES_INTERNED_MAX; i++) {
		if (snapshot->process->names[i][0] == '\0')
			continue;
		names[count].id = OP_NAME_INTERNED + i;
		text_copy(names[count].text, sizeof(names[count].text),
			  snapshot->process->names[i]);
		count++;
	}
	if (count == 0)
		return OK;
	return trace_write_records(&snapshot->writer, TRACE_NAME, names, sizeof(names[0]), count);
}

/*
 * The first one, and this moment: they define the rate of the clock between them. Of a process that
 * was killed also the reader's own, which comes after snapshot_alive_ns.
 */
static enum status write_anchors(struct snapshot *snapshot)
{
	const struct recording_process *process = snapshot->process;
	struct clock_anchor anchors[4];
	uint32_t count = 0;

	if (process->anchor_count > 0)
		anchors[count++] = process->anchors[0];
	if (process->anchor_count > 1)
		anchors[count++] = process->anchors[process->anchor_count - 1];
	if (snapshot->wall_ns != 0)
		anchors[count++] = (struct clock_anchor){ moment_of(process), snapshot->wall_ns };
	if (process->life == RECORDING_KILLED && process->fresh_anchor.wall_ns != 0)
		anchors[count++] = process->fresh_anchor;
	if (count == 0)
		return OK;
	return trace_write_records(&snapshot->writer, TRACE_ANCHOR, anchors, sizeof(anchors[0]),
				   count);
}

/* More than any recorder keeps are left out. */
static enum status write_links(struct snapshot *snapshot)
{
	const struct recording_process *process = snapshot->process;
	size_t count =
		process->link_count < TRACE_LINKS_MAX ? process->link_count : TRACE_LINKS_MAX;

	if (count == 0)
		return OK;
	return trace_write_records(&snapshot->writer, TRACE_LINKS, process->links,
				   sizeof(process->links[0]), (uint32_t)count);
}

/* The counts of very many communicators take several blocks; all repeat the process's own. */
static enum status write_counts(struct snapshot *snapshot)
{
	const struct recording_process *process = snapshot->process;
	struct trace_comm_counts *comms = calloc(COMMS_PER_BLOCK, sizeof(*comms));
	enum trace_block_type type = process->life == RECORDING_ENDED ? TRACE_CLOSE : TRACE_COUNTS;
	struct trace_counts counts = { .clock_ns = moment_of(process),
				       .trace_records = snapshot->past.count + op_count(snapshot) +
							process->flight_count,
				       .ring_head = process->recorded };
	enum status status = comms != NULL ? OK : ERR_NO_SPACE;

	memcpy(counts.lost, process->lost, sizeof(counts.lost));
	memcpy(counts.odd, process->odd, sizeof(counts.odd));
	for (size_t i = 0; i < process->comm_count && status == OK; i++) {
		const struct recording_comm *comm = &process->comms[i];

		if (!comm->has_counts || !is_comm_kept(process, comm))
			continue;
		comms[counts.comms++] = (struct trace_comm_counts){ comm->info.id, comm->counts };
		if (counts.comms < COMMS_PER_BLOCK)
			continue;
		status = trace_write_counts(&snapshot->writer, TRACE_COUNTS, &counts, comms);
		counts.comms = 0;
	}
	if (status == OK)
		status = trace_write_counts(&snapshot->writer, type, &counts, comms);
	free(comms);
	return status;
}

static enum status write_all(struct snapshot *snapshot)
{
	enum status status = write_info(snapshot);

	if (status == OK)
		status = write_comms(snapshot);
	if (status == OK)
		status = write_names(snapshot);
	if (status == OK)
		status = write_anchors(snapshot);
	if (status == OK)
		status = write_finished(snapshot);
	if (status == OK)
		status = write_flights(snapshot);
	if (status == OK)
		status = write_details(snapshot);
	if (status == OK)
		status = write_links(snapshot);
	return status == OK ? write_counts(snapshot) : status;
}

enum status recording_snapshot(const struct recording_process *process, size_t last_operations,
			       size_t past_operations, unsigned char **bytes, size_t *length)
{
	struct snapshot snapshot = { .process = process, .writer = { .fd = -1 } };
	enum status status;

	snapshot.wall_ns = wall_of(process, moment_of(process));
	status = trace_writer_open_memory(&snapshot.writer, snapshot.wall_ns);
	if (status == OK)
		status = find_ops(&snapshot, last_operations);
	if (status == OK)
		status = find_past(&snapshot, past_operations);
	if (status == OK)
		status = write_all(&snapshot);
	if (status == OK)
		*bytes = trace_writer_take(&snapshot.writer, length);
	trace_writer_close(&snapshot.writer);
	free(snapshot.details);
	free(snapshot.past.ops);
	free(snapshot.ops);
	return status;
}

/* From a snapshot back to what a region would have shown at that moment. */

/* No recorder has more live slots. */
enum { FLIGHTS_MAX = 16384 };

static uint64_t number_of(const struct recording_process *process, const char *key)
{
	int64_t number = info_get_number(process->info, process->info_bytes, key, 0);

	return number > 0 ? (uint64_t)number : 0;
}

static enum recording_life life_of(const struct recording_process *process)
{
	static const enum recording_life lives[] = { RECORDING_ALIVE, RECORDING_ENDED,
						     RECORDING_KILLED };
	char text[16];

	recording_info(process, "snapshot_life", text, sizeof(text));
	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++)
		if (strcmp(text, recording_life_name(lives[i])) == 0)
			return lives[i];
	return RECORDING_UNKNOWN;
}

static void read_words(struct recording_process *process)
{
	char state[4];

	process->snapshot_operations = number_of(process, "snapshot_operations");
	process->snapshot_life = life_of(process);
	process->owner = info_get_number(process->info, process->info_bytes, "snapshot_owner", -1);
	recording_past_load(process);
	process->is_moving = number_of(process, "snapshot_moving") != 0;
	process->is_undated = number_of(process, "snapshot_undated") != 0;
	process->filling = (size_t)number_of(process, "snapshot_filling");
	process->times_read_ns = number_of(process, "snapshot_times_read_ns");
	if (recording_info(process, "snapshot_state", state, sizeof(state)) && state[1] == '\0')
		process->snapshot_state = state[0];
	if (number_of(process, "snapshot_refused") == 0)
		return;
	process->refused += (size_t)number_of(process, "snapshot_refused");
	process->refused_why = "already in the region when the snapshot was made";
}

/* The times of a live operation must be checked, too. */
static enum status take_live(struct recording_process *process, struct op_record *op)
{
	struct recording_flight *flight;
	const char *problem = op_check(op);

	if (problem == NULL && process->flight_count == FLIGHTS_MAX)
		problem = "more operations than live slots";
	if (problem != NULL) {
		process->refused++;
		process->refused_why = problem;
		return OK;
	}
	if (!list_grow(&process->flights, process->flight_count, sizeof(*process->flights)))
		return ERR_NO_SPACE;
	flight = &process->flights[process->flight_count++];
	*flight = (struct recording_flight){ .op = *op,
					     .open_children =
						     (uint32_t)(op->reserved & SNAPSHOT_OPEN),
					     .is_retiring = op->reserved & SNAPSHOT_RETIRING };
	op_check_time(&flight->op);
	recording_flight_clean(&flight->op);
	flight->op.reserved = 0;
	if (!(op->reserved & SNAPSHOT_RECORDED))
		flight->op.sequence = 0;
	return OK;
}

static enum status take_block(struct recording_process *process, struct recording_file *file,
			      const struct trace_item *item)
{
	struct trace_records records;
	enum status status = OK;
	struct op_record op;

	if (trace_records_init(&records, item) != OK)
		return OK;
	while (status == OK && trace_records_op(&records, &op) == OK) {
		if (op.sequence > file->live_after) {
			status = take_live(process, &op);
			continue;
		}
		file->records++;
		if (file->first_sequence == 0)
			file->first_sequence = op.sequence;
		if (op.sequence > file->last_sequence)
			file->last_sequence = op.sequence;
	}
	return status;
}

static enum status take_ops(struct recording_process *process, struct recording_file *file,
			    struct trace_reader *reader)
{
	struct trace_item item;
	enum status status = OK;

	file->records = file->first_sequence = file->last_sequence = 0;
	trace_seek(reader, reader->header.header_bytes);
	while (status == OK && trace_next(reader, &item) != TRACE_END)
		if (item.found == TRACE_BLOCK && item.type == TRACE_OPS)
			status = take_block(process, file, &item);
	return status;
}

/*
 * An anchor from after its death is the one of whoever made the snapshot, and says nothing about the
 * process. Without snapshot_alive_ns, that is the moment of the snapshot itself.
 */
static void split_anchors(struct recording_process *process)
{
	uint64_t alive_ns = number_of(process, "snapshot_alive_ns"), wall_ns;
	size_t last = process->anchor_count - 1;

	if (process->snapshot_life != RECORDING_KILLED || process->anchor_count == 0)
		return;
	if (alive_ns == 0 ? process->anchors[last].clock_ns == process->counts_ns
			  : process->anchors[last].clock_ns > alive_ns) {
		process->fresh_anchor = process->anchors[last];
		process->anchor_count--;
	}
	if (alive_ns != 0)
		return;
	process->counts_ns = 0;
	process->counts_ns = recording_last_ns(process);
	if (recording_wall_ns(process, process->counts_ns, &wall_ns))
		process->snapshot_wall_ns = wall_ns;
}

enum status recording_snapshot_load(struct recording_process *process, struct recording_file *file,
				    struct trace_reader *reader)
{
	uint64_t wall_ns = number_of(process, "snapshot_wall_ns");
	enum status status;
	char text[4];

	if (!recording_info(process, "snapshot_wall_ns", text, sizeof(text)))
		return OK;
	process->is_snapshot = file->is_snapshot = true;
	process->snapshot_wall_ns = wall_ns != 0 ? wall_ns : 1;
	read_words(process);
	/*
	 * Its counts come last: without them it was truncated, and which operations are over is
	 * unknown.
	 */
	file->live_after = process->has_counts ? process->recorded : UINT64_MAX;
	process->is_final =
		process->has_counts && (file->is_closed || file->cut_offset == file->bytes);
	status = take_ops(process, file, reader);
	if (status == OK && process->flight_count > 0) {
		recording_flights_sort(process);
		recording_flights_unique(process);
	}
	if (status == OK)
		status = recording_flights_details(process);
	split_anchors(process);
	return status;
}
