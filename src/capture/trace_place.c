#include "capture/trace_place.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

void trace_place_absolute(char *path, size_t size)
{
	char here[512], whole[1024];

	if (path[0] == '\0' || path[0] == '/' || getcwd(here, sizeof(here)) == NULL)
		return;
	if (text_format(whole, sizeof(whole), "%s/%s", here, path) && strlen(whole) < size)
		text_copy(path, size, whole);
}

/* What exists is left as it is. */
static void make_directory(const char *path, gid_t group)
{
	int fd;

	if (mkdir(path, 0700) == -1 || group == (gid_t)-1)
		return;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return;
	if (fchown(fd, (uid_t)-1, group) == 0)
		fchmod(fd, 0750);
	close(fd);
}

void trace_place_make(const struct trace_place *place)
{
	char path[sizeof(place->dir)];

	text_copy(path, sizeof(path), place->dir);
	for (char *at = path + 1; path[0] != '\0' && *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		make_directory(path, place->group);
		*at = '/';
	}
	make_directory(path, place->group);
}

void trace_place_path(char *path, size_t size, const struct trace_place *place, int attempt)
{
	char again[16] = "";

	if (attempt > 0)
		text_format(again, sizeof(again), "-%d", attempt);
	text_format(path, size, "%s/%s%s.ringside", place->dir, place->name, again);
}

enum status trace_place_choose(struct trace_place *place, const struct settings *settings,
			       const struct identity *identity)
{
	struct text_names names = { identity->host, identity->job, identity->rank,
				    (int64_t)identity->pid };
	char host[201], pattern[64];
	struct text_names file_names = { host, "", identity->rank, (int64_t)identity->pid };

	place->group = settings->group;
	if (text_expand(place->dir, 512, settings->dir, &names) != OK)
		return ERR_FORMAT;
	trace_place_absolute(place->dir, sizeof(place->dir));
	/* As in the directory: whatever a launcher or the machine's name says, a '/' is none. */
	text_format(host, sizeof(host), "%.200s", identity->host);
	text_format(pattern, sizeof(pattern), "r%%r-%%h-%%p-%llu",
		    (unsigned long long)identity->start_ticks);
	return text_expand(place->name, sizeof(place->name), pattern, &file_names) == OK
		       ? OK
		       : ERR_FORMAT;
}
