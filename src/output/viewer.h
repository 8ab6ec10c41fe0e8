/*
 * A timeline as trace viewers take it: processes with tracks, slices on them, arrows between
 * slices, counters. One stream of calls, written as Chrome's JSON or as Perfetto's protobuf.
 *
 *	viewer_init(&viewer, VIEWER_JSON, &sink, NULL, start_wall_ns);
 *	viewer_about(&viewer, &args);
 *	viewer_process(&viewer, &process);
 *	viewer_track(&viewer, &track);
 *	viewer_slice(&viewer, &slice);
 *	status = viewer_end(&viewer);
 *
 * Times are nanoseconds from the timeline's begin: a viewer keeps them as double microseconds, in
 * which nanoseconds since 1970 would be rounded. What the caller has to see to, because viewers
 * drop or move what breaks it:
 *
 * V1 Slices of one track are apart or inside each other. The outer one is written first, and those
 *    that are apart in the order of time.
 * V2 Tracks and processes count from 1. A track is made known before it is used.
 * V3 An arrow has one tail and one head, with the same number, at two moments inside their slices
 *    of which the head's is not the earlier.
 *
 * The first failure sticks; viewer_end() tells it.
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
	VIEWER_HEX = 5, /* "0x" and 16 digits, as a text: no viewer rounds it */
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

/* A few arguments in the making. What does not fit is left out, and is a bug: see test_viewer.c. */
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

/* Three decimals are enough for a bandwidth, and read better than seventeen. */
double viewer_round(double value);

struct viewer_process {
	uint32_t process; /* from 1 */
	int32_t order;	  /* lower ones stand above */
	const char *name;
	const char *label; /* stands behind the name in some viewers; NULL none */
};

struct viewer_track {
	uint32_t process;
	uint32_t track; /* from 1, within the process */
	uint32_t above; /* the track it belongs to, 0: the process itself */
	int32_t order;
	const char *name;
	uint32_t lane; /* from 1: several tracks that belong together have one name */
	/* A counter's unit; NULL for a track of slices. */
	const char *unit;
};

struct viewer_arrow {
	uint64_t number;
	uint64_t at_ns;
	bool is_head;
};

/* Viewers choose colours by name; these are hints for the one that can be told. */
enum viewer_colour {
	VIEWER_PLAIN = 0,
	VIEWER_WAITING = 1,
	VIEWER_UNFINISHED = 2,
	VIEWER_DOUBTFUL = 3,
};

#define VIEWER_OPEN UINT64_MAX /* end_ns of a slice that did not end */

struct viewer_slice {
	uint32_t process;
	uint32_t track;
	uint64_t start_ns;
	uint64_t end_ns; /* or VIEWER_OPEN */
	const char *name;
	const char *category;
	enum viewer_colour colour;
	const struct viewer_args *args;	   /* NULL none */
	const struct viewer_arrow *arrows; /* that begin or end in it */
	size_t arrow_count;
};

/* A moment. Track 0: of the whole process; process 0: of the whole timeline. */
struct viewer_instant {
	uint32_t process;
	uint32_t track;
	uint64_t at_ns;
	const char *name;
	const char *category;
	const struct viewer_args *args;
};

/* What was written, for who wants to compare it with what should have been. */
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
	struct gzip_sink *gzip;	   /* borrowed, NULL: not compressed; sink is its front then */
	struct perfetto *perfetto; /* its encoder's state */
	uint64_t start_wall_ns;	   /* when time 0 was, ns since 1970; 0 unknown */
	bool has_events;	   /* JSON: a comma is due */
	enum status status;	   /* of the first failure beside the sink's */
	struct viewer_counts counts;
};

/* Compressed: `gzip` is one that was opened, `sink` is &gzip->plain; otherwise NULL. ERR_NO_SPACE
 * (memory): *viewer needs no end then. */
enum status viewer_init(struct viewer *viewer, enum viewer_format format, struct sink *sink,
			struct gzip_sink *gzip, uint64_t start_wall_ns);

/* First of all: what this is, where it comes from, how far its times can be trusted. */
void viewer_about(struct viewer *viewer, const struct viewer_args *args);

void viewer_process(struct viewer *viewer, const struct viewer_process *process);
void viewer_track(struct viewer *viewer, const struct viewer_track *track);
void viewer_slice(struct viewer *viewer, const struct viewer_slice *slice);
void viewer_instant(struct viewer *viewer, const struct viewer_instant *instant);
/* `track` is a counter of that process; its name and unit once more, because JSON repeats them. */
void viewer_value(struct viewer *viewer, const struct viewer_track *track, uint64_t at_ns,
		  double value);

/* Whether going on is pointless. Cheap. */
bool viewer_has_failed(const struct viewer *viewer);

