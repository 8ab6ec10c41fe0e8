/*
 * Each trace is read once to learn whose it is, which threads and streams it has, and what ran on the GPU; and once more
 * when it is written to a timeline, because a trace can be larger than the memory.
 *
 * One clock. Kineto converts its times to CLOCK_REALTIME, and the recorder knows that clock from its anchors, so the
 * two should agree. That is checked: NCCL launches its kernel while the program is in the call that we recorded, so
 *
 *	our call        issue |-------------------------| launch returned
 *	Kineto                    |- cudaLaunchKernelExC -|  start, end
 *
 * gives one interval of possible offsets for each launch: [issue - start, launch - end]. The offset that most launches
 * allow (the method of Marzullo) is the offset of the clocks; it is 0 if 0 is among them. If fewer than 4 of 5 launches
 * allow it the trace is of something else, and refused. A trace without launches (of the host alone) has PyTorch's own
 * calls, record_param_comms, in which ours must lie.
 */
#include "cmds/torch_trace.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/search.h"
#include "common/text.h"
#include "import/json_scan.h"

enum {
	TRACKS_MAX = 4096,
	GROUPS_MAX = 1024,
	SPANS_MAX = 1 << 24,	  /* launches kept */
	SAMPLES_MAX = 4096,	  /* launches compared */
	LEAST_SAMPLES = 3,	  /* fewer prove nothing */
	SLACK_NS = 5000,	  /* CUPTI's times, converted */
	BLIND_NS = 500000,	  /* around a call whose launch was not recorded */
	TRACK_FIRST = 1 << 28,	  /* above the recording's own tracks */
	TRACKS_OF_FILE = 1 << 13, /* at least TRACKS_MAX */
	ARGS_BYTES = 4096,	  /* of one event; longer ones are cut */
	TRACK_ORDER = 1 << 24,	  /* below the recording's own tracks */
};
static const int64_t farthest_ns = 20 * 1000 * 1000; /* offsets of clocks that are looked for */
static const double agreeing_share = 0.8;

/* ---- the command line ------------------------------------------------------------------------ */

static void add_path(struct torch_traces *traces, const char *path)
{
	struct torch_trace *trace;

	if (!list_grow(&traces->list, traces->count, sizeof(*traces->list)))
		cli_no_memory();
	trace = &traces->list[traces->count++];
	*trace = (struct torch_trace){ .path = strdup(path), .pid = -1 };
	if (trace->path == NULL)
		cli_no_memory();
}

