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
#include "common/text.h"
#include "import/foreign.h"

/* A file in which every line is damaged would repeat the same trouble. */
enum { TROUBLES_OF_A_FILE = 100, WHERES_MAX = 4096, FLIGHTS_MAX = 16384 };

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
	/* Of a dump: where calls were made, and what is in flight. */
	struct recording_where *wheres;
	size_t where_count;
	struct recording_flight *flights;
	size_t flight_count;
	const struct foreign_log *log;
	enum status status;
};

/* A watchdog may take this long to write its dump after an operation timed out. */
static const uint64_t DUMP_DELAY_NS = UINT64_C(600) * 1000000000;

/* Of calls that are over, only the last of each communicator. */
static struct recording_where *where_place(struct load *load, const struct op_record *op)
{
	if (op->state == OP_DONE)
		for (size_t i = 0; i < load->where_count; i++)
			if (load->wheres[i].comm == op->comm && !load->wheres[i].is_open)
				return &load->wheres[i];
	if (load->where_count == WHERES_MAX ||
	    !list_grow(&load->wheres, load->where_count, sizeof(*load->wheres)))
		return NULL;
	load->wheres[load->where_count] =
		(struct recording_where){ .is_open = op->state != OP_DONE };
	return &load->wheres[load->where_count++];
}

static void note_where(const struct op_record *op, const char *where, void *context)
{
	struct load *load = context;
	struct recording_where *to = where_place(load, op);
	char *text = strdup(where);

	if (to == NULL || text == NULL) {
		free(text);
		return;
	}
	free(to->text);
	to->comm = op->comm;
	to->number = op->number;
	to->issue_ns = op->issue_ns;
	to->text = text;
}

/* As in a live table: calls in flight, and the last of each communicator. */
static bool note_flight(const struct op_record *op, uint32_t process, void *context)
{
	struct load *load = context;
	struct recording_flight *to = NULL;

	(void)process;
	if (load->log->format != FOREIGN_TORCH_DUMP)
		return true;
	if (op->state == OP_DONE)
		for (size_t i = 0; i < load->flight_count && to == NULL; i++)
			if (load->flights[i].op.comm == op->comm &&
			    load->flights[i].op.state == OP_DONE)
				to = &load->flights[i];
	if (to == NULL && load->flight_count < FLIGHTS_MAX) {
		if (!list_grow(&load->flights, load->flight_count, sizeof(*load->flights))) {
			load->status = ERR_NO_SPACE;
			return false;
		}
		to = &load->flights[load->flight_count++];
	}
	if (to == NULL)
		return true;
	*to = (struct recording_flight){ .op = *op };
	if (op->state != OP_DONE) {
		to->open_children = 1;
		to->op.sequence = 0;
	}
	return true;
}

static void free_load(struct load *load)
{
	free(load->flights);
	for (size_t i = 0; i < load->where_count; i++)
		free(load->wheres[i].text);
	free(load->wheres);
}

/* "COMM NUMBER ISSUE_NS IS_OPEN TEXT", as a snapshot has it. */
static bool read_where(char *line, struct recording_where *where)
{
	int64_t numbers[4];

	for (size_t i = 0; i < 4; i++) {
		char *end = strchr(line, ' ');

		if (end == NULL)
			return false;
		*end = '\0';
		if (text_number(line, 0, INT64_MAX, &numbers[i]) != OK)
			return false;
		line = end + 1;
	}
	*where = (struct recording_where){ .comm = (uint32_t)numbers[0],
					   .number = (uint64_t)numbers[1],
					   .issue_ns = (uint64_t)numbers[2],
					   .is_open = numbers[3] != 0,
					   .text = strdup(line) };
	return where->text != NULL;
}

