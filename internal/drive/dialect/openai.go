package dialect

import "tare/internal/plan"

// newOpenAI returns the dialect of OpenAI's chat or completions endpoint, which most servers speak.
func newOpenAI(o Options, chat bool) *endpoint {
	accepts := plan.Features{Sampling: true, Model: true, Messages: true, CacheSalt: true, Priority: true}
	path, question, tools, limit := "/v1/completions", part{`,"prompt":`, promptOrIDs}, part{}, `,"max_tokens":`
	if chat {
		path, question, tools = "/v1/chat/completions", part{`,"messages":`, openAIMessages}, part{`,"tools":`, openAITools}
	}
	accepts.PromptIDs, accepts.Images, accepts.Videos, accepts.Audio, accepts.Tools = !chat, chat, chat, chat, chat
	if chat && o.MaxCompletionTokens {
		limit = `,"max_completion_tokens":`
	}
	return &endpoint{
		path: path, accepts: accepts,
		form: formOf(o, part{`{"model":`, modelName}, question, part{limit, outputTokens}, part{openAIOptions(o), noValue},
			fixed(o, `,"min_tokens":`), tools, part{`,"cache_salt":`, cacheSalt}, part{`,"priority":`, priority}, part{`}`, noValue}),
		read: func() Reader {
			r := &openAIReader{eventReader{streamed: o.Stream, secrets: o.Secrets}}
			r.grammar = r
			return r
		},
	}
}

// openAIOptions writes the part of a body that is the same for every request.
func openAIOptions(o Options) string {
	s := `,` + sampling(o) + `,"stream":` + truth(o.Stream)
	switch {
	case o.Stream && o.ContinuousUsage:
		s += `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`
	case o.Stream:
		s += `,"stream_options":{"include_usage":true}`
	}
	s += seeding(o, "seed") + ignoringEOS(o)
	if o.ResponseFormat != "" {
		s += `,"response_format":` + o.ResponseFormat
	}
	if o.ReturnTokenIDs {
		s += `,"return_token_ids":true`
	}
	return s
}
