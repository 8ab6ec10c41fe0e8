/* Between the files of this room. */
#ifndef WATCH_PARTS_H
#define WATCH_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/status.h"
#include "watch/watch.h"

#define WATCH_SECOND_NS UINT64_C(1000000000)
/* Whatever inotify cannot tell (memfds, a directory that was made later) is found so late at most. */
#define WATCH_SEARCH_NS (10 * WATCH_SECOND_NS)
/* A region's name is there before its content. */
#define WATCH_SETTLE_NS (3 * WATCH_SECOND_NS)

/* watch_look() at a time of the caller's choice, which never goes back. */
enum status watch_look_at(struct watch *watch, unsigned int flags, uint64_t now_ns);

static inline uint64_t watch_changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * WATCH_SECOND_NS + (uint64_t)st->st_mtim.tv_nsec;
}

/* Find what is new and take it in. */
enum status watch_search(struct watch *watch, uint64_t now_ns);
bool watch_search_is_due(const struct watch *watch, uint64_t now_ns);

/* Do not follow this file (again), without a word. */
enum status watch_put_aside(struct watch *watch, const struct watch_file *file);

/* Take a process out of the list, which freed it. */
void watch_forget(struct watch *watch, size_t index);

/* How long ago, as its own clock and anchors say, did it last do anything? 0 when nobody can tell. */
uint64_t watch_quiet_for_ns(const struct recording_process *process);

void watch_notify_init(struct watch *watch);
void watch_notify_release(struct watch *watch);
/* Listen where regions can come: the directory, and recorders' directories in it. */
void watch_notify_listen(struct watch *watch, uint64_t now_ns);

#endif
