/* The region's reader: the input as a region, and as changes to a valid one. */
#include <stdlib.h>

#include "format/region_read.h"
#include "fuzz/fuzz_main.h"
#include "fuzz/fuzz_samples.h"

static void read_slots(const struct region *region)
{
	struct region_step steps[WINDOW_STEPS];
	struct region_proxy proxy;
	struct region_total total;
	struct region_comm comm;
	struct region_live live;
	const char *problem;
	char text[16];

	for (uint32_t i = 0; i < region_slots(region, REGION_COMMS); i++)
		if (region_comm_at(region, i, &comm, &problem) &&
		    strnlen(comm.info.name, sizeof(comm.info.name)) == sizeof(comm.info.name))
			abort();
	for (uint32_t i = 0; i < region_slots(region, REGION_PROXIES); i++) {
		if (!region_proxy_at(region, i, &proxy, &problem))
			continue;
		if (region_steps(&proxy, steps) > WINDOW_STEPS)
			abort();
		if (region_live_at(region, proxy.live, &live, &problem))
			region_proxy_is_of(&proxy, proxy.live, &live);
	}
	for (uint32_t i = 0; i < region_slots(region, REGION_LIVE); i++)
		if (!region_live_at(region, i, &live, &problem))
			region_live_is_filling(region, i);
	for (uint32_t i = 0; i < region_slots(region, REGION_TOTALS); i++)
		region_total_at(region, i, &total);
	for (unsigned int i = 0; i < 256; i++)
		region_name(region, (uint8_t)i, text, sizeof(text));
}

static void read_rings(const struct region *region)
{
	struct region_ring ring;
	struct op_detail detail;
	struct op_record op;
	uint64_t last = 0;

	if (region_ring_open(&ring, region, REGION_RING, 0) == OK)
		for (; region_ring_next_op(&ring, &op) == OK; last = op.sequence)
			if (op.sequence <= last)
				abort();
	region_ring_close(&ring);
	last = 0;
	if (region_ring_open(&ring, region, REGION_DETAILS, 1) == OK)
		for (; region_ring_next_detail(&ring, &detail) == OK; last = detail.sequence)
			if (detail.sequence <= last)
				abort();
	region_ring_close(&ring);
}

static void read_info(const struct region *region)
{
	char key[8], value[8];
	size_t at = 0;

	while (info_next(region->info, region->info_bytes, &at, key, sizeof(key), value,
			 sizeof(value)))
		;
	info_get_number(region->info, region->info_bytes, "rank", 0);
}

static void read_region(const void *bytes, size_t size)
{
	struct status_problem problem;
	struct region region;
	uint64_t now;

	if (region_open_memory(&region, bytes, size, &problem) != OK)
		return;
	if (region_copy(&region, REGION_COPY_STATE) == OK)
		read_slots(&region);
	read_rings(&region);
	read_info(&region);
	region_now(&region, &now);
	region_close(&region);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sample sample = fuzz_region_sample(data, size);

	read_region(data, size);
	read_region(sample.bytes, sample.size);
	free(sample.bytes);
	return 0;
}