static bool is_trace_name(const char *name)
{
	return text_ends_with(name, ".json") || text_ends_with(name, ".json.gz");
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static int add_directory(struct torch_traces *traces, const char *directory)
{
	size_t before = traces->count;
	struct dirent **names;
	int count = scandir(directory, &names, NULL, by_name);

	if (count < 0)
		return cli_error("%s: %s", directory, strerror(errno));
	for (int i = 0; i < count; i++) {
		char path[4096];

		if (is_trace_name(names[i]->d_name) &&
		    text_format(path, sizeof(path), "%s/%s", directory, names[i]->d_name))
			add_path(traces, path);
		free(names[i]);
	}
	free(names);
	if (traces->count == before)
		return cli_error("%s: no .json or .json.gz in it", directory);
	return 0;
}

/* `target` is a struct torch_traces. */
int torch_traces_take(const struct cli_said *said)
{
	struct torch_traces *traces = said->target;
	struct stat stat_of;

	if (!file_examine(-1, said->value, &stat_of))
		return cli_error("%s: %s", said->value, file_error_text(errno));
	if (S_ISDIR(stat_of.st_mode))
		return add_directory(traces, said->value);
	add_path(traces, said->value);
	return 0;
}

static void free_survey(struct torch_trace *trace);

void torch_traces_release(struct torch_traces *traces)
{
	for (size_t i = 0; i < traces->count; i++) {
		free(traces->list[i].path);
		free(traces->list[i].tracks);
		free_survey(&traces->list[i]);
		exposed_release(&traces->list[i].activity);
	}
	free(traces->list);
	*traces = (struct torch_traces){ .list = NULL };
}

/* ---- the first reading ----------------------------------------------------------------------- */

/* On the trace's own time: ns after its base. */
struct span {
	uint64_t start_ns;
	uint64_t end_ns;
};

struct launch {
	uint64_t correlation;
	struct span span;
	uint32_t group; /* of NCCL's kernels: index into the survey's groups + 1; 0: unknown */
};

struct torch_survey {
	struct torch_trace *trace;
	struct launch *launches; /* of any kernel; its correlation decides */
	size_t launch_count;
	struct launch *comms; /* NCCL's kernels */
	size_t comm_count;
	struct span *computes;
	size_t compute_count;
	struct span *calls; /* record_param_comms */
	size_t call_count;
	uint64_t first_ns; /* of anything */
	uint64_t last_ns;
	uint64_t host_first_ns; /* of what the host did */
	uint64_t host_last_ns;
	char (*groups)[KINETO_GROUP_NAME]; /* names of process groups */
	size_t group_count;
	struct torch_track *labels; /* names of threads */
	size_t label_count;
	size_t last_track; /* events of a track follow each other */
	bool is_full;
};

static bool is_on_gpu(const struct kineto_event *event)
{
	return event->kind == KINETO_KERNEL || event->kind == KINETO_MEMCPY ||
	       event->kind == KINETO_MEMSET || event->kind == KINETO_GPU_ANNOTATION ||
	       event->kind == KINETO_SYNC;
}

static bool is_track(const struct torch_track *track, const struct kineto_event *event)
{
	/* In a container a process can have the number of a GPU. */
	return track->tid == event->tid && track->pid == event->pid &&
	       track->is_gpu == is_on_gpu(event) &&
	       track->is_annotation == (event->kind == KINETO_GPU_ANNOTATION);
}

/* Its track, made if new; NULL: too many. */
static struct torch_track *track_of(struct torch_trace *trace, const struct kineto_event *event,
				    size_t *last, bool may_add)
{
	struct torch_track *track;

	if (*last < trace->track_count && is_track(&trace->tracks[*last], event))
		return &trace->tracks[*last];
	for (*last = 0; *last < trace->track_count; ++*last)
		if (is_track(&trace->tracks[*last], event))
			return &trace->tracks[*last];
	if (!may_add || trace->track_count == TRACKS_MAX)
		return NULL;
	if (!list_grow(&trace->tracks, trace->track_count, sizeof(*trace->tracks)))
		cli_no_memory();
	track = &trace->tracks[trace->track_count++];
	*track = (struct torch_track){ .pid = event->pid,
				       .tid = event->tid,
				       .is_gpu = is_on_gpu(event),
				       .is_annotation = event->kind == KINETO_GPU_ANNOTATION };
	return track;
}

static bool is_launch(const struct kineto_event *event)
{
	/* A graph's launch starts many kernels, whose calls were captured before. */
	return event->kind == KINETO_RUNTIME && event->correlation != 0 &&
	       (strncmp(event->name, "cudaLaunchKernel", 16) == 0 ||
		strncmp(event->name, "cuLaunchKernel", 14) == 0);
}

static void keep_span(struct torch_survey *survey, struct span **list, size_t *count,
		      struct span span)
{
	if (*count == SPANS_MAX) {
		survey->is_full = true;
		return;
	}
	if (!list_grow(list, *count, sizeof(span)))
		cli_no_memory();
	(*list)[(*count)++] = span;
}

/* The number of a process group, from 1; 0: it has no name, or there are too many. */
static uint32_t group_of(struct torch_survey *survey, const char *name)
{
	size_t at = 0;

	while (at < survey->group_count && strcmp(survey->groups[at], name) != 0)
		at++;
	if (name[0] == '\0' || at == GROUPS_MAX)
		return 0;
	if (at == survey->group_count) {
		if (!list_grow(&survey->groups, at, sizeof(*survey->groups)))
			cli_no_memory();
		text_copy(survey->groups[survey->group_count++], KINETO_GROUP_NAME, name);
	}
	return (uint32_t)at + 1;
}

static void keep_launch(struct torch_survey *survey, struct launch **list, size_t *count,
			const struct kineto_event *event)
{
	if (*count == SPANS_MAX) {
		survey->is_full = true;
		return;
	}
	if (!list_grow(list, *count, sizeof(**list)))
		cli_no_memory();
	(*list)[(*count)++] =
		(struct launch){ event->correlation,
				 { event->start_ns, event->start_ns + event->duration_ns },
				 event->is_nccl ? group_of(survey, event->group) : 0 };
}

static void widen(uint64_t *first_ns, uint64_t *last_ns, const struct kineto_event *event)
{
	uint64_t end_ns = event->start_ns + event->duration_ns;

	if (event->start_ns < *first_ns)
		*first_ns = event->start_ns;
	if (end_ns > *last_ns)
		*last_ns = end_ns;
}

static void keep_label(struct torch_survey *survey, const struct kineto_event *event)
{
	struct torch_track *label;

	if (strcmp(event->name, "thread_name") != 0 || !event->has_place ||
	    survey->label_count == TRACKS_MAX)
		return;
	if (!list_grow(&survey->labels, survey->label_count, sizeof(*survey->labels)))
		cli_no_memory();
	label = &survey->labels[survey->label_count++];
	*label = (struct torch_track){ .pid = event->pid, .tid = event->tid };
	text_copy(label->label, sizeof(label->label), event->label);
}

/* The names come before or after the events. */
static void name_tracks(struct torch_survey *survey)
{
	for (size_t i = 0; i < survey->trace->track_count; i++) {
		struct torch_track *track = &survey->trace->tracks[i];

		for (size_t j = 0; j < survey->label_count; j++)
			if (survey->labels[j].pid == track->pid &&
			    survey->labels[j].tid == track->tid)
				memcpy(track->label, survey->labels[j].label, sizeof(track->label));
	}
}

static bool survey_event(const struct kineto_event *event, void *context)
{
	struct torch_survey *survey = context;
	struct torch_trace *trace = survey->trace;
	struct span span = { event->start_ns, event->start_ns + event->duration_ns };

	if (event->phase == KINETO_METADATA) {
		keep_label(survey, event);
		return true;
	}
	if (event->phase != KINETO_SLICE || !event->has_place)
		return true;
	if (track_of(trace, event, &survey->last_track, true) == NULL)
		return true;
	widen(&survey->first_ns, &survey->last_ns, event);
	if (event->kind == KINETO_CPU_OP || event->kind == KINETO_RUNTIME) {
		if (trace->pid == -1)
			trace->pid = event->pid;
		widen(&survey->host_first_ns, &survey->host_last_ns, event);
	}
	if (is_launch(event))
		keep_launch(survey, &survey->launches, &survey->launch_count, event);
	else if (event->is_nccl)
		keep_launch(survey, &survey->comms, &survey->comm_count, event);
	else if (event->kind == KINETO_KERNEL)
		keep_span(survey, &survey->computes, &survey->compute_count, span);
	else if (event->kind == KINETO_CPU_OP && strcmp(event->name, "record_param_comms") == 0)
		keep_span(survey, &survey->calls, &survey->call_count, span);
	return true;
}

static int by_correlation(const void *left, const void *right)
{
	const struct launch *a = left, *b = right;

	return ORDER(a->correlation, b->correlation);
}

static const struct launch *launch_of(const struct torch_survey *survey, uint64_t correlation)
{
	struct launch key = { .correlation = correlation };

	if (survey->launch_count == 0)
		return NULL;
	return bsearch(&key, survey->launches, survey->launch_count, sizeof(key), by_correlation);
}

static void survey_release(struct torch_survey *survey)
{
	free(survey->launches);
	free(survey->comms);
	free(survey->computes);
	free(survey->calls);
	free(survey->groups);
	free(survey->labels);
}

static void free_survey(struct torch_trace *trace)
{
	if (trace->survey != NULL)
		survey_release(trace->survey);
	free(trace->survey);
	trace->survey = NULL;
}

/* Says why a file cannot be read. */
static int complain(const struct torch_trace *trace, enum status status)
{
	const struct kineto_about *about = &trace->about;

	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status == ERR_SYSTEM && errno == EBADMSG)
		return cli_error("%s: the compressed data is damaged", trace->path);
	if (status == ERR_SYSTEM)
		return cli_error("%s: %s", trace->path, strerror(errno));
	return cli_error("%s: not a trace of torch.profiler: %s, at byte %llu", trace->path,
			 about->problem ? about->problem : status_text(status),
			 (unsigned long long)about->offset);
}

