// Package dataset reads conversations and prompts that others wrote: ShareGPT, JSON, CSV, Parquet, OpenAI batches, plain text.
//
// Open reads a file once, checks every row and remembers where the good ones are; Row reads one again. Select says which rows
// a run uses, in which order and cut how, by rules of its own or by those of another tool.
package dataset

import "encoding/json"

// Counter counts the tokens of a text by itself, without those that a server puts around it.
type Counter interface{ Count(text []byte) int }

// Row is one example of a data set.
type Row struct {
	Number int64 // from 0, among all rows of the file, the bad ones too
	Line   int   // the row's first line, from 1; 0 in Parquet
	ID     string

	Turns     []Turn // oldest first
	Output    string // the recorded reply to the last turn
	HasOutput bool

	OutputTokens int // recorded or asked for, in tokens; 0 if the row does not say

	Tools  json.RawMessage // tool definitions as the row has them; nil for none
	Body   json.RawMessage // the whole request body, to be sent as it is; nil for none
	Method string          // of an OpenAI batch
	URL    string          // of an OpenAI batch: a path
}

// Turn is one message of a conversation.
type Turn struct {
	Role string // "user", "assistant", "system", "tool", or what the file says
	Text string
}

const (
	User      = "user"
	Assistant = "assistant"
	System    = "system"
	Tool      = "tool"
)

// role gives the role that ShareGPT and its kin mean.
func role(name string) string {
	switch name {
	case "human", User:
		return User
	case "gpt", Assistant, "chatgpt", "bing", "bard", "model", "bot":
		return Assistant
	case "function", "observation", Tool:
		return Tool
	}
	return name
}
