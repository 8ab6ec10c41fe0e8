#include "programs/cli/ps_words.h"

#include <inttypes.h>

#include "common/text.h"
#include "view/flight_words.h"

const char *ps_words_kernel(const struct ps_entry *entry, char words[static PS_WORDS])
{
	if (entry->kind != FLIGHT_UNSEEN)
		return flight_words_kernel(entry->process, entry->flight, words);
	if (entry->absent > 0)
		text_format(words, PS_WORDS,
			    "not timed; %" PRIu32
			    " rank%s of its communicator here %s not called it",
			    entry->absent, entry->absent == 1 ? "" : "s",
			    entry->absent == 1 ? "has" : "have");
	else if (entry->is_last_call)
		text_copy(words, PS_WORDS,
			  "not timed: it hangs, or it is over and the process calls nothing more");
	else
		text_copy(words, PS_WORDS, "not timed: NCCL does not show its end here");
	return words;
}

uint64_t ps_words_waiting_ns(const struct flight_wait *wait, uint64_t now_ns)
{
	return now_ns > wait->since_ns ? now_ns - wait->since_ns : 0;
}

const char *ps_words_wait(const struct flight_wait *wait, uint64_t now_ns,
			  char words[static PS_WORDS])
{
	char what[FLIGHT_WORDS], time[UNITS_TEXT], steps[64] = "";

	if (wait->steps > 0)
		text_format(steps, sizeof(steps), ", %" PRIu64 " of %" PRIu64 " transfers done",
			    wait->steps_done, wait->steps);
	text_format(words, PS_WORDS, "%s for %s%s", flight_words_wait(wait, what),
		    units_duration(time, ps_words_waiting_ns(wait, now_ns)), steps);
	return words;
}
