"""Is the doctor's verdict right? Shared by the drill, the story and the checks on real NCCL."""

SLOW = ("slow_rank", "slow_host", "slow_link", "slow_network", "slow_nvlink", "slow_communicator",
        "slow_size", "slow_algorithm", "below_expected")


def accusing(document, is_timed=True):
    """Verdicts on the job itself: not its set-up, not what is invisible. For a job that hangs
    after it ran on a busy machine times are meaningless: not `is_timed`."""
    return [v for v in document["verdicts"]
            if v["class"] not in ("setup", "blind") and v["severity"] != "note" and
            (is_timed or v["class"] not in SLOW)]


def noted(told, document):
    """Slowness of this class that costs the job next to nothing: a note."""
    return [v for v in document["verdicts"]
            if told in SLOW and v["class"] == told and v["severity"] == "note" and
            v["cost_percent"] is not None and v["cost_percent"] < 2][:1]


def compare(culprit, verdict):
    """Differences between the culprit and the verdict. Keys are those of a verdict, and two more:
    "either": a rank that is one of the two ends; "ends": the two ends, in any order."""
    wrong = []
    ends = {verdict["rank"], verdict["peer"]}
    for key, wanted in culprit.items():
        if key == "either":
            if wanted not in ends:
                wrong.append("rank %s and peer %s, neither is %s" % (
                    verdict["rank"], verdict["peer"], wanted))
        elif key == "ends":
            if ends != set(wanted):
                wrong.append("rank %s and peer %s, not %s" % (
                    verdict["rank"], verdict["peer"], " and ".join(map(str, wanted))))
        elif verdict.get(key) != wanted:
            wrong.append("%s is %s, not %s" % (key, verdict.get(key), wanted))
    return wrong


def judge(told, culprit, document, is_timed=True):
    """(class of the first verdict, what is wrong with it). The first argument is "none" for a healthy job, "not_judged" if a hang
    cannot be judged."""
    verdicts = accusing(document, is_timed) or noted(told, document)
    first = verdicts[0]["class"] if verdicts else "none"
    if first == "none" and any(what["aspect"] == "hang" for what in document["not_judged"]):
        first = "not_judged"
    wrong = []
    if first != told:
        wrong.append("class %s, not %s" % (first, told))
    elif verdicts:
        wrong += compare(culprit, verdicts[0])
    for verdict in verdicts[1:]:
        wrong.append("also reported: %s, rank %s, peer %s, %s" % (
            verdict["class"], verdict["rank"], verdict["peer"], verdict["host"]))
    return first, wrong
