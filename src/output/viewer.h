/*
 * A timeline for trace viewers: processes with tracks, slices on them, arrows between slices, counters. The same calls
 * write Chrome's JSON or Perfetto's protobuf.
 *
 *	viewer_init(&viewer, VIEWER_JSON, &sink, NULL, start_wall_ns);
 *	viewer_about(&viewer, &args);
 *	viewer_process(&viewer, &process);
 *	viewer_track(&viewer, &track);
 *	viewer_slice(&viewer, &slice);
 *	status = viewer_end(&viewer);
 *
 * Times are nanoseconds after the start of the timeline: viewers keep them as double microseconds, which would round
 * nanoseconds since 1970. Rules for the caller, because viewers drop or move events that break them:
 *
 * V1 Slices of one track are disjoint or nested. An outer slice is written first, disjoint ones in order of time.
 * V2 Tracks and processes are numbered from 1. A track is declared before it is used.
 * V3 An arrow has one tail and one head with the same number, at times inside their slices; the head is not earlier.
 *
 * viewer_end() returns the first failure.
 */
#ifndef VIEWER_H
#define VIEWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/align.h"
#include "analysis/filter.h"
#include "analysis/job.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "output/gzip_sink.h"
#include "output/sink.h"
#include "recording/recording.h"

struct perfetto;
struct viewer_meeting;
struct viewer_waiter;

enum viewer_format {
	VIEWER_JSON = 1,     /* Trace Event Format: Perfetto, chrome://tracing, speedscope */
	VIEWER_PERFETTO = 2, /* Perfetto's TracePacket stream */
};

enum viewer_arg_kind {
	VIEWER_TEXT = 1,
	VIEWER_UNSIGNED = 2,
	VIEWER_SIGNED = 3,
	VIEWER_DOUBLE = 4,
	VIEWER_HEX = 5, /* "0x" and 16 digits, as text, so that no viewer rounds it */
};

struct viewer_arg {
	const char *name;
	enum viewer_arg_kind kind;
	union {
		const char *text;
		uint64_t whole; /* unsigned, hex */
		int64_t number;
		double real;
	};
};

/* The arguments of one event. More than fit are dropped, which is a bug (test_viewer.c). */
enum { VIEWER_ARGS_MAX = 56 };

struct viewer_args {
	struct viewer_arg list[VIEWER_ARGS_MAX];
	size_t count;
	bool is_cut;
};

/* Names and texts are borrowed until the event is written. */
void viewer_arg_text(struct viewer_args *args, const char *name, const char *text);
void viewer_arg_unsigned(struct viewer_args *args, const char *name, uint64_t whole);
void viewer_arg_signed(struct viewer_args *args, const char *name, int64_t number);
void viewer_arg_double(struct viewer_args *args, const char *name, double real);
void viewer_arg_hex(struct viewer_args *args, const char *name, uint64_t whole);

/* Written with three decimals. */
double viewer_round(double value);

struct viewer_process {
	uint32_t process; /* from 1 */
	int32_t order;	  /* lower ones are shown first */
	const char *name;
	const char *label; /* shown after the name by some viewers; NULL none */
};

struct viewer_track {
	uint32_t process;
	uint32_t track; /* from 1, within the process */
	uint32_t above; /* parent track, 0: the process itself */
	int32_t order;
	const char *name;
	uint32_t lane; /* from 1: the lanes of a group have the same name */
	/* Unit of a counter; NULL for a track of slices. */
	const char *unit;
};

struct viewer_arrow {
	uint64_t number;
	uint64_t at_ns;
	bool is_head;
};

/* A hint for viewers that do not choose colors by name. */
enum viewer_colour {
	VIEWER_PLAIN = 0,
	VIEWER_WAITING = 1,
	VIEWER_UNFINISHED = 2,
	VIEWER_DOUBTFUL = 3,
};

#define VIEWER_OPEN UINT64_MAX /* end_ns of a slice without end */

