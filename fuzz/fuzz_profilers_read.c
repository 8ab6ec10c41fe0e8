/*
 * The JSON of a comparison of profilers: whatever is accepted can be shown, and written and read
 * again.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/profilers.h"
#include "fuzz/fuzz_main.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profilers_comparison comparison, again;
	struct bench_read_problem problem = { 0 };
	struct sink sink;
	enum status status;

	status = profilers_read(&comparison, (const char *)data, size, &problem);
	if (status != OK) {
		if (problem.text[0] == '\0' || comparison.plugin_count > 0)
			abort();
		return 0;
	}
	sink_init_memory(&sink);
	if (profilers_json_write(&sink, &comparison) != OK ||
	    profilers_read(&again, sink_string(&sink), sink.used, NULL) != OK)
		abort();
	profilers_comparison_release(&again);
	profilers_text_write(&sink, &comparison, 80);
	profilers_html_write(&sink, &comparison);
	sink_release(&sink);
	profilers_comparison_release(&comparison);
	return 0;
}
