package probe

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"tare/internal/record"
)

const (
	oneToken   = 1
	someTokens = 8 // enough to see how events are spaced
)

// nobody is a name that no server has a model of.
const nobody = "tare-probe-no-such-model"

// placeholder is asked for where no model is known: servers with a single model mostly do not look.
const placeholder = "default"

// converse asks every endpoint a tiny question, the ones that are there more than one.
func (p *prober) converse(ctx context.Context) {
	if p.found.Model == "" {
		p.note("no model is listed, and none was given: endpoints were asked for one called " + placeholder)
	}
	silent := p.allSilent()
	for _, name := range p.cfg.Endpoints {
		e := p.endpoint(ctx, name, silent)
		silent = silent && e.State == Silent || silent && e.State == Untried
		p.found.Endpoints = append(p.found.Endpoints, e)
	}
	if best, ok := p.found.Best(); ok {
		p.unknownModel(ctx, best)
	}
}

// allSilent reports that no plain question was answered.
func (p *prober) allSilent() bool {
	for _, g := range p.gets {
		if g.status > 0 {
			return false
		}
	}
	return true
}

// endpoint asks one endpoint. Where not even one of two kinds of question has had a reply, it is not tried.
func (p *prober) endpoint(ctx context.Context, name string, silent bool) Endpoint {
	e := Endpoint{Name: name, Model: p.model(), State: Untried}
	w, err := p.cfg.Speak(name, Wish{Model: p.model()})
	streaming, errStream := p.cfg.Speak(name, Wish{Model: p.model(), Stream: true})
	switch {
	case err != nil && errStream != nil:
		e.Why, _, _ = strings.Cut(errStream.Error(), "\n")
		return e
	case ctx.Err() != nil:
		e.Why = "the time was over"
		return e
	case silent && len(p.found.Endpoints) > 0:
		e.Why = "the server has not answered anything"
		return e
	}
	if err == nil {
		e.Path = p.shown(w)
		e.Whole = p.exchange(ctx, w, oneToken, p.found.KeepAlive.AfterWhole == "")
		p.saw(&p.found.KeepAlive.AfterWhole, e.Whole)
		e.judge(p.model(), e.Whole)
		if e.State == Absent || e.State == Locked || e.State == Silent || e.Whole.Status/100 == 3 {
			return e
		}
	}
	if errStream == nil && ctx.Err() == nil {
		if e.Path == "" {
			e.Path = p.shown(streaming)
		}
		p.stream(ctx, &e, streaming)
	}
	return e
}

// stream asks an endpoint that is there for a stream, and for more if that comes.
func (p *prober) stream(ctx context.Context, e *Endpoint, w Way) {
	e.Streamed = p.exchange(ctx, w, someTokens, p.found.KeepAlive.AfterStreamed == "")
	if e.State != Answers {
		e.judge(p.model(), e.Streamed)
	}
	if !e.Streamed.read {
		return
	}
	if !e.Streamed.NotStreamed {
		p.saw(&p.found.KeepAlive.AfterStreamed, e.Streamed)
		b := buffering(e.Streamed, e.Whole)
		e.Buffering = &b
	}
	e.Continuous = p.wish(ctx, e.Name, Wish{Model: p.model(), Stream: true, ContinuousUsage: true})
	e.IDs = p.wish(ctx, e.Name, Wish{Model: p.model(), Stream: true, ReturnTokenIDs: true})
}

// wish asks for what not every endpoint has a word for; it is nil where there is none.
func (p *prober) wish(ctx context.Context, name string, o Wish) *Exchange {
	w, err := p.cfg.Speak(name, o)
	if err != nil || ctx.Err() != nil {
		return nil
	}
	return p.exchange(ctx, w, someTokens, false)
}

// model is the name that endpoints are asked for.
func (p *prober) model() string {
	if p.found.Model == "" {
		return placeholder
	}
	return p.found.Model
}

// shown is the path of a request without the secrets of its query.
func (p *prober) shown(w Way) string {
	path, _, _ := strings.Cut(w.Path, "?")
	return path
}

// saw takes what became of the connection behind a good reply.
func (p *prober) saw(to *string, x *Exchange) {
	if *to != "" || !x.read || x.kept == "" {
		return
	}
	*to = x.kept
	if p.found.KeepAlive.Header == "" {
		p.found.KeepAlive.Header = x.keep
	}
}

