/*
 * Our names of NCCL's fields and numbers, beside NCCL's own: F(ours, theirs). FIELDS_N lists the
 * descriptor of interface version N, ARGS_N its state arguments, NUMBERS all enum values.
 */
#ifndef GENUINE_FIELDS_H
#define GENUINE_FIELDS_H

#define HEAD(F)              \
	F(type, type)        \
	F(parent, parentObj) \
	F(rank, rank)

#define COLL(F)                            \
	F(coll.sequence, coll.seqNumber)   \
	F(coll.function, coll.func)        \
	F(coll.send_buffer, coll.sendBuff) \
	F(coll.recv_buffer, coll.recvBuff) \
	F(coll.count, coll.count)          \
	F(coll.root, coll.root)            \
	F(coll.datatype, coll.datatype)    \
	F(coll.warps, coll.nWarps)         \
	F(coll.algorithm, coll.algo)       \
	F(coll.protocol, coll.proto)

#define P2P(F)                        \
	F(p2p.function, p2p.func)     \
	F(p2p.buffer, p2p.buff)       \
	F(p2p.datatype, p2p.datatype) \
	F(p2p.count, p2p.count)       \
	F(p2p.peer, p2p.peer)

#define PROXY(F)                                   \
	F(proxy_op.pid, proxyOp.pid)               \
	F(proxy_op.channel, proxyOp.channelId)     \
	F(proxy_op.peer, proxyOp.peer)             \
	F(proxy_op.steps, proxyOp.nSteps)          \
	F(proxy_op.chunk_bytes, proxyOp.chunkSize) \
	F(proxy_op.is_send, proxyOp.isSend)        \
	F(proxy_step.step, proxyStep.step)

/* Versions 1 to 3 name the communicator in each descriptor. */
#define NAMED(F)                                \
	F(coll.name, coll.name)                 \
	F(coll.comm_hash, coll.commHash)        \
	F(coll.max_channels, coll.nMaxChannels) \
	F(p2p.name, p2p.name)                   \
	F(p2p.comm_hash, p2p.commHash)

#define TRAFFIC(F) F(coll.traffic_bytes, coll.trafficBytes)

#define NUMBERED(F)                        \
	F(coll.redop, coll.op)             \
	F(coll.is_collnet, coll.isCollnet) \
	F(coll.is_nvls, coll.isNvls)

#define KERNEL(F) F(kernel_ch.channel, kernelCh.channelId)
#define NET(F)                         \
	F(net_plugin.id, netPlugin.id) \
	F(net_plugin.data, netPlugin.data)

#define CHANNELS(F)                      \
	F(coll.channels, coll.nChannels) \
	F(p2p.channels, p2p.nChannels)   \
	F(kernel_ch.gpu_ns, kernelCh.pTimer)

#define API(F)                                           \
	F(coll.parent_group, coll.parentGroup)           \
	F(p2p.parent_group, p2p.parentGroup)             \
	F(group_api.is_captured, groupApi.graphCaptured) \
	F(group_api.depth, groupApi.groupDepth)          \
	F(coll_api.function, collApi.func)               \
	F(coll_api.count, collApi.count)                 \
	F(coll_api.datatype, collApi.datatype)           \
	F(coll_api.root, collApi.root)                   \
	F(coll_api.stream, collApi.stream)               \
	F(coll_api.is_captured, collApi.graphCaptured)   \
	F(p2p_api.function, p2pApi.func)                 \
	F(p2p_api.count, p2pApi.count)                   \
	F(p2p_api.datatype, p2pApi.datatype)             \
	F(p2p_api.stream, p2pApi.stream)                 \
	F(p2p_api.is_captured, p2pApi.graphCaptured)     \
	F(kernel_launch.stream, kernelLaunch.stream)

