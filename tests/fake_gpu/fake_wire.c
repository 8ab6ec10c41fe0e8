#include "tests/fake_gpu/fake_wire.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/order.h"
#include "tests/fake_gpu/fake_stream.h"

enum { PIPE_BYTES = 64 << 10, WAIT_NS = 100000000 };

struct pipe {
	uint64_t head ON_OWN_LINE; /* bytes read */
	uint64_t tail ON_OWN_LINE; /* bytes written */
	unsigned char bytes[PIPE_BYTES] ON_OWN_LINE;
};

struct shared {
	uint64_t hash;
	uint32_t nranks; /* from the first rank */
	uint32_t joined;
	uint64_t hosts[FAKE_RANKS_MAX];
	struct {
		uint32_t bell ON_OWN_LINE; /* changes when something changed for this rank */
	} ranks[FAKE_RANKS_MAX];
	struct pipe pipes[]; /* from * nranks + to */
};

struct fake_wire {
	struct shared *shared;
	size_t size;
	int nranks;
	int rank;
};

/* Precedes the bytes of every transfer. */
struct announcement {
	uint64_t length;
	uint64_t ready_ns;
	uint32_t what;
	uint32_t magic;
};

enum { ANNOUNCEMENT_MAGIC = 0x5a5afee1 };

/* ---- joining --------------------------------------------------------------------------------- */