/* Write the end and release what viewer_init() took. The sinks stay the caller's: not flushed. */
enum status viewer_end(struct viewer *viewer);

/*
 * Names that a Perfetto trace says once and then by number. Bounded: names that find no room are
 * said in full each time.
 */

/* Each kind of name is numbered on its own; the values are InternedData's fields. */
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

/* The number of a name, from 1, 0 when it found no room (or memory: names->status). *is_new: it was
 * not known before. */
uint64_t perfetto_names_find(struct perfetto_names *names, enum perfetto_name_kind kind,
			     const char *text, bool *is_new);

/*
 * Bandwidth of a rank over time: each operation's bytes spread evenly over its duration, in bins. A bin's value is
 * its bytes over its width. Where one operation in ten of the rank or more was not timed, that would leave their bytes out;
 * the value is then bytes over time of the timed ones, and bins without any have none.
 */

enum { VIEWER_BINS_MAX = 1024 };

struct viewer_bins {
	uint64_t start_ns; /* common time */
	uint64_t width_ns;
	uint32_t count;
	bool is_used;
	uint64_t timed;
	uint64_t missed; /* not timed */
	double busy_ns[VIEWER_BINS_MAX];
	double bytes[VIEWER_BINS_MAX];
};

/* Bins of a round width (1, 2 or 5 times a power of ten) from start to end. */
void viewer_bins_init(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns);

/* Parts outside of the bins are left out. */
void viewer_bins_add(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns, double bytes);

/* An operation was not timed. */
void viewer_bins_miss(struct viewer_bins *bins);
/* Values are of the timed operations alone. */
bool viewer_bins_is_sampled(const struct viewer_bins *bins);

/*
 * Where a GPU's clock stands against the recorder's.
 *
 * A callback comes after the moment it tells of, so (GPU's stop - when it was seen) is never more than
 * the offset between the clocks. Per stretch of time the greatest difference is kept; a line through
 * these is the offset, late by what the quickest callbacks take. Stretches get longer as time goes
 * on, so memory is fixed.
 */

enum { VIEWER_CLOCK_STRETCHES = 128 };

struct viewer_clock {
	uint64_t origin_ns; /* recorder's clock; 0: nothing was added */
	uint64_t width_ns;
	struct viewer_clock_best {
		uint64_t seen_ns; /* 0: nothing in this stretch */
		int64_t offset_ns;
	} best[VIEWER_CLOCK_STRETCHES];
};

void viewer_clock_init(struct viewer_clock *clock);
void viewer_clock_add(struct viewer_clock *clock, uint64_t gpu_ns, uint64_t seen_ns);

/* GPU's clock minus recorder's = offset_ns + drift x (recorder's - middle_ns). */
struct viewer_clock_fit {
	bool is_known;
	int64_t offset_ns;
	double drift;
	uint64_t middle_ns;
};

struct viewer_clock_fit viewer_clock_fit(const struct viewer_clock *clock);

/* GPU's clock to the recorder's; `near_ns` is the recorder's clock about then. */
uint64_t viewer_clock_ns(const struct viewer_clock_fit *fit, uint64_t gpu_ns, uint64_t near_ns);

/* Where an operation stands on the common time of all ranks. */

enum viewer_place_kind {
	VIEWER_NOWHERE = 0, /* its record has no time at all */
	VIEWER_TIMED = 1,   /* by its duration */
	VIEWER_SEEN = 2,    /* from the first to the last sign of it: no duration is known */
	VIEWER_CALLED = 3,  /* of the call alone: NCCL shows nothing of its execution */
	VIEWER_IN_FLIGHT = 4,
};

const char *viewer_place_name(enum viewer_place_kind kind); /* "timed", ... */

struct viewer_place {
	enum viewer_place_kind kind;
	uint64_t start_ns; /* common time */
	uint64_t end_ns;   /* VIEWER_OPEN while in flight */
};

/* How times of one process are read. */
struct viewer_times {
	const struct recording_process *process;
	const struct align *align;
	size_t index; /* of the process */
	/* By the device number of communicators, which the last one is for when there are more. */
	struct viewer_clock_fit *gpus;
	const int32_t *gpu_numbers;
	size_t gpu_count;
	const uint64_t *last_done_ns; /* per communicator, as process->comms: when one ended last */
};

/* is_open: it had not ended when the recording did. */
struct viewer_place viewer_place(const struct viewer_times *times, const struct op_record *op,
				 bool is_open);

/* The first time its record has, on the recorder's clock; 0 none. */
uint64_t viewer_first_sign_ns(const struct op_record *op);

/*
 * Who met whom in the stretch of time that is shown: the ranks of each collective, and each Send with
 * its Recv. Waiting is worked out as in analysis/meet.h (duration minus the shortest one), of the
 * collectives that synchronise their ranks; beyond that, here it is known for each operation which
 * rank came last, and between which slices arrows lead.
 *
 * Two steps: viewer_meet_add() for every operation, then viewer_meet_find() for any of them. Memory is
 * bounded; operations that found no room are counted and stand without waiting and arrows.
 */

