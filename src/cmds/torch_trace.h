/*
 * Traces of torch.profiler that belong to a recording: of which process each is, on the recording's clock, and what ran
 * on the GPU. Nothing is guessed: a trace that cannot belong to the recording is refused.
 *
 *	torch_traces_take()                         --merge FILE of a command line; can be repeated
 *	torch_traces_open(&traces, &recording)
 *	torch_traces_join(&traces, &recording, &align)
 *	torch_traces_write(&traces, &plan, &viewer)
 *	torch_traces_release(&traces)
 */
#ifndef TORCH_TRACE_H
#define TORCH_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/align.h"
#include "analysis/timeline_report.h"
#include "cli/cli.h"
#include "import/kineto.h"
#include "output/viewer.h"
#include "recording/recording.h"

/* How the clocks were compared. */
enum torch_clock {
	TORCH_CLOCK_WALL =
		0, /* not at all: nothing of NCCL is in the trace; placed by wall clocks */
	TORCH_CLOCK_LAUNCHES = 1, /* launches of NCCL's kernels lie within our calls */
	TORCH_CLOCK_CALLS = 2,	  /* our calls lie within PyTorch's (record_param_comms) */
};

/* A thread, or a stream of a GPU. */
struct torch_track {
	int64_t pid;
	int64_t tid;
	bool is_gpu;
	bool is_annotation; /* the user's ranges on a stream overlap its kernels */
	uint32_t number;    /* in the viewer */
	char label[KINETO_GROUP_NAME];
};

struct torch_trace {
	char *path;
	struct kineto_about about;
	int64_t pid; /* -1: unknown */
	const struct recording_process *owner;
	size_t process;	   /* its index in the recording; SIZE_MAX: it is not among those chosen */
	uint64_t first_ns; /* CLOCK_REALTIME, as the trace says */
	uint64_t last_ns;
	struct torch_track *tracks;
	size_t track_count;
	uint64_t
		left_out; /* events of more tracks than are kept, counters, events without a place */
	uint64_t slices;  /* written by torch_traces_write() */

	enum torch_clock clock;
	uint64_t compared;  /* launches or calls */
	uint64_t agreed;    /* of these: within ours */
	int64_t offset_ns;  /* added to the trace's time */
	uint64_t within_ns; /* how well that is known; with TORCH_CLOCK_WALL unknown: 0 */

	struct exposed_activity activity; /* common time */
	struct torch_survey *survey;	  /* between torch_traces_open() and torch_traces_join() */
};

struct torch_traces {
	struct torch_trace *list;
	size_t count;
	const struct recording *recording;
	const struct align *align;
};

/* The row of a command's options. */
#define TORCH_OPTION_MERGE(request, what)                                              \
	{                                                                              \
		0, "merge", "FILE",                                                    \
			"a trace of torch.profiler (Kineto), .json or .json.gz, or a " \
			"directory of them, one per rank: " what "; can be repeated",  \
			CLI_CALL(request, merge, torch_traces_take)                    \
	}
int torch_traces_take(const struct cli_said *said);
void torch_traces_release(struct torch_traces *traces);

/*
 * Reads all of them and finds their processes. Communicators without a name get that of PyTorch's process group, so
 * call it before job_make(). Returns 0, or the exit code after one was refused and the reason was printed.
 */
int torch_traces_open(struct torch_traces *traces, struct recording *recording);

/* Puts them on the common time of the ranks. The recording and its alignment are borrowed. */
void torch_traces_join(struct torch_traces *traces, const struct recording *recording,
		       const struct align *align);

/* Joins those that were opened with a report's recording and measures its exposed communication. */
void torch_traces_measure(struct torch_traces *traces, struct timeline_report *report);

/* Adds each to that of two recordings to which its process belongs. Returns 0, or an exit code. */
int torch_traces_split(const struct torch_traces *traces, const struct recording *a,
		       const struct recording *b, struct torch_traces *to_a,
		       struct torch_traces *to_b);

/* "clocks agree within 12 us: 48 of 48 launches lie within our calls" */
void torch_trace_clock_text(const struct torch_trace *trace, char *text, size_t size);

/* The plan is widened to show all of them; to be called between viewer_plan_join() and viewer_init(). */
void torch_traces_widen(const struct torch_traces *traces, struct viewer_plan *plan);

/* Behind viewer_plan_write(), as tracks of the same processes. Returns 0, or an exit code. */
int torch_traces_write(struct torch_traces *traces, const struct viewer_plan *plan,
		       struct viewer *viewer);

#endif
