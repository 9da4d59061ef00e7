package dialect

import (
	"strconv"

	"tare/internal/plan"
)

// native is the dialect of a server's own endpoint.
type native struct {
	path  string
	head  string // up to the prompt
	rest  string // after the prompt; a member stands last in the object that holds the lengths
	limit string // key of the asked length
	floor string // key of the asked length as a minimum; empty for none
	shut  string // closes the body
	start func() Reader
}

func (d *native) Path() string { return d.path }

func (d *native) NewReader() Reader { return d.start() }

// AppendBody writes the body of one request. An asked length of 0 sets no limit; the server then has its own.
func (d *native) AppendBody(dst []byte, r *plan.Request) []byte {
	dst = appendString(append(dst, d.head...), r.Prompt)
	dst = append(dst, d.rest...)
	if r.OutputTokens > 0 {
		dst = strconv.AppendInt(append(dst, d.limit...), int64(r.OutputTokens), 10)
		if d.floor != "" {
			dst = strconv.AppendInt(append(dst, d.floor...), int64(r.OutputTokens), 10)
		}
	}
	return append(dst, d.shut...)
}

// sampling writes temperature, top_p and, under the name that the server gives it, the seed.
func sampling(o Options, seed string) string {
	b := strconv.AppendFloat([]byte(`"temperature":`), o.Temperature, 'f', -1, 64)
	b = strconv.AppendFloat(append(b, `,"top_p":`...), o.TopP, 'f', -1, 64)
	return string(b) + seeding(o, seed)
}

// seeding writes the seed with a comma before it; nothing if there is none.
func seeding(o Options, name string) string {
	if o.Seed == 0 {
		return ""
	}
	return `,"` + name + `":` + strconv.FormatUint(o.Seed, 10)
}

func truth(b bool) string { return strconv.FormatBool(b) }

// faulty reads a member that a server's own endpoint uses to report an error; ok is false if it is none.
func (r *eventReader) faulty(key []byte) (ok bool) {
	c, e := &r.c, &r.e
	switch string(key) {
	case "error":
		e.fault = c.given() || e.fault
	case "object":
		e.objectError = string(c.text()) == "error" || e.objectError
	case "detail":
		e.detail = c.given() || e.detail
	default:
		return false
	}
	return true
}
