#!/bin/bash
# Runs tare and other load generators against tare's fastest server, one after another, client and server on a CPU each,
# and prints tables in Markdown. bench/README.md says what the numbers are.
set -euo pipefail
cd "$(dirname "$0")/.."

RUNS=${RUNS:-3}                         # repetitions; the tools take turns within each
DURATION=${DURATION:-10}                # seconds of load
PROFILES=${PROFILES:-coal tok closed}   # and limit: the highest rate kept
RATES=${RATES:-1000 5000 20000}         # requests per second of profile coal
TOK_RATES=${TOK_RATES:-300 1000}        # requests per second of profile tok, 32 tokens each
CONCURRENCY=${CONCURRENCY:-64}          # requests in flight of profile closed
LADDER=${LADDER:-2000 3000 4000 6000 8000 10000 13000 17000 22000 28000 36000 45000 55000 65000 80000}
LIMIT_DURATION=${LIMIT_DURATION:-5}     # seconds of load on each step of profile limit
TOOLS=${TOOLS:-tare-epoll tare-goroutine net/http net/http+json vegeta k6 wrk hey}
PEERS=${PEERS:-}                        # a folder looked into before PATH
CLIENT_CPU=${CLIENT_CPU:-0}
SERVER_CPU=${SERVER_CPU:-1}
CONNECTIONS=${CONNECTIONS:-256}
SIM_COAL=${SIM_COAL:---null --procs 2 --spin}
SIM_TOK=${SIM_TOK:---null --ttft 5ms --gap 2ms --procs 2 --spin}
OUT=${OUT:-$(mktemp -d)}                # lines.jsonl and the tools' own results

PATH=${PEERS:+$PEERS:}$PATH
RESULTS=$OUT/lines.jsonl
. bench/simulator.sh

build() {
	mkdir -p "$OUT/bin"
	go build -o "$OUT/bin/" ./bench/nethttp ./bench/peers
	if [ -n "${TARE:-}" ]; then cp "$TARE" "$OUT/bin/tare"; else go build -o "$OUT/bin/tare" ./cmd/tare; fi
	ulimit -n "$(ulimit -Hn)"
}

# simulate FLAGS...: the simulator on its CPU.
simulate() { start_server taskset -c "$SERVER_CPU" "$OUT/bin/tare" sim "$@"; }

# body TOKENS: the request that every peer sends, and files that say so in their languages.
body() {
	local json='{"model":"m","messages":[{"role":"user","content":"Count to ten."}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":'$1'}'
	printf %s "$json" >"$OUT/body.json"
	printf 'POST %s\nContent-Type: application/json\n@%s\n' "$URL/v1/chat/completions" "$OUT/body.json" >"$OUT/targets.txt"
	printf 'wrk.method = "POST"\nwrk.body = [[%s]]\nwrk.headers["Content-Type"] = "application/json"\n' "$json" >"$OUT/post.lua"
}

# one PROFILE TOOL ASKED TOKENS ROUND SECONDS: one measurement; ASKED 0 is the closed loop.
one() {
	local profile=$1 tool=$2 asked=$3 tokens=$4 round=$5 seconds=$6
	local art="$OUT/$profile-${tool//\//-}-$asked-$round" format=$tool load=(--rate "$asked") command
	case $tool in
	tare-*)
		format=tare
		[ "$asked" != 0 ] || load=(--concurrency "$CONCURRENCY")
		command=("$OUT/bin/tare" run "$URL" --model m --arrival constant "${load[@]}" --duration "${seconds}s" --input-tokens 8
			--output-tokens "$tokens" --engine "${tool#tare-}" --out "$art")
		;;
	net/http*)
		format=nethttp
		[ "$asked" != 0 ] || load=(--concurrency "$CONCURRENCY")
		[ "$tool" != net/http+json ] || load+=(--json)
		command=("$OUT/bin/nethttp" --url "$URL" "${load[@]}" --duration "${seconds}s" --tokens "$tokens" --conns "$CONNECTIONS")
		;;
	vegeta)
		command=(vegeta attack -targets="$OUT/targets.txt" -rate="$asked" -duration="${seconds}s" -max-body=0
			-connections="$CONNECTIONS" -output="$art")
		;;
	k6)
		command=(k6 run --quiet --no-usage-report --summary-export="$art" -e RATE="$asked" -e DURATION="${seconds}s"
			-e URL="$URL/v1/chat/completions" -e BODY="$OUT/body.json" bench/k6.js)
		;;
	wrk) command=(wrk -t1 -c"$CONCURRENCY" -d"${seconds}s" -s "$OUT/post.lua" "$URL/v1/chat/completions") ;;
	hey) command=(hey -z "${seconds}s" -c "$CONCURRENCY" -m POST -T application/json -D "$OUT/body.json" "$URL/v1/chat/completions") ;;
	esac
	kill -0 "$server" 2>/dev/null || { echo "peers.sh: the simulator has ended, see $OUT/sim.log" >&2; exit 1; }
	echo "$profile $tool asked=$asked round=$round" >&2
	setpriv --pdeathsig TERM "$OUT/bin/peers" measure -profile "$profile" -tool "$tool" -format "$format" -asked "$asked" -tokens "$tokens" \
		-round "$round" -duration "${seconds}s" -server "$server" -artefact "$art" -out "$RESULTS" -- \
		taskset -c "$CLIENT_CPU" "${command[@]}" &
	wait $! # a trap does not wait for a command in the foreground
}

