"""A verdict on a recorded PyTorch hang against what is true and what PyTorch's own tool said.

    ringside doctor --json DUMPS | replay_torch.py SCENE_DIRECTORY has_lines|no_lines|has_stacks|has_states

Prints "right", or what is wrong. A rank without a dump can be named, but not where it is. has_stacks: with the Python
frames of the moment; has_states: with what /proc said."""

import json
import re
import sys

directory, has_lines = sys.argv[1], sys.argv[2] == "has_lines"
has_stacks, has_states = sys.argv[2] == "has_stacks", sys.argv[2] == "has_states"
with open(directory + "/expected.json", encoding="utf-8") as file:
    truth = json.load(file)
with open(directory + "/fr_trace.txt", encoding="utf-8") as file:
    missing = [{int(rank) for rank in found.split(",")} for found in re.findall(r"missing ranks: \{([0-9, ]+)\}", file.read())]
verdict = json.load(sys.stdin)["verdicts"][0]
evidence = " ".join(verdict["evidence"])
culprit = truth["culprit"]
wrong = []
if culprit is None:
    if verdict["class"] != "deadlock":
        wrong.append("class %s" % verdict["class"])
elif verdict["class"] == "unseen" and culprit not in truth["alive"]:
    # Nothing is known about it, so it is in the title and not blamed. PyTorch's tool ends with an assertion.
    if "no data from rank %d of " % culprit not in verdict["title"]:
        wrong.append(verdict["title"])
elif verdict["rank"] != culprit or verdict["class"] not in ("never_issued", "process_dead"):
    wrong.append("%s of rank %s" % (verdict["class"], verdict["rank"]))
# With one rank missing, fr_trace names it: we must not know less.
if culprit is not None and missing and missing != [{culprit}]:
    wrong.append("fr_trace disagrees: %s" % missing)
if has_lines and not re.search(r"[Ww]aits? at \S+:[0-9]+ in %s <" % truth["waiting"], evidence):
    wrong.append("where the others wait is missing: %s" % evidence)
if has_lines and culprit in truth["alive"] and not re.search(r"last call at \S+:[0-9]+ in %s <" % truth["last"], evidence):
    wrong.append("where it called last is missing: %s" % evidence)
is_alive = culprit in truth["alive"]
if has_stacks and is_alive and not re.search(r"Rank %d is in \S+:[0-9]+ in %s < .*asleep in clock_nanosleep\), .* after its last NCCL call\."
                                             % (culprit, truth["is_in"]), evidence):
    wrong.append("where it is is missing: %s" % evidence)
if has_stacks and not re.search(r"Ranks [0-9, -]+ are in torch/cuda/__init__.py:[0-9]+ in synchronize < \S+:[0-9]+ in %s < "
                                % truth["waiting"], evidence):
    wrong.append("where the others are is missing: %s" % evidence)
if has_states and is_alive and "Rank %d is asleep in clock_nanosleep, " % culprit not in evidence:
    wrong.append("what it does is missing: %s" % evidence)
if has_states and not re.search(r"Ranks [0-9, -]+ are running\.", evidence):
    wrong.append("what the others do is missing: %s" % evidence)
print("; ".join(wrong) or "right")
