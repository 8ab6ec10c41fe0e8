/*
 * SIGKILL at any moment: everything finished before can be read. The job keeps a journal in memory
 * shared with us: how many operations it began, and how many are finished.
 *
 *	process_kill ROUNDS [SEED]	prints TAP; PLUGIN, RINGSIDE_SHM and RINGSIDE_DIR are set
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/order.h"
#include "common/text.h"
#include "recording/recording.h"
#include "sim/host.h"
#include "tests/tap.h"

/* No ring is lapped: RING_MOST is below what mode full has with the default buffer. */
enum { THREADS = 3, RING_MOST = 15000, EACH_MOST = 4900, FIRST_HASH = 500 };

struct journal {
	uint64_t begun[THREADS];
	uint64_t finished[THREADS];
};

struct round {
	const char *mode;
	int release;
	long threads;
	int nnodes;
	uint64_t kill_at; /* operations finished */
	uint64_t then;	  /* and this many checks of the journal later */
	uint64_t seed;
};

static struct journal *journal;
static uint64_t chance;

static uint64_t any(uint64_t below)
{
	chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (chance >> 33) % below;
}

static struct round make_round(void)
{
	static const char *const modes[] = { "trace", "full", "flight", "trace" };
	static const int releases[] = { HOST_NCCL_2_23, HOST_NCCL_2_25, HOST_NCCL_2_26,
					HOST_NCCL_2_27, HOST_NCCL_2_28, HOST_NCCL_2_28,
					HOST_NCCL_2_29, HOST_NCCL_2_31 };

	return (struct round){ .mode = modes[any(4)],
			       .release = releases[any(8)],
			       .threads = 1 + (long)any(THREADS),
			       .nnodes = 1 + (int)any(2),
			       .kill_at = any(any(4) == 0 ? 50 : EACH_MOST),
			       .then = any(2000),
			       .seed = any(UINT32_MAX) };
}

/* ---- the job --------------------------------------------------------------------------------- */

struct kill_player {
	struct host *host;
	const struct round *round;
	long number;
};

/* Some operations, then wait until they are finished, then note that. */
static void *play(void *arg)
{
	struct kill_player *player = arg;
	const struct round *round = player->round;
	struct host_comm_config config = { .hash = (uint64_t)(FIRST_HASH + player->number),
					   .nnodes = round->nnodes,
					   .nranks = 4,
					   .rank = 1 };
	uint64_t random = round->seed + (uint64_t)player->number, done = 0, few;
	struct host_user user = { 0 };
	struct host_comm *comm;
	struct host_op op;

	if (host_comm_new(player->host, &comm, &config) != OK ||
	    host_plugin(player->host)->version == 0)
		_exit(4);
	while (done < EACH_MOST) {
		random = random * UINT64_C(6364136223846793005) + 1;
		few = 1 + (random >> 60) / 2;
		store_release(&journal->begun[player->number], done + few);
		for (uint64_t i = 0; i < few; i++) {
			op = host_op_make(comm, OP_ALL_REDUCE, 1024, OP_FLOAT32);
			op.channels = 2;
			op.duration_ns = 1;
			op.has_network = round->nnodes > 1;
			if (host_play(&user, &op) != OK)
				_exit(4);
		}
		host_comm_wait(comm, 0);
		done += few;
		store_release(&journal->finished[player->number], done);
	}
	return NULL;
}

static void run_job(const struct round *round)
{
	struct host_config config = { .plugin = getenv("PLUGIN"),
				      .release = round->release,
				      .seed = round->seed };
	struct kill_player players[THREADS];
	pthread_t threads[THREADS];
	struct host *host;

	setenv("RINGSIDE_MODE", round->mode, 1);
	if (host_new(&host, &config) != OK)
		_exit(4);
	for (long i = 0; i < round->threads; i++) {
		players[i] = (struct kill_player){ host, round, i };
		pthread_create(&threads[i], NULL, play, &players[i]);
	}
	/* A thread that has played all its operations waits for the end. */
	for (;;)
		pause();
}

/* ---- the reader ------------------------------------------------------------------------------ */

struct found {
	const struct recording_process *process;
	unsigned char *seen[THREADS]; /* by number */
	uint64_t count[THREADS], highest[THREADS];
	uint64_t twice, strange, unfinished;
};

static bool note_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct found *found = context;
	const struct recording_comm *comm = recording_comm(found->process, op->comm);
	uint64_t which = comm != NULL ? comm->info.hash - FIRST_HASH : THREADS;

	(void)place;
	if (which >= THREADS || op->number > RING_MOST) {
		found->strange++;
		return true;
	}
	found->twice += found->seen[which][op->number] != 0;
	found->seen[which][op->number] = 1;
	found->count[which]++;
	if (op->number > found->highest[which])
		found->highest[which] = op->number;
	/* With children, "finished" is visible. */
	if (comm->info.flags & (COMM_FLAG_SEES_KERNELS | COMM_FLAG_SEES_PROXIES) &&
	    op->number <= journal->finished[which] && op->state != OP_DONE)
		found->unfinished++;
	return true;
}

