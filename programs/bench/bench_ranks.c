/* Who all ranks are: each fills a card, rank 0 gathers them and tells everybody what follows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/text.h"
#include "programs/bench/bench_inside.h"
#include "programs/bench/bench_share.h"

enum { ATTRIBUTE_MAJOR = 75, BOOT_ID_BYTES = 40 };
#define MPS_DIRECTORY "/tmp/nvidia-mps"

struct rank_card {
	struct bench_rank rank;
	char boot_id[BOOT_ID_BYTES]; /* two machines may have one name */
	uint64_t room_bytes;
	int32_t major;
	int32_t is_mps;
	int32_t nccl_version;
};

/* What all ranks must know alike. */
struct rank_verdict {
	int32_t sharers;
	int32_t least_major;
	uint64_t room_bytes;
};

static void boot_id_read(char boot_id[BOOT_ID_BYTES])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	boot_id[0] = '\0';
	if (file == NULL)
		return;
	if (fgets(boot_id, BOOT_ID_BYTES, file))
		boot_id[strcspn(boot_id, "\n")] = '\0';
	else
		boot_id[0] = '\0';
	fclose(file);
}

static uint64_t machine_number(void)
{
	char text[256 + BOOT_ID_BYTES], boot_id[BOOT_ID_BYTES], host[256] = "";

	if (gethostname(host, sizeof(host) - 1) == -1)
		host[0] = '\0';
	boot_id_read(boot_id);
	text_format(text, sizeof(text), "%s %s", host, boot_id);
	return hash_bytes(text, strlen(text));
}

int ranks_count(struct bench_job *job)
{
	const struct bench_place *place = job->place;
	size_t nranks = (size_t)place->nranks;
	uint64_t machine = machine_number(), *machines = calloc(nranks, sizeof(*machines));
	int status = -1;

	if (machines == NULL)
		return job_fail(job, "out of memory for %d ranks", place->nranks);
	if (hub_gather(job->hub, &machine, sizeof(machine), machines) == 0 &&
	    hub_share(job->hub, machines, nranks * sizeof(*machines)) == 0)
		status = 0;
	for (size_t i = 0; status == 0 && i < nranks; i++) {
		bool is_here = machines[i] == machine;

		job->local_rank += is_here && i < (size_t)place->rank;
		job->local_ranks += is_here;
	}
	if (place->local_rank >= 0)
		job->local_rank = place->local_rank;
	free(machines);
	return status;
}

static bool is_mps_here(const struct bench_place *place)
{
	const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[4096];

	if (place->is_mps)
		return true;
	if (directory == NULL || directory[0] == '\0')
		directory = MPS_DIRECTORY;
	return text_format(path, sizeof(path), "%s/control", directory) && access(path, F_OK) == 0;
}

