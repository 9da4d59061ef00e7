// Package dialect says what the bytes of a request and of its reply mean to one kind of server.
package dialect

import (
	"fmt"
	"math"
	"strings"

	"tare/internal/plan"
	"tare/internal/record"
)

// Dialect speaks one server's language: it writes request bodies and starts readers for replies.
type Dialect interface {
	plan.Encoder
	Path() string           // appended to a base URL, escaped, with a query if need be: "/v1/chat/completions"
	Auth() Auth             // how the server wants to be spoken to
	Accepts() plan.Features // what a request may have besides a prompt and lengths
	Framing() string        // one of plan's framings of replies, whatever their type says; empty to go by that
	NewReader() Reader      // one for each event loop or connection; not safe for concurrent use
}

// Options are what a request asks for besides its prompt and lengths.
type Options struct {
	Model               string
	Stream              bool
	ContinuousUsage     bool          // token counts in every event (vLLM)
	ReturnTokenIDs      bool          // token ids in every event (vLLM)
	IgnoreEOS           bool          // go on to the asked length (vLLM, SGLang)
	MaxCompletionTokens bool          // chat: name the length limit max_completion_tokens, as OpenAI's reasoning models demand
	ResponseFormat      string        // JSON object; empty leaves it out (OpenAI's chat and completions)
	Temperature         float64       // always sent
	TopP                float64       // always sent
	Seed                uint64        // the server's sampling seed; 0 leaves it out
	Template            plan.Template // of endpoint template
	Secrets             []string      // masked wherever a server echoes them
}

// For returns the dialect of an endpoint.
func For(endpoint string, o Options) (Dialect, error) {
	for _, f := range []float64{o.Temperature, o.TopP} {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("temperature and top_p must be numbers, got %v and %v", o.Temperature, o.TopP)
		}
	}
	if err := o.lacking(endpoint); err != nil {
		return nil, err
	}
	var d Dialect
	switch endpoint {
	case plan.EndpointChat:
		d = newOpenAI(o, true)
	case plan.EndpointCompletions:
		d = newOpenAI(o, false)
	case plan.EndpointResponses:
		d = newResponses(o)
	case plan.EndpointAnthropic:
		d = newAnthropic(o)
	case plan.EndpointGemini:
		d = newGemini(o)
	case plan.EndpointTGI:
		d = newTGI(o)
	case plan.EndpointLlamaCpp:
		d = newLlamaCpp(o)
	case plan.EndpointSGLang:
		d = newSGLang(o)
	case plan.EndpointTriton:
		d = newTriton(o)
	case plan.EndpointOllama:
		d = newOllama(o)
	case plan.EndpointTemplate:
		t, err := newTemplate(o)
		if err != nil {
			return nil, err
		}
		d = t
	default:
		return nil, fmt.Errorf("endpoint %q is not known\nhint: endpoints are %s", endpoint, strings.Join(plan.Endpoints(), ", "))
	}
	return d, nil
}

// lacking refuses what an endpoint has no word for, lest a run be taken for what it is not.
func (o Options) lacking(endpoint string) error {
	openAI := endpoint == plan.EndpointChat || endpoint == plan.EndpointCompletions
	cannotGoOn := endpoint == plan.EndpointGemini || endpoint == plan.EndpointTGI || endpoint == plan.EndpointOllama ||
		endpoint == plan.EndpointTemplate && !o.Template.Has(plan.PlaceIgnoreEOS)
	switch {
	case o.ContinuousUsage && !openAI:
		return fmt.Errorf("target.continuous_usage: endpoint %s has no such option\nhint: leave it out", endpoint)
	case o.ReturnTokenIDs && !openAI:
		return fmt.Errorf("target.return_token_ids: endpoint %s has no such option\nhint: leave it out", endpoint)
	case o.ResponseFormat != "" && !openAI:
		return fmt.Errorf("target.response_format: endpoint %s has no such option\nhint: leave it out", endpoint)
	case o.IgnoreEOS && cannotGoOn:
		return fmt.Errorf("workload.ignore_eos: endpoint %s has no such option\nhint: leave it out; the report says how long the answers were", endpoint)
	}
	return nil
}

// Auth says how a server wants to be spoken to before it reads the body.
type Auth struct {
	KeyHeader string   // header that has the API key alone; empty for a bearer token
	Header    []string // further header lines, unless the user gives the same
}

// Reader gives the events of replies their meaning. All data is valid only during the call.
type Reader interface {
	// Glance reads an event whose shape has been seen before, without parsing it; ok is false when it must go to Read.
	// It costs some 50 ns and never allocates.
	Glance(a *Answer, name, data []byte) (m Meaning, ok bool)
	// Read parses an event. Events of one reply must come in order, whichever of the two reads them.
	Read(a *Answer, name, data []byte) Meaning
	// ReadDocument parses a whole reply that was not streamed.
	ReadDocument(a *Answer, body []byte) Meaning
}

// Meaning is what one event carried.
type Meaning struct {
	Kind   record.Kind
	Tokens int  // generated tokens in it, where Exact
	Exact  bool // the server said how many tokens
}
