package dialect

import (
	"net/url"
	"strconv"
	"strings"

	"tare/internal/plan"
)

// newGemini returns the dialect of Google's generateContent methods.
func newGemini(o Options) *endpoint {
	return &endpoint{
		path: geminiPath(o), accepts: plan.Features{Sampling: true, Messages: true, Images: true},
		auth: Auth{KeyHeader: "x-goog-api-key"},
		form: formOf(o, part{`{"contents":`, geminiContents}, part{`,"systemInstruction":{"parts":`, geminiSystem},
			part{`,"generationConfig":{` + geminiOptions(o), noValue}, part{`,"maxOutputTokens":`, outputTokens}, part{`}}`, noValue}),
		read: func() Reader {
			r := &geminiReader{eventReader{streamed: o.Stream, secrets: o.Secrets, listed: true}}
			r.grammar = r
			return r
		},
	}
}

// geminiPath has the model in it, and whether the reply is to be streamed.
func geminiPath(o Options) string {
	path := "/v1beta/models/" + url.PathEscape(strings.TrimPrefix(o.Model, "models/"))
	if o.Stream {
		return path + ":streamGenerateContent?alt=sse"
	}
	return path + ":generateContent"
}

func geminiOptions(o Options) string {
	b := strconv.AppendFloat([]byte(`"temperature":`), o.Temperature, 'f', -1, 64)
	b = strconv.AppendFloat(append(b, `,"topP":`...), o.TopP, 'f', -1, 64)
	return string(b) + seeding(o, "seed")
}

// geminiReader reads events and documents, which have the same members. There is no end marker, and some models give a
// finish reason in every event: the last one holds.
type geminiReader struct{ eventReader }

func (r *geminiReader) heart() string { return "candidates" }

func (r *geminiReader) object([]byte, bool) {
	c, e := &r.c, &r.e
	e.again = true
	for c.more('}') {
		switch string(c.key()) {
		case "candidates":
			r.candidates()
		case "usageMetadata":
			r.counts()
		case "promptFeedback":
			r.feedback()
		case "error":
			e.fault = c.given() || e.fault
		default:
			c.skip()
		}
	}
}

// feedback reads what the server thinks of the prompt. One that it blocked has no answer.
func (r *geminiReader) feedback() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		if string(c.key()) == "blockReason" {
			e.fault = c.given() || e.fault
		} else {
			c.skip()
		}
	}
}

func (r *geminiReader) candidates() {
	c := &r.c
	if !c.enter('[') {
		c.skip()
		return
	}
	r.e.answer = true
	for c.more(']') {
		if c.enter('{') {
			r.candidate()
		} else {
			c.skip()
		}
	}
}

func (r *geminiReader) candidate() {
	c, e := &r.c, &r.e
	index, alive := 0, false
	var reason []byte
	for c.more('}') {
		switch string(c.key()) {
		case "index":
			index = c.integer()
		case "finishReason":
			reason = c.text()
		case "content":
			alive = r.content() || alive
		default:
			c.skip()
		}
	}
	if alive {
		e.seen.add(index)
	}
	if s := string(reason); s != "" && s != "FINISH_REASON_UNSPECIFIED" {
		e.done.add(index)
		e.reason = reason
	}
}

// content reads a candidate's content and reports whether it has parts.
func (r *geminiReader) content() (parts bool) {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return false
	}
	for c.more('}') {
		switch string(c.key()) {
		case "role":
			e.role = len(c.text()) > 0 || e.role
		case "parts":
			for c.enter('['); c.more(']'); parts = true {
				r.part()
			}
		default:
			c.skip()
		}
	}
	return parts
}

// part reads one part. Its text is reasoning if it is a thought, which may be said behind it.
func (r *geminiReader) part() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	text, thought, before := false, false, len(r.said)
	for c.more('}') {
		switch string(c.key()) {
		case "text":
			r.words(&text)
		case "thought":
			thought = c.given()
		case "functionCall", "executableCode":
			e.tool = c.given() || e.tool
		case "inlineData":
			text = c.given() || text
		default:
			c.skip()
		}
	}
	if thought {
		r.said = r.said[:before]
	}
	e.reasoning = e.reasoning || text && thought
	e.text = e.text || text && !thought
}

// counts reads usage, which grows from event to event. Cached tokens are among those of the prompt, thoughts not among
// those of the candidates.
func (r *geminiReader) counts() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		switch string(c.key()) {
		case "promptTokenCount":
			e.usage.Input = latest(e.usage.Input, c.integer())
		case "cachedContentTokenCount":
			r.cached()
		case "candidatesTokenCount":
			e.pieces.said = latest(e.pieces.said, c.integer())
		case "thoughtsTokenCount":
			e.pieces.thought = latest(e.pieces.thought, c.integer())
		default:
			c.skip()
		}
	}
}
