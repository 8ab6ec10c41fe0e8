/*
 * What Prometheus reads: all metric families, with HELP and TYPE as encoders write them and docs/METRICS.md lists them, and their
 * samples of processes, communicators, verdicts and the agent itself.
 */
#include "output/metrics.h"
#include "output/metrics_internal.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "output/recorded.h"

enum {
	ROW_OPERATIONS = 0,
	ROW_BYTES = 1,
	ROW_TIMED_BYTES = 2,
	ROW_TIME = 3,
	ROW_TIMED = 4,
	ROW_SHARED = 5,
	ROW_SHARED_TIME = 6,
};

/* State shared while one set of metrics is written. */

struct metrics_writer {
	struct metrics_out out;
	struct metrics_model model;
	long only;			     /* index of the process to write, -1 for all */
	enum status status;		     /* the first failure other than the sink's */
	uint64_t folded[METRICS_ROWS_KINDS]; /* rows that are exported as other */
	uint64_t folded_jobs;		     /* owners and labels of jobs that are not exported */
};

static inline bool metrics_is_in_file(const struct metrics_writer *writer, uint32_t process)
{
	return writer->only < 0 || writer->only == (long)process;
}

static inline bool metrics_is_shown(const struct metrics_writer *writer,
				    const struct metrics_member *member)
{
	return member->is_used && !member->is_folded && metrics_is_in_file(writer, member->process);
}

#define MEMBER "nccl_job,comm,rank"
#define PROCESS "nccl_job,global_rank,pid"

