/*
 * The witness against a slow link is what the same proxy thread does without the network. When data has arrived it
 * waits for the flush to the GPU's memory, and notices that by the same polls: where the thread gets no
 * processor, flushes become longer with the sends, and on a link that is slow they do not. (In the recording of a
 * healthy real job both rise and fall together from operation to operation, with a correlation of 0.92 and more; in
 * that of a link 47 times as slow the sender's flushes are like the others': tests/gpu/recorded, calm and link.)
 *
 * How long the GPU takes to consume says less: a GPU that cannot send on over a slow link does not consume
 * either. It counts only where most operations are as fast as the others': a thread that is stopped now and then is
 * stopped in any state, also in the longest ones.
 */
#include "timeline/link_witness.h"

#include <math.h>
#include <stdlib.h>

#include "op/op_bytes.h"
#include "timeline/meet.h"

enum { SEATS_MAX = 64, RECEIVES_LEAST = 64, WINDOW = 8 /* transfers of a connection under way */ };
static const double share_that_matters = 4; /* times that of the others, of bursts */
static const double own_that_matters = 2, own_ns_that_matter = 5000, own_least_ns = 1000;

struct sums {
	uint32_t seat; /* index into job_comm.seats */
	double flush_ns;
	double consume_ns;
	double receives;
	uint64_t operations; /* those that send */
	uint64_t slow;
	uint64_t waiting;
};

struct look {
	const struct link_question *question;
	uint32_t comm_id;
	int32_t peer; /* rank within the communicator that its Sends must be for; -1: any */
	struct sums sums;
};

/* UINT32_MAX: before the first one. Matches between blocks count with the block before. */
static uint32_t block_of(const struct link_question *question, uint64_t match)
{
	uint32_t block = question->blocks;

	if (question->first_number == NULL)
		return 0;
	while (block > 0 && question->first_number[block - 1] > match / MEET_CHUNK)
		block--;
	return block - 1;
}

static bool is_asked(const struct link_question *question, const struct op_record *op)
{
	if (op->state != OP_DONE || op_size_class(op->bytes) != question->size_class)
		return false;
	if (question->is_send)
		return op->function == OP_SEND || op->function == OP_RECV;
	return meet_is_synchronising(op->function) && op->algorithm == OP_RING;
}

static void add_sends(struct look *look, const struct op_record *op, uint32_t block)
{
	const struct link_question *question = look->question;
	struct sums *sums = &look->sums;
	double wire_ns = (double)op->wait_ns[OP_WAIT_SEND_NET], steps = (double)op->send_steps;
	double connections = (double)op->proxies_started * steps / (steps + op->recv_steps);
	double waiting_ns = 0;

	sums->operations++;
	if (wire_ns <= question->limit_ns[block] * steps)
		return;
	sums->slow++;
	/* Before it comes, the receiver's buffers take a window of each connection. */
	if (question->behind_ns != NULL && question->behind_ns[block] > 0)
		waiting_ns = question->behind_ns[block] * WINDOW * connections;
	sums->waiting += wire_ns - waiting_ns <= question->limit_ns[block] * steps;
}

static bool add_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct look *look = context;
	uint32_t block;

	(void)place;
	if (op->comm != look->comm_id || !is_asked(look->question, op))
		return true;
	block = block_of(look->question, op->match);
	if (block == UINT32_MAX || (look->question->is_on && !look->question->is_on[block]))
		return true;
	look->sums.flush_ns += (double)op->wait_ns[OP_WAIT_RECV_FLUSH];
	look->sums.consume_ns += (double)op->wait_ns[OP_WAIT_RECV_GPU];
	look->sums.receives += (double)op->recv_steps;
	if (op->send_steps > 0 && (look->peer == -1 || op->peer == look->peer))
		add_sends(look, op, block);
	return true;
}

static struct sums look_at(const struct link_question *question, uint32_t seat)
{
	const struct job *job = question->job;
	const struct job_comm *comm = &job->comms[question->comm];
	const struct job_seat *of = &job->seats[comm->seats[seat]];
	struct look look = {
		.question = question, .comm_id = of->comm_id, .peer = -1, .sums = { .seat = seat }
	};

