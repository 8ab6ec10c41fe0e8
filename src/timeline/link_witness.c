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
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "timeline/filter_rows.h"
#include "timeline/meet.h"

enum { RECEIVES_LEAST = 64, WINDOW = 8 /* transfers of a connection under way */ };
static const double share_that_matters = 4; /* times that of the others, of bursts */
static const double own_that_matters = 2, own_ns_that_matter = 5000, own_least_ns = 1000;

struct look {
	const struct link_question *question;
	uint32_t comm_id;
	int32_t peer;	   /* rank within the communicator that its Sends must be for; -1: any */
	uint64_t since_ns; /* recorder's clock, like the next */
	uint64_t until_ns;
	struct link_sums sums;
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
	return meet_is_synchronising(op->function) && op->algorithm == OP_RING &&
	       question->is_replay == ((op->flags & OP_FLAG_REPLAY) != 0);
}

static void add_sends(struct look *look, const struct op_record *op, uint32_t block)
{
	const struct link_question *question = look->question;
	struct link_sums *sums = &look->sums;
	double wire_ns = (double)op->wait_ns[OP_WAIT_SEND_NET], steps = (double)op->send_steps;
	double connections = (double)op->proxies_started * steps / (steps + op->recv_steps);
	double waiting_ns = 0;
	bool is_slow = wire_ns > question->limit_ns[block] * steps;

	sums->operations++;
	sums->slow_again += is_slow && sums->is_last_slow;
	sums->is_last_slow = is_slow;
	if (!is_slow)
		return;
	sums->slow++;
	/* Before it comes, the receiver's buffers take a window of each connection. */
	if (question->behind_ns != NULL && question->behind_ns[block] > 0)
		waiting_ns = question->behind_ns[block] * WINDOW * connections;
	sums->waiting += wire_ns - waiting_ns <= question->limit_ns[block] * steps;
}

static void add_op(struct look *look, const struct op_record *op)
{
	uint32_t block;

	if (!is_asked(look->question, op) ||
	    !filter_is_within(look->since_ns, look->until_ns, op->done_ns, op->issue_ns))
		return;
	block = block_of(look->question, op->match);
	if (block == UINT32_MAX || (look->question->is_on && !look->question->is_on[block]))
		return;
	look->sums.flush_ns += (double)op->wait_ns[OP_WAIT_RECV_FLUSH];
	look->sums.consume_ns += (double)op->wait_ns[OP_WAIT_RECV_GPU];
	look->sums.receives += (double)op->recv_steps;
	if (op->send_steps > 0 && (look->peer == -1 || op->peer == look->peer))
		add_sends(look, op, block);
}

/* What is asked of an operation; all else stays 0. */
static const uint8_t words_asked[] = {
	OP_WORD_KIND,
	OP_WORD_MATCH,
	OP_WORD_BYTES,
	OP_WORD_ENDS,
	OP_WORD_STATE,
	OP_WORD_ISSUE,
	OP_WORD_DONE,
	OP_WORD_CHILDREN,
	OP_WORD_WAITS + OP_WAIT_SEND_NET,
	OP_WORD_WAITS + OP_WAIT_RECV_FLUSH,
	OP_WORD_WAITS + OP_WAIT_RECV_GPU,
	OP_WORD_STEPS,
};

static bool add_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct look *look = context;
	uint64_t words[OP_RECORD_WORDS] = { 0 };
	struct op_record op;

	(void)place;
	for (uint32_t i = 0; i < batch->rows; i++) {
		if (op_kind_comm(batch->column[OP_WORD_KIND][i]) != look->comm_id ||
		    batch->column[OP_WORD_STEPS][i] == 0)
			continue;
		for (size_t w = 0; w < ARRAY_LENGTH(words_asked); w++)
			words[words_asked[w]] = batch->column[words_asked[w]][i];
		memcpy(&op, words, sizeof(op));
		add_op(look, &op);
	}
	return true;
}

