/*
 * A recording: the one structure that all commands read, whatever it was recorded from.
 *
 * A recording is a list of processes. Each comes from its trace files, from its region, or from
 * both: the trace of a killed process ends where its thread last wrote, and the region still has
 * what came after. Logs of other tools (src/import) are processes, too. Operations are not kept in
 * memory; recording_each_op() iterates over them.
 *
 *	recording_init(&recording);
 *	recording_add(&recording, "DIR", 0);      or a trace file, a region, "@PID"
 *	recording_finish(&recording);
 *	for (i = 0; i < recording.count; i++)
 *		recording_each_op(recording.processes[i], visit, context, &walk);
 *	recording_release(&recording);
 *
 * No input is trusted: all texts are terminated and without control bytes, all numbers are in their
 * ranges (op.h), and all lists are bounded by what was really there.
 */
#ifndef RECORDING_H
#define RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "format/region_layout.h"
#include "format/region_read.h"

/* How a process's recording ends. */
enum recording_life {
	RECORDING_UNKNOWN = 0, /* not ended cleanly, and it is unknown whether it runs */
	RECORDING_ALIVE = 1,   /* now; for a snapshot: when it was made, see is_snapshot */
	RECORDING_ENDED = 2,   /* cleanly: CLOSE in the trace, ended_ns in the region */
	RECORDING_KILLED = 3,  /* the process is gone and never ended its recording */
};

const char *recording_life_name(enum recording_life life); /* "alive", "ended", ... */

struct recording_comm {
	struct comm_info info;
	struct comm_counts counts; /* the latest known */
	bool has_counts;
	/*
	 * Set by job_make(): it made calls that were not recorded, so its calls cannot be matched
	 * with those of other ranks. That it has not recorded a call means nothing.
	 */
	bool is_unplaced;
};

/* One of NCCL's proxy operations: one channel, one peer, one direction. */
struct recording_proxy {
	struct region_proxy proxy;
	struct region_step steps[WINDOW_STEPS]; /* open transfers, sorted by step */
	unsigned int step_count;
};

/* An operation in a live slot. State done: finished, not yet moved to the ring. */
struct recording_flight {
	struct op_record op;
	uint32_t open_children; /* kernel channels and proxy operations */
	bool is_retiring;	/* over, being moved to the ring: may be there, too */
	uint64_t started[4];	/* bit c: kernel channel c started */
	uint64_t stopped[4];
	struct recording_proxy *proxies; /* by channel, peer, direction */
	size_t proxy_count;
};

/* One trace file of a process. A process has several if it restarted recording. */
struct recording_file {
	char *path;	/* in an archive: the archive's name, '/', its name there */
	char *archive;	/* the archive that contains it; NULL: a file of its own, or memory */
	uint64_t start; /* its offset there */
	const unsigned char *memory; /* its bytes; NULL: read from the file */
	uint64_t device;
	uint64_t inode; /* in memory: a hash of its bytes, and no device */
	uint64_t bytes;
	bool is_snapshot;
	uint64_t live_after; /* snapshot: later sequences are operations in flight, not records */
	uint64_t created_wall_ns;
	uint64_t records;	 /* operations in valid blocks */
	uint64_t details;	 /* details in valid blocks */
	uint64_t first_sequence; /* of its first valid operation; 0: none */
	uint64_t last_sequence;	 /* of its last valid operation; 0: none */
	uint64_t last_detail;	 /* sequence of its last valid detail; 0: none */
	uint64_t damages;
	uint64_t unknown_blocks; /* of a newer minor version: skipped */
	bool is_closed;
	uint64_t cut_offset; /* not closed: end of the last valid block */
};

/* The log of another tool (src/import), or the part of it that belongs to this process. */
struct recording_foreign {
	char *path;
	const char *format; /* "NCCL Inspector's log"; static */
	uint64_t device;
	uint64_t inode;
	uint64_t bytes;	  /* size when it was loaded; later lines are ignored */
	uint32_t process; /* which of the file's processes */
	uint64_t records;
	uint64_t details;
	uint64_t untimed; /* records without a duration */
	uint64_t damaged; /* lines of the file that could not be read */
	bool is_alone;	  /* the file has no other process */
	bool is_dump;	  /* one moment, with what was in flight: PyTorch's Flight Recorder */
	/* Of a dump, CLOCK_REALTIME: */
	uint64_t last_ns;	/* its last entry */
	uint64_t written_ns;	/* when its file was written or copied */
	uint64_t open_since_ns; /* its first call in flight; 0: none */
	uint64_t open_limit_ns; /* after which PyTorch ends the job; 0: unknown */
};

