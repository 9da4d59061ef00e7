#!/bin/bash
# Runs load generators in turns against the simulator, which writes down what it did, and prints for each what it reported
# minus that. bench/README.md says how to get the tools. A tool that is not there is named and skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

PEERS=${PEERS:?a folder with bin/k6 and the Python environments vllm, guidellm, inference-perf and aiperf}
RATES=${RATES:-100 500 1000 5000} # requests per second
RUNS=${RUNS:-3}
DURATION=${DURATION:-10}          # seconds of load
TOOLS=${TOOLS:-tare k6 vllm guidellm inference-perf aiperf}
TOKENIZER=${TOKENIZER:-$PEERS/tokenizer} # folder with tokenizer.json, for the tools that must have one
TOKENS=${TOKENS:-8}
SIM=${SIM:---ttft 50ms --gap 5ms}
LIMIT=${LIMIT:-120}               # seconds for one tool, start-up and evaluation included
OUT=${OUT:-$(mktemp -d)}

. bench/simulator.sh

there() {
	case $1 in
	tare) true ;;
	k6) [ -x "$PEERS/bin/k6" ] ;;
	*) [ -x "$PEERS/$1/bin/$1" ] ;;
	esac
}

# The simulator goes before the tools, as far as this user may have it so.
first=(nice -n -10)
"${first[@]}" true 2>/dev/null || { first=(); echo "comparison.sh: the simulator has no priority over the tools" >&2; }

# command_of TOOL RATE DIR: sets argv, the command line, and result, where it leaves its numbers.
command_of() {
	local n=$(($2 * DURATION)) env=$PEERS/$1/bin
	case $1 in
	tare)
		argv=("$OUT/tare" run "$URL" --model sim --arrival constant --rate "$2" --duration "${DURATION}s" --input-tokens 8
			--output-tokens "$TOKENS" --out "$3/run")
		result=$3/requests.jsonl ;;
	k6)
		printf '{"model":"sim","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":"a b c d e f g h"}]}' \
			"$TOKENS" >"$3/body.json"
		argv=(env RATE="$2" DURATION="${DURATION}s" BODY="$3/body.json" URL="$URL/v1/chat/completions" "$PEERS/bin/k6" run -q
			--summary-trend-stats "med,p(99)" --summary-export "$3/k6.json" bench/k6.js)
		result=$3/k6.json ;;
	vllm)
		argv=("$env/vllm" bench serve --backend openai-chat --base-url "$URL" --endpoint /v1/chat/completions --model sim
			--tokenizer "$TOKENIZER" --dataset-name random --random-input-len 8 --random-output-len "$TOKENS" --ignore-eos
			--num-prompts "$n" --request-rate "$2" --burstiness 1000000 --save-result --result-filename "$3/vllm.json"
			--disable-tqdm)
		result=$3/vllm.json ;;
	guidellm)
		argv=("$env/guidellm" run --backend "kind=openai_http,target=$URL,model=sim" --profile "kind=constant,rate=$2"
			--constraint "kind=max_duration,seconds=$DURATION" --tokenizer "kind=huggingface_auto,model=$TOKENIZER"
			--data "kind=synthetic_text,prompt_tokens=8,output_tokens=$TOKENS" --output "kind=json,path=$3/guidellm.json"
			--disable-console)
		result=$3/guidellm.json ;;
	inference-perf)
		cat >"$3/config.yml" <<-YAML
			api: {type: completion, streaming: true}
			data:
			  type: random
			  input_distribution: {min: 8, max: 8, mean: 8, std_dev: 0, total_count: $n}
			  output_distribution: {min: $TOKENS, max: $TOKENS, mean: $TOKENS, std_dev: 0, total_count: $n}
			load: {type: constant, stages: [{rate: $2, duration: $DURATION}], num_workers: $(nproc)}
			server: {type: vllm, model_name: sim, base_url: "$URL", ignore_eos: true}
			tokenizer: {pretrained_model_name_or_path: $TOKENIZER}
			storage: {local_storage: {path: $3/reports}}
		YAML
		argv=("$env/inference-perf" -c "$3/config.yml")
		result=$3/reports/stage_0_lifecycle_metrics.json ;;
	aiperf)
		argv=("$env/aiperf" profile --model sim --url "$URL" --endpoint-type chat --streaming --tokenizer "$TOKENIZER"
			--request-rate "$2" --request-rate-mode constant --request-count "$n" --synthetic-input-tokens-mean 8
			--output-tokens-mean "$TOKENS" --artifact-dir "$3/aiperf" --ui none)
		result=$3/aiperf/profile_export_aiperf.json ;;
	esac
}

mkdir -p "$OUT"
go build -o "$OUT/tare" ./cmd/tare
go build -o "$OUT/comparison" ./bench/comparison
: >"$OUT/lines.json"
for rate in $RATES; do
	for run in $(seq "$RUNS"); do
		for tool in $TOOLS; do
			if ! there "$tool"; then
				echo "$tool is not there: skipped" >&2
				continue
			fi
			dir=$OUT/$tool-$rate-$run
			mkdir -p "$dir"
			start_server "${first[@]}" "$OUT/tare" sim --truth "$dir/truth.jsonl" $SIM
			command_of "$tool" "$rate" "$dir"
			"$OUT/comparison" -tool "$tool" -rate "$rate" -- timeout "$LIMIT" "${argv[@]}" 2>"$dir/log" >"$dir/run.json"
			stop_server
			[ "$tool" != tare ] || "$OUT/tare" report "$dir/run" --requests jsonl >"$result" || true
			"$OUT/comparison" -truth "$dir/truth.jsonl" -result "$result" <"$dir/run.json" | tee -a "$OUT/lines.json"
			rm -f "$dir/truth.jsonl"
		done
	done
done
"$OUT/comparison" -table <"$OUT/lines.json"
