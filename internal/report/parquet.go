package report

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"tare/internal/judge"
)

// tableRow is a row as a Parquet file has it: the same names, null where JSON has null.
type tableRow struct {
	Index        int64    `parquet:"index,delta"`
	Stage        string   `parquet:"stage,dict"`
	Session      int64    `parquet:"session,delta"`
	Turn         int32    `parquet:"turn"`
	Class        string   `parquet:"class,dict"`
	Due          *float64 `parquet:"due_ms,optional"`
	Sent         *float64 `parquet:"sent_ms,optional"`
	FirstToken   *float64 `parquet:"first_token_ms,optional"`
	FirstAnswer  *float64 `parquet:"first_answer_ms,optional"`
	LastToken    *float64 `parquet:"last_token_ms,optional"`
	End          *float64 `parquet:"end_ms,optional"`
	Outcome      string   `parquet:"outcome,dict"`
	Cause        string   `parquet:"cause,dict"`
	Attempts     int32    `parquet:"attempts"`
	RetryAfter   *float64 `parquet:"retry_after_ms,optional"`
	Status       *int64   `parquet:"status,optional"`
	FinishReason string   `parquet:"finish_reason,dict"`
	InputTokens  *int64   `parquet:"input_tokens,optional"`
	OutputTokens *int64   `parquet:"output_tokens,optional"`
	CachedTokens *int64   `parquet:"cached_tokens,optional"`
	TokenEvents  int64    `parquet:"token_events"`
	MergedReads  int64    `parquet:"merged_reads"`
	Error        string   `parquet:"error"`
}

func tableRowOf(r *row) tableRow {
	return tableRow{
		Index: r.Index, Stage: r.Stage, Session: r.Session, Turn: int32(r.Turn), Class: r.Class, Due: value(r.Due), Sent: value(r.Sent),
		FirstToken: value(r.FirstToken), FirstAnswer: value(r.FirstAnswer), LastToken: value(r.LastToken), End: value(r.End), Outcome: r.Outcome,
		Cause: r.Cause, Attempts: int32(r.Attempts), RetryAfter: value(r.RetryAfter), Status: wholeOf(r.Status), FinishReason: r.FinishReason,
		InputTokens: wholeOf(r.InputTokens), OutputTokens: wholeOf(r.OutputTokens), CachedTokens: wholeOf(r.CachedTokens),
		TokenEvents: int64(r.TokenEvents), MergedReads: r.MergedReads, Error: r.Error,
	}
}

func value(n judge.Number) *float64 {
	if v, ok := n.Get(); ok {
		return &v
	}
	return nil
}

func wholeOf(n judge.Number) *int64 {
	if v, ok := n.Get(); ok {
		whole := int64(v)
		return &whole
	}
	return nil
}

// table writes rows in groups of a bounded size, so that its memory does not grow with them.
type table struct {
	w       *parquet.GenericWriter[tableRow]
	pending []tableRow
	grouped int
}

const (
	tableBatch = 1024
	tableGroup = 256 * tableBatch
)

func newTable(to io.Writer) *table {
	return &table{w: parquet.NewGenericWriter[tableRow](to, parquet.Compression(&parquet.Zstd))}
}

func (t *table) put(r *row) error {
	if t.pending = append(t.pending, tableRowOf(r)); len(t.pending) < tableBatch {
		return nil
	}
	return t.flush()
}

func (t *table) flush() error {
	if _, err := t.w.Write(t.pending); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	t.grouped += len(t.pending)
	t.pending = t.pending[:0]
	if t.grouped < tableGroup {
		return nil
	}
	t.grouped = 0
	return t.w.Flush()
}

func (t *table) close() error { return firstOf(t.flush(), t.w.Close()) }
