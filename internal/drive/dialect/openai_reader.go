package dialect

// openAIReader reads the events and documents of OpenAI's chat and completions endpoints and of the many servers that
// answer in their shape, with the liberties these take.
type openAIReader struct{ eventReader }

func (r *openAIReader) heart() string { return "choices" }

// object reads an event, or a document, whose choices have messages instead of deltas.
func (r *openAIReader) object(_ []byte, document bool) {
	for r.c.more('}') {
		r.member(r.c.key(), document)
	}
}

// member reads one member of the outermost object.
func (r *openAIReader) member(key []byte, document bool) {
	c, e := &r.c, &r.e
	switch string(key) {
	case "choices":
		r.choices(document)
	case "usage":
		r.usage()
	case "id", "obfuscation":
		r.padding()
	case "created":
		r.moment()
	case "error":
		e.fault = c.given() || e.fault
	case "object":
		e.objectError = string(c.text()) == "error" || e.objectError
	case "detail":
		e.detail = c.given() || e.detail
	case "message":
		e.message = c.given() || e.message
	case "code":
		e.code = c.given() || e.code
	default:
		c.skip()
	}
}

func (r *openAIReader) choices(document bool) {
	c := &r.c
	if !c.enter('[') {
		c.skip()
		return
	}
	r.e.answer = true
	for c.more(']') {
		r.choice(document)
	}
}

// choice reads one choice. One without delta, message or text is none: Azure sends such for its content filter.
func (r *openAIReader) choice(document bool) {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	index, alive := 0, false
	var reason []byte
	for c.more('}') {
		switch key := c.key(); string(key) {
		case "index":
			index = c.integer()
		case "finish_reason":
			reason = c.text()
		case "delta", "message":
			// A message beside the deltas is the whole answer so far, again.
			if document == (string(key) == "message") && c.enter('{') {
				alive = true
				r.message()
			} else {
				c.skip()
			}
		case "text":
			alive = c.peek() == '"' || alive
			r.words(&e.text)
		case "token_ids":
			n := c.elements()
			alive = alive || n > 0
			e.ids += n
		default:
			c.skip()
		}
	}
	if alive {
		e.seen.add(index)
	}
	r.finished(index, reason)
}

func (r *openAIReader) finished(index int, reason []byte) {
	switch string(reason) {
	case "", "null":
		return
	case "error":
		r.e.fault = true
	}
	r.e.done.add(index)
	r.e.reason = reason
}

// message reads the members of a delta or message that has been entered.
func (r *openAIReader) message() {
	c, e := &r.c, &r.e
	for c.more('}') {
		switch string(c.key()) {
		case "content", "refusal":
			r.words(&e.text)
		case "reasoning_content", "reasoning":
			r.words(&e.reasoning)
		case "tool_calls":
			r.calls()
		case "function_call":
			r.function()
		case "role":
			e.role = len(c.text()) > 0 || e.role
		default:
			c.skip()
		}
	}
}

func (r *openAIReader) calls() {
	c := &r.c
	if !c.enter('[') {
		c.skip()
		return
	}
	for c.more(']') {
		if !c.enter('{') {
			c.skip()
			continue
		}
		for c.more('}') {
			switch string(c.key()) {
			case "function", "custom":
				r.function()
			default:
				c.skip()
			}
		}
	}
}

// function reads what a tool call names and hands over; an id or a type alone is no token.
func (r *openAIReader) function() {
	c, e := &r.c, &r.e
	if !c.enter('{') {
		c.skip()
		return
	}
	for c.more('}') {
		switch string(c.key()) {
		case "name", "arguments", "input":
			if c.peek() == '"' {
				e.tool = r.varying() || e.tool
			} else {
				e.tool = c.given() || e.tool
			}
		default:
			c.skip()
		}
	}
}
