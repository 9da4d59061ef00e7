package plan

import "time"

// Names of what a spec can choose between.
const (
	EndpointChat        = "openai-chat"
	EndpointCompletions = "openai-completions"
	EndpointResponses   = "openai-responses"
	EndpointAnthropic   = "anthropic-messages"
	EndpointGemini      = "gemini"
	EndpointTGI         = "tgi"
	EndpointLlamaCpp    = "llamacpp"
	EndpointSGLang      = "sglang"
	EndpointTriton      = "triton"
	EndpointOllama      = "ollama"
	EndpointTemplate    = "template"

	ArrivalConstant = "constant"
	ArrivalPoisson  = "poisson"
	ArrivalGamma    = "gamma"
	ArrivalWeibull  = "weibull"
	ArrivalMMPP     = "mmpp"
	ArrivalClients  = "clients"
	ArrivalTrace    = "trace"

	TextWords  = "words"
	TextMarkov = "markov"
	TextCorpus = "corpus"
	TextRandom = "random"
	TextIDs    = "ids"

	CacheAsIs   = "as-is"
	CacheCold   = "cold"
	CacheSalted = "salted"
	CacheWarm   = "warm"

	SamplingGreedy  = "greedy"
	SamplingProduct = "product"

	TokenizerEmbedded = "embedded"

	OutputRecorded = "recorded"
	OutputAsked    = "asked"

	PlaceBefore = "before"
	PlaceBehind = "behind"

	ThinkConstant    = "constant"
	ThinkExponential = "exponential"

	HTTP11 = "1.1"
	HTTP2  = "2"

	EngineAuto      = "auto"
	EngineEpoll     = "epoll"
	EngineGoroutine = "goroutine"
)

// Endpoints returns the names of all endpoints.
func Endpoints() []string {
	return []string{
		EndpointChat, EndpointCompletions, EndpointResponses, EndpointAnthropic, EndpointGemini, EndpointTGI, EndpointLlamaCpp,
		EndpointSGLang, EndpointTriton, EndpointOllama, EndpointTemplate,
	}
}

// Processes returns the names of the processes of arrivals that a stage may have.
func Processes() []string {
	return []string{ArrivalConstant, ArrivalPoisson, ArrivalGamma, ArrivalWeibull, ArrivalMMPP, ArrivalClients}
}

// Arrivals returns the names of all arrivals.
func Arrivals() []string { return append(Processes(), ArrivalTrace) }

// Spec is what a user asks for. Its YAML keys are the names users write; flags set the same fields.
//
// A Spec is printed without its secrets: String, YAML and MarshalJSON mask them.
type Spec struct {
	Target   Target   `yaml:"target"`
	Load     Load     `yaml:"load"`
	Workload Workload `yaml:"workload"`
	Client   Client   `yaml:"client"`

	ServerMetrics ServerMetrics `yaml:"server_metrics"`
	SLO           []string      `yaml:"slo"`        // objectives: "ttft.p99 < 500ms"
	SLOTarget     float64       `yaml:"slo_target"` // share of the planned requests that is to be good

	Out string `yaml:"out"` // run directory; empty for a new one named by time under ./runs
}

