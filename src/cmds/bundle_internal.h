/*
 * The archive that `ringside bundle` writes: its files, a description of each, and gaps: what could not be read and
 * why. It appears only once it is complete (struct cli_output).
 *
 * Functions do not return errors: the first write error is kept, and bundle_commit() reports it.
 */
#ifndef BUNDLE_INTERNAL_H
#define BUNDLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"
#include "common/attributes.h"
#include "output/gzip_sink.h"
#include "output/sink.h"
#include "recording/recording.h"

/* Prefix of all names, so that unpacking creates one directory. */
#define BUNDLE_PREFIX "ringside-bundle/"

enum bundle_packing {
	BUNDLE_PLAIN = 0,
	BUNDLE_GZIP = 1,
	BUNDLE_ZSTD = 2,
};

struct bundle_line {
	char *name; /* of the file or of the gap */
	char *text; /* description of the file, or reason of the gap */
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
	struct sink plain; /* input that zstd has not consumed yet */
	void *zstd;
	uint64_t modified_s;
	uint64_t bytes; /* of files, uncompressed */
	struct bundle_lines files;
	struct bundle_lines gaps;
};

/*
 * Selects the format by name: .tar, .tar.gz or .tgz, .tar.zst; returns false for others. "-" is an uncompressed tar.
 */
bool bundle_packing_of(const char *path, enum bundle_packing *packing);

/* 0, or the exit code after an error was reported. */
int bundle_open(struct bundle_archive *archive, const char *path, enum bundle_packing packing);

/* Adds a file. Names are relative, without BUNDLE_PREFIX; an invalid name becomes a gap. */
void bundle_add(struct bundle_archive *archive, const char *name, const char *about,
		const void *bytes, size_t length);

/* Adds the contents of a memory sink and releases it. A failed sink becomes a gap. */
void bundle_add_sink(struct bundle_archive *archive, const char *name, const char *about,
		     struct sink *sink);

/* Adds a gap: something that is missing, and why. */
void bundle_gap(struct bundle_archive *archive, const char *what, const char *format, ...)
	PRINTF_LIKE(3, 4);

/*
 * Finishes the archive and moves it into place. Returns exit_code, or CLI_EXIT_UNKNOWN after an error was reported.
 */
int bundle_commit(struct bundle_archive *archive, int exit_code);
/* Discards the archive and frees the lists; also needed after bundle_commit(). */
void bundle_release(struct bundle_archive *archive);

/* The parts of the archive, for cmd_bundle.c. */

struct bundle_request {
	const char *path;  /* -o */
	size_t operations; /* last operations per process */
	uint64_t most;	   /* bytes of trace files and regions */
	bool has_regions;
	bool has_traces;
	bool has_no_stacks;
	bool has_native;
	bool has_any_user;
	bool is_remote;	 /* agents are queried: snapshots only */
	const char *ras; /* NULL: NCCL_RAS_ADDR; "": do not query */
	bool has_ras_diagnostics;
	uint64_t hang_ns; /* 0: the doctor's default */
};

/* Agents to query, and how: options as for the doctor. Strings are borrowed. */
enum { BUNDLE_AGENT_WORDS = 32 };
struct bundle_agents {
	const char *words[BUNDLE_AGENT_WORDS];
	size_t count; /* 0: none */
};
void bundle_agents_say(struct bundle_agents *agents, const char *option, const char *value);

/*
 * Queries the agents and fills and finishes *recording. Returns 0, or the exit code after an error was reported (no
 * agent answered). An agent that does not answer is a gap.
 */
int bundle_read_agents(struct bundle_archive *archive, const struct bundle_agents *agents,
		       size_t operations, struct recording *recording);

/*
 * Adds snapshots of all processes and the notes of agents to the archive, and to *snapshots, a separate archive in
 * memory that the doctor reads (a descriptor that the caller closes; -1 on failure). *clean[i]: process i has no
 * secrets.
 */
void bundle_snapshots(struct bundle_archive *archive, struct recording *recording,
		      const struct bundle_request *request, bool *clean, int *snapshots);

/* The recorded environment variables, one file for all processes. */
void bundle_environment(struct bundle_archive *archive, const struct recording *recording);

/* Trace files, newest first, and regions if requested. */
void bundle_raw(struct bundle_archive *archive, const struct recording *recording,
		const struct bundle_request *request, const bool *clean);

/* Facts of this host (import/host_facts.h), as a note that the doctor reads: before bundle_snapshots(). */
#define BUNDLE_FACTS "node/host.json"
void bundle_facts(struct bundle_archive *archive, struct recording *recording);

/* This machine: versions, counters of network and kernel, GPUs. */
void bundle_node(struct bundle_archive *archive, const struct recording *recording);

/* The status that NCCL's RAS reports. */
void bundle_ras(struct bundle_archive *archive, const char *address, bool has_diagnostics);

#endif
