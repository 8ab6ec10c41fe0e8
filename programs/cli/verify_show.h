/* The result of `verify`, for people and for programs. */
#ifndef VERIFY_SHOW_H
#define VERIFY_SHOW_H

#include <stdbool.h>

#include "programs/cli/verify_judge.h"
#include "view/json.h"
#include "view/sink.h"

void verify_show_text(const struct verify *verify, struct sink *sink, unsigned int width);
void verify_show_json(const struct verify *verify, struct sink *sink);

/* What NCCL does not show, of every release. */
void verify_blind_text(struct sink *sink, unsigned int width);
void verify_blind_json(struct sink *sink);

/* The object of one blind spot into the array that is open. */
void verify_blind_spot_json(struct json *json, unsigned int interface, size_t index);

/* "2.24-2.26", of interface versions. */
enum { VERIFY_RELEASES = 40 };
const char *verify_releases(unsigned int first, unsigned int last, char text[VERIFY_RELEASES]);

/* Is this profiler interface version among the recorded ones? */
bool verify_has_interface(const struct verify *verify, unsigned int interface);

#endif
