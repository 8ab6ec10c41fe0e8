/*
 * A link's time on the wire is compared with what it would be at the pace of the median link of the
 * communicator, per byte or per transfer, whichever allows more time: small messages have few bytes, and a
 * start-up cost each. The rest is excess; the peer with most of it is named. Everything is weighted by
 * bytes, so that many tiny transfers (trees, barriers) decide nothing.
 */
#include "analysis/straggler.h"
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/filter.h"
#include "analysis/match.h"
#include "analysis/stats.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"

/* The query. Times are per block of the section of matches in which it stands out. */
struct link_question {
	const struct job *job;
	uint32_t comm;	    /* index into job.comms */
	uint32_t sender;    /* index into job_comm.seats, like the next */
	uint32_t receiver;  /* UINT32_MAX: unknown */
	bool is_send;	    /* Sends to the receiver; else the rings of collectives */
	bool is_replay;	    /* of collectives: replays, which count separately; else calls */
	uint8_t size_class; /* of their messages */
	double slowdown;    /* time on the wire relative to the others */
	uint64_t since_ns;  /* only what ended then, wall time; 0, like the next: no limit */
	uint64_t until_ns;
	const bool *is_on; /* [block]; NULL, like the next three: one block, all of it */
	uint32_t blocks;
	const uint64_t *first_number; /* [block]: match / MATCH_CHUNK with which it begins */
	const double *behind_ns; /* [block]: how much later than the sender the receiver arrived,
				    on average */
	const double *limit_ns;	 /* [block]: a transfer that is longer on the wire stands out */
};

struct link_witness {
	uint64_t operations; /* of the sender */
	uint64_t slow;	     /* of these: their transfers stand out */
	uint64_t waiting;    /* of slow: not counting what may be waiting for a late receiver */
	bool is_bursty;	     /* few operations stand out: intermittent */
	double others_share; /* share of the others' sends that are as slow, 0..1 */
	/* The time a process takes for transfers that are not on the wire, relative to the 90th percentile
	 * of the others; 0 unknown. */
	double sender_own;
	double receiver_own;
	bool is_sender_starved;
	bool is_receiver_starved;
	bool is_sender_late; /* its GPU comes after the data that it receives, by more than its sends are slow */
	double wire_share; /* without GPU times: part of its sends' time on the wire; 0 unknown */
};

enum { SEND_NET = 2 };
static const double peer_part_that_matters = 0.05; /* of the bytes to the peer with the most */
static const double slowdown_that_matters = 1.1;   /* below, none stands out */
static const double peer_share_that_matters = 0.6;
static const double slowdown_certain = 1.5, share_certain = 0.8;

struct pace {
	double ns; /* per byte, or per transfer */
	double bytes;
};

/* Links that are compared, one each. */
struct gather {
	struct pace *per_byte;
	struct pace *per_step;
	size_t count;
};

static bool is_send_of(const struct region_link *link, uint32_t comm_id)
{
	return link->key >> 34 == comm_id && !(link->key >> 32 & 1) && link->bytes > 0 &&
	       link->steps > 0;
}

static int32_t peer_of(const struct region_link *link)
{
	return (int32_t)((uint32_t)link->key - 1);
}

/* Fewer bytes than these decide nothing; 0: it sent nothing. */
static double least_bytes(const struct recording_process *process, uint32_t comm_id)
{
	uint64_t most = 0;

	for (size_t i = 0; i < process->link_count; i++)
		if (is_send_of(&process->links[i], comm_id) && process->links[i].bytes > most)
			most = process->links[i].bytes;
	return peer_part_that_matters * (double)most;
}

static bool gather_links(struct gather *gather, const struct recording_process *process,
			 uint32_t comm_id)
{
	double least = least_bytes(process, comm_id);

	for (size_t i = 0; i < process->link_count; i++) {
		const struct region_link *link = &process->links[i];

		if (!is_send_of(link, comm_id) || (double)link->bytes < least)
			continue;
		if (!list_grow(&gather->per_byte, gather->count, sizeof(*gather->per_byte)) ||
		    !list_grow(&gather->per_step, gather->count, sizeof(*gather->per_step)))
			return false;
		gather->per_byte[gather->count] =
			(struct pace){ (double)link->wait_ns[SEND_NET] / (double)link->bytes,
				       (double)link->bytes };
		gather->per_step[gather->count++] =
			(struct pace){ (double)link->wait_ns[SEND_NET] / (double)link->steps,
				       (double)link->bytes };
	}
	return true;
}

/* The median link: half of all bytes went over links that are not slower. */
struct middle {
	double per_byte;
	double per_step;
};

static int by_ns(const void *one, const void *other)
{
	const struct pace *a = one, *b = other;

	return ORDER(a->ns, b->ns);
}

