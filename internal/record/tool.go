package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

// ThisTool identifies the running program from what the compiler wrote into it. It costs microseconds: the hash of the
// binary is left out, see BinarySHA256.
func ThisTool() Tool {
	t := Tool{Version: "(devel)", GoVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return t
	}
	if info.Main.Version != "" {
		t.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			t.Revision = s.Value + t.Revision
		case s.Key == "vcs.modified" && s.Value == "true":
			t.Revision += "+dirty"
		}
	}
	return t
}

// BinarySHA256 hashes the running program's executable, in lower-case hex. It reads the whole file, some tens of
// milliseconds: call it when nothing is being measured.
func BinarySHA256() (string, error) {
	path, err := executable()
	if err != nil {
		return "", fmt.Errorf("hash own binary: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hash own binary: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("hash own binary: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// executable names the file that is running, even where another has taken its place since.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