void recording_load_wheres(struct recording_process *process)
{
	char key[32], line[RECORDING_WHERE_BYTES + 80];
	struct recording_where where;

	if (process->stack == NULL &&
	    recording_info(process, "snapshot_stack", line, RECORDING_WHERE_BYTES))
		process->stack = strdup(line);
	_Static_assert((int)RECORDING_WHERE_BYTES == (int)FOREIGN_WHERE_BYTES, "one size");
	for (unsigned int i = 1; i <= RECORDING_WHERES_KEPT; i++) {
		text_format(key, sizeof(key), "snapshot_where_%u", i);
		if (!recording_info(process, key, line, sizeof(line)) || !read_where(line, &where))
			return;
		if (!list_grow(&process->wheres, process->where_count, sizeof(where))) {
			free(where.text);
			return;
		}
		process->wheres[process->where_count++] = where;
	}
}

const struct recording_where *recording_where(const struct recording_process *process,
					      uint32_t comm, uint64_t number)
{
	const struct recording_where *found = NULL;

	for (size_t i = 0; i < process->where_count; i++) {
		const struct recording_where *where = &process->wheres[i];

		if (where->text == NULL)
			continue;
		if (number == 0 ? found == NULL || where->issue_ns > found->issue_ns
				: where->comm == comm && where->number == number)
			found = where;
	}
	return found;
}

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
		.is_dump = log->format == FOREIGN_TORCH_DUMP,
	};
	return foreign->path != NULL ? OK : ERR_NO_SPACE;
}

static void load_moment(struct recording_process *process, const struct foreign_process *from,
			const struct stat *st)
{
	struct recording_foreign *foreign = process->foreign;

	foreign->last_ns = from->last_ns;
	foreign->written_ns = st->st_mtim.tv_sec > 0 ? (uint64_t)st->st_mtim.tv_sec * 1000000000 +
							       (uint64_t)st->st_mtim.tv_nsec
						     : 0;
	foreign->open_since_ns = from->open_since_ns;
	foreign->open_limit_ns = from->open_limit_ns;
	process->is_snapshot = true;
	process->is_final = true;
	process->snapshot_operations = from->records;
	process->snapshot_life = RECORDING_ALIVE;
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
	if (status == OK && log->format == FOREIGN_TORCH_DUMP)
		load_moment(process, from, st);
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
		if (log->format == FOREIGN_TORCH_DUMP) {
			process->wheres = load->wheres;
			process->where_count = load->where_count;
			load->wheres = NULL;
			load->where_count = 0;
			process->flights = load->flights;
			process->flight_count = load->flight_count;
			load->flights = NULL;
			load->flight_count = 0;
			recording_flights_sort(process);
		}
		status = recording_load_keep(recording, process);
		/* Damaged lines can be attributed only if the file has a single process. */
		for (size_t j = first_trouble;
		     status == OK && log->process_count == 1 && j < recording->trouble_count; j++)
			recording->troubles[j].process = process;
	}
	return status;
}

