#include "capture/inspector_place.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/text.h"

static void make_one(const char *path)
{
	if (mkdir(path, 0777) == -1)
		errno = 0;
}

void inspector_make_directories(const char *path)
{
	char copy[1024];

	if (path[0] == '\0' || !text_copy(copy, sizeof(copy), path))
		return;
	for (char *at = copy + 1; *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		make_one(copy);
		*at = '/';
	}
	make_one(copy);
}
