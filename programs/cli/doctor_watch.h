/* Looking again and again: what appeared, changed and cleared since the look before. */
#ifndef DOCTOR_WATCH_H
#define DOCTOR_WATCH_H

#include "programs/cli/doctor_case.h"

/* Until SIGINT or SIGTERM. The exit code of the last look. */
int doctor_watch(const struct doctor_options *options, const struct doctor_yardstick *yardstick);

/* How verdicts are shown in text. */
struct verdict_text_options doctor_text_options(const struct doctor_options *options);

#endif
