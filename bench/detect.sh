#!/bin/bash
# Holds the gates to disturbances that are made on purpose: each must be caught by the gate that is meant for it, and a slow
# server must fail no gate on the client. Needs Linux and taskset; takes half a minute.
#
#   bench/detect.sh
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=$(mktemp -d)
. bench/simulator.sh
trap 'stop_all; rm -rf "$OUT"' EXIT
go build -o "$OUT/tare" ./cmd/tare

# load URL NAME: five seconds of load
load() {
	exec taskset -c 0 "$OUT/tare" run "$1" --model sim --rate 100 --duration 5s --output-tokens 20 --quiet --out "$OUT/$2"
}

levels() { tr -d '\n' <"$OUT/$1/verdict.json" | sed 's/{/\n{/g' | sed -n 's/.*"id": "\([^"]*\)".*"level": "\([^"]*\)".*/\1 \2/p'; }

faults=0
# caught NAME GATES: one of the gates at least has failed
caught() {
	for gate in $2; do
		if levels "$1" | grep -x "$gate failed" >/dev/null; then
			echo "ok    $1: $gate"
			return
		fi
	done
	echo "FAULT $1: none of $2 failed"
	faults=1
}

start_server "$OUT/tare" sim --ttft 20ms --gap 5ms
quick=$URL
start_server "$OUT/tare" sim --ttft 2s --gap 50ms
slow=$URL

load "$quick" undisturbed >/dev/null &
wait $!
echo "      undisturbed: $(sed -n 's/.*"class": "\(.*\)".*/\1/p' "$OUT/undisturbed/verdict.json")"

load "$quick" stopped >/dev/null &
client=$!
sleep 2.5
kill -STOP $client
sleep 1
kill -CONT $client
wait $client
caught stopped "C3"

hogs=""
for i in 1 2 3; do
	taskset -c 0 sh -c 'while :; do :; done' &
	hogs="$hogs $!"
done
load "$quick" hogged >/dev/null &
wait $!
for pid in $hogs; do kill "$pid"; done
caught hogged "C8d"

load "$slow" slow >/dev/null &
wait $!
if levels slow | grep -v '^C8[a-d]\|^C9\|^C1[01]' | grep '^C.* failed'; then
	echo "FAULT slow: a gate on the client failed"
	faults=1
else
	echo "ok    slow: no gate on the client failed"
fi
exit $faults