// Target says which server and how to speak to it.
type Target struct {
	URL             string            `yaml:"url"` // base (http://host:port[/prefix]) or full path; several are separated by spaces
	Model           string            `yaml:"model"`
	Endpoint        string            `yaml:"endpoint"` // one of Endpoints
	Stream          bool              `yaml:"stream"`
	ContinuousUsage bool              `yaml:"continuous_usage"` // ask for token counts in every event (vLLM)
	ReturnTokenIDs  bool              `yaml:"return_token_ids"` // ask for token ids in every event (vLLM)
	Headers         map[string]string `yaml:"headers"`          // extra request headers
	SessionHeader   string            `yaml:"session_header"`   // that names the session of each request; empty for none
	ResponseFormat  string            `yaml:"response_format"`  // JSON object that requests have under that name; empty for none
	APIKeyEnv       string            `yaml:"api_key_env"`      // environment variable that holds the API key
	APIKeyFile      string            `yaml:"api_key_file"`     // file that holds it, in place of the environment
	APIKeyHeader    string            `yaml:"api_key_header"`   // header it goes into; empty for the endpoint's own way
	Timeout         time.Duration     `yaml:"timeout"`          // whole request, from its first write
	ConnectTimeout  time.Duration     `yaml:"connect_timeout"`
	IdleTimeout     time.Duration     `yaml:"idle_timeout"` // idle connections are closed after this, before the server does
	HTTP            string            `yaml:"http"`         // version: HTTP11 or HTTP2
	Reuse           bool              `yaml:"reuse"`        // a connection carries one request after another
	Insecure        bool              `yaml:"insecure"`     // skip certificate checks
	CAFile          string            `yaml:"ca_file"`
	ClientCertFile  string            `yaml:"client_cert_file"`
	ClientKeyFile   string            `yaml:"client_key_file"`
	ServerName      string            `yaml:"server_name"` // that the certificate must be for; empty for the URL's host
	Template        Template          `yaml:"template"`    // of endpoint template

	HeaderTimeout     time.Duration `yaml:"header_timeout"`      // from the first write to the end of the header block; 0 for none
	FirstTokenTimeout time.Duration `yaml:"first_token_timeout"` // from the first write to the first token; 0 for none
	TokenTimeout      time.Duration `yaml:"token_timeout"`       // from token to token; 0 for none
	Retries           int           `yaml:"retries"`             // further attempts of a request that got no token
}

// Load says when requests are sent.
type Load struct {
	Seed        uint64        `yaml:"seed"`
	Arrival     string        `yaml:"arrival"`       // one of Arrivals
	Burstiness  float64       `yaml:"burstiness"`    // shape of gamma or Weibull gaps; 1 is Poisson
	States      string        `yaml:"states"`        // of mmpp: WEIGHT:SOJOURN …
	Clients     string        `yaml:"clients"`       // of clients: SHARE:ARRIVAL[:SHAPE][*N] …
	ThinkTime   time.Duration `yaml:"think_time"`    // mean, of closed stages
	Think       string        `yaml:"think_process"` // constant or exponential, which it is if empty
	Warmup      time.Duration `yaml:"warmup"`        // extra load of the first stage's kind, before it, left out of the totals
	Drain       time.Duration `yaml:"drain"`         // longest wait for replies after the last stage
	Stages      []LoadStage   `yaml:"stages"`
	Rate        float64       `yaml:"rate"`        // requests per second: short form of a single stage
	Concurrency int           `yaml:"concurrency"` // requests in flight: short form of a single closed stage
	MaxInFlight int           `yaml:"max_in_flight"`
	Requests    int64         `yaml:"requests"`
	Duration    time.Duration `yaml:"duration"`
}

// LoadStage is one part of the load. It has either a rate or a concurrency, and a duration, a count, or both.
type LoadStage struct {
	Name        string        `yaml:"name"`
	Rate        float64       `yaml:"rate"`    // requests per second
	RateTo      float64       `yaml:"rate_to"` // requests per second at the end: a linear ramp
	Concurrency int           `yaml:"concurrency"`
	StartRate   float64       `yaml:"start_rate"`    // places of a closed stage that begin per second; 0 for all at once
	MaxInFlight int           `yaml:"max_in_flight"` // admission limit of an open stage; the wait counts from due
	Duration    time.Duration `yaml:"duration"`
	Requests    int64         `yaml:"requests"`
	Gap         time.Duration `yaml:"gap"` // idle time before the stage

	// What is not given here is the load's.
	Arrival    string        `yaml:"arrival"`
	Burstiness float64       `yaml:"burstiness"`
	States     string        `yaml:"states"`
	Clients    string        `yaml:"clients"`
	ThinkTime  time.Duration `yaml:"think_time"`
	Think      string        `yaml:"think_process"`

	Amplitude  float64       `yaml:"amplitude"` // of a wave: fraction of the rate
	Period     time.Duration `yaml:"period"`
	Phase      float64       `yaml:"phase"`      // part of the period that is over at the start
	SpikeRate  float64       `yaml:"spike_rate"` // requests per second
	SpikeAt    time.Duration `yaml:"spike_at"`   // from the start of the stage
	SpikeWidth time.Duration `yaml:"spike_width"`
}

