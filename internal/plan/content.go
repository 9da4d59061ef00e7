package plan

import (
	"encoding/json"
	"fmt"

	"tare/internal/plan/draw"
	"tare/internal/plan/tokenizer"
	"tare/internal/plan/tokenizer/chat"
	"tare/internal/plan/trace"
	"tare/internal/plan/workload"
)

// proved says that one in so many prompts is encoded again to prove its length.
const proved = 16

// content makes what requests say, one after another in the order of their indexes. It is not safe for concurrent use.
type content struct {
	m       *material
	in, out *draw.Source
	class   *draw.Source
	group   *draw.Source
	session *draw.Source

	own, shared wording // what a prompt has of its own, and with others
	ids         *tokenizer.IDs
	sharedIDs   *tokenizer.IDs
	nonce       wording // before the prompts of a data set
	beside      *gallery

	row     int    // of the trace or the data set
	again   uint64 // how often the recorded session has been used before
	chosen  int    // index of the class
	prefix  int    // group of the prefix
	private int    // tokens of the session's own system message

	seen   []seenGroups // by class
	blocks map[uint64]struct{}
	first  bool // no request was made before

	text   []byte
	spoken []byte // behind the first message
	ends   []int  // of each text in it
	at     Request
	system []byte
	tokens []uint32
	media  []Medium
	talk   []Message
}

// wording writes texts of exact lengths.
type wording interface {
	// write appends the n tokens of a number. Behind says that they go on from another text of the same tokenizer.
	write(dst []byte, number uint64, n int, behind bool) ([]byte, error)
}

type plainWords struct{ *workload.Text }

func (w plainWords) write(dst []byte, number uint64, n int, behind bool) ([]byte, error) {
	if behind && n > 0 {
		dst = append(dst, ' ')
	}
	return w.Append(dst, number, n), nil
}

type exactWords struct{ *tokenizer.Prompts }

func (w exactWords) write(dst []byte, number uint64, n int, behind bool) ([]byte, error) {
	if behind {
		return w.AppendBehind(dst, number, n), nil
	}
	return w.Append(dst, number, n)
}

// seenGroups are the prefix groups that requests have used.
type seenGroups []uint64

func (s *seenGroups) add(group int) (before bool) {
	for len(*s) <= group/64 {
		*s = append(*s, 0)
	}
	bit := uint64(1) << (group % 64)
	before = (*s)[group/64]&bit != 0
	(*s)[group/64] |= bit
	return before
}

// The numbers of texts that requests have in common.
const (
	systemText  = 1 << 62 // of the plan; with a session's number among a request's own texts, that of the session
	prefixShift = 32      // class above, group below
)

func (m *material) content(seed uint64) *content {
	c := &content{
		m: m, in: draw.New(seed, "input tokens"), out: draw.New(seed, "output tokens"), class: draw.New(seed, "class"),
		group: draw.New(seed, "prefix group"), session: draw.New(seed, "session system"), first: true, blocks: map[uint64]struct{}{}, seen: make([]seenGroups, len(m.shapes)),
	}
	other := draw.New(seed, "shared text").Uint64()
	c.nonce = plainWords{workload.NewText(seed)}
	switch {
	case m.work.Text == TextIDs:
		c.ids, c.sharedIDs = tokenizer.NewIDs(m.tokenizer, seed), tokenizer.NewIDs(m.tokenizer, other)
	case m.prompts != nil:
		c.own, c.shared = exactWords{m.prompts.Clone()}, exactWords{m.prompts.Reseed(other)}
	default:
		c.own, c.shared = c.nonce, plainWords{workload.NewText(other)}
	}
	c.beside = newGallery(&m.work, seed)
	return c
}

// shape decides the lengths, the class and what is shared with requests before; row is that of the trace or data set.
func (c *content) shape(r *Request, row int) {
	switch m := c.m; {
	case m.trace != nil:
		c.row = row % len(m.trace.Rows)
		c.traced(r)
	case m.sample != nil:
		c.row = row % len(m.sample.Picks)
		pick := &m.sample.Picks[c.row]
		c.drawn(r)
		r.InputTokens = pick.PromptTokens
		if n, ok := m.recorded(pick); ok {
			r.OutputTokens = n
		}
	default:
		c.synthetic(r)
	}
	if c.m.work.Cache == CacheSalted {
		r.CacheSalt = fmt.Sprintf("tare-%d", r.Session)
	}
	c.first = false
}

func (c *content) drawn(r *Request) *shape {
	c.chosen = 0
	if len(c.m.shapes) > 1 {
		c.class.Seek(uint64(r.Session))
		c.chosen = c.m.class.Draw(c.class)
	}
	s := &c.m.shapes[c.chosen]
	c.in.Seek(uint64(r.Index))
	c.out.Seek(uint64(r.Index))
	r.InputTokens, r.OutputTokens, r.Class, r.Model = s.in.Draw(c.in), s.out.Draw(c.out), s.Name, s.Model
	r.Priority, r.Prioritized = s.Priority, c.m.prioritized
	return s
}