/* peer: index into job_comm.seats to which it sends; UINT32_MAX: to anybody. */
static struct link_sums look_at(const struct link_question *question, uint32_t seat, uint32_t peer)
{
	const struct job *job = question->job;
	const struct job_comm *comm = &job->comms[question->comm];
	const struct job_seat *of = &job->seats[comm->seats[seat]];
	struct look look = {
		.question = question, .comm_id = of->comm_id, .peer = -1, .sums = { .seat = seat }
	};
	uint32_t words = 0;

	if (peer != UINT32_MAX)
		look.peer = job->seats[comm->seats[peer]].comm_rank;
	filter_clock_limits(job->recording->processes[of->process], question->since_ns,
			    question->until_ns, &look.since_ns, &look.until_ns);
	for (size_t w = 0; w < ARRAY_LENGTH(words_asked); w++)
		words |= OP_WORD_BIT(words_asked[w]);
	/* What cannot be read was told when the report was made. */
	recording_each_batch(job->recording->processes[of->process], words, add_batch, &look, NULL);
	return look.sums;
}

static double own_ns(const struct link_sums *sums, bool is_bursty)
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
static double others_ns(const struct link_sums *list, uint32_t count, uint32_t but, uint32_t nor,
			bool is_bursty)
{
	double values[LINK_SEATS_MAX + 2];
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
static bool is_starved(const struct link_sums *list, uint32_t count, uint32_t seat, uint32_t other,
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

/*
 * Collectives of several kinds are compared together, and some have less on the wire by nature; when they stand out is
 * known. Of Sends it is not: where most that stand out follow one that does, it is a stretch of time, not bursts.
 */
static bool is_bursty_of(const struct link_sums *sums, bool is_send)
{
	if (!is_send)
		return sums->slow * 3 < sums->operations;
	return sums->slow * 2 < sums->operations && sums->slow_again * 2 <= sums->slow;
}

static void take_sends(struct link_witness *witness, const struct link_sums *list, uint32_t count)
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

/* Sends of one size are all asked about with the same limit: on one communicator the sample is the same. */
static void take_sample(struct link_sample *sample, const struct link_question *question)
{
	uint32_t seats = question->job->comms[question->comm].seat_count;
	uint32_t stride = seats / LINK_SEATS_MAX + 1;

	if (question->is_send && sample->is_of_sends && sample->comm == question->comm &&
	    sample->size_class == question->size_class && sample->limit_ns == question->limit_ns[0])
		return;
	*sample = (struct link_sample){ .is_of_sends = question->is_send,
					.comm = question->comm,
					.size_class = question->size_class,
					.limit_ns = question->limit_ns[0] };
	for (uint32_t seat = 0; seat < seats; seat += stride)
		sample->list[sample->count++] = look_at(question, seat, UINT32_MAX);
}

static struct link_sums sums_of(const struct link_sample *sample,
				const struct link_question *question, uint32_t seat)
{
	if (question->is_send && seat == question->sender)
		return look_at(question, seat, question->receiver);
	for (uint32_t i = 0; i < sample->count; i++)
		if (sample->list[i].seat == seat)
			return sample->list[i];
	return look_at(question, seat, UINT32_MAX);
}

void link_witness_find(struct link_witness *witness, const struct link_question *question,
		       struct link_sample *sample)
{
	struct link_sums list[LINK_SEATS_MAX + 2];
	uint32_t sender = question->sender, receiver = question->receiver, count = 0;
	bool is_bursty;

	*witness = (struct link_witness){ .operations = 0 };
	take_sample(sample, question);
	list[count++] = sums_of(sample, question, sender);
	if (receiver != UINT32_MAX && receiver != sender)
		list[count++] = sums_of(sample, question, receiver);
	for (uint32_t i = 0; i < sample->count; i++)
		if (sample->list[i].seat != sender && sample->list[i].seat != receiver)
			list[count++] = sample->list[i];
	take_sends(witness, list, count);
	is_bursty = witness->is_bursty = is_bursty_of(&list[0], question->is_send);
	witness->is_sender_starved = is_starved(list, count, sender, receiver, is_bursty,
						question->slowdown, &witness->sender_own);
	if (receiver != UINT32_MAX)
		witness->is_receiver_starved =
			is_starved(list, count, receiver, sender, is_bursty, question->slowdown,
				   &witness->receiver_own);
}
