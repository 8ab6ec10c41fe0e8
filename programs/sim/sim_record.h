/* From what became of a call to the record that the plugin would have made of it. */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include "common/op_layout.h"
#include "programs/sim/sim_identity.h"
#include "programs/sim/sim_outcome.h"

/* Everything but the sequence. Remembers in the stream which GPU stamps have gone wrong. */
void sim_record_make(struct op_record *op, const struct sim_job *job,
		     const struct sim_identity *identity, struct sim_stream *stream,
		     uint32_t comm_id, const struct sim_outcome *outcome);

/* Details of its channels (KERNEL), connections (PROXY) and open transfers (STEP), without
 * sequences. Gives back how many; at most SIM_DETAILS_MAX. */
enum { SIM_DETAILS_MAX = SIM_CHANNELS_MAX + SIM_EDGES_MAX * (1 + SIM_WINDOW) };
int sim_record_details(struct op_detail details[SIM_DETAILS_MAX], const struct sim_job *job,
		       const struct sim_identity *identity, uint32_t comm_id,
		       const struct sim_outcome *outcome);

#endif
