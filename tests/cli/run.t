#!/usr/bin/env bash
. "$(dirname "$0")/cli.sh"

# A copy of the program in its own directory: the plugin is searched relative to it.
bin=$tap_scratch/opt/bin
mkdir -p "$bin" "$tap_scratch/opt/lib"
cp "$ringside" "$bin/ringside"
tool=$bin/ringside
plugin=libnccl-profiler-ringside.so
expect_refusal "no plugin anywhere" 3 "cannot find $plugin in .*.*name the file with --plugin" "$tool" run true
expect_refusal "env needs it, too" 3 "cannot find $plugin" "$tool" env

cp "$BUILD/$plugin" "$tap_scratch/opt/lib/"
variables() { # option... : what CMD sees
	"$tool" run "$@" -- env | grep -E '^(NCCL_PROFILER_PLUGIN|RINGSIDE_[A-Z_]*|LD_LIBRARY_PATH)=' | LC_ALL=C sort
}
expect_same "installed: the name, and the directory for the loader" "$(variables)" \
	"LD_LIBRARY_PATH=$tap_scratch/opt/lib
NCCL_PROFILER_PLUGIN=$plugin"
mkdir "$tap_scratch/opt/lib/ringside"
mv "$tap_scratch/opt/lib/$plugin" "$tap_scratch/opt/lib/ringside"
expect_same "its own directory takes precedence" "$(variables | head -n 1)" \
	"LD_LIBRARY_PATH=$tap_scratch/opt/lib/ringside"
cp "$BUILD/$plugin" "$bin"
expect_same "next to the program takes precedence" "$(variables | head -n 1)" "LD_LIBRARY_PATH=$bin"
expect_same "what the job had stays in front" "$(LD_LIBRARY_PATH=/a:/b variables | head -n 1)" \
	"LD_LIBRARY_PATH=/a:/b:$bin"
expect_same "nothing is added when the loader finds it" \
	"$(LD_LIBRARY_PATH=/a:$bin variables | head -n 1)" "LD_LIBRARY_PATH=/a:$bin"
expect_same "another file of that name comes first: the full path is used" \
	"$(LD_LIBRARY_PATH=$tap_scratch/opt/lib/ringside variables | tail -n 1)" \
	"NCCL_PROFILER_PLUGIN=$bin/$plugin"
expect_same "by path when asked" "$(variables --by-path)" "NCCL_PROFILER_PLUGIN=$bin/$plugin"
mkdir "$tap_scratch/a:b"
cp "$BUILD/$plugin" "$tap_scratch/a:b"
expect_same "by path if LD_LIBRARY_PATH cannot contain it" "$(variables --plugin "$tap_scratch/a:b/$plugin")" \
	"NCCL_PROFILER_PLUGIN=$tap_scratch/a:b/$plugin"
ln -s "$tool" "$tap_scratch/linked"
expect_same "a link to the program finds its plugin" \
	"$("$tap_scratch/linked" run env | grep -c "^LD_LIBRARY_PATH=$bin$")" 1
if command -v gcc >/dev/null; then
	cat >"$tap_scratch/load.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	void *library = dlopen(getenv("NCCL_PROFILER_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
	puts(library && dlsym(library, "ncclProfiler_v5") ? "loaded" : dlerror());
	return 0;
}
END
	gcc -o "$tap_scratch/load" "$tap_scratch/load.c" -ldl
	expect_same "the loader finds it as NCCL would" "$("$tool" run "$tap_scratch/load")" loaded
fi

expect_same "options become settings" \
	"$(cd / && variables -m trace -o /x/%j --events kernel,-steps --buffer 1MiB --quota none --shm /y --job j \
		--labels a=b,c_1= --hang-after 900 --group users | grep RINGSIDE)" \
	"RINGSIDE_BUFFER=1MiB
RINGSIDE_DIR=/x/%j
RINGSIDE_EVENTS=kernel,-steps
RINGSIDE_GROUP=users
RINGSIDE_HANG_AFTER=900
RINGSIDE_JOB=j
RINGSIDE_LABELS=a=b,c_1=
RINGSIDE_MODE=trace
RINGSIDE_QUOTA=none
RINGSIDE_SHM=/y"
mkdir "$tap_scratch/50% done"
expect_same "a relative directory becomes absolute, and a percent sign in it is escaped" \
	"$(cd "$tap_scratch/50% done" && variables -m trace -o 'x-%h' --shm y | grep -E 'DIR|SHM')" \
	"RINGSIDE_DIR=$tap_scratch/50%% done/x-%h
RINGSIDE_SHM=$tap_scratch/50% done/y"
expect_same "settings in the environment are kept" "$(RINGSIDE_MODE=full RINGSIDE_JOB=z variables | grep RINGSIDE)" \
	"RINGSIDE_JOB=z
RINGSIDE_MODE=full"

