/*
 * When is it worth searching? inotify on the directory says when a recorder's directory comes, and on
 * those when a region does. /dev/shm is everybody's: data loaders make thousands of files there. Their
 * events are read and passed over, and when there are too many of them we stop listening there for a
 * while; recorders' own directories are still listened to.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/text.h"
#include "region/region_find.h"
#include "watch/watch_parts.h"

enum {
	DIRECTORIES_MAX = 1024, /* others are searched every WATCH_SEARCH_NS */
	STRANGERS_MAX = 2000,	/* events between two looks */
	BATCHES_MAX = 64,	/* reads of the queue in one go: somebody may fill it as fast */
	EVENTS = IN_CREATE | IN_MOVED_TO | IN_ATTRIB,
};
#define QUIET_NS (60 * WATCH_SECOND_NS)

static const char *directory_of(const struct watch *watch)
{
	return watch->settings.directory != NULL ? watch->settings.directory
						 : REGION_FIND_DIRECTORY;
}

void watch_notify_init(struct watch *watch)
{
	watch->directory_watch = -1;
	watch->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void watch_notify_release(struct watch *watch)
{
	if (watch->inotify != -1)
		close(watch->inotify);
	watch->inotify = -1;
	watch->directory_watch = -1;
}

int watch_fd(const struct watch *watch)
{
	return watch->inotify;
}

static bool is_recorders(const char *name)
{
	static const char begin[] = "ringside-", end[] = ".region";
	size_t length = strlen(name);

	return strncmp(name, begin, strlen(begin)) == 0 ||
	       (length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0);
}

static void heed_event(struct watch *watch, const struct inotify_event *event, const char *name)
{
	if (event->mask & IN_IGNORED) {
		if (event->wd == watch->directory_watch)
			watch->directory_watch = -1;
		return;
	}
	if (event->mask & IN_Q_OVERFLOW || event->wd != watch->directory_watch ||
	    is_recorders(name))
		watch->must_search = true;
	else
		watch->strangers++;
}

bool watch_heed(struct watch *watch)
{
	_Alignas(struct inotify_event) char bytes[8192];
	struct inotify_event event;
	ssize_t got = 1;

	for (int i = 0; i < BATCHES_MAX && watch->inotify != -1 && got > 0; i++) {
		got = read(watch->inotify, bytes, sizeof(bytes));
		for (ssize_t at = 0; at + (ssize_t)sizeof(event) <= got;
		     at += (ssize_t)(sizeof(event) + event.len)) {
			memcpy(&event, bytes + at, sizeof(event));
			/* The kernel terminates the name within event.len; without one it is 0. */
			heed_event(watch, &event, event.len ? bytes + at + sizeof(event) : "");
		}
	}
	return watch->must_search || watch->inotify == -1;
}

/* Adding a watch that is there already changes nothing, so nobody keeps a list. Links are not followed. */
static void listen_below(struct watch *watch, const char *directory)
{
	DIR *list = opendir(directory);
	struct dirent *entry;
	char path[PATH_MAX];
	int count = 0;

	while (list != NULL && count < DIRECTORIES_MAX && (entry = readdir(list)) != NULL) {
		if (strncmp(entry->d_name, "ringside-", strlen("ringside-")) != 0 ||
		    !text_format(path, sizeof(path), "%s/%s", directory, entry->d_name))
			continue;
		inotify_add_watch(watch->inotify, path, EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW);
		count++;
	}
	if (list != NULL)
		closedir(list);
}

void watch_notify_listen(struct watch *watch, uint64_t now_ns)
{
	const char *directory = directory_of(watch);

	if (watch->inotify == -1)
		return;
	if (watch->strangers > STRANGERS_MAX && watch->directory_watch != -1) {
		inotify_rm_watch(watch->inotify, watch->directory_watch);
		watch->directory_watch = -1;
		watch->quiet_until_ns = now_ns + QUIET_NS;
	}
	watch->strangers = 0;
	if (watch->directory_watch == -1 && now_ns >= watch->quiet_until_ns)
		watch->directory_watch =
			inotify_add_watch(watch->inotify, directory, EVENTS | IN_ONLYDIR);
	listen_below(watch, directory);
}
