/*
 * Logs of other tools as processes of a recording. They are read once when loaded, to find the
 * processes and what is missing, and again for every walk. Lines appended in between are ignored,
 * so that counts and records agree.
 */
#include "recording/recording.h"
#include "recording/recording_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/op.h"
#include "common/status.h"
#include "import/foreign.h"

/* A file in which every line is damaged would repeat the same trouble. */
enum { TROUBLES_OF_A_FILE = 100 };

void recording_foreign_free(struct recording_foreign *foreign)
{
	if (foreign == NULL)
		return;
	free(foreign->path);
	free(foreign);
}

bool recording_foreign_is_same(const struct recording_process *one,
			       const struct recording_process *other)
{
	return one->foreign != NULL && other->foreign != NULL &&
	       one->foreign->device == other->foreign->device &&
	       one->foreign->inode == other->foreign->inode &&
	       one->foreign->process == other->foreign->process;
}

/* ---- loading --------------------------------------------------------------------------------- */

struct load {
	struct recording *recording;
	const char *path;
	size_t noted;
};

static void note_damage(const struct foreign_damage *damage, void *context)
{
	struct load *load = context;
	enum recording_trouble_kind kind = damage->is_cut ? RECORDING_CUT : RECORDING_DAMAGE;

	if (load->noted++ >= TROUBLES_OF_A_FILE)
		return;
	if (damage->line == 0)
		recording_load_trouble(load->recording, kind, load->path, NULL, "at byte %llu: %s",
				       (unsigned long long)damage->offset, damage->what);
	else if (damage->missing > 0)
		recording_load_trouble(load->recording, kind, load->path, NULL,
				       "line %llu: %s, %llu records are missing",
				       (unsigned long long)damage->line, damage->what,
				       (unsigned long long)damage->missing);
	else
		recording_load_trouble(load->recording, kind, load->path, NULL,
				       "line %llu is skipped: %s", (unsigned long long)damage->line,
				       damage->what);
	recording_load_at(load->recording, damage->offset, damage->bytes);
}

static enum status load_comms(struct recording_process *process, const struct foreign_log *log,
			      const struct foreign_process *from)
{
	for (uint32_t i = 0; i < from->comm_count; i++) {
		const struct foreign_comm *found = &log->comms[from->comms[i]];
		struct recording_comm *comm = recording_load_comm(process, found->info.id);

		if (comm == NULL)
			return ERR_NO_SPACE;
		comm->info = found->info;
		foreign_comm_counts(found, &comm->counts);
		comm->has_counts = true;
		process->recorded += comm->counts.recorded;
	}
	recording_load_comms_end(process);
	return OK;
}

static enum status load_source(struct recording_process *process, const struct foreign_log *log,
			       uint32_t number, const char *path, const struct stat *st)
{
	const struct foreign_process *from = &log->processes[number];
	struct recording_foreign *foreign = calloc(1, sizeof(*foreign));

	process->foreign = foreign;
	if (foreign == NULL)
		return ERR_NO_SPACE;
	*foreign = (struct recording_foreign){
		.path = strdup(path),
		.format = foreign_format_name(log->format),
		.device = st->st_dev,
		.inode = st->st_ino,
		.bytes = log->bytes,
		.process = number,
		.records = from->records,
		.details = from->details,
		.untimed = from->untimed,
		.damaged = log->damaged,
		.is_alone = log->process_count == 1,
	};
	return foreign->path != NULL ? OK : ERR_NO_SPACE;
}

static enum status load_process(struct recording_process *process, const struct foreign_log *log,
				uint32_t number, const char *path, const struct stat *st)
{
	const struct foreign_process *from = &log->processes[number];
	enum status status = load_source(process, log, number, path, st);
	char text[2048];

	if (status == OK) {
		foreign_info_text(log, number, path, text, sizeof(text));
		status = recording_load_info(process, text, strlen(text));
	}
	if (status == OK)
		status = load_comms(process, log, from);
	if (status == OK && foreign_is_wall(from->first_ns))
		status = recording_load_anchor(process,
					       (struct clock_anchor){ .clock_ns = from->first_ns,
								      .wall_ns = from->first_ns });
	process->lost[LOST_RING_OVERRUN] = foreign_dropped(log, number);
	process->lost[LOST_OFF] = foreign_not_recorded(log, number);
	process->lost[LOST_DETAIL_OVERRUN] = foreign_dropped_details(log, number);
	process->odd[ODD_FOREIGN_PROCESS] = from->foreign_ops;
	process->has_counts = true;
	process->counts_ns = from->last_ns;
	return status;
}

