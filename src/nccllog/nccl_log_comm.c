/* Communicators: who begins and ends an init, how long it took, how many channels it has. */
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "nccllog/nccl_log_parts.h"

static uint64_t pointer_key(uint32_t process, uint64_t pointer)
{
	return hash_word(hash_word(2, process), pointer);
}

static uint64_t thread_key(const struct log_line *line)
{
	return hash_word(hash_word(3, line->process), line->thread);
}

int32_t log_comm_by_pointer(struct log_line *line, uint64_t pointer)
{
	return (int32_t)log_find_key(line->log, LOG_POINTER, pointer_key(line->process, pointer));
}

static bool is_member(const struct nccl_log_comm *comm, int32_t from, int32_t to)
{
	return comm->rank == from || comm->rank == to;
}

int32_t log_comm_of(struct log_line *line, int32_t from, int32_t to)
{
	int32_t index = (int32_t)log_find_key(line->log, LOG_THREAD, thread_key(line));
	const struct nccl_log_comm *comms = line->log->comms;

	if (index != LOG_NONE && (from < 0 || is_member(&comms[index], from, to)))
		return index;
	/* Connections are also made by threads that say nothing of themselves: the newest that fits. */
	index = line->log->processes[line->process].last_comm;
	for (int i = 0; i < 16 && index != LOG_NONE; i++, index = comms[index].previous)
		if (from < 0 || is_member(&comms[index], from, to))
			return index;
	return LOG_NONE;
}

/* ---- "... comm 0x5581 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 60 commId 0x8cda - Init START" ------- */

struct words {
	uint64_t pointer, bus_id, hash, parent;
	int32_t rank, nranks, cuda_device, nvml_device, count, color;
	int32_t nnodes, local_ranks, local_rank, mnnvl;
};

static int32_t *number_for(struct log_text *text, struct words *words)
{
	if (LOG_SKIP(text, "rank "))
		return &words->rank;
	if (LOG_SKIP(text, "nranks ") || LOG_SKIP(text, "nRanks "))
		return &words->nranks;
	if (LOG_SKIP(text, "cudaDev "))
		return &words->cuda_device;
	if (LOG_SKIP(text, "nvmlDev "))
		return &words->nvml_device;
	if (LOG_SKIP(text, "splitCount ") || LOG_SKIP(text, "childCount "))
		return &words->count;
	if (LOG_SKIP(text, "color "))
		return &words->color;
	if (LOG_SKIP(text, "nNodes "))
		return &words->nnodes;
	if (LOG_SKIP(text, "localRanks "))
		return &words->local_ranks;
	if (LOG_SKIP(text, "localRank "))
		return &words->local_rank;
	return LOG_SKIP(text, "MNNVL ") ? &words->mnnvl : NULL;
}

static uint64_t *pointer_for(struct log_text *text, struct words *words)
{
	if (LOG_SKIP(text, "comm "))
		return &words->pointer;
	if (LOG_SKIP(text, "busId "))
		return &words->bus_id;
	if (LOG_SKIP(text, "commId "))
		return &words->hash;
	return LOG_SKIP(text, "parent ") ? &words->parent : NULL;
}

static bool take_word(struct log_text *text, struct words *words)
{
	int32_t *number = number_for(text, words);
	uint64_t *pointer = number == NULL ? pointer_for(text, words) : NULL;
	int64_t key;

	if (number != NULL)
		return log_int(text, number);
	if (pointer != NULL)
		return log_hex(text, pointer);
	return LOG_SKIP(text, "key ") && log_number(text, &key);
}

/* Pairs of word and number from "comm " on, until something else comes. */
static bool read_words(struct log_text *text, struct words *words)
{
	*words = (struct words){ .rank = -1,
				 .nranks = -1,
				 .cuda_device = -1,
				 .nvml_device = -1,
				 .count = -1,
				 .color = -1,
				 .nnodes = -1,
				 .local_ranks = -1,
				 .local_rank = -1,
				 .mnnvl = -1 };
	while (take_word(text, words))
		LOG_SKIP(text, " ");
	return words->pointer != 0 && words->rank >= 0 && words->nranks > words->rank;
}

static uint64_t group_of(struct log_line *line, const struct words *words)
{
	int32_t parent;

	if (words->hash != 0 || words->parent == 0)
		return words->hash;
	/* Its own parent's group, as pointers differ from process to process. */
	parent = log_comm_by_pointer(line, words->parent);
	return hash_word(hash_word(parent != LOG_NONE ? line->log->comms[parent].group : 1,
				   (uint64_t)words->count),
			 (uint64_t)words->color + 1);
}

static bool is_same(const struct nccl_log_comm *comm, const struct words *words, uint64_t group)
{
	return comm->rank == words->rank && comm->nranks == words->nranks &&
	       (comm->group == group || group == 0);
}

