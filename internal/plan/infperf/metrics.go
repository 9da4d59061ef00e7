package infperf

import "strings"

// metrics says whose numbers of the servers are looked at. There and here a Prometheus server has them.
func (c *converter) metrics() {
	const section = "metrics.prometheus"
	if c.get(section) == nil || c.choice("metrics.type", "prometheus", "prometheus", "default") != "prometheus" {
		return
	}
	if c.truth(section+".google_managed", false) {
		c.fault(c.get(section+".google_managed"), section+".google_managed", "is refused: the project of the account is not looked up",
			"write the base of the managed service, which names the project, as url, and give --metrics-token google")
		return
	}
	url := c.get(section + ".url")
	if url == nil || !url.single || url.text == "" {
		return
	}
	c.set("server_metrics.prometheus", url.text, url)
	filters := c.get(section + ".filters")
	if filters == nil {
		return
	}
	var all []string
	for _, f := range filters.list {
		if f != nil && f.single && f.text != "" {
			all = append(all, f.text)
		}
	}
	if len(all) > 0 {
		c.set("server_metrics.matchers", strings.Join(all, ","), filters)
	}
}