enum {
	RECORDING_WHERE_BYTES = 768,
	RECORDING_WHERES_KEPT = 8, /* in a snapshot */
};

/* Where in the program a call was made. */
struct recording_where {
	uint32_t comm;
	uint64_t number;
	uint64_t issue_ns;
	bool is_open;
	char *text; /* "train.py:88 in step < train.py:120 in main": innermost first */
};

struct recording_process {
	/* Identity and settings, from the info text; "", -1 or 0 if not given. */
	char *info; /* the text itself, see info_get() */
	size_t info_bytes;
	char host[256];
	char boot_id[40];
	char job[128];
	char mode[16];
	/*
	 * The user whose file it is, as the file system says; of a snapshot, as its agent said; -1:
	 * unknown. Processes of different users are never of one job.
	 */
	int64_t owner;
	int64_t pid;	  /* in its own namespace */
	int64_t pid_here; /* in our namespace; -1: unknown or not alive */
	/* Of its cgroup, if it was seen alive on this host; "": unknown, or in no container. */
	char container_id[16]; /* the first 12 digits, as tools show it */
	char pod_uid[40];
	uint64_t pid_namespace;
	uint64_t start_ticks;
	int64_t rank;
	int64_t local_rank;
	int64_t world_size;
	/*
	 * A job that was started again keeps its name. Its runs are numbered from 1 by start; 0: not
	 * determined. See recording_find_runs().
	 */
	uint64_t started_wall_ns; /* CLOCK_REALTIME of its host; 0: unknown */
	uint32_t run;
	uint32_t runs;	     /* how many its job has */
	bool is_earlier_run; /* all of its run ended before the last one began */
	uint32_t interface;  /* of the first communicator; 0: unknown */

	enum recording_life life;
	char process_state; /* as in /proc/PID/stat: 'T' stopped, 't' traced; 0: unknown or not alive */

	/*
	 * Known only from snapshots (docs/FORMATS.md): a single moment, counts_ns, which is "now"
	 * for everything about it. life and process_state are those of that moment. What it
	 * finished before the last snapshot_operations is not missing: a snapshot does not include
	 * it.
	 */
	bool is_snapshot;
	uint64_t snapshot_wall_ns; /* the same moment, CLOCK_REALTIME of its host; 0: no snapshot */
	uint64_t snapshot_operations;
	enum recording_life snapshot_life;
	char snapshot_state;
	/* The moment is not known, only that it was not before counts_ns: a dump that may have been copied. Who has
	 * called what is known, for how long is not. */
	bool is_undated;

	/* Sources. */
	struct recording_file *files; /* trace files, oldest first */
	size_t file_count;
	char *region_path;     /* NULL: no region was read */
	struct region *region; /* open, its header as it was read; NULL: none */
	bool is_moving;	       /* counts changed while they were read: they may not add up */
	/* An older recorder added network spans to its totals: those that may have some count as not timed. */
	bool has_spans_in_totals;
	struct recording_foreign *foreign; /* NULL: recorded by Ringside itself */
	/* From a dump of the program's own recorder: calls in flight, and the last of each communicator. */
	struct recording_where *wheres;
	size_t where_count;
	/*
	 * Where the process was in its program at this moment, as a phrase after "is": "in train.py:88 in step (asleep in
	 * futex)". NULL: not known. From a snapshot, or set by stacks_of_recording().
	 */
	char *stack;

