/* An operation in flight in words. */
#ifndef PS_WORDS_H
#define PS_WORDS_H

#include <stdint.h>

#include "analysis/flight.h"
#include "programs/cli/ps_list.h"

enum { PS_WORDS = 400 };

/* How far its kernel came, or why nothing can be said; "" when there is nothing to say. */
const char *ps_words_kernel(const struct ps_entry *entry, char words[static PS_WORDS]);

/* "waits for data from rank 2 on channels 0-3 for 12.3 s, 24 of 128 transfers done". */
const char *ps_words_wait(const struct flight_wait *wait, uint64_t now_ns,
			  char words[static PS_WORDS]);

uint64_t ps_words_waiting_ns(const struct flight_wait *wait, uint64_t now_ns);

#endif
