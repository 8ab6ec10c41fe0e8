#include "programs/agent/agent_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"

/* JOURNAL_STREAM is inherited: it counts only while stderr is still that very stream. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (stream == NULL || fstat(STDERR_FILENO, &st) == -1)
		return false;
	text_format(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(stream, own) == 0;
}

int agent_log(enum agent_level level, const char *format, ...)
{
	char line[1024], whole[1100];
	va_list values;
	ssize_t wrote;

	va_start(values, format);
	vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	for (char *at = line; *at != '\0'; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	if (is_journal())
		text_format(whole, sizeof(whole), "<%d>%s\n", (int)level, line);
	else
		text_format(whole, sizeof(whole), "ringside-agent: %s\n", line);
	/* In one piece. When nobody takes it there is nobody to tell. */
	wrote = write(STDERR_FILENO, whole, strlen(whole));
	(void)wrote;
	return 1;
}