	/* Contents. */
	struct recording_comm *comms; /* by id, including finalized ones */
	size_t comm_count;
	uint32_t *comm_index;		  /* only while loading */
	struct recording_flight *flights; /* by communicator and number */
	size_t flight_count;
	struct recording_proxy *proxies; /* for other processes (PXN), or of unknown operations */
	size_t proxy_count;
	/*
	 * What was moved to and from each peer since the process began. The first is "other", with
	 * key 0. Empty before the first proxy operation, and in trace files before format 2.1. If a
	 * region is being followed, they may be a few scans old.
	 */
	struct region_link *links;
	size_t link_count;
	/*
	 * Only after recording_refresh(), see there. Sorted by key; the first is "other", with key
	 * 0. They include operations that are done but still in live slots, which the recorder has
	 * not counted yet; of those only the last of each communicator are among flights. They
	 * never decrease.
	 */
	struct region_total *totals;
	size_t total_count;
	struct recording_follow *follow; /* private to recording_refresh() */
	size_t filling;			 /* live slots being filled: issued, not readable yet */
	uint64_t lost[LOST_REASONS];
	uint64_t odd[ODD_REASONS];
	bool has_counts;    /* lost, odd and the communicators' counts are known */
	bool is_final;	    /* and nothing came after them: from a region or from CLOSE */
	uint64_t recorded;  /* records finished so far: the last sequence assigned */
	uint64_t drained;   /* region: sequences up to here are in the trace or counted as lost */
	uint64_t counts_ns; /* recorder's clock when the counts were taken; 0: unknown */
	uint64_t ended_ns;  /* recorder's clock when it ended cleanly; 0: it did not, or unknown */
	uint64_t alive_ns;  /* region: recorder's clock at the last heartbeat; 0: none */
	uint64_t heartbeat_ns; /* between two heartbeats; 0: there are none */
	bool is_copy; /* region: a copy of the file; shows its process until the last heartbeat */
	/*
	 * Recorder's clock: when it last asked the GPU about CUDA events, as of the flights; 0: never, or
	 * unknown. What OP_FLAG_SEEN_OPEN says of a flight was so at this moment.
	 */
	uint64_t times_read_ns;
	char names[OP_NAMES_INTERNED_MAX][32];
	struct clock_anchor *anchors; /* by clock_ns */
	size_t anchor_count;
	/*
	 * Taken by the reader of a region on the same host and boot: without a thread the recorder
	 * takes an anchor only at its start. It implies nothing about the process. wall_ns 0: none.
	 */
	struct clock_anchor fresh_anchor;
	/*
	 * What it did before what its ring buffer holds: kept by whoever follows it, see
	 * recording_past_follow(). Of a snapshot that has some of it: its last operations begin with this sequence;
	 * else 0.
	 */
	struct recording_past *past;
	uint64_t past_before;
	struct recording_shift *shifts; /* private to recording_show_past(), like the next two */
	size_t shift_count;
	uint64_t recent_ns;
	size_t refused;		 /* invalid comms, live slots and proxies */
	const char *refused_why; /* the last of them; static */
};

/* Something that could not be read. The rest was. */
enum recording_trouble_kind {
	RECORDING_DAMAGE = 1,	  /* bytes of a trace file or slots of a region are damaged */
	RECORDING_CUT = 2,	  /* a trace file ends without CLOSE, and no region has the rest */
	RECORDING_FOREIGN = 3,	  /* a file without operations that we could read */
	RECORDING_UNREADABLE = 4, /* a system call failed */
	RECORDING_TOO_NEW = 5,	  /* newer major version */
	RECORDING_NOTHING = 6,	  /* a path or @PID without any recording */
};

const char *recording_trouble_name(enum recording_trouble_kind kind); /* "damage", "cut", ... */

struct recording_trouble {
	enum recording_trouble_kind kind;
	char *path;
	uint64_t offset;			 /* in that file, where applicable */
	uint64_t bytes;				 /* unreadable because of it; 0: unknown */
	const struct recording_process *process; /* NULL: of none; valid after recording_finish() */
	char what[120];
};

/*
 * What an agent reports about its snapshot, and a bundle about its agents: the files agent.json and
 * agents.json of an archive, unchanged; and the answers of NCCL's RAS, ras/status.json and .txt.
 * doctor/coverage.c and doctor/ras_find.c interpret them.
 */
struct recording_note {
	char *path;
	char *text; /* terminated */
	size_t length;
};
/* Limits over all notes: one per agent that can be asked, plus one. */
enum { RECORDING_NOTES_MAX = 16385, RECORDING_NOTES_BYTES = 64 << 20 };

