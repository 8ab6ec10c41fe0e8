/* Notices of one look. For the use of src/live. */
#ifndef LIVE_NOTICE_H
#define LIVE_NOTICE_H

#include <stddef.h>
#include <stdint.h>

#include "live/live_memory.h"

/* A new one, its texts empty; never NULL. One more than there is room for goes nowhere. `since_ns` ago it
 * began. */
struct live_notice *live_notice_add(struct live *live, enum live_notice_kind kind, uint32_t comm,
				    uint32_t seat, uint64_t since_ns);

/* A sentence begins there. */
void live_notice_capital(char *text, size_t at);

/* "rank 5"; "rank 5 (node3, pid 4711)". */
void live_notice_rank(char *text, size_t size, const struct live *live, uint32_t seat);
void live_notice_whole_rank(char *text, size_t size, const struct live *live, uint32_t seat);

/* "AllReduce 812", "AllReduce 812 (a replay)", "Recv 40 from rank 3". */
void live_notice_operation(char *text, size_t size, const struct live *live, uint32_t seat);

/* What to type to see a process; "" when it is not of this machine. */
void live_notice_hint(char *text, size_t size, const struct live *live, uint32_t seat);

const struct recording_process *live_notice_process(const struct live *live, uint32_t seat);

/* MISMATCH, HANG, MISSING from verdicts; BEHIND. */
void live_stuck(struct live *live);

#endif
