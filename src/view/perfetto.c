/*
 * Perfetto's native format: a stream of TracePacket messages, each a field 1 of the file.
 *
 *	packet { clock_snapshot }                        what time it was when the trace began
 *	packet { track_descriptor { uuid, process } }    a rank
 *	packet { track_descriptor { uuid, parent } }     a track below it
 *	packet { timestamp, track_event { BEGIN, name } }
 *	packet { timestamp, track_event { END } }
 *
 * All packets belong to one sequence. Names and repeated texts are interned: a packet brings the
 * names which no packet before it used. A packet is put together from the inside out in memory.
 */
#include "view/perfetto.h"

#include <stdlib.h>

#include "common/text.h"
#include "view/perfetto_names.h"
#include "view/perfetto_wire.h"

/* Field numbers and values of Perfetto's public schema: tests/viewer/perfetto.proto has them all. */
enum {
	TRACE_PACKET = 1,

	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK_DESCRIPTOR = 60,

	CLOCK_SNAPSHOT_CLOCK = 1,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,
	CLOCK_IS_REALTIME = 1,
	CLOCK_IS_BOOTTIME = 6,

	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_NAME = 2,
	DESCRIPTOR_PROCESS = 3,
	DESCRIPTOR_PARENT = 5,
	DESCRIPTOR_COUNTER = 8,
	DESCRIPTOR_CHILD_ORDERING = 11,
	DESCRIPTOR_RANK = 12,
	DESCRIPTOR_PROCESS_ORDERING = 19,
	CHILDREN_BY_RANK = 3,
	PROCESSES_BY_RANK = 1,

	PROCESS_PID = 1,
	PROCESS_SORT_INDEX = 3,
	PROCESS_NAME = 6,
	PROCESS_LABELS = 8,

	COUNTER_UNIT_NAME = 6,

	EVENT_CATEGORY_IIDS = 3,
	EVENT_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_CATEGORIES = 22,
	EVENT_NAME = 23,
	EVENT_DOUBLE_VALUE = 44,
	EVENT_FLOW_IDS = 47,
	TYPE_BEGIN = 1,
	TYPE_END = 2,
	TYPE_INSTANT = 3,
	TYPE_COUNTER = 4,

	ANNOTATION_NAME_IID = 1,
	ANNOTATION_UNSIGNED = 3,
	ANNOTATION_SIGNED = 4,
	ANNOTATION_DOUBLE = 5,
	ANNOTATION_TEXT = 6,
	ANNOTATION_NAME = 10,
	ANNOTATION_TEXT_IID = 17,

	INTERNED_IID = 1,
	INTERNED_TEXT = 2,

	STATE_CLEARED = 1,
	STATE_NEEDED = 2,
	SEQUENCE = 1,
};

/* The track of what concerns everybody; those of processes begin at 2^32. */
enum { TRACK_OF_ALL = 1 };

struct perfetto {
	struct perfetto_names names;
	struct sink packet;
	struct sink event; /* or descriptor */
	struct sink interned;
	struct sink part; /* an annotation, a name, a clock */
	bool has_begun;	  /* the state has been declared to be cleared */
};

struct perfetto *perfetto_new(void)
{
	struct perfetto *perfetto = calloc(1, sizeof(*perfetto));

	if (perfetto == NULL)
		return NULL;
	perfetto_names_init(&perfetto->names);
	sink_init_memory(&perfetto->packet);
	sink_init_memory(&perfetto->event);
	sink_init_memory(&perfetto->interned);
	sink_init_memory(&perfetto->part);
	return perfetto;
}

void perfetto_free(struct perfetto *perfetto)
{
	if (perfetto == NULL)
		return;
	perfetto_names_release(&perfetto->names);
	sink_release(&perfetto->packet);
	sink_release(&perfetto->event);
	sink_release(&perfetto->interned);
	sink_release(&perfetto->part);
	free(perfetto);
}

static uint64_t track_uuid(uint32_t process, uint32_t track)
{
	return process == 0 ? TRACK_OF_ALL : (uint64_t)process << 32 | track;
}

/* What perfetto->event holds becomes field `field` of a packet, which is written. */
static void write_packet(struct viewer *viewer, uint32_t field, bool has_time, uint64_t at_ns)
{
	struct perfetto *perfetto = viewer->perfetto;
	struct sink *packet = &perfetto->packet;

	if (has_time)
		wire_unsigned(packet, PACKET_TIMESTAMP, viewer->start_wall_ns + at_ns);
	wire_unsigned(packet, PACKET_SEQUENCE_ID, SEQUENCE);
	wire_unsigned(packet, PACKET_SEQUENCE_FLAGS,
		      perfetto->has_begun ? STATE_NEEDED : STATE_CLEARED);
	perfetto->has_begun = true;
	if (perfetto->interned.used > 0)
		wire_message(packet, PACKET_INTERNED_DATA, &perfetto->interned);
	wire_message(packet, field, &perfetto->event);
	wire_message(viewer->sink, TRACE_PACKET, packet);
	if (perfetto->names.status != OK)
		viewer->status = perfetto->names.status;
}

