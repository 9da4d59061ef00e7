package record

import (
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

func inspect(e *Environment) {
	v := windows.RtlGetVersion()
	e.Kernel = fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
	e.CPU = os.Getenv("PROCESSOR_IDENTIFIER")
}
