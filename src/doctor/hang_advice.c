/*
 * What to do next. Names that come from recordings stand in words only; what is to be typed holds numbers
 * and our own words, nothing that somebody else wrote.
 */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

static void page(struct hang_tale *tale, const char *name)
{
	text_format(tale->verdict->page, sizeof(tale->verdict->page), "runbooks/%s.md", name);
}

static const char *host_of(const struct hang_tale *tale)
{
	return tale->verdict->host[0] ? tale->verdict->host : "its host";
}

static bool is_of_this_machine(const struct hang_tale *tale)
{
	const struct recording_process *process;

	if (tale->lead == NULL || tale->lead->seat == HANG_NOBODY)
		return false;
	process = hang_process(tale->scene, tale->lead->seat);
	return process->life != RECORDING_ENDED && process->life != RECORDING_KILLED;
}

/* Where the host code of the culprit is. */
static void advise_process(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;
	int64_t pid = verdict->pid;

	if (pid <= 0 || !is_of_this_machine(tale))
		return;
	verdict_advice(verdict, "On %.100s, see where the process is:", host_of(tale));
	verdict_advice(verdict, "$ ringside ps @%" PRId64, pid);
	verdict_advice(verdict, "$ py-spy dump --pid %" PRId64, pid);
	verdict_advice(verdict, "$ gdb -p %" PRId64 " -batch -ex 'thread apply all bt'", pid);
}

static void advise_evidence(struct hang_tale *tale)
{
	if (tale->scene->is_guess)
		return; /* the job is dead */
	verdict_advice(tale->verdict, "Keep the evidence before you end the job:");
	verdict_advice(tale->verdict, "$ ringside bundle -o hang.tar.gz");
}

static void advise_gpu(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;

	verdict_advice(verdict,
		       "On %.100s, look at the GPU and at what else runs on it:", host_of(tale));
	if (verdict->gpu >= 0)
		verdict_advice(verdict, "$ nvidia-smi -q -i %d", verdict->gpu);
	else
		verdict_advice(verdict, "$ nvidia-smi -q");
	verdict_advice(verdict, "$ dmesg -T | grep -iE 'xid|nvrm|nvlink'");
}

static void advise_never_issued(struct hang_tale *tale)
{
	page(tale, "NcclHangRankMissing");
	advise_process(tale);
	verdict_advice(tale->verdict,
		       "Usual causes: a condition around the collective that this rank does "
		       "not meet, a data loader, a checkpoint, a lock, an exception that is being "
		       "handled.");
	advise_evidence(tale);
}

static void advise_dead(struct hang_tale *tale)
{
	page(tale, "NcclHangProcessGone");
	verdict_advice(tale->verdict,
		       "On %.100s, see why it died, and in the job's own log:", host_of(tale));
	verdict_advice(tale->verdict, "$ dmesg -T | grep -iE 'xid|killed process|segfault'");
	verdict_advice(tale->verdict, "$ ringside ps --dead");
	verdict_advice(tale->verdict,
		       "The others will not notice before a timeout: end the job and start "
		       "it again (torchrun --max-restarts does so by itself).");
}

static void advise_stopped(struct hang_tale *tale)
{
	page(tale, "HangProcessStopped");
	verdict_advice(tale->verdict,
		       "On %.100s, who stopped it? A debugger that is attached shows as "
		       "TracerPid. Else let it go on:",
		       host_of(tale));
	if (tale->verdict->pid > 0) {
		verdict_advice(tale->verdict,
			       "$ grep -E 'State|TracerPid' /proc/%" PRId64 "/status",
			       tale->verdict->pid);
		verdict_advice(tale->verdict, "$ kill -CONT %" PRId64, tale->verdict->pid);
	}
}

static void advise_network(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;
	const char *peer = verdict->peer_host;

	if (strcmp(host_of(tale), peer) == 0)
		peer = "";
	page(tale, "HangNetwork");
	verdict_advice(verdict,
		       "On %.100s%s%.100s, look at the network card, its port and its errors:",
		       host_of(tale), peer[0] ? " and " : "", peer);
	verdict_advice(verdict, "$ ibstat");
	verdict_advice(verdict, "$ ip -s link");
	verdict_advice(verdict, "$ ethtool -S DEVICE | grep -iE 'err|drop|discard|pause'");
	if (verdict->pid > 0)
		verdict_advice(verdict, "$ ss -tinp | grep -A1 'pid=%" PRId64 ",'", verdict->pid);
	verdict_advice(verdict,
		       "NCCL over sockets has no timeout of its own; over InfiniBand see "
		       "NCCL_IB_TIMEOUT. Take the host out of the job if it happens again.");
	advise_evidence(tale);
}

