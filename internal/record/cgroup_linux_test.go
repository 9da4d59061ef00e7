package record

import (
	"slices"
	"testing"
)

func TestControlGroupsOfEitherVersionAreFound(t *testing.T) {
	const root = "/sys/fs/cgroup"
	hybrid := "5:memory:/m\n4:cpu,cpuacct:/a/b\n1:name=systemd:/s\n0::/two\n"
	for _, c := range []struct {
		groups, controller string
		want               []string
	}{
		{"0::/a/b\n", "cpu", []string{root + "/a/b", root}},
		{"0::/\n", "memory", []string{root, root}},
		{hybrid, "cpu", []string{root + "/cpu/a/b", root + "/cpu"}},
		{hybrid, "memory", []string{root + "/memory/m", root + "/memory"}},
		{hybrid, "io", []string{root + "/two", root}},
		{"", "cpu", []string{root}},
	} {
		if got := controlGroups(c.groups, c.controller); !slices.Equal(got, c.want) {
			t.Errorf("%s in %q: got %q, want %q", c.controller, c.groups, got, c.want)
		}
	}
}
