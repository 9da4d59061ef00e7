package infperf

// dataset sends the rows of a file.
func (c *converter) dataset(kind string) {
	n := c.get("data.path")
	if n == nil || n.text == "" {
		c.fault(c.get("data.type"), "data.path", "is missing: "+kind+" would be fetched, and nothing is", "set it to a file on this machine")
		return
	}
	c.set("workload.dataset.file", n.text, n)
	if file := c.tokenizer(); file != "" {
		c.set("workload.tokenizer", file, c.get("tokenizer.pretrained_model_name_or_path"))
	}
	if kind == "cnn_dailymail" {
		c.set("workload.dataset.format", "json", c.get("data.type"))
		c.set("workload.dataset.columns", "prompt=article output=highlights", c.get("data.type"))
		return
	}
	chat := c.text("api.type", "completion") != "completion"
	preset := "inference-perf"
	if chat {
		preset = "inference-perf-chat"
	}
	c.set("workload.dataset.format", "sharegpt", c.get("data.type"))
	c.set("workload.dataset.preset", preset, c.get("data.type"))
	for _, path := range []string{"data.input_distribution", "data.output_distribution"} {
		switch n := c.get(path); {
		case n == nil:
		case chat:
			c.note(n, path, "has no effect on shareGPT by chat, as there")
		default:
			c.fault(n, path, "is refused: rows of shareGPT are not left out by their length", "leave it out")
		}
	}
}
