"""Lists the characters of files that would do more than show themselves, one line per kind.

    unseen.py [--json] FILE...

Line ends and tabs are allowed. --json: the strings of JSON documents, one per line or one per file, unescaped.
"""
import json
import sys
import unicodedata


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings_of(item)


def documents(text):
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line]


def main():
    is_json = sys.argv[1] == "--json"
    for path in sys.argv[1 + is_json:]:
        data = open(path, "rb").read()
        text = data.decode("utf-8", "backslashreplace")
        found = {"byte"} if text.encode() != data else set()
        if is_json:
            text = "".join(part for document in documents(text) for part in strings_of(document))
        # Control, format (directions, joiners), surrogates, line and paragraph separators.
        found |= {"U+%04X" % ord(one) for one in text
                  if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") and one not in "\r\n\t"}
        for one in sorted(found):
            print(path.rsplit("/", 1)[-1], one)
        if not text.strip():
            print(path.rsplit("/", 1)[-1], "is empty")


main()
