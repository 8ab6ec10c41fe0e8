#include "programs/sim/sim_board.h"

#include <sys/mman.h>

#include "common/order.h"

/* Only these roles send to single ranks. */
static bool has_pairs(const struct sim_comm *comm)
{
	return comm->role == SIM_PIPELINE || comm->role == SIM_EXPERT;
}

static size_t seats_of(const struct sim_comm *comm)
{
	size_t nranks = (size_t)comm->nranks;

	return SIM_SEATS + (has_pairs(comm) ? nranks * nranks * SIM_PAIR_SEATS : 0);
}

/* Where a communicator's seats begin. */
static size_t first_seat(const struct sim_job *job, int comm)
{
	size_t seats = 0;

	for (int i = 0; i < comm; i++)
		seats += seats_of(&job->comms[i]);
	return seats;
}

enum status sim_board_new(struct sim_board **board, const struct sim_job *job)
{
	size_t ranks = (size_t)job->world * sizeof(struct sim_board_rank);
	size_t seats = first_seat(job, job->comm_count) * sizeof(struct sim_seat);
	size_t bytes = sizeof(struct sim_board) + ranks + seats;
	struct sim_board *made =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		return ERR_SYSTEM;
	made->bytes = bytes;
	made->ranks_offset = sizeof(struct sim_board);
	made->seats_offset = made->ranks_offset + ranks;
	*board = made;
	return OK;
}

void sim_board_free(struct sim_board *board)
{
	if (board)
		munmap(board, board->bytes);
}

struct sim_board_rank *sim_board_rank(struct sim_board *board, int rank)
{
	return (struct sim_board_rank *)(void *)((char *)board + board->ranks_offset) + rank;
}

static struct sim_seat *seat_at(struct sim_board *board, size_t index)
{
	return (struct sim_seat *)(void *)((char *)board + board->seats_offset) + index;
}

struct sim_seat *sim_board_seat(struct sim_board *board, const struct sim_job *job, int comm,
				uint64_t match)
{
	return seat_at(board, first_seat(job, comm) + (match - 1) % SIM_SEATS);
}

struct sim_seat *sim_board_pair(struct sim_board *board, const struct sim_job *job, int comm,
				int from, int to, uint64_t match)
{
	size_t pair = (size_t)from * (size_t)job->comms[comm].nranks + (size_t)to;

	return seat_at(board, first_seat(job, comm) + SIM_SEATS + pair * SIM_PAIR_SEATS +
				      (match - 1) % SIM_PAIR_SEATS);
}

void sim_board_arrive(struct sim_seat *seat, uint64_t ns)
{
	uint64_t last = load_relaxed(&seat->last_ns);

	while (last < ns && !swap_if_acquire(&seat->last_ns, &last, ns))
		;
	/* The time is there before the count. Pairs with sim_board_is_full(). */
	add_release(&seat->arrived, 1);
}

bool sim_board_is_full(const struct sim_seat *seat, uint64_t match, unsigned int seats,
		       unsigned int expected, uint64_t *last_ns)
{
	uint64_t uses = (match - 1) / seats + 1;

	/* Pairs with sim_board_arrive(). */
	if (load_acquire(&seat->arrived) < uses * expected)
		return false;
	*last_ns = load_relaxed(&seat->last_ns);
	return true;
}