struct viewer_slice {
	uint32_t process;
	uint32_t track;
	uint64_t start_ns;
	uint64_t end_ns; /* or VIEWER_OPEN */
	const char *name;
	const char *category;
	enum viewer_colour colour;
	const struct viewer_args *args;	   /* NULL none */
	const struct viewer_arrow *arrows; /* arrows that start or end in it */
	size_t arrow_count;
};

/* An instant. Track 0: of the whole process; process 0: of the whole timeline. */
struct viewer_instant {
	uint32_t process;
	uint32_t track;
	uint64_t at_ns;
	const char *name;
	const char *category;
	const struct viewer_args *args;
};

/* Counts of written events, for tests. */
struct viewer_counts {
	uint64_t processes;
	uint64_t tracks;
	uint64_t slices;
	uint64_t open_slices; /* of these */
	uint64_t instants;
	uint64_t tails;
	uint64_t heads;
	uint64_t values; /* of counters */
};

struct viewer {
	enum viewer_format format;
	struct sink *sink;	   /* borrowed */
	struct gzip_sink *gzip;	   /* borrowed; NULL: not compressed, else `sink` is its input */
	struct perfetto *perfetto; /* state of the encoder */
	uint64_t start_wall_ns;	   /* wall time of time 0, ns since 1970; 0 unknown */
	bool has_events;	   /* JSON: a comma is due */
	enum status status;	   /* first failure other than the sink's */
	struct viewer_counts counts;
};

/*
 * To compress, pass an initialized `gzip` and &gzip->plain as `sink`; otherwise NULL. On ERR_NO_SPACE, viewer_end()
 * must not be called.
 */
enum status viewer_init(struct viewer *viewer, enum viewer_format format, struct sink *sink,
			struct gzip_sink *gzip, uint64_t start_wall_ns);

/* To be called first: metadata of the timeline, such as its origin and time uncertainty. */
void viewer_about(struct viewer *viewer, const struct viewer_args *args);

void viewer_process(struct viewer *viewer, const struct viewer_process *process);
void viewer_track(struct viewer *viewer, const struct viewer_track *track);
void viewer_slice(struct viewer *viewer, const struct viewer_slice *slice);
void viewer_instant(struct viewer *viewer, const struct viewer_instant *instant);
/* `track` is a counter of that process. Name and unit are needed again because JSON repeats them. */
void viewer_value(struct viewer *viewer, const struct viewer_track *track, uint64_t at_ns,
		  double value);

/* Has writing failed? */
bool viewer_has_failed(const struct viewer *viewer);

/* Writes the end and releases the memory of viewer_init(). Does not flush the sinks. */
enum status viewer_end(struct viewer *viewer);

/*
 * Interned names of a Perfetto trace: written once, then referenced by number. The table is bounded; further names
 * are written in full.
 */

/* Kinds of names; the values are field numbers of InternedData. */
enum perfetto_name_kind {
	PERFETTO_CATEGORY = 1,
	PERFETTO_EVENT_NAME = 2,
	PERFETTO_ARG_NAME = 3,
	PERFETTO_ARG_TEXT = 29,
};

enum { PERFETTO_NAMES_MAX = 32768, PERFETTO_NAME_BYTES = 256 };

struct perfetto_names {
	struct perfetto_name *slots; /* hash table; a slot without text is free */
	size_t slot_count;
	size_t count;
	enum status status;
};

void perfetto_names_init(struct perfetto_names *names);
void perfetto_names_release(struct perfetto_names *names);

/*
 * Returns the number of a name, from 1, or 0 if there is no room (or no memory: names->status). *is_new: it was
 * added.
 */
uint64_t perfetto_names_find(struct perfetto_names *names, enum perfetto_name_kind kind,
			     const char *text, bool *is_new);

/*
 * Bandwidth of a rank over time: the bytes of each operation are spread evenly over its duration, in bins of equal
 * width. If at least 10% of the operations were not timed, the value of a bin is bytes over time of the timed ones
 * only, and bins without timed operations have none.
 */

enum { VIEWER_BINS_MAX = 1024 };

