#!/usr/bin/env python3
"""Is a CSV table the same as the first custom table of a report's JSON?  csv_same.py TABLE.csv REPORT.json"""
import csv
import json
import sys


def wanted(row, name):
    if name.startswith("from_"):
        return row["sources"][name[len("from_"):]]
    return row[name]


def main():
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, strict=True))
    with open(sys.argv[2], encoding="utf-8") as file:
        rows = json.load(file)["custom"][0]["rows"]
    if len(lines) != len(rows):
        sys.exit(f"{len(lines)} lines, wanted {len(rows)}")
    for number, (line, row) in enumerate(zip(lines, rows), 2):
        for name, cell in line.items():
            value = wanted(row, name)
            same = cell == "" if value is None else cell == value if isinstance(value, str) \
                else float(cell) == float(value)
            if not same:
                sys.exit(f"line {number}: {name} is {cell!r}, wanted {value!r}")
    print(f"{len(lines)} lines of {len(lines[0])} columns")


if __name__ == "__main__":
    main()
