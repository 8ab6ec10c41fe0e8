/*
 * Playing a tape: a thread for each recorded one, and a ticket that goes from line to line. Whose
 * line it is makes the call and passes the ticket on; all others sleep.
 */
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/text.h"
#include "programs/sim/tape_call.h"

/* ---- threads --------------------------------------------------------------------------------- */

static void wait_as_recorded(const struct player *player, const struct tape_line *line)
{
	uint64_t first = player->tape->lines[0].time_ns;
	uint64_t due = player->start_mono_ns + (line->time_ns > first ? line->time_ns - first : 0);
	struct timespec at = { (time_t)(due / 1000000000u), (long)(due % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
		;
}

struct part {
	struct player *player;
	uint32_t thread;
	pthread_t id;
};

static void *part_main(void *arg)
{
	const struct part *part = arg;
	struct player *player = part->player;
	const struct tape *tape = player->tape;

	for (size_t i = 0; i < tape->count; i++) {
		if (tape->lines[i].thread != part->thread)
			continue;
		pthread_mutex_lock(&player->lock);
		while (player->next != i && !player->is_cancelled)
			pthread_cond_wait(&player->turns[part->thread], &player->lock);
		pthread_mutex_unlock(&player->lock);
		if (player->is_cancelled)
			break;
		if (player->config->is_timed)
			wait_as_recorded(player, &tape->lines[i]);
		tape_call(player, &tape->lines[i]);
		pthread_mutex_lock(&player->lock);
		player->next = i + 1;
		if (i + 1 < tape->count && tape->lines[i + 1].thread != part->thread)
			pthread_cond_signal(&player->turns[tape->lines[i + 1].thread]);
		pthread_mutex_unlock(&player->lock);
	}
	return NULL;
}

/* To the thread whose line it is; SIZE_MAX: they all go home. */
static void ticket_give(struct player *player, size_t line)
{
	pthread_mutex_lock(&player->lock);
	player->next = line;
	player->is_cancelled = line == SIZE_MAX;
	for (uint32_t i = 0; i < player->tape->threads; i++)
		pthread_cond_signal(&player->turns[i]);
	pthread_mutex_unlock(&player->lock);
}

/* The ticket is given out when all threads are there; where one cannot be made, to nobody. */
static enum status parts_run(struct player *player)
{
	uint32_t count = player->tape->threads, made;
	struct part *parts = calloc(count, sizeof(*parts));

	if (parts == NULL)
		return ERR_NO_SPACE;
	player->next = SIZE_MAX;
	for (made = 0; made < count; made++) {
		parts[made] = (struct part){ .player = player, .thread = made };
		if (pthread_create(&parts[made].id, NULL, part_main, &parts[made]) != 0)
			break;
	}
	ticket_give(player, made == count ? 0 : SIZE_MAX);
	for (uint32_t i = 0; i < made; i++)
		pthread_join(parts[i].id, NULL);
	free(parts);
	return made == count ? OK : ERR_SYSTEM;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int release_of(const struct tape *tape)
{
	char version[8];
	int release = HOST_NCCL_2_28;

	text_format(version, sizeof(version), "v%d", tape->lines[0].version);
	(void)host_release_parse(version, &release);
	return release;
}

static enum status player_init(struct player *player)
{
	const struct tape_config *config = player->config;
	struct host_config host = {
		.release = config->release ? config->release : release_of(player->tape),
		.newest = player->tape->lines[0].version,
		.plugin = config->plugin,
		.linked = config->linked,
		.log = config->log,
	};
	size_t starts[2] = { 0, 0 };

	for (size_t i = 0; i < player->tape->count; i++)
		if (player->tape->lines[i].what <= TAPE_START)
			starts[player->tape->lines[i].what]++;
	player->turns = calloc(player->tape->threads, sizeof(*player->turns));
	for (uint32_t i = 0; player->turns && i < player->tape->threads; i++)
		pthread_cond_init(&player->turns[i], NULL);
	if (player->turns == NULL || host_new(&player->host, &host) != OK ||
	    tape_map_init(&player->contexts, starts[TAPE_INIT]) != OK ||
	    tape_map_init(&player->handles, starts[TAPE_START]) != OK)
		return ERR_NO_SPACE;
	player->start_mono_ns = clock_system_ns(CLOCK_MONOTONIC);
	if (!config->keeps_stamps)
		player->shift_ns = clock_system_ns(CLOCK_REALTIME) - player->tape->lines[0].time_ns;
	return OK;
}

enum status tape_play(const struct tape *tape, const struct tape_config *config,
		      struct tape_counts *counts, struct tape_error *error)
{
	struct player player = {
		.tape = tape,
		.config = config,
		.counts = counts,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	enum status status;

	*counts = (struct tape_counts){ 0 };
	*error = (struct tape_error){ 0 };
	if (tape->count == 0)
		return OK;
	status = player_init(&player);
	if (status == OK)
		status = parts_run(&player);
	if (status == OK && counts->version == 0) {
		text_copy(error->text, sizeof(error->text),
			  host_load_error(player.host)[0] ? host_load_error(player.host)
							  : "the tape has no INIT");
		status = ERR_UNKNOWN;
	}
	tape_map_release(&player.contexts);
	tape_map_release(&player.handles);
	host_free(player.host);
	for (uint32_t i = 0; player.turns && i < tape->threads; i++)
		pthread_cond_destroy(&player.turns[i]);
	free(player.turns);
	return status;
}
