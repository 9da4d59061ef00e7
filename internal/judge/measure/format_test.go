package measure_test

import (
	"testing"

	"tare/internal/judge/measure"
)

func TestFormatKeepsThreeDigitsAndAFittingUnit(t *testing.T) {
	tests := []struct {
		v    float64 // nanoseconds
		want string
	}{
		{0, "0"}, {7, "7.00ns"}, {999, "999ns"}, {1234, "1.23µs"}, {999_400, "999µs"}, {999_900, "1.00ms"}, {50e6, "50.0ms"},
		{123_456_789, "123ms"}, {9_996_000, "10.0ms"}, {1.5e9, "1.50s"}, {90e9, "90.0s"}, {3600e9, "3600s"}, {-2e6, "-2.00ms"},
	}
	for _, tt := range tests {
		if got := measure.Milliseconds.Format(tt.v); got != tt.want {
			t.Errorf("%v ns: got %s, want %s", tt.v, got, tt.want)
		}
	}
}