	if (question->is_send && seat == question->sender && question->receiver != UINT32_MAX)
		look.peer = job->seats[comm->seats[question->receiver]].comm_rank;
	/* What cannot be read was told when the report was made. */
	recording_each_op(job->recording->processes[of->process], add_op, &look, NULL);
	return look.sums;
}

static double own_ns(const struct sums *sums, bool is_bursty)
{
	double ns = sums->flush_ns + (is_bursty ? sums->consume_ns : 0);

	return sums->receives >= RECEIVES_LEAST ? ns / sums->receives : NAN;
}

static int rising(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* Of the others, the slowest of nine in ten; NAN: there are none. */
static double others_ns(const struct sums *list, uint32_t count, uint32_t but, uint32_t nor,
			bool is_bursty)
{
	double values[SEATS_MAX + 2];
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++) {
		double ns = own_ns(&list[i], is_bursty);

		if (list[i].seat != but && list[i].seat != nor && !isnan(ns))
			values[found++] = ns;
	}
	if (found == 0)
		return nor != UINT32_MAX ? others_ns(list, count, but, UINT32_MAX, is_bursty) : NAN;
	qsort(values, found, sizeof(*values), rising);
	return values[(found * 9 + 9) / 10 - 1];
}

/* Is a process late in all that it does, and does that say why its link stands out? */
static bool is_starved(const struct sums *list, uint32_t count, uint32_t seat, uint32_t other,
		       bool is_bursty, double slowdown, double *ratio)
{
	double own = NAN, others = others_ns(list, count, seat, other, is_bursty);

	for (uint32_t i = 0; i < count; i++)
		if (list[i].seat == seat)
			own = own_ns(&list[i], is_bursty);
	if (isnan(own) || isnan(others))
		return false;
	others = others > own_least_ns ? others : own_least_ns;
	*ratio = own / others;
	return *ratio >= own_that_matters && own - others >= own_ns_that_matter &&
	       /* Stops fall into the short states of receiving more rarely than into sends. */
	       log(*ratio) >= log(slowdown) / (is_bursty ? 4 : 2);
}

bool link_witness_is_waiting(const struct link_witness *witness)
{
	return witness->waiting * 2 > witness->slow;
}

/* Collectives of several kinds are compared together, and some have less on the wire by nature. */
static bool is_bursty_of(const struct link_witness *witness, bool is_send)
{
	return witness->slow * (is_send ? 2 : 3) < witness->operations;
}

static void take_sends(struct link_witness *witness, const struct sums *list, uint32_t count)
{
	uint64_t operations = 0, slow = 0;

	witness->operations = list[0].operations;
	witness->slow = list[0].slow;
	witness->waiting = list[0].waiting;
	for (uint32_t i = 1; i < count; i++) {
		operations += list[i].operations;
		slow += list[i].slow;
	}
	witness->others_share = operations > 0 ? (double)slow / (double)operations : 0;
}

bool link_witness_is_noise(const struct link_witness *witness)
{
	return witness->is_bursty && (double)witness->slow < share_that_matters *
								     witness->others_share *
								     (double)witness->operations;
}

enum status link_witness_find(struct link_witness *witness, const struct link_question *question)
{
	uint32_t seats = question->job->comms[question->comm].seat_count;
	uint32_t stride = seats / SEATS_MAX + 1, count = 0;
	struct sums *list = calloc(SEATS_MAX + 2, sizeof(*list));
	bool is_bursty;

	*witness = (struct link_witness){ .operations = 0 };
	if (list == NULL)
		return ERR_NO_SPACE;
	list[count++] = look_at(question, question->sender);
	if (question->receiver != UINT32_MAX && question->receiver != question->sender)
		list[count++] = look_at(question, question->receiver);
	for (uint32_t seat = 0; seat < seats; seat += stride)
		if (seat != question->sender && seat != question->receiver)
			list[count++] = look_at(question, seat);
	take_sends(witness, list, count);
	is_bursty = witness->is_bursty = is_bursty_of(witness, question->is_send);
	witness->is_sender_starved =
		is_starved(list, count, question->sender, question->receiver, is_bursty,
			   question->slowdown, &witness->sender_own);
	if (question->receiver != UINT32_MAX)
		witness->is_receiver_starved =
			is_starved(list, count, question->receiver, question->sender, is_bursty,
				   question->slowdown, &witness->receiver_own);
	free(list);
	return OK;
}