/* Of truncated files, and as many of all other kinds: thousands of ranks that were killed hide no damage. */
enum { RECORDING_TROUBLES_MAX = 1000 };

/* What a watch left out of a user: see watch.h. */
struct recording_left_out {
	uint32_t owner;	    /* uid */
	size_t processes;   /* found and not followed */
	size_t directories; /* not searched to their end */
	bool is_silent; /* something of the user's did not answer, and is not asked for a while */
};

struct recording {
	const char *directory; /* where to look for regions, see region_find(); NULL: default */
	bool is_any_owner;     /* processes of different users may be of one job */
	size_t owners_apart; /* after recording_finish(): processes whose job was renamed for that */
	/* After recording_finish(): by job, run, rank, start, host, pid. */
	struct recording_process **processes;
	size_t count;
	struct recording_trouble *troubles; /* the first ones */
	size_t trouble_count;
	size_t cut_count; /* of these: RECORDING_CUT */
	size_t troubles_left_out;
	size_t cuts_left_out; /* of these: RECORDING_CUT */
	size_t files_read;
	size_t files_foreign;
	struct recording_note *notes;
	size_t note_count;
	size_t note_bytes;
	char **foreign_paths; /* RECORDING_LIST_FOREIGN: other tools' logs, in the order found */
	size_t foreign_path_count;
	struct recording_left_out *left_out; /* of a watch, by user */
	size_t left_out_count;
	struct recording_shown *shown; /* see recording_show_past(); NULL: the past is not shown */
};

enum recording_flag {
	/*
	 * Regions only: also read the trace file named in the region's info. A region found through
	 * a trace's info is always read with it.
	 */
	RECORDING_WITH_TRACES = 1u << 0,
	/* Do not look for the region named in a trace's info. */
	RECORDING_TRACES_ALONE = 1u << 1,
	/* Do not read other tools' logs, only list them in foreign_paths. */
	RECORDING_LIST_FOREIGN = 1u << 2,
};

/* The pid to show and to use on its host: that of our own namespace if it is known. */
static inline int64_t recording_pid(const struct recording_process *process)
{
	return process->pid_here > 0 ? process->pid_here : process->pid;
}

/* Where this operation was called; number 0: its last call of any communicator. NULL: unknown. */
const struct recording_where *recording_where(const struct recording_process *process,
					      uint32_t comm, uint64_t number);

/*
 * The container's id and the pod's uid in a path of /proc/PID/cgroup, as containerd, CRI-O, Docker
 * and Podman name them, with either cgroup driver. "" where there is none.
 */
void recording_container(const char *cgroups, char container_id[16], char pod_uid[40]);

void recording_init(struct recording *recording);
void recording_release(struct recording *recording);

/*
 * Read `path`: a trace file, a region, another tool's log, a directory of these (recursively), or
 * "@PID" for a process on this host. The type is determined by content, never by name. Trouble with
 * one file is noted in troubles and does not end the reading. Fails only with ERR_NO_SPACE
 * (memory), with everything read before intact.
 */
enum status recording_add(struct recording *recording, const char *path, unsigned int flags);

/* All regions on this host, live and dead, in `directory` or, if NULL, recording->directory. */
enum status recording_add_machine(struct recording *recording, const char *directory,
				  unsigned int flags);

/*
 * Read a process with an open region again: communicators, counts and flights, to follow it while
 * it runs; with RECORDING_REFRESH_TOTALS also totals and links. Updates life. If reading fails,
 * everything stays as it was: ERR_TRUNCATED, ERR_SYSTEM, ERR_NO_SPACE (memory), ERR_GONE (it has no
 * open region). Does not touch trace files.
 */
enum recording_refresh_flag {
	RECORDING_REFRESH_TOTALS = 1u << 0,
	/* Only if something happened since: see recording_stands_still(). */
	RECORDING_REFRESH_MOVED = 1u << 1,
	/*
	 * Change life only to ENDED: finding a process in another namespace takes a search through
	 * all processes.
	 */
	RECORDING_REFRESH_SAME_LIFE = 1u << 2,
};
enum status recording_refresh(struct recording_process *process, unsigned int flags);