# usable TOOL KIND: whether a tool can make that load and is here. A missing one is named once.
missing=" "
usable() {
	case "$1:$2" in
	tare-*:* | net/http*:*) return 0 ;;
	vegeta:open | k6:open | wrk:closed | hey:closed) ;;
	*) return 1 ;;
	esac
	command -v "$1" >/dev/null && return 0
	[[ $missing == *" $1 "* ]] || { missing+="$1 "; echo "peers.sh: $1 is not installed: skipped" | tee -a "$OUT/skipped" >&2; }
	return 1
}

open_profile() {
	local profile=$1 tokens=$2 rate round tool
	shift 2
	body "$tokens"
	for rate in "$@"; do
		for round in $(seq "$RUNS"); do
			for tool in $TOOLS; do
				! usable "$tool" open || one "$profile" "$tool" "$rate" "$tokens" "$round" "$DURATION"
			done
		done
	done
}

closed_profile() {
	local round tool
	body 16
	for round in $(seq "$RUNS"); do
		for tool in $TOOLS; do
			! usable "$tool" closed || one closed "$tool" 0 16 "$round" "$DURATION"
		done
	done
}

# limit_profile: each tool climbs the ladder until two steps in a row fail.
limit_profile() {
	local round tool rate misses
	for round in $(seq "$RUNS"); do
		for tool in $TOOLS; do
			case $tool in tare-* | net/http*) ;; *) continue ;; esac
			misses=0
			for rate in $LADDER; do
				one limit "$tool" "$rate" 16 "$round" "$LIMIT_DURATION"
				if "$OUT/bin/peers" within "$RESULTS" 2>/dev/null; then misses=0; else misses=$((misses + 1)); fi
				[ "$misses" -lt 2 ] || break
			done
		done
	done
}

machine() {
	grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- || true
	echo "$(nproc) CPUs, Linux $(uname -r), $(go version | cut -d' ' -f3), load average before $(cut -d' ' -f1-3 /proc/loadavg)"
	echo "client on CPU $CLIENT_CPU, server on CPU $SERVER_CPU; $RUNS runs of $DURATION s, min / median / max"
}

for tool in $TOOLS; do
	case $tool in
	tare-epoll | tare-goroutine | net/http | net/http+json | vegeta | k6 | wrk | hey) ;;
	*) echo "peers.sh: TOOLS: unknown tool $tool" >&2 && exit 2 ;;
	esac
done
mkdir -p "$OUT"
build
machine >"$OUT/machine"
for profile in $PROFILES; do
	case $profile in
	tok) simulate $SIM_TOK && open_profile tok 32 $TOK_RATES ;;
	coal) simulate $SIM_COAL && open_profile coal 16 $RATES ;;
	closed) simulate $SIM_COAL && closed_profile ;;
	limit) simulate $SIM_COAL && limit_profile ;;
	*) echo "peers.sh: unknown profile $profile: want coal, tok, closed or limit" >&2 && exit 2 ;;
	esac
	stop_server
done
cat "$OUT/machine"
[ ! -e "$OUT/skipped" ] || cat "$OUT/skipped"
"$OUT/bin/peers" table "$RESULTS"
echo
echo "results in $OUT"