/* Help texts contain no backslash and no newline, so they need no escaping in any format. */
static const struct metrics_name families[METRICS_FAMILIES + 1] = {
	[METRICS_PROCESS_INFO] = { "nccl_process_info", "info",
				   "nccl_job,host,pid,host_pid,global_rank,local_rank,world_size,"
				   "gpu,gpu_uuid,mode,interface,step,state,run",
				   "A recorded process: its place in the job, first GPU and "
				   "state; run is earlier if the job was started again since." },
	[METRICS_JOB_INFO] = { "nccl_job_info", "info",
			       "nccl_job,user,account,partition,job_name,pod,namespace,container,"
			       "container_id,pod_uid",
			       "Owner and containers of a job; in addition label_KEY for each key "
			       "of "
			       "RINGSIDE_LABELS." },
	[METRICS_JOB_HANG_THRESHOLD] = { "nccl_job_hang_threshold_seconds", "gauge", "nccl_job",
					 "RINGSIDE_HANG_AFTER of a job: no alert about a hang "
					 "before. Absent if not set." },
	[METRICS_COMMUNICATOR_INFO] = { "nccl_communicator_info", "info",
					MEMBER ",comm_name,kind,nranks,nnodes,global_rank,host,pid,"
					       "gpu,gpu_uuid,finalized,user_tag",
					"A rank of a communicator and where it runs; user_tag if "
					"its tagged operations have one and the same." },
	[METRICS_OPERATIONS_ISSUED] = { "nccl_operations_issued", "counter", MEMBER,
					"Operations reported by NCCL, including graph captures and "
					"replays." },
	[METRICS_OPERATIONS_FINISHED] = { "nccl_operations_finished", "counter", MEMBER,
					  "Operations whose record is complete." },
	[METRICS_OPERATIONS] = { "nccl_operations", "counter", MEMBER ",function,size",
				 "Finished operations by function and message size, timed or "
				 "not." },
	[METRICS_OPERATION_BYTES] = { "nccl_operation_bytes", "counter", MEMBER ",function,size",
				      "Message bytes of finished operations, counted as in "
				      "nccl-tests." },
	[METRICS_OPERATION_TIMED_BYTES] = { "nccl_operation_timed_bytes", "counter",
					    MEMBER ",function,size",
					    "Message bytes of timed operations; divided by "
					    "nccl_operation_seconds_total: algbw." },
	[METRICS_OPERATION_BUS_BYTES] = { "nccl_operation_bus_bytes", "counter",
					  MEMBER ",function,size",
					  "Message bytes of timed operations times the bus factor "
					  "of the function; divided by "
					  "nccl_operation_seconds_total: busbw." },
	[METRICS_TIMED_OPERATIONS] = { "nccl_timed_operations", "counter", MEMBER ",function,size",
				       "Finished operations that were timed (have a duration of "
				       "their own)." },
	[METRICS_OPERATION_SECONDS] = { "nccl_operation_seconds", "counter",
					MEMBER ",function,size",
					"Time in timed operations, including waiting; divided by "
					"nccl_timed_operations_total: mean duration. Absent if "
					"none was timed." },
	[METRICS_SHARED_OPERATIONS] = { "nccl_shared_operations", "counter",
					MEMBER ",function,size",
					"Finished operations that NCCL executed in one timed "
					"launch with others; not in nccl_timed_operations_total. "
					"Absent if there is none." },
	[METRICS_SHARED_SECONDS] = { "nccl_shared_operation_seconds", "counter",
				     MEMBER ",function,size",
				     "Time of the launches of nccl_shared_operations_total, once "
				     "for each operation. Absent if there is none." },
	[METRICS_OPERATION_DURATION] = { "nccl_operation_duration_seconds", "histogram",
					 MEMBER ",function",
					 "Durations of timed operations; the count covers timed "
					 "operations only. Absent if none was timed." },
	[METRICS_ALGORITHM_OPERATIONS] = { "nccl_algorithm_operations", "counter",
					   MEMBER ",function,algorithm,protocol",
					   "Finished operations by algorithm and protocol chosen "
					   "by NCCL, timed or not." },
	[METRICS_ALGORITHM_TIMED] = { "nccl_algorithm_timed_operations", "counter",
				      MEMBER ",function,algorithm,protocol",
				      "Timed operations by algorithm and protocol chosen by "
				      "NCCL." },
	[METRICS_ALGORITHM_SECONDS] = { "nccl_algorithm_seconds", "counter",
					MEMBER ",function,algorithm,protocol",
					"Time in timed operations by algorithm and protocol chosen "
					"by NCCL. Absent if none was timed." },
	[METRICS_WAIT_SECONDS] = { "nccl_wait_seconds", "counter", MEMBER,
				   "Time this rank waited for other ranks (arrival skew, lower "
				   "bound) since the agent started watching it; scaled up if not "
				   "all collectives are timed. Absent if unknown." },
	[METRICS_IN_FLIGHT] = { "nccl_operations_in_flight", "gauge", MEMBER,
				"Operations called and not finished." },
	[METRICS_OLDEST_AGE] = { "nccl_oldest_operation_age_seconds", "gauge", MEMBER,
				 "Age of the oldest operation in flight; 0 if there is none." },
	[METRICS_OLDEST_INFO] = { "nccl_oldest_operation_info", "info",
				  MEMBER ",function,count,datatype,root,number,match,signature,"
					 "replay,state,kernels_started,kernels_stopped,waits_for,"
					 "peer",
				  "The oldest operation in flight, if it is older than one "
				  "second." },
	[METRICS_OLDEST_WAIT] = { "nccl_oldest_operation_wait_seconds", "gauge",
				  MEMBER ",waits_for,peer,channels",
				  "How long the oldest operation has been waiting, by cause; at "
				  "most four per rank." },
	[METRICS_ACTIVITY_AGE] = { "nccl_last_activity_age_seconds", "gauge", MEMBER,
				   "Time since the last call or completion of an operation, until "
				   "the process ends." },
	[METRICS_LAST_COLLECTIVE] = { "nccl_last_collective_info", "info",
				      MEMBER ",function,count,datatype,root,match,signature",
				      "The collective before the oldest in flight, or the last "
				      "one, of a rank without progress for 10 s." },
	[METRICS_COLLECTIVE_NUMBER] = { "nccl_collective_number_issued", "gauge", MEMBER,
					"Number of the last collective called; equal on ranks at "
					"the same point." },
	[METRICS_REPLAY_NUMBER] = { "nccl_collective_number_replayed", "gauge", MEMBER,
				    "Number of the last collective replayed from a CUDA graph." },
	[METRICS_NUMBER_ISSUED] = { "nccl_operation_number_issued", "gauge", MEMBER,
				    "Number of the last operation called." },
	[METRICS_NUMBER_DONE] = { "nccl_operation_number_done", "gauge", MEMBER,
				  "Number of the last finished operation." },
	[METRICS_SIGNATURE] = { "nccl_collective_signature", "gauge", MEMBER,
				"Rolling hash of the collectives called (low 52 bits); ranks with "
				"the same number of collectives must have the same hash." },
	[METRICS_PROXY_WAIT] = { "nccl_proxy_wait_seconds", "counter",
				 MEMBER ",direction,state,peer",
				 "Time network transfers spent waiting, by cause." },
	[METRICS_PROXY_BYTES] = { "nccl_proxy_bytes", "counter", MEMBER ",direction,peer",
				  "Bytes transferred over the network." },
	[METRICS_PROXY_TRANSFERS] = { "nccl_proxy_transfers", "counter", MEMBER ",direction,peer",
				      "Transfers over the network." },
	[METRICS_WIRE_BYTES] = { "nccl_wire_bytes", "counter", MEMBER ",direction,peer",
				 "Bytes sent on links whose time on the wire is known." },
	[METRICS_WIRE_SECONDS] = { "nccl_wire_seconds", "counter", MEMBER ",direction,peer",
				   "Time during which at least one transfer of the link was on the "
				   "wire." },
	[METRICS_UNTRUSTED] = { "nccl_untrusted_times", "counter", MEMBER,
				"Operations whose GPU timestamps were rejected." },
	[METRICS_LOST_OPERATIONS] = { "nccl_lost_operations", "counter", PROCESS ",reason",
				      "Operations that were not recorded." },
	[METRICS_LOST_DETAILS] = { "nccl_lost_details", "counter", PROCESS ",reason",
				   "Details of recorded operations that were lost." },
	[METRICS_ODD_EVENTS] = { "nccl_odd_events", "counter", PROCESS ",reason",
				 "Unexpected profiler events from NCCL." },
	[METRICS_NOTICE_INFO] = { "nccl_notice_info", "info", "nccl_job,kind,comm,rank",
				  "Active notices." },
	[METRICS_VERDICT_INFO] = { "nccl_verdict_info", "info",
				   "nccl_job,class,comm,rank,global_rank,peer_global_rank,host,"
				   "peer_host,severity,confidence",
				   "Active verdicts of the doctor on this node: hangs and "
				   "slowness." },
	[METRICS_VERDICT_SLOWDOWN] = { "nccl_verdict_slowdown_ratio", "gauge",
				       "nccl_job,class,comm,rank,global_rank,peer_global_rank,"
				       "host,peer_host",
				       "How much slower, of active verdicts about slowness: 0.2 is "
				       "20%. Of a straggler: share of the time that others wait "
				       "for it." },
	[METRICS_BUILD_INFO] = { "ringside_build_info", "info", "version",
				 "Version of the agent." },
	[METRICS_AGENT_PROCESSES] = { "ringside_agent_processes", "gauge", "state",
				      "Processes watched by the agent." },
	[METRICS_AGENT_LOOKS] = { "ringside_agent_looks", "counter", "",
				  "Scans of all processes." },
	[METRICS_AGENT_LOOK_SECONDS] = { "ringside_agent_look_seconds", "counter", "",
					 "Time spent scanning." },
	[METRICS_AGENT_JUDGEMENTS] = { "ringside_agent_judgements", "counter", "",
				       "Judgements of the speed of a job." },
	[METRICS_AGENT_JUDGE_SECONDS] = { "ringside_agent_judge_seconds", "counter", "",
					  "CPU time spent judging speed." },
	[METRICS_AGENT_GIVEN_UP] = { "ringside_agent_children_given_up", "counter", "",
				     "Child processes of the agent that could not be killed." },
	[METRICS_AGENT_REFUSED] = { "ringside_agent_refused_files", "gauge", "",
				    "Files that cannot be read because of their contents." },
	[METRICS_AGENT_UNREADABLE] = { "ringside_agent_unreadable_files", "gauge", "",
				       "Files and directories that the agent has no permission to "
				       "read." },
	[METRICS_AGENT_LEFT_OUT] = { "ringside_agent_left_out_processes", "gauge", "",
				     "Processes beyond the limit of the agent." },
	[METRICS_AGENT_USER_LEFT_OUT] = { "ringside_agent_user_left_out", "gauge", "user,what",
					  "What the agent leaves out of a user with too much: "
					  "processes, directories not searched to their end, "
					  "answers of file systems and processes that came too "
					  "late." },
	[METRICS_AGENT_MERGED] = { "ringside_agent_merged_recordings", "gauge", "",
				   "Recordings merged with another one that has the same labels." },
	[METRICS_AGENT_FOLDED] = { "ringside_agent_folded", "gauge", "what",
				   "Items beyond the series budget, exported as other." },
	[METRICS_AGENT_VERDICTS] = { "ringside_agent_verdicts", "counter", "class",
				     "Verdicts since the agent started." },
	[METRICS_AGENT_KERNEL] = { "ringside_agent_kernel_requests", "counter", "event",
				   "Processes asked to time every operation for a while, by "
				   "result." },
	[METRICS_CPU_SECONDS] = { "process_cpu_seconds", "counter", "",
				  "CPU time used by the agent." },
	[METRICS_RESIDENT_BYTES] = { "process_resident_memory_bytes", "gauge", "",
				     "Resident memory of the agent." },
	[METRICS_OPEN_FDS] = { "process_open_fds", "gauge", "",
			       "Open file descriptors of the agent." },
	[METRICS_START_TIME] = { "process_start_time_seconds", "gauge", "",
				 "Start time of the agent in seconds since 1970." },
};

const struct metrics_name *metrics_names(void)
{
	return families;
}

/* Series of totals and links: labels are encoded once per row; each value is a family. */

/* ---- totals ---------------------------------------------------------------------------------- */

static void writer_fail(struct metrics_writer *writer, enum status status)
{
	if (writer->status == OK)
		writer->status = status;
}

static const char *function_text(const struct metrics_writer *writer, uint64_t number)
{
	return metrics_name_text(&writer->model, OP_NAMES_FUNCTION, (uint8_t)number);
}

/* Encodes the labels of the rows to write; rows without labels are dropped. */
static void keep_shown(struct metrics_writer *writer, struct metrics_rows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (metrics_is_shown(writer, &writer->model.members[rows->rows[i].member]))
			rows->rows[kept++] = rows->rows[i];
	rows->count = kept;
}

static void begin_labels(struct metrics_out *out, struct metrics_labels *labels,
			 const struct metrics_member *member)
{
	metrics_labels_begin(out, labels);
	metrics_labels_copy(out, member->labels);
}

static void label_if_known(struct metrics_out *out, const char *name, int64_t number, int64_t least)
{
	if (number >= least)
		metrics_label_number(out, name, number);
}

