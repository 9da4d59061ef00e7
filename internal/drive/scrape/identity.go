package scrape

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"tare/internal/record"
)

// settings are the arguments of servers that stay as they are while a process lives. Others, such as the number of requests so
// far, are in the same documents.
var settings = []string{
	"model_path", "tokenizer_path", "tp_size", "dp_size", "pp_size", "ep_size", "dtype", "quantization", "kv_cache_dtype", "context_length",
	"mem_fraction_static", "max_running_requests", "max_total_tokens", "chunked_prefill_size", "max_prefill_tokens", "schedule_policy", "disable_radix_cache",
	"attention_backend", "speculative_algorithm", "random_seed", // SGLang
	"model_id", "model_sha", "model_dtype", "max_concurrent_requests", "max_input_tokens", "max_batch_total_tokens", "max_batch_size", "sha", "docker_label", // TGI
	"build_info", "total_slots", // llama.cpp
}

// places are the paths at which the servers of a dialect say what they are, beside their models.
var places = map[string][]string{
	"vllm": {"/version"}, "sglang": {"/get_server_info"}, "tgi": {"/info"}, "llamacpp": {"/props"},
}

// identify asks a server what it is, as far as it says; nil where it is not to be asked, or says nothing.
func (l *looker) identify(ctx context.Context) *record.Identity {
	s := l.source.Server
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	var trip trips
	ctx = httptrace.WithClientTrace(ctx, trip.trace())
	id := &record.Identity{Settings: maps.Clone(l.told)}
	if id.Settings == nil {
		id.Settings = map[string]string{}
	}
	id.Models = models(l.object(ctx, "/v1/models"))
	for _, path := range places[l.kind] {
		o := l.object(ctx, path)
		id.Version = cmp.Or(id.Version, text(o, "version"), text(o, "build_info"))
		for _, key := range settings {
			if v, told := o[key]; told && v != nil {
				id.Settings[key] = fmt.Sprint(v)
			}
		}
	}
	id.RoundTrip = trip.found()
	if len(id.Models) == 0 && id.Version == "" && len(id.Settings) == 0 && id.RoundTrip == nil {
		return nil
	}
	return id
}

// object is the JSON object of a good reply, or nil.
func (l *looker) object(ctx context.Context, path string) (o map[string]any) {
	r, err := l.get(ctx, l.server, l.source.Server.Base+path, with(l.source.Server.Header, "Accept: application/json"))
	if err != nil || r.status != http.StatusOK || json.Unmarshal(r.body, &o) != nil {
		return nil
	}
	return o
}

// models are the names on a list in OpenAI's form, sorted.
func models(list map[string]any) (names []string) {
	data, _ := list["data"].([]any)
	for _, d := range data {
		o, _ := d.(map[string]any)
		if id := text(o, "id"); id != "" {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	return names
}

// text is a member of an object that is a string; empty for none.
func text(o map[string]any, key string) string {
	s, _ := o[key].(string)
	return s
}

// trips takes the time of the connections that are made.
type trips struct {
	lock  sync.Mutex // of hooks that are called by others' goroutines
	began map[string]time.Time
	times []time.Duration
}

// trace has hooks for the time between the first packet to an address and the first one back: names are looked up before it.
func (t *trips) trace() *httptrace.ClientTrace {
	t.began = map[string]time.Time{}
	return &httptrace.ClientTrace{
		ConnectStart: func(_, address string) {
			t.lock.Lock()
			defer t.lock.Unlock()
			t.began[address] = time.Now()
		},
		ConnectDone: func(_, address string, err error) {
			t.lock.Lock()
			defer t.lock.Unlock()
			if began, known := t.began[address]; known && err == nil {
				t.times = append(t.times, time.Since(began))
			}
		},
	}
}

// found is nil where no connection was made: the one of before was kept, or there is no network.
func (t *trips) found() *record.RoundTrip {
	t.lock.Lock()
	defer t.lock.Unlock()
	if len(t.times) == 0 {
		return nil
	}
	return &record.RoundTrip{MinMs: ms(slices.Min(t.times)), N: len(t.times)}
}