static double pace_middle(struct pace *paces, size_t count)
{
	double all = 0, so_far = 0;
	size_t i = 0;

	for (size_t k = 0; k < count; k++)
		all += paces[k].bytes;
	qsort(paces, count, sizeof(*paces), by_ns);
	while (i + 1 < count && so_far + paces[i].bytes < all / 2)
		so_far += paces[i++].bytes;
	return paces[i].ns;
}

static enum status find_middle(struct middle *middle, const struct job *job, uint32_t comm)
{
	struct gather gather = { .count = 0 };
	enum status status = OK;

	for (uint32_t i = 0; i < job->comms[comm].seat_count && status == OK; i++) {
		const struct job_seat *seat = &job->seats[job->comms[comm].seats[i]];

		if (!gather_links(&gather, job->recording->processes[seat->process], seat->comm_id))
			status = ERR_NO_SPACE;
	}
	*middle = (struct middle){ 0 };
	if (status == OK && gather.count > 1) {
		middle->per_byte = pace_middle(gather.per_byte, gather.count);
		middle->per_step = pace_middle(gather.per_step, gather.count);
	}
	free(gather.per_byte);
	free(gather.per_step);
	return status;
}

static double expected_ns(const struct region_link *link, const struct middle *middle)
{
	double by_bytes = middle->per_byte * (double)link->bytes;
	double by_steps = middle->per_step * (double)link->steps;

	return by_bytes > by_steps ? by_bytes : by_steps;
}

static void peer_take(struct link_peer *found, const struct region_link *link,
		      const struct middle *middle)
{
	const double mib = 1 << 20;
	double expected = expected_ns(link, middle);

	found->peer = peer_of(link);
	found->slowdown = expected > 0 ? (double)link->wait_ns[SEND_NET] / expected : 0;
	found->transfers = link->steps;
	found->bytes = link->bytes;
	found->ns_per_mib = (double)link->wait_ns[SEND_NET] / (double)link->bytes * mib;
	found->middle_ns_per_mib = middle->per_byte * mib;
}

/* Of several: the confidence in this one. */
static double confidence_of(const struct link_peer *found)
{
	if (found->slowdown < slowdown_that_matters || found->share < peer_share_that_matters)
		return 0;
	if (found->slowdown >= slowdown_certain && found->share >= share_certain)
		return 0.95;
	return 0.7;
}

static void peers_compare(struct link_peer *found, const struct recording_process *process,
			  uint32_t comm_id, const struct middle *middle)
{
	double least = least_bytes(process, comm_id), most = 0, sum = 0;

	for (size_t i = 0; i < process->link_count; i++) {
		const struct region_link *link = &process->links[i];
		double too_much;

		if (!is_send_of(link, comm_id))
			continue;
		found->peers++;
		if ((double)link->bytes < least)
			continue;
		found->peers_weighed++;
		too_much = (double)link->wait_ns[SEND_NET] - expected_ns(link, middle);
		if (too_much > 0)
			sum += too_much;
		if (found->peers_weighed > 1 && too_much <= most)
			continue;
		most = too_much;
		peer_take(found, link, middle);
	}
	found->share = sum > 0 && most > 0 ? most / sum : 0;
}

enum status link_peer_find(struct link_peer *found, const struct job *job, uint32_t seat)
{
	const struct job_seat *of = &job->seats[seat];
	const struct recording_process *process = job->recording->processes[of->process];
	struct middle middle;
	enum status status;

	*found = (struct link_peer){ .peer = -1 };
	if (least_bytes(process, of->comm_id) <= 0)
		return OK;
	status = find_middle(&middle, job, of->comm);
	if (status != OK)
		return status;
	peers_compare(found, process, of->comm_id, &middle);
	if (found->peers_weighed == 1)
		found->confidence = found->peers == 1 ? 1 : 0.98;
	else
		found->confidence = confidence_of(found);
	if (found->confidence <= 0)
		found->peer = -1;
	return OK;
}

bool link_has_peer(const struct job *job, uint32_t comm, uint32_t rank, int32_t peer)
{
	uint32_t place = job_place_in(job, comm, rank);
	const struct job_seat *seat;
	const struct recording_process *process;
	double least;

	if (place == UINT32_MAX)
		return false;
	seat = &job->seats[job->comms[comm].seats[place]];
	process = job->recording->processes[seat->process];
	least = least_bytes(process, seat->comm_id);
	for (size_t i = 0; i < process->link_count; i++)
		if (is_send_of(&process->links[i], seat->comm_id) &&
		    peer_of(&process->links[i]) == peer && (double)process->links[i].bytes >= least)
			return true;
	return false;
}

uint32_t link_peer_rank(const struct job *job, uint32_t comm, int32_t comm_rank)
{
	uint32_t seat = job_member(job, &job->comms[comm], comm_rank);

	return seat != UINT32_MAX ? job->seats[seat].rank : UINT32_MAX;
}