/*
 * Read the same process into another recording: everything its open region says now, for callers
 * that must not change what others are using. Life and state are updated if it was found alive.
 * ERR_GONE: it has no open region; otherwise as above. recording_finish() is not needed.
 */
enum status recording_add_again(struct recording *recording,
				const struct recording_process *process);

/* When it last called NCCL, by its own clock; 0: never. */
uint64_t recording_last_call_ns(const struct recording_process *process);

/* Memory that a process takes in this recording. */
uint64_t recording_process_bytes(const struct recording_process *process);

/*
 * Was nothing issued or finished since it was read, and nothing in flight then? Costs a read of the
 * header and of the communicators' counts.
 */
bool recording_stands_still(const struct recording_process *process);

/* Close its region but keep its last state: a descriptor would keep a deleted region in memory. */
void recording_rest(struct recording_process *process);

/* After the last add: merge the sources of each process, sort, determine which are alive and runs. */
enum status recording_finish(struct recording *recording);

/*
 * Fill in the flights of processes without a region: operations that were not over at the end of
 * their trace, with their proxy operations and open transfers from details; and the last few of
 * each communicator, in state done, as in a live table. Reads their operations once. After
 * recording_finish(). ERR_NO_SPACE, or any error of recording_each_op().
 */
enum status recording_find_flights(struct recording *recording);

/*
 * One moment of a process as a trace file, which all commands read like any other: identity,
 * communicators, counts, what is in flight with its transfers, and the last `last_operations`
 * finished operations (from a region: as many as its ring still has), and up to `past_operations` of
 * what was kept of the time before these. Small enough for an agent to
 * serve or a ticket to carry. Its info has "snapshot_wall_ns" and, if known, "snapshot_life" and
 * "snapshot_state" (of the process: R, S, D, T ... as in /proc). The moment is that of the last
 * read or refresh: only the ring is read again, and only what was finished then. *bytes is the
 * caller's to free(). ERR_NO_SPACE (memory), or an error from reading a trace.
 */
enum status recording_snapshot(const struct recording_process *process, size_t last_operations,
			       size_t past_operations, unsigned char **bytes, size_t *length);

/*
 * Keep stretches of what a process does, at most `most` operations, so that they can be had once its ring buffer has
 * overwritten them. At every scan, after it was refreshed. True: a stretch was read, which takes about a millisecond;
 * without may_take that is put off to a later scan. recording_past.c says which are kept.
 */
bool recording_past_follow(struct recording_process *process, uint64_t wall_ns, uint64_t most,
			   bool may_take);
uint64_t recording_past_bytes(const struct recording_process *process);

/*
 * Readers do not see what snapshots have of the past, until it is shown. Then the time that was not kept is cut out: what
 * follows is later by as much. Only if all processes are of one job. After recording_finish(). ERR_NO_SPACE.
 */
enum status recording_show_past(struct recording *recording);
void recording_hide_past(struct recording *recording);
/* When that was: the wall time of what readers see at this wall time. The same if no past is shown. */
uint64_t recording_past_wall(const struct recording *recording, uint64_t shown_ns);
/*
 * Is this where time was cut out, within some seconds? Then what was found there happened in the wall time from *from_ns to
 * *until_ns.
 */
bool recording_past_gap(const struct recording *recording, uint64_t shown_ns, uint64_t *from_ns,
			uint64_t *until_ns);

/*
 * recording_add() for bytes in memory: a trace file, or a tar archive of trace files and
 * directories. They are copied as needed. `name` is used in messages. Other files in an archive are
 * counted in files_foreign and are not trouble: they may be logs.
 */
enum status recording_add_memory(struct recording *recording, const char *name, const void *bytes,
				 size_t length, unsigned int flags);

/* Add a note, copied. One too many or too long is a trouble; ERR_NO_SPACE only for memory. */
enum status recording_add_note(struct recording *recording, const char *path, const void *text,
			       size_t length);

/* Where an operation was found. */
enum recording_place {
	RECORDING_IN_TRACE = 1,
	RECORDING_IN_RING = 2, /* in the region but not in the trace */
	RECORDING_IN_LIVE = 3, /* in flight, or done and not yet moved */
};

