#!/bin/bash
# Runs tare against a simulator that writes down its truth, at several loads, and prints for each what was recorded minus
# what was true. Client and server have a CPU each. bench/README.md says what the numbers are.
set -euo pipefail
cd "$(dirname "$0")/.."

RATES=${RATES:-1 100 1000 5000}  # requests per second, TTFT 50 ms and gap 10 ms, TOKENS tokens
DURATION=${DURATION:-20}         # seconds of load; the rate of 1 takes three times as long
TOKENS=${TOKENS:-16}
STREAMS=${STREAMS:-5000}         # open streams of the last case; 0 leaves it out
STREAM_GAP=${STREAM_GAP:-100}    # ms between its tokens: at 10 ms they would be 500,000 tokens/s, more than a core can send
STREAM_TOKENS=${STREAM_TOKENS:-32}
ENGINES=${ENGINES:-epoll goroutine}
CLIENT_CPU=${CLIENT_CPU:-0}
SERVER_CPU=${SERVER_CPU:-1}
SIM=${SIM:---procs 2 --hold-cpu} # further flags of the simulator
OUT=${OUT:-$(mktemp -d)}         # run directories and truth files; the truth of a case is removed after it

. bench/simulator.sh

# one NAME ENGINE RATE SECONDS TOKENS GAP
one() {
	local dir=$OUT/$1-$2 truth=$OUT/$1-$2.truth
	printf '\n### %s, engine %s: %s req/s for %s s, %s tokens, TTFT 50 ms, gap %s\n\n' "$1" "$2" "$3" "$4" "$5" "$6"
	start_server taskset -c "$SERVER_CPU" "$OUT/tare" sim --ttft 50ms --gap "$6" --truth "$truth" $SIM
	setpriv --pdeathsig TERM timeout $(($4 + 60)) taskset -c "$CLIENT_CPU" "$OUT/tare" run "$URL" --model sim --rate "$3" \
		--duration "$4s" --input-tokens 8 --output-tokens "$5" --engine "$2" --out "$dir" >"$dir.log" 2>&1 &
	wait $! || echo "the run ended with exit code $?, see $dir.log"
	stop_server # writes the rest of the truth
	"$OUT/accuracy" -truth "$truth" "$dir" || failed=1
	rm -f "$truth"
}

failed=0
mkdir -p "$OUT"
go build -o "$OUT/" ./bench/accuracy
if [ -n "${TARE:-}" ]; then cp "$TARE" "$OUT/tare"; else go build -o "$OUT/tare" ./cmd/tare; fi
ulimit -n "$(ulimit -Hn)"
grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- || true
echo "$(nproc) CPUs, Linux $(uname -r), $(go version | cut -d' ' -f3), load average before $(cut -d' ' -f1-3 /proc/loadavg)"
for engine in $ENGINES; do
	for rate in $RATES; do
		one "rate-$rate" "$engine" "$rate" $((rate == 1 ? 3 * DURATION : DURATION)) "$TOKENS" 10ms
	done
	if [ "$STREAMS" -gt 0 ]; then
		# streams in flight = rate × (50 ms + (tokens − 1) × gap)
		rate=$((STREAMS * 1000 / (50 + (STREAM_TOKENS - 1) * STREAM_GAP)))
		one "streams-$STREAMS" "$engine" "$rate" "$DURATION" "$STREAM_TOKENS" "${STREAM_GAP}ms"
	fi
done
echo
echo "results in $OUT"
exit "$failed"