static int survey_file(struct torch_survey *survey)
{
	struct torch_trace *trace = survey->trace;
	enum status status = kineto_read(trace->path, &trace->about, survey_event, survey);

	if (status != OK)
		return complain(trace, status);
	if (survey->last_ns == 0)
		return cli_error("%s: no event with a time in it", trace->path);
	if (survey->is_full)
		return cli_error("%s: more than %u kernels: profile fewer iterations", trace->path,
				 (unsigned int)SPANS_MAX);
	name_tracks(survey);
	trace->first_ns = trace->about.base_ns + survey->first_ns;
	trace->last_ns = trace->about.base_ns + survey->last_ns;
	if (survey->launch_count > 1)
		qsort(survey->launches, survey->launch_count, sizeof(*survey->launches),
		      by_correlation);
	return 0;
}

/* ---- whose it is ----------------------------------------------------------------------------- */

static bool is_of(const struct torch_trace *trace, const struct recording_process *process)
{
	if (trace->about.rank >= 0 && process->rank >= 0 && trace->about.rank != process->rank)
		return false;
	if (trace->pid >= 0 && process->pid > 0 && trace->pid != process->pid)
		return false;
	return (trace->about.rank >= 0 && process->rank >= 0) ||
	       (trace->pid >= 0 && process->pid > 0);
}

static bool is_in_time(const struct torch_trace *trace, const struct recording_process *process)
{
	uint64_t last_ns;

	return recording_wall_ns(process, recording_last_ns(process), &last_ns) &&
	       trace->first_ns < last_ns && trace->last_ns > process->started_wall_ns;
}

static const struct recording_process *with_rank(const struct recording *recording, int64_t rank)
{
	for (size_t i = 0; i < recording->count; i++)
		if (rank >= 0 && recording->processes[i]->rank == rank)
			return recording->processes[i];
	return NULL;
}

static int find_process(struct torch_trace *trace, const struct recording *recording)
{
	const struct recording_process *like, *found = NULL;

	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		/* In containers two runs can have the same numbers. */
		if (!is_of(trace, process) || (found != NULL && !is_in_time(trace, process)))
			continue;
		if (found != NULL && is_in_time(trace, found))
			return cli_error("%s: several processes of the recording could have "
					 "written it",
					 trace->path);
		found = process;
	}
	trace->owner = found;
	if (found != NULL)
		return 0;
	like = with_rank(recording, trace->about.rank);
	if (like != NULL && trace->pid >= 0)
		return cli_error("%s: of rank %lld, process %lld; rank %lld of the recording is "
				 "process %lld: another run",
				 trace->path, (long long)trace->about.rank, (long long)trace->pid,
				 (long long)like->rank, (long long)like->pid);
	if (trace->about.rank >= 0)
		return cli_error("%s: of rank %lld, which is not in the recording", trace->path,
				 (long long)trace->about.rank);
	if (trace->pid >= 0)
		return cli_error("%s: of process %lld, which is not in the recording", trace->path,
				 (long long)trace->pid);
	return cli_error("%s: does not say of which rank or process it is", trace->path);
}

/* ---- one clock ------------------------------------------------------------------------------- */

/* Our calls, on the wall clock. */
struct windows_of_calls {
	const struct recording_process *process;
	struct span *list;
	size_t count;
	uint64_t first_ns; /* of all operations */
	uint64_t last_ns;
	uint64_t from_ns; /* only these are kept */
	uint64_t to_ns;
};

