/*
 * Communicators from their first call to their last, created and ended in every way that NCCL
 * allows: nothing is lost, nothing leaks, and every end is recorded.
 */
#include <pthread.h>

#include "common/op.h"
#include "tests/support/plugin_host.h"
#include "tests/tap.h"

enum { OPERATIONS = 6, THREADS = 4, PER_THREAD = 5 };
/* EARLY: more than the table of communicators holds. */
enum { MANY = TAP_IS_SLOW ? 700 : 5000, EARLY = 600, BATCH = 50 };

static struct host *new_host(int release)
{
	struct host_config config = { .release = release, .linked = &plugin_linked, .seed = 3 };
	struct host *host;

	if (host_new(&host, &config) != OK)
		abort();
	return host;
}

static struct host_comm *new_comm(struct host *host, uint64_t hash, int nranks, unsigned int flags,
				  struct host_comm *share)
{
	struct host_comm_config config = { .hash = hash,
					   .nnodes = 2,
					   .nranks = nranks,
					   .rank = 1,
					   .flags = flags,
					   .share = share };
	struct host_comm *comm;

	if (host_comm_new(host, &comm, &config) != OK)
		abort();
	return comm;
}

static void play(struct host_comm *comm, int count, enum host_stuck stuck)
{
	struct host_user user = { 0 };

	for (int i = 0; i < count; i++) {
		struct host_op op = host_op_make(comm, i % 3 == 2 ? OP_SEND : OP_ALL_REDUCE,
						 UINT64_C(64) << i, OP_FLOAT16);

		op.channels = 2;
		op.steps = 2;
		op.has_network = true;
		op.stuck = (uint8_t)stuck;
		op.stuck_channel = -1;
		op.stuck_peer = -1;
		if (host_play(&user, &op) != OK)
			abort();
	}
}

/* ---- what is left of a communicator ----------------------------------------------------------- */

/* Its operations that are still in the table, and not only resting there. */
static unsigned int count_live(uint32_t id)
{
	unsigned int count = 0;

	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		const struct region_live *live = &recorder.region.live[i];
		uint64_t word = load_acquire(&live->word);

		count += region_slot_is_used(word) && (uint32_t)word != UINT32_MAX &&
			 (id == 0 || live->op.comm == id);
	}
	return count;
}

/* Proxy slots that are taken: used, or kept for a communicator. */
static unsigned int count_proxies(void)
{
	unsigned int count = 0;

	for (uint32_t i = 0; i < recorder.region.proxy_count; i++) {
		uint64_t word = load_acquire(&recorder.region.proxies[i].word);

		count += region_slot_is_used(word) || word & 1;
	}
	return count;
}

static void expect_ended(const char *how, uint32_t id, uint64_t issued)
{
	const struct region_comm *comm = plugin_host_comm(id);
	bool is_fine = comm != NULL && comm->counts.issued == issued &&
		       comm->counts.recorded == issued && comm->word & COMM_ENDED &&
		       comm->info.flags & COMM_FLAG_FINALIZED &&
		       comm->info.finalize_ns >= comm->info.init_ns && count_live(id) == 0;

	if (!EXPECT_THAT(how, is_fine) && comm != NULL)
		printf("# issued %llu recorded %llu, %u live, flags %x\n",
		       (unsigned long long)comm->counts.issued,
		       (unsigned long long)comm->counts.recorded, count_live(id), comm->info.flags);
}

static uint64_t abandoned(uint32_t id, uint64_t issued)
{
	uint64_t count = 0;

	for (uint64_t i = 1; i <= issued; i++) {
		const struct op_record *op = plugin_host_record(id, i);

		count += op != NULL && op->state == OP_ABANDONED;
	}
	return count;
}

/* ---- ways to come and go ---------------------------------------------------------------------- */

static void plain(int release, unsigned int flags, const char *how)
{
	struct host *host = new_host(release);
	struct host_comm *comm = new_comm(host, 1, 4, flags, NULL);
	uint32_t id = plugin_host_id(comm);

	play(comm, OPERATIONS, HOST_STUCK_NONE);
	host_comm_destroy(comm); /* without a finalize by the user */
	expect_ended(how, id, OPERATIONS);
	host_free(host);
}