/* The one with this pointer; a new one when there is none, or when the memory was used again. */
static struct nccl_log_comm *find_comm(struct log_line *line, const struct words *words)
{
	struct nccl_log *log = line->log;
	int32_t index = log_comm_by_pointer(line, words->pointer);
	uint64_t group = group_of(line, words);
	struct nccl_log_comm *comm;

	if (index == LOG_NONE || !is_same(&log->comms[index], words, group)) {
		struct nccl_log_process *process = &log->processes[line->process];

		comm = log_add(log, LOG_COMMS);
		if (comm == NULL)
			return NULL;
		index = (int32_t)(comm - log->comms);
		*comm = (struct nccl_log_comm){
			.process = line->process,
			.pointer = words->pointer,
			.group = group,
			.rank = words->rank,
			.nranks = words->nranks,
			.color = -1,
			.cuda_device = -1,
			.nvml_device = -1,
			.nnodes = -1,
			.local_ranks = -1,
			.local_rank = -1,
			.mnnvl = -1,
			.function = "",
			.end_word = "",
			.total_s = -1,
			.bootstrap_s = -1,
			.coll_channels = -1,
			.collnet_channels = -1,
			.nvls_channels = -1,
			.p2p_channels = -1,
			.p2p_per_peer = -1,
			.ring_pxn = -1,
			.ring_gdr = -1,
			.previous = process->last_comm,
		};
		for (int i = 0; i < NCCL_LOG_PHASES; i++)
			comm->phase_s[i] = -1;
		process->last_comm = index;
		log_set_key(log, LOG_POINTER, pointer_key(line->process, words->pointer),
			    (uint32_t)index);
	}
	if (line->thread != 0)
		log_set_key(log, LOG_THREAD, thread_key(line), (uint32_t)index);
	return &log->comms[index];
}

static void keep_words(struct nccl_log_comm *comm, const struct words *words)
{
	if (words->hash != 0)
		comm->hash = words->hash;
	if (words->parent != 0)
		comm->parent = words->parent;
	if (words->bus_id != 0)
		comm->bus_id = words->bus_id;
	if (words->cuda_device >= 0)
		comm->cuda_device = words->cuda_device;
	if (words->nvml_device >= 0)
		comm->nvml_device = words->nvml_device;
	if (words->color >= 0)
		comm->color = words->color;
	if (words->nnodes >= 0)
		comm->nnodes = words->nnodes;
	if (words->local_ranks >= 0)
		comm->local_ranks = words->local_ranks;
	if (words->local_rank >= 0)
		comm->local_rank = words->local_rank;
	if (words->mnnvl >= 0)
		comm->mnnvl = words->mnnvl;
}

