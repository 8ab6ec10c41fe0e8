/*
 * Metrics of a made-up scan, for other programs to read.
 *
 *	metrics_sample text|openmetrics|protobuf|names [PROCESS]	hostile data, or one process of it
 *	metrics_sample bench						time for a typical node, on stderr
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/metrics_play.h"

static int write_out(const char *format_name, const char *process)
{
	static const char *const formats[] = { "text", "openmetrics", "protobuf" };
	struct recording_left_out left_out[METRICS_USERS + 2];
	struct metrics_agent agent = play_agent();
	struct play play = { 0 };
	struct sink sink;
	int format = 0, status;

	while (format < 3 && strcmp(formats[format], format_name) != 0)
		format++;
	if (format == 3)
		return 2;
	sink_init_fd(&sink, STDOUT_FILENO);
	play_hostile(&play);
	for (uint32_t i = 0; i < METRICS_USERS + 2; i++)
		left_out[i] = (struct recording_left_out){ 1000 + i, i + 1, i % 2 };
	play.recording.left_out = left_out;
	play.recording.left_out_count = METRICS_USERS + 2;
	metrics_write(&sink, (enum metrics_format)format, &play.live, process ? NULL : &agent,
		      process ? atol(process) : -1);
	status = sink_flush(&sink) == OK ? 0 : 1;
	sink_release(&sink);
	play_release(&play);
	return status;
}

static int print_names(void)
{
	for (const struct metrics_name *name = metrics_names(); name->name != NULL; name++)
		printf("%s%s\t%s\t%s\t%s\n", name->name,
		       strcmp(name->type, "counter") == 0 ? "_total" : "", name->type, name->labels,
		       name->help);
	return 0;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* 8 processes with 20 communicators each, and 10 keys and 2 links each. */
static void play_node(struct play *play)
{
	for (int p = 0; p < 8; p++) {
		struct recording_process *process = play_process(play, "train-4711", p);

		for (uint32_t c = 0; c < 20; c++) {
			struct recording_comm *comm = play_comm(
				process, UINT64_C(0x1234567890ab0000) + c, "default_pg", p, 8);

			for (uint32_t k = 0; k < 10; k++)
				play_total(process, comm, (uint8_t)(OP_ALL_REDUCE + k % 3),
					   UINT64_C(1) << (10 + 2 * (k / 3)), 1000 + k,
					   10000 * (k + 1));
			play_link(process, c + 1, 0, (uint32_t)(p + 1) % 8, 1000)->wire_ns = 70000;
			play_link(process, c + 1, 1, (uint32_t)(p + 7) % 8, 1000);
		}
	}
	play_look(play);
}

static int bench(void)
{
	static const char *const formats[] = { "text", "openmetrics", "protobuf" };
	struct metrics_agent agent = play_agent();
	struct play play = { 0 };

	play_node(&play);
	for (int format = 0; format < 3; format++) {
		double best = 1e9, start;
		size_t bytes = 0, lines = 0;

		for (int i = 0; i < 20; i++) {
			struct sink sink;

			sink_init_memory(&sink);
			start = seconds_now();
			metrics_write(&sink, (enum metrics_format)format, &play.live, &agent, -1);
			start = seconds_now() - start;
			best = start < best ? start : best;
			bytes = sink.used;
			lines = 0;
			for (size_t at = 0; at < sink.used; at++)
				lines += at > 0 && sink.bytes[at - 1] == '\n' &&
					 sink.bytes[at] != '#';
			sink_release(&sink);
		}
		fprintf(stderr, "%s: %.2f ms, %zu bytes", formats[format], best * 1e3, bytes);
		if (format == METRICS_PROTOBUF)
			fprintf(stderr, "\n");
		else
			fprintf(stderr, ", %zu series\n", lines);
	}
	play_release(&play);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: metrics_sample text|openmetrics|protobuf|names|bench "
				"[PROCESS]\n");
		return 2;
	}
	if (strcmp(argv[1], "names") == 0)
		return print_names();
	if (strcmp(argv[1], "bench") == 0)
		return bench();
	return write_out(argv[1], argc == 3 ? argv[2] : NULL);
}