func (c *content) synthetic(r *Request) {
	s := c.drawn(r)
	if system := c.m.work.SystemTokens; system > 0 {
		r.InputTokens += system
		if !c.first {
			r.SharedTokens += system
		}
	}
	if c.m.work.Conversation.SystemTokens != "" {
		c.session.Seek(uint64(r.Session))
		c.private = c.m.private.Draw(c.session)
		r.InputTokens += c.private
	}
	if s.PrefixTokens > 0 {
		c.group.Seek(uint64(r.Index))
		c.prefix = s.rank.Draw(c.group)
		r.InputTokens += s.PrefixTokens
		if c.seen[c.chosen].add(c.prefix) {
			r.SharedTokens += s.PrefixTokens
		}
	}
	r.SharedTokens -= r.SharedTokens % c.m.work.Prefix.Block
}

func (c *content) traced(r *Request) {
	t := c.m.trace
	row := &t.Rows[c.row]
	r.InputTokens, r.OutputTokens, r.Class, r.Model = max(row.InputTokens, 1), max(row.OutputTokens, 1), row.Class, c.m.models[row.Model]
	r.Header = row.Header
	if row.OutputTokens == 0 && row.Call != nil {
		r.OutputTokens = row.Call.MaxTokens
		if r.OutputTokens == 0 {
			c.out.Seek(uint64(r.Index))
			r.OutputTokens = c.m.shapes[0].out.Draw(c.out)
		}
	}
	before := true
	for i, id := range row.Blocks {
		id = c.block(id)
		if _, before = c.blocks[id]; before && r.SharedTokens == i*t.BlockSize {
			r.SharedTokens = min((i+1)*t.BlockSize, r.InputTokens)
		}
		c.blocks[id] = struct{}{}
	}
}

// write makes the prompt.
func (c *content) write(r *Request) (err error) {
	r.Tools = c.m.tools
	switch m := c.m; {
	case m.sample != nil:
		return c.fromRow(r)
	case m.trace != nil:
		return c.recall(r, nil)
	case c.ids != nil:
		c.tokens = c.tokens[:0]
		if s := &m.shapes[c.chosen]; s.PrefixTokens > 0 {
			c.tokens = c.sharedIDs.Append(c.tokens, c.prefixNumber(), s.PrefixTokens)
		}
		c.tokens = c.ids.Append(c.tokens, uint64(r.Index), r.InputTokens-len(c.tokens))
		r.PromptIDs = c.tokens
		return nil
	}
	return c.compose(r)
}

func (c *content) prefixNumber() uint64 { return uint64(c.chosen)<<prefixShift | uint64(c.prefix) }

// compose writes system message, prefix and the request's own words.
func (c *content) compose(r *Request) (err error) {
	w, s := &c.m.work, &c.m.shapes[c.chosen]
	c.text, c.system = c.text[:0], c.system[:0]
	if w.SystemTokens > 0 {
		if c.system, err = c.shared.write(c.system, systemText, w.SystemTokens, false); err != nil {
			return err
		}
	}
	if c.private > 0 {
		if c.system, err = c.own.write(c.system, systemText|uint64(r.Session), c.private, len(c.system) > 0); err != nil {
			return err
		}
	}
	if s.PrefixTokens > 0 {
		if c.text, err = c.shared.write(c.text, c.prefixNumber(), s.PrefixTokens, false); err != nil {
			return err
		}
	}
	if c.m.template != nil {
		err = c.inside(r)
	} else {
		c.text, err = c.own.write(c.text, uint64(r.Index), r.InputTokens-w.SystemTokens-c.private-s.PrefixTokens, len(c.text) > 0)
	}
	if err != nil {
		return err
	}
	if err := c.prove(r, len(c.text), w.SystemTokens+c.private); err != nil {
		return err
	}
	return c.say(r)
}

// prove counts the tokens of a text that was put together of several.
func (c *content) prove(r *Request, size, besides int) error {
	if c.m.prompts == nil || c.m.template != nil || r.Index%proved != 0 {
		return nil
	}
	if got, want := c.m.tokenizer.Count(c.text[:size]), r.InputTokens-besides; got != want {
		return fmt.Errorf("request %d: %d tokens wanted, but its text has %d", r.Index, want, got)
	}
	return nil
}