/* A collective has at most so many arrows: from the ranks that waited longest. */
enum { VIEWER_ARROWS_MAX = 32 };

struct viewer_meet {
	const struct job *job;
	struct viewer_meeting *meetings;
	size_t count;
	size_t room;
	uint32_t *slots; /* hash table of indices + 1 */
	size_t slot_count;
	struct viewer_waiter *waiters; /* of all meetings, a stretch each */
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
	bool is_shown; /* it will have a slice: arrows can lead there */
};

void viewer_meet_add(struct viewer_meet *meet, const struct viewer_meet_op *op);

/* What is known of an operation after all were added. */
struct viewer_met {
	bool is_met;	   /* at least one other rank was there */
	bool is_partial;   /* ranks are missing: somebody else may have come last */
	bool has_wait;	   /* wait_ns and last are meant */
	bool is_differing; /* other ranks called something else here */
	uint64_t wait_ns;
	const struct job_seat *last; /* the seat that came last */
	/* Arrows that lead from or to it. Their moments: a tail's is the begin of its slice; a head's is
	 * the begin of its slice, but not before not_before_ns (common time). */
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
 * A recording laid out for a trace viewer: what is shown, when it was, who met whom. Operations are
 * walked three times, none is kept:
 *
 *	viewer_plan_survey()   from when to when, where the GPUs' clocks stand
 *	                       (then the caller sets from_ns, to_ns)
 *	viewer_plan_join()     what is inside, who waited for whom
 *	viewer_plan_write()    the timeline, a process at a time
 *
 *	viewer_plan_init(&plan, &job, &align, &filter);
 *	viewer_plan_survey(&plan);
 *	viewer_plan_join(&plan);
 *	viewer_plan_write(&plan, &viewer);
 *	viewer_plan_release(&plan);
 */

/* What is known of one process. */
struct viewer_source {
	struct viewer_times times;
	struct viewer_clock_fit *gpus;
	int32_t *gpu_numbers;
	uint64_t *last_done; /* per communicator, as process->comms: highest number that is done */
	uint64_t *last_done_ns; /* and when one ended last, recorder's clock */
	uint64_t first_ns;	/* common time of the first and the last sign of it; 0 unknown */
	uint64_t last_ns;
	uint32_t number; /* the viewer's */
	bool is_shown;	 /* some of its ranks and communicators pass the filter */
};

/* What became of the operations, in the end. */
struct viewer_tally {
	uint64_t read;	/* operations walked */
	uint64_t shown; /* each is one slice (or moment) of category "operation" */
	uint64_t timed; /* of shown, by how they were placed */
	uint64_t seen;
	uint64_t called;
	uint64_t in_flight;
	uint64_t nowhere;     /* no time is recorded: a moment at the begin */
	uint64_t crowded;     /* found no track: a moment instead of a slice */
	uint64_t waiting;     /* slices of waiting */
	uint64_t details;     /* slices of channels and transfers */
	uint64_t details_out; /* details that found no track, or have no time */
	uint64_t missing;     /* sequences that nobody has any more */
	uint64_t refused;     /* records and blocks that cannot be read */
};

struct viewer_plan {
	const struct recording *recording; /* these four are borrowed */
	const struct job *job;
	const struct align *align;
	const struct filter *filter; /* ranks and communicators of it */
	bool has_details;	     /* show channels and transfers, too */
	bool has_calls;		     /* show calls on the host, too */
	timeline_progress *progress; /* NULL none */
	void *progress_context;

