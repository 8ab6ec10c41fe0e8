/*
 * What an agent keeps of the past, and what the doctor finds in it: simulated jobs are followed as an agent follows them, second by
 * second, and judged by snapshots from their end: with the last operations alone, and with the past.
 */
#include <stdio.h>

#include "tests/support/command_play.h"
#include "tests/support/followed.h"
#include "tests/tap.h"

/* The same job as its files, as the last operations of each process, and as these with the past. */
static void play(const char *name, const char *job, size_t last, size_t past)
{
	char line[512];

	snprintf(line, sizeof(line), "-o %s/job %s", name, job);
	command_directory(name);
	command_sim(line);
	followed_job(command_path(name), last, past);
	for (size_t i = 0; i < 3; i++) {
		static const char *const kinds[] = { "job", "recent", "aged" };

		snprintf(line, sizeof(line), "doctor %s/%s", name, kinds[i]);
		command(line);
	}
	snprintf(line, sizeof(line), "verify %s/aged", name);
	command(line);
}

int main(void)
{
	command_begin();
	play("network",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.30 --seed 41 --network 12 --seconds 480s "
	     "-f degraded-network:factor=2,at=200s",
	     2000, 16384);
	play("rank",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.31 --seed 42 --seconds 480s "
	     "-f slow-rank:rank=2,factor=1.5,at=200s",
	     2000, 16384);
	play("cable",
	     "--nodes 3 --gpus 2 -w ddp --release 2.28 --seed 43 --network 12 --seconds 480s "
	     "-f slow-link:from=1,to=2,factor=6,at=200s",
	     2000, 16384);
	play("calm",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.30 --seed 44 --seconds 480s --noise "
	     "gc:every=5s,for=10ms",
	     2000, 16384);
	play("untimed",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.27 --seed 45 --network 12 --seconds 400s "
	     "-f degraded-network:factor=3,at=150s",
	     2000, 4096);
	/* More operations in each slot than are kept of it. */
	play("busy",
	     "--nodes 2 --gpus 2 -w tp-pp --release 2.30 --seed 46 --network 12 --rate 12 "
	     "--seconds 300s "
	     "-f slow-rank:rank=1,factor=1.6,at=120s",
	     3000, 16384);
	play("over",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.30 --seed 47 --network 12 --seconds 480s "
	     "-f degraded-network:factor=2,at=200s,until=280s",
	     2000, 16384);
	/* Evaluations, of which stretches have different shares: nobody's bursts. */
	play("phases",
	     "--nodes 2 --gpus 2 -w tp-pp --release 2.27 --seed 24 --network 12 --jitter 2 "
	     "--clock-shift 100ms "
	     "--seconds 300s -f degraded-network:factor=3.0,at=105s --noise "
	     "evaluation:every=60s,for=5s",
	     3000, 16384);
	EXPECT_THAT("with the past the doctor finds what the whole recording shows",
		    command_expected("tests/unit/cmds/expected/doctor-past"));
	return tap_done();
}
