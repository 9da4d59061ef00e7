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

// pageScripts are the page's own in their order, after the charts'.
var pageScripts = []string{"fault.js", "uPlot.iife.min.js", "numbers.js", "charts.js", "verdict.js", "load.js", "shape.js", "slo.js", "time.js", "requests.js", "server.js", "client.js", "facts.js", "page.js"}

// Page writes a run as one HTML file that needs nothing else: styles, scripts, the summary as summary.json has it, and the detail
// that its charts draw. Nothing in it can make a browser ask for anything: its policy allows these very scripts and nothing else.
func Page(w io.Writer, s *judge.Summary, d *judge.Detail) error {
	parts, err := pageParts()
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	if parts.Data, err = pageData(s, d); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
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

func pageParts() (p parts, err error) {
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
	for _, name := range pageScripts {
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

// pageData is JSON in which no character means anything to HTML.
func pageData(s *judge.Summary, d *judge.Detail) (string, error) {
	b, err := json.Marshal(struct {
		Summary *judge.Summary `json:"summary"`
		Detail  *judge.Detail  `json:"detail"`
	}{s, d}) // it writes <, > and & as \u003c, \u003e and \u0026
	return string(b), err
}
