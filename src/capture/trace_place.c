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

/* mkdir -p. Whether it went well shows when the file is made. */
static void make_directories(char *path, gid_t group)
{
	for (char *at = path + 1; *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		make_directory(path, group);
		*at = '/';
	}
	make_directory(path, group);
}

/* A name that is not taken: a program that replaced itself (exec) has still the same pid and start. */
static void choose_name(char *path, size_t size, const char *dir, const struct identity *identity)
{
	struct stat st;
	char again[16] = "";

	for (int i = 1; i < 100; i++) {
		text_format(path, size, "%s/r%s-%.200s-%llu-%llu%s.ringside", dir, identity->rank,
			    identity->host, (unsigned long long)identity->pid,
			    (unsigned long long)identity->start_ticks, again);
		if (lstat(path, &st) == -1)
			return;
		text_format(again, sizeof(again), "-%d", i);
	}
}

enum status trace_place_choose(char *path, size_t size, const struct settings *settings,
			       const struct identity *identity)
{
	struct text_names names = { identity->host, identity->job, identity->rank,
				    (int64_t)identity->pid };
	char dir[700];

	if (text_expand(dir, 512, settings->dir, &names) != OK)
		return ERR_FORMAT;
	trace_place_absolute(dir, sizeof(dir));
	make_directories(dir, settings->group);
	choose_name(path, size, dir, identity);
	return OK;
}
