package dialect

import "tare/internal/plan"

// endpoint is the Dialect of one endpoint: how its requests are written, and how its replies are read.
type endpoint struct {
	form
	path    string
	auth    Auth
	accepts plan.Features
	framing string // of replies, whatever their type says; empty to go by that
	read    func() Reader
}

func (d *endpoint) Path() string           { return d.path }
func (d *endpoint) Auth() Auth             { return d.auth }
func (d *endpoint) Accepts() plan.Features { return d.accepts }
func (d *endpoint) Framing() string        { return d.framing }
func (d *endpoint) NewReader() Reader      { return d.read() }

// formOf makes a form of parts, without those that are empty.
func formOf(o Options, parts ...part) form {
	f := form{model: string(appendString(nil, o.Model))}
	for _, p := range parts {
		if p != (part{}) {
			f.parts = append(f.parts, p)
		}
	}
	return f
}
