"""Makes what the tests of package tokenizer compare with: texts, small tokenizers, and the ids that the reference
implementations give. Needs: pip install tokenizers tiktoken

    python golden.py corpus                  writes corpus.json beside this file
    python golden.py train TEXT...           trains the small tokenizers on text files, and writes their goldens
    python golden.py embedded TEXT...        trains ../tare-bpe-8k.tiktoken.gz and writes its golden
    python golden.py models DIR TEXT...      writes golden.json beside every tokenizer in DIR/*/, over corpus.json, characters and TEXT
"""
import base64, gzip, json, pathlib, random, sys

HERE = pathlib.Path(__file__).parent
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def corpus():
    texts = [
        "", " ", "  ", "   ", "\n", "\r\n", "\n\n\n", " \n \n ", "\t", "\t\t x", " \t\n\r\f\v ", "a", " a", "a ", " a ", "  a  b   c    ",
        "Hello world", "Hello, world! It's 2026; we've, I'll, they'd, you're, I'm, can't", "HELLO'S WON'T I'LL'VE 'S", "it\u017f'\u017f",
        "don't'sa 'tis 're'd", "camelCaseHTTPServer snake_case kebab-case", "ABCdefGHI JKLmno", "x=1;y+=2*(3-4)/5%6", "1234567890", "1 22 333 4444 55555",
        "3.14159e-10 0xFF 1,000,000", "١٢٣٤ ४५६ 五六七 ⅣⅧ ½⅓ ²³", "func main() {\n\tfmt.Println(\"hi\")\n}\n", "def f(x):\n    return x**2  # square\n\n\n",
        "for (int i = 0; i < n; ++i) { a[i] = b[i] /* c */; }\r\n\r\n", "<div class=\"a\">&nbsp;</div>", "https://example.org/a?b=c&d=%20#e", "SELECT * FROM t WHERE a='b';",
        "{\"a\": [1, 2.5, null, true], \"b\": {\"c\": \"\\u00e9\"}}", "/usr/local/bin//x", "a/b\n/c\r\n//", "!!!???...", "....\n\n....", "-----\n=====", "$100 €200 £300 ¥400",
        "日本語のテキスト", "中文文本，带标点。", "中文abc混合123文本", "한국어 텍스트", "한국어", "ภาษาไทยไม่มีช่องว่าง", "नमस्ते दुनिया", "اَلْعَرَبِيَّةُ", "שָׁלוֹם עולם", "Ελληνικά ΑΒΓ ς",
        "Русский текст и ЁЖ", "Tiếng Việt có dấu", "Tiếng Việt có dấu", "ǅ ǈ ʰ ª º", "é e\u0301 \u00e9\u0301", "Å Å A\u030a", "ﬁ ﬂ ﬃ Ⅷ ①", "ｆｕｌｌ　ｗｉｄｔｈ", "İ ı I i ẞ ß", "K Å Ω",
        "e" + "\u0301" * 5, "a" + "\u0323\u0307" * 3, "z" + "\u0301\u0323" * 40, "\u0301start", "q\u0307\u0323 q\u0323\u0307", "ḍ̇ ṩ", "각 각",
        "😀", "😀😃😄", "👨‍👩‍👧‍👦", "👩🏽‍🚀 🏳️‍🌈 🇩🇪🇯🇵 1️⃣ ❤️", "a😀b 😀 c", "☃ ✓ → ∑ ∞ ≠", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒳 𐍈 𠀀𠀁", "\U0001F9FF\u200d", "\u200b\u200c\u200d\u2060\ufeff", "\ufefftext",
        "a\u00a0b\u2003c\u3000d\u2028e\u2029f\u0085g", "\u00a0\u00a0x", "\u3000\u3000\n\u3000", "\x00\x01\x02\x1f\x7f\x80\x9f", "a\x00b", "\x1b[31mred\x1b[0m", "\u00ad\u034f",
        "\ufffd", "\ufffd\ufffd x", "\ue000\uf8ff", "\U0010ffff", "\u0378\u0379",
        "<s>", "</s>", "<unk>", "<pad>", "<|endoftext|>", "a<|endoftext|>b", " <|im_start|>user\nhi<|im_end|>\n", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>",
        "[INST] hi [/INST]", "<bos><start_of_turn>user\nhi<end_of_turn>", "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜>", "<|start|>user<|message|>hi<|end|>", "<|endoftext", "endoftext|>", "<<|endoftext|>>",
        "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "<think>\n\n</think>\n\n", "  <mask>  x<mask>y", "word<sep>word <sep> ", "▁", "▁▁a▁b", "a ▁ b", "<0x0A>", "<0x0A><0xZZ>",
        "a" * 100, "ab" * 200, "supercalifragilisticexpialidocious" * 8, "x" * 1000, " " * 100, " " * 33 + "x", "\n" * 40, "-" * 300, "0" * 50, "字" * 60, "😀" * 40, "é" * 77, "aA" * 40, "\u0301" * 50,
        "㋿ 𐞘ꟲ ꭩ", "\U0002ebf0\U0002ebf1 x\U0002ebf0", "\U0001e5d0a\u1c89B", "a\u1df6\u0334 a\u0898\u0334", "\U00011935\U00011930 \U00011938", "\U0001e5f1\u00b2\U00016d70",
        "the " * 50, "The quick brown fox jumps over the lazy dog. " * 5, "word\n" * 20, "\tindent\n\t\tmore\n", "line one\nline two\r\nline three\rline four", "trailing   ", "   leading", "tab\tand  spaces \t mixed",
    ]
    rng = random.Random(4)
    alphabets = ["abcdefghijklmnopqrstuvwxyz", "ABCxyz", "0123456789", " ", " ", "  \t", "\n", "\r\n", ".,;:!?'\"()[]{}", "'sStTmMdD", "äöüßéñç", "日本中文字", "ひらカタ", "한국", "اب", "คน", "\u0301\u0323\u030a",
                 "😀👍🏽\u200d❤\ufe0f", "\u00a0\u3000\u200b", "-_=+/\\*&^%$#@~`|<>", "▁", "ǅʰªⅣ½²٣", "\x00\x07\x1b"]
    for i in range(180):
        texts.append("".join("".join(rng.choice(rng.choice(alphabets)) if rng.random() < .4 else rng.choice(alphabets[0]) for _ in range(rng.randint(1, 6))) + rng.choice(["", "", " ", "\n"])
                             for _ in range(rng.randint(1, 24))))
    for i in range(60):
        texts.append("".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.randint(1, 60))))
    return list(dict.fromkeys(texts))