static enum status load_processes(struct load *load, const struct foreign_log *log,
				  const struct stat *st, size_t first_trouble)
{
	struct recording *recording = load->recording;
	enum status status = OK;

	for (uint32_t i = 0; i < log->process_count && status == OK; i++) {
		struct recording_process *process = recording_process_new();

		if (process == NULL)
			return ERR_NO_SPACE;
		status = load_process(process, log, i, load->path, st);
		if (status != OK) {
			recording_process_free(process);
			return status;
		}
		status = recording_load_keep(recording, process);
		/* Damaged lines can be attributed only if the file has a single process. */
		for (size_t j = first_trouble;
		     status == OK && log->process_count == 1 && j < recording->trouble_count; j++)
			recording->troubles[j].owner = process;
	}
	return status;
}

enum status recording_foreign_load(struct recording *recording, int fd, const char *path,
				   const struct stat *st)
{
	struct load load = { .recording = recording, .path = path };
	const struct foreign_request request = { .process = -1,
						 .visit_damage = note_damage,
						 .context = &load };
	size_t first_trouble = recording->trouble_count;
	struct foreign_log log;
	enum status status;

	foreign_log_init(&log);
	status = foreign_read(&log, fd, &request);
	if (load.noted > TROUBLES_OF_A_FILE)
		recording_load_trouble(recording, RECORDING_DAMAGE, path, NULL,
				       "%zu more lines are skipped",
				       load.noted - TROUBLES_OF_A_FILE);
	if (status == ERR_SYSTEM) {
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL,
				       "cannot be read: %s", strerror(errno));
		status = OK;
	} else if (status == OK) {
		recording->files_read++;
		status = load_processes(&load, &log, st, first_trouble);
	}
	if (status == OK && log.process_count == 0 && load.noted == 0)
		recording_load_trouble(recording, RECORDING_NOTHING, path, NULL,
				       "contains no operations");
	foreign_log_release(&log);
	return status == ERR_UNKNOWN ? OK : status;
}

enum status recording_foreign_list(struct recording *recording, const char *path)
{
	char *copy = strdup(path);

