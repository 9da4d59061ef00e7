package infperf

import (
	"fmt"
	"strings"
)

// media are pictures, videos and sounds beside each prompt.
func (c *converter) media(n *node) {
	const section = "data.multimodal"
	if c.text("api.type", "completion") != "chat" {
		c.fault(n, section, "needs api.type chat", "")
	}
	if image := n.child("image"); image != nil {
		c.howMany("workload.images", section+".image", image)
		c.set("workload.images.format", c.choice(section+".image.representation", "png", "png", "jpeg"), image.child("representation"))
		c.set("workload.images.sizes", c.sorts(image.child("resolutions"), section+".image.resolutions", "resolution", "512x512", c.resolution), image.child("resolutions"))
	}
	if video := n.child("video"); video != nil {
		c.howMany("workload.videos", section+".video", video)
		c.choice(section+".video.representation", "mp4", "mp4")
		frames := ""
		c.set("workload.videos.sizes", c.sorts(video.child("profiles"), section+".video.profiles", "profile", "512x512", func(n *node, path string) string {
			return c.profile(n, path, &frames)
		}), video.child("profiles"))
		if frames == "" {
			frames = "10"
		}
		c.set("workload.videos.frames", frames, video.child("profiles"))
	}
	if audio := n.child("audio"); audio != nil {
		c.howMany("workload.audio", section+".audio", audio)
		c.set("workload.audio.lengths", c.sorts(audio.child("durations"), section+".audio.durations", "duration", "1s", func(n *node, path string) string {
			text, _ := c.seconds(n, path)
			return text
		}), audio.child("durations"))
	}
}

// howMany are the media of a prompt, and where they stand.
func (c *converter) howMany(ours, theirs string, n *node) {
	c.optional(ours+".count", theirs+".count", "1")
	c.place(ours+".place", theirs+".insertion_point")
}

// sorts writes one value, or a list of values with weights.
func (c *converter) sorts(n *node, path, name, otherwise string, write func(*node, string) string) string {
	if n.idle() {
		return otherwise
	}
	if !n.isList {
		return write(n, path)
	}
	var words []string
	for i, item := range n.list {
		at := fmt.Sprintf("%s[%d]", path, i)
		value := item.child(name)
		if value == nil {
			c.fault(n, at, "needs "+name, "")
			continue
		}
		word := write(value, at+"."+name)
		if weight := item.child("weight"); weight != nil {
			word += "*" + weight.text
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// presets are names of resolutions.
var presets = map[string]string{"4k": "3840x2160", "1080p": "1920x1080", "720p": "1280x720", "360p": "640x360"}

func (c *converter) resolution(n *node, path string) string {
	if n.isMap {
		width, height := n.child("width"), n.child("height")
		if width != nil && height != nil && width.single && height.single {
			return width.text + "x" + height.text
		}
	} else if size, known := presets[n.text]; known {
		return size
	}
	c.fault(n, path, "must be one of 4k, 1080p, 720p, 360p, or have a width and a height", "")
	return "1x1" // said already
}

// profile is the resolution of a video. All videos have the same number of frames.
func (c *converter) profile(n *node, path string, frames *string) string {
	count := "10"
	if f := n.child("frames"); f != nil {
		count = f.text
	}
	if *frames != "" && *frames != count {
		c.fault(n, path+".frames", "must be the same in all profiles: "+*frames, "")
	}
	*frames = count
	if r := n.child("resolution"); r != nil {
		return c.resolution(r, path+".resolution")
	}
	return "512x512"
}
