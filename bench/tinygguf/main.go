// Tinygguf writes a very small language model with random weights, so that a real inference server can be measured
// without a model to download. What it says is nonsense; how it streams is real.
//
//	tinygguf -tokenizer tokenizer.json -out tiny.gguf
//
// The tokenizer is a Llama-3 tokenizer.json. Of its first 4,096 tokens those whose bytes are printable ASCII, space or
// newline are kept, which makes a file of 1.2 MB that understands ASCII prompts only. With -bytes all every one of them
// is kept: answers then break off inside UTF-8 sequences, a real fault to test against.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	source := flag.String("tokenizer", "", "Llama-3 tokenizer.json to take the vocabulary from")
	out := flag.String("out", "tiny.gguf", "file to write")
	bytes := flag.String("bytes", "ascii", "tokens to keep: ascii or all")
	seed := flag.Uint64("seed", 1, "seed of the weights")
	flag.Parse()
	if err := run(*source, *out, *bytes, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "tinygguf:", err)
		os.Exit(1)
	}
}

func run(source, out, bytes string, seed uint64) error {
	if bytes != "ascii" && bytes != "all" {
		return fmt.Errorf("-bytes: must be ascii or all, got %q", bytes)
	}
	if source == "" {
		return errors.New("-tokenizer: a tokenizer.json is needed")
	}
	v, err := readVocabulary(source, bytes == "all")
	if err != nil {
		return fmt.Errorf("read %s: %w", source, err)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	writeModel(w, v, seed)
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	fmt.Printf("%s: %d tokens, %d merges\n", out, len(v.tokens), len(v.merges))
	return nil
}