/* An info metric: the value is in its labels. */
static void put_info(struct metrics_out *out, struct metrics_labels *labels)
{
	metrics_labels_end(out, labels);
	metrics_put_unsigned(out, *labels, 1);
}

/* Ends the last set of labels. False: an earlier set is equal. */
static bool end_new(struct metrics_out *out, struct metrics_labels *labels, size_t count)
{
	metrics_labels_end(out, &labels[count]);
	for (size_t i = 0; i < count; i++)
		if (metrics_labels_equal(out, labels[i], labels[count]))
			return false;
	return true;
}

/* Ends the last set of labels and writes it as an info, unless an earlier set is equal. Returns true if it is new. */
static bool put_once(struct metrics_out *out, struct metrics_labels *labels, size_t count,
		     bool is_shown)
{
	if (!end_new(out, labels, count))
		return false;
	if (is_shown)
		metrics_put_unsigned(out, labels[count], 1);
	return true;
}

/* How a value of a row is written. Unmeasured values have no sample: 0 would be read as no time, or as a
 * bandwidth of 0. */
enum row_form {
	FORM_COUNT,
	FORM_COUNT_IF_TIMED,
	FORM_COUNT_IF_SHARED,
	FORM_SECONDS,
	FORM_SECONDS_IF_SHARED,
	FORM_BUS_BYTES,
	FORM_WAITS,
	FORM_COUNT_IF_SENT,
	FORM_SECONDS_IF_SENT,
};

/* Families with the same rows, and the labels that these have in addition to the rank's. */
struct row_table {
	enum metrics_rows_of of;
	void (*label)(struct metrics_writer *writer, const struct metrics_row *row);
	struct row_family {
		enum metrics_family family;
		unsigned int value; /* of the row */
		enum row_form form;
	} families[9]; /* ends at the first METRICS_PROCESS_INFO */
};

static const char *direction_name(const struct metrics_row *row)
{
	static const char *const names[] = { "send", "recv", "other", "other" };

	return names[row->what >> 32 & 3];
}

static void label_peer(struct metrics_out *out, const struct metrics_row *row)
{
	if ((uint32_t)row->what == METRICS_PEER_OTHER)
		metrics_label(out, "peer", "other");
	else
		metrics_label_number(out, "peer", (uint32_t)row->what);
}

/* One sample for each cause. */
static void write_link_waits(struct metrics_writer *writer, const struct metrics_row *row)
{
	static const char *const states[][3] = { { "gpu", "peer", "net" },
						 { "net", "flush", "gpu" },
						 { "other", NULL, NULL },
						 { "other", NULL, NULL } };
	struct metrics_out *out = &writer->out;

	for (unsigned int s = 0; s < 3 && states[row->what >> 32 & 3][s]; s++) {
		struct metrics_labels labels;

		begin_labels(out, &labels, &writer->model.members[row->member]);
		metrics_label(out, "direction", direction_name(row));
		metrics_label(out, "state", states[row->what >> 32 & 3][s]);
		label_peer(out, row);
		metrics_labels_end(out, &labels);
		metrics_put_seconds(out, labels, row->values[ROW_WAITS + s]);
		metrics_labels_forget(out, labels.at);
	}
}

static void write_rows(struct metrics_writer *writer, const struct metrics_rows *rows,
		       const struct row_family *family)
{
	struct metrics_out *out = &writer->out;

	metrics_family(out, family->family);
	for (size_t i = 0; i < rows->count; i++) {
		const struct metrics_row *row = &rows->rows[i];
		uint64_t value = row->values[family->value];
		bool is_timed = row->values[ROW_TIMED] > 0, is_shared = row->values[ROW_SHARED] > 0;

		if (family->form == FORM_WAITS)
			write_link_waits(writer, row);
		else if (family->form == FORM_BUS_BYTES && row->bus_bytes > 0)
			metrics_put_double(out, row->labels, row->bus_bytes);
		else if ((family->form == FORM_SECONDS && is_timed) ||
			 (family->form == FORM_SECONDS_IF_SHARED && is_shared))
			metrics_put_seconds(out, row->labels, value);
		else if (family->form == FORM_COUNT ||
			 (family->form == FORM_COUNT_IF_TIMED && is_timed) ||
			 (family->form == FORM_COUNT_IF_SHARED && is_shared))
			metrics_put_unsigned(out, row->labels, value);
		else if (family->form == FORM_COUNT_IF_SENT && row->values[ROW_WIRE] > 0)
			metrics_put_unsigned(out, row->labels, value);
		else if (family->form == FORM_SECONDS_IF_SENT && row->values[ROW_WIRE] > 0)
			metrics_put_seconds(out, row->labels, value);
	}
}

static void write_row_table(struct metrics_writer *writer, const struct row_table *table)
{
	struct metrics_rows rows = { 0 };
	struct metrics_out *out = &writer->out;
	size_t mark = metrics_labels_mark(out);

	writer_fail(writer, metrics_rows_make(&rows, &writer->model, table->of));
	keep_shown(writer, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		struct metrics_row *row = &rows.rows[i];

		begin_labels(out, &row->labels, &writer->model.members[row->member]);
		table->label(writer, row);
		metrics_labels_end(out, &row->labels);
	}
	for (size_t i = 0; table->families[i].family != METRICS_PROCESS_INFO; i++)
		write_rows(writer, &rows, &table->families[i]);
	writer->folded[table->of] = rows.folded;
	metrics_labels_forget(out, mark);
	metrics_rows_release(&rows);
}

static void label_size(struct metrics_writer *writer, const struct metrics_row *row)
{
	metrics_label(&writer->out, "function", function_text(writer, row->what >> 8));
	metrics_label(&writer->out, "size", metrics_size_text(row->what & 0xff));
}

static const struct row_table sizes = {
	.of = METRICS_ROWS_SIZES,
	.label = label_size,
	.families = { { METRICS_OPERATIONS, ROW_OPERATIONS, FORM_COUNT },
		      { METRICS_OPERATION_BYTES, ROW_BYTES, FORM_COUNT },
		      { METRICS_OPERATION_TIMED_BYTES, ROW_TIMED_BYTES, FORM_COUNT_IF_TIMED },
		      { METRICS_OPERATION_BUS_BYTES, 0, FORM_BUS_BYTES },
		      { METRICS_TIMED_OPERATIONS, ROW_TIMED, FORM_COUNT },
		      { METRICS_OPERATION_SECONDS, ROW_TIME, FORM_SECONDS },
		      { METRICS_SHARED_OPERATIONS, ROW_SHARED, FORM_COUNT_IF_SHARED },
		      { METRICS_SHARED_SECONDS, ROW_SHARED_TIME, FORM_SECONDS_IF_SHARED } },
};

static void write_histogram(const struct metrics_row *row,
			    const struct metrics_histogram *histogram, void *context)
{
	struct metrics_writer *writer = context;
	struct metrics_labels labels;

	if (!metrics_is_shown(writer, &writer->model.members[row->member]))
		return;
	begin_labels(&writer->out, &labels, &writer->model.members[row->member]);
	metrics_label(&writer->out, "function", function_text(writer, row->what));
	metrics_labels_end(&writer->out, &labels);
	metrics_put_histogram(&writer->out, labels, histogram);
	metrics_labels_forget(&writer->out, labels.at);
}