#define COPY_ENGINE(F)                                         \
	F(ce_coll.sequence, ceColl.seqNumber)                  \
	F(ce_coll.function, ceColl.func)                       \
	F(ce_coll.send_buffer, ceColl.sendBuff)                \
	F(ce_coll.recv_buffer, ceColl.recvBuff)                \
	F(ce_coll.count, ceColl.count)                         \
	F(ce_coll.root, ceColl.root)                           \
	F(ce_coll.datatype, ceColl.datatype)                   \
	F(ce_coll.sync_strategy, ceColl.syncStrategy)          \
	F(ce_coll.has_intra_batch_sync, ceColl.intraBatchSync) \
	F(ce_coll.batch_size, ceColl.batchSize)                \
	F(ce_coll.batches, ceColl.numBatches)                  \
	F(ce_coll.ce_sequence, ceColl.ceSeqNum)                \
	F(ce_coll.stream, ceColl.stream)                       \
	F(ce_sync.is_complete, ceCollSync.isComplete)          \
	F(ce_sync.nranks, ceCollSync.nRanks)                   \
	F(ce_batch.ops, ceCollBatch.numOps)                    \
	F(ce_batch.total_bytes, ceCollBatch.totalBytes)        \
	F(ce_batch.use_intra_sync, ceCollBatch.useIntraSync)

#define TAGS(F)                                        \
	F(coll.kernel_variant, coll.kernelVariant)     \
	F(coll.is_symmetric, coll.isSymColl)           \
	F(coll.user_tag, coll.userTag)                 \
	F(p2p.user_tag, p2p.userTag)                   \
	F(coll_api.user_tag, collApi.userTag)          \
	F(p2p_api.user_tag, p2pApi.userTag)            \
	F(ce_coll.user_tag, ceColl.userTag)            \
	F(kernel_phase.channel, kernelPhase.channelId) \
	F(kernel_phase.phase, kernelPhase.phaseId)     \
	F(kernel_phase.name, kernelPhase.phaseName)    \
	F(kernel_phase.gpu_ns, kernelPhase.pTimer)

#define FIELDS_1(F) HEAD(F) COLL(F) P2P(F) PROXY(F) NAMED(F) TRAFFIC(F) NUMBERED(F)
#define FIELDS_2(F) HEAD(F) COLL(F) P2P(F) PROXY(F) NAMED(F) TRAFFIC(F)
#define FIELDS_3(F) HEAD(F) COLL(F) P2P(F) PROXY(F) NAMED(F) KERNEL(F) NET(F)
#define FIELDS_4(F) HEAD(F) COLL(F) P2P(F) PROXY(F) KERNEL(F) NET(F) CHANNELS(F)
#define FIELDS_5(F) FIELDS_4(F) API(F)
#define FIELDS_6(F) FIELDS_5(F) COPY_ENGINE(F)
#define FIELDS_7(F) FIELDS_6(F) TAGS(F)

#define ARGS_1(F)                                  \
	F(proxy_op.trans_bytes, proxyOp.transSize) \
	F(proxy_op.steps, proxyOp.steps)           \
	F(proxy_ctrl.appended, proxyCtrl.appendedProxyOps)
#define ARGS_2(F) ARGS_1(F)
#define ARGS_3(F) ARGS_1(F)
#define ARGS_4(F)                                          \
	F(proxy_step.trans_bytes, proxyStep.transSize)     \
	F(proxy_ctrl.appended, proxyCtrl.appendedProxyOps) \
	F(net_plugin.data, netPlugin.data)                 \
	F(kernel_ch.gpu_ns, kernelCh.pTimer)
#define ARGS_5(F) ARGS_4(F)
#define ARGS_6(F) ARGS_4(F)
#define ARGS_7(F) ARGS_4(F)

