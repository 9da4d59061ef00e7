#!/usr/bin/env bash
# Plans must have the same bits on every machine. Runs the tests that pin them on every architecture that can be had here:
# natively, 386, amd64 with fused multiply-add, and those for which qemu-user is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

pinned='Same.*Everywhere$'
folders=$(grep -rlE --include='*_test.go' "^func Test[A-Za-z]*${pinned%\$}\(" internal | xargs -n1 dirname | sort -u | sed 's|^|./|')
[ -n "$folders" ] || { echo "no test pins bits" >&2; exit 1; }

# check NAME [VARIABLE=VALUE ...] [-exec EMULATOR]: runs the tests under an environment, and wants every one of them to have run.
wanted=$(grep -rhE --include='*_test.go' "^func Test[A-Za-z]*${pinned%\$}\(" internal | wc -l)
check() {
  local name=$1 settings=() log passed
  shift
  while [[ ${1-} == *=* ]]; do
    settings+=("$1")
    shift
  done
  # shellcheck disable=SC2086 # folders are several
  if ! log=$(env "${settings[@]}" CGO_ENABLED=0 go test -v -run "$pinned" "$@" $folders 2>&1); then
    printf '%s\n' "$log"
    echo "$name: bits differ" >&2
    exit 1
  fi
  passed=$(grep -c '^--- PASS' <<<"$log")
  if [ "$passed" -ne "$wanted" ]; then
    printf '%s\n' "$log"
    echo "$name: $passed of $wanted tests ran" >&2
    exit 1
  fi
  echo "$name: $passed tests, the same bits"
}

check native
if [ "$(go env GOHOSTARCH)" = amd64 ]; then
  check 386 GOARCH=386
  flags=" $(grep -m1 '^flags' /proc/cpuinfo 2>/dev/null || true) "
  if [[ $flags == *" avx2 "* && $flags == *" fma "* && $flags == *" bmi2 "* && $flags == *" movbe "* ]]; then
    check 'amd64 v3' GOAMD64=v3
  else
    echo 'amd64 v3: left out, this processor has no fused multiply-add'
  fi
fi
for pair in ${QEMU:-arm64=qemu-aarch64}; do
  arch=${pair%%=*} emulator=${pair#*=}
  if [ "$(go env GOHOSTARCH)" = "$arch" ]; then
    continue
  elif found=$(command -v "$emulator-static" || command -v "$emulator"); then
    check "$arch" GOARCH="$arch" -exec "$found"
  else
    echo "$arch: left out, there is no $emulator here (Debian and Ubuntu: apt-get install qemu-user-static)"
  fi
done
