package dialect

// appendTools appends definitions of tools that are given in OpenAI's form, an array of
//
//	{"type":"function","function":{"name":…,"description":…,"parameters":{…}}}
//
// each as appendTool spells it. What has no function in it is passed on as it is.
func appendTools(dst, tools []byte, appendTool func(dst, function []byte) []byte) []byte {
	c := cursor{b: tools}
	if !c.enter('[') {
		return append(dst, tools...)
	}
	dst = append(dst, '[')
	for i := 0; c.more(']'); i++ {
		dst = separated(dst, i)
		tool := c.verbatim()
		if function := memberOf(tool, "function"); function != nil {
			dst = appendTool(dst, function)
		} else {
			dst = append(dst, tool...)
		}
	}
	return append(dst, ']')
}

// appendResponsesTool puts the members of the function beside its type.
func appendResponsesTool(dst, function []byte) []byte {
	dst = append(dst, `{"type":"function"`...)
	c := cursor{b: function}
	for c.enter('{'); c.more('}'); {
		dst = appendMember(dst, c.key(), c.verbatim())
	}
	return append(dst, '}')
}

// appendAnthropicTool calls the parameters input_schema, which the server demands, and leaves out what it does not know.
func appendAnthropicTool(dst, function []byte) []byte {
	dst = append(dst, `{"input_schema":`...)
	if schema := memberOf(function, "parameters"); schema != nil {
		dst = append(dst, schema...)
	} else {
		dst = append(dst, `{"type":"object"}`...)
	}
	c := cursor{b: function}
	for c.enter('{'); c.more('}'); {
		key, value := c.key(), c.verbatim()
		if string(key) == "name" || string(key) == "description" {
			dst = appendMember(dst, key, value)
		}
	}
	return append(dst, '}')
}

func appendMember(dst, key, value []byte) []byte {
	dst = append(append(dst, `,"`...), key...)
	return append(append(dst, `":`...), value...)
}

// memberOf returns the value of an object's member as it stands, nil if there is none.
func memberOf(object []byte, key string) []byte {
	c := cursor{b: object}
	if !c.enter('{') {
		return nil
	}
	for c.more('}') {
		if name := c.key(); string(name) == key {
			return c.verbatim()
		}
		c.skip()
	}
	return nil
}
