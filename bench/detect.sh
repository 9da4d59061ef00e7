#!/bin/sh
# Holds the gates to disturbances that are made on purpose: each must be caught by the gate that is meant for it, and a slow
# server must fail no gate on the client. Needs Linux and taskset; takes half a minute.
#
#   bench/detect.sh
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
started=""
finish() {
	for pid in $started; do kill -CONT "$pid" 2>/dev/null || true; kill "$pid" 2>/dev/null || true; done
	rm -rf "$work"
}
trap finish EXIT INT TERM
go build -o "$work/tare" ./cmd/tare

# serve PORT FLAGS: a simulated server
serve() {
	port=$1
	shift
	"$work/tare" sim --addr "127.0.0.1:$port" "$@" >"$work/sim.$port" 2>&1 &
	started="$started $!"
	until grep -q "$port" "$work/sim.$port"; do :; done
}

# load PORT NAME: five seconds of load
load() {
	exec taskset -c 0 "$work/tare" run "http://127.0.0.1:$1" --model sim --rate 100 --duration 5s --output-tokens 20 --quiet --out "$work/$2"
}

levels() { tr -d '\n' <"$work/$1/verdict.json" | sed 's/{/\n{/g' | sed -n 's/.*"id": "\([^"]*\)".*"level": "\([^"]*\)".*/\1 \2/p'; }

faults=0
# caught NAME GATES: one of the gates at least has failed
caught() {
	for gate in $2; do
		if levels "$1" | grep -qx "$gate failed"; then
			echo "ok    $1: $gate"
			return
		fi
	done
	echo "FAULT $1: none of $2 failed"
	faults=1
}

serve 18581 --ttft 20ms --gap 5ms
serve 18582 --ttft 2s --gap 50ms

load 18581 undisturbed >/dev/null &
wait $!
echo "      undisturbed: $(sed -n 's/.*"class": "\(.*\)".*/\1/p' "$work/undisturbed/verdict.json")"

load 18581 stopped >/dev/null &
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
started="$started $hogs"
load 18581 hogged >/dev/null &
wait $!
for pid in $hogs; do kill "$pid"; done
caught hogged "C8d"

load 18582 slow >/dev/null &
wait $!
if levels slow | grep -v '^C8[a-d]\|^C9\|^C1[01]' | grep '^C.* failed'; then
	echo "FAULT slow: a gate on the client failed"
	faults=1
else
	echo "ok    slow: no gate on the client failed"
fi
exit $faults