/* Statistics of a walk: did it see everything? */
struct recording_walk {
	uint64_t in_trace; /* returned from each place */
	uint64_t in_ring;
	uint64_t in_live;
	uint64_t repeated;    /* duplicates: not returned */
	uint64_t refused;     /* invalid records: not returned */
	uint64_t refused_at;  /* file offset of the block (trace) with the last of them */
	uint64_t untimed;     /* returned, but without a time because it does not fit its source */
	uint64_t recovered;   /* of in_ring: counted as lost on the way to the file */
	uint64_t overwritten; /* ring slots overwritten by later records during reading */
	uint64_t torn;	      /* ring slots being written, or left so by a killed writer */
	uint64_t damages;     /* blocks of a trace file that cannot be read */
	const char *problem;  /* of the last invalid one; static; NULL: none */
};

/* Return false to end the walk. Pointers are valid during the call. */
typedef bool recording_visit_op(const struct op_record *op, enum recording_place place,
				void *context);
typedef bool recording_visit_detail(const struct op_detail *detail, enum recording_place place,
				    void *context);

/*
 * All operations of a process, each once: those of its trace files, then what the region adds
 * (records with a later sequence), then live slots. Ordered by sequence, then the live ones by
 * communicator and number. *walk may be NULL. ERR_NO_SPACE (memory), ERR_SYSTEM, ERR_GONE (a file
 * was replaced), ERR_TRUNCATED (the region was truncated in the meantime).
 */
enum status recording_each_op(const struct recording_process *process, recording_visit_op *visit,
			      void *context, struct recording_walk *walk);

/*
 * The same records in the same order, some hundreds at a time and only the requested words
 * (OP_WORD_BIT() of each), for reading millions. A batch comes from one place and has at least one
 * row; columns are valid during the call.
 *
 * Invalid and duplicate records are left out and counted in *walk, as above: the records are the
 * same whatever is requested. If OP_WORD_STATE is requested, its time source is none where the
 * times do not fit it, as above; if not, walk->untimed stays 0.
 */
typedef bool recording_visit_batch(const struct op_batch *batch, enum recording_place place,
				   void *context);
enum status recording_each_batch(const struct recording_process *process, uint32_t words,
				 recording_visit_batch *visit, void *context,
				 struct recording_walk *walk);

/* The same for details (mode full): in trace files, then what the region adds. */
enum status recording_each_detail(const struct recording_process *process,
				  recording_visit_detail *visit, void *context,
				  struct recording_walk *walk);

/* NULL if the process has no such communicator. */
const struct recording_comm *recording_comm(const struct recording_process *process, uint32_t id);

/* The name for a number in a record, including interned ones; "?" if unknown. */
const char *recording_name(const struct recording_process *process, enum op_name_table table,
			   uint8_t number);

/* A value from the process's info text; false and "" if there is none. */
bool recording_info(const struct recording_process *process, const char *key, char *value,
		    size_t size);
/* A path from it, byte for byte, see info_get_path(). */
bool recording_info_path(const struct recording_process *process, const char *key, char *path,
			 size_t size);
/* All lines of the info text, see info_next(): start with *at = 0, call until false. */
bool recording_info_next(const struct recording_process *process, size_t *at, char *key,
			 size_t key_size, char *value, size_t value_size);

/* RINGSIDE_HANG_AFTER of its job: no hang is reported before; 0: not set. */
enum { RECORDING_HANG_AFTER_MOST_S = 7 * 24 * 3600 };
uint64_t recording_hang_after_ns(const struct recording_process *process);

/*
 * The hosts of its job as its launcher lists them, in the syntax of `ringside doctor --agents`: from its
 * environment, or from RINGSIDE_HOSTS. Only host names, ranges and ports; nothing that a shell would
 * interpret. False: unknown.
 */
bool recording_hosts(const struct recording_process *process, char *hosts, size_t size);

/*
 * Recorder's clock to wall time; false if there is no anchor. Interpolates between two anchors. If
 * the wall clock was set between them, uses the earlier one, or the fresh one if that is nearer.
 */
bool recording_wall_ns(const struct recording_process *process, uint64_t clock_ns,
		       uint64_t *wall_ns);

