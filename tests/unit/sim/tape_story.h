/*
 * For tests of the simulated NCCL: what the tape recorder wrote, as a tree. Calls of different threads can come in any
 * order, so every event is shown with its own calls only, below its parent:
 *
 *	Coll seq=0 AllReduce ...: stop
 *	  ProxyOp ch=0 peer=1 ...: 19 stop
 *	    ProxyStep 0: 8(?) 20(?) 9(1024) stop
 */
#ifndef TAPE_STORY_H
#define TAPE_STORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "output/sink.h"

struct story_event {
	uint64_t id, parent, type;
	uint64_t left_bytes; /* up to NCCL 2.26: what its first call reported */
	struct story_event *first_child, **last_child, *next; /* of the same parent */
	char words[512];
	char calls[512]; /* states and stops, in order */
};

struct story {
	struct story_event *events;
	size_t count, room;
	size_t *places; /* by id: index of the event, from 1 */
	size_t id_room;
	bool has_times; /* GPU timestamps are those of a test's own clock */
	uint64_t contexts[32];
	size_t context_count;
	char others[4096]; /* calls of unknown handles */
	char comms[4096];
};

/* The recorder lies two directories above the test program, or in the build directory. */
static inline const char *story_recorder(void)
{
	static char path[4096];
	const char *build = getenv("BUILD");
	char self[2048];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[length > 0 ? length : 0] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(self, '/') = '\0';
	snprintf(path, sizeof(path), "%s/libnccl-profiler-tape.so", self);
	if (access(path, R_OK) != 0 && build != NULL)
		snprintf(path, sizeof(path), "%s/libnccl-profiler-tape.so", build);
	return path;
}

/* Ids are small numbers. */
static inline struct story_event *story_find(const struct story *story, uint64_t id)
{
	return id < story->id_room && story->places[id] != 0 ? &story->events[story->places[id] - 1]
							     : NULL;
}

static inline void story_index(struct story *story, uint64_t id)
{
	if (id >= story->id_room) {
		size_t room = 2 * (size_t)id + 64;

		if (id > 1 << 20)
			abort();
		story->places = realloc(story->places, room * sizeof(*story->places));
		memset(story->places + story->id_room, 0,
		       (room - story->id_room) * sizeof(*story->places));
		story->id_room = room;
	}
	story->places[id] = story->count;
}

static inline void story_append(char *text, size_t size, const char *more)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s", more);
}

/* "START 0x5 ctx=0x1 type=2 parent=0x3 rank=1 Coll ..." */
static inline void story_start(struct story *story, char *words)
{
	struct story_event *event;
	unsigned long long id, type, parent = 0;
	char context[32], parent_text[32];
	int rank, used = 0;

	if (story->count == story->room) {
		story->room = story->room ? 2 * story->room : 64;
		story->events = realloc(story->events, story->room * sizeof(*story->events));
		if (story->events == NULL)
			abort();
	}
	event = &story->events[story->count];
	if (sscanf(words, "%llx ctx=%31s type=%llu parent=%31s rank=%d %n", &id, context, &type,
		   parent_text, &rank, &used) != 5)
		abort();
	sscanf(parent_text, "%llx", &parent);
	*event = (struct story_event){ .id = id, .parent = parent, .type = type };
	snprintf(event->words, sizeof(event->words), "%s%s%.20s rank=%d", words + used,
		 strlen(context) > 5 ? " ctx=" : "", strlen(context) > 5 ? context : "", rank);
	story->count++;
	story_index(story, id);
}

/*
 * Before a transfer has moved, its bytes are those of another one that used its memory. Up to NCCL 2.26 the bytes of a ProxyOp
 * go on from there, and which memory it got depends on the order of threads: its own bytes are shown.
 */
static inline bool story_is_left(int state)
{
	return state == 0 || state == 1 || state == 4 || state == 8 || state == 10 || state == 20;
}

/* "STATE 0x5 8 arg=0", "STOP 0x5" */
static inline void story_call(struct story *story, const char *words, bool is_stop)
{
	unsigned long long id = 0, arg = 0;
	struct story_event *event;
	int state = 0, steps = 0;
	char text[64] = " stop", bytes[32];

	sscanf(words, "%llx", &id);
	event = story_find(story, id);
	if (!is_stop) {
		bool is_old = sscanf(words, "%*s %d arg=%llu steps=%d", &state, &arg, &steps) == 3;

		if (is_old && event != NULL && event->calls[0] == '\0')
			event->left_bytes = arg;
		if (is_old && event != NULL)
			arg -= event->left_bytes;
		if (story_is_left(state) || (!story->has_times && (state == 22 || state == 25)))
			snprintf(bytes, sizeof(bytes), "?");
		else
			snprintf(bytes, sizeof(bytes), "%llu", arg);
		if (strstr(words, " null=1") != NULL)
			snprintf(text, sizeof(text), " %d", state);
		else if (is_old)
			snprintf(text, sizeof(text), " %d(%s,%d)", state, bytes, steps);
		else
			snprintf(text, sizeof(text), " %d(%s)", state, bytes);
	}
	if (event != NULL)
		story_append(event->calls, sizeof(event->calls), text);
	else
		story_append(story->others, sizeof(story->others), text);
}