#define NUMBERS(F)                                                       \
	F(ABI_GROUP, ncclProfileGroup)                                   \
	F(ABI_COLL, ncclProfileColl)                                     \
	F(ABI_P2P, ncclProfileP2p)                                       \
	F(ABI_PROXY_OP, ncclProfileProxyOp)                              \
	F(ABI_PROXY_STEP, ncclProfileProxyStep)                          \
	F(ABI_PROXY_CTRL, ncclProfileProxyCtrl)                          \
	F(ABI_KERNEL_CH, ncclProfileKernelCh)                            \
	F(ABI_NET_PLUGIN, ncclProfileNetPlugin)                          \
	F(ABI_GROUP_API, ncclProfileGroupApi)                            \
	F(ABI_COLL_API, ncclProfileCollApi)                              \
	F(ABI_P2P_API, ncclProfileP2pApi)                                \
	F(ABI_KERNEL_LAUNCH, ncclProfileKernelLaunch)                    \
	F(ABI_CE_COLL, ncclProfileCeColl)                                \
	F(ABI_CE_SYNC, ncclProfileCeSync)                                \
	F(ABI_CE_BATCH, ncclProfileCeBatch)                              \
	F(ABI_KERNEL_PHASE, ncclProfileKernelPhase)                      \
	F(ABI_OP_SEND_POSTED, ncclProfilerProxyOpSendPosted)             \
	F(ABI_OP_SEND_REM_FIFO_WAIT, ncclProfilerProxyOpSendRemFifoWait) \
	F(ABI_OP_SEND_TRANSMITTED, ncclProfilerProxyOpSendTransmitted)   \
	F(ABI_OP_SEND_DONE, ncclProfilerProxyOpSendDone)                 \
	F(ABI_OP_RECV_POSTED, ncclProfilerProxyOpRecvPosted)             \
	F(ABI_OP_RECV_RECEIVED, ncclProfilerProxyOpRecvReceived)         \
	F(ABI_OP_RECV_TRANSMITTED, ncclProfilerProxyOpRecvTransmitted)   \
	F(ABI_OP_RECV_DONE, ncclProfilerProxyOpRecvDone)                 \
	F(ABI_STEP_SEND_GPU_WAIT, ncclProfilerProxyStepSendGPUWait)      \
	F(ABI_STEP_SEND_WAIT, ncclProfilerProxyStepSendWait)             \
	F(ABI_STEP_RECV_WAIT, ncclProfilerProxyStepRecvWait)             \
	F(ABI_STEP_RECV_FLUSH_WAIT, ncclProfilerProxyStepRecvFlushWait)  \
	F(ABI_STEP_RECV_GPU_WAIT, ncclProfilerProxyStepRecvGPUWait)      \
	F(ABI_CTRL_IDLE, ncclProfilerProxyCtrlIdle)                      \
	F(ABI_CTRL_ACTIVE, ncclProfilerProxyCtrlActive)                  \
	F(ABI_CTRL_SLEEP, ncclProfilerProxyCtrlSleep)                    \
	F(ABI_CTRL_WAKEUP, ncclProfilerProxyCtrlWakeup)                  \
	F(ABI_CTRL_APPEND, ncclProfilerProxyCtrlAppend)                  \
	F(ABI_CTRL_APPEND_END, ncclProfilerProxyCtrlAppendEnd)           \
	F(ABI_OP_IN_PROGRESS, ncclProfilerProxyOpInProgress_v4)          \
	F(ABI_STEP_SEND_PEER_WAIT, ncclProfilerProxyStepSendPeerWait_v4) \
	F(ABI_NET_PLUGIN_UPDATE, ncclProfilerNetPluginUpdate)            \
	F(ABI_KERNEL_CH_STOP, ncclProfilerKernelChStop)                  \
	F(ABI_GROUP_START_API_STOP, ncclProfilerGroupStartApiStop)       \
	F(ABI_GROUP_END_API_START, ncclProfilerGroupEndApiStart)         \
	F(ABI_CE_COLL_START, ncclProfilerCeCollStart)                    \
	F(ABI_CE_COLL_COMPLETE, ncclProfilerCeCollComplete)              \
	F(ABI_CE_SYNC_START, ncclProfilerCeSyncStart)                    \
	F(ABI_CE_SYNC_COMPLETE, ncclProfilerCeSyncComplete)              \
	F(ABI_CE_BATCH_START, ncclProfilerCeBatchStart)                  \
	F(ABI_CE_BATCH_COMPLETE, ncclProfilerCeBatchComplete)            \
	F(ABI_KERNEL_PHASE_STOP, ncclProfilerKernelPhaseStop)

#endif
