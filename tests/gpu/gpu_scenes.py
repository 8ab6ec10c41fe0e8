"""Jobs of the driver that hang or are slow, and their true causes."""

import signal

RANKS = 4
HANG = "5s"
MIB = 1 << 20


class Scene:
    """One job: the field has the correct verdict class, "none" if nothing is wrong with it."""

    def __init__(self, name, told, culprit, big=4 * MIB, **more):
        self.name, self.told, self.culprit, self.big = name, told, culprit, big
        self.victim = more.get("victim", 2)
        self.signal = more.get("signal")        # to the victim, while all of them loop
        self.is_hang = more.get("is_hang", True)
        self.has_mps = more.get("has_mps", True)
        self.is_slow_reader = more.get("is_slow_reader", False)
        self.settings = more.get("settings", {})

    def is_timed(self):
        """Ranks share one GPU and the host's CPUs: speed is only judged in scenarios about speed."""
        return self.told == "none" or self.told.startswith("slow_")


SCENES = [
    Scene("skip", "never_issued", {"rank": 2}, settings={"NCCL_DEBUG": "TRACE"}),
    Scene("size", "mismatch", {"rank": 1, "rule": "count"}, 256 * MIB, victim=1),
    # NCCL finishes with wrong results, no hang.
    Scene("datatype", "mismatch", {"rank": 1, "rule": "datatype"}, victim=1, is_hang=False),
    Scene("stop", "process_stopped", {"rank": 3}, 64 * MIB, victim=3, signal=signal.SIGSTOP),
    # The MPS server would end the other ranks, too.
    Scene("kill", "process_dead", {"rank": 1}, 64 * MIB, victim=1, signal=signal.SIGKILL,
          has_mps=False),
    Scene("gpu", "gpu_not_reached", {"rank": 2}),
    Scene("deadlock", "deadlock", {"ends": [0, 1]}),
    # A ring has one edge into each rank; in a tree it could be either of two. Rank 2 reads slowly what rank 1
    # sends; a region's ring of operations does not have peers.
    Scene("link", "slow_link", {"rank": 1}, 32 * MIB, is_hang=False, is_slow_reader=True,
          settings={"NCCL_ALGO": "RING"}),
    Scene("calm", "none", {}, 32 * MIB, is_hang=False),
]


# Without GPU events, only transfers of a ring show that a kernel has not started; NCCL may choose a tree.
BLIND_GPU = "gpu_not_reached_without_kernel_events"


def blind_spot(scene, kernel):
    """Name of the blind spot that keeps the doctor from naming the cause, or None."""
    if scene.told == "gpu_not_reached" and kernel != "on":
        return BLIND_GPU
    return None


def truth():
    """For readers of the recordings."""
    return {scene.name: {"told": scene.told, "culprit": scene.culprit, "hang": HANG,
                         "is_timed": scene.is_timed()}
            for scene in SCENES}
