/*
 * Chrome's Trace Event Format.
 *
 *	{"displayTimeUnit":"ns","otherData":{...},"traceEvents":[
 *	{"ph":"M","pid":1,"tid":0,"ts":0,"name":"process_name","args":{"name":"rank 0 node01"}},
 *	{"ph":"X","pid":1,"tid":1,"ts":12.345,"dur":1.000,"name":"AllReduce 1 MiB",...},
 *	...
 *	]}
 *
 * ts and dur are microseconds, printed from whole nanoseconds, so all three decimals are exact. Every event has ph and
 * ts, because speedscope rejects files otherwise.
 */
#include "output/viewer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/flight.h"
#include "common/attributes.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/text.h"
#include "output/json.h"
#include "output/protobuf.h"

static void chrome_put(struct viewer *viewer, const char *text)
{
	sink_text(viewer->sink, text);
}

static void put_number(struct viewer *viewer, uint64_t number)
{
	sink_unsigned(viewer->sink, number);
}

static void put_microseconds(struct viewer *viewer, uint64_t ns)
{
	char rest[4] = { '.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
			 (char)('0' + ns % 10) };

	put_number(viewer, ns / 1000);
	sink_write(viewer->sink, rest, sizeof(rest));
}

/* Use the JSON writer for escaping. */
static void put_string(struct viewer *viewer, const char *text)
{
	struct json json;

	json_init(&json, viewer->sink);
	json_string(&json, text);
}

static void put_value(struct viewer *viewer, const struct viewer_arg *arg)
{
	struct json json;

	json_init(&json, viewer->sink);
	switch (arg->kind) {
	case VIEWER_TEXT:
		json_string(&json, arg->text);
		break;
	case VIEWER_UNSIGNED:
		json_unsigned(&json, arg->whole);
		break;
	case VIEWER_SIGNED:
		json_signed(&json, arg->number);
		break;
	case VIEWER_DOUBLE:
		json_double(&json, arg->real);
		break;
	case VIEWER_HEX:
		json_hex(&json, arg->whole);
		break;
	}
}

/* As an object. */
static void chrome_put_args(struct viewer *viewer, const struct viewer_args *args)
{
	sink_byte(viewer->sink, '{');
	for (size_t i = 0; args && i < args->count; i++) {
		chrome_put(viewer, i > 0 ? ",\"" : "\"");
		chrome_put(viewer, args->list[i].name);
		chrome_put(viewer, "\":");
		put_value(viewer, &args->list[i]);
	}
	sink_byte(viewer->sink, '}');
}

