/* A scan is done in steps: what it finds counts when it is over, and the one before is good enough meanwhile. */
#include "agent/agent.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"
#include "format/region_read.h"
#include "tests/support/sample_region.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

enum { COUNT = 3 };

/* Of a process in a pid namespace that nobody knows: each takes a step to find. */
static void put_region(const char *directory, int rank)
{
	struct sample sample = sample_region();
	struct region_header *header = sample_head(&sample);
	char path[512], info[SAMPLE_INFO_BYTES];
	int fd;

	text_format(info, sizeof(info), "host=here\njob=watched\nrank=%d\nmode=flight\n", rank);
	sample_set_info(&sample, info);
	region_boot_id(header->boot_id);
	header->pid = 4000 + (uint64_t)rank;
	header->pid_namespace = 17;
	header->start_ticks = 5;
	text_format(path, sizeof(path), "%s/%d.region", directory, rank);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd == -1 || write(fd, sample.bytes, sample.size) != (ssize_t)sample.size ||
	    close(fd) == -1)
		abort();
	free(sample.bytes);
}

/* The rest of a scan. Returns its number of steps. */
static size_t go_on(struct agent_look *look, uint64_t now_ns)
{
	uint64_t number = look->number;
	size_t steps = 0;

	while (look->number == number && agent_look_step(look, now_ns))
		steps++;
	return steps;
}

int main(void)
{
	const char *directory = scratch_make();
	const struct watch_settings settings = { .directory = directory,
						 .keep_ns = 60 * SECOND_NS };
	const struct live_limits limits = { .hang_ns = 20 * SECOND_NS, .lag_ns = 5 * SECOND_NS };
	uint64_t now_ns = 1000 * SECOND_NS;
	struct agent_look look;

	for (int i = 0; i < COUNT; i++)
		put_region(directory, i);
	if (agent_look_init(&look, &settings, &limits) != OK)
		abort();
	look.watch.next_processes_ns = UINT64_MAX;

	EXPECT_THAT("before the first scan a client has to wait",
		    !agent_look_fresh(&look, now_ns) && look.next_ns == now_ns);
	EXPECT_THAT("its first step", agent_look_step(&look, now_ns) && look.is_scanning);
	EXPECT_THAT("is not the whole",
		    look.number == 0 && look.last_ns == 0 && look.watch.recording.count < COUNT);
	EXPECT_THAT("a client still has to wait, and does not cause another scan",
		    !agent_look_fresh(&look, now_ns) && look.next_ns != now_ns);
	EXPECT_THAT("finding each, reading them and judging them are steps of their own",
		    go_on(&look, now_ns + MS_NS) >= COUNT + 1);
	EXPECT_THAT("then it counts", !look.is_scanning && look.number == 1 && look.status == OK &&
					      look.live.job.recording == &look.watch.recording &&
					      look.watch.recording.count == COUNT);
	EXPECT_THAT("as of its beginning", look.last_ns == now_ns);

	now_ns += 900 * MS_NS;
	EXPECT_THAT("for a second", agent_look_fresh(&look, now_ns));
	EXPECT_THAT("in which there is nothing to do", !agent_look_step(&look, now_ns));
	now_ns += 200 * MS_NS;
	EXPECT_THAT("after it the next one is due", agent_look_step(&look, now_ns));
	EXPECT_THAT("meanwhile the one before is good enough", agent_look_fresh(&look, now_ns));
	EXPECT_THAT("unless it is old", !agent_look_fresh(&look, now_ns + SECOND_NS));
	go_on(&look, now_ns);
	EXPECT_THAT("until the next one is over", look.number == 2 && look.last_ns == now_ns);
	EXPECT_THAT("which is a second after it began", look.next_ns == now_ns + SECOND_NS);
	EXPECT_EQUAL(look.failures, 0);
	agent_look_release(&look);
	return tap_done();
}