enum status recording_foreign_load(struct recording *recording, int fd, const char *path,
				   const struct stat *st)
{
	struct foreign_log log;
	struct load load = { .recording = recording, .path = path, .log = &log };
	const struct foreign_request request = { .process = -1,
						 .name = path,
						 .visit_damage = note_damage,
						 .visit_op = note_flight,
						 .visit_where = note_where,
						 .context = &load };
	size_t first_trouble = recording->trouble_count;
	enum status status;

	foreign_log_init(&log);
	status = foreign_read(&log, fd, &request);
	if (status == OK)
		status = load.status;
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
	free_load(&load);
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

/* ---- when dumps were made -------------------------------------------------------------------- */

static bool is_dump(const struct recording_process *process)
{
	return process->foreign != NULL && process->foreign->is_dump;
}

static bool is_beside(const struct recording_foreign *one, const struct recording_foreign *other)
{
	const char *slash = strrchr(one->path, '/');
	const char *other_slash = strrchr(other->path, '/');
	size_t length = slash != NULL ? (size_t)(slash - one->path) : 0;

	return length == (other_slash != NULL ? (size_t)(other_slash - other->path) : 0) &&
	       memcmp(one->path, other->path, length) == 0;
}

/*
 * Could it have been made when its file was written? Not before its last entry, nor after PyTorch would have ended
 * the job because of a call that is in flight in any dump.
 */
static bool is_plausible(const struct recording_foreign *dump, uint64_t until_ns)
{
	return dump->written_ns >= dump->last_ns && dump->written_ns <= until_ns;
}

static void date_dumps(struct recording *recording, size_t first)
{
	const struct recording_foreign *of = recording->processes[first]->foreign;
	uint64_t last_ns = 0, until_ns = UINT64_MAX;
	bool is_undated = false;

	for (size_t i = first; i < recording->count; i++) {
		const struct recording_foreign *dump = recording->processes[i]->foreign;
		uint64_t end_ns;

		if (!is_dump(recording->processes[i]) || !is_beside(of, dump))
			continue;
		if (dump->last_ns > last_ns)
			last_ns = dump->last_ns;
		if (dump->open_since_ns == 0 || dump->open_limit_ns == 0)
			continue;
		end_ns = dump->open_since_ns + dump->open_limit_ns + DUMP_DELAY_NS;
		if (end_ns < until_ns)
			until_ns = end_ns;
	}
	for (size_t i = first; i < recording->count; i++)
		if (is_dump(recording->processes[i]) &&
		    is_beside(of, recording->processes[i]->foreign))
			is_undated |= !is_plausible(recording->processes[i]->foreign, until_ns);
	for (size_t i = first; i < recording->count; i++) {
		struct recording_process *process = recording->processes[i];

		if (!is_dump(process) || !is_beside(of, process->foreign))
			continue;
		process->is_undated = is_undated;
		process->counts_ns = is_undated ? last_ns : process->foreign->written_ns;
		process->snapshot_wall_ns = process->counts_ns;
	}
}

/*
 * A dump does not say when it was made. Its file was written then, or copied since. Dumps lie in a directory for a
 * hang, so they are dated together: if one was copied, all may have been.
 */
void recording_foreign_dates(struct recording *recording)
{
	for (size_t i = 0; i < recording->count; i++) {
		bool is_first = is_dump(recording->processes[i]);

		for (size_t j = 0; j < i && is_first; j++)
			is_first = !is_dump(recording->processes[j]) ||
				   !is_beside(recording->processes[i]->foreign,
					      recording->processes[j]->foreign);
		if (is_first)
			date_dumps(recording, i);
	}
}

/* ---- dumps beside recordings ----------------------------------------------------------------- */

/*
 * PyTorch notes a call right before NCCL shows it to the recorder, on the same clock: so the last
 * calls of a process group and of its communicator are this close, whatever they are called.
 */
static const uint64_t SAME_CALL_NS = UINT64_C(500) * 1000000;

static uint64_t distance(uint64_t one, uint64_t other)
{
	return one > other ? one - other : other - one;
}

/* How far apart the last calls are; UINT64_MAX: they are not the same group of ranks. */
static uint64_t comm_distance(const struct recording_process *process,
			      const struct recording_comm *comm, const struct recording_comm *group)
{
	uint64_t wall_ns;

	if (comm->info.nranks != group->info.nranks || comm->info.rank != group->info.rank ||
	    comm->counts.last_issue_ns == 0 || group->counts.last_issue_ns == 0 ||
	    !recording_wall_ns(process, comm->counts.last_issue_ns, &wall_ns))
		return UINT64_MAX;
	return distance(wall_ns, group->counts.last_issue_ns);
}

/* The communicator of a process group; NULL: none, or it could be one of two. */
static struct recording_comm *comm_of_group(const struct recording_process *process,
					    const struct recording_comm *group)
{
	struct recording_comm *best = NULL;
	uint64_t least = SAME_CALL_NS;
	bool is_unique = true;

	for (size_t i = 0; i < process->comm_count; i++) {
		uint64_t apart = comm_distance(process, &process->comms[i], group);

		if (apart >= least) {
			is_unique &= apart != least;
			continue;
		}
		is_unique = true;
		least = apart;
		best = &process->comms[i];
	}
	return is_unique ? best : NULL;
}

/* How many of the dump's process groups the process has. */
static size_t count_shared(const struct recording_process *process,
			   const struct recording_process *dump)
{
	size_t shared = 0;

	for (size_t i = 0; i < dump->comm_count; i++)
		shared += comm_of_group(process, &dump->comms[i]) != NULL;
	return shared;
}

static struct recording_process *owner_of(const struct recording *recording,
					  const struct recording_process *dump, bool *has_others)
{
	struct recording_process *owner = NULL;
	size_t most = 0;

	for (size_t i = 0; i < recording->count; i++) {
		struct recording_process *process = recording->processes[i];
		size_t shared;

		if (process == NULL || is_dump(process))
			continue;
		*has_others = true;
		shared = process->rank == dump->rank ? count_shared(process, dump) : 0;
		if (shared > most) {
			most = shared;
			owner = process;
		}
	}
	return owner;
}

static void give_to(struct recording_process *owner, struct recording_process *dump)
{
	size_t kept = 0;

	for (size_t i = 0; i < dump->comm_count; i++) {
		struct recording_comm *comm = comm_of_group(owner, &dump->comms[i]);

		if (comm != NULL && comm->info.name[0] == '\0')
			memcpy(comm->info.name, dump->comms[i].info.name, sizeof(comm->info.name));
	}
	for (size_t i = 0; i < dump->where_count; i++) {
		struct recording_where *where = &dump->wheres[i];
		const struct recording_comm *group = recording_comm(dump, where->comm),
					    *comm = NULL;

		if (group != NULL)
			comm = comm_of_group(owner, group);
		if (comm == NULL) {
			free(where->text);
			continue;
		}
		where->comm = comm->info.id;
		where->number = 0; /* counted differently */
		dump->wheres[kept++] = *where;
	}
	owner->wheres = dump->wheres;
	owner->where_count = kept;
	dump->wheres = NULL;
	dump->where_count = 0;
}

void recording_foreign_join(struct recording *recording)
{
	size_t kept = 0;

	for (size_t i = 0; i < recording->count; i++) {
		struct recording_process *dump = recording->processes[i], *owner = NULL;
		bool has_others = false;

		if (is_dump(dump) && dump->rank >= 0)
			owner = owner_of(recording, dump, &has_others);
		if (!has_others) {
			recording->processes[kept++] = dump;
			continue;
		}
		if (owner != NULL && owner->where_count == 0)
			give_to(owner, dump);
		else
			recording_load_trouble(recording, RECORDING_NOTHING, dump->foreign->path,
					       NULL,
					       "dump of rank %lld is not used: no recording "
					       "here has its calls",
					       (long long)dump->rank);
		for (size_t j = 0; j < recording->trouble_count; j++)
			if (recording->troubles[j].process == dump)
				recording->troubles[j].process = NULL;
		recording_process_free(dump);
		recording->processes[i] = NULL;
	}
	recording->count = kept;
}

/* ---- walking --------------------------------------------------------------------------------- */

struct walk {
	recording_visit_op *visit_op;
	recording_visit_detail *visit_detail;
	void *context;
	struct recording_walk *counts;
	bool is_dump;
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
	if (walk->is_dump && op.state != OP_DONE) {
		walk->counts->in_live++;
		return walk->visit_op(&op, RECORDING_IN_LIVE, walk->context);
	}
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
	struct walk state = { visit_op, visit_detail, context, walk != NULL ? walk : &unwanted,
			      process->foreign->is_dump };
	const struct foreign_request request = {
		.name = process->foreign->path,
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