static void finalized_first(int release)
{
	struct host *host = new_host(release);
	struct host_comm *comm = new_comm(host, 1, 4, 0, NULL);
	uint32_t id = plugin_host_id(comm);

	play(comm, OPERATIONS, HOST_STUCK_NONE);
	host_comm_settle(comm); /* ncclCommFinalize: all of it is done */
	host_comm_destroy(comm);
	expect_ended("finalized, then destroyed", id, OPERATIONS);
	host_free(host);
}

static void aborted(int release, enum host_stuck stuck)
{
	struct host *host = new_host(release);
	struct host_comm *comm = new_comm(host, 1, 4, 0, NULL);
	uint32_t id = plugin_host_id(comm);

	play(comm, OPERATIONS, HOST_STUCK_NONE);
	play(comm, 3, stuck);
	host_comm_settle(comm);
	host_comm_abort(comm);
	expect_ended("aborted with operations in flight", id, OPERATIONS + 3);
	EXPECT_THAT("which are recorded as abandoned", abandoned(id, OPERATIONS + 3) > 0);
	EXPECT_EQUAL(count_proxies(), 0);
	host_free(host);
}

static void revoked(int release)
{
	struct host *host = new_host(release);
	struct host_comm *comm = new_comm(host, 1, 4, 0, NULL);
	uint32_t id = plugin_host_id(comm);

	play(comm, OPERATIONS, HOST_STUCK_NONE);
	play(comm, 2, HOST_STUCK_RECV_NET);
	host_comm_settle(comm);
	host_comm_revoke(comm);
	EXPECT_THAT("a revoked one has not ended", !(plugin_host_comm(id)->word & COMM_ENDED));
	host_comm_destroy(comm);
	expect_ended("revoked with operations in flight, then destroyed", id, OPERATIONS + 2);
	host_free(host);
}

/* The child uses its parent's proxy thread and ends before or after it. */
static void split(int release, bool is_shared, bool child_first)
{
	struct host *host = new_host(release);
	struct host_comm *parent = new_comm(host, 1, 8, 0, NULL);
	struct host_comm *child = new_comm(host, 2, 4, 0, is_shared ? parent : NULL);
	uint32_t parent_id = plugin_host_id(parent), child_id = plugin_host_id(child);

	play(parent, OPERATIONS, HOST_STUCK_NONE);
	play(child, OPERATIONS, HOST_STUCK_NONE);
	host_comm_settle(child);
	host_comm_settle(parent);
	/* With a shared proxy thread NCCL keeps the parent's until the last child is gone. */
	if (child_first || is_shared) {
		host_comm_destroy(child);
		host_comm_destroy(parent);
	} else {
		host_comm_destroy(parent);
		play(child, 1, HOST_STUCK_NONE);
		host_comm_destroy(child);
	}
	expect_ended("a parent that was split", parent_id, OPERATIONS);
	expect_ended(is_shared ? "its child, with the parent's proxy thread" : "its child",
		     child_id, OPERATIONS + (child_first || is_shared ? 0 : 1));
	host_free(host);
}

/*
 * After an error: the parent hangs and is aborted, the remaining ranks continue with fewer or more
 * ranks.
 */
static void replaced(int release, int nranks, const char *how)
{
	struct host *host = new_host(release);
	struct host_comm *before = new_comm(host, 1, 4, 0, NULL), *after;
	uint32_t before_id = plugin_host_id(before), after_id;

	play(before, OPERATIONS, HOST_STUCK_NONE);
	play(before, 1, HOST_STUCK_SEND_PEER);
	host_comm_settle(before);
	after = new_comm(host, 2, nranks, 0, NULL);
	after_id = plugin_host_id(after);
	host_comm_abort(before);
	play(after, OPERATIONS, HOST_STUCK_NONE);
	host_comm_destroy(after);
	expect_ended("the one before", before_id, OPERATIONS + 1);
	expect_ended(how, after_id, OPERATIONS);
	EXPECT_EQUAL(plugin_host_comm(after_id)->info.nranks, nranks);
	host_free(host);
}

/* ---- many ------------------------------------------------------------------------------------- */

struct worker {
	pthread_t thread;
	struct host *host;
	uint64_t hash;
	uint32_t ids[PER_THREAD];
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct host_comm *comms[PER_THREAD];

	for (int i = 0; i < PER_THREAD; i++) {
		comms[i] = new_comm(worker->host, worker->hash + (uint64_t)i, 4, 0, NULL);
		worker->ids[i] = plugin_host_id(comms[i]);
	}
	for (int i = 0; i < PER_THREAD * 3; i++)
		play(comms[i % PER_THREAD], OPERATIONS, HOST_STUCK_NONE);
	for (int i = 0; i < PER_THREAD; i++) {
		if (i % 2)
			host_comm_abort(comms[i]);
		else
			host_comm_destroy(comms[i]);
	}
	return NULL;
}