/* The reverse. 1 for moments before the clock began; false if there is no anchor. */
bool recording_clock_ns(const struct recording_process *process, uint64_t wall_ns,
			uint64_t *clock_ns);

/* The recorder's clock now; false unless its region is of this host and boot. */
bool recording_now(const struct recording_process *process, uint64_t *now_ns);

/*
 * Determine the runs of each job. Processes of a job must be adjacent. Part of recording_finish();
 * for recordings that grow. ERR_NO_SPACE (memory).
 */
enum status recording_find_runs(struct recording *recording);

/*
 * The last sign of life: the newest heartbeat, anchor or event, the end of the recording, the moment
 * of a snapshot. "Now" for a process that is gone: it died at this time or later. 0: unknown.
 */
uint64_t recording_last_ns(const struct recording_process *process);

/*
 * Was there a regular sign of life, so that a process that is gone died within seconds of the last
 * one? Otherwise it may have done nothing for hours before.
 */
bool recording_end_is_known(const struct recording_process *process);

/*
 * Does everything add up? By the recorder's own counters, per communicator,
 *
 *	issued == recorded + in flight
 *
 * and, where a trace file should have every record, per process,
 *
 *	recorded == readable now + lost on the way to the file
 *
 * Operations of communicators without a slot in the region, and those shown while recording was
 * off, have no counters: they are only in lost_operations. So, for the whole process, what NCCL
 * showed is issued + lost[LOST_NO_COMM] + lost[LOST_OFF]; lost[LOST_NOT_SHOWN] are calls it made in
 * addition.
 */

struct recording_account_comm {
	uint32_t id;
	bool has_counts; /* false: the number issued is unknown, only `kept` is known */
	uint64_t issued;
	uint64_t recorded;  /* by the recorder's own count */
	uint64_t timed;	    /* of recorded */
	uint64_t untrusted; /* of recorded: GPU stamps rejected */
	uint64_t captured;
	uint64_t replayed;
	uint64_t abandoned;
	uint64_t untracked;
	uint64_t in_flight; /* in live slots, not yet counted as recorded */
	uint64_t retiring;  /* in live slots being emptied: finished, perhaps counted */
	uint64_t kept;	    /* finished operations that can be read now: files and ring */
	int64_t missing;    /* issued - recorded - in_flight: 0 if it adds up */
};

struct recording_account {
	struct recording_account_comm *comms; /* by id */
	size_t comm_count;
	/* Totals over the communicators. */
	uint64_t issued;
	uint64_t recorded;
	uint64_t timed;
	uint64_t untrusted;
	uint64_t in_flight;
	uint64_t kept;
	uint64_t lost_operations; /* whole operations, all reasons */
	/* Of these: overwritten in the ring and not counted, because the process was killed. */
	uint64_t lost_uncounted;
	uint64_t lost_details; /* details of recorded operations */
	bool has_counts;       /* of any communicator */
	/* Counts are final, both equations hold, nothing readable was damaged. */
	bool is_exact;
	int64_t missing; /* total over the communicators: 0 if exact */
	/* keeps_all: records neither readable nor counted as lost; negative: more than counted. */
	int64_t unread;
	bool is_moving; /* the process runs: counts changed while they were read */
	bool keeps_all; /* trace modes: every record should be readable; else only the latest */
	struct recording_walk walk;
};

/*
 * Reads all operations. ERR_NO_SPACE, or any error of recording_each_op(). Release in every case.
 */
enum status recording_account(struct recording_account *account,
			      const struct recording_process *process);
void recording_account_release(struct recording_account *account);

/* Note trouble. If memory runs out, it is only left out. `process` may be NULL. */
void recording_load_trouble(struct recording *recording, enum recording_trouble_kind kind,
			    const char *path, const struct recording_process *process,
			    const char *what, ...) PRINTF_LIKE(5, 6);

/* A new, empty process, not yet in the list; NULL: out of memory. */
struct recording_process *recording_process_new(void);
void recording_process_free(struct recording_process *process);

/* Add it to the list, which then owns it. ERR_NO_SPACE: it is freed. */
enum status recording_load_keep(struct recording *recording, struct recording_process *process);

/* The communicator with this id, created if new; NULL: out of memory. Valid until the next call. */
struct recording_comm *recording_load_comm(struct recording_process *process, uint32_t id);