// Workload says what is sent.
type Workload struct {
	InputTokens  Lengths `yaml:"input_tokens"` // of what a prompt has of its own
	OutputTokens Lengths `yaml:"output_tokens"`
	IgnoreEOS    bool    `yaml:"ignore_eos"` // ask the server to go on to output_tokens
	Sampling     string  `yaml:"sampling"`   // greedy or product: what temperature and top_p are unless they are given
	Temperature  float64 `yaml:"temperature"`
	TopP         float64 `yaml:"top_p"`
	SamplingSeed uint64  `yaml:"sampling_seed"` // the server's; 0 for none

	Text         string `yaml:"text"`          // where the words of prompts come from
	TextFile     string `yaml:"text_file"`     // what markov and corpus take them from; empty for an embedded one
	Tokenizer    string `yaml:"tokenizer"`     // file, or embedded; empty for words of one token
	ChatTemplate string `yaml:"chat_template"` // file; with it, its tokens count too
	SystemTokens int    `yaml:"system_tokens"` // of a system message that all requests have
	Prefix       Prefix `yaml:"prefix"`
	Cache        string `yaml:"cache"` // what the server's prefix cache is to find
	Tools        string `yaml:"tools"` // file

	Images  Images  `yaml:"images"`
	Videos  Videos  `yaml:"videos"`
	Audio   Audio   `yaml:"audio"`
	Dataset Dataset `yaml:"dataset"`
	Trace   Trace   `yaml:"trace"`
	Classes []Class `yaml:"classes"`

	Conversation Conversation `yaml:"conversation"`

	SHA256 map[string]string `yaml:"sha256"` // of the files, by the key that names them
}

// Prefix is what prompts have in common: each begins with the text of one of several groups.
type Prefix struct {
	Groups int     `yaml:"groups"`
	Tokens int     `yaml:"tokens"`
	Zipf   float64 `yaml:"zipf"`  // exponent: group k has the weight k^−zipf; 0 for all alike
	Block  int     `yaml:"block"` // tokens that the server's cache keeps together
}

// Images are pictures beside a prompt.
type Images struct {
	Count  Lengths `yaml:"count"` // of a prompt; empty for none
	Width  int     `yaml:"width"` // pixels
	Height int     `yaml:"height"`
	Format string  `yaml:"format"` // png or jpeg
	Place  string  `yaml:"place"`  // before or behind the text
	Sizes  string  `yaml:"sizes"`  // "1920x1080*3 640x640", drawn by weight; empty for width and height
}

// Videos are films beside a prompt.
type Videos struct {
	Count  Lengths `yaml:"count"`
	Sizes  string  `yaml:"sizes"` // as those of images
	Frames int     `yaml:"frames"`
	Place  string  `yaml:"place"`
}

// Audio is sounds beside a prompt.
type Audio struct {
	Count   Lengths `yaml:"count"`
	Lengths string  `yaml:"lengths"` // "5s*3 30s", drawn by weight
	Place   string  `yaml:"place"`
}

// Dataset is a file of conversations and prompts, and which of them are used.
type Dataset struct {
	File     string `yaml:"file"`
	Format   string `yaml:"format"`   // empty to tell by its content
	Preset   string `yaml:"preset"`   // rules of another tool; empty for turns and order
	Columns  string `yaml:"columns"`  // "prompt=question output=answer"
	Template string `yaml:"template"` // "{{title}}: {{text}}", in place of the column prompt
	Turns    string `yaml:"turns"`
	Order    string `yaml:"order"`
	Output   string `yaml:"output"` // recorded or asked
}

