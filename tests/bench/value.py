"""Evaluates an expression over a benchmark's JSON: value.py EXPRESSION FILE"""
import json
import sys

try:
    with open(sys.argv[2], encoding="utf-8") as file:
        run = json.load(file)
except (OSError, ValueError) as problem:
    sys.exit(f"no JSON: {problem}")
cells = run["results"]
members = run["members"]


def different(name):
    """The distinct values of this key in the cells, in order."""
    return sorted({cell[name] for cell in cells}, key=str)


found = eval(sys.argv[1])
print(found if not isinstance(found, (list, tuple)) else " ".join(str(each) for each in found))
