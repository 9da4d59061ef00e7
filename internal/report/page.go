package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"

	"tare/internal/judge"
)

// PageFile is the name of the page in a run directory.
const PageFile = "report.html"

//go:embed page
var page embed.FS

// runScripts are those of the page of one run in their order.
var runScripts = []string{"fault.js", "uPlot.iife.min.js", "numbers.js", "charts.js", "verdict.js", "load.js", "shape.js", "slo.js", "time.js", "requests.js", "server.js", "client.js", "facts.js", "page.js"}

// Page writes a run as one HTML file that needs nothing else: styles, scripts, the summary as summary.json has it, and the detail
// that its charts draw. Nothing in it can make a browser ask for anything: its policy allows these very scripts and nothing else.
func Page(w io.Writer, s *judge.Summary, d *judge.Detail) error {
	return fillPage(w, runScripts, struct {
		Summary *judge.Summary `json:"summary"`
		Detail  *judge.Detail  `json:"detail"`
	}{s, d})
}

// fillPage writes a page that these scripts draw from data.
func fillPage(w io.Writer, scripts []string, data any) error {
	parts, err := pageParts(scripts)
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	held, err := json.Marshal(data) // it writes <, > and & as \u003c, \u003e and \u0026: no character in it means anything to HTML
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	parts.Data = string(held)
	text, err := page.ReadFile("page/page.html")
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	frame, err := template.New("page").Parse(string(text))
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	var b bytes.Buffer
	if err := frame.Execute(&b, parts); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// WritePage puts the page into the run directory dir in one step.
func WritePage(dir string, s *judge.Summary, d *judge.Detail) error {
	return replaceBy(dir, PageFile, func(w io.Writer) error { return Page(w, s, d) })
}

// parts are what the frame of the page is filled with. All but Data is our own.
type parts struct {
	Policy, Style, Data string
	Scripts             []string
}

func pageParts(scripts []string) (p parts, err error) {
	read := func(name string) string {
		b, readErr := page.ReadFile("page/" + name)
		if readErr != nil {
			err = readErr
		}
		return strings.TrimSpace(string(b))
	}
	licence := "/*\n" + read("uPlot.LICENSE") + "\n*/\n"
	p.Style = licence + read("uPlot.min.css") + "\n" + read("page.css")
	hashes := []string{}
	for _, name := range scripts {
		script := read(name)
		p.Scripts = append(p.Scripts, script)
		hashes = append(hashes, sourceHash(script))
	}
	p.Policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + sourceHash(p.Style) + "; script-src " + strings.Join(hashes, " ")
	return p, err
}

// sourceHash is how a content security policy names a script or a style by its content.
func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