static bool take_call(const struct op_record *op, enum recording_place place, void *context)
{
	struct windows_of_calls *calls = context;
	uint64_t launch_ns = op->launch_ns >= op->issue_ns ? op->launch_ns : 0;
	uint64_t end_ns = op->done_ns > op->issue_ns ? op->done_ns : op->issue_ns;
	struct span span;

	(void)place;
	if (op->issue_ns == 0 || op->flags & OP_FLAG_REPLAY ||
	    !recording_wall_ns(calls->process, op->issue_ns, &span.start_ns) ||
	    !recording_wall_ns(calls->process, launch_ns ? launch_ns : op->issue_ns,
			       &span.end_ns) ||
	    !recording_wall_ns(calls->process, end_ns, &end_ns))
		return true;
	if (span.start_ns < calls->first_ns)
		calls->first_ns = span.start_ns;
	if (end_ns > calls->last_ns)
		calls->last_ns = end_ns;
	if (span.end_ns < calls->from_ns || span.start_ns > calls->to_ns)
		return true;
	if (launch_ns == 0) {
		span.start_ns -= BLIND_NS;
		span.end_ns += BLIND_NS;
	}
	if (!list_grow(&calls->list, calls->count, sizeof(*calls->list)))
		cli_no_memory();
	calls->list[calls->count++] = span;
	return true;
}

static int by_span(const void *left, const void *right)
{
	const struct span *a = left, *b = right;

	return ORDER(a->start_ns, b->start_ns) ?: ORDER(a->end_ns, b->end_ns);
}

/* One end of an interval of possible offsets. */
struct edge {
	int64_t ns;
	int step; /* 1: begins, -1: ends */
};

static int by_edge(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	/* What begins where another ends overlaps it. */
	return ORDER(a->ns, b->ns) ?: ORDER(b->step, a->step);
}

struct vote {
	struct edge *edges;
	size_t count;
	size_t samples;
};

static void add_interval(struct vote *vote, int64_t from_ns, int64_t to_ns)
{
	if (!list_grow(&vote->edges, vote->count, sizeof(*vote->edges)))
		cli_no_memory();
	vote->edges[vote->count++] = (struct edge){ from_ns, 1 };
	if (!list_grow(&vote->edges, vote->count, sizeof(*vote->edges)))
		cli_no_memory();
	vote->edges[vote->count++] = (struct edge){ to_ns, -1 };
}

/* The first call that begins at `ns` or later. */
static size_t first_from(const struct windows_of_calls *calls, uint64_t ns)
{
	return SEARCH_FIRST(i, calls->count, calls->list[i].start_ns >= ns);
}

/*
 * The offsets with which a sample lies within one of our calls (or one of ours within it). Each is counted once,
 * however many calls of a group allow it.
 */
static void vote_for(struct vote *vote, const struct windows_of_calls *calls,
		     const struct span *sample, bool is_around)
{
	uint64_t reach = (uint64_t)farthest_ns + 1000 * MS_NS;
	int64_t from = 0, to = INT64_MIN;

	for (size_t i = first_from(calls, sample->start_ns > reach ? sample->start_ns - reach : 0);
	     i < calls->count && calls->list[i].start_ns < sample->end_ns + reach; i++) {
		const struct span *call = &calls->list[i];
		int64_t low = (int64_t)(call->start_ns - sample->start_ns) - SLACK_NS;
		int64_t high = (int64_t)(call->end_ns - sample->end_ns) + SLACK_NS;

		/* Around: the sample begins before our call and ends after it was issued. */
		if (is_around) {
			low = (int64_t)(call->start_ns - sample->end_ns) - SLACK_NS;
			high = (int64_t)(call->start_ns - sample->start_ns) + SLACK_NS;
		}
		if (low > high || high < -farthest_ns || low > farthest_ns)
			continue;
		if (to != INT64_MIN && low <= to) {
			to = high > to ? high : to;
			continue;
		}
		if (to != INT64_MIN)
			add_interval(vote, from, to);
		from = low;
		to = high;
	}
	if (to != INT64_MIN)
		add_interval(vote, from, to);
	vote->samples++;
}

static int64_t distance(int64_t from, int64_t to)
{
	if (from <= 0 && to >= 0)
		return 0;
	return from > 0 ? from : -to;
}

/* The offsets that most samples allow; the nearest to 0 of several. Returns how many allow them. */
static size_t count_votes(struct vote *vote, int64_t *from, int64_t *to)
{
	size_t best = 0;

	if (vote->count > 0)
		qsort(vote->edges, vote->count, sizeof(*vote->edges), by_edge);
	for (int pass = 0; pass < 2; pass++) {
		bool is_first = true;
		size_t open = 0;

		for (size_t i = 0; i < vote->count; i++) {
			open += (size_t)vote->edges[i].step;
			if (pass == 0 && open > best)
				best = open;
			if (pass == 0 || vote->edges[i].step < 0 || open < best ||
			    i + 1 == vote->count)
				continue;
			if (is_first || distance(vote->edges[i].ns, vote->edges[i + 1].ns) <
						distance(*from, *to)) {
				*from = vote->edges[i].ns;
				*to = vote->edges[i + 1].ns;
				is_first = false;
			}
		}
	}
	return best;
}