static void write_histograms(struct metrics_writer *writer)
{
	struct metrics_rows rows = { 0 };
	enum status status = metrics_rows_make(&rows, &writer->model, METRICS_ROWS_FUNCTIONS);

	metrics_family(&writer->out, METRICS_OPERATION_DURATION);
	if (status == OK)
		status = metrics_rows_histograms(&rows, &writer->model, write_histogram, writer);
	writer_fail(writer, status);
	writer->folded[METRICS_ROWS_FUNCTIONS] = rows.folded;
	metrics_rows_release(&rows);
}

static void label_choice(struct metrics_writer *writer, const struct metrics_row *row)
{
	struct metrics_out *out = &writer->out;

	metrics_label(out, "function", function_text(writer, row->what >> 16));
	metrics_label(
		out, "algorithm",
		metrics_name_text(&writer->model, OP_NAMES_ALGORITHM, (uint8_t)(row->what >> 8)));
	metrics_label(out, "protocol",
		      metrics_name_text(&writer->model, OP_NAMES_PROTOCOL, (uint8_t)row->what));
}

static const struct row_table choices = {
	.of = METRICS_ROWS_CHOICES,
	.label = label_choice,
	.families = { { METRICS_ALGORITHM_OPERATIONS, ROW_OPERATIONS, FORM_COUNT },
		      { METRICS_ALGORITHM_TIMED, ROW_TIMED, FORM_COUNT },
		      { METRICS_ALGORITHM_SECONDS, ROW_TIME, FORM_SECONDS } },
};

static void label_link(struct metrics_writer *writer, const struct metrics_row *row)
{
	metrics_label(&writer->out, "direction", direction_name(row));
	label_peer(&writer->out, row);
}

static const struct row_table links = {
	.of = METRICS_ROWS_LINKS,
	.label = label_link,
	.families = { { METRICS_PROXY_WAIT, 0, FORM_WAITS },
		      { METRICS_PROXY_BYTES, ROW_LINK_BYTES, FORM_COUNT },
		      { METRICS_PROXY_TRANSFERS, ROW_TRANSFERS, FORM_COUNT },
		      { METRICS_WIRE_BYTES, ROW_WIRE_BYTES, FORM_COUNT_IF_SENT },
		      { METRICS_WIRE_SECONDS, ROW_WIRE, FORM_SECONDS_IF_SENT } },
};

/*
 * The operation that a stuck rank is in, what it waits for, and what it called before. doctor/prom.h joins
 * the ranks of all nodes and needs the details of both calls to compare them. These series exist only
 * while a rank is stuck, so that their many labels cost nothing while a job runs.
 */

enum { OLD_NS = 1000000000 };
/* Longer than a usual pause between steps, because every new last collective is a new series. */
#define STILL_NS (10 * UINT64_C(1000000000))

static void label_unsigned(struct metrics_out *out, const char *name, uint64_t number)
{
	char text[24];

	text_format(text, sizeof(text), "%" PRIu64, number);
	metrics_label(out, name, text);
}

static void label_name(struct metrics_writer *writer, uint32_t seat, const char *label,
		       enum op_name_table table, uint8_t number)
{
	const struct metrics_model *model = &writer->model;
	uint8_t shown = metrics_name_number(model, model->job->seats[seat].process, table, number);

	metrics_label(&writer->out, label, metrics_name_text(model, table, shown));
}

/* The arguments that must be equal on all ranks. */
static void label_call(struct metrics_writer *writer, uint32_t seat, const struct op_record *op)
{
	label_name(writer, seat, "function", OP_NAMES_FUNCTION, op->function);
	label_unsigned(&writer->out, "count", op->count);
	if (op->datatype != OP_DATATYPE_UNKNOWN)
		label_name(writer, seat, "datatype", OP_NAMES_DATATYPE, op->datatype);
	label_if_known(&writer->out, "root", op->root, 0);
}

/* Its number among the collectives, and the hash of all collectives up to it. */
static void label_place(struct metrics_out *out, const struct op_record *op)
{
	if (op->match == 0)
		return;
	label_unsigned(out, "match", op->match);
	if (op_is_collective(op->function) && op->signature != 0)
		label_unsigned(out, "signature", op->signature & METRICS_SIGNATURE_BITS);
	if (op->flags & OP_FLAG_REPLAY)
		metrics_label(out, "replay", "true");
}

/* Channels whose kernels have started or stopped; "none" means that kernel events are recorded. */
static void label_channels(struct metrics_out *out, const char *name, const uint64_t bits[4])
{
	char channels[FLIGHT_CHANNELS_TEXT];

	flight_words_channels(bits, channels);
	metrics_label(out, name, channels[0] != '\0' ? channels : "none");
}

static void label_kernels(struct metrics_out *out, const struct live_seat *seat)
{
	if (seat->comm == NULL || !(seat->comm->info.flags & COMM_FLAG_SEES_KERNELS))
		return;
	label_channels(out, "kernels_started", seat->oldest->started);
	label_channels(out, "kernels_stopped", seat->oldest->stopped);
}

/* The seat whose oldest operation is old; NULL if there is none. */
static const struct live_seat *old_seat(const struct metrics_writer *writer,
					const struct metrics_member *member)
{
	if (member->kind == METRICS_PROCESS || !metrics_is_shown(writer, member) ||
	    member->oldest == METRICS_NOBODY || member->oldest_age_ns <= OLD_NS)
		return NULL;
	return &writer->model.live->seats[member->oldest];
}

static void write_infos(struct metrics_writer *writer)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_OLDEST_INFO);
	for (size_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];
		const struct live_seat *seat = old_seat(writer, member);
		struct metrics_labels labels;

		if (seat == NULL)
			continue;
		begin_labels(out, &labels, member);
		label_call(writer, member->oldest, &seat->oldest->op);
		label_unsigned(out, "number", seat->oldest->op.number);
		label_place(out, &seat->oldest->op);
		metrics_label(out, "state", op_state_name(seat->oldest->op.state));
		label_kernels(out, seat);
		if (seat->wait_count > 0)
			metrics_label(out, "waits_for", flight_reason_name(seat->waits[0].reason));
		label_if_known(out, "peer",
			       seat->wait_count > 0 ? seat->waits[0].peer : seat->oldest->op.peer,
			       0);
		put_info(out, &labels);
	}
}

static void write_wait(struct metrics_writer *writer, const struct metrics_member *member,
		       const struct live_seat *seat, const struct flight_wait *wait)
{
	uint64_t since_ns = flight_since_ns(seat->oldest), later_ns = 0;
	char channels[FLIGHT_CHANNELS_TEXT];
	struct metrics_out *out = &writer->out;
	struct metrics_labels labels;

	if (since_ns != 0 && wait->since_ns > since_ns)
		later_ns = wait->since_ns - since_ns;
	if (later_ns > seat->oldest_age_ns)
		later_ns = seat->oldest_age_ns;
	begin_labels(out, &labels, member);
	metrics_label(out, "waits_for", flight_reason_name(wait->reason));
	label_if_known(out, "peer", wait->peer, 0);
	metrics_label(out, "channels", flight_words_channels(wait->channels, channels));
	metrics_labels_end(out, &labels);
	metrics_put_seconds(out, labels, seat->oldest_age_ns - later_ns);
}

/* Pairs of reason and peer are unique, so no two samples have the same labels. */
static void write_waits(struct metrics_writer *writer)
{
	metrics_family(&writer->out, METRICS_OLDEST_WAIT);
	for (size_t i = 0; i < writer->model.member_count; i++) {
		const struct metrics_member *member = &writer->model.members[i];
		const struct live_seat *seat = old_seat(writer, member);

		for (uint32_t w = 0; seat != NULL && w < seat->wait_count; w++)
			write_wait(writer, member, seat, &seat->waits[w]);
	}
}

