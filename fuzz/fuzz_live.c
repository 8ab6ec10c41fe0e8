/*
 * Following processes whose regions hold anything and change between scans: three of them in memory
 * files, two changed by the input. Half of the scans find one of them truncated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doctor/live.h"
#include "fuzz/fuzz_main.h"
#include "fuzz/fuzz_samples.h"
#include "recording/recording.h"

enum { PROCESSES = 3, LOOKS = 6 };
#define SECOND UINT64_C(1000000000)

/* Each claims to be a different process, otherwise they would be merged. */
static struct sample sample_of(int process, const uint8_t *data, size_t size)
{
	size_t skipped = size > 10 ? (size_t)process * 10 % size : 0;
	struct sample sample =
		process == 0 ? sample_region() : fuzz_region_sample(data + skipped, size - skipped);

	sample_head(&sample)->pid = 100 + (uint64_t)process;
	sample_head(&sample)->comms_made = 4;
	sample_head(&sample)->proxy_cursor = SAMPLE_PROXIES;
	return sample;
}

static void write_sample(int fd, const struct sample *sample, size_t bytes)
{
	if (bytes > sample->size)
		bytes = sample->size;
	if (pwrite(fd, sample->bytes, bytes, 0) != (ssize_t)bytes ||
	    ftruncate(fd, (off_t)bytes) == -1)
		abort();
}

static void check(const struct live *live)
{
	if (live->notice_count >= LIVE_NOTICES_MAX)
		abort();
	for (size_t i = 0; i < live->notice_count; i++) {
		const struct live_notice *notice = &live->notices[i];

		if (memchr(notice->title, '\0', sizeof(notice->title)) == NULL ||
		    memchr(notice->text, '\0', sizeof(notice->text)) == NULL ||
		    memchr(notice->hint, '\0', sizeof(notice->hint)) == NULL)
			abort();
	}
	for (size_t i = 0; i < live->job.seat_count; i++)
		for (uint32_t j = 0; j < live->seats[i].history.count; j++)
			if (live_point(&live->seats[i].history, j)->wall_ns == 0)
				abort();
}

static void follow(struct recording *recording, const int *fds, const uint8_t *data, size_t size)
{
	struct live_limits limits = { .hang_ns = SECOND,
				      .lag_ns = SECOND,
				      .straggler_share = 0.1,
				      .straggler_ns = 2 * SECOND,
				      .slow_times = 1 };
	struct live live;

	live_init(&live, &limits);
	for (uint64_t look = 1; look <= LOOKS; look++) {
		uint8_t what = look < size ? data[look] : 0;
		struct sample sample =
			sample_of(what % PROCESSES, data, size - size * look / LOOKS);

		for (size_t i = 0; i < recording->count; i++)
			recording_refresh(recording->processes[i],
					  RECORDING_REFRESH_TOTALS | (what >> 2 & 3) << 1);
		if (live_look(&live, recording, look * SECOND * (1 + what / 32), look * SECOND) !=
		    OK)
			abort();
		live_judge(&live, look * SECOND * (1 + what / 32));
		check(&live);
		write_sample(fds[what % PROCESSES], &sample,
			     what & 128 ? sample.size * (what & 63) / 64 : sample.size);
		free(sample.bytes);
	}
	live_release(&live);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording recording;
	int fds[PROCESSES];
	char path[64];

	recording_init(&recording);
	for (int i = 0; i < PROCESSES; i++) {
		struct sample sample = sample_of(i, data, size);

		fds[i] = memfd_create("fuzz", MFD_CLOEXEC);
		if (fds[i] == -1)
			abort();
		write_sample(fds[i], &sample, sample.size);
		free(sample.bytes);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		if (recording_add(&recording, path, 0) != OK)
			abort();
	}
	if (recording_finish(&recording) != OK)
		abort();
	follow(&recording, fds, data, size);
	for (size_t i = 0; i < recording.count; i++)
		recording_rest(recording.processes[i]);
	recording_release(&recording);
	for (int i = 0; i < PROCESSES; i++)
		close(fds[i]);
	return 0;
}