int fake_wire_id(char id[FAKE_ID_BYTES])
{
	int fd = memfd_create("fake-nccl", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	memset(id, 0, FAKE_ID_BYTES);
	(void)snprintf(id, FAKE_ID_BYTES, "/proc/%d/fd/%d", (int)getpid(), fd);
	return 0;
}

static int shared_map(struct fake_wire *wire, const char *path)
{
	size_t pipes = (size_t)wire->nranks * (size_t)wire->nranks;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -1;
	wire->size = sizeof(struct shared) + pipes * sizeof(struct pipe);
	wire->shared = MAP_FAILED;
	if (ftruncate(fd, (off_t)wire->size) == 0)
		wire->shared = mmap(NULL, wire->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return wire->shared == MAP_FAILED ? -1 : 0;
}

static void word_wait(uint32_t *word, uint32_t seen)
{
	struct timespec timeout = { .tv_nsec = WAIT_NS };

	(void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

static void word_wake(uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, FAKE_RANKS_MAX, NULL, NULL, 0);
}

static int shared_join(struct fake_wire *wire, uint64_t host, uint64_t hash)
{
	struct shared *shared = wire->shared;
	uint32_t nranks = 0, joined;

	if (!swap_if_acq_rel(&shared->nranks, &nranks, (uint32_t)wire->nranks) &&
	    nranks != (uint32_t)wire->nranks)
		return -1;
	shared->hosts[wire->rank] = host;
	if (wire->rank == 0)
		shared->hash = hash;
	/* This rank's data is written before it is counted. Pairs with the acquire below. */
	add_release(&shared->joined, 1);
	word_wake(&shared->joined);
	while ((joined = load_acquire(&shared->joined)) < (uint32_t)wire->nranks)
		word_wait(&shared->joined, joined);
	return 0;
}

static uint64_t id_hash(const char *id)
{
	uint64_t hash = fake_clock() * 0x9e3779b97f4a7c15u;

	for (; *id != '\0'; id++)
		hash = (hash ^ (unsigned char)*id) * 0x100000001b3u;
	return hash;
}

/* The process that made the id keeps it open for the others until all have joined. */
static void id_close(const char *id)
{
	int pid, fd;

	if (sscanf(id, "/proc/%d/fd/%d", &pid, &fd) == 2 && pid == getpid())
		close(fd);
}

int fake_wire_open(struct fake_wire **wire, const char id[FAKE_ID_BYTES], int nranks, int rank,
		   uint64_t host)
{
	struct fake_wire *made = malloc(sizeof(*made));

	if (made == NULL)
		return -1;
	*made = (struct fake_wire){ .nranks = nranks, .rank = rank };
	if (shared_map(made, id) != 0) {
		free(made);
		return -1;
	}
	if (shared_join(made, host, id_hash(id)) != 0) {
		fake_wire_close(made);
		return -1;
	}
	id_close(id);
	*wire = made;
	return 0;
}

void fake_wire_close(struct fake_wire *wire)
{
	if (wire == NULL)
		return;
	munmap(wire->shared, wire->size);
	free(wire);
}

uint64_t fake_wire_hash(const struct fake_wire *wire)
{
	return wire->shared->hash;
}

int fake_wire_hosts(const struct fake_wire *wire)
{
	int different = 0;

	for (int i = 0; i < wire->nranks; i++) {
		int j = 0;

		while (wire->shared->hosts[j] != wire->shared->hosts[i])
			j++;
		different += j == i;
	}
	return different;
}

/* ---- pipes ----------------------------------------------------------------------------------- */

static struct pipe *pipe_of(const struct fake_wire *wire, const struct fake_transfer *transfer)
{
	int from = transfer->is_send ? wire->rank : transfer->peer;
	int to = transfer->is_send ? transfer->peer : wire->rank;

	return &wire->shared->pipes[from * wire->nranks + to];
}

/* Writes up to this many bytes; returns how many. */
static size_t pipe_put(struct pipe *pipe, const void *bytes, size_t length)
{
	/* What the reader has taken can be overwritten. Pairs with pipe_take(). */
	uint64_t tail = pipe->tail, room = PIPE_BYTES - (tail - load_acquire(&pipe->head));
	size_t count = length < room ? length : room;
	size_t first = PIPE_BYTES - tail % PIPE_BYTES;

	if (first > count)
		first = count;
	memcpy(pipe->bytes + tail % PIPE_BYTES, bytes, first);
	memcpy(pipe->bytes, (const unsigned char *)bytes + first, count - first);
	/* The bytes are written before the count. Pairs with pipe_take(). */
	store_release(&pipe->tail, tail + count);
	return count;
}

static size_t pipe_take(struct pipe *pipe, void *bytes, size_t length)
{
	/* Pairs with pipe_put(), both. */
	uint64_t head = pipe->head, there = load_acquire(&pipe->tail) - head;
	size_t count = length < there ? length : there;
	size_t first = PIPE_BYTES - head % PIPE_BYTES;

	if (first > count)
		first = count;
	memcpy(bytes, pipe->bytes + head % PIPE_BYTES, first);
	memcpy((unsigned char *)bytes + first, pipe->bytes, count - first);
	store_release(&pipe->head, head + count);
	return count;
}

static void bell_ring(const struct fake_wire *wire, int rank)
{
	uint32_t *bell = &wire->shared->ranks[rank].bell;

	/* The change is visible before the wakeup. Pairs with fake_wire_move(). */
	add_release(bell, 1);
	word_wake(bell);
}

/* ---- transfers ------------------------------------------------------------------------------- */

static void announcement_check(const struct fake_wire *wire, const struct fake_transfer *transfer,
			       const struct announcement *said)
{
	if (said->magic == ANNOUNCEMENT_MAGIC && said->what == transfer->what &&
	    said->length == transfer->length)
		return;
	(void)fprintf(stderr,
		      "fake NCCL: rank %d waits for %zu bytes of operation %u from rank %d, which "
		      "sends %zu "
		      "bytes of operation %u\n",
		      wire->rank, transfer->length, transfer->what, transfer->peer,
		      (size_t)said->length, said->what);
	abort();
}

static bool announce(const struct fake_wire *wire, struct fake_transfer *transfer,
		     uint64_t *ready_ns, uint64_t own_ns)
{
	struct announcement said = { .length = transfer->length,
				     .ready_ns = own_ns,
				     .what = transfer->what,
				     .magic = ANNOUNCEMENT_MAGIC };
	struct pipe *pipe = pipe_of(wire, transfer);

	/* Never split: waits until the pipe has room for a whole one. */
	if (transfer->is_send) {
		if (PIPE_BYTES - (pipe->tail - load_acquire(&pipe->head)) < sizeof(said))
			return false;
		(void)pipe_put(pipe, &said, sizeof(said));
	} else {
		if (load_acquire(&pipe->tail) - pipe->head < sizeof(said))
			return false;
		(void)pipe_take(pipe, &said, sizeof(said));
		announcement_check(wire, transfer, &said);
		if (*ready_ns < said.ready_ns)
			*ready_ns = said.ready_ns;
	}
	transfer->is_announced = true;
	return true;
}

/* Whether anything moved. */
static bool transfer_try(const struct fake_wire *wire, struct fake_transfer *transfer,
			 uint64_t *ready_ns, uint64_t own_ns)
{
	unsigned char *at = (unsigned char *)transfer->bytes + transfer->moved;
	size_t left = transfer->length - transfer->moved, count = 0;
	bool was_announced = transfer->is_announced;

	if (!was_announced && !announce(wire, transfer, ready_ns, own_ns))
		return false;
	if (left > 0 && transfer->is_send)
		count = pipe_put(pipe_of(wire, transfer), at, left);
	else if (left > 0)
		count = pipe_take(pipe_of(wire, transfer), at, left);
	transfer->moved += count;
	transfer->is_over = transfer->moved == transfer->length;
	if (count == 0 && was_announced)
		return false;
	bell_ring(wire, transfer->peer);
	return true;
}

static bool is_behind_another(const struct fake_transfer *transfers, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (!transfers[j].is_over && transfers[j].peer == transfers[i].peer &&
		    transfers[j].is_send == transfers[i].is_send)
			return true;
	}
	return false;
}

int fake_wire_move(struct fake_wire *wire, struct fake_transfer *transfers, size_t count,
		   const int *is_aborted, uint64_t *ready_ns)
{
	uint32_t *bell = &wire->shared->ranks[wire->rank].bell;
	uint64_t own_ns = *ready_ns;
	size_t left = count;

	while (left > 0) {
		uint32_t seen = load_acquire(bell); /* pairs with bell_ring() */
		bool has_moved = false;

		for (size_t i = 0; i < count; i++) {
			struct fake_transfer *transfer = &transfers[i];

			if (transfer->is_over || is_behind_another(transfers, i))
				continue;
			has_moved |= transfer_try(wire, transfer, ready_ns, own_ns);
			left -= transfer->is_over;
		}
		if (load_relaxed(is_aborted))
			return -1;
		if (left > 0 && !has_moved)
			word_wait(bell, seen);
	}
	return 0;
}
