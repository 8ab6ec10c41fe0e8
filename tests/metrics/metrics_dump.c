/*
 * Metrics of the processes on this host without an agent: scans several times, then writes once.
 *
 *	metrics_dump text|openmetrics|protobuf DIRECTORY [SCANS [MILLISECONDS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doctor/live.h"
#include "output/metrics.h"
#include "recording/watch.h"

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static enum status look(struct watch *watch, struct live *live)
{
	enum status status = watch_look(watch, WATCH_TOTALS);

	if (status != OK)
		return status;
	return live_look(live, &watch->recording, clock_ns(CLOCK_MONOTONIC),
			 clock_ns(CLOCK_REALTIME));
}

static enum status dump(struct watch *watch, struct live *live, enum metrics_format format)
{
	struct metrics_agent agent = { .version = RINGSIDE_VERSION,
				       .looks = watch->looks,
				       .refused = watch->refused_count,
				       .unreadable = watch->unreadable,
				       .left_out = watch->left_out };
	enum status status;
	struct sink sink;

	sink_init_fd(&sink, STDOUT_FILENO);
	metrics_write(&sink, format, live, &agent, -1);
	status = sink_flush(&sink);
	sink_release(&sink);
	return status;
}

int main(int argc, char **argv)
{
	static const char *const formats[] = { "text", "openmetrics", "protobuf" };
	struct live_limits limits = live_limits_default();
	struct watch_settings settings = { .keep_ns = UINT64_C(3600000000000) };
	struct watch watch;
	struct live live;
	enum status status;
	int format = 0;
	long looks;

	while (argc > 1 && format < 3 && strcmp(argv[1], formats[format]) != 0)
		format++;
	if (argc < 3 || argc > 5 || format == 3) {
		fprintf(stderr, "usage: metrics_dump text|openmetrics|protobuf DIRECTORY "
				"[SCANS [MILLISECONDS]]\n");
		return 2;
	}
	settings.directory = argv[2];
	looks = argc > 3 ? atol(argv[3]) : 1;
	live_init(&live, &limits);
	status = watch_init(&watch, &settings);
	for (long i = 0; i < looks && status == OK; i++) {
		if (i > 0)
			usleep(1000 * (argc > 4 ? (unsigned int)atoi(argv[4]) : 100));
		status = look(&watch, &live);
	}
	if (status == OK)
		status = dump(&watch, &live, (enum metrics_format)format);
	if (status != OK)
		fprintf(stderr, "metrics_dump: %s\n", status_text(status));
	live_release(&live);
	watch_release(&watch);
	return status == OK ? 0 : 1;
}
