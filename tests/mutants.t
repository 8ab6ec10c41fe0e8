#!/usr/bin/env bash
# scripts/mutants: what a test checks is noticed, what none checks survives, and what makes no difference is listed.
. "$(dirname "$0")/tap.sh"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

# Each change that is listed as equivalent is one that can still be made.
scripts/mutants --list >"$tap_scratch/list"
while IFS=$'\t' read -r path change line reason; do
	case $path in "#"* | "") continue ;; esac
	[ -n "$reason" ] || echo "$path: $line: there is no reason"
	read -r operator other which <<<"$change"
	[ "$other" != nothing ] || other=
	# Not -q: it would end before the first grep, which counts as a failure.
	grep -F "$path:" "$tap_scratch/list" | grep -F ": \`$operator\`${which:+ $which} -> \`$other\` in \`$line\`" >/dev/null || echo "$path: $change: $line"
done <tests/mutants/equivalent >"$tap_scratch/gone"
expect_same "equivalent changes are of lines that are there" "$(cat "$tap_scratch/gone")" ""

# A small tree with one room.
tree=$tap_scratch/tree
mkdir -p "$tree"/{src/room,tests/unit/room,tests/mutants,build/tests/unit}
cat >"$tree/src/room/room.c" <<'END'
/* a < b */
#define LESS(a, b) ((a) < (b))
static const char *const text = "a < b";
int is_less(int a, int b) { return text[0] == 'a' && a < b; }
int sum(int a, int b) { return a + b; }
int half(int a) { return a > 0 ? a >> 1 : 0; }
END
cat >"$tree/tests/unit/room/test_room.c" <<'END'
#include <stdio.h>
int is_less(int a, int b);
int half(int a);
int main(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] == '-')
		return puts("test_room") == EOF;
	int is_good = is_less(1, 2) && !is_less(2, 2) && !is_less(3, 2) && half(6) == 3;
	printf("%s 1 - all\n1..1\n", is_good ? "ok" : "not ok");
	return !is_good;
}
END
cat >"$tree/Makefile" <<'END'
UNIT_PROGRAMS := room
$(BUILD)/tests/unit/room: $(BUILD)/src/room/room.o tests/unit/room/test_room.c
	@mkdir -p $(@D)
	cc $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -o $@ $^
$(BUILD)/src/room/room.o: src/room/room.c
	@mkdir -p $(@D)
	cc $(CFLAGS) $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -c -o $@ $<
END
printf 'src/room/room.c\t> >=\tint half(int a) { return a > 0 ? a >> 1 : 0; }\thalf of 0 is 0\n' >"$tree/tests/mutants/equivalent"
cp -r "$tree" "$tap_scratch/before"
mutate() {
	BUILD=$tree/build scripts/mutants --tree "$tree" --seed 1 --jobs 2 "$@" 2>&1 | tee "$tap_scratch/said"
}
expect_ok "a room is judged" mutate --only src/room/room.c --write "$tap_scratch/table"
said() { grep "^$1" "$tap_scratch/said" | sed 's/ by test_room:.*//; s/ in .*//' | LC_ALL=C sort; }
expect_same "what tests check is noticed" "$(said noticed)" 'noticed: src/room/room.c:4: `&&` -> `||`
noticed: src/room/room.c:4: `<` -> `<=`
noticed: src/room/room.c:4: `<` -> `>=`
noticed: src/room/room.c:4: `==` -> `!=`
noticed: src/room/room.c:6: `>>` -> `<<`
noticed: src/room/room.c:6: `>` -> `<=`'
expect_same "the rest survives" "$(said survived)" 'survived: src/room/room.c:5: `+` -> `-`'
expect_same "except what makes no difference" "$(said equivalent)" 'equivalent: src/room/room.c:6: `>` -> `>=`'
expect_same "the table has them all" "$(grep '^room' "$tap_scratch/table" | xargs)" "room 6 8 6 0 1 1 86% 86%"
expect_same "and the survivor" "$(grep -A 1 '^Survivors' "$tap_scratch/table" | sed -n 's/: `.*//; 2p')" src/room/room.c:5
expect_ok "the tree is as before" diff -r -x mutants "$tap_scratch/before" "$tree"
expect_ok "a random one" mutate --each 1
expect_same "is one" "$(grep -cE '^(noticed|survived|equivalent|not compiled): ' "$tap_scratch/said")" 1
cp "$tap_scratch/said" "$tap_scratch/first"
mutate --each 1 >/dev/null
expect_same "and the same again from the same seed" "$(grep room.c "$tap_scratch/said")" "$(grep room.c "$tap_scratch/first")"