static void uuid_write(char *text, size_t size, const struct cuda_uuid *uuid)
{
	const unsigned char *b = uuid->bytes;

	text_format(text, size,
		    "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		    b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		    b[13], b[14], b[15]);
}

static int gpu_describe(struct bench_job *job, struct rank_card *card)
{
	struct bench_rank *rank = &card->rank;
	struct cuda_uuid uuid;
	size_t bytes = 0;
	int major = 0;
	cuda_result result;

	result = job->cuda.device_name(rank->gpu_name, (int)sizeof(rank->gpu_name), job->device);
	if (result)
		return job_cuda(job, result, "cuDeviceGetName");
	result = job->cuda.device_uuid(&uuid, job->device);
	if (result)
		return job_cuda(job, result, "cuDeviceGetUuid");
	uuid_write(rank->gpu_uuid, sizeof(rank->gpu_uuid), &uuid);
	result = job->cuda.device_pci(rank->pci, (int)sizeof(rank->pci), job->device);
	if (result)
		return job_cuda(job, result, "cuDeviceGetPCIBusId");
	result = job->cuda.device_memory(&bytes, job->device);
	if (result)
		return job_cuda(job, result, "cuDeviceTotalMem_v2");
	result = job->cuda.device_attribute(&major, ATTRIBUTE_MAJOR, job->device);
	if (result)
		return job_cuda(job, result, "cuDeviceGetAttribute");
	rank->memory_bytes = bytes;
	card->major = major;
	return 0;
}

static int card_write(struct bench_job *job, struct rank_card *card)
{
	char host[256] = "";

	memset(card, 0, sizeof(*card));
	if (gethostname(host, sizeof(host) - 1) == -1)
		text_copy(host, sizeof(host), "?");
	text_copy(card->rank.host, sizeof(card->rank.host), host);
	boot_id_read(card->boot_id);
	card->rank.device = job->device_number;
	card->rank.pid = (int32_t)getpid();
	card->is_mps = is_mps_here(job->place);
	card->nccl_version = job->nccl.version;
	if (gpu_describe(job, card) < 0)
		return -1;
	/* All contexts are there before anybody asks how much memory is left. */
	if (hub_meet(job->hub) < 0)
		return -1;
	return device_room(job, &card->room_bytes);
}

static bool is_same_machine(const struct rank_card *a, const struct rank_card *b)
{
	return strcmp(a->rank.host, b->rank.host) == 0 && strcmp(a->boot_id, b->boot_id) == 0;
}

static int sharers_of(const struct rank_card *cards, int nranks, int rank)
{
	int sharers = 0;

	for (int i = 0; i < nranks; i++)
		sharers += is_same_machine(&cards[i], &cards[rank]) &&
			   strcmp(cards[i].rank.gpu_uuid, cards[rank].rank.gpu_uuid) == 0;
	return sharers;
}

static void machines_number(struct bench_run *run, const struct rank_card *cards, int nranks)
{
	run->nodes = 0;
	for (int i = 0; i < nranks; i++) {
		int first = 0;

		while (!is_same_machine(&cards[first], &cards[i]))
			first++;
		run->ranks[i].node = first == i ? run->nodes++ : run->ranks[first].node;
	}
}

static void sharing_note(struct bench_job *job, const struct rank_verdict *verdict, bool is_mps)
{
	if (verdict->sharers < 2)
		return;
	job->run->is_gpu_shared = true;
	job->run->is_mps = is_mps;
	job_note(job,
		 "%d ranks share one GPU: they talk through sockets on the loopback; these are not "
		 "the machine's NVLink or network",
		 verdict->sharers);
	if (is_mps)
		job_note(job, "MPS runs: kernels of these ranks run together");
	else
		job_note(job,
			 "MPS does not run: kernels of these ranks take turns, in slices of some "
			 "milliseconds");
}

static int verdict_find(struct bench_job *job, const struct rank_card *cards,
			struct rank_verdict *verdict)
{
	int nranks = job->place->nranks;
	bool is_mps = true;

	*verdict = (struct rank_verdict){ .least_major = cards[0].major, .room_bytes = UINT64_MAX };
	if (bench_run_set_ranks(job->run, nranks) != OK)
		return job_fail(job, "out of memory for %d ranks", nranks);
	for (int i = 0; i < nranks; i++) {
		int sharers = sharers_of(cards, nranks, i);
		uint64_t room = cards[i].room_bytes / (uint64_t)sharers;

		job->run->ranks[i] = cards[i].rank;
		is_mps = is_mps && cards[i].is_mps;
		if (sharers > verdict->sharers)
			verdict->sharers = sharers;
		if (room < verdict->room_bytes)
			verdict->room_bytes = room;
		if (cards[i].major < verdict->least_major)
			verdict->least_major = cards[i].major;
		if (cards[i].nccl_version != cards[0].nccl_version)
			return job_fail(job, "rank %d has NCCL %d and rank 0 has %d", i,
					cards[i].nccl_version, cards[0].nccl_version);
	}
	machines_number(job->run, cards, nranks);
	sharing_note(job, verdict, is_mps);
	return 0;
}

static uint64_t largest_size(const struct bench_plan *plan)
{
	uint64_t most = 0;

	for (size_t i = 0; i < plan->size_count; i++)
		if (plan->sizes[i] > most)
			most = plan->sizes[i];
	return most;
}

static void verdict_take(struct bench_job *job, const struct rank_verdict *verdict)
{
	uint64_t most = largest_size(job->plan);
	char size[UNITS_TEXT];

	job->sharers = verdict->sharers;
	job->least_major = verdict->least_major;
	job->room_bytes = most < verdict->room_bytes ? most : verdict->room_bytes;
	if (job->room_bytes < most)
		job_note(job,
			 "buffers are of %s only: the GPU's free memory has no room for two larger "
			 "ones of each rank",
			 units_bytes(size, job->room_bytes));
	if (job->sharers > 1 && !job->place->is_gpu_shared)
		bench_share_environment(job->place->rank, job->sharers);
}

int ranks_meet(struct bench_job *job)
{
	struct rank_card card, *cards = NULL;
	struct rank_verdict verdict = { 0 };
	int status = -1;

	if (card_write(job, &card) < 0)
		return -1;
	if (job->run) {
		cards = calloc((size_t)job->place->nranks, sizeof(*cards));
		if (cards == NULL)
			return job_fail(job, "out of memory for %d ranks", job->place->nranks);
	}
	if (hub_gather(job->hub, &card, sizeof(card), cards) < 0)
		goto out;
	if (job->run && verdict_find(job, cards, &verdict) < 0)
		goto out;
	if (hub_share(job->hub, &verdict, sizeof(verdict)) < 0)
		goto out;
	verdict_take(job, &verdict);
	status = 0;
out:
	free(cards);
	return status;
}
