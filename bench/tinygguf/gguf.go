package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
)

// The model's shape: a llama of two layers.
//
// Note: with the embedding as output matrix, greedy decoding repeats the prompt's last token, a newline, which servers trim
// away: replies of 32 tokens without a word.
const (
	layers      = 2
	width       = 32
	hidden      = 64
	heads       = 2
	keyHeads    = 1 // heads of keys and values
	context     = 8192
	deviation   = 0.05 // of the weights: small enough that no token is much likelier than another
	alignment   = 32   // bytes, of every tensor
	float32Type = 0
)

const chatTemplate = `{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>

{{ message['content'] | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}`

// GGUF's codes of value types.
const (
	typeUint32 = 4
	typeInt32  = 5
	typeFloat  = 6
	typeString = 8
	typeArray  = 9
)

// Token types of a vocabulary.
const (
	tokenNormal  = 1
	tokenControl = 3
)

type tensor struct {
	name string
	dims []uint64 // fastest first
	ones bool     // a norm's weights, not random ones
}

func (t tensor) len() uint64 {
	n := uint64(1)
	for _, d := range t.dims {
		n *= d
	}
	return n
}

// writeModel writes a GGUF file, version 3. Errors stay in w.
func writeModel(w io.Writer, v vocabulary, seed uint64) {
	pairs, n := metadata(v)
	ts := tensors(uint64(len(v.tokens)))

	var head encoder
	head.buf.WriteString("GGUF")
	head.uint32(3)
	head.uint64(uint64(len(ts)))
	head.uint64(uint64(n))
	head.buf.Write(pairs)
	var offset uint64
	for _, t := range ts {
		head.tensor(t, offset)
		offset += padded(t.len() * 4)
	}
	head.pad()
	w.Write(head.buf.Bytes())
	writeWeights(w, ts, seed)
}

func writeWeights(w io.Writer, ts []tensor, seed uint64) {
	draw := rand.New(rand.NewPCG(seed, 0))
	for _, t := range ts {
		weights := make([]float32, padded(t.len()*4)/4)
		for i := range weights[:t.len()] {
			weights[i] = 1
			if !t.ones {
				weights[i] = float32(draw.NormFloat64() * deviation)
			}
		}
		binary.Write(w, binary.LittleEndian, weights)
	}
}

func tensors(tokens uint64) []tensor {
	ts := []tensor{
		{name: "token_embd.weight", dims: []uint64{width, tokens}},
		{name: "output_norm.weight", dims: []uint64{width}, ones: true},
		{name: "output.weight", dims: []uint64{width, tokens}},
	}
	for i := range layers {
		block := "blk." + string(rune('0'+i)) + "."
		ts = append(ts,
			tensor{name: block + "attn_norm.weight", dims: []uint64{width}, ones: true},
			tensor{name: block + "attn_q.weight", dims: []uint64{width, width}},
			tensor{name: block + "attn_k.weight", dims: []uint64{width, width * keyHeads / heads}},
			tensor{name: block + "attn_v.weight", dims: []uint64{width, width * keyHeads / heads}},
			tensor{name: block + "attn_output.weight", dims: []uint64{width, width}},
			tensor{name: block + "ffn_norm.weight", dims: []uint64{width}, ones: true},
			tensor{name: block + "ffn_gate.weight", dims: []uint64{width, hidden}},
			tensor{name: block + "ffn_up.weight", dims: []uint64{width, hidden}},
			tensor{name: block + "ffn_down.weight", dims: []uint64{hidden, width}},
		)
	}
	return ts
}

// metadata returns the file's key-value pairs and how many they are.
func metadata(v vocabulary) ([]byte, int) {
	var e encoder
	e.text("general.architecture", "llama")
	e.text("general.name", "tiny")
	e.number("general.alignment", alignment)
	e.number("general.file_type", 0)
	e.number("llama.vocab_size", uint32(len(v.tokens)))
	e.number("llama.context_length", context)
	e.number("llama.embedding_length", width)
	e.number("llama.block_count", layers)
	e.number("llama.feed_forward_length", hidden)
	e.number("llama.attention.head_count", heads)
	e.number("llama.attention.head_count_kv", keyHeads)
	e.number("llama.rope.dimension_count", width/heads)
	e.float("llama.rope.freq_base", 500000)
	e.float("llama.attention.layer_norm_rms_epsilon", 1e-5)
	e.text("tokenizer.ggml.model", "gpt2")
	e.text("tokenizer.ggml.pre", "llama-bpe")
	e.texts("tokenizer.ggml.tokens", v.tokens)
	e.types("tokenizer.ggml.token_type", v)
	e.texts("tokenizer.ggml.merges", v.merges)
	e.number("tokenizer.ggml.bos_token_id", v.id("<|begin_of_text|>"))
	e.number("tokenizer.ggml.eos_token_id", v.id("<|end_of_text|>"))
	e.number("tokenizer.ggml.eot_token_id", v.id("<|eot_id|>"))
	e.text("tokenizer.chat_template", chatTemplate)
	return e.buf.Bytes(), e.pairs
}

// encoder writes GGUF's little-endian values.
type encoder struct {
	buf   bytes.Buffer
	pairs int
}

func (e *encoder) uint32(n uint32) { e.buf.Write(binary.LittleEndian.AppendUint32(nil, n)) }
func (e *encoder) uint64(n uint64) { e.buf.Write(binary.LittleEndian.AppendUint64(nil, n)) }

func (e *encoder) string(s string) {
	e.uint64(uint64(len(s)))
	e.buf.WriteString(s)
}

func (e *encoder) key(name string, valueType uint32) {
	e.pairs++
	e.string(name)
	e.uint32(valueType)
}

func (e *encoder) text(key, value string) {
	e.key(key, typeString)
	e.string(value)
}

func (e *encoder) number(key string, value uint32) {
	e.key(key, typeUint32)
	e.uint32(value)
}

func (e *encoder) float(key string, value float32) {
	e.key(key, typeFloat)
	binary.Write(&e.buf, binary.LittleEndian, value)
}

func (e *encoder) array(key string, elementType uint32, n int) {
	e.key(key, typeArray)
	e.uint32(elementType)
	e.uint64(uint64(n))
}

func (e *encoder) texts(key string, values []string) {
	e.array(key, typeString, len(values))
	for _, s := range values {
		e.string(s)
	}
}

func (e *encoder) types(key string, v vocabulary) {
	e.array(key, typeInt32, len(v.tokens))
	for i := range v.tokens {
		if i < v.plain {
			e.uint32(tokenNormal)
		} else {
			e.uint32(tokenControl)
		}
	}
}

func (e *encoder) tensor(t tensor, offset uint64) {
	e.string(t.name)
	e.uint32(uint32(len(t.dims)))
	for _, d := range t.dims {
		e.uint64(d)
	}
	e.uint32(float32Type)
	e.uint64(offset)
}

func (e *encoder) pad() {
	n := uint64(e.buf.Len())
	e.buf.Write(make([]byte, padded(n)-n))
}

// padded rounds a number of bytes up to the alignment.
func padded(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }
