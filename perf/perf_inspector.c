/*
 * Cost of writing NCCL Inspector's format: nanoseconds of CPU time per line of its log, and per verbose line with
 * eight channels. In memory, without a disk; the best of a few rounds, because other work only adds to it.
 *
 * Usage: perf_inspector; prints one "name value" line per result.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "format/inspector_write.h"

enum { ROUNDS = 7, LINES = 200000, CHANNELS = 8 };

static char text[INSPECTOR_VERBOSE_BYTES];
static struct inspector_channel channels[CHANNELS];

static const struct comm_info world = { .id = 1,
					.hash = UINT64_C(0xfeedfacecafe1234),
					.rank = 3,
					.nranks = 8,
					.nnodes = 2,
					.name = "data parallel group 3" };

static struct op_record made(uint64_t number)
{
	return (struct op_record){ .function = OP_ALL_REDUCE,
				   .bytes = 1024 << number % 20,
				   .nccl_sequence = number,
				   .state = OP_DONE,
				   .time_source = OP_TIME_KERNEL_GPU,
				   .gpu_start_ns = 1000000,
				   .gpu_stop_ns = 1123456 + number };
}

static size_t write_lines(const struct inspector_events *events)
{
	struct inspector_speaker speaker = { "node0001", 29630, UINT64_C(1767225600123456789) };
	size_t bytes = 0;

	for (uint64_t i = 0; i < LINES; i++) {
		struct op_record op = made(i);

		bytes += inspector_line(text, sizeof(text), &speaker, &world, &op, 0, events);
	}
	return bytes;
}

static double best(const struct inspector_events *events, size_t *bytes)
{
	double least = 1e18;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t before = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
		double ns;

		*bytes = write_lines(events);
		ns = (double)(clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / LINES;
		least = ns < least ? ns : least;
	}
	return least;
}

int main(void)
{
	struct inspector_events events = { UINT64_C(1767225600123456789), channels, CHANNELS };
	size_t bytes;
	double ns = best(NULL, &bytes);

	printf("line_ns %.0f\nline_bytes %.0f\n", ns, (double)bytes / LINES);
	for (uint64_t i = 0; i < CHANNELS; i++)
		channels[i] =
			(struct inspector_channel){ events.op_ns + i * 1000,
						    events.op_ns + 90000 + i * 1000, (uint8_t)i };
	ns = best(&events, &bytes);
	printf("verbose_ns %.0f\nverbose_bytes %.0f\n", ns, (double)bytes / LINES);
	return 0;
}
