/* A dump of PyTorch's Flight Recorder: the input as is, and after the beginnings of valid dumps. */
#include "fuzz/fuzz_foreign.inc"

#include "import/plain_values.h"

/* No crash, no endless growth: what a tree costs is bounded by its input. */
static void read_tree(const uint8_t *data, size_t size)
{
	struct plain_values values;

	plain_values_init(&values);
	plain_values_pickle(&values, data, size);
	plain_values_release(&values);
	plain_values_init(&values);
	plain_values_json(&values, (const char *)data, size);
	plain_values_release(&values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_tree(data, size);
	read_bytes("", data, size);
	read_bytes("{\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"\",\"ranks\":\"[0, 1]\"}},"
		   "\"entries\":[{\"process_group\":[\"0\",\"\"],\"state\":\"scheduled\","
		   "\"profiling_name\":\"nccl:all_reduce\",\"collective_seq_id\":",
		   data, size);
	read_bytes("\x80\x02}q\x01(X\x07", data, size);
	return 0;
}
