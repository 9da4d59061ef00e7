#!/bin/bash
# Holds the search for the capacity to servers whose capacity is known.
#
#   bench/capacity.sh virtual   the tables of docs/capacity.md: event simulation in virtual time, some four minutes of one core
set -euo pipefail
cd "$(dirname "$0")/.."

virtual() {
	TARE_SEEDS=100 go test ./internal/judge/stats -count 1 -run StabilityKeeps -v
	TARE_SEEDS=20 go test ./internal/judge/capacity -count 1 -timeout 30m -run CapacityOfKnownServers -v
}

case "${1:-}" in
virtual) virtual ;;
*) sed -n '2,/^set/p' "$0" | grep '^#'; exit 2 ;;
esac