def characters():
    """Every character of the planes that have any, assigned or not, between letters and between spaces."""
    every = [chr(c) for c in [*range(0xd800), *range(0xe000, 0x20000), *range(0x2eb00, 0x2ef00)]]
    return [("x" if i % 80 else " ").join(every[i:i + 40]) for i in range(0, len(every), 40)]


def dump(path, value):
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    path.write_text(text.replace("],[", "],\n[") + "\n")


def read(files):
    return "\n".join(pathlib.Path(f).read_text(errors="replace") for f in files)


def chunks(text, size=2000):
    return [text[i:i + size] for i in range(0, len(text), size)]


def fixtures(text):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    lines = chunks(text) + corpus() * 3

    def byte_level(pattern):
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])

    def train(t, size, **more):
        t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=size, show_progress=False, **more))
        return t

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer, t.decoder = byte_level(LLAMA3), decoders.ByteLevel()
    train(t, 2500, initial_alphabet=alphabet, special_tokens=["<|endoftext|>", "<|begin_of_text|>", "<|eot_id|>"])
    t.post_processor = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="$A $B", special_tokens=[("<|begin_of_text|>", 1)])
    yield "llama3-style", t

    t = Tokenizer(models.BPE())
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.NFC(), byte_level(QWEN), decoders.ByteLevel()
    train(t, 2500, initial_alphabet=alphabet)
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("</tool_call>", normalized=False), AddedToken("é", normalized=True),
                  AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False), AddedToken("tis", single_word=True), "  "])
    yield "qwen-style", t

    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    with_bytes = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    t.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    train(t, 2500, special_tokens=with_bytes, limit_alphabet=300)
    t.pre_tokenizer = None
    j = json.loads(t.to_str())
    j["added_tokens"] = j["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(j))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="$A $B", special_tokens=[("<s>", 1)])
    yield "llama2-style", t

    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(prepend_scheme="first"), decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    train(t, 2000, special_tokens=with_bytes, limit_alphabet=300)
    j = json.loads(t.to_str())
    j["added_tokens"] = j["added_tokens"][:3]
    yield "metaspace", Tokenizer.from_str(json.dumps(j))

    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Split(" ", "merged_with_previous"),
                                               pre_tokenizers.Split(Regex("[aeiou]n"), "merged_with_next"), pre_tokenizers.Split(Regex(r"\n+"), "removed")])
    train(t, 800, special_tokens=["<unk>"], limit_alphabet=120)
    yield "splits", t

    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()
    t.normalizer = normalizers.NFKD()
    train(t, 1500, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"])
    yield "gpt2-style", t


def golden(t, texts):
    out = []
    for text in texts:
        ids = t.encode(text, add_special_tokens=False).ids
        out.append({"ids": ids, "text": t.decode(ids, skip_special_tokens=False)})
    return out


def write_fixture(name, t, texts):
    j = json.loads(t.to_str())
    if name in ("qwen-style", "metaspace"):  # the older form of merges
        j["model"]["merges"] = [" ".join(m) for m in j["model"]["merges"]]
    (HERE / f"{name}.json").write_text(json.dumps(j, ensure_ascii=False, separators=(",", ":")) + "\n")
    from tokenizers import Tokenizer
    t = Tokenizer.from_file(str(HERE / f"{name}.json"))
    dump(HERE / f"{name}.golden.json", [[*g["ids"]] for g in golden(t, texts)])
    dump(HERE / f"{name}.decoded.json", [g["text"] for g in golden(t, texts)])


def embedded(text, texts):
    import tiktoken
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.train_from_iterator(chunks(text), trainers.BpeTrainer(vocab_size=8192, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    back = {c: b for b, c in bytes_to_unicode().items()}
    model = json.loads(t.to_str())["model"]
    order = sorted(model["vocab"], key=lambda s: model["vocab"][s])
    ranks = {bytes([b]): b for b in range(256)}
    for token in order:
        raw = bytes(back[c] for c in token)
        if len(raw) > 1:
            ranks[raw] = len(ranks)
    lines = b"".join(base64.b64encode(raw) + b" %d\n" % rank for raw, rank in ranks.items())
    (HERE.parent / "tare-bpe-8k.tiktoken.gz").write_bytes(gzip.compress(lines, 9, mtime=0))
    t = tiktoken.Encoding("tare-bpe-8k", pat_str=LLAMA3, mergeable_ranks=ranks, special_tokens={})
    dump(HERE / "tare-bpe-8k.golden.json", [t.encode(s, disallowed_special=()) for s in texts])


def bytes_to_unicode():
    keep = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    rest = [b for b in range(256) if b not in keep]
    return {b: chr(b) for b in keep} | {b: chr(256 + i) for i, b in enumerate(rest)}


def reference(folder):
    """The reference implementation of the tokenizer in a folder, as a function from text to ids."""
    import unicodedata
    if (folder / "tokenizer.json").exists():
        from tokenizers import Tokenizer
        t = Tokenizer.from_file(str(folder / "tokenizer.json"))
        t.no_truncation(), t.no_padding()
        return lambda s: t.encode(s, add_special_tokens=False).ids
    if (folder / "tekken.json").exists():
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
        t = Tekkenizer.from_file(folder / "tekken.json")
        return lambda s: t.encode(s, bos=False, eos=False)
    import tiktoken, tiktoken.load, tiktoken_ext.openai_public as public
    path = next(folder.glob("*.tiktoken"))
    ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in path.read_bytes().splitlines() if line)}
    if path.stem == "qwen":
        special = dict(zip(["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [f"<|extra_{i}|>" for i in range(205)], range(151643, 151851)))
        t = tiktoken.Encoding("qwen", pat_str=QWEN, mergeable_ranks=ranks, special_tokens=special)
        return lambda s: t.encode(unicodedata.normalize("NFC", s), allowed_special="all")
    public.load_tiktoken_bpe = lambda *a, **k: ranks
    t = tiktoken.Encoding(**public.ENCODING_CONSTRUCTORS[path.stem]())
    return lambda s: t.encode(s, allowed_special="all")


def main(verb, *args):
    texts = json.loads((HERE / "corpus.json").read_text()) if verb != "corpus" else corpus()
    if verb == "corpus":
        dump(HERE / "corpus.json", texts)
    elif verb == "train":
        for name, t in fixtures(read(args)):
            write_fixture(name, t, texts)
    elif verb == "embedded":
        embedded(read(args), texts)
    elif verb == "models":
        texts += characters() + chunks(read(args[1:]), 700)
        for folder in sorted(p for p in pathlib.Path(args[0]).iterdir() if p.is_dir()):
            encode = reference(folder)
            (folder / "golden.json").write_text(json.dumps([{"text": s, "ids": encode(s)} for s in texts]))
            print(folder.name, len(texts))


main(*sys.argv[1:])
