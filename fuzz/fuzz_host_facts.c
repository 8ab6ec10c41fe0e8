/* Lines of the kernel log and of facts, from any bytes: what is kept is bounded and survives being written again. */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "fuzz/fuzz_main.h"
#include "import/host_facts.h"

static void check(const struct host_facts *facts)
{
	if (facts->series_count > HOST_SERIES_MAX || facts->event_count > HOST_EVENTS_MAX ||
	    facts->gpu_count > HOST_GPUS_MAX)
		abort();
	for (size_t i = 0; i < facts->series_count; i++) {
		const struct host_series *series = &facts->series[i];
		uint64_t since_ns = 1;

		if (series->count == 0 || series->count > HOST_POINTS ||
		    strpbrk(series->object, " \n\033") || series->object[0] == '\0')
			abort();
		if (host_series_increase(series, 0, UINT64_MAX, &since_ns) > 0 && since_ns == 1)
			abort();
	}
	for (size_t i = 0; i < facts->event_count; i++)
		if (strpbrk(facts->events[i].text, "\n\033") || facts->events[i].object[0] == '\0')
			abort();
}

/* Written and read, they are the same lines. */
static void check_again(const struct host_facts *facts)
{
	char line[HOST_LINE_BYTES], again[HOST_LINE_BYTES];
	struct host_facts copy;
	size_t at = 0, at_again = 0;

	host_facts_init(&copy);
	while (host_facts_next_line(facts, &at, line)) {
		if (strlen(line) >= sizeof(line) - 1 || strchr(line, '\n'))
			abort();
		host_facts_take_line(&copy, line, 0);
	}
	check(&copy);
	at = 0;
	while (host_facts_next_line(facts, &at, line))
		if (!host_facts_next_line(&copy, &at_again, again) ||
		    (strncmp(line, "series", 6) == 0 && strcmp(line, again) != 0))
			abort();
	host_facts_release(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct host_facts facts;
	char line[2048];
	size_t used = 0;

	host_facts_init(&facts);
	for (size_t i = 0; i <= length; i++) {
		if (i < length && bytes[i] != '\n' && bytes[i] != '\0') {
			if (used < sizeof(line) - 1)
				line[used++] = (char)bytes[i];
			continue;
		}
		line[used] = '\0';
		used = 0;
		host_log_line(&facts, line, 1000000000, 0, UINT64_MAX);
		host_facts_take_line(&facts, line, UINT64_C(1700000000000000000));
	}
	check(&facts);
	check_again(&facts);
	host_facts_release(&facts);
	return 0;
}
