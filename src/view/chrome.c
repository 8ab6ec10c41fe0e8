/*
 * Chrome's Trace Event Format.
 *
 *	{"displayTimeUnit":"ns","otherData":{...},"traceEvents":[
 *	{"ph":"M","pid":1,"tid":0,"ts":0,"name":"process_name","args":{"name":"rank 0 node01"}},
 *	{"ph":"X","pid":1,"tid":1,"ts":12.345,"dur":1.000,"name":"AllReduce 1 MiB",...},
 *	...
 *	]}
 *
 * ts and dur are microseconds. They are printed from whole nanoseconds, so that all three decimals
 * are exact. Each event has ph and ts: speedscope refuses a file with one that has not.
 */
#include "view/chrome.h"

#include <string.h>

#include "common/text.h"
#include "view/json.h"

static void put(struct viewer *viewer, const char *text)
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

/* A value by the writer that knows how to escape. */
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

/* An object. */
static void put_args(struct viewer *viewer, const struct viewer_args *args)
{
	sink_byte(viewer->sink, '{');
	for (size_t i = 0; args && i < args->count; i++) {
		put(viewer, i > 0 ? ",\"" : "\"");
		put(viewer, args->list[i].name);
		put(viewer, "\":");
		put_value(viewer, &args->list[i]);
	}
	sink_byte(viewer->sink, '}');
}

static void begin_event(struct viewer *viewer, const char *phase, uint32_t process, uint32_t track,
			uint64_t at_ns)
{
	put(viewer, viewer->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	viewer->has_events = true;
	put(viewer, phase);
	put(viewer, "\",\"pid\":");
	put_number(viewer, process);
	put(viewer, ",\"tid\":");
	put_number(viewer, track);
	put(viewer, ",\"ts\":");
	put_microseconds(viewer, at_ns);
}

static void put_name(struct viewer *viewer, const char *name, const char *category)
{
	put(viewer, ",\"name\":");
	put_string(viewer, name);
	if (category) {
		put(viewer, ",\"cat\":");
		put_string(viewer, category);
	}
}

/* Something that is said of a process or a track. */
static void put_fact(struct viewer *viewer, uint32_t process, uint32_t track, const char *fact,
		     const char *key, const char *text, int32_t number)
{
	begin_event(viewer, "M", process, track, 0);
	put_name(viewer, fact, NULL);
	put(viewer, ",\"args\":{\"");
	put(viewer, key);
	put(viewer, "\":");
	if (text)
		put_string(viewer, text);
	else
		sink_format(viewer->sink, "%d", (int)number);
	put(viewer, "}}");
}

void chrome_about(struct viewer *viewer, const struct viewer_args *args)
{
	put(viewer, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
	put_args(viewer, args);
	put(viewer, ",\"traceEvents\":[");
}

void chrome_process(struct viewer *viewer, const struct viewer_process *process)
{
	put_fact(viewer, process->process, 0, "process_name", "name", process->name, 0);
	put_fact(viewer, process->process, 0, "process_sort_index", "sort_index", NULL,
		 process->order);
	if (process->label)
		put_fact(viewer, process->process, 0, "process_labels", "labels", process->label,
			 0);
}

void chrome_track(struct viewer *viewer, const struct viewer_track *track)
{
	char name[256];

	if (track->unit)
		return; /* counters are known by the name that each value carries */
	if (track->lane > 1)
		text_format(name, sizeof(name), "%s (%u)", track->name, (unsigned int)track->lane);
	put_fact(viewer, track->process, track->track, "thread_name", "name",
		 track->lane > 1 ? name : track->name, 0);
	put_fact(viewer, track->process, track->track, "thread_sort_index", "sort_index", NULL,
		 track->order);
}

static const char *colour_name(enum viewer_colour colour)
{
	switch (colour) {
	case VIEWER_WAITING:
		return "grey";
	case VIEWER_UNFINISHED:
		return "terrible";
	case VIEWER_DOUBTFUL:
		return "bad";
	case VIEWER_PLAIN:
		break;
	}
	return NULL;
}

/* Behind their slice, so that a viewer that sorts by time alone finds it open. */
static void put_arrow(struct viewer *viewer, const struct viewer_slice *slice,
		      const struct viewer_arrow *arrow)
{
	begin_event(viewer, arrow->is_head ? "f" : "s", slice->process, slice->track, arrow->at_ns);
	put_name(viewer, "arrow", "arrow");
	sink_format(viewer->sink, ",\"id\":\"0x%llx\"%s}", (unsigned long long)arrow->number,
		    arrow->is_head ? ",\"bp\":\"e\"" : "");
}

void chrome_slice(struct viewer *viewer, const struct viewer_slice *slice)
{
	bool is_open = slice->end_ns == VIEWER_OPEN;
	const char *colour = colour_name(slice->colour);

	begin_event(viewer, is_open ? "B" : "X", slice->process, slice->track, slice->start_ns);
	if (!is_open) {
		put(viewer, ",\"dur\":");
		put_microseconds(viewer, slice->end_ns - slice->start_ns);
	}
	put_name(viewer, slice->name, slice->category);
	if (colour) {
		put(viewer, ",\"cname\":\"");
		put(viewer, colour);
		sink_byte(viewer->sink, '"');
	}
	put(viewer, ",\"args\":");
	put_args(viewer, slice->args);
	sink_byte(viewer->sink, '}');
	for (size_t i = 0; i < slice->arrow_count; i++)
		put_arrow(viewer, slice, &slice->arrows[i]);
}

void chrome_instant(struct viewer *viewer, const struct viewer_instant *instant)
{
	begin_event(viewer, "i", instant->process, instant->track, instant->at_ns);
	put_name(viewer, instant->name, instant->category);
	put(viewer, instant->process == 0 ? ",\"s\":\"g\""
		    : instant->track == 0 ? ",\"s\":\"p\""
					  : ",\"s\":\"t\"");
	put(viewer, ",\"args\":");
	put_args(viewer, instant->args);
	sink_byte(viewer->sink, '}');
}

void chrome_value(struct viewer *viewer, const struct viewer_track *track, uint64_t at_ns,
		  double value)
{
	struct viewer_arg arg = { .name = track->unit, .kind = VIEWER_DOUBLE, .real = value };
	struct viewer_args args = { .count = 1 };

	args.list[0] = arg;
	begin_event(viewer, "C", track->process, 0, at_ns);
	put_name(viewer, track->name, NULL);
	put(viewer, ",\"args\":");
	put_args(viewer, &args);
	sink_byte(viewer->sink, '}');
}

void chrome_end(struct viewer *viewer)
{
	put(viewer, "\n]}\n");
}