struct viewer_bins {
	uint64_t start_ns; /* common time */
	uint64_t width_ns;
	uint32_t count;
	bool is_used;
	uint64_t timed;
	uint64_t missed; /* operations that were not timed */
	double busy_ns[VIEWER_BINS_MAX];
	double bytes[VIEWER_BINS_MAX];
};

/* Bins from start to end; the width is 1, 2 or 5 times a power of ten. */
void viewer_bins_init(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns);

/* Parts outside the bins are ignored. */
void viewer_bins_add(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns, double bytes);

/* Counts an operation that was not timed. */
void viewer_bins_miss(struct viewer_bins *bins);
/* Do the values cover timed operations only? */
bool viewer_bins_is_sampled(const struct viewer_bins *bins);

/*
 * Offset of a GPU clock from the recorder's clock. A callback comes after the event it reports, so (GPU stop time -
 * time of the callback) is never more than the offset. For each interval the largest difference is kept; a line
 * through these is the offset, minus the delay of the fastest callbacks. Intervals double in length when needed, so
 * memory is fixed.
 */

enum { VIEWER_CLOCK_STRETCHES = 128 };

struct viewer_clock {
	uint64_t origin_ns; /* recorder's clock; 0: no samples */
	uint64_t width_ns;
	struct viewer_clock_best {
		uint64_t seen_ns; /* 0: no sample in this interval */
		int64_t offset_ns;
	} best[VIEWER_CLOCK_STRETCHES];
};

void viewer_clock_init(struct viewer_clock *clock);
void viewer_clock_add(struct viewer_clock *clock, uint64_t gpu_ns, uint64_t seen_ns);

/* GPU clock - recorder's clock = offset_ns + drift x (recorder's clock - middle_ns) */
struct viewer_clock_fit {
	bool is_known;
	int64_t offset_ns;
	double drift;
	uint64_t middle_ns;
};

struct viewer_clock_fit viewer_clock_fit(const struct viewer_clock *clock);

/* Converts GPU time to the recorder's clock; `near_ns` is the approximate result. */
uint64_t viewer_clock_ns(const struct viewer_clock_fit *fit, uint64_t gpu_ns, uint64_t near_ns);

/* Time span of an operation on the common time of all ranks. */

enum viewer_place_kind {
	VIEWER_NOWHERE = 0, /* no time recorded */
	VIEWER_TIMED = 1,   /* from its duration */
	VIEWER_SEEN = 2,    /* from the first to the last event seen; its duration is unknown */
	VIEWER_CALLED = 3,  /* of the call only: NCCL does not report its execution */
	VIEWER_IN_FLIGHT = 4,
};

const char *viewer_place_name(enum viewer_place_kind kind); /* "timed", ... */

struct viewer_place {
	enum viewer_place_kind kind;
	uint64_t start_ns; /* common time */
	uint64_t end_ns;   /* VIEWER_OPEN while in flight */
};

/* Converts the times of one process. */
struct viewer_times {
	const struct recording_process *process;
	const struct align *align;
	size_t index; /* of the process */
	/* By device number of communicators; the last one is for all larger numbers. */
	struct viewer_clock_fit *gpus;
	const int32_t *gpu_numbers;
	size_t gpu_count;
	const uint64_t
		*last_done_ns; /* per communicator, as process->comms: latest end of an operation */
};

/* is_open: it was in flight when the recording ended. */
struct viewer_place viewer_place(const struct viewer_times *times, const struct op_record *op,
				 bool is_open);

/* The first time in its record, on the recorder's clock; 0 none. */
uint64_t viewer_first_sign_ns(const struct op_record *op);

/*
 * Matches operations within the shown time span: the ranks of each collective, and each Send with its Recv. Waiting
 * is computed as in analysis/match.h (duration minus the shortest one) for synchronizing collectives; in addition,
 * this keeps for each operation which rank arrived last, and between which slices arrows are drawn. First call
 * viewer_meet_add() for every operation, then viewer_meet_find(). Memory is bounded; operations that do not fit are
 * counted and get no waiting and no arrows.
 */