/* "INIT ctx=0x1 ...", "FINI ctx=0x1": contexts are numbered in the order of their INIT. */
static inline void story_comm(struct story *story, const char *words)
{
	const char *rest = words + strlen("INIT ctx=");
	unsigned long long id = 0;
	size_t number = 0;
	char text[256];

	sscanf(rest, "%llx", &id);
	while (number < story->context_count && story->contexts[number] != id)
		number++;
	if (number == story->context_count && words[0] == 'I' && number < 32)
		story->contexts[story->context_count++] = id;
	snprintf(text, sizeof(text), "%.4s %zu%s\n", words, number + 1, rest + strcspn(rest, " "));
	story_append(story->comms, sizeof(story->comms), text);
}

static inline void story_line(struct story *story, char *line)
{
	char *words = strchr(line, ' ') ? strchr(strchr(line, ' ') + 1, ' ') : NULL;

	line[strcspn(line, "\n")] = '\0';
	if (line[0] == '#') {
		story_append(story->comms, sizeof(story->comms), line);
		story_append(story->comms, sizeof(story->comms), "\n");
		return;
	}
	if (words == NULL)
		abort();
	words++;
	if (strncmp(words, "START ", 6) == 0)
		story_start(story, words + 6);
	else if (strncmp(words, "STATE ", 6) == 0)
		story_call(story, words + 6, false);
	else if (strncmp(words, "STOP ", 5) == 0)
		story_call(story, words + 5, true);
	else
		story_comm(story, words);
}

/* Ids are numbers of the recorder and depend on the order of threads: they are named by what they are. */
static inline void story_words(struct story *story, struct sink *sink, const char *words, pid_t pid)
{
	char own[32];

	snprintf(own, sizeof(own), "pid=%d ", (int)pid);
	while (*words != '\0') {
		unsigned long long id;
		const struct story_event *group;

		if (strncmp(words, own, strlen(own)) == 0) {
			sink_text(sink, "pid=own ");
			words += strlen(own);
		} else if (pid == -1 && strncmp(words, "pid=", 4) == 0) {
			sink_text(sink, "pid=?");
			words += strcspn(words, " ");
		} else if (strncmp(words, "pg=0x", 5) == 0) {
			sscanf(words + 3, "%llx", &id);
			group = story_find(story, id);
			sink_text(sink, group != NULL ? "pg=" : "pg=?");
			if (group != NULL)
				sink_write(sink, group->words, strcspn(group->words, " "));
			words += strcspn(words, " ");
		} else if (strncmp(words, "pt=", 3) == 0 && !story->has_times) {
			sink_text(sink, words[3] == '0' ? "pt=0" : "pt=?");
			words += strcspn(words, " ");
		} else {
			sink_byte(sink, *words++);
		}
	}
}

static inline void story_branch(struct story *story, struct sink *sink,
				const struct story_event *first, int depth, pid_t pid)
{
	for (uint64_t type = 1; type <= 1 << 15; type <<= 1)
		for (const struct story_event *event = first; event != NULL; event = event->next) {
			if (event->type != type)
				continue;
			sink_format(sink, "%*s", 2 * depth, "");
			if (depth == 0 && event->parent != 0)
				sink_format(sink, "of %#llx: ", (unsigned long long)event->parent);
			story_words(story, sink, event->words, pid);
			sink_format(sink, ":%s\n", event->calls);
			story_branch(story, sink, event->first_child, depth + 1, pid);
		}
}

static inline void story_tree(struct story *story, struct sink *sink, pid_t pid)
{
	struct story_event *first = NULL, **last = &first;

	for (size_t i = 0; i < story->count; i++)
		story->events[i].last_child = &story->events[i].first_child;
	for (size_t i = 0; i < story->count; i++) {
		struct story_event *event = &story->events[i],
				   *parent = story_find(story, event->parent);
		struct story_event ***end = parent != NULL ? &parent->last_child : &last;

		**end = event;
		*end = &event->next;
	}
	story_branch(story, sink, first, 0, pid);
}

/* The tape, which is removed. `pid`: of the process that recorded it, -1 if unknown. */
static inline void story_show(struct sink *sink, const char *path, bool has_times, pid_t pid)
{
	struct story story = { .has_times = has_times };
	FILE *file = fopen(path, "re");
	char line[2048];

	if (file == NULL) {
		sink_text(sink, "no tape\n");
		return;
	}
	while (fgets(line, sizeof(line), file) != NULL)
		story_line(&story, line);
	fclose(file);
	unlink(path);
	sink_text(sink, story.comms);
	story_tree(&story, sink, pid);
	if (story.others[0] != '\0')
		sink_format(sink, "on handles of nobody:%s\n", story.others);
	free(story.events);
	free(story.places);
}

#endif