// say puts the text into the request, as a conversation where more than a text belongs to it.
func (c *content) say(r *Request) error {
	text := textOf(c.text)
	if len(c.system) == 0 && len(c.beside.kinds) == 0 && !c.m.turns {
		r.Prompt = text
		return nil
	}
	media, err := c.beside.append(c.media[:0], r.Index)
	if err != nil {
		return err
	}
	c.talk, c.media = c.talk[:0], media
	if len(c.system) > 0 {
		c.talk = append(c.talk, Message{Role: "system", Text: textOf(c.system)})
	}
	c.talk = append(c.talk, Message{Role: "user", Text: text, Media: media})
	r.Messages = c.talk
	return nil
}

// inside writes the request's own words so that the whole has the asked length with the chat template around it.
func (c *content) inside(r *Request) (err error) {
	own, _ := c.own.(exactWords)
	before := string(c.text)
	c.text, err = own.AppendInside(c.text, uint64(r.Index), r.InputTokens, before != "", func(dst, text []byte) ([]byte, error) {
		talk := []map[string]string{}
		if len(c.system) > 0 {
			talk = append(talk, map[string]string{"role": "system", "content": string(c.system)})
		}
		messages, err := json.Marshal(append(talk, map[string]string{"role": "user", "content": before + string(text)}))
		if err != nil {
			return nil, err
		}
		return c.m.template.Append(dst, chat.Conversation{Messages: messages, Tools: c.m.tools, Generate: true})
	})
	return err
}

// fromRow makes a request of a row of the data set, with words of its own before the first text if the cache is to be cold.
func (c *content) fromRow(r *Request) error {
	row, err := c.m.sample.Row(c.row)
	if err != nil {
		return err
	}
	if row.Tools != nil {
		r.Tools = row.Tools
	}
	if row.Body != nil {
		r.Body = row.Body
		return nil
	}
	c.text = c.text[:0]
	if c.m.work.Cache == CacheCold {
		c.text, _ = c.nonce.write(c.text, uint64(r.Index), nonceTokens, false)
		c.text = append(c.text, "\n\n"...)
	}
	c.talk = c.talk[:0]
	for i, turn := range row.Turns {
		text := turn.Text
		if i == 0 {
			text = string(c.text) + text
		}
		c.talk = append(c.talk, Message{Role: turn.Role, Text: text})
	}
	if len(c.talk) == 1 && c.talk[0].Role == "user" {
		r.Prompt = c.talk[0].Text
		return nil
	}
	r.Messages = c.talk
	return nil
}

const nonceTokens = 4

// said says that a recording has what was said, which is sent as it is.
func said(row *trace.Row) bool { return row.Call != nil && len(row.Call.Messages) > 0 }

// recall writes the blocks that a row names, so that rows with the same first blocks have the same first words, and behind them
// words of its own; or what was said, where the recording has it, with the replies that came in place of those that it repeats.
func (c *content) recall(r *Request, replies [][]byte) (err error) {
	t := c.m.trace
	row := &t.Rows[c.row]
	r.Tools = c.m.tools
	if said(row) {
		return c.repeat(r, row.Call, replies)
	}
	c.text, c.system = c.text[:0], c.system[:0]
	left := r.InputTokens
	if c.m.work.Cache == CacheCold && left > nonceTokens {
		c.text, err = c.own.write(c.text, uint64(r.Index), nonceTokens, false)
		left -= nonceTokens
	}
	for _, id := range row.Blocks {
		if n := min(t.BlockSize, left); err == nil && n > 0 {
			c.text, err = c.shared.write(c.text, c.block(id), n, len(c.text) > 0)
			left -= n
		}
	}
	if err == nil && left > 0 {
		c.text, err = c.own.write(c.text, uint64(r.Index), left, len(c.text) > 0)
	}
	if err != nil {
		return err
	}
	if err := c.prove(r, len(c.text), 0); err != nil {
		return err
	}
	return c.say(r)
}

// repeat says what was said. Of a session that is to find nothing in a cache, or is used again, all turns begin with the same words
// of its own.
func (c *content) repeat(r *Request, call *trace.Call, replies [][]byte) (err error) {
	c.text = c.text[:0]
	if c.m.work.Cache == CacheCold || c.again > 0 {
		if c.text, err = c.nonce.write(c.text, uint64(r.Session), nonceTokens, false); err != nil {
			return err
		}
		c.text = append(append(c.text, "\n\n"...), call.Messages[0].Text...)
	}
	c.talk = c.talk[:0]
	for i, m := range call.Messages {
		said := Message{Role: m.Role, Text: m.Text, Calls: m.Calls, Answers: m.Answers}
		if m.HasFrom && replies != nil && replies[c.m.turnOf[m.From]] != nil {
			said.Text = textOf(replies[c.m.turnOf[m.From]])
		} else if i == 0 && len(c.text) > 0 {
			said.Text = textOf(c.text)
		}
		c.talk = append(c.talk, said)
	}
	if r.Messages = c.talk; call.Tools != nil {
		r.Tools = call.Tools
	}
	return nil
}
