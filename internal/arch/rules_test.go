package arch

// imports is the whole table of who may import whom inside the module. A package that is not here fails the test: deciding
// where it stands comes before writing it. Test files are free.
var imports = map[string][]string{
	"cmd/tare": {"internal/drive", "internal/drive/calibrate", "internal/drive/dialect", "internal/drive/probe", "internal/drive/scrape", "internal/judge", "internal/judge/capacity", "internal/judge/compare", "internal/judge/stats", "internal/judge/verdict", "internal/live", "internal/plan", "internal/plan/infperf", "internal/record", "internal/report", "internal/report/export", "internal/sim"},

	"internal/plan":          {"internal/objective", "internal/plan/dataset", "internal/plan/draw", "internal/plan/input", "internal/plan/schedule", "internal/plan/store", "internal/plan/tokenizer", "internal/plan/tokenizer/chat", "internal/plan/trace", "internal/plan/workload"},
	"internal/plan/infperf":  {"internal/plan"},
	"internal/plan/draw":     {},
	"internal/plan/schedule": {"internal/plan/draw"},
	"internal/plan/store":    {},
	"internal/plan/workload": {"internal/plan/draw"},

	"internal/plan/tokenizer":      {"internal/plan/draw"},
	"internal/plan/tokenizer/chat": {},
	"internal/plan/input":          {},
	"internal/plan/dataset":        {"internal/plan/draw", "internal/plan/input"},
	"internal/plan/trace":          {"internal/plan/draw", "internal/plan/input"},

	"internal/drive":           {"internal/drive/clock", "internal/drive/dialect", "internal/drive/health", "internal/drive/scrape", "internal/drive/wire", "internal/plan", "internal/record"},
	"internal/drive/calibrate": {"internal/record"},
	"internal/drive/clock":     {},
	"internal/drive/health":    {"internal/drive/clock", "internal/record"},
	"internal/drive/scrape":    {"internal/drive/clock", "internal/record"},
	"internal/drive/wire":      {"internal/drive/clock"},
	"internal/drive/dialect":   {"internal/plan", "internal/record"},
	"internal/drive/probe":     {"internal/drive", "internal/drive/dialect", "internal/drive/wire", "internal/plan", "internal/record"},

	"internal/objective": {},

	"internal/record": {},

	"internal/judge":         {"internal/judge/bias", "internal/judge/measure", "internal/judge/stats", "internal/judge/verdict", "internal/objective", "internal/record"},
	"internal/judge/compare": {"internal/judge", "internal/judge/measure", "internal/judge/stats", "internal/judge/verdict", "internal/record"},
	"internal/judge/measure": {"internal/judge/stats", "internal/record"},
	"internal/judge/stats":   {},
	"internal/judge/bias":    {},
	"internal/judge/verdict": {"internal/judge/measure", "internal/judge/stats", "internal/record"},

	"internal/judge/capacity": {"internal/judge", "internal/judge/measure", "internal/judge/stats", "internal/judge/verdict", "internal/record"},

	"internal/report": {"internal/judge", "internal/judge/capacity", "internal/judge/compare", "internal/judge/measure", "internal/judge/stats", "internal/judge/verdict", "internal/objective", "internal/record"},

	"internal/report/export": {"internal/judge", "internal/judge/measure", "internal/judge/stats", "internal/record", "internal/report"},

	"internal/live": {"internal/judge/measure", "internal/record"},
	"internal/sim":  {}, // the truth must not share our errors
	"internal/arch": {},
}

// ban forbids names in a part of the module.
type ban struct {
	in     []string // folders, with all below
	except []string // folders inside them that may
	names  []string // an import path, or an import path and a name: "os.Exit"
	why    string
}

var bans = []ban{
	{
		in:    []string{"internal/judge", "internal/report"},
		names: []string{"net", "net/http", "net/url", "os/signal", "golang.org/x/sys/unix"},
		why:   "numbers come from files, not from the network",
	},
	{
		in: []string{"internal/judge", "internal/report", "internal/plan"},
		names: []string{
			"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.Tick", "time.NewTimer", "time.NewTicker",
		},
		why: "the same input must give the same result at any time",
	},
	{
		in:     []string{"internal/plan"},
		except: []string{"internal/plan/draw"},
		names:  []string{"math/rand/v2", "crypto/rand"},
		why:    "a plan is a function of its spec and seed, on every machine",
	},
	{
		in:    []string{"internal/plan"},
		names: []string{"net", "net/http"},
		why:   "what will be sent does not depend on who is there",
	},
	{
		in:    []string{"internal/record"},
		names: []string{"net", "net/http", "time.Now", "time.Since"},
		why:   "facts are written down here, not gathered",
	},
	{
		in:    []string{"internal"},
		names: []string{"os.Args", "os.Exit", "os/signal", "flag", "github.com/spf13/cobra", "log.Fatal", "log.Fatalf", "log.Fatalln"},
		why:   "the command line, signals and the exit belong to cmd",
	},
	{
		in:    []string{"internal", "cmd"},
		names: []string{"time.Sleep", "C", "math/rand", "io/ioutil"},
		why:   "a wait also watches its context; no cgo; no shared generator",
	},
}

// noGoroutines are the folders that start none.
var noGoroutines = []string{"internal/judge", "internal/record", "internal/plan"}

// nameless are folder names that say nothing of what is inside.
var nameless = []string{
	"base", "common", "core", "helper", "helpers", "lib", "manager", "misc", "model", "models", "pkg", "shared", "types", "util", "utils",
}