/* Most arrows per collective: from the ranks that waited longest. */
enum { VIEWER_ARROWS_MAX = 32 };

struct viewer_meet {
	const struct job *job;
	struct viewer_meeting *meetings;
	size_t count;
	size_t room;
	uint32_t *slots; /* hash table of indices + 1 */
	size_t slot_count;
	struct viewer_waiter *waiters; /* of all matched operations, a range each */
	size_t waiter_count;
	size_t waiter_room;
	uint64_t limit_bytes;
	uint64_t left_out; /* operations */
	enum status status;
};

/* job is borrowed until viewer_meet_release(). limit_bytes 0: VIEWER_MEET_BYTES. */
void viewer_meet_init(struct viewer_meet *meet, const struct job *job, uint64_t limit_bytes);
void viewer_meet_release(struct viewer_meet *meet);

struct viewer_meet_op {
	const struct op_record *op;
	const struct job_seat *seat;
	const struct viewer_place *place;
	bool is_shown; /* it will have a slice, so arrows can point to it */
};

void viewer_meet_add(struct viewer_meet *meet, const struct viewer_meet_op *op);

/* Result for one operation, after all were added. */
struct viewer_met {
	bool is_met;	   /* matched with at least one other rank */
	bool is_partial;   /* ranks are missing, so another one may have arrived last */
	bool has_wait;	   /* wait_ns and last are valid */
	bool is_differing; /* other ranks called a different operation */
	uint64_t wait_ns;
	const struct job_seat *last; /* the seat that arrived last */
	/*
	 * Arrows from or to it. A tail is at the start of its slice; a head is at the start of its slice, but not
	 * before not_before_ns (common time).
	 */
	size_t arrow_count;
	struct viewer_met_arrow {
		uint64_t number;
		uint64_t not_before_ns;
		bool is_head;
	} arrows[VIEWER_ARROWS_MAX];
};

void viewer_meet_find(const struct viewer_meet *meet, const struct viewer_meet_op *op,
		      struct viewer_met *met);

/*
 * Writes a recording as a timeline. Operations are walked three times and never kept in memory:
 *
 *	viewer_plan_survey()   finds the time span and the offsets of the GPU clocks
 *	                       (then the caller sets from_ns, to_ns)
 *	viewer_plan_join()     matches operations across ranks, to find waiting
 *	viewer_plan_write()    writes the timeline, one process at a time
 *
 *	viewer_plan_init(&plan, &job, &align, &filter);
 *	viewer_plan_survey(&plan);
 *	viewer_plan_join(&plan);
 *	viewer_plan_write(&plan, &viewer);
 *	viewer_plan_release(&plan);
 */

/* One process. */
struct viewer_source {
	struct viewer_times times;
	struct viewer_clock_fit *gpus;
	int32_t *gpu_numbers;
	uint64_t *last_done;	/* per communicator, as process->comms: highest finished number */
	uint64_t *last_done_ns; /* latest end, recorder's clock */
	uint64_t first_ns;	/* common time of its first and last event; 0 unknown */
	uint64_t last_ns;
	uint32_t number; /* number in the viewer */
	bool is_shown;	 /* some of its ranks and communicators match the filter */
};

/* Counts of the result. */
struct viewer_tally {
	uint64_t read;	/* operations walked */
	uint64_t shown; /* each is one slice or instant of category "operation" */
	uint64_t timed; /* of shown, by how they were placed */
	uint64_t seen;
	uint64_t called;
	uint64_t in_flight;
	uint64_t nowhere;     /* no time recorded: an instant at the start */
	uint64_t crowded;     /* no free track: an instant instead of a slice */
	uint64_t waiting;     /* slices of waiting */
	uint64_t details;     /* slices of channels and transfers */
	uint64_t details_out; /* details without a free track or a time */
	uint64_t missing;     /* sequence numbers without a record */
	uint64_t refused;     /* unreadable records and blocks */
};

struct viewer_plan {
	const struct recording *recording; /* these four are borrowed */
	const struct job *job;
	const struct align *align;
	const struct filter *filter; /* ranks and communicators of it */
	bool has_details;	     /* also show channels and transfers */
	bool has_calls;		     /* also show calls on the host */
	timeline_progress *progress; /* NULL none */
	void *progress_context;

	struct viewer_source *sources; /* as recording->processes */
	uint64_t first_ns;	       /* common time span of everything that matches the filter */
	uint64_t last_ns;
	uint64_t from_ns; /* shown: operations running in [from, to) */
	uint64_t to_ns;
	uint64_t origin_ns; /* time 0 of the timeline: the start of the first shown operation */
	uint64_t end_ns;    /* the last shown end */
	uint64_t expected;  /* shown operations */
	uint64_t expected_details; /* details, shown or not */
	struct viewer_meet meet;
	struct viewer_tally tally;
	enum status status; /* first failure within a walk */
	uint64_t walked;
	uint64_t to_walk;
};

/* On ERR_NO_SPACE there is nothing to release. */
enum status viewer_plan_init(struct viewer_plan *plan, const struct job *job,
			     const struct align *align, const struct filter *filter);
void viewer_plan_release(struct viewer_plan *plan);

/* Return ERR_NO_SPACE, ERR_GONE if progress() returned false, or the status of a walk. */
enum status viewer_plan_survey(struct viewer_plan *plan);
enum status viewer_plan_join(struct viewer_plan *plan);
/* Writes processes, tracks, slices and counters; viewer_about() and viewer_end() are the caller's. */
enum status viewer_plan_write(struct viewer_plan *plan, struct viewer *viewer);

/* Finds operations by number, to show what happened around them. */

enum { VIEWER_FIND_COMMS = 4 };

struct viewer_find {
	const char *comm; /* name or hash; NULL: any */
	int64_t rank;	  /* -1: any */
	uint64_t number;
	/* Result: */
	uint64_t count;	   /* operations; each rank counts */
	uint64_t start_ns; /* common time: first start and last end */
	uint64_t end_ns;
	uint32_t comms
		[VIEWER_FIND_COMMS]; /* indices into job.comms of the first few communicators */
	size_t comm_count;	     /* number of all these communicators */
};

/* Call after viewer_plan_survey(). Returns the status of a walk. */
enum status viewer_find(struct viewer_plan *plan, struct viewer_find *find);

/*
 * Distributes the slices of a process over tracks so that they do not overlap.
 *
 * Related slices (operations of a communicator, transfers of a channel) are a group. A group starts with one lane and
 * gets another whenever all of its lanes are occupied:
 *
 *	group  world   lane 1   [AllGather][AllGather]   [ReduceScatter]
 *	               lane 2        [Send]                   [Send]
 *
 * If slices are added in order of their start, the number of lanes is minimal. In any other order they still never
 * overlap.
 */

enum {
	VIEWER_LANES_MAX = 4096, /* per group: recorders do not follow more */
	VIEWER_GROUPS_MAX = 65536,
	VIEWER_LANE_STACK = 32, /* nested slices without end */
	/* A slice may be moved this much to follow its predecessor: clocks are not more exact. */
	VIEWER_SLIDE_NS = 1000,
};

struct viewer_lane {
	uint64_t end_ns;  /* UINT64_MAX: it has slices without end */
	uint64_t open_ns; /* start of the last of these */
	uint32_t track;
	uint32_t open;
};

struct viewer_group {
	uint64_t key;
	uint32_t above; /* parent track, 0 none */
	int32_t order;
	char name[160];
	struct viewer_lane *lanes;
	size_t count;
};

struct viewer_lanes {
	struct viewer_group **groups;
	size_t count;
	uint32_t *slots; /* hash table of indices + 1 */
	size_t slot_count;
	uint32_t tracks; /* number of tracks so far */
	enum status status;
};

