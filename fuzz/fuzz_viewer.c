/*
 * A timeline of any recording: whatever its records contain, it is written in both formats, every
 * operation is in it, every arrow has both ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz_main.h"
#include "fuzz/fuzz_samples.h"
#include "output/viewer.h"

static void write_plan(struct viewer_plan *plan, enum viewer_format format)
{
	struct viewer_args about = { .count = 0 };
	struct viewer viewer;
	struct sink sink;

	plan->tally = (struct viewer_tally){ 0 };
	sink_init_memory(&sink);
	if (viewer_init(&viewer, format, &sink, NULL, plan->origin_ns) != OK)
		abort();
	viewer_about(&viewer, &about);
	if (viewer_plan_write(plan, &viewer) != OK || viewer_end(&viewer) != OK)
		abort();
	if (plan->tally.shown != plan->expected || viewer.counts.tails != viewer.counts.heads)
		abort();
	sink_release(&sink);
}

static void show_recording(const struct recording *recording)
{
	const struct filter filter = { .comm_count = 0 };
	struct viewer_plan plan;
	struct align align;
	struct job job;

	if (job_make(&job, recording) != OK || align_make(&align, &job, NULL, NULL) != OK ||
	    viewer_plan_init(&plan, &job, &align, &filter) != OK)
		abort();
	plan.has_details = true;
	plan.has_calls = true;
	if (viewer_plan_survey(&plan) != OK || viewer_plan_join(&plan) != OK)
		abort();
	write_plan(&plan, VIEWER_JSON);
	write_plan(&plan, VIEWER_PERFETTO);
	viewer_plan_release(&plan);
	align_release(&align);
	job_release(&job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sample sample = size > 0 && data[0] & 2 ? fuzz_region_sample(data, size)
						       : fuzz_trace_sample(data, size);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct recording recording;
	char path[64];

	if (fd == -1 || write(fd, sample.bytes, sample.size) != (ssize_t)sample.size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	recording_init(&recording);
	if (recording_add(&recording, path, 0) != OK || recording_finish(&recording) != OK)
		abort();
	show_recording(&recording);
	recording_release(&recording);
	close(fd);
	free(sample.bytes);
	return 0;
}