/* The number of a name, which this packet brings if none did before; 0: say it in full. */
static uint64_t name_number(struct perfetto *perfetto, enum perfetto_name_kind kind,
			    const char *text)
{
	bool is_new;
	uint64_t number = perfetto_names_find(&perfetto->names, kind, text, &is_new);

	if (is_new) {
		wire_unsigned(&perfetto->part, INTERNED_IID, number);
		wire_text(&perfetto->part, INTERNED_TEXT, text);
		wire_message(&perfetto->interned, kind, &perfetto->part);
	}
	return number;
}

/* Into perfetto->event: a name by its number or in full. */
static void put_name(struct perfetto *perfetto, enum perfetto_name_kind kind, const char *text,
		     uint32_t number_field, uint32_t text_field)
{
	uint64_t number = name_number(perfetto, kind, text);

	if (number)
		wire_unsigned(&perfetto->event, number_field, number);
	else
		wire_text(&perfetto->event, text_field, text);
}

static void put_text_value(struct sink *part, uint64_t number, const char *text)
{
	if (number)
		wire_unsigned(part, ANNOTATION_TEXT_IID, number);
	else
		wire_text(part, ANNOTATION_TEXT, text);
}

static void put_annotation(struct perfetto *perfetto, const struct viewer_arg *arg)
{
	struct sink *part = &perfetto->part;
	uint64_t name, text = 0;
	char hex[24];

	/* Numbers first: finding one may need `part` for itself. */
	name = name_number(perfetto, PERFETTO_ARG_NAME, arg->name);
	if (arg->kind == VIEWER_TEXT)
		text = name_number(perfetto, PERFETTO_ARG_TEXT, arg->text);
	if (name)
		wire_unsigned(part, ANNOTATION_NAME_IID, name);
	else
		wire_text(part, ANNOTATION_NAME, arg->name);
	switch (arg->kind) {
	case VIEWER_TEXT:
		put_text_value(part, text, arg->text);
		break;
	case VIEWER_UNSIGNED:
		wire_unsigned(part, ANNOTATION_UNSIGNED, arg->whole);
		break;
	case VIEWER_SIGNED:
		wire_signed(part, ANNOTATION_SIGNED, arg->number);
		break;
	case VIEWER_DOUBLE:
		wire_double(part, ANNOTATION_DOUBLE, arg->real);
		break;
	case VIEWER_HEX:
		text_format(hex, sizeof(hex), "0x%016llx", (unsigned long long)arg->whole);
		wire_text(part, ANNOTATION_TEXT, hex);
		break;
	}
	wire_message(&perfetto->event, EVENT_ANNOTATIONS, part);
}

static void put_event(struct perfetto *perfetto, uint32_t type, uint64_t uuid, const char *name,
		      const char *category)
{
	wire_unsigned(&perfetto->event, EVENT_TYPE, type);
	wire_unsigned(&perfetto->event, EVENT_TRACK_UUID, uuid);
	if (category)
		put_name(perfetto, PERFETTO_CATEGORY, category, EVENT_CATEGORY_IIDS,
			 EVENT_CATEGORIES);
	if (name)
		put_name(perfetto, PERFETTO_EVENT_NAME, name, EVENT_NAME_IID, EVENT_NAME);
}

static void put_args(struct perfetto *perfetto, const struct viewer_args *args)
{
	for (size_t i = 0; args && i < args->count; i++)
		put_annotation(perfetto, &args->list[i]);
}

static void put_clock(struct perfetto *perfetto, uint32_t clock, uint64_t ns)
{
	wire_unsigned(&perfetto->part, CLOCK_ID, clock);
	wire_unsigned(&perfetto->part, CLOCK_TIMESTAMP, ns);
	wire_message(&perfetto->event, CLOCK_SNAPSHOT_CLOCK, &perfetto->part);
}