static void advise_mismatch(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;

	page(tale, "NcclMismatch");
	advise_process(tale);
	verdict_advice(
		verdict,
		"Compare the calls around collective %" PRIu64 " of both ranks in the "
		"program: a condition that depends on the rank, a last batch of another size, two "
		"versions of the code.",
		verdict->number);
	verdict_advice(verdict,
		       "With PyTorch, TORCH_DISTRIBUTED_DEBUG=DETAIL checks every call, slowly.");
	verdict_advice(verdict, "Do not trust what was computed since.");
}

static void advise_circle(struct hang_tale *tale)
{
	page(tale, "HangDeadlock");
	verdict_advice(tale->verdict,
		       "Let all ranks call collectives of different communicators in the same "
		       "order, or wait for one to end before calling the next.");
	verdict_advice(tale->verdict, "Compare the stacks of the ranks named above:");
	if (tale->verdict->pid > 0)
		verdict_advice(tale->verdict, "$ py-spy dump --pid %" PRId64, tale->verdict->pid);
	advise_evidence(tale);
}

static void advise_unseen(struct hang_tale *tale)
{
	page(tale,
	     tale->verdict->class == VERDICT_AGENT_DEAD ? "RingsideAgentDown" : "NcclRanksUnseen");
	verdict_advice(tale->verdict,
		       "Make the missing ranks visible and ask again: is the node up, is its "
		       "agent running, was the job started there with the plugin?");
	verdict_advice(tale->verdict, "$ systemctl status ringside-agent");
	verdict_advice(tale->verdict, "$ ringside ls");
}

static void advise_connecting(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;

	page(tale, "HangGpu");
	if (tale->lead->seat != HANG_NOBODY) {
		verdict_advice(verdict,
			       "Look at what the other ranks of %.60s do, those that are in "
			       "nothing first: which of them should call the other half of it?",
			       verdict->comm);
		if (!tale->scene->is_guess)
			verdict_advice(verdict, "$ py-spy dump --pid PID");
	} else {
		verdict_advice(verdict,
			       "Can the hosts reach each other on the network that NCCL takes? A "
			       "firewall or a wrong NCCL_SOCKET_IFNAME shows like this; NCCL's "
			       "log says more when the job runs with NCCL_DEBUG=INFO.");
	}
	advise_process(tale);
	advise_evidence(tale);
}

void hang_tell_advice(struct hang_tale *tale)
{
	if (tale->lead != NULL && tale->lead->note == HANG_NOTE_CONNECTING) {
		advise_connecting(tale);
		return;
	}
	switch (tale->verdict->class) {
	case VERDICT_NEVER_ISSUED:
		advise_never_issued(tale);
		break;
	case VERDICT_PROCESS_DEAD:
		advise_dead(tale);
		break;
	case VERDICT_PROCESS_STOPPED:
		advise_stopped(tale);
		break;
	case VERDICT_NOT_LAUNCHED:
		page(tale, "HangGpu");
		advise_process(tale);
		advise_gpu(tale);
		advise_evidence(tale);
		break;
	case VERDICT_GPU_NOT_REACHED:
	case VERDICT_GPU_STUCK:
		page(tale, "HangGpu");
		advise_gpu(tale);
		advise_process(tale);
		advise_evidence(tale);
		break;
	case VERDICT_NETWORK_STUCK:
		advise_network(tale);
		break;
	case VERDICT_MISMATCH:
		advise_mismatch(tale);
		break;
	case VERDICT_DEADLOCK:
		advise_circle(tale);
		break;
	case VERDICT_UNSEEN:
	case VERDICT_AGENT_DEAD:
		advise_unseen(tale);
		break;
	default:
		page(tale, "NcclHangUnexplained");
		advise_gpu(tale);
		advise_evidence(tale);
	}
}