void viewer_lanes_init(struct viewer_lanes *lanes);
void viewer_lanes_release(struct viewer_lanes *lanes);

/* Finds or makes (*is_new) the group of that key. NULL: no memory, or too many groups. */
struct viewer_group *viewer_lanes_group(struct viewer_lanes *lanes, uint64_t key, bool *is_new);

/*
 * Finds a lane for a slice; end_ns UINT64_MAX: without end. *start_ns and *end_ns may be moved by up to
 * VIEWER_SLIDE_NS. *is_new: its track has to be declared. NULL: no memory, or too many lanes.
 */
const struct viewer_lane *viewer_lanes_take(struct viewer_lanes *lanes, struct viewer_group *group,
					    uint64_t *start_ns, uint64_t *end_ns, bool *is_new);

/* Name and arguments of an operation's slice. */

enum { VIEWER_NAME_TEXT = 128, VIEWER_FLAGS_TEXT = 320 };

/* Storage for arguments. */
struct viewer_op_texts {
	char flags[VIEWER_FLAGS_TEXT];
	char waits_for[96];
};

struct viewer_op {
	const struct job *job;
	const struct recording_process *process;
	const struct job_seat *seat; /* NULL: unknown */
	const struct op_record *op;
	const struct viewer_place *place;
	const struct viewer_met *met;
	uint64_t
		in_flight_ns; /* for operations in flight: time since the call when the recording ended */
};

/* "AllReduce 64 MiB", "Send 4 MiB to 5", "AllReduce 64 MiB (in flight)". */
void viewer_op_name(const struct viewer_op *of, char name[static VIEWER_NAME_TEXT]);

/* All known fields. Texts must outlive the arguments. */
void viewer_op_args(const struct viewer_op *of, struct viewer_op_texts *texts,
		    struct viewer_args *args);

enum viewer_colour viewer_op_colour(const struct viewer_op *of);

/*
 * Reorders operations from order of end to order of start, with a heap of fixed size: the output is sorted if
 * nothing is more than VIEWER_ORDER_MAX places late.
 */

enum { VIEWER_ORDER_MAX = 1024 };

struct viewer_item {
	struct viewer_place place;
	union {
		struct op_record op;
		struct op_detail detail;
	};
};

struct viewer_order {
	struct viewer_item *items;
	size_t count;
};

/* False: no memory. */
bool viewer_order_init(struct viewer_order *order);
void viewer_order_release(struct viewer_order *order);

static inline bool viewer_order_is_full(const struct viewer_order *order)
{
	return order->count == VIEWER_ORDER_MAX;
}

/* There must be room. */
void viewer_order_put(struct viewer_order *order, const struct viewer_item *item);
/* The one that starts first; there must be one. */
void viewer_order_take(struct viewer_order *order, struct viewer_item *item);

/* Shared by viewer*.c. */

/* Recorder's clock to common time; 0 stays 0. */
uint64_t viewer_common_ns(const struct viewer_times *times, uint64_t clock_ns);

/* A GPU timestamp on the recorder's clock; 0 if the offset is unknown. */
uint64_t viewer_gpu_ns(const struct viewer_times *times, uint32_t comm, uint64_t gpu_ns,
		       uint64_t near_ns);

/* Rejects damaged records: start before end, and both plausible. */
bool viewer_place_is_sane(const struct viewer_place *place);

/* The call itself, on the host: from issue to launch. */
struct viewer_place viewer_place_call(const struct viewer_times *times, const struct op_record *op);

/* Does the seat match the filter? NULL never does if there is a filter. */
bool viewer_plan_has_seat(const struct viewer_plan *plan, const struct job_seat *seat);
/* Was it in flight when the recording ended? */
bool viewer_plan_is_open(const struct viewer_source *source, const struct op_record *op,
			 enum recording_place found);
bool viewer_plan_is_inside(const struct viewer_plan *plan, const struct viewer_place *place);
/* Counts `more` walked operations; false: stop. */
bool viewer_plan_walked(struct viewer_plan *plan, uint64_t more);

#endif