# Unit tests of another room see what those of the room let pass.
mkdir -p "$tree/tests/unit/other"
sed 's/test_room/test_other/; s/half(6) == 3/half(6) == sum(1, 2)/; s/^int half.*/&\nint sum(int a, int b);/' "$tree/tests/unit/room/test_room.c" >"$tree/tests/unit/other/test_other.c"
cp "$tree/Makefile" "$tap_scratch/Makefile"
sed -n 's/unit.room/unit\/other/g; s/test_room/test_other/; 2,4p' "$tap_scratch/Makefile" >>"$tree/Makefile"
sed -i 's/^UNIT_PROGRAMS.*/& other/' "$tree/Makefile"
mutate --only src/room/room.c:5 >/dev/null
expect_same "a unit test of another room notices" "$(sed -n '/^noticed/s/ in .* by / by /p' "$tap_scratch/said")" \
	'noticed: src/room/room.c:5: `+` -> `-` by test_other: not ok 1 - all'
mutate --only src/room/room.c:5 --near >/dev/null
expect_same "which is not asked with --near" "$(said survived)" 'survived: src/room/room.c:5: `+` -> `-`'
rm -r "$tree/tests/unit/other"
cp "$tap_scratch/Makefile" "$tree/Makefile"

# Scripts see what the unit tests let pass.
cat >"$tree/tests/sum.t" <<'END'
#!/bin/sh
[ "$(build/sum 3 2)" = 5 ] && echo "ok 1 - sum" || echo "not ok 1 - sum"
END
printf '#!/bin/sh\necho "not ok 1 - never"\n' >"$tree/tests/broken.t"
cat >"$tree/tests/rare.t" <<END
#!/bin/sh
echo x >>"$tap_scratch/rare"
[ "\$(wc -l <"$tap_scratch/rare")" != 2 ] && echo "ok 1 - rare" || echo "not ok 1 - rare"
END
chmod +x "$tree"/tests/*.t
cat >"$tree/tests/sum.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
int sum(int a, int b);
int main(int argc, char **argv) { return argc < 3 || printf("%d\n", sum(atoi(argv[1]), atoi(argv[2]))) < 0; }
END
cat >>"$tree/Makefile" <<'END'
all: $(BUILD)/sum
$(BUILD)/sum: $(BUILD)/src/room/room.o tests/sum.c
	cc -o $@ $^
END
rm -f "$tree/build/sum"
printf '# which\ntests/broken.t\ntests/sum.t\n' >"$tree/tests/mutants/scripts"
mutate --only src/room/room.c:5 --scripts >/dev/null
expect_same "a script notices" "$(sed -n '/^noticed/s/ in .* by / by /p' "$tap_scratch/said")" \
	'noticed by scripts: src/room/room.c:5: `+` -> `-` by tests/sum.t: not ok 1 - sum'
expect_same "one that fails by itself is left out" "$(grep '^left out' "$tap_scratch/said")" \
	"left out, fails without a change: tests/broken.t: not ok 1 - never"
expect_same "and both columns are there" "$(grep '^room' "$tap_scratch/said" | xargs)" "room 6 1 0 1 0 0 0% 100%"
# A change that starts processes without end is stopped, where a worker has processes of its own.
cat >"$tree/tests/many.t" <<END
#!/bin/sh
[ "\$(build/sum 3 2)" = 5 ] || while :; do sleep 600 & done
echo "ok 1 - few"
END
chmod +x "$tree/tests/many.t"
printf 'tests/many.t\n' >"$tree/tests/mutants/scripts"
if [ "$(id -u)" -eq 0 ] && unshare --mount --pid --fork true 2>/dev/null; then
	mutate --only src/room/room.c:5 --scripts >/dev/null
	expect_same "one that starts too many processes is stopped" "$(sed -n '/^noticed/s/.* by //p' "$tap_scratch/said")" "tests/many.t: started too many processes"
else
	tap_line ok "one that starts too many processes is stopped # SKIP no namespaces here" ""
fi

printf 'tests/rare.t\n' >"$tree/tests/mutants/scripts"
mutate --only src/room/room.c:5 --scripts >/dev/null
expect_same "a failure that does not repeat is none" "$(said survived)" 'survived: src/room/room.c:5: `+` -> `-`'
printf 'tests/gone.t\n' >"$tree/tests/mutants/scripts"
expect_complaint "a script that is not there is none" "there is no tests/gone.t" mutate --only src/room/room.c:5 --scripts

sed -i 's/half(6) == 3/half(6) == 4/' "$tree/tests/unit/room/test_room.c"
rm "$tree/tests/mutants/scripts"
mutate --each 1 >/dev/null
expect_same "a test that fails by itself judges nothing" "$(grep '^left out' "$tap_scratch/said")" \
	"left out, fails without a change: test_room: not ok 1 - all"
tap_done