bool log_take_init(struct log_line *line)
{
	struct log_text text = line->message, function = { text.at, text.at }, word;
	struct nccl_log_comm *comm;
	struct words words;

	if (LOG_SKIP(&text, "[Rank "))
		log_until(&text, ' ');
	if (text.at < text.end && text.at[0] == 'n')
		function = log_until(&text, ' ');
	if (!read_words(&text, &words))
		return false;
	line->log->kinds[NCCL_LOG_KIND_INIT]++;
	comm = find_comm(line, &words);
	if (comm == NULL)
		return true;
	keep_words(comm, &words);
	if (log_left(&function) > 0)
		comm->function = log_keep(line->log, function);
	LOG_SKIP(&text, "- ");
	word = log_until(&text, ' ');
	if (log_has(word, "Init") && LOG_SKIP(&text, "START")) {
		if (comm->start.line == 0)
			comm->start = line->place;
	} else if (log_has(word, "Init") && LOG_SKIP(&text, "COMPLETE")) {
		comm->complete = line->place;
	} else if (LOG_SKIP(&text, "COMPLETE") || LOG_SKIP(&text, "START")) {
		comm->end = line->place;
		comm->end_word = log_keep(line->log, word);
	}
	return true;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* The newest communicator of this process with this rank, whatever thread told it. */
static struct nccl_log_comm *comm_with(struct log_line *line, int32_t rank, int32_t nranks)
{
	int32_t index = log_comm_of(line, rank, rank);

	for (; index != LOG_NONE; index = line->log->comms[index].previous)
		if (line->log->comms[index].rank == rank &&
		    line->log->comms[index].nranks == nranks)
			return &line->log->comms[index];
	return NULL;
}

static void read_phases(struct log_text *text, struct nccl_log_comm *comm)
{
	for (;;) {
		struct log_text word;
		double seconds;

		LOG_SKIP(text, "(");
		LOG_SKIP(text, ", ");
		word = log_until(text, ' ');
		if (log_left(&word) == 0 || !log_real(text, &seconds))
			return;
		for (int i = 0; i < NCCL_LOG_PHASES; i++) {
			const char *name = nccl_log_phase_name((enum nccl_log_phase)i);

			if (strlen(name) == log_left(&word) &&
			    memcmp(name, word.at, log_left(&word)) == 0)
				comm->phase_s[i] = seconds;
		}
	}
}

/* "Init timings - ncclCommInitRank: rank 0 nranks 4 total 0.41 (kernels 0.32, ...)" */
bool log_take_timings(struct log_line *line)
{
	struct log_text text = line->message;
	struct nccl_log_comm *comm;
	int32_t rank, nranks;
	double total;

	if (!log_find(&text, ": rank ") || !log_int(&text, &rank) || !LOG_SKIP(&text, " nranks ") ||
	    !log_int(&text, &nranks) || !LOG_SKIP(&text, " total ") || !log_real(&text, &total))
		return false;
	line->log->kinds[NCCL_LOG_KIND_TIMING]++;
	comm = comm_with(line, rank, nranks);
	if (comm == NULL)
		return true;
	comm->total_s = total;
	comm->timings = line->place;
	LOG_SKIP(&text, " ");
	read_phases(&text, comm);
	return true;
}

bool log_take_bootstrap_timings(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t index = log_comm_of(line, -1, -1);
	double total;

	if (!log_find(&text, " total ") || !log_real(&text, &total))
		return false;
	line->log->kinds[NCCL_LOG_KIND_TIMING]++;
	if (index != LOG_NONE)
		line->log->comms[index].bootstrap_s = total;
	return true;
}

/* ---- channels -------------------------------------------------------------------------------- */

/* "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer" */
bool log_take_channel_counts(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t coll, collnet = -1, nvls = -1, p2p = -1, per_peer = -1, index;
	struct nccl_log_comm *comm;

	if (!log_int(&text, &coll) || !LOG_SKIP(&text, " coll channels"))
		return false;
	while (LOG_SKIP(&text, ", ")) {
		int32_t number;

		if (!log_int(&text, &number))
			return false;
		if (LOG_SKIP(&text, " collnet channels"))
			collnet = number;
		else if (LOG_SKIP(&text, " nvls channels"))
			nvls = number;
		else if (LOG_SKIP(&text, " p2p channels per peer"))
			per_peer = number;
		else if (LOG_SKIP(&text, " p2p channels"))
			p2p = number;
		else
			return false;
	}
	line->log->kinds[NCCL_LOG_KIND_CHANNELS]++;
	index = log_comm_of(line, -1, -1);
	if (index == LOG_NONE)
		return true;
	comm = &line->log->comms[index];
	comm->coll_channels = coll;
	comm->collnet_channels = collnet;
	comm->nvls_channels = nvls;
	comm->p2p_channels = p2p;
	comm->p2p_per_peer = per_peer;
	comm->channels = line->place;
	return true;
}

/* "Connected all rings, use ring PXN 0 GDR 1", "Connected all trees" */
bool log_take_connected(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t index = log_comm_of(line, -1, -1);
	struct nccl_log_comm *comm = index != LOG_NONE ? &line->log->comms[index] : NULL;

	line->log->kinds[NCCL_LOG_KIND_INIT]++;
	if (comm == NULL)
		return true;
	if (LOG_SKIP(&text, "Connected all trees"))
		comm->has_trees = true;
	if (LOG_SKIP(&text, "Connected all rings")) {
		comm->has_rings = true;
		if (LOG_SKIP(&text, ", use ring PXN ") && log_int(&text, &comm->ring_pxn) &&
		    LOG_SKIP(&text, " GDR "))
			log_int(&text, &comm->ring_gdr);
	}
	return true;
}

/* ---- versions -------------------------------------------------------------------------------- */

/* "NCCL version 2.28.9+cuda13.0", and in some builds more behind it. */
bool log_take_version(struct log_line *line)
{
	struct nccl_log_process *process = &line->log->processes[line->process];
	struct log_text text = line->message, version;

	LOG_SKIP(&text, "NCCL version ");
	version = log_until(&text, ' ');
	if (log_left(&version) == 0 || version.at[0] < '0' || version.at[0] > '9')
		return false;
	line->log->kinds[NCCL_LOG_KIND_VERSION]++;
	process->version = log_keep(line->log, log_until(&version, '+'));
	LOG_SKIP(&version, "cuda");
	process->cuda_version = log_keep(line->log, version);
	process->git = log_keep(line->log, log_trim(text));
	process->version_place = line->place;
	return true;
}

bool log_take_driver(struct log_line *line)
{
	struct log_text text = line->message;

	if (!LOG_SKIP(&text, "cudaDriverVersion ") ||
	    !log_int(&text, &line->log->processes[line->process].driver_version))
		return false;
	line->log->kinds[NCCL_LOG_KIND_VERSION]++;
	return true;
}
