/* Looking at the machine's processes, and all that is known of them after it. */
#ifndef TOP_LOOK_H
#define TOP_LOOK_H

#include <stdint.h>

#include "common/status.h"
#include "doctor/live.h"
#include "programs/top/top_draw.h"
#include "programs/top/top_model.h"
#include "programs/top/top_view.h"
#include "recording/watch.h"

struct top_look {
	struct watch watch;
	struct live live;
	struct top_model model;
	struct top_around around;
};

/* ERR_NO_SPACE, ERR_SYSTEM. `directory` is borrowed. Release in every case. */
enum status top_look_init(struct top_look *look, const char *directory);
void top_look_release(struct top_look *look);

/* One look, and the rows of it. Whatever fails, what is there afterwards can be drawn, and
 * around.remark says what failed. */
void top_look_now(struct top_look *look, struct top_view *view);

/* The rows again: somebody pressed a key. */
void top_look_again(struct top_look *look, struct top_view *view);

/* CLOCK_MONOTONIC. */
uint64_t top_look_clock(void);

#endif
