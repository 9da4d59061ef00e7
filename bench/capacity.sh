#!/bin/bash
# Holds the search for the capacity to servers whose capacity is known.
#
#   bench/capacity.sh virtual   the tables of docs/capacity.md: event simulation in virtual time, some four minutes of one core
#   bench/capacity.sh real      three searches against tare sim over loopback, some ten minutes each. The client has core 0, the
#                               server core 1: it needs a machine that does nothing else. ALLOW=--allow-biased counts trials
#                               whose client gates fail, for a shared one; WIDTH, DWELL (20s) and ONLY=--only make it shorter
set -euo pipefail
cd "$(dirname "$0")/.."

virtual() {
	TARE_SEEDS=100 go test ./internal/judge/stats -count 1 -run StabilityKeeps -v
	TARE_SEEDS=20 go test ./internal/judge/capacity -count 1 -timeout 30m -run KnownServer -v
}

# one NAME RATE FLAGS...: a search against a simulator that can do RATE requests per second of 8 output tokens
one() {
	name=$1 rate=$2
	shift 2
	start_server taskset -c 1 "$OUT/tare" sim "$@"
	echo "## $name: tare sim $*" >&2
	taskset -c 0 "$OUT/tare" sweep "$URL" --model sim --input-tokens 32 --output-tokens 8 --width "${WIDTH:-0.05}" --max-dwell "${DWELL:-60s}" --idle 200ms \
		${ALLOW:-} ${ONLY:-} --out "$OUT/$name" >"$OUT/$name.txt" || true
	stop_server
	cat "$OUT/$name.txt" >&2
	awk -v name="$name" -v rate="$rate" '
		/^capacity/ { found = $3; interval = $5 " to " $7; resolution = $10; gsub(/[(),]/, "", interval) }
		/^wall time/ { wall = $3; runs = $4 }
		END {
			off = 100 * (found / rate - 1)
			sub(",$", "", wall); printf "| %s | %s | %s (%s) | %+.1f %% | %s %% | %s | %s | %s |\n", name, rate, found, interval, off, resolution, (off <= resolution && -off <= resolution) ? "yes" : "NO", runs, wall
		}' "$OUT/$name.txt" | tee -a "$OUT/table"
}

real() {
	OUT=$(mktemp -d)
	. bench/simulator.sh
	trap 'stop_all; rm -rf "$OUT"' EXIT
	go build -o "$OUT/tare" ./cmd/tare
	echo "| server | capacity, /s | λ_stab, /s | off | resolution | within | runs | wall time |"
	echo "|---|---|---|---|---|---|---|---|"
	one constant 40 --slots 8 --ttft 130ms --gap 10ms
	one lognormal 40 --slots 8 --ttft 'lognormal(130ms,1)' --gap 10ms
	one batching 37.0 --batching --step 20ms --step-per-seq 1ms --max-seqs 8 # --print-capacity=32,8
}

case "${1:-}" in
virtual) virtual ;;
real) real ;;
*) sed -n '2,/^set/p' "$0" | grep '^#'; exit 2 ;;
esac
