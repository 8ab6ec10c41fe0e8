"""Is what the doctor says what is true? Shared by the drill, the story and the checks on real NCCL."""

SLOW = ("slow_rank", "slow_host", "slow_link", "slow_network", "slow_nvlink", "slow_communicator",
        "slow_size", "slow_algorithm", "below_expected")


def accusing(document, is_timed=True):
    """Verdicts that say what is wrong with the job: not its set-up, not what cannot be seen. Of a job that stands
    still after it ran on a busy machine times say nothing: not `is_timed`."""
    return [v for v in document["verdicts"]
            if v["class"] not in ("setup", "blind") and v["severity"] != "note" and
            (is_timed or v["class"] not in SLOW)]


def compare(culprit, verdict):
    """What of the culprit is not as it was played. Keys are those of a verdict, and two more:
    "either": a rank that is one of the two ends; "ends": the two ends, in whatever order."""
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
    """(class that was told first, what is wrong with it). `told` is "none" for a healthy job, "not_judged" for one of
    which it cannot be told whether it hangs."""
    verdicts = accusing(document, is_timed)
    first = verdicts[0]["class"] if verdicts else "none"
    if first == "none" and any(what["aspect"] == "hang" for what in document["not_judged"]):
        first = "not_judged"
    wrong = []
    if first != told:
        wrong.append("told %s, not %s" % (first, told))
    elif verdicts:
        wrong += compare(culprit, verdicts[0])
    for verdict in verdicts[1:]:
        wrong.append("and accused: %s, rank %s, peer %s, %s" % (
            verdict["class"], verdict["rank"], verdict["peer"], verdict["host"]))
    return first, wrong
