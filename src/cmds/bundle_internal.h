/*
 * The archive that `ringside bundle` writes: files one after the other, what each is, and what could not be had
 * and why. It appears when it is whole (cli_output.h).
 *
 * Nothing fails on the way: the first failure of writing sticks, and bundle_commit() tells it.
 */
#ifndef BUNDLE_INTERNAL_H
#define BUNDLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmds/cli_output.h"
#include "common/attributes.h"
#include "output/sink.h"
#include "recording/recording.h"

/* All names in it begin so: who unpacks it gets one directory. */
#define BUNDLE_PREFIX "ringside-bundle/"

enum bundle_packing {
	BUNDLE_PLAIN = 0,
	BUNDLE_GZIP = 1,
	BUNDLE_ZSTD = 2,
};

struct bundle_line {
	char *name; /* of the file; of what is missing */
	char *text; /* what it is; why */
	uint64_t bytes;
};

struct bundle_lines {
	struct bundle_line *list;
	size_t count;
};

struct bundle_archive {
	struct cli_output output;
	enum bundle_packing packing;
	struct gzip_sink gzip;
	struct sink plain; /* what zstd has not taken yet */
	void *zstd;
	uint64_t modified_s;
	uint64_t bytes; /* of files, before packing */
	struct bundle_lines files;
	struct bundle_lines gaps;
};

/* By the name: .tar, .tar.gz or .tgz, .tar.zst; false: none of these. "-" is a plain one. */
bool bundle_packing_of(const char *path, enum bundle_packing *packing);

/* 0, or the exit code after it was reported why not. */
int bundle_open(struct bundle_archive *archive, const char *path, enum bundle_packing packing);

/* A file of these bytes. Names are relative, without BUNDLE_PREFIX; a name that no archive can have becomes a gap. */
void bundle_add(struct bundle_archive *archive, const char *name, const char *about,
		const void *bytes, size_t length);

/* What a memory sink holds, which is released. When that failed it is a gap. */
void bundle_add_sink(struct bundle_archive *archive, const char *name, const char *about,
		     struct sink *sink);

/* Something is not there. */
void bundle_gap(struct bundle_archive *archive, const char *what, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Write the end and put the file in its place: exit_code, or CLI_EXIT_UNKNOWN after it was reported why not. */
int bundle_commit(struct bundle_archive *archive, int exit_code);
/* Nothing of it stays. Frees lists, too; also to be called after bundle_commit(). */
void bundle_release(struct bundle_archive *archive);

/* What `ringside bundle` puts into the archive, part by part. For cmd_bundle.c. */

struct bundle_request {
	const char *path;  /* -o */
	size_t operations; /* the last so many of each process */
	uint64_t most;	   /* bytes of trace files and regions */
	bool has_regions;
	bool has_traces;
	bool is_remote;	  /* agents are asked: there are snapshots alone */
	const char *ras;  /* NULL: as NCCL_RAS_ADDR says; "" not at all */
	uint64_t hang_ns; /* 0: the doctor's own */
};

/* Agents to be asked, and how: options as the doctor has them. Texts are borrowed. */
enum { BUNDLE_AGENT_WORDS = 32 };
struct bundle_agents {
	const char *words[BUNDLE_AGENT_WORDS];
	size_t count; /* 0: none is asked */
};
void bundle_agents_say(struct bundle_agents *agents, const char *option, const char *value);

/* Ask them, into *recording, which is finished then. 0, or the exit code after an error was reported: none answers. Who
 * does not answer is a gap. */
int bundle_read_agents(struct bundle_archive *archive, const struct bundle_agents *agents,
		       size_t operations, struct recording *recording);

/*
 * Snapshots of all processes, and what agents said about theirs, in the archive and in *snapshots, an archive of their own in memory (a descriptor,
 * the caller's to close; -1 when there is none): what the doctor reads. *clean[i] says that process i had no
 * secret in it.
 */
void bundle_snapshots(struct bundle_archive *archive, struct recording *recording,
		      const struct bundle_request *request, bool *clean, int *snapshots);

/* The environment that recorders wrote down, one file for all. */
void bundle_environment(struct bundle_archive *archive, const struct recording *recording);

/* Trace files, the newest first, and regions when they are asked for. */
void bundle_raw(struct bundle_archive *archive, const struct recording *recording,
		const struct bundle_request *request, const bool *clean);

/* This machine: versions, counters of network and kernel, GPUs. */
void bundle_node(struct bundle_archive *archive, const struct recording *recording);

/* What NCCL's own RAS says. */
void bundle_ras(struct bundle_archive *archive, const char *address);

#endif