/* The collective before the one the seat is in, or the last one; NULL if it is no longer known. */
static const struct op_record *last_collective(const struct metrics_writer *writer, uint32_t seat)
{
	const struct job_seat *of = &writer->model.job->seats[seat];
	const struct recording_process *process = writer->model.recording->processes[of->process];
	const struct recording_flight *oldest = writer->model.live->seats[seat].oldest;
	const struct op_record *last = NULL;

	for (size_t i = 0; i < process->flight_count; i++) {
		const struct op_record *op = &process->flights[i].op;

		if (op->comm != of->comm_id || op->match == 0 || !op_is_collective(op->function) ||
		    op->flags & OP_FLAG_REPLAY ||
		    (oldest != NULL && op->number >= oldest->op.number))
			continue;
		if (last == NULL || op->match > last->match)
			last = op;
	}
	return last;
}

static void metrics_write_last(struct metrics_writer *writer)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_LAST_COLLECTIVE);
	for (size_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];
		const struct op_record *op;
		struct metrics_labels labels;

		if (member->kind == METRICS_PROCESS || member->kind == METRICS_OTHER ||
		    !metrics_is_shown(writer, member) || member->seat == METRICS_NOBODY ||
		    model->live->seats[member->seat].still_ns < STILL_NS)
			continue;
		op = last_collective(writer, member->seat);
		if (op == NULL)
			continue;
		begin_labels(out, &labels, member);
		label_call(writer, member->seat, op);
		/* With nothing in flight, gauges already have number and signature: avoid a new series for every pause. */
		if (model->live->seats[member->seat].oldest != NULL)
			label_place(out, op);
		put_info(out, &labels);
	}
}

/* Verdicts of the doctor: one series per verdict, and their counts. */

enum { SHOWN_MAX = 64 };

/* The culprit's seat if it is on this node, else the first one of its communicator. */
static uint32_t seat_of(const struct live *live, const struct verdict *verdict)
{
	uint32_t of = live_verdict_comm(live, verdict), found = METRICS_NOBODY;
	const struct job *job = &live->job;
	const struct job_comm *comm = of != UINT32_MAX ? &job->comms[of] : NULL;

	for (uint32_t i = 0; comm && i < comm->seat_count; i++)
		if (found == METRICS_NOBODY ||
		    job->seats[comm->seats[i]].comm_rank == verdict->comm_rank)
			found = comm->seats[i];
	return found;
}

static void label_verdict(struct metrics_writer *writer, const struct verdict *verdict,
			  uint32_t seat)
{
	struct metrics_out *out = &writer->out;
	char comm[METRICS_COMM_TEXT] = "";

	if (seat != METRICS_NOBODY)
		metrics_comm_text(&writer->model, seat, comm);
	else if (verdict->comm_hash != 0)
		text_format(comm, sizeof(comm), "%016" PRIx64, verdict->comm_hash);
	metrics_label(out, "nccl_job", verdict->job);
	metrics_label(out, "class", verdict_class_name(verdict->class));
	metrics_label(out, "comm", comm);
	label_if_known(out, "rank", verdict->comm_rank, 0);
	label_if_known(out, "global_rank", verdict->rank, 0);
	label_if_known(out, "peer_global_rank", verdict->peer, 0);
	metrics_label(out, "host", verdict->host);
	metrics_label(out, "peer_host", verdict->peer_host);
}

/* The textfile that contains it: of the culprit, of a rank, or of the first process. */
static bool is_here(const struct metrics_writer *writer, uint32_t seat)
{
	uint32_t process = seat == METRICS_NOBODY ? 0 : writer->model.job->seats[seat].process;

	return metrics_is_in_file(writer, process);
}

/* Of verdicts with the same labels, the first one, which is the most serious. */
static void write_slowdowns(struct metrics_writer *writer)
{
	const struct verdicts *verdicts = &writer->model.live->verdicts;
	struct metrics_labels labels[SHOWN_MAX];
	struct metrics_out *out = &writer->out;
	size_t count = 0;

	metrics_family(out, METRICS_VERDICT_SLOWDOWN);
	for (size_t i = 0; i < verdicts->count && count < SHOWN_MAX; i++) {
		const struct verdict *verdict = &verdicts->list[i];
		uint32_t seat = seat_of(writer->model.live, verdict);

		if (!verdict_is_slow(verdict->class) || !(verdict->percent > 0))
			continue;
		metrics_labels_begin(out, &labels[count]);
		label_verdict(writer, verdict, seat);
		if (!end_new(out, labels, count))
			continue;
		if (is_here(writer, seat))
			metrics_put_double(out, labels[count], verdict->percent / 100);
		count++;
	}
}

static void metrics_write_verdicts(struct metrics_writer *writer)
{
	const struct verdicts *verdicts = &writer->model.live->verdicts;
	struct metrics_labels labels[SHOWN_MAX];
	struct metrics_out *out = &writer->out;
	size_t count = 0;

	metrics_family(out, METRICS_VERDICT_INFO);
	for (size_t i = 0; i < verdicts->count && count < SHOWN_MAX; i++) {
		uint32_t seat = seat_of(writer->model.live, &verdicts->list[i]);

		metrics_labels_begin(out, &labels[count]);
		label_verdict(writer, &verdicts->list[i], seat);
		metrics_label(out, "severity", verdict_severity_name(verdicts->list[i].severity));
		metrics_label(out, "confidence",
			      verdict_confidence_word(verdicts->list[i].confidence));
		count += put_once(out, labels, count, is_here(writer, seat));
	}
	write_slowdowns(writer);
}

/* Metrics of the agent itself. */

static const struct metrics_labels no_labels;

static struct metrics_labels one_label(struct metrics_out *out, const char *name, const char *value)
{
	struct metrics_labels labels;

	metrics_labels_begin(out, &labels);
	metrics_label(out, name, value);
	metrics_labels_end(out, &labels);
	return labels;
}

static void write_verdict_counts(struct metrics_writer *writer, const uint64_t *counts)
{
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_AGENT_VERDICTS);
	/* The agent reports hangs and slowness. */
	for (unsigned int i = 0; counts && i < VERDICT_CLASSES; i++)
		if (verdict_is_hang(i) || verdict_is_slow(i))
			metrics_put_unsigned(out, one_label(out, "class", verdict_class_name(i)),
					     counts[i]);
}

static void write_agent_processes(struct metrics_writer *writer)
{
	static const enum recording_life states[] = { RECORDING_ALIVE, RECORDING_ENDED,
						      RECORDING_KILLED, RECORDING_UNKNOWN };
	const struct recording *recording = writer->model.recording;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_AGENT_PROCESSES);
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		uint64_t count = 0;

		for (size_t p = 0; p < recording->count; p++)
			count += recording->processes[p]->life == states[i];
		metrics_put_unsigned(out, one_label(out, "state", recording_life_name(states[i])),
				     count);
	}
}

static void put_left_out(struct metrics_out *out, const char *user, const char *what,
			 uint64_t value)
{
	struct metrics_labels labels;

	if (value == 0)
		return;
	metrics_labels_begin(out, &labels);
	metrics_label(out, "user", user);
	metrics_label(out, "what", what);
	metrics_labels_end(out, &labels);
	metrics_put_unsigned(out, labels, value);
}