/*
 * The evidence against a slow link is what the same proxy thread does without the network. When data has
 * arrived it waits for the flush to the GPU's memory, and notices that by the same polls: if the thread is
 * short of CPU, flushes become longer along with the sends; on a slow link they do not. (In the recording
 * of a healthy real job both rise and fall together from operation to operation, with a correlation of 0.92
 * and more; in that of a link 47 times slower the sender's flushes are like the others':
 * tests/gpu/recorded, calm and link.)
 *
 * How long the GPU takes to consume is weaker evidence: a GPU that cannot send over a slow link does not
 * consume either. It counts only if most operations are as fast as the others': a thread that is stopped
 * occasionally is stopped in any state, also in the longest ones.
 */

enum { RECEIVES_LEAST = 64, WINDOW = 8 /* transfers of a connection in progress */ };
static const double burst_share_that_matters = 4; /* relative to the others, of bursts */
static const double own_that_matters = 2, own_ns_that_matter = 5000, own_least_ns = 1000;

struct look {
	const struct link_question *question;
	uint32_t comm_id;
	int32_t peer;	   /* rank within the communicator that its Sends must be for; -1: any */
	uint64_t since_ns; /* recorder's clock, like the next */
	uint64_t until_ns;
	struct link_sums sums;
	struct gpu_waits *gpu_waits; /* NULL: not asked for */
};

/* How long the data of a rank waits for its GPU. */
struct gpu_waits {
	double ns[STRAGGLER_BLOCKS];
	double operations[STRAGGLER_BLOCKS];
};

/* UINT32_MAX: before the first one. Matches between blocks count with the previous block. */
static uint32_t block_of(const struct link_question *question, uint64_t match)
{
	uint32_t block = question->blocks;

	if (question->first_number == NULL)
		return 0;
	while (block > 0 && question->first_number[block - 1] > match / MATCH_CHUNK)
		block--;
	return block - 1;
}

static bool is_asked(const struct link_question *question, const struct op_record *op)
{
	if (op->state != OP_DONE || op_size_class(op->bytes) != question->size_class)
		return false;
	if (question->is_send)
		return op->function == OP_SEND || op->function == OP_RECV;
	return match_is_synchronising(op->function) && op->algorithm == OP_RING &&
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

	sums->wire_ns += wire_ns;
	sums->send_ns += wire_ns + (double)op->wait_ns[OP_WAIT_SEND_GPU] +
			 (double)op->wait_ns[OP_WAIT_SEND_PEER];
	sums->operations++;
	sums->slow_again += is_slow && sums->is_last_slow;
	sums->is_last_slow = is_slow;
	if (!is_slow)
		return;
	sums->slow++;
	/* Before it arrives, the receiver's buffers take a window of each connection. */
	if (question->behind_ns != NULL && question->behind_ns[block] > 0)
		waiting_ns = question->behind_ns[block] * WINDOW * connections;
	sums->waiting += wire_ns - waiting_ns <= question->limit_ns[block] * steps;
}

/* The transfers that are posted first wait equally long, side by side. */
static void add_gpu_wait(struct gpu_waits *waits, const struct op_record *op, uint32_t block)
{
	double steps = (double)op->recv_steps;
	double slots = WINDOW * (double)op->proxies_started * steps / (steps + op->send_steps);

	if (op->recv_steps == 0 || op->proxies_started == 0)
		return;
	waits->ns[block] += (double)op->wait_ns[OP_WAIT_RECV_GPU] / fmin(steps, slots);
	waits->operations[block]++;
}

static void witness_add(struct look *look, const struct op_record *op)
{
	uint32_t block;

	if (!is_asked(look->question, op) ||
	    !filter_is_within(look->since_ns, look->until_ns, op->done_ns, op->issue_ns))
		return;
	block = block_of(look->question, op->match);
	if (block == UINT32_MAX || (look->question->is_on && !look->question->is_on[block]))
		return;
	look->sums.is_timed |= op->gpu_start_ns != 0;
	if (look->gpu_waits != NULL) {
		add_gpu_wait(look->gpu_waits, op, block);
		return;
	}
	look->sums.flush_ns += (double)op->wait_ns[OP_WAIT_RECV_FLUSH];
	look->sums.consume_ns += (double)op->wait_ns[OP_WAIT_RECV_GPU];
	look->sums.receives += (double)op->recv_steps;
	if (op->send_steps > 0 && (look->peer == -1 || op->peer == look->peer))
		add_sends(look, op, block);
}

/* What is needed of an operation; everything else stays 0. */
static const uint8_t words_asked[] = {
	OP_WORD_KIND,
	OP_WORD_MATCH,
	OP_WORD_BYTES,
	OP_WORD_ENDS,
	OP_WORD_STATE,
	OP_WORD_ISSUE,
	OP_WORD_DONE,
	OP_WORD_CHILDREN,
	OP_WORD_GPU_START,
	OP_WORD_WAITS + OP_WAIT_SEND_GPU,
	OP_WORD_WAITS + OP_WAIT_SEND_PEER,
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
		witness_add(look, &op);
	}
	return true;
}

