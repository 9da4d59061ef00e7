"""Writes what jinja2, set up as Hugging Face's tokenizers do, makes of conversations.json with every template in a folder.
Needs: pip install jinja2

    python golden.py FOLDER      writes FOLDER/NAME.golden.json beside every FOLDER/NAME.jinja
"""
import datetime, json, pathlib, sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_pass"), [], [], body).set_lineno(line)

    def _pass(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
env.filters["tojson"] = tojson
env.filters["from_json"] = json.loads
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = lambda f: datetime.datetime(2026, 11, 5, 13, 4, 9).strftime(f)

conversations = json.loads((pathlib.Path(__file__).parent / "conversations.json").read_text())
folder = pathlib.Path(sys.argv[1])
total = failed = 0
for path in sorted(folder.glob("*.jinja")):
    out = []
    template = env.from_string(path.read_bytes().decode())
    for c in conversations:
        try:
            text = template.render(messages=c["messages"], tools=c.get("tools"), documents=None, add_generation_prompt=c.get("generate", True),
                                   bos_token="<s>", eos_token="</s>", **c.get("extra", {}))
            out.append({"text": text})
        except Exception as e:
            failed += 1
            out.append({"error": f"{type(e).__name__}: {e}"})
        total += 1
    path.with_suffix(".golden.json").write_text(json.dumps(out, ensure_ascii=True, indent=0) + "\n")
print(total, "cases,", failed, "of them errors")