/* By number, as the agent knows them; users beyond the limit together. */
static void write_left_out(struct metrics_writer *writer)
{
	const struct recording *recording = writer->model.recording;
	struct recording_left_out others = { 0 };
	uint64_t others_silent = 0;
	char user[24];

	metrics_family(&writer->out, METRICS_AGENT_USER_LEFT_OUT);
	for (size_t i = 0; i < recording->left_out_count; i++) {
		const struct recording_left_out *one = &recording->left_out[i];

		if (i >= METRICS_USERS) {
			others.processes += one->processes;
			others.directories += one->directories;
			others_silent += one->is_silent;
			continue;
		}
		text_format(user, sizeof(user), "%" PRIu32, one->owner);
		put_left_out(&writer->out, user, "processes", one->processes);
		put_left_out(&writer->out, user, "directories", one->directories);
		put_left_out(&writer->out, user, "answers", one->is_silent);
	}
	put_left_out(&writer->out, "other", "processes", others.processes);
	put_left_out(&writer->out, "other", "directories", others.directories);
	put_left_out(&writer->out, "other", "answers", others_silent);
}

static void write_folded(struct metrics_writer *writer)
{
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_AGENT_FOLDED);
	metrics_put_unsigned(out, one_label(out, "what", "communicators"),
			     writer->model.folded_comms);
	metrics_put_unsigned(out, one_label(out, "what", "sizes"),
			     writer->folded[METRICS_ROWS_SIZES]);
	metrics_put_unsigned(out, one_label(out, "what", "functions"),
			     writer->folded[METRICS_ROWS_FUNCTIONS]);
	metrics_put_unsigned(out, one_label(out, "what", "algorithms"),
			     writer->folded[METRICS_ROWS_CHOICES]);
	metrics_put_unsigned(out, one_label(out, "what", "peers"),
			     writer->folded[METRICS_ROWS_LINKS]);
	metrics_put_unsigned(out, one_label(out, "what", "job_labels"), writer->folded_jobs);
}

static void write_kernel(struct metrics_writer *writer, const uint64_t *counts)
{
	static const char *const names[METRICS_KERNEL_EVENTS] = { "asked", "granted", "refused",
								  "failed" };
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_AGENT_KERNEL);
	for (unsigned int i = 0; counts && i < METRICS_KERNEL_EVENTS; i++)
		metrics_put_unsigned(out, one_label(out, "event", names[i]), counts[i]);
}

/* A family with one sample; without `is_sure`, 0 means unknown. */
static void put_alone(struct metrics_out *out, enum metrics_family family, uint64_t value,
		      bool is_time, bool is_sure)
{
	metrics_family(out, family);
	if (value > 0 || is_sure)
		is_time ? metrics_put_seconds(out, no_labels, value)
			: metrics_put_unsigned(out, no_labels, value);
}

/* Metrics of the agent itself, and what was folded. Written last. */
static void metrics_write_agent(struct metrics_writer *writer, const struct metrics_agent *agent)
{
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_BUILD_INFO);
	metrics_put_unsigned(out, one_label(out, "version", agent->version), 1);
	write_agent_processes(writer);
	put_alone(out, METRICS_AGENT_LOOKS, agent->looks, false, true);
	put_alone(out, METRICS_AGENT_LOOK_SECONDS, agent->look_ns, true, true);
	put_alone(out, METRICS_AGENT_JUDGEMENTS, agent->judgements, false, true);
	put_alone(out, METRICS_AGENT_JUDGE_SECONDS, agent->judge_ns, true, true);
	put_alone(out, METRICS_AGENT_GIVEN_UP, agent->given_up, false, true);
	put_alone(out, METRICS_AGENT_REFUSED, agent->refused, false, true);
	put_alone(out, METRICS_AGENT_UNREADABLE, agent->unreadable, false, true);
	put_alone(out, METRICS_AGENT_LEFT_OUT, agent->left_out, false, true);
	write_left_out(writer);
	put_alone(out, METRICS_AGENT_MERGED, writer->model.merged, false, true);
	write_folded(writer);
	write_verdict_counts(writer, agent->verdicts);
	write_kernel(writer, agent->kernel);
	put_alone(out, METRICS_CPU_SECONDS, agent->cpu_ns, true, true);
	put_alone(out, METRICS_RESIDENT_BYTES, agent->resident_bytes, false, false);
	put_alone(out, METRICS_OPEN_FDS, agent->open_fds, false, false);
	put_alone(out, METRICS_START_TIME, agent->start_wall_ns, true, false);
}

/*
 * Converts the last scan to families of series, in the order of metrics_internal.h.
 *
 *	live --> model: members, others, processes --> rows of totals and links --> one of three encoders
 */

/* ---- processes ------------------------------------------------------------------------------- */

/* A process stopped by SIGSTOP or a debugger is neither alive nor gone. */
static const char *process_state(const struct recording_process *process)
{
	bool is_stopped = process->process_state == 'T' || process->process_state == 't';

	if (process->life == RECORDING_ALIVE && is_stopped)
		return "stopped";
	return recording_life_name(process->life);
}

static void write_process_infos(struct metrics_writer *writer)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_PROCESS_INFO);
	for (size_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];
		const struct recording_process *process;
		const struct job_rank *rank;
		struct metrics_labels labels;
		char step[24];

		if (member->kind != METRICS_PROCESS || !metrics_is_shown(writer, member))
			continue;
		process = model->recording->processes[member->process];
		rank = &model->job->ranks[model->job->process_rank[member->process]];
		begin_labels(out, &labels, member);
		metrics_label(out, "host", process->host);
		if (process->pid_here != process->pid)
			label_if_known(out, "host_pid", process->pid_here, 1);
		label_if_known(out, "local_rank", process->local_rank, 0);
		label_if_known(out, "world_size", process->world_size, 1);
		label_if_known(out, "gpu", rank->gpu, 0);
		metrics_label(out, "gpu_uuid", rank->gpu_uuid);
		metrics_label(out, "mode", process->mode);
		label_if_known(out, "interface", process->interface, 1);
		if (recording_info(process, "env.SLURM_STEP_ID", step, sizeof(step)))
			metrics_label(out, "step", step);
		metrics_label(out, "state", process_state(process));
		metrics_label(out, "run", process->is_earlier_run ? "earlier" : "");
		put_info(out, &labels);
	}
}

/* ---- jobs ------------------------------------------------------------------------------------ */

enum { JOB_KEY = 64, JOB_VALUE = 128 };

/* What a process says about its job, and the label for it; without a label, another field falls back on it. */
enum owner_field {
	OWNER_USER = 0,
	OWNER_CONTAINER_ID = 7,
	OWNER_POD_UID = 8,
	OWNER_LOGIN = 9,
	OWNER_UID = 10,
	OWNER_FIELDS = 11,
};

static const struct {
	const char *key; /* NULL: the kernel alone says it */
	const char *label;
} owner_fields[OWNER_FIELDS] = {
	[OWNER_USER] = { "env.SLURM_JOB_USER", "user" },
	{ "env.SLURM_JOB_ACCOUNT", "account" },
	{ "env.SLURM_JOB_PARTITION", "partition" },
	{ "env.SLURM_JOB_NAME", "job_name" },
	{ "env.POD_NAME", "pod" },
	{ "pod_namespace", "namespace" },
	{ "env.CONTAINER_NAME", "container" },
	[OWNER_CONTAINER_ID] = { NULL, "container_id" },
	[OWNER_POD_UID] = { "env.POD_UID", "pod_uid" },
	[OWNER_LOGIN] = { "env.USER", NULL },
	[OWNER_UID] = { "uid", NULL },
};