/* peer: index into job_comm.seats to which it sends; UINT32_MAX: any. */
static struct link_sums seat_look(const struct link_question *question, uint32_t seat,
				  uint32_t peer, struct gpu_waits *gpu_waits)
{
	const struct job *job = question->job;
	const struct job_comm *comm = &job->comms[question->comm];
	const struct job_seat *of = &job->seats[comm->seats[seat]];
	struct look look = { .question = question,
			     .comm_id = of->comm_id,
			     .peer = -1,
			     .sums = { .seat = seat },
			     .gpu_waits = gpu_waits };
	uint32_t words = 0;

	if (peer != UINT32_MAX)
		look.peer = job->seats[comm->seats[peer]].comm_rank;
	filter_clock_limits(job->recording->processes[of->process], question->since_ns,
			    question->until_ns, &look.since_ns, &look.until_ns);
	for (size_t w = 0; w < ARRAY_LENGTH(words_asked); w++)
		words |= OP_WORD_BIT(words_asked[w]);
	/* What cannot be read was reported when the report was made. */
	recording_each_batch(job->recording->processes[of->process], words, add_batch, &look, NULL);
	return look.sums;
}

static struct link_sums seat_sums(const struct link_question *question, uint32_t seat,
				  uint32_t peer)
{
	return seat_look(question, seat, peer, NULL);
}

static double own_ns(const struct link_sums *sums, bool is_bursty)
{
	double ns = sums->flush_ns + (is_bursty ? sums->consume_ns : 0);

	return sums->receives >= RECEIVES_LEAST ? ns / sums->receives : NAN;
}

/* The 90th percentile of the others; NAN: there are none. */
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
	stats_sort(values, found);
	return values[(found * 9 + 9) / 10 - 1];
}

/* Is a process late in everything it does, and does that explain why its link stands out? */
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
	       /* Stops hit the short states of receiving more rarely than sends. */
	       log(*ratio) >= log(slowdown) / (is_bursty ? 4 : 2);
}

static const double polls_late = 3, held_up_at_most = 2;

/*
 * The first is the sender. One that polls late sees everything late, flushes as well, and needs a closer look. A slow
 * link holds up its sender's GPU, too, but not for much longer than its transfers take.
 */
static bool is_sender_late(const struct link_sums *list, uint32_t count, double slowdown)
{
	double consume[LINK_SEATS_MAX + 2], flush[LINK_SEATS_MAX + 2], excess_ns;
	const struct link_sums *own = &list[0];
	uint32_t found = 0;

	for (uint32_t i = 1; i < count; i++)
		if (list[i].receives >= RECEIVES_LEAST) {
			consume[found] = list[i].consume_ns / list[i].receives;
			flush[found++] = list[i].flush_ns / list[i].receives;
		}
	if (found == 0 || own->receives < RECEIVES_LEAST ||
	    own->flush_ns / own->receives > polls_late * stats_lower_middle(flush, found))
		return false;
	excess_ns = own->consume_ns - stats_lower_middle(consume, found) * own->receives;
	return excess_ns > held_up_at_most * own->wire_ns * (1 - 1 / slowdown);
}

/* Most of what stands out is waiting for the receiver. */
static bool link_witness_is_waiting(const struct link_witness *witness)
{
	return witness->waiting * 2 > witness->slow;
}

/*
 * Collectives of several kinds are compared together, and some have less on the wire by nature; the times
 * at which they stand out are known. For Sends they are not: if most that stand out follow one that does,
 * it is a section of time, not bursts.
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

/* It is intermittent, and the others' sends stand out nearly as often. */
static bool link_witness_is_noise(const struct link_witness *witness)
{
	return witness->is_bursty && (double)witness->slow < burst_share_that_matters *
								     witness->others_share *
								     (double)witness->operations;
}

/* Queries about Sends of one size all have the same limit: on one communicator the sample is the same. */
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
		sample->list[sample->count++] = seat_sums(question, seat, UINT32_MAX);
}

static struct link_sums sums_of(const struct link_sample *sample,
				const struct link_question *question, uint32_t seat)
{
	if (question->is_send && seat == question->sender)
		return seat_sums(question, seat, question->receiver);
	for (uint32_t i = 0; i < sample->count; i++)
		if (sample->list[i].seat == seat)
			return sample->list[i];
	return seat_sums(question, seat, UINT32_MAX);
}

/* Reads the operations of the two, and of some of the others. */
static void link_witness_find(struct link_witness *witness, const struct link_question *question,
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
	witness->is_sender_late = is_sender_late(list, count, question->slowdown);
	if (list[0].send_ns > 0 && !list[0].is_timed)
		witness->wire_share = list[0].wire_ns / list[0].send_ns;
	is_bursty = witness->is_bursty = is_bursty_of(&list[0], question->is_send);
	witness->is_sender_starved = is_starved(list, count, sender, receiver, is_bursty,
						question->slowdown, &witness->sender_own);
	if (receiver != UINT32_MAX)
		witness->is_receiver_starved =
			is_starved(list, count, receiver, sender, is_bursty, question->slowdown,
				   &witness->receiver_own);
}

