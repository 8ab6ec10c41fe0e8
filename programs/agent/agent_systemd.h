/* systemd's notify protocol, by hand: datagrams to NOTIFY_SOCKET. Silent where there is none. */
#ifndef AGENT_SYSTEMD_H
#define AGENT_SYSTEMD_H

#include <stdint.h>

#include "common/attributes.h"

/* "READY=1", "STATUS=..." */
void agent_systemd_notify(const char *format, ...) PRINTF_LIKE(1, 2);

/* How often it wants to hear WATCHDOG=1, half of what it tolerates; 0: it does not ask. */
uint64_t agent_systemd_watchdog_ns(void);

#endif
