package record

import (
	"os"
	"path"
	"slices"
	"strings"
)

// ControlGroups are the folders in which the kernel may show what one of its controllers, "cpu" or "memory" for instance, keeps
// of this process's control group: the group's own before the root, which is what a container sees of its own.
func ControlGroups(controller string) []string {
	groups, _ := os.ReadFile("/proc/self/cgroup")
	return controlGroups(string(groups), controller)
}

// controlGroups reads lines like "4:cpu,cpuacct:/a" of version 1, where they have the controller, or else "0::/a" of version 2.
func controlGroups(groups, controller string) []string {
	const root = "/sys/fs/cgroup"
	folders := []string{root}
	for text := range strings.Lines(groups) {
		id, rest, _ := strings.Cut(strings.TrimSpace(text), ":")
		controllers, own, _ := strings.Cut(rest, ":")
		switch {
		case slices.Contains(strings.Split(controllers, ","), controller):
			top := path.Join(root, controller)
			return []string{path.Join(top, own), top}
		case id == "0":
			folders = []string{path.Join(root, own), root}
		}
	}
	return folders
}
