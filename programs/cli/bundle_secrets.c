/*
 * Recorders write down a list of variables that are no secrets (docs/SETTINGS.md). This is for what an older or
 * another recorder may have written, and for what people put where it does not belong: a ticket is read by many.
 */
#include <string.h>

#include "common/secret.h"
#include "programs/cli/bundle_parts.h"

size_t bundle_clean_info(struct recording_process *process)
{
	size_t kept = 0, found = 0, at = 0;
	char *info = process->info;

	while (at < process->info_bytes) {
		const char *end = memchr(info + at, '\n', process->info_bytes - at);
		size_t length = end ? (size_t)(end - (info + at)) : process->info_bytes - at;
		size_t whole = length + (end != NULL);

		if (secret_is_line(info + at, length)) {
			found++;
		} else {
			memmove(info + kept, info + at, whole);
			kept += whole;
		}
		at += whole;
	}
	process->info_bytes = kept;
	return found;
}
