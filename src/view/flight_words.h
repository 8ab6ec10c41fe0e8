/* An operation in flight in words: what it is, how far its kernel is, what its transfers wait for. */
#ifndef FLIGHT_WORDS_H
#define FLIGHT_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/flight.h"
#include "recording/recording.h"

enum { FLIGHT_WORDS = 320, FLIGHT_CHANNELS_TEXT = 160 };

/* "Send to 3", "Broadcast from 0", "AllReduce (graph)". */
const char *flight_words_operation(const struct recording_process *process,
				   const struct recording_flight *flight,
				   char words[static FLIGHT_WORDS]);

/* "NCCL has not launched it", "kernel: 3 of 8 channels started, 0 stopped"; "" nothing to say. */
const char *flight_words_kernel(const struct recording_process *process,
				const struct recording_flight *flight,
				char words[static FLIGHT_WORDS]);

/* Bits as ranges: "0-3,7". Cut where there are too many. */
const char *flight_words_channels(const uint64_t bits[static 4],
				  char words[static FLIGHT_CHANNELS_TEXT]);

/* "waits for data from rank 5 on channels 0-3": without times, which change. */
const char *flight_words_wait(const struct flight_wait *wait, char words[static FLIGHT_WORDS]);

#endif
