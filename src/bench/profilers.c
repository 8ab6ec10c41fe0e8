/* The comparison as a structure: names, lists, sums of rows. */
#include "bench/profilers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/profilers_parts.h"
#include "common/text.h"

static const char *const kind_names[PROFILERS_KINDS] = {
	[PROFILERS_NONE] = "none",	     [PROFILERS_RINGSIDE] = "ringside",
	[PROFILERS_INSPECTOR] = "inspector", [PROFILERS_COMMA] = "comma",
	[PROFILERS_NCCLSEE] = "ncclsee",     [PROFILERS_UNKNOWN] = "unknown",
};

const char *profilers_kind_name(unsigned int kind)
{
	return kind < PROFILERS_KINDS ? kind_names[kind] : "?";
}

unsigned int profilers_kind_find(const char *name)
{
	unsigned int kind = 0;

	while (kind < PROFILERS_KINDS && strcmp(kind_names[kind], name) != 0)
		kind++;
	return kind;
}

void *profilers_list_add(struct profilers_list *list, size_t most)
{
	size_t room = list->room ? list->room * 2 : 64;
	char *items = list->items;

	if (list->count >= most)
		return NULL;
	if (list->count == list->room) {
		items = realloc(items, room * list->size);
		if (items == NULL)
			return NULL;
		list->items = items;
		list->room = room;
	}
	items += list->count++ * list->size;
	memset(items, 0, list->size);
	return items;
}

void profilers_list_release(struct profilers_list *list)
{
	free(list->items);
	list->items = NULL;
	list->count = 0;
	list->room = 0;
}

void profilers_comparison_init(struct profilers_comparison *comparison)
{
	memset(comparison, 0, sizeof(*comparison));
}

void profilers_comparison_release(struct profilers_comparison *comparison)
{
	free(comparison->jobs);
	free(comparison->complete);
	free(comparison->accuracy);
	free(comparison->overhead);
	free(comparison->training);
	profilers_comparison_init(comparison);
}

struct profilers *profilers_new(void)
{
	struct profilers *work = calloc(1, sizeof(*work));

	if (work == NULL)
		return NULL;
	work->complete.size = sizeof(struct profilers_complete);
	work->samples.size = sizeof(struct profilers_sample);
	work->ratios.size = sizeof(struct profilers_ratios);
	work->jobs.size = sizeof(struct profilers_jobs);
	work->trainings.size = sizeof(struct profilers_training);
	text_copy(work->out.plugins[0].label, sizeof(work->out.plugins[0].label), "no plugin");
	work->out.plugins[0].kind = PROFILERS_NONE;
	work->out.plugin_count = 1;
	return work;
}

void profilers_free(struct profilers *work)
{
	if (work == NULL)
		return;
	for (size_t i = 0; i < work->samples.count; i++)
		free(((struct profilers_sample *)work->samples.items)[i].values);
	for (size_t i = 0; i < work->ratios.count; i++)
		free(((struct profilers_ratios *)work->ratios.items)[i].values);
	profilers_list_release(&work->complete);
	profilers_list_release(&work->samples);
	profilers_list_release(&work->ratios);
	profilers_list_release(&work->jobs);
	profilers_list_release(&work->trainings);
	profilers_comparison_release(&work->out);
	free(work);
}

size_t profilers_plugin(struct profilers *work, const char *label, const char *path,
			enum profilers_kind kind)
{
	struct profilers_plugin *plugin;

	if (work->out.plugin_count == PROFILERS_PLUGINS_MAX)
		return 0;
	plugin = &work->out.plugins[work->out.plugin_count];
	text_copy(plugin->label, sizeof(plugin->label), label);
	text_copy(plugin->path, sizeof(plugin->path), path);
	plugin->kind = (uint8_t)kind;
	return work->out.plugin_count++;
}

void profilers_command(struct profilers *work, const char *command)
{
	text_copy(work->out.command, sizeof(work->out.command), command);
}

/* One that is there already is not added again. */
static void add_line(struct profilers *work, char lines[][PROFILERS_TEXT_BYTES], size_t *count,
		     const char *format, va_list arguments) PRINTF_LIKE(4, 0);

static void add_line(struct profilers *work, char lines[][PROFILERS_TEXT_BYTES], size_t *count,
		     const char *format, va_list arguments)
{
	char line[PROFILERS_TEXT_BYTES] = "";

	vsnprintf(line, sizeof(line), format, arguments);
	for (size_t i = 0; i < *count; i++)
		if (strcmp(lines[i], line) == 0)
			return;
	if (*count == PROFILERS_NOTES_MAX) {
		work->out.notes_lost++;
		return;
	}
	memcpy(lines[(*count)++], line, sizeof(line));
}

void profilers_not_run(struct profilers *work, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_line(work, work->out.not_run, &work->out.not_run_count, format, arguments);
	va_end(arguments);
}

void profilers_note(struct profilers *work, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_line(work, work->out.notes, &work->out.note_count, format, arguments);
	va_end(arguments);
}

static bool is_wanted(const struct profilers_complete *row, const struct profilers_which *which)
{
	return (which->plugin == PROFILERS_ALL || which->plugin == row->plugin) &&
	       (which->mode == PROFILERS_ALL || which->mode == row->mode) &&
	       (which->function == PROFILERS_ALL || which->function == row->function) &&
	       (which->rank == PROFILERS_ALL || which->rank == row->rank) &&
	       (which->is_any_size ||
		(which->bytes == row->bytes && which->bytes_to == row->bytes_to && !row->is_align));
}

struct profilers_counts profilers_counts(const struct profilers_comparison *comparison,
					 const struct profilers_which *which)
{
	struct profilers_counts sum = { 0 };

	for (size_t i = 0; i < comparison->complete_count; i++) {
		const struct profilers_complete *row = &comparison->complete[i];

		if (!is_wanted(row, which))
			continue;
		sum.issued += row->counts.issued;
		sum.recorded += row->counts.recorded;
		sum.untimed += row->counts.untimed;
		sum.missing += row->counts.missing;
		sum.excess += row->counts.excess;
	}
	return sum;
}

double profilers_share(const struct profilers_counts *counts)
{
	if (counts->issued == 0)
		return 1;
	return (double)(counts->issued - counts->missing) / (double)counts->issued;
}

const struct profilers_jobs *profilers_jobs_of(const struct profilers_comparison *comparison,
					       unsigned int plugin, unsigned int mode)
{
	for (size_t i = 0; i < comparison->job_count; i++)
		if (comparison->jobs[i].plugin == plugin && comparison->jobs[i].mode == mode)
			return &comparison->jobs[i];
	return NULL;
}

bool profilers_is_judged(const struct profilers_comparison *comparison, unsigned int plugin,
			 unsigned int mode)
{
	const struct profilers_jobs *jobs = profilers_jobs_of(comparison, plugin, mode);

	return jobs && comparison->plugins[plugin].kind != PROFILERS_NONE &&
	       comparison->plugins[plugin].kind != PROFILERS_UNKNOWN &&
	       jobs->read + jobs->silent > 0;
}