static void several_per_thread(int release)
{
	struct worker workers[THREADS];
	struct host *host = new_host(release);

	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .host = host, .hash = (uint64_t)(i + 1) * 100 };
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			abort();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < THREADS; i++)
		for (int j = 0; j < PER_THREAD; j++)
			expect_ended("one of several that threads have", workers[i].ids[j],
				     3 * OPERATIONS);
	host_free(host);
}

struct tables {
	unsigned int comms, live, proxies, peers, totals, links;
};

static struct tables count_tables(void)
{
	struct tables used = { .live = count_live(0), .proxies = count_proxies() };
	const struct region_writer *region = &recorder.region;

	for (uint32_t i = 0; i < region->comm_count; i++)
		used.comms += region_slot_is_used(region->comms[i].word) &&
			      !(region->comms[i].word & COMM_ENDED);
	for (uint32_t i = 0; i < region->peer_count; i++)
		used.peers += region->peers[i].key > SLOT_FORGOTTEN;
	for (uint32_t i = 1; i < region->total_count; i++)
		used.totals += region->totals[i].key > SLOT_FORGOTTEN;
	for (uint32_t i = 1; i < region->link_count; i++)
		used.links += region->links[i].key > SLOT_FORGOTTEN;
	return used;
}

static void make_some(int release, uint64_t first, uint64_t *issued)
{
	struct host *host = new_host(release);

	for (uint64_t i = first; i < first + BATCH; i++) {
		struct host_comm *comm =
			new_comm(host, i + 1, 4, i % 2 ? HOST_COMM_NONBLOCKING : 0, NULL);

		play(comm, 3, HOST_STUCK_NONE);
		*issued += 3;
		if (i % 10 == 0) {
			play(comm, 1, HOST_STUCK_SEND_NET);
			*issued += 1;
			host_comm_settle(comm);
			host_comm_abort(comm);
		} else {
			host_comm_destroy(comm);
		}
	}
	host_free(host);
}

static uint64_t recorded_in_totals(void)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < recorder.region.total_count; i++)
		count += recorder.region.totals[i].count;
	return count;
}

static void many_come_and_go(int release)
{
	uint64_t issued = 0, before = recorded_in_totals();
	uint64_t made = recorder.region.header->comms_made;
	struct tables early = { 0 }, late;

	for (uint64_t i = 0; i < MANY; i += BATCH) {
		make_some(release, i, &issued);
		if (i + BATCH == EARLY)
			early = count_tables();
	}
	late = count_tables();
	EXPECT_EQUAL(recorder.region.header->comms_made - made, MANY);
	EXPECT_EQUAL(recorded_in_totals() - before, issued);
	EXPECT_THAT("no communicator, operation or proxy slot is left open",
		    late.comms == 0 && late.live == 0 && late.proxies == 0);
	/*
	 * The last 512 have their own; earlier ones were released. Totals share one slot when
	 * theirs run out; that none is missing was checked above.
	 */
	EXPECT_THAT("no table grows",
		    late.peers <= early.peers + 64 && late.links <= early.links + 64);
	printf("# %u peers, %u totals, %u links; early %u, %u, %u\n", late.peers, late.totals,
	       late.links, early.peers, early.totals, early.links);
	EXPECT_EQUAL(op_lost_operations(recorder.region.header->lost), 0);
}

int main(void)
{
	static const int releases[] = { HOST_NCCL_2_27, HOST_NCCL_2_28, HOST_NCCL_2_30,
					HOST_NCCL_2_31 };

	plugin_host_setup("flight");
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		plain(releases[i], 0, "blocking, destroyed without a finalize");
		plain(releases[i], HOST_COMM_NONBLOCKING, "non-blocking");
		finalized_first(releases[i]);
		aborted(releases[i], HOST_STUCK_SEND_NET);
		aborted(releases[i], HOST_STUCK_RECV_GPU);
		revoked(releases[i]);
		split(releases[i], true, true);
		split(releases[i], false, true);
		split(releases[i], false, false);
		replaced(releases[i], 3, "shrunk");
		replaced(releases[i], 6, "grown");
	}
	several_per_thread(HOST_NCCL_2_28);
	many_come_and_go(HOST_NCCL_2_28);
	return tap_done();
}