/* False: it receives nothing over the network, or there are GPU times. */
static bool find_gpu_waits(const struct link_question *question, uint32_t seat,
			   struct gpu_waits *waits)
{
	double operations = 0;

	if (seat_look(question, seat, UINT32_MAX, waits).is_timed)
		return false;
	for (uint32_t b = 0; b < question->blocks; b++)
		operations += waits->operations[b];
	return operations > 0;
}

static void use_gpu_waits(struct straggler_table *table, uint32_t seat,
			  const struct gpu_waits *waits)
{
	for (uint32_t b = 0; b < table->blocks; b++) {
		double *late = &table->late_ns[(size_t)seat * table->blocks + b];
		double *caused = &table->caused_ns[(size_t)seat * table->blocks + b];

		/* What is left out stays so. */
		*late = isnan(*late) || waits->operations[b] == 0
				? NAN
				: waits->ns[b] / waits->operations[b];
		*caused = isnan(*late) ? 0 : waits->ns[b] * (table->seats - 1);
	}
	table->last_in[seat] = 0;
}

void straggler_late_by_network(struct straggler_search *search, struct straggler_table *table)
{
	const struct link_question question = { .job = search->job,
						.comm = table->lane->comm,
						.is_replay = table->lane->is_replay,
						.size_class = (uint8_t)table->wire_class,
						.since_ns = search->since_ns,
						.until_ns = search->until_ns,
						.blocks = table->blocks,
						.first_number = table->first_number };
	struct gpu_waits *waits;
	uint32_t known = 0;

	if (search->job->comms[question.comm].kind != JOB_COMM_NET)
		return;
	waits = calloc(table->seats, sizeof(*waits));
	if (waits == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	while (known < table->seats && find_gpu_waits(&question, known, &waits[known]))
		known++;
	table->is_late_by_network = known == table->seats;
	for (uint32_t seat = 0; seat < table->seats && table->is_late_by_network; seat++)
		use_gpu_waits(table, seat, &waits[seat]);
	free(waits);
}

/*
 * The result of the closer examination of a link that stands out (straggler_internal.h):
 *
 *	a process at one of its ends is also late in what needs no network       a straggler, short of CPU
 *	the receiver arrives late, and what was sent waits for it               nothing: that rank is named already
 *	the sender's GPU arrives late, and sends everything at once             nothing: its link is as fast as any
 *	few operations stand out, and also quite a few of the others'           nothing
 *	few operations stand out, and both processes are fine                   a slow link, with less confidence
 *	anything else                                                           a slow link
 */

enum { LOOKS_MAX = 64 };
static const double sure_of_bursts = 0.7, sure_of_process = 0.8;

static void add_starved(struct straggler_search *search, const struct straggler *link,
			uint32_t rank, double own)
{
	struct straggler starved = *link;

	starved.class = STRAGGLER_SLOW_RANK;
	starved.rank = rank;
	starved.host = search->job->ranks[rank].host;
	starved.peer = UINT32_MAX;
	starved.peer_confidence = 0;
	starved.channel = -1;
	starved.is_of_sends = false;
	starved.confidence *= sure_of_process;
	starved.is_starved = true;
	starved.own_slowdown = own;
	straggler_add(search, &starved);
}

/* A link that stands out, or the result of its closer examination. */
static void straggler_add_link(struct straggler_search *search, struct straggler *link,
			       const struct link_question *question)
{
	struct link_question within = *question;
	struct link_witness witness;

	within.since_ns = search->since_ns;
	within.until_ns = search->until_ns;
	if (search->looks++ >= LOOKS_MAX) {
		straggler_add(search, link);
		return;
	}
	link_witness_find(&witness, &within, &search->sample);
	if (witness.is_sender_starved) {
		add_starved(search, link, link->rank, witness.sender_own);
		return;
	}
	if (witness.is_receiver_starved) {
		add_starved(search, link, link->peer, witness.receiver_own);
		return;
	}
	if (link_witness_is_waiting(&witness) && link->peer != UINT32_MAX &&
	    straggler_is_late(search, link->peer, link->comm))
		return;
	if (!link->is_of_sends && witness.is_sender_late)
		return;
	/* Durations that begin when transfers are posted: only the time on the wire can be longer. */
	if (!link->is_of_sends && isnan(link->effect) && witness.wire_share > 0) {
		link->caused_ns = units_whole((double)link->caused_ns * witness.wire_share);
		link->cost_share *= witness.wire_share;
	}
	/* Collectives were tested against chance, block by block. */
	if (link->is_of_sends && link_witness_is_noise(&witness))
		return;
	if (witness.operations > 0)
		link->slow_share = (double)witness.slow / (double)witness.operations;
	link->is_bursty = witness.is_bursty && witness.slow > 0;
	if (witness.is_bursty)
		link->confidence *= sure_of_bursts;
	straggler_add(search, link);
}

/*
 * Slow Sends. They are known by sender and receiver, so links are compared with each other: those with
 * messages of one size, by the time on the wire per transfer.
 */

enum { LINKS_LEAST = 4, SENDS_LEAST = 8, SIZE_CLASSES = 66 };
static const double link_ratio = 2, link_excess_ns = 5000;

static bool is_comparable(const struct link *link, unsigned int size_class)
{
	return link->sends >= SENDS_LEAST && link->send_steps > 0 && link->to >= 0 &&
	       op_size_class(link->bytes / link->sends) == size_class;
}

/* A transfer that is longer on the wire than this stands out. */
static double limit_of(double middle_ns)
{
	double by_ratio = link_ratio * middle_ns, by_excess = middle_ns + link_excess_ns;

	return by_ratio > by_excess ? by_ratio : by_excess;
}

static void name_link(struct straggler_search *search, const struct link *link,
		      unsigned int size_class, double wire_ns, double middle_ns)
{
	const struct job_seat *seat = &search->job->seats[link->from];
	struct straggler straggler = { .class = STRAGGLER_SLOW_LINK,
				       .rank = seat->rank,
				       .host = search->job->ranks[seat->rank].host,
				       .peer = link_peer_rank(search->job, link->comm, link->to),
				       .peer_confidence = 1,
				       .channel = -1,
				       .comm = link->comm,
				       .matches = link->sends,
				       .share_of_time = 1,
				       .is_of_sends = true,
				       .slowdown = wire_ns / (middle_ns > 1 ? middle_ns : 1),
				       /* By the number of links: no distribution is assumed. */
				       .confidence = 1 - 1 / (double)(link->sends + 1) };

	double limit_ns = limit_of(middle_ns);
	struct link_question question = { .job = search->job,
					  .comm = link->comm,
					  .is_send = true,
					  .size_class = (uint8_t)size_class,
					  .slowdown = straggler.slowdown,
					  .blocks = 1,
					  .limit_ns = &limit_ns };

	question.sender = job_place_in(search->job, link->comm, straggler.rank);
	question.receiver = straggler.peer != UINT32_MAX
				    ? job_place_in(search->job, link->comm, straggler.peer)
				    : UINT32_MAX;
	straggler_add_link(search, &straggler, &question);
}

void straggler_links(struct straggler_search *search)
{
	const struct links *links = search->links;
	double *wires = calloc(links->count + 1, sizeof(*wires));

	if (wires == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (unsigned int size = 1; size < SIZE_CLASSES; size++) {
		size_t count = 0;
		double middle;

		for (size_t i = 0; i < links->count; i++)
			if (is_comparable(&links->list[i], size))
				wires[count++] = (double)links->list[i].send_net_ns /
						 (double)links->list[i].send_steps;
		if (count < LINKS_LEAST)
			continue;
		middle = stats_lower_middle(wires, count);
		for (size_t i = 0; i < links->count; i++) {
			const struct link *link = &links->list[i];
			double wire = (double)link->send_net_ns /
				      (double)(link->send_steps + !link->send_steps);

			if (is_comparable(link, size) && wire > limit_of(middle))
				name_link(search, link, size, wire, middle);
		}
	}
	free(wires);
}

/*
 * Slow links.
 *
 * A transfer over a slow link stays on the wire longer than those of the other senders. For collectives
 * this is known per sender (their records are sums over all peers); Sends, per sender and receiver, are
 * above. A sender stands out if its time on the wire per transfer is well above the median of all senders
 * of the same collectives, for a section of time, and long enough to matter for the collectives' duration.
 * Then a closer examination decides whether it is the link, or a process at one of its ends
 * (straggler_internal.h).
 */

static const double ratio_that_matters = 1.5;	   /* relative to the median sender */
static const double ratio_of_two = 2;		   /* with only one other sender */
static const double wire_share_that_matters = 0.2; /* excess time on the wire, of the duration */
static const double chance_accepted = 1e-4;

/* The median sender's time per transfer; of two the faster one's. */
static double wire_middle(const struct straggler_table *table, uint32_t block, double *scratch,
			  uint32_t *senders)
{
	*senders = 0;
	for (uint32_t seat = 0; seat < table->seats; seat++) {
		double wire = table->wire_ns[(size_t)seat * table->blocks + block];

		if (!isnan(wire))
			scratch[(*senders)++] = wire;
	}
	return *senders > 1 ? stats_lower_middle(scratch, *senders) : NAN;
}

/*
 * In mode full the recording has the peer and the channel of each proxy operation. The slowest of them, by
 * time per byte; those with few bytes (trees of tiny messages) are slow by nature. The totals by peer take
 * precedence.
 */
enum { PEERS_MAX = 256 };
static const double wire_part_that_matters = 0.05; /* of the bytes of the one with the most */
static const double sure_by_details = 0.95;

struct peer_times {
	uint32_t comm_id;
	uint32_t count;
	struct {
		int32_t peer;
		uint8_t channel;
		double ns;
		double bytes;
	} list[PEERS_MAX];
};

static bool add_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	struct peer_times *times = context;
	uint32_t i = 0;

	(void)place;
	if (detail->kind != OP_DETAIL_PROXY || !(detail->flags & OP_DETAIL_IS_SEND) ||
	    detail->flags & OP_DETAIL_IS_FOREIGN || detail->comm != times->comm_id ||
	    detail->time_ns[1] == 0 || detail->time_ns[3] <= detail->time_ns[1])
		return true;
	while (i < times->count &&
	       (times->list[i].peer != detail->peer || times->list[i].channel != detail->channel))
		i++;
	if (i == PEERS_MAX)
		return true;
	if (i == times->count) {
		times->list[i].peer = detail->peer;
		times->list[i].channel = detail->channel;
		times->list[i].ns = times->list[i].bytes = 0;
		times->count++;
	}
	times->list[i].ns += (double)(detail->time_ns[3] - detail->time_ns[1]);
	times->list[i].bytes += (double)detail->bytes;
	return true;
}

/* The slowest of those to this peer (-1: to any); *is_one: all are to one. */
static uint32_t slowest(const struct peer_times *times, int32_t peer, bool *is_one)
{
	uint32_t found = times->count, first = times->count;
	double worst = 0, most = 0;

	for (uint32_t i = 0; i < times->count; i++)
		most = times->list[i].bytes > most ? times->list[i].bytes : most;
	*is_one = true;
	for (uint32_t i = 0; i < times->count; i++) {
		double bytes = times->list[i].bytes;

		if (bytes <= 0 || bytes < wire_part_that_matters * most)
			continue;
		first = first < times->count ? first : i;
		*is_one = *is_one && times->list[i].peer == times->list[first].peer;
		if ((peer != -1 && times->list[i].peer != peer) ||
		    times->list[i].ns / bytes <= worst)
			continue;
		worst = times->list[i].ns / bytes;
		found = i;
	}
	return found;
}

static void find_channel(struct straggler_search *search, const struct job_seat *seat, int32_t peer,
			 struct straggler *straggler)
{
	struct peer_times *times;
	uint32_t found;
	bool is_one;

	if (search->job->recording->processes[seat->process]->file_count == 0)
		return;
	times = calloc(1, sizeof(*times));
	if (times == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	times->comm_id = seat->comm_id;
	recording_each_detail(search->job->recording->processes[seat->process], add_detail, times,
			      NULL);
	found = slowest(times, peer, &is_one);
	if (found < times->count) {
		straggler->peer = link_peer_rank(search->job, seat->comm, times->list[found].peer);
		if (peer == -1)
			straggler->peer_confidence = sure_by_details;
		if (times->count == 1 || !is_one)
			straggler->channel = times->list[found].channel;
	}
	free(times);
}

static void find_peer(struct straggler_search *search, uint32_t seat, struct straggler *straggler)
{
	const struct job_seat *of = &search->job->seats[seat];
	struct link_peer known;

	if (link_peer_find(&known, search->job, seat) != OK) {
		search->status = ERR_NO_SPACE;
		return;
	}
	if (known.peer != -1) {
		straggler->peer = link_peer_rank(search->job, of->comm, known.peer);
		straggler->peer_confidence = known.confidence;
	}
	find_channel(search, of, known.peer, straggler);
}

/* A link that stands out, after a closer examination. ratio: what stands out relative to the median sender. */
static void wire_judge(struct straggler_search *search, const struct straggler_table *table,
		       uint32_t seat, const bool *is_on, const double *middle, double ratio,
		       struct straggler *straggler)
{
	uint32_t comm = table->lane->comm;
	uint32_t receiver = straggler->peer != UINT32_MAX
				    ? job_place_in(search->job, comm, straggler->peer)
				    : UINT32_MAX;
	double behind_ns[STRAGGLER_BLOCKS], limit_ns[STRAGGLER_BLOCKS];
	struct link_question question = { .job = search->job,
					  .comm = comm,
					  .sender = seat,
					  .receiver = receiver,
					  .is_replay = table->lane->is_replay,
					  .size_class = (uint8_t)table->wire_class,
					  .slowdown = straggler->slowdown,
					  .is_on = is_on,
					  .blocks = table->blocks,
					  .first_number = table->first_number,
					  .behind_ns = behind_ns,
					  .limit_ns = limit_ns };

	for (uint32_t b = 0; b < table->blocks; b++) {
		double behind = 0;

		/* Both are relative to the mean of all; NAN compares as false. */
		if (receiver != UINT32_MAX)
			behind = table->late_ns[(size_t)receiver * table->blocks + b] -
				 table->late_ns[(size_t)seat * table->blocks + b];
		behind_ns[b] = behind > 0 ? behind : 0;
		limit_ns[b] = middle[b] * ratio;
	}
	straggler_add_link(search, straggler, &question);
}

static void name_slow_sender(struct straggler_search *search, const struct straggler_table *table,
			     uint32_t seat, const double *middle, const double *excess,
			     const struct straggler_stretch *stretch, double ratio)
{
	const struct job_comm *comm = &search->job->comms[table->lane->comm];
	struct straggler straggler = straggler_begin(search, table, seat, STRAGGLER_SLOW_LINK);
	bool is_on[STRAGGLER_BLOCKS];
	double caused_ns = 0, share;

	straggler.slowdown = 1 + stretch->typical;
	straggler.effect = straggler_effect(table, excess, stretch, false);
	if (straggler.effect < STRAGGLER_EFFECT_LEAST)
		return;
	share = fmin(1 - 1 / straggler.slowdown, straggler.effect);
	straggler.confidence = 1 - stretch->chance * table->seats;
	for (uint32_t b = 0; b < table->blocks; b++) {
		is_on[b] = straggler_is_on(excess[b], stretch);
		if (is_on[b])
			caused_ns += table->least_ns[b] * table->count[b] * table->seats * share;
	}
	straggler_times(&straggler, table, excess, stretch);
	caused_ns *= straggler_scale(search, table->lane->comm);
	straggler.caused_ns = units_whole(caused_ns);
	straggler.cost_share = straggler_cost_share(table, caused_ns);
	find_peer(search, comm->seats[seat], &straggler);
	wire_judge(search, table, seat, is_on, middle, ratio, &straggler);
}

/* The excess time on the wire as a share of the collectives' time. */
static double wire_share(const struct straggler_table *table, uint32_t seat, const double *excess)
{
	double too_much_ns = 0, duration_ns = 0;

	for (uint32_t b = 0; b < table->blocks; b++) {
		duration_ns += table->least_ns[b] * table->count[b];
		if (!isnan(excess[b]) && excess[b] > 0)
			too_much_ns += table->wire_sum[(size_t)seat * table->blocks + b] *
				       excess[b] / (1 + excess[b]);
	}
	return duration_ns > 0 ? too_much_ns / duration_ns : 0;
}

/* Per block, how much above the median sender; NAN if it sends nothing. */
static void excess_of(const struct straggler_table *table, uint32_t seat, const double *middle,
		      double *excess)
{
	for (uint32_t b = 0; b < table->blocks; b++) {
		double wire = table->wire_ns[(size_t)seat * table->blocks + b];

		excess[b] = middle[b] > 0 ? wire / middle[b] - 1 : NAN;
	}
}

/* Ratios are compared by their logarithm: one that varies from 44 to 52 is no less certain than one that
 * stays at 2. */
static bool stands_out(const struct straggler_table *table, uint32_t seat, const double *excess,
		       double ratio, struct straggler_stretch *stretch)
{
	double logarithms[STRAGGLER_BLOCKS];

	/* Nothing on the wire at all has no logarithm: a hundredth of the others' is used. */
	for (uint32_t b = 0; b < table->blocks; b++)
		logarithms[b] = log1p(excess[b] < -0.99 ? -0.99 : excess[b]);
	*stretch = straggler_stretch(logarithms, table->blocks, log(ratio));
	stretch->typical = expm1(stretch->typical);
	return stretch->is_found && stretch->chance * table->seats < chance_accepted &&
	       wire_share(table, seat, excess) > wire_share_that_matters;
}

void straggler_wire(struct straggler_search *search, const struct straggler_table *table)
{
	double *scratch = calloc(table->seats + 1, sizeof(*scratch));
	double middle[STRAGGLER_BLOCKS], excess[STRAGGLER_BLOCKS];
	struct straggler_stretch stretch;
	uint32_t senders = 0, most = 0, standing_out = 0;
	double ratio;

	if (scratch == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (uint32_t b = 0; b < table->blocks; b++) {
		middle[b] = wire_middle(table, b, scratch, &senders);
		most = senders > most ? senders : most;
	}
	free(scratch);
	ratio = most > 2 ? ratio_that_matters : ratio_of_two;
	for (uint32_t seat = 0; seat < table->seats && most > 1; seat++) {
		excess_of(table, seat, middle, excess);
		standing_out += stands_out(table, seat, excess, ratio, &stretch);
	}
	/* If many stand out, it is an unknown structure and not a slow link. */
	if (standing_out > 1 + most / 16)
		return;
	for (uint32_t seat = 0; seat < table->seats && standing_out > 0; seat++) {
		excess_of(table, seat, middle, excess);
		if (stands_out(table, seat, excess, ratio, &stretch))
			name_slow_sender(search, table, seat, middle, excess, &stretch, ratio);
	}
}
