#!/usr/bin/env bash
# Runs the named fuzz targets, or all of them, for SECONDS each, one per processor at a time. Fails
# if one crashes, hangs, or takes too much memory. It needs stable Rust and a C++ compiler, for the
# source of libFuzzer in the crate libfuzzer-sys, but neither a nightly toolchain nor cargo-fuzz.
#
#   fuzz/run.sh SECONDS [TARGET…]
#
# Each target starts from the vectors in spec/vectors and from fuzz/corpus/TARGET, which it only
# reads. With KEEP=1, the few inputs that reach new code are added to the corpus.
set -euo pipefail
seconds=${1:?usage: fuzz/run.sh SECONDS [TARGET…]}
shift
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- $(ls fuzz_targets | sed 's/\.rs$//')

target_dir=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
RUSTC_WRAPPER=$PWD/instrument.sh cargo build --quiet --release --target-dir "$target_dir"

found=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$found"' EXIT
mkdir -p artifacts

fuzz() {
  local target=$1 kind max_len=8192 program=$target_dir/release/$1
  mkdir -p "$found/$target" "$found/$target.base" "corpus/$target"
  case $target in
  bridge_stream) kind=stream ;;
  client_session) kind=session ;;
  server_session) kind=requests ;;
  page) kind=page ;;
  # The smallest file with an object has two units of 4 KiB, and more.
  page_file) kind=pages max_len=16384 ;;
  partition) kind=part ;;
  mysql_login | mysql_session | mysql_values) kind=mysql ;;
  sort) kind=choices ;;
  *) kind=chunk ;;
  esac
  find ../spec/vectors "corpus/$target" -type f -name "*.$kind" -exec cp {} "$found/$target.base" \;
  "$program" "$found/$target" "$found/$target.base" -max_total_time="$seconds" -max_len="$max_len" \
    -timeout=10 -rss_limit_mb=512 -artifact_prefix="artifacts/$target-" -print_final_stats=1 \
    2>"$found/$target.log" || {
    tail -n 40 "$found/$target.log" >&2
    echo "fuzz target $target failed; its input is in fuzz/artifacts" >&2
    return 1
  }
  sed -n "s/^stat::\(number_of_executed_units\|peak_rss_mb\)/$target: \1/p" "$found/$target.log"
  if [ "${KEEP:-0}" = 1 ]; then
    local before input name
    before=$(ls "$found/$target.base")
    "$program" -set_cover_merge=1 -max_len="$max_len" "$found/$target.base" "$found/$target" \
      2>/dev/null
    for input in "$found/$target.base"/*; do
      name=${input##*/}
      case "$before" in *"$name"*) ;; *) cp "$input" "corpus/$target/$name.$kind" ;; esac
    done
  fi
}

running=()
for target; do
  # All take equally long: the first that began is the first that ends.
  if [ "${#running[@]}" -ge "$(nproc)" ]; then
    wait "${running[0]}"
    running=("${running[@]:1}")
  fi
  fuzz "$target" &
  running+=($!)
done
for process in "${running[@]}"; do wait "$process"; done
