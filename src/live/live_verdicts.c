/*
 * The doctor's part of a look: who is stuck, and why. The rules are the doctor's own (doctor/hang.h), so that
 * what the agent says while a job hangs is what `ringside doctor` says of the same moment.
 *
 * What looks again and again knows more than one moment: for how long a seat has not moved by our own clock,
 * so that counters which may just be changing are not compared.
 */
#include <stdlib.h>

#include "doctor/hang.h"
#include "live/live_memory.h"

static void take_times(const struct live *live, uint64_t *now_ns, uint64_t *still_ns)
{
	const struct live_memory *memory = live->memory;

	for (size_t p = 0; p < memory->process_count; p++) {
		now_ns[p] = memory->processes[p].now_ns;
		if (now_ns[p] == 0)
			now_ns[p] = hang_now_ns(live->job.recording->processes[p]);
	}
	for (size_t s = 0; s < live->job.seat_count; s++)
		still_ns[s] = live->seats[s].still_ns;
}

/* Without memory there are no verdicts at this look; the next one tries again. */
void live_verdicts(struct live *live)
{
	uint64_t *now_ns = calloc(live->memory->process_count + 1, sizeof(*now_ns));
	uint64_t *still_ns = calloc(live->job.seat_count + 1, sizeof(*still_ns));
	struct hang_options options = { .hang_ns = live->limits.hang_ns,
					.now_ns = now_ns,
					.still_ns = still_ns,
					.only_living = true,
					.is_quick = true };

	if (now_ns != NULL && still_ns != NULL) {
		take_times(live, now_ns, still_ns);
		if (hang_find(&live->verdicts, &live->job, &options) == OK)
			verdicts_sort(&live->verdicts);
		else
			verdicts_release(&live->verdicts);
	}
	free(now_ns);
	free(still_ns);
}
