#include "view/viewer.h"

#include <assert.h>
#include <math.h>

#include "view/chrome.h"
#include "view/gzip_sink.h"
#include "view/perfetto.h"

static struct viewer_arg *add_arg(struct viewer_args *args, const char *name,
				  enum viewer_arg_kind kind)
{
	/* One past the end to write to, so that nobody has to look. */
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

/* After every event: let what has gathered be compressed. */
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