void perfetto_about(struct viewer *viewer, const struct viewer_args *args)
{
	struct perfetto *perfetto = viewer->perfetto;

	if (viewer->start_wall_ns != 0) {
		/* Timestamps count on BOOTTIME unless told otherwise: let it be wall time. */
		put_clock(perfetto, CLOCK_IS_BOOTTIME, viewer->start_wall_ns);
		put_clock(perfetto, CLOCK_IS_REALTIME, viewer->start_wall_ns);
		write_packet(viewer, PACKET_CLOCK_SNAPSHOT, true, 0);
	}
	wire_unsigned(&perfetto->event, DESCRIPTOR_UUID, 0);
	wire_unsigned(&perfetto->event, DESCRIPTOR_PROCESS_ORDERING, PROCESSES_BY_RANK);
	write_packet(viewer, PACKET_TRACK_DESCRIPTOR, false, 0);
	wire_unsigned(&perfetto->event, DESCRIPTOR_UUID, TRACK_OF_ALL);
	wire_text(&perfetto->event, DESCRIPTOR_NAME, "about");
	write_packet(viewer, PACKET_TRACK_DESCRIPTOR, false, 0);
	put_event(perfetto, TYPE_INSTANT, TRACK_OF_ALL, "about this trace", "about");
	put_args(perfetto, args);
	write_packet(viewer, PACKET_TRACK_EVENT, true, 0);
}

void perfetto_process(struct viewer *viewer, const struct viewer_process *process)
{
	struct perfetto *perfetto = viewer->perfetto;

	wire_unsigned(&perfetto->part, PROCESS_PID, process->process);
	wire_signed(&perfetto->part, PROCESS_SORT_INDEX, process->order);
	wire_text(&perfetto->part, PROCESS_NAME, process->name);
	if (process->label)
		wire_text(&perfetto->part, PROCESS_LABELS, process->label);
	wire_unsigned(&perfetto->event, DESCRIPTOR_UUID, track_uuid(process->process, 0));
	wire_message(&perfetto->event, DESCRIPTOR_PROCESS, &perfetto->part);
	wire_unsigned(&perfetto->event, DESCRIPTOR_CHILD_ORDERING, CHILDREN_BY_RANK);
	wire_signed(&perfetto->event, DESCRIPTOR_RANK, process->order);
	write_packet(viewer, PACKET_TRACK_DESCRIPTOR, true, 0);
}

void perfetto_track(struct viewer *viewer, const struct viewer_track *track)
{
	struct perfetto *perfetto = viewer->perfetto;

	wire_unsigned(&perfetto->event, DESCRIPTOR_UUID, track_uuid(track->process, track->track));
	wire_unsigned(&perfetto->event, DESCRIPTOR_PARENT,
		      track_uuid(track->process, track->above));
	/* Lanes keep one name: Perfetto draws neighbours of the same name as one track. */
	wire_text(&perfetto->event, DESCRIPTOR_NAME, track->name);
	if (track->unit) {
		wire_text(&perfetto->part, COUNTER_UNIT_NAME, track->unit);
		wire_message(&perfetto->event, DESCRIPTOR_COUNTER, &perfetto->part);
	}
	wire_unsigned(&perfetto->event, DESCRIPTOR_CHILD_ORDERING, CHILDREN_BY_RANK);
	wire_signed(&perfetto->event, DESCRIPTOR_RANK, track->order);
	write_packet(viewer, PACKET_TRACK_DESCRIPTOR, false, 0);
}

void perfetto_slice(struct viewer *viewer, const struct viewer_slice *slice)
{
	struct perfetto *perfetto = viewer->perfetto;
	uint64_t uuid = track_uuid(slice->process, slice->track);

	put_event(perfetto, TYPE_BEGIN, uuid, slice->name, slice->category);
	put_args(perfetto, slice->args);
	/* Which end is the head follows from the slices' begins: Perfetto leads arrows forward. */
	for (size_t i = 0; i < slice->arrow_count; i++)
		wire_fixed64(&perfetto->event, EVENT_FLOW_IDS, slice->arrows[i].number);
	write_packet(viewer, PACKET_TRACK_EVENT, true, slice->start_ns);
	if (slice->end_ns == VIEWER_OPEN)
		return;
	put_event(perfetto, TYPE_END, uuid, NULL, NULL);
	write_packet(viewer, PACKET_TRACK_EVENT, true, slice->end_ns);
}

void perfetto_instant(struct viewer *viewer, const struct viewer_instant *instant)
{
	struct perfetto *perfetto = viewer->perfetto;

	put_event(perfetto, TYPE_INSTANT, track_uuid(instant->process, instant->track),
		  instant->name, instant->category);
	put_args(perfetto, instant->args);
	write_packet(viewer, PACKET_TRACK_EVENT, true, instant->at_ns);
}

void perfetto_value(struct viewer *viewer, const struct viewer_track *track, uint64_t at_ns,
		    double value)
{
	struct perfetto *perfetto = viewer->perfetto;

	put_event(perfetto, TYPE_COUNTER, track_uuid(track->process, track->track), NULL, NULL);
	wire_double(&perfetto->event, EVENT_DOUBLE_VALUE, value);
	write_packet(viewer, PACKET_TRACK_EVENT, true, at_ns);
}