	struct viewer_source *sources; /* as recording->processes */
	uint64_t first_ns;	       /* common time: of everything that passes the filter */
	uint64_t last_ns;
	uint64_t from_ns; /* what is shown: operations that were under way in [from, to) */
	uint64_t to_ns;
	uint64_t origin_ns;	   /* time 0 of the timeline: nothing that is shown began before */
	uint64_t end_ns;	   /* the last end that is shown */
	uint64_t expected;	   /* operations that will be shown */
	uint64_t expected_details; /* details there are, shown or not */
	struct viewer_meet meet;
	struct viewer_tally tally;
	enum status status; /* of the first failure within a walk */
	uint64_t walked;
	uint64_t to_walk;
};

/* ERR_NO_SPACE (memory); nothing to release then. */
enum status viewer_plan_init(struct viewer_plan *plan, const struct job *job,
			     const struct align *align, const struct filter *filter);
void viewer_plan_release(struct viewer_plan *plan);

/* ERR_NO_SPACE, ERR_GONE when progress said false, or what a walk of the recording said. */
enum status viewer_plan_survey(struct viewer_plan *plan);
enum status viewer_plan_join(struct viewer_plan *plan);
/* Processes, tracks, slices, counters; not viewer_about(), not viewer_end(). */
enum status viewer_plan_write(struct viewer_plan *plan, struct viewer *viewer);

/* Looking an operation up by its number, to show what was around it. */

enum { VIEWER_FIND_COMMS = 4 };

struct viewer_find {
	const char *comm; /* its name, or its hash; NULL: any */
	int64_t rank;	  /* -1: any */
	uint64_t number;
	/* Found: */
	uint64_t count;	   /* operations: the same on several ranks count each */
	uint64_t start_ns; /* common time: the first begin and the last end of them */
	uint64_t end_ns;
	uint32_t comms[VIEWER_FIND_COMMS]; /* indices into job.comms: the first few they are on */
	size_t comm_count;		   /* all of them */
};

/* After viewer_plan_survey(). What a walk of the recording said. */
enum status viewer_find(struct viewer_plan *plan, struct viewer_find *find);

/*
 * Tracks of a process whose slices do not overlap.
 *
 * What belongs together (the operations of a communicator, the transfers of a channel) is a group. A
 * group has one lane, and gets another one whenever a slice finds all of its lanes taken:
 *
 *	group  world   lane 1   [AllGather][AllGather]   [ReduceScatter]
 *	               lane 2        [Send]                   [Send]
 *
 * Given in the order of their begins, slices take as few lanes as there can be. In any other order
 * they still never overlap.
 */

enum {
	VIEWER_LANES_MAX = 4096, /* of a group: no recorder follows more at a time */
	VIEWER_GROUPS_MAX = 65536,
	VIEWER_LANE_STACK = 32, /* slices without end inside each other */
	/* A slice may move by so much to stand behind its forerunner: clocks are not better. */
	VIEWER_SLIDE_NS = 1000,
};

struct viewer_lane {
	uint64_t end_ns;  /* UINT64_MAX: has slices without end */
	uint64_t open_ns; /* begin of the last one of these */
	uint32_t track;
	uint32_t open;
};

struct viewer_group {
	uint64_t key;
	uint32_t above; /* track of the group it belongs to, 0 none */
	int32_t order;
	char name[160];
	struct viewer_lane *lanes;
	size_t count;
};

struct viewer_lanes {
	struct viewer_group **groups;
	size_t count;
	size_t room;
	uint32_t *slots; /* hash table of indices + 1 */
	size_t slot_count;
	uint32_t tracks; /* given so far */
	enum status status;
};

void viewer_lanes_init(struct viewer_lanes *lanes);
void viewer_lanes_release(struct viewer_lanes *lanes);

/* The group of that key; made, and *is_new, when there is none. NULL: no memory, or too many. */
struct viewer_group *viewer_lanes_group(struct viewer_lanes *lanes, uint64_t key, bool *is_new);

/*
 * A lane for a slice; end_ns UINT64_MAX: without end. *start_ns and *end_ns may be moved by up to
 * VIEWER_SLIDE_NS. *is_new: its track has to be made known. NULL: no memory, or too many.
 */
const struct viewer_lane *viewer_lanes_take(struct viewer_lanes *lanes, struct viewer_group *group,
					    uint64_t *start_ns, uint64_t *end_ns, bool *is_new);

/* One operation in a viewer's words: what its slice is called, and what is said when it is clicked. */

enum { VIEWER_NAME_TEXT = 128, VIEWER_FLAGS_TEXT = 320 };

/* Texts which the arguments point to. */
struct viewer_op_texts {
	char flags[VIEWER_FLAGS_TEXT];
	char waits_for[96];
};

struct viewer_op {
	const struct job *job;
	const struct recording_process *process;
	const struct job_seat *seat; /* NULL: the process does not list its communicator */
	const struct op_record *op;
	const struct viewer_place *place;
	const struct viewer_met *met;
	uint64_t in_flight_ns; /* in flight: for how long when the recording ended */
};

/* "AllReduce 64 MiB", "Send 4 MiB to 5", "AllReduce 64 MiB (in flight)". */
void viewer_op_name(const struct viewer_op *of, char name[static VIEWER_NAME_TEXT]);

/* All that is known of it and not nothing. Texts stay the caller's, as long as the arguments are
 * used. */
void viewer_op_args(const struct viewer_op *of, struct viewer_op_texts *texts,
		    struct viewer_args *args);

enum viewer_colour viewer_op_colour(const struct viewer_op *of);

/*
 * Puts what comes roughly in the order of ends into the order of begins, through a heap of fixed
 * size: what comes out is in order as long as nothing came more than VIEWER_ORDER_MAX places late.
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
/* The one that begins first; there must be one. */
void viewer_order_take(struct viewer_order *order, struct viewer_item *item);

#endif