// Trace is a recording of real load.
type Trace struct {
	File   string        `yaml:"file"`   // or directory
	Format string        `yaml:"format"` // empty to tell by its content
	Scale  float64       `yaml:"scale"`  // offsets are multiplied by it
	Thin   float64       `yaml:"thin"`   // fraction of requests kept
	From   time.Duration `yaml:"from"`
	Until  time.Duration `yaml:"until"`
	Sort   bool          `yaml:"sort"`
	Block  int           `yaml:"block"` // tokens that one of its block ids stands for; 0 for the format's own

	Grid        time.Duration `yaml:"grid"`         // of its times, where they are on one that is not seen
	KeepGrid    bool          `yaml:"keep_grid"`    // leave times on their grid
	Sessions    bool          `yaml:"sessions"`     // send whole sessions: a call waits for those that it came after
	Pauses      string        `yaml:"pauses"`       // what lies between them: PausesRecorded, PausesThink or PausesNone; empty for recorded
	MaxGap      time.Duration `yaml:"max_gap"`      // longer ones are cut to it; 0 for none
	MinCalls    int           `yaml:"min_calls"`    // of a session that is used
	MaxCalls    int           `yaml:"max_calls"`    // 0 for any
	MinSessions int           `yaml:"min_sessions"` // of a load that ends with the recording: it is begun again until there are so many
	Class       string        `yaml:"class"`        // span attribute that names the class; otel
	Headers     string        `yaml:"headers"`      // "ATTRIBUTE=NAME …": span attributes that requests have as headers; otel
	Models      string        `yaml:"models"`       // "RECORDED=SENT …"; what is not named goes to target.model
}

// Class is one kind of requests: those of a tenant or an adapter.
type Class struct {
	Name         string  `yaml:"name"`
	Weight       float64 `yaml:"weight"`
	Model        string  `yaml:"model"`        // in place of target.model
	InputTokens  Lengths `yaml:"input_tokens"` // what is not given here is the workload's
	OutputTokens Lengths `yaml:"output_tokens"`
	PrefixGroups int     `yaml:"prefix_groups"`
	PrefixTokens int     `yaml:"prefix_tokens"`

	Priority int      `yaml:"priority"` // sent with each request; once one class has one, every class's is sent
	SLO      []string `yaml:"slo"`      // in place of the spec's
}

// Client says how this machine carries the plan out.
type Client struct {
	Engine      string        `yaml:"engine"`      // auto, epoll or goroutine
	Loops       int           `yaml:"loops"`       // event loops or pacers; 0 to choose for the machine
	Procs       int           `yaml:"procs"`       // GOMAXPROCS; 0 to choose
	Connections int           `yaml:"connections"` // dialled before the start; 0 to choose
	Spin        time.Duration `yaml:"spin"`        // busy wait before each due time; costs a core
}

// Defaults returns a spec in which every key has its default. Target and load are still to be given.
func Defaults() Spec {
	s := Spec{
		Target: Target{
			Endpoint: EndpointChat, Stream: true, APIKeyEnv: keyVariable(EndpointChat), Timeout: 2 * time.Minute,
			ConnectTimeout: 10 * time.Second, IdleTimeout: 4 * time.Second, HTTP: HTTP11, Reuse: true,
		},
		Load: Load{Seed: 1, Arrival: ArrivalPoisson, Burstiness: 1},
		Workload: Workload{
			InputTokens: "128", OutputTokens: "32", Sampling: SamplingGreedy, TopP: 1, Text: TextWords, Cache: CacheAsIs,
			Prefix: Prefix{Block: 16}, Images: Images{Width: 512, Height: 512, Format: "png", Place: PlaceBehind},
			Videos: Videos{Sizes: "640x360", Frames: 24, Place: PlaceBehind}, Audio: Audio{Lengths: "5s", Place: PlaceBehind},
			Dataset: Dataset{Turns: "whole", Order: "file", Output: OutputRecorded}, Conversation: Conversation{Turns: "1", History: HistoryLive},
		},
		Client:        Client{Engine: EngineAuto},
		ServerMetrics: ServerMetrics{Every: time.Second, Timeout: 2 * time.Second},
		SLOTarget:     0.99,
	}
	s.Load.Drain = s.Target.Timeout
	return s
}

// keyVariable is where the key of an endpoint's service usually is, so that no service is sent another one's.
func keyVariable(endpoint string) string {
	switch endpoint {
	case EndpointAnthropic:
		return "ANTHROPIC_API_KEY"
	case EndpointGemini:
		return "GEMINI_API_KEY"
	}
	return "OPENAI_API_KEY"
}