struct job_owner {
	char fields[OWNER_FIELDS][JOB_VALUE];
	char keys[METRICS_JOB_LABELS][JOB_KEY]; /* as label names, no two equal */
	char values[METRICS_JOB_LABELS][JOB_VALUE];
	size_t label_count;
	size_t left_out;
};

/* Other processes can write the text: a bad label name, or one that is there twice, would make Prometheus
 * reject all metrics of the node. */
static void take_job_label(struct job_owner *owner, const char *key, const char *value)
{
	char name[JOB_KEY];

	text_format(name, sizeof(name), "label_%s", key);
	for (char *at = name; *at != '\0'; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		      (*at >= '0' && *at <= '9')))
			*at = '_';
	for (size_t i = 0; i < owner->label_count; i++)
		if (strcmp(owner->keys[i], name) == 0)
			return;
	if (owner->label_count == METRICS_JOB_LABELS) {
		owner->left_out++;
		return;
	}
	text_copy(owner->keys[owner->label_count], JOB_KEY, name);
	text_copy(owner->values[owner->label_count++], JOB_VALUE, value);
}

static void read_owner(struct job_owner *owner, const struct recording_process *process)
{
	char key[JOB_KEY], value[JOB_VALUE], *user = owner->fields[OWNER_USER];
	size_t at = 0;

	memset(owner, 0, sizeof(*owner));
	while (recording_info_next(process, &at, key, sizeof(key), value, sizeof(value))) {
		if (strncmp(key, "label.", 6) == 0)
			take_job_label(owner, key + 6, value);
		for (size_t i = 0; i < OWNER_FIELDS; i++)
			if (owner_fields[i].key && strcmp(key, owner_fields[i].key) == 0)
				text_copy(owner->fields[i], JOB_VALUE, value);
	}
	/* What the kernel says counts more than a variable. */
	text_copy(owner->fields[OWNER_CONTAINER_ID], JOB_VALUE, process->container_id);
	if (process->pod_uid[0] != '\0')
		text_copy(owner->fields[OWNER_POD_UID], JOB_VALUE, process->pod_uid);
	if (user[0] == '\0')
		text_copy(user, JOB_VALUE, owner->fields[OWNER_LOGIN]);
	if (user[0] == '\0')
		text_copy(user, JOB_VALUE, owner->fields[OWNER_UID]);
}

/* The jobs of a node that are exported: one user's leave room for others'. */
struct job_rows {
	struct metrics_labels labels[METRICS_JOBS + 1];
	int64_t owners[METRICS_JOBS];
	size_t count;
};

static bool job_rows_have_room(const struct job_rows *rows, int64_t owner)
{
	size_t of_user = 0;

	for (size_t i = 0; i < rows->count; i++)
		of_user += rows->owners[i] == owner;
	return rows->count < METRICS_JOBS && of_user < METRICS_JOBS_OF_USER;
}

/* One per job and set of labels, in the textfile of the first process that has it. */
static void write_job_infos(struct metrics_writer *writer)
{
	const struct recording *recording = writer->model.recording;
	struct job_rows rows = { .count = 0 };
	struct metrics_out *out = &writer->out;
	struct job_owner owner;

	metrics_family(out, METRICS_JOB_INFO);
	for (uint32_t p = 0; p < recording->count; p++) {
		bool has_room = job_rows_have_room(&rows, recording->processes[p]->owner);

		read_owner(&owner, recording->processes[p]);
		metrics_labels_begin(out, &rows.labels[rows.count]);
		metrics_label(out, "nccl_job", recording->processes[p]->job);
		for (size_t i = 0; i < OWNER_FIELDS; i++)
			if (owner_fields[i].label)
				metrics_label(out, owner_fields[i].label, owner.fields[i]);
		for (size_t i = 0; i < owner.label_count; i++)
			metrics_label(out, owner.keys[i], owner.values[i]);
		if (!put_once(out, rows.labels, rows.count,
			      has_room && metrics_is_in_file(writer, p)))
			continue;
		writer->folded_jobs += owner.left_out + !has_room;
		if (has_room)
			rows.owners[rows.count++] = recording->processes[p]->owner;
	}
}

/* The largest of each job. */
static void write_hang_thresholds(struct metrics_writer *writer)
{
	const struct recording *recording = writer->model.recording;
	struct job_rows rows = { .count = 0 };
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_JOB_HANG_THRESHOLD);
	for (uint32_t p = 0; p < recording->count; p++) {
		uint64_t most_ns = recording_hang_after_ns(recording->processes[p]);

		if (most_ns == 0 || !job_rows_have_room(&rows, recording->processes[p]->owner))
			continue;
		metrics_labels_begin(out, &rows.labels[rows.count]);
		metrics_label(out, "nccl_job", recording->processes[p]->job);
		if (!end_new(out, rows.labels, rows.count))
			continue;
		for (uint32_t other = p + 1; other < recording->count; other++) {
			uint64_t ns = recording_hang_after_ns(recording->processes[other]);

			if (ns > most_ns && strcmp(recording->processes[other]->job,
						   recording->processes[p]->job) == 0)
				most_ns = ns;
		}
		if (metrics_is_in_file(writer, p))
			metrics_put_unsigned(out, rows.labels[rows.count], most_ns / 1000000000);
		rows.owners[rows.count++] = recording->processes[p]->owner;
	}
}

_Static_assert((int)LOST_REASONS == (int)ODD_REASONS, "reasons are walked together");

enum loss { LOSS_OPERATIONS, LOSS_DETAILS, LOSS_ODD };

/* Name and count of a reason; NULL if there is no such reason. */
static const char *reason_name(enum loss loss, unsigned int reason)
{
	if (loss == LOSS_ODD)
		return op_odd_name(reason);
	if ((loss == LOSS_OPERATIONS) != op_lost_is_whole(reason))
		return NULL;
	return op_lost_name(reason);
}

static uint64_t reason_count(const struct metrics_model *model, const struct metrics_member *member,
			     enum loss loss, unsigned int reason)
{
	uint64_t count = 0;

	for (uint32_t p = member->process; p != METRICS_NOBODY; p = model->next_process[p]) {
		const struct recording_process *process = model->recording->processes[p];

		count += loss == LOSS_ODD ? process->odd[reason] : process->lost[reason];
	}
	return count;
}

static void write_losses(struct metrics_writer *writer, enum metrics_family family, enum loss loss)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, family);
	for (uint32_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];

		if (member->kind != METRICS_PROCESS || !metrics_is_shown(writer, member))
			continue;
		for (unsigned int reason = 0; reason < LOST_REASONS; reason++) {
			const char *name = reason_name(loss, reason);
			struct metrics_labels labels;

			if (name == NULL)
				continue;
			begin_labels(out, &labels, member);
			metrics_label(out, "reason", name);
			metrics_labels_end(out, &labels);
			metrics_put_unsigned(out, labels,
					     reason_count(model, member, loss, reason));
		}
	}
}

/* ---- members --------------------------------------------------------------------------------- */

