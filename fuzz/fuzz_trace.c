/* The trace reader: the input as a file, and as changes to a valid one. */
#include <stdlib.h>

#include "common/op.h"
#include "format/trace_read.h"
#include "fuzz/fuzz_main.h"
#include "fuzz/fuzz_samples.h"

static void read_records(const struct trace_item *item)
{
	struct trace_comm_counts entry;
	struct trace_records records;
	struct clock_anchor anchor;
	struct trace_counts counts;
	struct op_detail detail;
	struct region_link link;
	struct trace_name name;
	struct comm_info comm;
	struct op_record op;

	if (trace_records_init(&records, item) != OK)
		return;
	switch (item->type) {
	case TRACE_OPS:
		while (trace_records_op(&records, &op) == OK)
			if (op_check(&op) == NULL)
				op_check_time(&op);
		break;
	case TRACE_DETAILS:
		while (trace_records_detail(&records, &detail) == OK)
			op_check_detail(&detail);
		break;
	case TRACE_COMM:
		while (trace_records_comm(&records, &comm) == OK)
			op_check_comm(&comm);
		break;
	case TRACE_ANCHOR:
		while (trace_records_anchor(&records, &anchor) == OK)
			;
		break;
	case TRACE_NAME:
		while (trace_records_name(&records, &name) == OK)
			;
		break;
	case TRACE_LINKS:
		while (trace_records_link(&records, &link) == OK)
			;
		break;
	default:
		if (trace_records_counts(&records, &counts) == OK)
			while (trace_records_comm_counts(&records, &entry) == OK)
				;
	}
}

static void read_trace(const void *bytes, size_t size)
{
	struct trace_reader reader;
	struct trace_item item;
	uint64_t end = 0;

	if (trace_open_memory(&reader, bytes, size, NULL) != OK)
		return;
	while (trace_next(&reader, &item) != TRACE_END) {
		/* Items follow each other and are inside the file. */
		if (item.offset < end || item.offset > size || item.bytes > size - item.offset)
			abort();
		end = item.offset + item.bytes;
		if (item.found == TRACE_BLOCK && item.type != TRACE_PROCESS)
			read_records(&item);
	}
	trace_close(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sample sample = fuzz_trace_sample(data, size);

	read_trace(data, size);
	read_trace(sample.bytes, sample.size);
	free(sample.bytes);
	return 0;
}
