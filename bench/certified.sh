#!/bin/bash
# Tries for a CERTIFIED run on this machine: calibrates it, then has tare carry one load out five times against a simulator that takes half
# a second to the first token, and lists what stood between each run and CERTIFIED. Ends with 0 when there was nothing. Wants a
# quiet machine with two processors or more; takes eleven minutes.
#
#   bench/certified.sh
#   RATE=20 DURATION=120s bench/certified.sh
set -euo pipefail
cd "$(dirname "$0")/.."
RATE=${RATE:-50} DURATION=${DURATION:-60s} WARMUP=${WARMUP:-60s} RUNS=${RUNS:-5}
OUT=$(mktemp -d)
. bench/simulator.sh
trap 'stop_all; rm -rf "$OUT"' EXIT
go build -o "$OUT/tare" ./cmd/tare
export XDG_CACHE_HOME="$OUT/cache" # the calibration is this script's own; Go's builds have their cache there too

load=(--input-tokens 64 --output-tokens 32)
"$OUT/tare" calibrate "${load[@]}" 2>/dev/null
start_server "$OUT/tare" sim --ttft 'lognormal(500ms,0.3)' --gap 50ms
"$OUT/tare" run "$URL" --model sim "${load[@]}" --ignore-eos --rate "$RATE" --duration "$DURATION" --warmup "$WARMUP" \
	--repeat "$RUNS" --quiet --out "$OUT/runs"

# gates that were not passed at the certified level, one a line; what the server does not tell is not asked for
for run in "$OUT"/runs/run-*; do
	tr -d '\n' <"$run/verdict.json" | sed 's/{/\n{/g' | grep -v '"untold": true' |
		sed -n 's/.*"id": "\([^"]*\)".*"name": "\([^"]*\)".*"measured": "\([^"]*\)".*"level": "\([^"]*\)".*/\4|\1 \2: \3/p' |
		grep -v '^certified|\|^not_applicable|' | sed "s,^,$(basename "$run")|," || true
done | column -t -s '|'
sed -n '/"verdict"/,/"class"/s/.*"class": "\(.*\)".*/\1/p' "$OUT/runs/replications.json" | grep -qx CERTIFIED
