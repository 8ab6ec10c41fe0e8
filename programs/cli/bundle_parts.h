/* What `ringside bundle` puts into the archive, part by part. For cmd_bundle.c. */
#ifndef BUNDLE_PARTS_H
#define BUNDLE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "programs/cli/bundle_archive.h"
#include "recording/recording.h"

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

/* Ask them, into *recording, which is finished then. 0, or the exit code after an error was told: none answers. Who
 * does not answer is a gap. */
int bundle_read_agents(struct bundle_archive *archive, const struct bundle_agents *agents,
		       size_t operations, struct recording *recording);

/* Take lines "env.NAME=VALUE" of secrets out of what a process says about itself. How many there were. */
size_t bundle_clean_info(struct recording_process *process);

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

/* What the doctor says of *snapshots, for people and for programs. */
void bundle_doctor(struct bundle_archive *archive, const struct bundle_request *request,
		   int snapshots);

/* This machine: versions, counters of network and kernel, GPUs. */
void bundle_node(struct bundle_archive *archive, const struct recording *recording);
void bundle_counters(struct bundle_archive *archive);
void bundle_kernel_log(struct bundle_archive *archive);

/* What NCCL's own RAS says. */
void bundle_ras(struct bundle_archive *archive, const char *address);

/* README.txt: what each file is, and what is not there. */
void bundle_readme(struct bundle_archive *archive, const struct bundle_request *request,
		   const struct recording *recording);

#endif
