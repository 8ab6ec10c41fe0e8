#!/usr/bin/env bash
# The wheel: built twice, installed into a fresh environment by its path, used, removed.
. "$(dirname "$0")/../tap.sh"
unset "${!NCCL_@}" "${!RINGSIDE_@}" LD_LIBRARY_PATH PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1 PYTHONDONTWRITEBYTECODE=1
version=$(sed -n 's/^VERSION := //p' Makefile)
plugin=$BUILD/libnccl-profiler-ringside.so
programs=()
for program in ringside ringside-sim ringside-bench ringside-top; do
	[ ! -x "$BUILD/floor/$program" ] || programs+=("$BUILD/floor/$program")
done
[ ${#programs[@]} -gt 0 ] || tap_skip_all "the programs for glibc 2.28 are not built: make floor"

build() { # folder [program...]
	local folder=$1
	shift
	[ $# -gt 0 ] || set -- "${programs[@]}"
	SOURCE_DATE_EPOCH=1790000000 packaging/wheel/build-wheel --version "$version" --out "$folder" --maps "$BUILD/floor" "$plugin" "$@"
}
wheel=$(build "$tap_scratch/one")
expect_same "the name says where it runs" "$(basename "$wheel")" "ringside_nccl-$version-py3-none-manylinux_2_28_$(uname -m).whl"
(umask 077 && TZ=Asia/Tokyo build "$tap_scratch/two" >/dev/null)
expect_ok "two builds have the same bytes" cmp "$wheel" "$tap_scratch/two/$(basename "$wheel")"
expect_complaint "a program that needs a newer glibc is refused" "needs a newer glibc than 2.28" build "$tap_scratch/no" "$BUILD/ringside"
echo 'int main(void) { return 0; }' >"$tap_scratch/zlib.c"
"${CC:-cc}" -shared -fPIC -o "$tap_scratch/needs-zlib" "$tap_scratch/zlib.c" -Wl,--no-as-needed -lz
expect_complaint "so is one that needs another library" "needs libz.so.1, which not every system has" build "$tap_scratch/no" "$tap_scratch/needs-zlib"
expect_same "and nothing is left of it" "$(find "$tap_scratch/no" -type f 2>/dev/null)" ""

# With an absolute BUILD the linker's maps have absolute paths, and a tree can be copied.
mkdir -p "$tap_scratch/copy/floor" "$tap_scratch/stage"
for file in "$BUILD"/lib*.a; do : >"$tap_scratch/copy/${file##*/}"; done
sed -E 's#^[^ ]*/lib(agent|cli|fetch|ringside|top)\.a\(#/elsewhere/tree/build/lib\1.a(#' "$BUILD/floor/ringside.map" >"$tap_scratch/copy/floor/ringside.map"
cp "$BUILD/floor/ringside" "$tap_scratch/stage"
expect_ok "a program linked under another path has a list of what is in it" packaging/dist/sbom --version "$version" --epoch 1 --name x \
	--maps "$tap_scratch/copy/floor" "$tap_scratch/stage"
expect_ok "every file is in the list with its sum" python3 - "$wheel" <<'END'
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
names = wheel.namelist()
record = [name for name in names if name.endswith("/RECORD")]
rows = list(csv.reader(io.StringIO(wheel.read(record[0]).decode())))
assert [row[0] for row in rows] == names, "names"
for name, digest, size in rows[:-1]:
    content = wheel.read(name)
    sha = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    assert digest == "sha256=" + sha and int(size) == len(content), name
END
expect_same "licences of what is inside, and a list of it" \
	"$(python3 -m zipfile -l "$wheel" | grep -o 'dist-info/\(licenses\|sboms\)/[A-Za-z.]*' | sort | tr '\n' ' ' | grep -o 'LICENSE\|zlib.txt\|libzstd.txt\|uplot.txt\|spdx.json' | sort | tr '\n' ' ')" \
	"LICENSE libzstd.txt spdx.json uplot.txt zlib.txt "
expect_ok "Python 3.8 reads the package" python3 -c '
import ast, sys
for path in sys.argv[1:]:
    ast.parse(open(path).read(), path, feature_version=(3, 8))' packaging/wheel/ringside/*.py

venv=$tap_scratch/venv
python3 -m venv "$venv" >"$tap_scratch/venv.log" 2>&1 || tap_line "not ok" "python3 -m venv" "$(cat "$tap_scratch/venv.log")"
contents() { (cd "$venv" && find . -name __pycache__ -prune -o -print | sort); }
before=$(contents)
in_venv() { (cd "$(dirname "$wheel")" && PATH=$venv/bin:$PATH && eval "$1"); }
expect_ok "pip installs it, by the command of the README" in_venv "$(as_written '^pip install')"
expect_ok "pip finds nothing wrong" "$venv/bin/pip" check
expect_same "ringside is on the path" "$("$venv/bin/ringside" --version)" "ringside $version"
expect_same "the package knows its version" "$("$venv/bin/python" -c 'import ringside; print(ringside.__version__)')" "$version"
inside=$("$venv/bin/python" -c 'import os, ringside; print(os.path.dirname(ringside.__file__))')
expect_same "python -m ringside env prints the variables" "$(env -C / "$venv/bin/python" -m ringside env -m profile)" \
	"export RINGSIDE_MODE='profile'
export NCCL_PROFILER_PLUGIN='libnccl-profiler-ringside.so'
export LD_LIBRARY_PATH=\"\${LD_LIBRARY_PATH:+\$LD_LIBRARY_PATH:}\"'$inside/lib'"
"$venv/bin/ringside" run -- sh -c 'exit 7'
expect_same "exit codes come through" $? 7
expect_same "self-check finds the plugin of the wheel" \
	"$("$venv/bin/ringside" self-check --agent 127.0.0.1:1 | grep '^ok  *plugin')" \
	"ok       plugin       $inside/lib/libnccl-profiler-ringside.so, version $version; loads, NCCL's profiler interface 1 to 7"
expect_ok "a simulated job is recorded by the plugin of the wheel" env RINGSIDE_SHM="$tap_scratch" sh -c '
	"$0/bin/ringside" sim --nodes 1 --gpus 2 --seconds 2s -o "$1" && "$0/bin/ringside" verify "$1"' "$venv" "$tap_scratch/traces"
if [ -x "$BUILD/tests/fake_gpu/libnccl.so.2" ]; then
	"$venv/bin/python" tests/dist/test_ringside_package.py "$BUILD/tests/fake_gpu" >"$tap_scratch/unit" 2>&1
	expect_same "the package's own tests pass" "$? $(grep -c '^not ok' "$tap_scratch/unit")" "0 0"
	sed 's/^/# /' "$tap_scratch/unit"
fi
expect_ok "pip removes it" in_venv "echo y | $(as_written '^pip uninstall')"
expect_same "and nothing is left" "$(contents)" "$before"
tap_done
