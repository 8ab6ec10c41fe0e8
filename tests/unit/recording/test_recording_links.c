#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/text.h"
#include "recording/recording.h"
#include "tests/support/sample_region.h"
#include "tests/support/sample_trace.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

/* The process of the sample region. */
static const char info[] = "host=node-1\nboot_id=sample-boot\npid=4711\npid_namespace=1\n"
			   "start_ticks=987654\njob=sample\nrank=3\nmode=trace\n";

static const char *path_of(const char *name)
{
	static char path[512];

	text_format(path, sizeof(path), "%s/%s", scratch_dir.path, name);
	return path;
}

static void write_file(const char *name, const struct sample *sample)
{
	FILE *file = fopen(path_of(name), "wb");

	if (file == NULL || fwrite(sample->bytes, 1, sample->size, file) != sample->size ||
	    fclose(file) != 0)
		abort();
}

static struct sample region_of_it(uint64_t proxies)
{
	struct sample sample = sample_region();
	struct region_header *header = sample_head(&sample);

	sample_set_info(&sample, info);
	memset(header->boot_id, 0, sizeof(header->boot_id));
	memcpy(header->boot_id, "sample-boot", 11);
	header->pid = 4711;
	header->pid_namespace = 1;
	header->start_ticks = 987654;
	header->proxy_cursor = proxies;
	return sample;
}

static void expect_links(const char *name, const char *path, size_t count, uint64_t key,
			 uint64_t bytes)
{
	const struct recording_process *process;
	struct recording recording;
	bool is_right;

	recording_init(&recording);
	if (recording_add(&recording, path, 0) != OK || recording_finish(&recording) != OK ||
	    recording.count != 1)
		abort();
	process = recording.processes[0];
	is_right = process->link_count == count && recording.trouble_count == 0;
	/* "Other" always comes first. */
	if (is_right && count > 0)
		is_right = process->links[0].key == 0 && process->links[count - 1].key == key &&
			   process->links[count - 1].bytes == bytes;
	EXPECT_THAT(name, is_right);
	recording_release(&recording);
}

static void test_trace(void)
{
	struct region_link later[] = {
		{ .key = SLOT_FORGOTTEN, .proxies = 1 },
		{ .key = REGION_LINK_KEY(1, false, 5) },
		{ .key = REGION_LINK_KEY(1, false, 6), .proxies = 1, .bytes = 77 }
	};
	struct sample trace = sample_trace();

	write_file("links", &trace);
	expect_links("links of a trace file", path_of("links"), 3, REGION_LINK_KEY(1, true, 5),
		     3 * 4096);
	sample_block(&trace, TRACE_LINKS, later, sizeof(later), 3);
	sample_counts(&trace, TRACE_CLOSE, SAMPLE_OPS + SAMPLE_LATE_OPS);
	write_file("links", &trace);
	expect_links("the newest replace the others; what is none is left out", path_of("links"), 2,
		     later[2].key, 77);
	sample_block(&trace, TRACE_LINKS, "", 0, 0);
	sample_counts(&trace, TRACE_CLOSE, SAMPLE_OPS + SAMPLE_LATE_OPS);
	write_file("links", &trace);
	expect_links("also when they say nothing", path_of("links"), 1, 0, 0);
	free(trace.bytes);
	expect_links("a file of 2.0 has none", "tests/golden/minor-0.ringside", 0, 0, 0);
}

static void test_region(void)
{
	struct sample region = region_of_it(0), trace = { NULL, 0, 0 };

	write_file("region", &region);
	expect_links("a region that saw no proxy operation has none", path_of("region"), 0, 0, 0);
	free(region.bytes);
	region = region_of_it(1);
	write_file("region", &region);
	expect_links("links of a region", path_of("region"), 2, REGION_LINK_KEY(1, true, 4),
		     48 << 20);
	sample_header(&trace, TRACE_MAJOR, TRACE_MINOR);
	sample_blocks(&trace, info);
	mkdir(path_of("both"), 0700);
	write_file("both/region", &region);
	write_file("both/trace", &trace);
	expect_links("of trace and region the region's are newer", path_of("both"), 2,
		     REGION_LINK_KEY(1, true, 4), 48 << 20);
	free(region.bytes);
	region = region_of_it(0);
	write_file("both/region", &region);
	expect_links("a region without leaves the trace's", path_of("both"), 3,
		     REGION_LINK_KEY(1, true, 5), 3 * 4096);
	free(region.bytes);
	free(trace.bytes);
}

/*
 * Recorders before 1.5 added network spans to the times of totals: of operations that went over the network none is used. Those of
 * other operations are durations.
 */
static void test_spans_in_totals(void)
{
	for (unsigned int i = 0; i < 8; i++) {
		bool is_old = i & 1, has_bytes = i & 2, has_waits = i & 4;
		bool is_stripped = is_old && (has_bytes || has_waits);
		struct sample region = region_of_it(1);
		struct region_total *total = sample_slot(&region, REGION_TOTALS, 1);
		const struct region_total *found;
		struct recording recording;

		sample_head(&region)->minor = is_old ? 4 : 5;
		sample_head(&region)->totals_used = 1;
		total->recv_bytes = has_bytes ? 4096 : 0;
		total->wait_ns[OP_WAIT_SEND_NET] = has_waits ? 77 : 0;
		total->max_ns = 2000;
		write_file("totals", &region);
		recording_init(&recording);
		if (recording_add(&recording, path_of("totals"), 0) != OK ||
		    recording_finish(&recording) != OK || recording.count != 1 ||
		    recording_refresh(recording.processes[0], RECORDING_REFRESH_TOTALS) != OK ||
		    recording.processes[0]->total_count < 2)
			abort();
		found = recording.processes[0]->totals;
		while (found->key != total->key)
			found++;
		EXPECT_EQUAL(recording.processes[0]->has_spans_in_totals, is_stripped);
		EXPECT(found->count == 11 && found->timed == (is_stripped ? 0 : 11) &&
		       found->sum_ns == (is_stripped ? 0 : 16500) &&
		       found->max_ns == (is_stripped ? 0 : 2000) &&
		       found->buckets[20] == (is_stripped ? 0 : 11));
		recording_release(&recording);
		free(region.bytes);
	}
}

int main(void)
{
	scratch_make();
	test_spans_in_totals();
	test_trace();
	test_region();
	return tap_done();
}
