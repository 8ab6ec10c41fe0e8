/* ncclsee's CSV: any bytes, and any bytes after its header. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"
#include "fuzz/fuzz_main.h"
#include "import/foreign.h"

static const char head[] =
	"CollectiveType,BucketLabel,BucketMin,BucketMax,Calls,BytesTransferred,TotalTime_us\n";

static void read_profile(const char *text, size_t length)
{
	struct ncclsee_profile profile;
	enum status status = ncclsee_read_memory(&profile, text, length);

	if ((status == OK) != (profile.problem == NULL))
		abort();
	if (profile.row_count > NCCLSEE_ROWS_MAX)
		abort();
	for (size_t i = 0; i < profile.row_count; i++) {
		const struct ncclsee_row *row = &profile.rows[i];

		if (row->function >= OP_FUNCTIONS || row->size_class >= NCCLSEE_CLASSES ||
		    row->calls == 0 || !isfinite(row->total_ns) || row->total_ns < 0 ||
		    row->has_time != (row->total_ns > 0))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(sizeof(head) + size);

	if (text == NULL)
		return 0;
	memcpy(text, head, sizeof(head) - 1);
	if (size > 0)
		memcpy(text + sizeof(head) - 1, data, size);
	read_profile(text, sizeof(head) - 1 + size);
	read_profile(text + sizeof(head) - 1, size);
	free(text);
	return 0;
}
