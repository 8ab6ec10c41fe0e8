/*
 * What the agent has to say: one line each on stderr, without control bytes. Under systemd's journal each
 * begins with its priority as sd-daemon(3) has it, elsewhere with the program's name.
 */
#ifndef AGENT_LOG_H
#define AGENT_LOG_H

#include "common/attributes.h"

/* As syslog numbers them. */
enum agent_level {
	AGENT_ERROR = 3,
	AGENT_WARNING = 4,
	AGENT_NOTICE = 5,
	AGENT_INFO = 6,
};

/* Gives back 1, the exit code of who cannot go on. */
int agent_log(enum agent_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