static bool compare_thread(const struct found *found, long t)
{
	uint64_t missing = 0;

	for (uint64_t n = 1; n <= journal->finished[t]; n++)
		missing += !found->seen[t][n];
	if (missing == 0 && found->count[t] == found->highest[t] &&
	    found->highest[t] >= journal->finished[t] && found->highest[t] <= journal->begun[t])
		return true;
	printf("# communicator %ld: begun %llu, finished %llu; read %llu, highest %llu, "
	       "%llu of the finished are missing\n",
	       t, (unsigned long long)journal->begun[t], (unsigned long long)journal->finished[t],
	       (unsigned long long)found->count[t], (unsigned long long)found->highest[t],
	       (unsigned long long)missing);
	return false;
}

static bool compare(const struct recording_process *process, const struct round *round)
{
	struct recording_account account;
	struct found found = { .process = process };
	bool is_right = true;

	for (long t = 0; t < THREADS; t++)
		found.seen[t] = calloc(RING_MOST + 1, 1);
	if (recording_each_op(process, note_op, &found, NULL) != OK)
		is_right = false;
	for (long t = 0; t < round->threads; t++)
		is_right &= compare_thread(&found, t);
	if (found.twice + found.strange + found.unfinished != 0 ||
	    process->life != RECORDING_KILLED) {
		printf("# %llu twice, %llu strange, %llu not done; %s\n",
		       (unsigned long long)found.twice, (unsigned long long)found.strange,
		       (unsigned long long)found.unfinished, recording_life_name(process->life));
		is_right = false;
	}
	if (recording_account(&account, process) != OK || !account.is_exact) {
		printf("# not exact: missing %lld, unread %lld, refused %llu\n",
		       (long long)account.missing, (long long)account.unread,
		       (unsigned long long)account.walk.refused);
		is_right = false;
	}
	/* Also what was in flight. */
	if (account.issued != found.count[0] + found.count[1] + found.count[2]) {
		printf("# %llu are counted, others are read\n", (unsigned long long)account.issued);
		is_right = false;
	}
	recording_account_release(&account);
	for (long t = 0; t < THREADS; t++)
		free(found.seen[t]);
	return is_right;
}

static bool read_back(const struct round *round)
{
	struct recording recording;
	bool is_right = true, is_expected = false;

	for (long t = 0; t < THREADS; t++)
		is_expected |= journal->finished[t] > 0;
	recording_init(&recording);
	recording.directory = getenv("RINGSIDE_SHM");
	recording_add(&recording, getenv("RINGSIDE_DIR"), 0);
	recording_add(&recording, getenv("RINGSIDE_SHM"), RECORDING_WITH_TRACES);
	recording_finish(&recording);
	/*
	 * If it was killed in its first moments, it may have left nothing, or a file without a
	 * header.
	 */
	if (is_expected && recording.count != 1) {
		printf("# %zu processes\n", recording.count);
		is_right = false;
	}
	for (size_t i = 0; i < recording.trouble_count && is_expected; i++)
		if (recording.troubles[i].kind != RECORDING_CUT) {
			printf("# %s: %s\n", recording.troubles[i].path,
			       recording.troubles[i].what);
			is_right = false;
		}
	if (recording.count == 1 && is_expected)
		is_right &= compare(recording.processes[0], round);
	recording_release(&recording);
	return is_right;
}

/* Files of the last round, not directories. */
static void empty_directory(const char *path)
{
	DIR *list = opendir(path);
	struct dirent *entry;

	while (list != NULL && (entry = readdir(list)) != NULL)
		if (entry->d_type == DT_REG)
			unlinkat(dirfd(list), entry->d_name, 0);
	if (list != NULL)
		closedir(list);
}

static bool play_round(const struct round *round)
{
	char regions[512];
	uint64_t finished = 0;
	int status = 0;
	pid_t pid;

	text_format(regions, sizeof(regions), "%s/ringside-%u", getenv("RINGSIDE_SHM"), geteuid());
	empty_directory(regions);
	empty_directory(getenv("RINGSIDE_DIR"));
	memset(journal, 0, sizeof(*journal));
	pid = fork();
	if (pid == 0)
		run_job(round);
	while (finished < round->kill_at && waitpid(pid, &status, WNOHANG) == 0) {
		finished = 0;
		for (long t = 0; t < round->threads; t++)
			finished += load_acquire(&journal->finished[t]);
	}
	for (volatile uint64_t i = 0; i < round->then; i++)
		continue;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!WIFSIGNALED(status))
		printf("# the job could not load the plugin\n");
	return WIFSIGNALED(status) && read_back(round);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 10, failed = 0;
	uint64_t operations = 0;

	chance = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL) ^ (uint64_t)getpid();
	printf("# seed %llu\n", (unsigned long long)chance);
	journal = mmap(NULL, sizeof(*journal), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	for (long i = 0; i < rounds && failed < 5; i++) {
		struct round round = make_round();

		if (!play_round(&round)) {
			printf("# round %ld: mode %s, release %d, %ld threads, %d nodes, seed "
			       "%llu\n",
			       i, round.mode, round.release, round.threads, round.nnodes,
			       (unsigned long long)round.seed);
			failed++;
		}
		for (long t = 0; t < THREADS; t++)
			operations += journal->finished[t];
	}
	printf("# %ld kills, %llu operations finished before them\n", rounds,
	       (unsigned long long)operations);
	EXPECT_THAT("operations were finished at all", operations > 0);
	EXPECT_THAT("all that was finished before a kill is read back", failed == 0);
	return tap_done();
}