says() { # option... : what is printed before the job runs
	"$tool" run "$@" -- true 2>&1
}
mkdir "$tap_scratch/good"
: >"$tap_scratch/file"
expect_same "traces to a directory that can be made: no word" "$(says -m trace -o "$tap_scratch/good/a/b-%j")" ""
expect_same "a trace directory that cannot be written is reported at once, and the job runs" \
	"$(says -m full -o "$tap_scratch/file/%j")$?" \
	"ringside run: trace files cannot be written to $tap_scratch/file/%j: $tap_scratch/file/: Not a directory0"
expect_same "so is a directory in a mode that writes no traces" "$(says -o "$tap_scratch/good")" \
	"ringside run: no trace files will be written to $tap_scratch/good in mode flight: use -m trace"
expect_same "a mode in the environment is used" "$(RINGSIDE_MODE=trace says -o "$tap_scratch/good")" ""

expect_refusal "a wrong mode" 2 "unknown mode 'trase', did you mean 'trace'" "$tool" run -m trase true
expect_refusal "a wrong size" 2 "'8 MiB' is not a size from 64KiB" "$tool" run --buffer '8 MiB' true
expect_refusal "a size out of range" 2 "'1KiB' is not a size from 64KiB" "$tool" run --buffer 1KiB true
expect_refusal "a wrong quota" 2 "'many' is neither none nor a size" "$tool" run --quota many true
expect_refusal "a wrong event" 2 "'kernels' is not a kind of event" "$tool" run --events proxy,kernels true
expect_refusal "a wrong number of seconds" 2 "--hang-after '15m' is not a number of seconds up to 604800" "$tool" run --hang-after 15m true
expect_refusal "a wrong label" 2 "'a-b=c' is not a label" "$tool" run --labels a-b=c true
expect_refusal "a plugin that is not there" 3 "cannot read the plugin '/nowhere.so'" \
	"$tool" run --plugin /nowhere.so true
expect_refusal "a directory instead of a plugin" 3 "cannot read the plugin '/tmp': Is a directory" \
	"$tool" run --plugin /tmp true
expect_refusal "no command" 2 "no command given: use ringside run -- CMD" "$tool" run -m trace
expect_refusal "a command that does not exist" 127 "cannot run 'no-such-command'" "$tool" run no-such-command
expect_refusal "a command that cannot be executed" 126 "cannot run '/etc/passwd': Permission" \
	"$tool" run /etc/passwd
expect_refusal "another plugin is set" 3 "NCCL_PROFILER_PLUGIN is already set to 'inspector'" \
	env NCCL_PROFILER_PLUGIN=inspector "$tool" run true
expect_same "replaced by force" \
	"$(NCCL_PROFILER_PLUGIN=inspector variables --force | tail -n 1)" "NCCL_PROFILER_PLUGIN=$plugin"
expect_same "our own name is not another plugin" \
	"$(NCCL_PROFILER_PLUGIN=ringside variables | tail -n 1)" "NCCL_PROFILER_PLUGIN=$plugin"

"$tool" run sh -c 'exit 42'
expect_same "the exit code is the command's" $? 42
expect_same "so is its signal" "$(sh -c '"$0" run sh -c "kill -9 \$\$"; echo $?' "$tool" 2>/dev/null)" 137
expect_same "options after the command are the command's" "$("$tool" run echo -m --json -h)" "-m --json -h"
expect_same "-- ends the options" "$("$tool" run -- echo -- x)" "-- x"
expect_same "there is no process in between" "$("$tool" run sh -c 'echo $PPID')" "$$"

expect_same "env prints lines that a shell accepts" \
	"$(LD_LIBRARY_PATH=/a sh -c "$("$tool" env -m full -o "/it's \$HOME" --labels 'a=b c')"'
		printf "%s\n" "$RINGSIDE_MODE" "$RINGSIDE_DIR" "$RINGSIDE_LABELS" "$NCCL_PROFILER_PLUGIN" "$LD_LIBRARY_PATH"')" \
	"full
/it's \$HOME
a=b c
$plugin
/a:$bin"
expect_same "without LD_LIBRARY_PATH there is no empty part in it" \
	"$(unset LD_LIBRARY_PATH; sh -c "$("$tool" env)"'; echo "$LD_LIBRARY_PATH"')" "$bin"
"$tool" env --json -o "/x\"y" >"$tap_scratch/json"
expect_same "env --json" \
	"$(json_says 'my $doc = $_; join " ", map { "$_=$doc->{$_}" } sort keys %$doc' "$tap_scratch/json")" \
	"LD_LIBRARY_PATH=$bin NCCL_PROFILER_PLUGIN=$plugin RINGSIDE_DIR=/x\"y"
expect_refusal "env takes no command" 2 "unexpected argument 'true'" "$tool" env true
tap_done
