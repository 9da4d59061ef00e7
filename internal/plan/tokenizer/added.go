package tokenizer

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// addedTokens finds tokens that are cut out of the text before anything else happens to it.
type addedTokens struct {
	root  addedNode
	count int
}

type addedNode struct {
	children map[byte]*addedNode
	token    *addedToken
}

// addedToken is one such token and where it may stand.
type addedToken struct {
	token       uint32
	singleWord  bool // not next to a character of a word
	left, right bool // takes the white space at that side with it
}

func (a *addedTokens) add(text []byte, token addedToken) {
	if len(text) == 0 {
		return
	}
	at := &a.root
	for _, b := range text {
		if at.children == nil {
			at.children = map[byte]*addedNode{}
		}
		if at.children[b] == nil {
			at.children[b] = new(addedNode)
		}
		at = at.children[b]
	}
	at.token = &token
	a.count++
}

// longest returns the longest token that text begins with, and its length in bytes.
func (a *addedTokens) longest(text []byte) (*addedToken, int) {
	var found *addedToken
	length := 0
	for at, i := &a.root, 0; i < len(text); i++ {
		if at = at.children[text[i]]; at == nil {
			break
		}
		if at.token != nil {
			found, length = at.token, i+1
		}
	}
	return found, length
}

// cut passes on the parts of text in turn: a token, or a piece with none for its token.
func (a *addedTokens) cut(text []byte, each func(piece []byte, token uint32)) {
	done := 0
	for at := 0; a.count > 0 && at < len(text); {
		found, length := a.longest(text[at:])
		if found == nil {
			at++
			continue
		}
		begin, end := at, at+length
		at = end
		if found.singleWord && (wordBefore(text[:begin]) || wordAfter(text[end:])) {
			continue
		}
		if found.left {
			begin = max(len(bytes.TrimRightFunc(text[:begin], unicode.IsSpace)), done)
		}
		if found.right {
			end = len(text) - len(bytes.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if done < begin {
			each(text[done:begin], none)
		}
		each(text[begin:end], found.token)
		done = end
	}
	if done < len(text) {
		each(text[done:], none)
	}
}

func wordBefore(text []byte) bool {
	r, size := utf8.DecodeLastRune(text)
	return size > 0 && isWord(r)
}

func wordAfter(text []byte) bool {
	r, size := utf8.DecodeRune(text)
	return size > 0 && isWord(r)
}

// isWord says whether c is of \w as Unicode has it: letters, marks, decimal digits, connectors and joiners.
func isWord(c rune) bool {
	return unicode.In(c, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
