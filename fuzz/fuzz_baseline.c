/*
 * A baseline file: any bytes are rejected in one line or read; what was read is written and read
 * again unchanged.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "fuzz/fuzz_main.h"
#include "output/report.h"

static void check_row(const struct baseline_row *row)
{
	if (row->nranks < 0 || row->nnodes < 0 || !(row->samples >= 0) || !isfinite(row->busbw) ||
	    !(row->busbw >= 0) || !(row->log_deviation >= 0) || !isfinite(row->mean_ns) ||
	    memchr(row->comm_name, '\0', sizeof(row->comm_name)) == NULL)
		abort();
}

static void check_again(const struct baseline *baseline)
{
	struct baseline again;
	struct sink sink;
	struct json json;
	char why[200];

	sink_init_memory(&sink);
	json_init(&json, &sink);
	baseline_json(&json, baseline);
	if (json_status(&json) != OK ||
	    baseline_read(&again, sink.bytes, sink.used, why, sizeof(why)) != OK ||
	    again.count != baseline->count)
		abort();
	for (size_t i = 0; i < again.count; i++)
		if (strcmp(again.rows[i].comm_name, baseline->rows[i].comm_name) != 0 ||
		    again.rows[i].calls != baseline->rows[i].calls ||
		    again.rows[i].log_mean != baseline->rows[i].log_mean)
			abort();
	baseline_release(&again);
	sink_release(&sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of the exact size, so that reads past the end are caught. */
	char *text = malloc(size == 0 ? 1 : size);
	struct baseline baseline;
	char why[200] = "";

	if (size > 0)
		memcpy(text, data, size);
	if (baseline_read(&baseline, text, size, why, sizeof(why)) == OK) {
		for (size_t i = 0; i < baseline.count; i++)
			check_row(&baseline.rows[i]);
		check_again(&baseline);
		baseline_release(&baseline);
	} else if (why[0] == '\0' || strchr(why, '\n') != NULL || strlen(why) >= sizeof(why)) {
		abort();
	}
	free(text);
	return 0;
}