	if (copy == NULL || !list_grow(&recording->foreign_paths, recording->foreign_path_count,
				       sizeof(*recording->foreign_paths))) {
		free(copy);
		return ERR_NO_SPACE;
	}
	recording->foreign_paths[recording->foreign_path_count++] = copy;
	return OK;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* This process's rank in the communicator with this hash; -1: not in it, or more than once. */
static int64_t rank_in(const struct recording_process *process, uint64_t hash)
{
	int64_t rank = -1;

	for (size_t i = 0; i < process->comm_count; i++) {
		if (process->comms[i].info.hash != hash)
			continue;
		if (rank != -1)
			return -1;
		rank = process->comms[i].info.rank;
	}
	return rank;
}

/* From another tool, directly or through `ringside import`, and without a rank. */
static bool is_rankless(const struct recording_process *process)
{
	char recorder[32];

	return process->rank == -1 &&
	       (process->foreign != NULL ||
		recording_info(process, "recorder", recorder, sizeof(recorder)));
}

static bool is_same_job(const struct recording_process *one, const struct recording_process *other)
{
	return strcmp(one->job, other->job) == 0;
}

/* Are all other processes of the job in it, each with a distinct rank? One bit per rank. */
static bool is_whole(const struct recording *recording, const struct recording_process *process,
		     const struct comm_info *comm)
{
	unsigned char *taken = calloc((size_t)comm->nranks / 8 + 1, 1);
	bool is_fine = taken != NULL;

	for (size_t i = 0; i < recording->count && is_fine; i++) {
		const struct recording_process *other = recording->processes[i];
		int64_t rank;

		if (!is_rankless(other) || !is_same_job(process, other) ||
		    (other != process && recording_foreign_is_same(process, other)))
			continue;
		rank = rank_in(other, comm->hash);
		is_fine = rank >= 0 && rank < comm->nranks && !(taken[rank / 8] >> rank % 8 & 1);
		if (is_fine)
			taken[rank / 8] |= (unsigned char)(1u << rank % 8);
	}
	free(taken);
	return is_fine;
}

/* The largest communicator of the first process of a job decides for all of them. */
static void job_ranks(const struct recording *recording, const struct recording_process *first)
{
	const struct comm_info *world = NULL;

	for (size_t i = 0; i < first->comm_count; i++) {
		const struct comm_info *comm = &first->comms[i].info;

		if (comm->hash != 0 && comm->rank >= 0 && comm->nranks > 0 &&
		    comm->nranks <= 1 << 24 && (world == NULL || comm->nranks > world->nranks))
			world = comm;
	}
	if (world == NULL || rank_in(first, world->hash) == -1 ||
	    !is_whole(recording, first, world))
		return;
	for (size_t i = 0; i < recording->count; i++) {
		struct recording_process *process = recording->processes[i];

		if (!is_rankless(process) || !is_same_job(first, process))
			continue;
		process->rank = rank_in(process, world->hash);
		process->world_size = world->nranks;
	}
}

void recording_foreign_ranks(struct recording *recording)
{
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];
		bool is_first = is_rankless(process);

		/* A job whose ranks are known or could not be found is done. */
		for (size_t j = 0; j < i && is_first; j++)
			is_first = !is_same_job(process, recording->processes[j]);
		if (is_first)
			job_ranks(recording, process);
	}
}

/* ---- walking --------------------------------------------------------------------------------- */

struct walk {
	recording_visit_op *visit_op;
	recording_visit_detail *visit_detail;
	void *context;
	struct recording_walk *counts;
};

static bool walk_op(const struct op_record *record, uint32_t process, void *context)
{
	struct op_record op = *record;
	struct walk *walk = context;
	const char *problem = op_check(&op);

	(void)process;
	if (problem != NULL) {
		walk->counts->refused++;
		walk->counts->problem = problem;
		return true;
	}
	walk->counts->untimed += !op_check_time(&op);
	walk->counts->in_trace++;
	return walk->visit_op(&op, RECORDING_IN_TRACE, walk->context);
}

static bool walk_detail(const struct op_detail *detail, uint32_t process, void *context)
{
	struct walk *walk = context;

	(void)process;
	walk->counts->in_trace++;
	return walk->visit_detail(detail, RECORDING_IN_TRACE, walk->context);
}

enum status recording_foreign_each(const struct recording_process *process,
				   recording_visit_op *visit_op,
				   recording_visit_detail *visit_detail, void *context,
				   struct recording_walk *walk)
{
	struct recording_walk unwanted;
	struct walk state = { visit_op, visit_detail, context, walk != NULL ? walk : &unwanted };
	const struct foreign_request request = {
		.process = process->foreign->process,
		.limit_bytes = process->foreign->bytes,
		.visit_op = visit_op != NULL ? walk_op : NULL,
		.visit_detail = visit_detail != NULL ? walk_detail : NULL,
		.context = &state,
	};
	int fd = file_open_same(process->foreign->path, process->foreign->device,
				process->foreign->inode);
	struct foreign_log log;
	enum status status;

	*state.counts = (struct recording_walk){ 0 };
	if (fd == -1)
		return ERR_GONE;
	foreign_log_init(&log);
	status = foreign_read(&log, fd, &request);
	state.counts->damages = log.damaged;
	foreign_log_release(&log);
	close(fd);
	/* Overwritten since it was loaded. */
	return status == ERR_UNKNOWN ? ERR_GONE : status;
}