// judge says what a reply shows of an endpoint.
func (e *Endpoint) judge(model string, x *Exchange) {
	e.Why = x.Evidence
	switch x.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		e.State = Absent
		if strings.Contains(x.Evidence, model) && !strings.Contains(x.Evidence, e.Path) {
			e.State = Refuses // the route is there: it speaks of the model
		}
		return
	case http.StatusUnauthorized, http.StatusForbidden:
		e.State = Locked
		return
	}
	switch {
	case x.read:
		e.State, e.Why = Answers, ""
	case x.Status == http.StatusOK && x.Outcome != record.Truncated.String() && x.Outcome != record.Empty.String():
		e.State = Otherwise
	case x.Status/100 == 3:
		e.State, e.Why = Refuses, "it redirects to "+x.location
	case x.Status == 0:
		e.State = Silent
	default:
		e.State = Refuses
	}
}

// Best is the endpoint to start from: the first that completes streams, or else the first that answers at all.
func (f *Finding) Best() (Endpoint, bool) {
	for _, e := range f.Endpoints {
		if e.Streams() {
			return e, true
		}
	}
	for _, e := range f.Endpoints {
		if e.State == Answers {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Streams reports that the endpoint answers in a stream.
func (e Endpoint) Streams() bool {
	return e.Streamed != nil && e.Streamed.read && !e.Streamed.NotStreamed
}

// Precise is what to ask for so that the tokens of every event are counted: nothing, if they are without asking, or cannot be.
func (e Endpoint) Precise() (continuousUsage, returnTokenIDs bool) {
	switch {
	case e.Streamed.exact():
	case e.Continuous.exact():
		return true, false
	case e.IDs.exact():
		return false, true
	}
	return false, false
}

// exact reports that the server counted the tokens of every event.
func (x *Exchange) exact() bool {
	return x != nil && x.read && x.TokenEvents > 0 && x.Counted == x.TokenEvents
}

// unknownModel asks the best endpoint for a model that nobody has.
func (p *prober) unknownModel(ctx context.Context, e Endpoint) {
	w, err := p.cfg.Speak(e.Name, Wish{Model: nobody, Stream: e.Streams()})
	if err != nil || ctx.Err() != nil {
		return
	}
	x := p.exchange(ctx, w, oneToken, false)
	u := &p.found.UnknownModel
	u.Endpoint, u.Outcome, u.Status, u.Evidence = e.Name, x.Outcome, x.Status, x.Evidence
	if !x.read {
		u.Shape = shapeOf(x.body)
		if u.Shape == "" {
			u.Shape = shapeOf(x.Evidence)
		}
	}
}

// conclude says whether there is something to measure.
func (p *prober) conclude(ctx context.Context) {
	if _, ok := p.found.Best(); ok {
		return
	}
	states := map[string]int{}
	why := ""
	for _, e := range p.found.Endpoints {
		states[e.State]++
		if why == "" && e.State != Absent && e.State != Untried {
			why = fmt.Sprintf("%s %s: %s", e.Name, e.State, brief(e.Why))
		}
	}
	switch {
	case states[Locked] > 0:
		p.fail("no endpoint answers without a key, or with this one: "+why, "set the API key in its environment variable, or give a header: tare help probe")
	case p.allSilent() && states[Silent] > 0:
		p.fail(fmt.Sprintf("the server takes connections and answers nothing: neither GET nor POST had a reply within %v", p.step),
			"it may still be loading; a longer --timeout waits for it")
	case ctx.Err() != nil:
		p.fail(fmt.Sprintf("no endpoint answered before the time was over, %v", p.cfg.Timeout), "give it longer with --timeout")
	case why == "":
		p.fail("no endpoint that is known answers here", "check the path of the URL; --endpoint and the full path ask one endpoint alone")
	default:
		p.fail("no endpoint answers: "+why, "")
	}
}

// brief is the first line of a text, or as much as fits into a line.
func brief(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if runes := []rune(s); len(runes) > briefRunes {
		return string(runes[:briefRunes]) + "…"
	}
	return s
}

const briefRunes = 160