/* Launches of NCCL's kernels, or PyTorch's calls, on the wall clock; those in the time of the recording. */
static size_t collect_samples(const struct torch_survey *survey,
			      const struct windows_of_calls *calls, struct span *samples,
			      enum torch_clock clock)
{
	uint64_t base_ns = survey->trace->about.base_ns;
	size_t all = clock == TORCH_CLOCK_LAUNCHES ? survey->comm_count : survey->call_count;
	size_t step = all / SAMPLES_MAX + 1, count = 0;

	for (size_t i = 0; i < all; i += step) {
		const struct span *span;

		if (clock == TORCH_CLOCK_LAUNCHES) {
			const struct launch *launch =
				launch_of(survey, survey->comms[i].correlation);

			span = launch ? &launch->span : NULL;
		} else {
			span = &survey->calls[i];
		}
		if (span == NULL ||
		    base_ns + span->start_ns + (uint64_t)farthest_ns < calls->first_ns ||
		    base_ns + span->end_ns > calls->last_ns + (uint64_t)farthest_ns)
			continue;
		samples[count++] =
			(struct span){ base_ns + span->start_ns, base_ns + span->end_ns };
	}
	return count;
}

static int compare_clocks(struct torch_trace *trace, const struct torch_survey *survey,
			  const struct windows_of_calls *calls)
{
	struct span *samples = cli_realloc(NULL, (SAMPLES_MAX + 1) * sizeof(*samples));
	struct vote vote = { .edges = NULL };
	size_t count;
	int64_t from = 0, to = 0;

	trace->clock = TORCH_CLOCK_LAUNCHES;
	count = collect_samples(survey, calls, samples, trace->clock);
	if (count < LEAST_SAMPLES) {
		trace->clock = TORCH_CLOCK_CALLS;
		count = collect_samples(survey, calls, samples, trace->clock);
	}
	for (size_t i = 0; i < count; i++)
		vote_for(&vote, calls, &samples[i], trace->clock == TORCH_CLOCK_CALLS);
	free(samples);
	trace->compared = count;
	trace->agreed = count_votes(&vote, &from, &to);
	free(vote.edges);
	if (count < LEAST_SAMPLES) {
		trace->clock = TORCH_CLOCK_WALL;
		return 0;
	}
	if ((double)trace->agreed < agreeing_share * (double)count)
		return cli_error("%s: does not belong to this recording: of %zu NCCL calls in it, "
				 "%zu are in the recording of process %lld",
				 trace->path, count, (size_t)trace->agreed,
				 (long long)calls->process->pid);
	if (from > 0 || to < 0)
		trace->offset_ns = from + (to - from) / 2;
	trace->within_ns =
		(uint64_t)(trace->offset_ns - from > to - trace->offset_ns ? trace->offset_ns - from
									   : to - trace->offset_ns);
	return 0;
}

static int join_clock(struct torch_trace *trace, const struct torch_survey *survey)
{
	const struct recording_process *process = trace->owner;
	struct windows_of_calls calls = {
		.process = process,
		.first_ns = UINT64_MAX,
		.from_ns = trace->first_ns - 1000 * MS_NS,
		.to_ns = trace->last_ns + 1000 * MS_NS,
	};
	char times[4][UNITS_TEXT];
	int failed;

	if (process->anchor_count == 0)
		return cli_error("%s: the recording of process %lld has no wall clock", trace->path,
				 (long long)process->pid);
	if (recording_each_op(process, take_call, &calls, NULL) != OK || calls.last_ns == 0) {
		free(calls.list);
		return cli_error("%s: the recording of process %lld has no operation", trace->path,
				 (long long)process->pid);
	}
	if (trace->first_ns > calls.last_ns || trace->last_ns < calls.first_ns) {
		free(calls.list);
		return cli_error("%s: no overlap in time: it covers %s to %s, the recording of "
				 "process %lld %s to %s",
				 trace->path, units_date(times[0], trace->first_ns),
				 units_clock(times[1], trace->last_ns), (long long)process->pid,
				 units_date(times[2], calls.first_ns),
				 units_clock(times[3], calls.last_ns));
	}
	if (calls.count > 1)
		qsort(calls.list, calls.count, sizeof(*calls.list), by_span);
	failed = compare_clocks(trace, survey, &calls);
	free(calls.list);
	return failed;
}

void torch_trace_clock_text(const struct torch_trace *trace, char *text, size_t size)
{
	char within[UNITS_TEXT], offset[UNITS_TEXT];
	const char *what = trace->clock == TORCH_CLOCK_LAUNCHES ? "launches of NCCL's kernels"
								: "calls of collectives";

	if (trace->clock == TORCH_CLOCK_WALL) {
		text_copy(text, size, "placed by wall clocks, not checked: too few calls of NCCL");
		return;
	}
	units_duration(within, trace->within_ns);
	units_duration(offset, (uint64_t)llabs((long long)trace->offset_ns));
	if (trace->offset_ns == 0)
		text_format(text, size, "clocks agree within %s", within);
	else
		text_format(text, size, "moved by %s%s, known within %s",
			    trace->offset_ns < 0 ? "-" : "", offset, within);
	text_append(text, size, ": %llu of %llu %s fit", (unsigned long long)trace->agreed,
		    (unsigned long long)trace->compared, what);
}