static void begin_event(struct viewer *viewer, const char *phase, uint32_t process, uint32_t track,
			uint64_t at_ns)
{
	chrome_put(viewer, viewer->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	viewer->has_events = true;
	chrome_put(viewer, phase);
	chrome_put(viewer, "\",\"pid\":");
	put_number(viewer, process);
	chrome_put(viewer, ",\"tid\":");
	put_number(viewer, track);
	chrome_put(viewer, ",\"ts\":");
	put_microseconds(viewer, at_ns);
}

static void chrome_put_name(struct viewer *viewer, const char *name, const char *category)
{
	chrome_put(viewer, ",\"name\":");
	put_string(viewer, name);
	if (category) {
		chrome_put(viewer, ",\"cat\":");
		put_string(viewer, category);
	}
}

/* Metadata of a process or a track. */
static void put_fact(struct viewer *viewer, uint32_t process, uint32_t track, const char *fact,
		     const char *key, const char *text, int32_t number)
{
	begin_event(viewer, "M", process, track, 0);
	chrome_put_name(viewer, fact, NULL);
	chrome_put(viewer, ",\"args\":{\"");
	chrome_put(viewer, key);
	chrome_put(viewer, "\":");
	if (text)
		put_string(viewer, text);
	else
		sink_format(viewer->sink, "%d", (int)number);
	chrome_put(viewer, "}}");
}

static void chrome_about(struct viewer *viewer, const struct viewer_args *args)
{
	chrome_put(viewer, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
	chrome_put_args(viewer, args);
	chrome_put(viewer, ",\"traceEvents\":[");
}

static void chrome_process(struct viewer *viewer, const struct viewer_process *process)
{
	put_fact(viewer, process->process, 0, "process_name", "name", process->name, 0);
	put_fact(viewer, process->process, 0, "process_sort_index", "sort_index", NULL,
		 process->order);
	if (process->label)
		put_fact(viewer, process->process, 0, "process_labels", "labels", process->label,
			 0);
}

static void chrome_track(struct viewer *viewer, const struct viewer_track *track)
{
	char name[256];

	if (track->unit)
		return; /* counters are identified by the name of each value */
	if (track->lane > 1)
		text_format(name, sizeof(name), "%s (%u)", track->name, (unsigned int)track->lane);
	put_fact(viewer, track->process, track->track, "thread_name", "name",
		 track->lane > 1 ? name : track->name, 0);
	put_fact(viewer, track->process, track->track, "thread_sort_index", "sort_index", NULL,
		 track->order);
}

/* Names that trace viewers know; NULL: the viewer's choice. */
static const char *const colour_names[] = {
	[VIEWER_WAITING] = "grey",
	[VIEWER_UNFINISHED] = "terrible",
	[VIEWER_DOUBTFUL] = "bad",
};

/* After their slice, because some viewers sort only by time. */
static void put_arrow(struct viewer *viewer, const struct viewer_slice *slice,
		      const struct viewer_arrow *arrow)
{
	begin_event(viewer, arrow->is_head ? "f" : "s", slice->process, slice->track, arrow->at_ns);
	chrome_put_name(viewer, "arrow", "arrow");
	sink_format(viewer->sink, ",\"id\":\"0x%llx\"%s}", (unsigned long long)arrow->number,
		    arrow->is_head ? ",\"bp\":\"e\"" : "");
}

static void chrome_slice(struct viewer *viewer, const struct viewer_slice *slice)
{
	bool is_open = slice->end_ns == VIEWER_OPEN;
	const char *colour = colour_names[slice->colour];

	begin_event(viewer, is_open ? "B" : "X", slice->process, slice->track, slice->start_ns);
	if (!is_open) {
		chrome_put(viewer, ",\"dur\":");
		put_microseconds(viewer, slice->end_ns - slice->start_ns);
	}
	chrome_put_name(viewer, slice->name, slice->category);
	if (colour) {
		chrome_put(viewer, ",\"cname\":\"");
		chrome_put(viewer, colour);
		sink_byte(viewer->sink, '"');
	}
	chrome_put(viewer, ",\"args\":");
	chrome_put_args(viewer, slice->args);
	sink_byte(viewer->sink, '}');
	for (size_t i = 0; i < slice->arrow_count; i++)
		put_arrow(viewer, slice, &slice->arrows[i]);
}

static void chrome_instant(struct viewer *viewer, const struct viewer_instant *instant)
{
	begin_event(viewer, "i", instant->process, instant->track, instant->at_ns);
	chrome_put_name(viewer, instant->name, instant->category);
	chrome_put(viewer, instant->process == 0 ? ",\"s\":\"g\""
			   : instant->track == 0 ? ",\"s\":\"p\""
						 : ",\"s\":\"t\"");
	chrome_put(viewer, ",\"args\":");
	chrome_put_args(viewer, instant->args);
	sink_byte(viewer->sink, '}');
}

static void chrome_value(struct viewer *viewer, const struct viewer_track *track, uint64_t at_ns,
			 double value)
{
	struct viewer_arg arg = { .name = track->unit, .kind = VIEWER_DOUBLE, .real = value };
	struct viewer_args args = { .count = 1 };

	args.list[0] = arg;
	begin_event(viewer, "C", track->process, 0, at_ns);
	chrome_put_name(viewer, track->name, NULL);
	chrome_put(viewer, ",\"args\":");
	chrome_put_args(viewer, &args);
	sink_byte(viewer->sink, '}');
}

static void chrome_end(struct viewer *viewer)
{
	chrome_put(viewer, "\n]}\n");
}

struct perfetto_name {
	char *text;
	uint64_t number; /* all kinds share the numbers; gaps are allowed */
	uint32_t kind;
};

enum { FIRST_SLOTS = 256 };

void perfetto_names_init(struct perfetto_names *names)
{
	*names = (struct perfetto_names){ .slots = NULL };
}

void perfetto_names_release(struct perfetto_names *names)
{
	for (size_t i = 0; i < names->slot_count; i++)
		free(names->slots[i].text);
	free(names->slots);
	perfetto_names_init(names);
}

/* The slot of the name, or the free one for it. The table is never full. */
static struct perfetto_name *slot_of(const struct perfetto_names *names, uint32_t kind,
				     const char *text)
{
	size_t mask = names->slot_count - 1;
	size_t at = (size_t)hash_word(hash_bytes(text, strlen(text)), kind) & mask;

	while (names->slots[at].text &&
	       (names->slots[at].kind != kind || strcmp(names->slots[at].text, text) != 0))
		at = (at + 1) & mask;
	return &names->slots[at];
}

static bool names_grow(struct perfetto_names *names)
{
	struct perfetto_names larger = *names;

	larger.slot_count = names->slot_count ? names->slot_count * 2 : FIRST_SLOTS;
	larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
	if (larger.slots == NULL) {
		names->status = ERR_NO_SPACE;
		return false;
	}
	for (size_t i = 0; i < names->slot_count; i++)
		if (names->slots[i].text)
			*slot_of(&larger, names->slots[i].kind, names->slots[i].text) =
				names->slots[i];
	free(names->slots);
	*names = larger;
	return true;
}

uint64_t perfetto_names_find(struct perfetto_names *names, enum perfetto_name_kind kind,
			     const char *text, bool *is_new)
{
	struct perfetto_name *slot;

	*is_new = false;
	if (names->slot_count > 0) {
		slot = slot_of(names, kind, text);
		if (slot->text)
			return slot->number;
	}
	if (names->count == PERFETTO_NAMES_MAX || strlen(text) > PERFETTO_NAME_BYTES)
		return 0;
	if (names->count * 2 >= names->slot_count && !names_grow(names))
		return 0;
	slot = slot_of(names, kind, text);
	slot->text = strdup(text);
	if (slot->text == NULL) {
		names->status = ERR_NO_SPACE;
		return 0;
	}
	slot->kind = kind;
	slot->number = ++names->count;
	*is_new = true;
	return slot->number;
}

/*
 * Perfetto's native format: a stream of TracePacket messages, each a field 1 of the file.
 *
 *	packet { clock_snapshot }                        wall time of the start
 *	packet { track_descriptor { uuid, process } }    a rank
 *	packet { track_descriptor { uuid, parent } }     a track below it
 *	packet { timestamp, track_event { BEGIN, name } }
 *	packet { timestamp, track_event { END } }
 *
 * All packets belong to one sequence. Names and repeated texts are interned: a packet includes the names that are new in
 * it. Packets are assembled in memory from the inside out.
 */

/* Field numbers and values of Perfetto's schema; see tests/viewer/perfetto.proto. */
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

/* The global track; tracks of processes start at 2^32. */
enum { TRACK_OF_ALL = 1 };

struct perfetto {
	struct perfetto_names names;
	struct sink packet;
	struct sink event; /* or descriptor */
	struct sink interned;
	struct sink part; /* an annotation, a name, a clock */
	bool has_begun;	  /* the reset of the sequence state was written */
};

/* NULL when there is no memory. */
static struct perfetto *perfetto_new(void)
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

static void perfetto_free(struct perfetto *perfetto)
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

/* Writes perfetto->event as field `field` of a packet. */
static void write_packet(struct viewer *viewer, uint32_t field, bool has_time, uint64_t at_ns)
{
	struct perfetto *perfetto = viewer->perfetto;
	struct sink *packet = &perfetto->packet;

	if (has_time)
		protobuf_unsigned(packet, PACKET_TIMESTAMP, viewer->start_wall_ns + at_ns);
	protobuf_unsigned(packet, PACKET_SEQUENCE_ID, SEQUENCE);
	protobuf_unsigned(packet, PACKET_SEQUENCE_FLAGS,
			  perfetto->has_begun ? STATE_NEEDED : STATE_CLEARED);
	perfetto->has_begun = true;
	if (perfetto->interned.used > 0)
		protobuf_message(packet, PACKET_INTERNED_DATA, &perfetto->interned);
	protobuf_message(packet, field, &perfetto->event);
	protobuf_message(viewer->sink, TRACE_PACKET, packet);
	if (perfetto->names.status != OK)
		viewer->status = perfetto->names.status;
}

/* Number of a name, added to this packet if new; 0: write it in full. */
static uint64_t name_number(struct perfetto *perfetto, enum perfetto_name_kind kind,
			    const char *text)
{
	bool is_new;
	uint64_t number = perfetto_names_find(&perfetto->names, kind, text, &is_new);

	if (is_new) {
		protobuf_unsigned(&perfetto->part, INTERNED_IID, number);
		protobuf_text(&perfetto->part, INTERNED_TEXT, text);
		protobuf_message(&perfetto->interned, kind, &perfetto->part);
	}
	return number;
}

/* Appends a name to perfetto->event, by number or in full. */
static void perfetto_put_name(struct perfetto *perfetto, enum perfetto_name_kind kind,
			      const char *text, uint32_t number_field, uint32_t text_field)
{
	uint64_t number = name_number(perfetto, kind, text);

	if (number)
		protobuf_unsigned(&perfetto->event, number_field, number);
	else
		protobuf_text(&perfetto->event, text_field, text);
}

static void put_text_value(struct sink *part, uint64_t number, const char *text)
{
	if (number)
		protobuf_unsigned(part, ANNOTATION_TEXT_IID, number);
	else
		protobuf_text(part, ANNOTATION_TEXT, text);
}

static void put_annotation(struct perfetto *perfetto, const struct viewer_arg *arg)
{
	struct sink *part = &perfetto->part;
	uint64_t name, text = 0;
	char hex[24];

	/* Numbers first, because looking one up may use `part`. */
	name = name_number(perfetto, PERFETTO_ARG_NAME, arg->name);
	if (arg->kind == VIEWER_TEXT)
		text = name_number(perfetto, PERFETTO_ARG_TEXT, arg->text);
	if (name)
		protobuf_unsigned(part, ANNOTATION_NAME_IID, name);
	else
		protobuf_text(part, ANNOTATION_NAME, arg->name);
	switch (arg->kind) {
	case VIEWER_TEXT:
		put_text_value(part, text, arg->text);
		break;
	case VIEWER_UNSIGNED:
		protobuf_unsigned(part, ANNOTATION_UNSIGNED, arg->whole);
		break;
	case VIEWER_SIGNED:
		protobuf_signed(part, ANNOTATION_SIGNED, arg->number);
		break;
	case VIEWER_DOUBLE:
		protobuf_double(part, ANNOTATION_DOUBLE, arg->real);
		break;
	case VIEWER_HEX:
		text_format(hex, sizeof(hex), "0x%016llx", (unsigned long long)arg->whole);
		protobuf_text(part, ANNOTATION_TEXT, hex);
		break;
	}
	protobuf_message(&perfetto->event, EVENT_ANNOTATIONS, part);
}

static void put_event(struct perfetto *perfetto, uint32_t type, uint64_t uuid, const char *name,
		      const char *category)
{
	protobuf_unsigned(&perfetto->event, EVENT_TYPE, type);
	protobuf_unsigned(&perfetto->event, EVENT_TRACK_UUID, uuid);
	if (category)
		perfetto_put_name(perfetto, PERFETTO_CATEGORY, category, EVENT_CATEGORY_IIDS,
				  EVENT_CATEGORIES);
	if (name)
		perfetto_put_name(perfetto, PERFETTO_EVENT_NAME, name, EVENT_NAME_IID, EVENT_NAME);
}

static void perfetto_put_args(struct perfetto *perfetto, const struct viewer_args *args)
{
	for (size_t i = 0; args && i < args->count; i++)
		put_annotation(perfetto, &args->list[i]);
}

static void put_clock(struct perfetto *perfetto, uint32_t clock, uint64_t ns)
{
	protobuf_unsigned(&perfetto->part, CLOCK_ID, clock);
	protobuf_unsigned(&perfetto->part, CLOCK_TIMESTAMP, ns);
	protobuf_message(&perfetto->event, CLOCK_SNAPSHOT_CLOCK, &perfetto->part);
}

static void perfetto_about(struct viewer *viewer, const struct viewer_args *args)
{
	struct perfetto *perfetto = viewer->perfetto;

	if (viewer->start_wall_ns != 0) {
		/* The default clock of timestamps is BOOTTIME: map it to wall time. */
		put_clock(perfetto, CLOCK_IS_BOOTTIME, viewer->start_wall_ns);
		put_clock(perfetto, CLOCK_IS_REALTIME, viewer->start_wall_ns);
		write_packet(viewer, PACKET_CLOCK_SNAPSHOT, true, 0);
	}
	protobuf_unsigned(&perfetto->event, DESCRIPTOR_UUID, 0);
	protobuf_unsigned(&perfetto->event, DESCRIPTOR_PROCESS_ORDERING, PROCESSES_BY_RANK);
	write_packet(viewer, PACKET_TRACK_DESCRIPTOR, false, 0);
	protobuf_unsigned(&perfetto->event, DESCRIPTOR_UUID, TRACK_OF_ALL);
	protobuf_text(&perfetto->event, DESCRIPTOR_NAME, "about");
	write_packet(viewer, PACKET_TRACK_DESCRIPTOR, false, 0);
	put_event(perfetto, TYPE_INSTANT, TRACK_OF_ALL, "about this trace", "about");
	perfetto_put_args(perfetto, args);
	write_packet(viewer, PACKET_TRACK_EVENT, true, 0);
}

static void perfetto_process(struct viewer *viewer, const struct viewer_process *process)
{
	struct perfetto *perfetto = viewer->perfetto;

	protobuf_unsigned(&perfetto->part, PROCESS_PID, process->process);
	protobuf_signed(&perfetto->part, PROCESS_SORT_INDEX, process->order);
	protobuf_text(&perfetto->part, PROCESS_NAME, process->name);
	if (process->label)
		protobuf_text(&perfetto->part, PROCESS_LABELS, process->label);
	protobuf_unsigned(&perfetto->event, DESCRIPTOR_UUID, track_uuid(process->process, 0));
	protobuf_message(&perfetto->event, DESCRIPTOR_PROCESS, &perfetto->part);
	protobuf_unsigned(&perfetto->event, DESCRIPTOR_CHILD_ORDERING, CHILDREN_BY_RANK);
	protobuf_signed(&perfetto->event, DESCRIPTOR_RANK, process->order);
	write_packet(viewer, PACKET_TRACK_DESCRIPTOR, true, 0);
}

static void perfetto_track(struct viewer *viewer, const struct viewer_track *track)
{
	struct perfetto *perfetto = viewer->perfetto;

	protobuf_unsigned(&perfetto->event, DESCRIPTOR_UUID,
			  track_uuid(track->process, track->track));
	protobuf_unsigned(&perfetto->event, DESCRIPTOR_PARENT,
			  track_uuid(track->process, track->above));
	/* Lanes have the same name: Perfetto merges neighboring tracks of the same name. */
	protobuf_text(&perfetto->event, DESCRIPTOR_NAME, track->name);
	if (track->unit) {
		protobuf_text(&perfetto->part, COUNTER_UNIT_NAME, track->unit);
		protobuf_message(&perfetto->event, DESCRIPTOR_COUNTER, &perfetto->part);
	}
	protobuf_unsigned(&perfetto->event, DESCRIPTOR_CHILD_ORDERING, CHILDREN_BY_RANK);
	protobuf_signed(&perfetto->event, DESCRIPTOR_RANK, track->order);
	write_packet(viewer, PACKET_TRACK_DESCRIPTOR, false, 0);
}

static void perfetto_slice(struct viewer *viewer, const struct viewer_slice *slice)
{
	struct perfetto *perfetto = viewer->perfetto;
	uint64_t uuid = track_uuid(slice->process, slice->track);

	put_event(perfetto, TYPE_BEGIN, uuid, slice->name, slice->category);
	perfetto_put_args(perfetto, slice->args);
	/* Perfetto derives the direction from the starts of the slices. */
	for (size_t i = 0; i < slice->arrow_count; i++)
		protobuf_fixed64(&perfetto->event, EVENT_FLOW_IDS, slice->arrows[i].number);
	write_packet(viewer, PACKET_TRACK_EVENT, true, slice->start_ns);
	if (slice->end_ns == VIEWER_OPEN)
		return;
	put_event(perfetto, TYPE_END, uuid, NULL, NULL);
	write_packet(viewer, PACKET_TRACK_EVENT, true, slice->end_ns);
}

static void perfetto_instant(struct viewer *viewer, const struct viewer_instant *instant)
{
	struct perfetto *perfetto = viewer->perfetto;

	put_event(perfetto, TYPE_INSTANT, track_uuid(instant->process, instant->track),
		  instant->name, instant->category);
	perfetto_put_args(perfetto, instant->args);
	write_packet(viewer, PACKET_TRACK_EVENT, true, instant->at_ns);
}

static void perfetto_value(struct viewer *viewer, const struct viewer_track *track, uint64_t at_ns,
			   double value)
{
	struct perfetto *perfetto = viewer->perfetto;

	put_event(perfetto, TYPE_COUNTER, track_uuid(track->process, track->track), NULL, NULL);
	protobuf_double(&perfetto->event, EVENT_DOUBLE_VALUE, value);
	write_packet(viewer, PACKET_TRACK_EVENT, true, at_ns);
}

static struct viewer_arg *add_arg(struct viewer_args *args, const char *name,
				  enum viewer_arg_kind kind)
{
	/* A spare element, so that writers need not check. */
	struct viewer_arg *arg =
		&args->list[args->count < VIEWER_ARGS_MAX ? args->count : VIEWER_ARGS_MAX - 1];

	if (args->count < VIEWER_ARGS_MAX)
		args->count++;
	else
		args->is_cut = true;
	arg->name = name;
	arg->kind = kind;
	return arg;
}

void viewer_arg_text(struct viewer_args *args, const char *name, const char *text)
{
	add_arg(args, name, VIEWER_TEXT)->text = text;
}

void viewer_arg_unsigned(struct viewer_args *args, const char *name, uint64_t whole)
{
	add_arg(args, name, VIEWER_UNSIGNED)->whole = whole;
}

void viewer_arg_signed(struct viewer_args *args, const char *name, int64_t number)
{
	add_arg(args, name, VIEWER_SIGNED)->number = number;
}

void viewer_arg_double(struct viewer_args *args, const char *name, double real)
{
	add_arg(args, name, VIEWER_DOUBLE)->real = real;
}

void viewer_arg_hex(struct viewer_args *args, const char *name, uint64_t whole)
{
	add_arg(args, name, VIEWER_HEX)->whole = whole;
}

double viewer_round(double value)
{
	return round(value * 1000) / 1000;
}

enum status viewer_init(struct viewer *viewer, enum viewer_format format, struct sink *sink,
			struct gzip_sink *gzip, uint64_t start_wall_ns)
{
	*viewer = (struct viewer){
		.format = format,
		.sink = sink,
		.gzip = gzip,
		.start_wall_ns = start_wall_ns,
	};
	if (format == VIEWER_PERFETTO) {
		viewer->perfetto = perfetto_new();
		if (viewer->perfetto == NULL)
			return ERR_NO_SPACE;
	}
	return OK;
}

/* After every event: compress what has accumulated. */
static void pass_on(struct viewer *viewer, bool is_last)
{
	if (viewer->gzip)
		gzip_sink_pass(viewer->gzip, is_last);
}

void viewer_about(struct viewer *viewer, const struct viewer_args *args)
{
	if (viewer->format == VIEWER_JSON)
		chrome_about(viewer, args);
	else
		perfetto_about(viewer, args);
}

void viewer_process(struct viewer *viewer, const struct viewer_process *process)
{
	if (viewer->format == VIEWER_JSON)
		chrome_process(viewer, process);
	else
		perfetto_process(viewer, process);
	viewer->counts.processes++;
	pass_on(viewer, false);
}

void viewer_track(struct viewer *viewer, const struct viewer_track *track)
{
	if (viewer->format == VIEWER_JSON)
		chrome_track(viewer, track);
	else
		perfetto_track(viewer, track);
	viewer->counts.tracks++;
	pass_on(viewer, false);
}

void viewer_slice(struct viewer *viewer, const struct viewer_slice *slice)
{
	assert(slice->process > 0 && slice->track > 0 && slice->start_ns <= slice->end_ns);
	if (viewer->format == VIEWER_JSON)
		chrome_slice(viewer, slice);
	else
		perfetto_slice(viewer, slice);
	viewer->counts.slices++;
	viewer->counts.open_slices += slice->end_ns == VIEWER_OPEN;
	for (size_t i = 0; i < slice->arrow_count; i++) {
		viewer->counts.heads += slice->arrows[i].is_head;
		viewer->counts.tails += !slice->arrows[i].is_head;
	}
	pass_on(viewer, false);
}

void viewer_instant(struct viewer *viewer, const struct viewer_instant *instant)
{
	if (viewer->format == VIEWER_JSON)
		chrome_instant(viewer, instant);
	else
		perfetto_instant(viewer, instant);
	viewer->counts.instants++;
	pass_on(viewer, false);
}

void viewer_value(struct viewer *viewer, const struct viewer_track *track, uint64_t at_ns,
		  double value)
{
	if (viewer->format == VIEWER_JSON)
		chrome_value(viewer, track, at_ns, value);
	else
		perfetto_value(viewer, track, at_ns, value);
	viewer->counts.values++;
	pass_on(viewer, false);
}

bool viewer_has_failed(const struct viewer *viewer)
{
	return viewer->status != OK || viewer->sink->status != OK;
}

enum status viewer_end(struct viewer *viewer)
{
	if (viewer->format == VIEWER_JSON)
		chrome_end(viewer);
	pass_on(viewer, true);
	perfetto_free(viewer->perfetto);
	viewer->perfetto = NULL;
	return viewer->status != OK ? viewer->status : viewer->sink->status;
}

/* The first two walks: time span of each process, offsets of GPU clocks, matching. */

struct survey {
	struct viewer_plan *plan;
	struct viewer_source *source;
	struct viewer_clock *clocks; /* per GPU of the process */
	uint64_t first_ns;	     /* recorder's clock */
	uint64_t last_ns;
};

static const uint32_t words = OP_WORDS_TIME | OP_WORD_BIT(OP_WORD_KIND) |
			      OP_WORD_BIT(OP_WORD_NUMBER) | OP_WORD_BIT(OP_WORD_LAUNCH);

/* Index into process->comms, or -1. */
static int comm_index(const struct recording_process *process, uint32_t id)
{
	const struct recording_comm *comm = recording_comm(process, id);

	return comm ? (int)(comm - process->comms) : -1;
}

static void survey_widen(struct survey *survey, uint64_t ns)
{
	if (ns == 0)
		return;
	if (survey->first_ns == 0 || ns < survey->first_ns)
		survey->first_ns = ns;
	if (ns > survey->last_ns)
		survey->last_ns = ns;
}

static void add_stop(struct survey *survey, const struct op_batch *batch, uint32_t row, int comm)
{
	const struct recording_process *process = survey->source->times.process;
	uint64_t state = batch->column[OP_WORD_STATE][row];
	int32_t gpu = comm >= 0 ? process->comms[comm].info.gpu : -1;

	if (op_state_source(state) != OP_TIME_KERNEL_GPU ||
	    op_state_flags(state) & OP_FLAG_CUDA_EVENT)
		return;
	for (size_t i = 0; i < survey->source->times.gpu_count; i++)
		if (survey->source->gpu_numbers[i] == gpu)
			viewer_clock_add(&survey->clocks[i], batch->column[OP_WORD_GPU_STOP][row],
					 batch->column[OP_WORD_DONE][row]);
}

static void add_done(struct viewer_source *source, int comm, uint64_t number, uint64_t done_ns)
{
	if (number > source->last_done[comm])
		source->last_done[comm] = number;
	if (done_ns > source->last_done_ns[comm])
		source->last_done_ns[comm] = done_ns;
}

static bool survey_visit(const struct op_batch *batch, enum recording_place place, void *context)
{
	static const enum op_word times[] = { OP_WORD_ISSUE, OP_WORD_LAUNCH, OP_WORD_TASK,
					      OP_WORD_ACTIVE, OP_WORD_DONE };
	struct survey *survey = context;
	const struct recording_process *process = survey->source->times.process;

	(void)place;
	for (uint32_t row = 0; row < batch->rows; row++) {
		int comm = comm_index(process, op_kind_comm(batch->column[OP_WORD_KIND][row]));
		uint64_t number = batch->column[OP_WORD_NUMBER][row];

		for (size_t i = 0; i < ARRAY_LENGTH(times); i++)
			survey_widen(survey, batch->column[times[i]][row]);
		add_stop(survey, batch, row, comm);
		if (comm >= 0 && op_state_state(batch->column[OP_WORD_STATE][row]) == OP_DONE)
			add_done(survey->source, comm, number, batch->column[OP_WORD_DONE][row]);
	}
	return viewer_plan_walked(survey->plan, batch->rows);
}

/* There may be other events before and after all operations. */
static void widen_by_process(struct survey *survey, const struct recording_process *process)
{
	uint64_t now_ns;

	for (size_t i = 0; i < process->comm_count && survey->first_ns == 0; i++)
		survey_widen(survey, process->comms[i].info.init_ns);
	if (survey->first_ns == 0)
		return;
	survey_widen(survey, process->ended_ns);
	if (process->life == RECORDING_ALIVE && recording_now(process, &now_ns))
		survey_widen(survey, now_ns);
	else
		survey_widen(survey, recording_last_ns(process));
}

static enum status survey_process(struct viewer_plan *plan, size_t index)
{
	struct viewer_source *source = &plan->sources[index];
	const struct recording_process *process = plan->recording->processes[index];
	struct survey survey = { .plan = plan, .source = source };
	enum status status;

	survey.clocks = calloc(source->times.gpu_count + 1, sizeof(*survey.clocks));
	if (survey.clocks == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < source->times.gpu_count; i++)
		viewer_clock_init(&survey.clocks[i]);
	status = recording_each_batch(process, words, survey_visit, &survey, NULL);
	for (size_t i = 0; i < source->times.gpu_count; i++)
		source->gpus[i] = viewer_clock_fit(&survey.clocks[i]);
	free(survey.clocks);
	widen_by_process(&survey, process);
	source->first_ns = viewer_common_ns(&source->times, survey.first_ns);
	source->last_ns = viewer_common_ns(&source->times, survey.last_ns);
	return status == OK ? plan->status : status;
}

enum status viewer_plan_survey(struct viewer_plan *plan)
{
	for (size_t i = 0; i < plan->recording->count; i++) {
		struct viewer_source *source = &plan->sources[i];
		enum status status = survey_process(plan, i);

		if (status != OK)
			return status;
		if (!source->is_shown || source->first_ns == 0)
			continue;
		if (plan->first_ns == 0 || source->first_ns < plan->first_ns)
			plan->first_ns = source->first_ns;
		if (source->last_ns > plan->last_ns)
			plan->last_ns = source->last_ns;
	}
	return OK;
}

struct search {
	struct viewer_plan *plan;
	struct viewer_source *source;
	struct viewer_find *find;
	struct filter filter;
};

static bool is_listed(const struct viewer_find *find, uint32_t comm)
{
	for (size_t i = 0; i < find->comm_count && i < VIEWER_FIND_COMMS; i++)
		if (find->comms[i] == comm)
			return true;
	return false;
}

static void search_take(struct search *search, const struct op_record *op,
			const struct job_seat *seat, enum recording_place found)
{
	struct viewer_find *find = search->find;
	struct viewer_place place = viewer_place(&search->source->times, op,
						 viewer_plan_is_open(search->source, op, found));
	uint64_t end_ns = place.end_ns == VIEWER_OPEN ? place.start_ns : place.end_ns;

	if (place.kind == VIEWER_NOWHERE)
		return;
	if (find->count == 0 || place.start_ns < find->start_ns)
		find->start_ns = place.start_ns;
	if (end_ns > find->end_ns)
		find->end_ns = end_ns;
	find->count++;
	if (!is_listed(find, seat->comm)) {
		if (find->comm_count < VIEWER_FIND_COMMS)
			find->comms[find->comm_count] = seat->comm;
		find->comm_count++;
	}
}

static bool search_visit(const struct op_record *op, enum recording_place found, void *context)
{
	struct search *search = context;
	const struct job *job = search->plan->job;
	const struct job_seat *seat;

	if (op->number != search->find->number)
		return true;
	seat = job_seat(job, search->source->times.index, op->comm);
	if (seat && filter_has_rank(&search->filter, job->ranks[seat->rank].rank) &&
	    filter_has_comm(&search->filter, &job->comms[seat->comm]))
		search_take(search, op, seat, found);
	return true;
}

enum status viewer_find(struct viewer_plan *plan, struct viewer_find *find)
{
	struct search search = { .plan = plan, .find = find };
	enum status status = OK;

	if (find->comm) {
		search.filter.comms[0] = find->comm;
		search.filter.comm_count = 1;
	}
	if (find->rank >= 0) {
		search.filter.ranks[0] = (struct filter_range){ find->rank, find->rank };
		search.filter.range_count = 1;
	}
	for (size_t i = 0; i < plan->recording->count && status == OK; i++) {
		search.source = &plan->sources[i];
		status = recording_each_op(plan->recording->processes[i], search_visit, &search,
					   NULL);
	}
	return status;
}

enum { PROGRESS_STEP = 4096 };

/* The GPUs of the communicators of a process, each once. */
static size_t list_gpus(const struct recording_process *process, int32_t *numbers)
{
	size_t count = 0;

	for (size_t i = 0; i < process->comm_count; i++) {
		size_t at = 0;

		while (at < count && numbers[at] != process->comms[i].info.gpu)
			at++;
		if (at == count)
			numbers[count++] = process->comms[i].info.gpu;
	}
	return count;
}

static enum status init_source(struct viewer_plan *plan, size_t index)
{
	const struct recording_process *process = plan->recording->processes[index];
	struct viewer_source *source = &plan->sources[index];
	/* One more, because calloc() may return NULL for 0. */
	size_t room = process->comm_count + 1;

	source->gpu_numbers = calloc(room, sizeof(*source->gpu_numbers));
	source->gpus = calloc(room, sizeof(*source->gpus));
	source->last_done = calloc(room, sizeof(*source->last_done));
	source->last_done_ns = calloc(room, sizeof(*source->last_done_ns));
	if (!source->gpu_numbers || !source->gpus || !source->last_done || !source->last_done_ns)
		return ERR_NO_SPACE;
	source->times = (struct viewer_times){
		.process = process,
		.align = plan->align,
		.index = index,
		.gpus = source->gpus,
		.gpu_numbers = source->gpu_numbers,
		.gpu_count = list_gpus(process, source->gpu_numbers),
		.last_done_ns = source->last_done_ns,
	};
	source->is_shown = process->comm_count == 0 && plan->filter->comm_count == 0 &&
			   plan->filter->range_count == 0;
	for (uint32_t i = plan->job->first_seat[index]; i < plan->job->first_seat[index + 1]; i++)
		source->is_shown |= viewer_plan_has_seat(plan, &plan->job->seats[i]);
	plan->to_walk += 3 * (process->recorded + process->flight_count);
	return OK;
}

/* Rank numbers if unique, else the order of processes. */
static void number_sources(struct viewer_plan *plan)
{
	size_t count = plan->recording->count;
	bool is_unique = true;

	for (size_t i = 0; i < count && is_unique; i++) {
		const struct job_rank *rank = &plan->job->ranks[plan->job->process_rank[i]];

		/* Processes are sorted by rank within a job. */
		is_unique = rank->rank >= 0 && rank->rank < INT32_MAX &&
			    plan->job->group_count < 2 && rank->attempt == 0;
		plan->sources[i].number = (uint32_t)rank->rank + 1;
	}
	for (size_t i = 0; i < count && !is_unique; i++)
		plan->sources[i].number = (uint32_t)i + 1;
}

enum status viewer_plan_init(struct viewer_plan *plan, const struct job *job,
			     const struct align *align, const struct filter *filter)
{
	enum status status = OK;

	*plan = (struct viewer_plan){
		.recording = job->recording,
		.job = job,
		.align = align,
		.filter = filter,
		.to_ns = UINT64_MAX,
	};
	viewer_meet_init(&plan->meet, job, 0);
	plan->sources = calloc(plan->recording->count + 1, sizeof(*plan->sources));
	if (plan->sources == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < plan->recording->count && status == OK; i++)
		status = init_source(plan, i);
	if (status == OK)
		number_sources(plan);
	else
		viewer_plan_release(plan);
	return status;
}

void viewer_plan_release(struct viewer_plan *plan)
{
	for (size_t i = 0; plan->sources && i < plan->recording->count; i++) {
		free(plan->sources[i].gpu_numbers);
		free(plan->sources[i].gpus);
		free(plan->sources[i].last_done);
		free(plan->sources[i].last_done_ns);
	}
	free(plan->sources);
	plan->sources = NULL;
	viewer_meet_release(&plan->meet);
}

bool viewer_plan_has_seat(const struct viewer_plan *plan, const struct job_seat *seat)
{
	const struct filter *filter = plan->filter;

	if (seat == NULL)
		return filter->comm_count == 0 && filter->range_count == 0;
	return filter_has_rank(filter, plan->job->ranks[seat->rank].rank) &&
	       filter_has_comm(filter, &plan->job->comms[seat->comm]);
}

bool viewer_plan_is_open(const struct viewer_source *source, const struct op_record *op,
			 enum recording_place found)
{
	const struct recording_process *process = source->times.process;
	const struct recording_comm *comm = recording_comm(process, op->comm);
	struct recording_flight flight = { .op = *op };

	if (op->state != OP_ISSUED && op->state != OP_LAUNCHED && op->state != OP_RUNNING)
		return false;
	/*
	 * Recorders write finished operations only; simulated traces of a hung job also contain operations in
	 * flight.
	 */
	if (found != RECORDING_IN_LIVE && (process->region || process->life == RECORDING_ENDED))
		return false;
	if (op->state != OP_RUNNING && comm &&
	    op->number < source->last_done[comm - process->comms])
		return false;
	for (size_t i = 0; found == RECORDING_IN_LIVE && i < process->flight_count; i++)
		if (process->flights[i].op.comm == op->comm &&
		    process->flights[i].op.number == op->number)
			flight.open_children = process->flights[i].open_children;
	return flight_kind(process, &flight) == FLIGHT_OPEN;
}

bool viewer_plan_is_inside(const struct viewer_plan *plan, const struct viewer_place *place)
{
	if (place->kind == VIEWER_NOWHERE)
		return plan->from_ns == 0 && plan->to_ns == UINT64_MAX;
	return place->start_ns < plan->to_ns && place->end_ns >= plan->from_ns;
}

bool viewer_plan_walked(struct viewer_plan *plan, uint64_t more)
{
	double fraction;

	plan->walked += more;
	/* Reports progress only occasionally. */
	if (plan->progress == NULL ||
	    plan->walked / PROGRESS_STEP == (plan->walked - more) / PROGRESS_STEP)
		return true;
	fraction = plan->to_walk ? (double)plan->walked / (double)plan->to_walk : 0;
	if (plan->progress(fraction < 1 ? fraction : 1, plan->progress_context))
		return true;
	plan->status = ERR_GONE;
	return false;
}

struct join {
	struct viewer_plan *plan;
	struct viewer_source *source;
};

/* The timeline starts with the first shown operation. */
static void begin_at(struct viewer_plan *plan, uint64_t ns)
{
	if (ns != 0 && (plan->origin_ns == 0 || ns < plan->origin_ns))
		plan->origin_ns = ns;
}

static void take_in(struct join *join, const struct op_record *op, const struct viewer_place *place)
{
	struct viewer_plan *plan = join->plan;
	const struct viewer_times *times = &join->source->times;

	plan->expected++;
	if (place->kind == VIEWER_NOWHERE)
		return;
	begin_at(plan, place->start_ns);
	if (plan->has_details)
		begin_at(plan, viewer_common_ns(times, op->active_ns));
	if (plan->has_calls)
		begin_at(plan, viewer_common_ns(times, op->issue_ns));
	if (place->kind == VIEWER_IN_FLIGHT && join->source->last_ns > plan->end_ns)
		plan->end_ns = join->source->last_ns;
	else if (place->kind != VIEWER_IN_FLIGHT && place->end_ns > plan->end_ns)
		plan->end_ns = place->end_ns;
}

static bool join_visit(const struct op_record *op, enum recording_place found, void *context)
{
	struct join *join = context;
	struct viewer_plan *plan = join->plan;
	const struct job_seat *seat = job_seat(plan->job, join->source->times.index, op->comm);
	bool is_shown = viewer_plan_has_seat(plan, seat);
	struct viewer_place place = viewer_place(&join->source->times, op,
						 viewer_plan_is_open(join->source, op, found));

	if (viewer_plan_is_inside(plan, &place)) {
		if (is_shown)
			take_in(join, op, &place);
		if (seat) {
			struct viewer_meet_op met = { op, seat, &place, is_shown };

			viewer_meet_add(&plan->meet, &met);
		}
	}
	if (plan->meet.status != OK)
		plan->status = plan->meet.status;
	return plan->status == OK && viewer_plan_walked(plan, 1);
}

enum status viewer_plan_join(struct viewer_plan *plan)
{
	for (size_t i = 0; i < plan->recording->count; i++) {
		const struct recording_process *process = plan->recording->processes[i];
		struct join join = { plan, &plan->sources[i] };
		enum status status = recording_each_op(process, join_visit, &join, NULL);

		if (status == OK)
			status = plan->status;
		if (status != OK)
			return status;
		for (size_t j = 0; j < process->file_count && plan->sources[i].is_shown; j++)
			plan->expected_details += process->files[j].details;
	}
	if (plan->origin_ns == 0)
		plan->origin_ns = plan->first_ns;
	if (plan->end_ns < plan->origin_ns)
		plan->end_ns = plan->origin_ns;
	return OK;
}