/* No more communicators for now: sort them. */
void recording_load_comms_end(struct recording_process *process);

/* Anchors come in order; one from before the last is ignored. */
enum status recording_load_anchor(struct recording_process *process, struct clock_anchor anchor);

enum status recording_region_load(struct recording *recording, int fd, const char *path,
				  struct recording_process **process);

/* Is it running? Checks its identity, under the pid where it was found before, if any. */
void recording_load_life(struct recording_process *process);

/* The same for those who do not read it again: one that ended after it was read was alive. */
void recording_load_life_once(struct recording_process *process);

/* By identity: job, rank, host, pid. What describes the same process is adjacent. For qsort(). */
int recording_load_order(const struct recording_process *a, const struct recording_process *b);

/* By job, rank and start: the order in which a rank was started again. */
int recording_start_order(const struct recording_process *a, const struct recording_process *b);

/*
 * Does its region belong to another user than the process that it claims to be of? Anyone who can
 * write a file can make it claim any process. True only if both are known.
 */
bool recording_is_forged(const struct recording_process *process);

/* Is it of the job of this name? "NAME (uid 1000)" is also the job NAME of that user, where it is shown without. */
bool recording_is_job(const struct recording_process *process, const char *name);

/*
 * Give the job of `process` another name, "NAME (uid 1000)", if a process of the list has the same job
 * and another owner.
 */
void recording_keep_apart(struct recording_process *process, struct recording_process *const *list,
			  size_t count);

/* Do both describe the same process? */
bool recording_load_is_same(const struct recording_process *one,
			    const struct recording_process *other);

/* For qsort: struct recording_proxy by channel, peer and direction. */
int recording_compare_proxies(const void *one, const void *other);

/*
 * Asking a running process to time every operation for a while. The request is the only word of a
 * region that other processes write; the recorder polls it and answers in the next word. Anyone who
 * may write the file may ask: the process's user, and root.
 */

enum recording_answer {
	RECORDING_GRANTED = 0,
	RECORDING_PENDING = 1, /* the process has called nothing since */
	RECORDING_ALREADY = 2, /* every operation is timed anyway: no request was made */
	RECORDING_REFUSED = 3, /* it times nothing, or no longer */
	RECORDING_FAILED = 4,  /* it could not be asked */
	RECORDING_ANSWERS = 5,
};
const char *recording_answer_name(enum recording_answer answer); /* "granted", "pending", ... */

enum { RECORDING_REASON = 320 };

struct recording_ask {
	uint64_t request; /* as written; 0: nothing was */
	enum recording_answer answer;
	char reason[RECORDING_REASON]; /* "" when granted */
};

/*
 * How a process times its operations: "auto" (CUDA events around a share of the launches), "all" (around every launch),
 * "kernel" (kernel events for every operation), "sampled" (kernel events for a share: recorders before 0.3), "off"; ""
 * if it is not known. And what its recorder counted so far.
 */
struct recording_times {
	char in_effect[8];
	char reason[RECORDING_REASON]; /* why that is in effect; may be "" */
	bool has_counts;	   /* the following are known: there is a region, and CUDA events */
	uint64_t timed_launches;   /* with CUDA events around them */
	uint64_t untimed_launches; /* chosen to be timed, but no event was free */
	uint64_t timed_captures;   /* launches in CUDA graphs with events around them ... */
	uint64_t untimed_captures; /* ... with events that nobody reads: no others were free */
	uint64_t closed_captures;  /* chosen, but events may not be allowed in their graph */
	uint64_t replays_read, replays_dropped; /* of these launches; too late for their record */
	uint64_t recording_ns; /* spent on recording events, on the threads that launch */
	uint64_t taken;	       /* launches whose time reached their operations */
	uint64_t dropped;      /* launches whose time came too late or was not plausible */
};

void recording_times(const struct recording_process *process, struct recording_times *times);

/* The process must have an open region. */
void recording_ask_times(struct recording_ask *ask, const struct recording_process *process,
			 uint32_t seconds);

/* Check for an answer; false while it is pending. */
bool recording_ask_answered(struct recording_ask *ask, const struct recording_process *process);

#endif