/* The trace's time to the common time of all ranks; 0: unknown. */
static uint64_t common_ns(const struct torch_traces *traces, const struct torch_trace *trace,
			  uint64_t own_ns)
{
	const struct recording_process *process = trace->owner;
	uint64_t wall_ns = trace->about.base_ns + own_ns + (uint64_t)trace->offset_ns, clock_ns;

	if (!recording_clock_ns(process, wall_ns, &clock_ns))
		return 0;
	return align_ns(traces->align, trace->process, clock_ns);
}

static void keep_activity(const struct torch_traces *traces, struct torch_trace *trace,
			  const struct torch_survey *survey)
{
	struct exposed_activity *activity = &trace->activity;
	bool is_kept = true;

	for (size_t i = 0; i < survey->compute_count && is_kept; i++) {
		const struct span *span = &survey->computes[i];
		uint64_t start_ns = common_ns(traces, trace, span->start_ns);

		is_kept = exposed_add_compute(activity, start_ns,
					      start_ns + span->end_ns - span->start_ns);
	}
	for (size_t i = 0; i < survey->comm_count && is_kept; i++) {
		const struct launch *comm = &survey->comms[i];
		const struct launch *launch = launch_of(survey, comm->correlation);
		uint64_t start_ns = common_ns(traces, trace, comm->span.start_ns);
		/* Without its launch (a graph): when it ran. */
		uint64_t called_ns =
			launch ? common_ns(traces, trace, launch->span.start_ns) : start_ns;

		is_kept = exposed_add_comm(activity, called_ns, start_ns,
					   start_ns + comm->span.end_ns - comm->span.start_ns);
	}
	if (!is_kept)
		cli_no_memory();
	if (survey->host_last_ns > 0) {
		activity->first_ns = common_ns(traces, trace, survey->host_first_ns);
		activity->last_ns = common_ns(traces, trace, survey->host_last_ns);
	}
	exposed_finish(activity);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* How many of a communicator's launches were of each process group. */
struct naming {
	const struct torch_survey *survey;
	const struct recording_process *process;
	uint32_t *votes;	 /* [communicator of the process][group] */
	struct launch *launches; /* of NCCL's kernels, on the wall clock, by time */
	size_t count;
};

static int by_launch(const void *left, const void *right)
{
	const struct launch *a = left, *b = right;

	return by_span(&a->span, &b->span);
}

/* The launch within a call says to which group the call's communicator belongs. */
static bool vote_name(const struct op_record *op, enum recording_place place, void *context)
{
	struct naming *naming = context;
	const struct recording_comm *comm = recording_comm(naming->process, op->comm);
	struct launch key = { .correlation = 0 };
	uint64_t end_ns;
	size_t first;

	(void)place;
	if (comm == NULL || op->issue_ns == 0 || op->launch_ns <= op->issue_ns ||
	    op->flags & OP_FLAG_REPLAY ||
	    !recording_wall_ns(naming->process, op->issue_ns, &key.span.start_ns) ||
	    !recording_wall_ns(naming->process, op->launch_ns, &end_ns))
		return true;
	first = SEARCH_FIRST(i, naming->count,
			     naming->launches[i].span.start_ns >= key.span.start_ns);
	if (first < naming->count && naming->launches[first].span.end_ns <= end_ns + SLACK_NS &&
	    naming->launches[first].group > 0)
		naming->votes[(size_t)(comm - naming->process->comms) *
				      naming->survey->group_count +
			      naming->launches[first].group - 1]++;
	return true;
}

/* In every process that has this communicator. */
static void give_name(struct recording *recording, const struct comm_info *of, const char *name)
{
	for (size_t i = 0; i < recording->count; i++)
		for (size_t j = 0; j < recording->processes[i]->comm_count; j++) {
			struct comm_info *info = &recording->processes[i]->comms[j].info;

			if (info->hash == of->hash && info->hash != 0 && info->name[0] == '\0')
				text_copy(info->name, sizeof(info->name), name);
		}
}

static void name_comms(const struct torch_trace *trace, const struct torch_survey *survey,
		       struct recording *recording)
{
	const struct recording_process *process = trace->owner;
	struct naming naming = { .survey = survey, .process = process };

	if (survey->group_count == 0 || survey->comm_count == 0)
		return;
	naming.votes = calloc(process->comm_count * survey->group_count + 1, sizeof(uint32_t));
	naming.launches = calloc(survey->comm_count, sizeof(*naming.launches));
	if (naming.votes == NULL || naming.launches == NULL)
		cli_no_memory();
	for (size_t i = 0; i < survey->comm_count; i++) {
		const struct launch *launch = launch_of(survey, survey->comms[i].correlation);
		uint64_t shift_ns = trace->about.base_ns + (uint64_t)trace->offset_ns;

		if (launch == NULL)
			continue;
		naming.launches[naming.count] = *launch;
		naming.launches[naming.count].span.start_ns += shift_ns;
		naming.launches[naming.count].span.end_ns += shift_ns;
		naming.launches[naming.count++].group = survey->comms[i].group;
	}
	qsort(naming.launches, naming.count, sizeof(*naming.launches), by_launch);
	recording_each_op(process, vote_name, &naming, NULL);
	for (size_t c = 0; c < process->comm_count; c++) {
		const uint32_t *votes = naming.votes + c * survey->group_count;
		uint64_t all = 0;
		size_t most = 0;

		for (size_t g = 0; g < survey->group_count; g++) {
			all += votes[g];
			most = votes[g] > votes[most] ? g : most;
		}
		/* All of them, or none: a communicator has one name. */
		if (all >= LEAST_SAMPLES && votes[most] == all)
			give_name(recording, &process->comms[c].info, survey->groups[most]);
	}
	free(naming.votes);
	free(naming.launches);
}

int torch_traces_open(struct torch_traces *traces, struct recording *recording)
{
	for (size_t i = 0; i < traces->count; i++) {
		struct torch_trace *trace = &traces->list[i];
		struct torch_survey *survey = calloc(1, sizeof(*survey));
		int failed;

		if (survey == NULL)
			cli_no_memory();
		*survey = (struct torch_survey){ .trace = trace,
						 .first_ns = UINT64_MAX,
						 .host_first_ns = UINT64_MAX };
		trace->survey = survey;
		failed = survey_file(survey);
		if (failed == 0)
			failed = find_process(trace, recording);
		if (failed == 0)
			failed = join_clock(trace, survey);
		if (failed != 0)
			return failed;
		name_comms(trace, survey, recording);
	}
	return 0;
}

void torch_traces_join(struct torch_traces *traces, const struct recording *recording,
		       const struct align *align)
{
	traces->recording = recording;
	traces->align = align;
	for (size_t i = 0; i < traces->count; i++) {
		struct torch_trace *trace = &traces->list[i];

		trace->process = SIZE_MAX;
		for (size_t p = 0; p < recording->count; p++)
			if (recording->processes[p] == trace->owner)
				trace->process = p;
		if (trace->process == SIZE_MAX)
			cli_note("%s: left out: of a run that is not shown", trace->path);
		else
			keep_activity(traces, trace, trace->survey);
		free_survey(trace);
	}
}

/* The trace of a process; NULL: there is none. */
static const struct torch_trace *trace_of(const struct torch_traces *traces, size_t process)
{
	for (size_t i = 0; i < traces->count; i++)
		if (traces->list[i].process == process)
			return &traces->list[i];
	return NULL;
}

void torch_traces_measure(struct torch_traces *traces, struct timeline_report *report)
{
	struct iterations *iterations = &report->iterations;
	const struct torch_trace *trace;

	torch_traces_join(traces, report->recording, &report->align);
	if (traces->count == 0)
		return;
	if (!iterations->is_found) {
		cli_note("--merge: no iterations were found; nothing to measure");
		return;
	}
	trace = trace_of(traces, report->job.ranks[iterations->rank].process);
	if (trace == NULL) {
		cli_note("--merge: iterations are those of rank %s: its trace is needed, or --rank",
			 report->job.ranks[iterations->rank].label);
		return;
	}
	if (iterations_measure(iterations, &trace->activity) != OK)
		cli_no_memory();
	if (iterations->exposed_measured == 0)
		cli_note("%s: covers no whole iteration", trace->path);
}

static bool is_in(const struct torch_trace *trace, const struct recording *recording)
{
	for (size_t i = 0; i < recording->count; i++)
		if (is_of(trace, recording->processes[i]))
			return true;
	return false;
}

int torch_traces_split(const struct torch_traces *traces, const struct recording *a,
		       const struct recording *b, struct torch_traces *to_a,
		       struct torch_traces *to_b)
{
	for (size_t i = 0; i < traces->count; i++) {
		struct torch_trace trace = { .path = traces->list[i].path, .pid = -1 };
		struct torch_survey survey = { .trace = &trace,
					       .first_ns = UINT64_MAX,
					       .host_first_ns = UINT64_MAX };
		int failed = survey_file(&survey);
		bool is_a, is_b;

		survey_release(&survey);
		free(trace.tracks);
		if (failed != 0)
			return failed;
		is_a = is_in(&trace, a);
		is_b = is_in(&trace, b);
		if (is_a == is_b)
			return cli_error("%s: of %s", trace.path,
					 is_a ? "a process that both runs have"
					      : "no process of either run");
		add_path(is_a ? to_a : to_b, trace.path);
	}
	return 0;
}

/* ---- the second reading: to a timeline -------------------------------------------------------- */

void torch_traces_widen(const struct torch_traces *traces, struct viewer_plan *plan)
{
	bool is_cut = plan->from_ns != 0 || plan->to_ns != UINT64_MAX;

	for (size_t i = 0; i < traces->count && !is_cut; i++) {
		const struct torch_trace *trace = &traces->list[i];
		uint64_t base_ns = trace->about.base_ns;
		uint64_t first_ns, last_ns;

		if (trace->process == SIZE_MAX)
			continue;
		first_ns = common_ns(traces, trace, trace->first_ns - base_ns);
		last_ns = common_ns(traces, trace, trace->last_ns - base_ns);
		if (!plan->sources[trace->process].is_shown || first_ns == 0)
			continue;
		if (first_ns < plan->origin_ns)
			plan->origin_ns = first_ns;
		if (last_ns > plan->end_ns)
			plan->end_ns = last_ns;
	}
}

struct writing {
	const struct torch_traces *traces;
	struct torch_trace *trace;
	const struct viewer_plan *plan;
	struct viewer *viewer;
	uint32_t next_track;
	size_t last_track;
	char texts[ARGS_BYTES]; /* names and texts of one event's arguments */
	size_t used;
};

static void declare_track(struct writing *writing, struct torch_track *track)
{
	char name[200];
	struct viewer_track about = {
		.process = writing->plan->sources[writing->trace->process].number,
		.name = name,
		.lane = 1,
	};

	track->number = writing->next_track++;
	about.track = track->number;
	about.order = TRACK_ORDER + (int32_t)(track - writing->trace->tracks);
	if (track->is_gpu)
		text_format(name, sizeof(name), "torch: GPU %lld stream %lld%s",
			    (long long)track->pid, (long long)track->tid,
			    track->is_annotation ? ", annotations" : "");
	else if (track->label[0] != '\0')
		text_format(name, sizeof(name), "torch: %s", track->label);
	else
		text_format(name, sizeof(name), "torch: thread %lld", (long long)track->tid);
	viewer_track(writing->viewer, &about);
}

/* Keeps a text until the event is written; NULL: no room. */
static const char *keep_text(struct writing *writing, const char *text, size_t length)
{
	char *to = writing->texts + writing->used;

	if (length + 1 > sizeof(writing->texts) - writing->used)
		return NULL;
	memcpy(to, text, length);
	to[length] = '\0';
	writing->used += length + 1;
	return to;
}

static void put_arg(struct writing *writing, struct viewer_args *args, struct json_scan *scan,
		    const char *name)
{
	const char *start;
	uint64_t whole;
	int64_t number;
	double real;
	char text[512];

	switch (json_scan_next(scan)) {
	case JSON_SCAN_STRING:
		json_scan_text(scan, text, sizeof(text));
		start = keep_text(writing, text, strlen(text));
		if (start != NULL)
			viewer_arg_text(args, name, start);
		break;
	case JSON_SCAN_NUMBER:
		if (json_scan_unsigned(scan, &whole))
			viewer_arg_unsigned(args, name, whole);
		else if (json_scan_signed(scan, &number))
			viewer_arg_signed(args, name, number);
		else if (json_scan_double(scan, &real))
			viewer_arg_double(args, name, real);
		break;
	case JSON_SCAN_TRUE:
	case JSON_SCAN_FALSE:
		viewer_arg_text(args, name, scan->token == JSON_SCAN_TRUE ? "true" : "false");
		break;
	case JSON_SCAN_OBJECT:
	case JSON_SCAN_ARRAY:
		start = scan->at - 1;
		json_scan_skip(scan);
		start = keep_text(writing, start, (size_t)(scan->at - start));
		if (start != NULL)
			viewer_arg_text(args, name, start);
		break;
	default:
		break;
	}
}

static void put_args(struct writing *writing, struct viewer_args *args,
		     const struct kineto_event *event)
{
	struct json_scan scan;
	char name[64];

	writing->used = 0;
	if (event->args == NULL)
		return;
	json_scan_init(&scan, event->args, event->args_length);
	json_scan_next(&scan);
	while (args->count < VIEWER_ARGS_MAX && json_scan_next(&scan) == JSON_SCAN_KEY) {
		const char *kept;

		json_scan_text(&scan, name, sizeof(name));
		kept = keep_text(writing, name, strlen(name));
		if (kept == NULL)
			break;
		put_arg(writing, args, &scan, kept);
	}
}

static bool write_event(const struct kineto_event *event, void *context)
{
	struct writing *writing = context;
	struct torch_trace *trace = writing->trace;
	const struct viewer_plan *plan = writing->plan;
	struct viewer_args args = { .count = 0 };
	struct viewer_slice slice = {
		.process = plan->sources[trace->process].number,
		.name = event->name,
		.category = event->category,
		.args = &args,
	};
	struct torch_track *track;
	uint64_t start_ns, end_ns;

	if (event->phase == KINETO_METADATA)
		return true;
	track = event->phase == KINETO_SLICE && event->has_place
			? track_of(trace, event, &writing->last_track, false)
			: NULL;
	if (track == NULL) {
		trace->left_out++;
		return true;
	}
	start_ns = common_ns(writing->traces, trace, event->start_ns);
	/* One less: a neighbour that begins where it ends is not inside it. */
	end_ns = start_ns + (event->duration_ns > 1 ? event->duration_ns - 1 : event->duration_ns);
	if (start_ns == 0 || start_ns < plan->origin_ns || start_ns >= plan->to_ns ||
	    end_ns < plan->from_ns)
		return true;
	if (track->number == 0)
		declare_track(writing, track);
	slice.track = track->number;
	slice.start_ns = start_ns - plan->origin_ns;
	slice.end_ns = end_ns - plan->origin_ns;
	put_args(writing, &args, event);
	viewer_slice(writing->viewer, &slice);
	trace->slices++;
	return !viewer_has_failed(writing->viewer);
}

int torch_traces_write(struct torch_traces *traces, const struct viewer_plan *plan,
		       struct viewer *viewer)
{
	for (size_t i = 0; i < traces->count; i++) {
		struct writing writing = {
			.traces = traces,
			.trace = &traces->list[i],
			.plan = plan,
			.viewer = viewer,
			.next_track = TRACK_FIRST + (uint32_t)i * TRACKS_OF_FILE,
		};
		enum status status;

		if (traces->list[i].process == SIZE_MAX)
			continue;
		if (!plan->sources[traces->list[i].process].is_shown) {
			cli_note("%s: left out: of a rank that is not shown", traces->list[i].path);
			continue;
		}
		status = kineto_read(traces->list[i].path, &traces->list[i].about, write_event,
				     &writing);
		/* Errors of the output are reported by the output. */
		if (status != OK && !viewer_has_failed(viewer))
			return complain(&traces->list[i], status);
	}
	return 0;
}
