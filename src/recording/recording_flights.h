/* Between the files that find what is in flight; commands use recording.h. */
#ifndef RECORDING_FLIGHTS_H
#define RECORDING_FLIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "recording/recording.h"

/* For qsort: struct recording_proxy by channel, peer and direction. */
int recording_compare_proxies(const void *one, const void *other);

/* By communicator and number, their proxy operations by channel, peer and direction. */
void recording_flights_sort(struct recording_process *process);

/* Of the same operation twice, the one that is further on stays. They are sorted and have no proxies yet. */
void recording_flights_unique(struct recording_process *process);

/* The flight with this number, when they are sorted; NULL none. */
struct recording_flight *recording_flights_at(const struct recording_process *process,
					      uint32_t comm, uint64_t number);

/* What the details of its trace files say about flights that are not done: kernel channels, proxy
 * operations and their open transfers. Also proxy operations for other processes that have not stopped.
 * ERR_NO_SPACE, or what recording_each_detail() said. */
enum status recording_flights_details(struct recording_process *process);

#endif
