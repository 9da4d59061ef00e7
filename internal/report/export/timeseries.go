package export

import (
	"encoding/csv"
	"io"
	"reflect"
	"strings"

	"tare/internal/judge"
)

// timeseries writes the series that the page draws: a line for each span, a column for each key of the series.
func timeseries(r *Run, to io.Writer) error {
	s := reflect.ValueOf(&r.Detail.Series).Elem()
	head, columns := []string{"at_ms", "width_ms"}, [][]judge.Number{}
	for i := range s.NumField() {
		column, ok := s.Field(i).Interface().([]judge.Number)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
		head, columns = append(head, name), append(columns, column)
	}
	w := csv.NewWriter(to)
	if err := w.Write(head); err != nil {
		return err
	}
	width := r.Detail.Series.WidthMs
	for i := range r.Detail.Series.Due {
		line := []string{judge.Some(float64(i) * width).Text(), judge.Some(width).Text()}
		for _, c := range columns {
			line = append(line, c[i].Text())
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
