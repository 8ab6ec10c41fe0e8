/* Values on the command line of `ringside sim`: durations, factors, sizes. */
#ifndef TEXT_AMOUNTS_H
#define TEXT_AMOUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

/* "30s", "1.5s", "500ms", "20us", "7ns", "2m"; a bare number is seconds. ERR_FORMAT, ERR_RANGE. */
enum status text_duration(const char *text, uint64_t *ns);

/* "1.5": 1500. Up to three decimals. ERR_FORMAT; ERR_RANGE below `least` or above a million. */
enum status text_permille(const char *text, uint64_t least, uint64_t *permille);

/* "1KiB,4MiB": sizes as in text_size(), none of them 0. ERR_RANGE: more than `most`. */
enum status text_sizes(const char *text, uint64_t *sizes, size_t most, size_t *count);

#endif
