/* Between the files that read expected bandwidth; others use expected.h. */
#ifndef EXPECTED_PARTS_H
#define EXPECTED_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "foreign/expected.h"

/* No rank of any job has a higher number. */
enum { EXPECTED_RANKS_MAX = 1 << 24 };

/* A row that cannot be used: counted, and the first is named. `line` 0: unknown. */
void expected_damage(struct expected *expected, uint64_t line, const char *problem);

/* Its bandwidths are computed. */
enum status expected_add_row(struct expected *expected, struct expected_row row);

/* nccl-tests says "float", NCCL "float32". */
uint8_t expected_datatype(const char *name);

/* One way of writing each. */
enum status expected_add_table(struct expected *expected, const char *text, size_t length,
			       uint8_t function);
enum status expected_add_tests_json(struct expected *expected, const char *text, size_t length,
				    uint8_t function);
enum status expected_add_own_json(struct expected *expected, const char *text, size_t length);

#endif
