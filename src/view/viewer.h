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

#include "common/status.h"
#include "view/sink.h"

struct gzip_sink;
struct perfetto;

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

#endif