static void label_communicator(struct metrics_out *out, const struct metrics_model *model,
			       const struct metrics_member *member)
{
	const struct recording_process *process = model->recording->processes[member->process];
	const struct job_comm *comm = NULL;
	const struct comm_info *info = NULL;

	if (member->seat != METRICS_NOBODY) {
		comm = &model->job->comms[model->job->seats[member->seat].comm];
		info = &metrics_seat_comm(model, member->seat)->info;
	}
	metrics_label(out, "comm_name", info ? info->name : "other");
	metrics_label(out, "kind", job_comm_kind_name(comm ? comm->kind : JOB_COMM_UNKNOWN));
	label_if_known(out, "nranks", info ? info->nranks : 0, 1);
	label_if_known(out, "nnodes", info ? info->nnodes : 0, 1);
	if (member->gpu < model->job->rank_count)
		label_if_known(out, "global_rank", model->job->ranks[member->gpu].rank, 0);
	metrics_label(out, "host", process->host);
	metrics_label_number(out, "pid", process->pid);
	label_if_known(out, "gpu", info ? info->gpu : -1, 0);
	metrics_label(out, "gpu_uuid", info ? info->gpu_uuid : "");
	if (info && info->flags & COMM_FLAG_FINALIZED)
		metrics_label(out, "finalized", "true");
	if (comm && model->live->comms[comm - model->job->comms].user_tag != 0)
		label_unsigned(out, "user_tag",
			       model->live->comms[comm - model->job->comms].user_tag);
}

static void write_communicator_infos(struct metrics_writer *writer)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_COMMUNICATOR_INFO);
	for (size_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];
		struct metrics_labels labels;

		if (member->kind == METRICS_PROCESS || !metrics_is_shown(writer, member))
			continue;
		begin_labels(out, &labels, member);
		label_communicator(out, model, member);
		put_info(out, &labels);
	}
}

/* Which members have a value in a family. */
enum having { ALL_HAVE, COMPARED_HAVE, COMMS_HAVE, RUNNING_HAVE, REPLAYED_HAVE };

static bool has_value(const struct metrics_member *member, enum having having)
{
	bool is_comm = member->kind != METRICS_OTHER;

	switch (having) {
	case COMPARED_HAVE:
		return member->knows_wait;
	case COMMS_HAVE:
		return is_comm;
	case RUNNING_HAVE:
		return is_comm && !member->is_ended;
	case REPLAYED_HAVE:
		return is_comm && member->replays > 0;
	default:
		return true;
	}
}

#define VALUE(field) offsetof(struct metrics_member, field)

static void write_members(struct metrics_writer *writer, enum metrics_family family, size_t offset,
			  bool is_time, enum having having)
{
	metrics_family(&writer->out, family);
	for (size_t i = 0; i < writer->model.member_count; i++) {
		const struct metrics_member *member = &writer->model.members[i];
		const uint64_t *value = (const void *)((const char *)member + offset);

		if (member->kind == METRICS_PROCESS || !metrics_is_shown(writer, member) ||
		    !has_value(member, having))
			continue;
		if (is_time)
			metrics_put_seconds(&writer->out, member->labels, *value);
		else
			metrics_put_unsigned(&writer->out, member->labels, *value);
	}
}

/* ---- notices --------------------------------------------------------------------------------- */

/* The seat that represents a notice: the culprit, or the first one of its communicator. */
static uint32_t notice_seat(const struct job *job, const struct live_notice *notice)
{
	if (notice->seat < job->seat_count)
		return notice->seat;
	if (notice->comm < job->comm_count && job->comms[notice->comm].seat_count > 0)
		return job->comms[notice->comm].seats[0];
	return METRICS_NOBODY;
}

static void label_notice(struct metrics_writer *writer, const struct live_notice *notice,
			 uint32_t seat)
{
	const struct job *job = writer->model.job;
	struct metrics_out *out = &writer->out;
	char comm[METRICS_COMM_TEXT];

	if (seat != METRICS_NOBODY)
		metrics_label(out, "nccl_job",
			      job->recording->processes[job->seats[seat].process]->job);
	metrics_label(out, "kind", live_notice_name(notice->kind));
	if (seat == METRICS_NOBODY)
		return;
	metrics_comm_text(&writer->model, seat, comm);
	metrics_label(out, "comm", comm);
	if (seat == notice->seat)
		label_if_known(out, "rank", job->seats[seat].comm_rank, 0);
}

/* Notices with the same labels are written once, and in one textfile only. */
static void write_notices(struct metrics_writer *writer)
{
	const struct live *live = writer->model.live;
	struct metrics_labels labels[LIVE_NOTICES_MAX];
	struct metrics_out *out = &writer->out;
	size_t count = 0;

	metrics_family(out, METRICS_NOTICE_INFO);
	for (size_t i = 0; i < live->notice_count && count < LIVE_NOTICES_MAX; i++) {
		uint32_t seat = notice_seat(&live->job, &live->notices[i]);
		bool is_in_file = writer->only < 0;

		if (seat != METRICS_NOBODY)
			is_in_file = metrics_is_in_file(writer, live->job.seats[seat].process);
		metrics_labels_begin(out, &labels[count]);
		label_notice(writer, &live->notices[i], seat);
		count += put_once(out, labels, count, is_in_file);
	}
}

/* ---------------------------------------------------------------------------------------------- */

static void write_jobs(struct metrics_writer *writer)
{
	write_process_infos(writer);
	write_job_infos(writer);
	write_hang_thresholds(writer);
	write_communicator_infos(writer);
	write_members(writer, METRICS_OPERATIONS_ISSUED, VALUE(issued), false, ALL_HAVE);
	write_members(writer, METRICS_OPERATIONS_FINISHED, VALUE(finished), false, ALL_HAVE);
	write_row_table(writer, &sizes);
	write_histograms(writer);
	write_row_table(writer, &choices);
	write_members(writer, METRICS_WAIT_SECONDS, VALUE(wait_ns), true, COMPARED_HAVE);
	write_members(writer, METRICS_IN_FLIGHT, VALUE(in_flight), false, ALL_HAVE);
	write_members(writer, METRICS_OLDEST_AGE, VALUE(oldest_age_ns), true, ALL_HAVE);
	write_infos(writer);
	write_waits(writer);
	write_members(writer, METRICS_ACTIVITY_AGE, VALUE(still_ns), true, RUNNING_HAVE);
	metrics_write_last(writer);
	write_members(writer, METRICS_COLLECTIVE_NUMBER, VALUE(collectives), false, COMMS_HAVE);
	write_members(writer, METRICS_REPLAY_NUMBER, VALUE(replays), false, REPLAYED_HAVE);
	write_members(writer, METRICS_NUMBER_ISSUED, VALUE(number_issued), false, COMMS_HAVE);
	write_members(writer, METRICS_NUMBER_DONE, VALUE(number_done), false, COMMS_HAVE);
	write_members(writer, METRICS_SIGNATURE, VALUE(signature), false, COMMS_HAVE);
	write_row_table(writer, &links);
	write_members(writer, METRICS_UNTRUSTED, VALUE(untrusted), false, ALL_HAVE);
	write_losses(writer, METRICS_LOST_OPERATIONS, LOSS_OPERATIONS);
	write_losses(writer, METRICS_LOST_DETAILS, LOSS_DETAILS);
	write_losses(writer, METRICS_ODD_EVENTS, LOSS_ODD);
	write_notices(writer);
	metrics_write_verdicts(writer);
}

void metrics_write(struct sink *sink, enum metrics_format format, const struct live *live,
		   const struct metrics_agent *agent, long only_process)
{
	struct metrics_writer writer = { .only = only_process };

	metrics_out_begin(&writer.out, sink, format);
	writer.status = metrics_model_make(&writer.model, live, &writer.out);
	if (writer.status == OK)
		write_jobs(&writer);
	if (writer.status == OK && agent != NULL)
		metrics_write_agent(&writer, agent);
	metrics_out_end(&writer.out);
	metrics_model_release(&writer.model);
	if (writer.status != OK)
		sink_fail(sink, writer.status, 0);
}
