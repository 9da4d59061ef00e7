package report

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/record"
)

// Requests writes one line for each request on record in the run directory dir, in the order of the log, which is that of
// their ends and not of their indexes. format is "jsonl", "csv" or "parquet".
func Requests(w io.Writer, dir, format string) error {
	m, err := record.ReadManifest(dir)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(w)
	var put func(*row) error
	flush := buffered.Flush
	switch format {
	case "jsonl":
		e := json.NewEncoder(buffered)
		e.SetEscapeHTML(false)
		put = func(r *row) error { return e.Encode(r) }
	case "csv":
		c := csv.NewWriter(buffered)
		if err := c.Write(columns()); err != nil {
			return err
		}
		put = func(r *row) error { return c.Write(r.fields()) }
		flush = func() error { c.Flush(); return firstOf(c.Error(), buffered.Flush()) }
	case "parquet":
		t := newTable(buffered)
		put = t.put
		flush = func() error { return firstOf(t.close(), buffered.Flush()) }
	default:
		return fmt.Errorf("requests: format must be jsonl, csv or parquet, got %q", format)
	}
	var reply measure.Reply
	_, err = record.ReadLog(dir, func(x *record.Exchange) error {
		if x.Stage < 0 || x.Stage >= len(m.Stages) {
			return fmt.Errorf("request %d: stage must be below %d, got %d", x.Index, len(m.Stages), x.Stage)
		}
		reply.Read(x)
		r := line(&reply, m.Stages[x.Stage].Name)
		return put(&r)
	})
	return firstOf(err, flush())
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// row is one request. Moments are milliseconds since the start of the run; what did not happen or is not known is null.
type row struct {
	Index        int64        `json:"index"`
	Stage        string       `json:"stage"`
	Session      int64        `json:"session"`
	Turn         int          `json:"turn"`
	Class        string       `json:"class"`
	Due          judge.Number `json:"due_ms"`
	Sent         judge.Number `json:"sent_ms"`
	FirstToken   judge.Number `json:"first_token_ms"`
	FirstAnswer  judge.Number `json:"first_answer_ms"`
	LastToken    judge.Number `json:"last_token_ms"`
	End          judge.Number `json:"end_ms"`
	Outcome      string       `json:"outcome"`
	Cause        string       `json:"cause"`
	Attempts     int          `json:"attempts"`
	RetryAfter   judge.Number `json:"retry_after_ms"`
	Status       judge.Number `json:"status"`
	FinishReason string       `json:"finish_reason"`
	InputTokens  judge.Number `json:"input_tokens"`
	OutputTokens judge.Number `json:"output_tokens"`
	CachedTokens judge.Number `json:"cached_tokens"`
	TokenEvents  int          `json:"token_events"`
	MergedReads  int64        `json:"merged_reads"`
	Error        string       `json:"error"`
}

func line(r *measure.Reply, stage string) row {
	return row{
		Index: r.Index, Stage: stage, Session: r.Session, Turn: r.Turn, Class: r.Class,
		Due: ms(r.Due, true), Sent: ms(r.Sent, r.WasSent), FirstToken: ms(r.FirstToken.At, r.FirstToken.Known),
		FirstAnswer: ms(r.FirstAnswer.At, r.FirstAnswer.Known), LastToken: ms(r.LastToken.At, r.LastToken.Known), End: ms(r.Finish, r.Ended),
		Outcome: r.Outcome.String(), Cause: r.Cause.String(), Attempts: r.Attempts, RetryAfter: ms(r.RetryAfter, r.RetryAfter > 0), Status: count(int64(r.Status), r.Status != 0), FinishReason: r.FinishReason,
		InputTokens: count(int64(r.Usage.Input), r.Usage.Known), OutputTokens: count(r.Output, r.OutputKnown),
		CachedTokens: count(int64(r.Usage.Cached), r.Usage.CachedKnown),
		TokenEvents:  len(r.Tokens), MergedReads: r.MergedReads, Error: r.Error,
	}
}

func ms(d time.Duration, happened bool) judge.Number {
	if !happened {
		return judge.Number{}
	}
	return judge.Some(float64(d) / 1e6)
}

func count(n int64, known bool) judge.Number {
	if !known {
		return judge.Number{}
	}
	return judge.Some(float64(n))
}

// columns names the fields of a row in the order of fields.
func columns() []string {
	return []string{
		"index", "stage", "session", "turn", "class", "due_ms", "sent_ms", "first_token_ms", "first_answer_ms", "last_token_ms", "end_ms",
		"outcome", "cause", "attempts", "retry_after_ms", "status", "finish_reason", "input_tokens", "output_tokens", "cached_tokens", "token_events", "merged_reads", "error",
	}
}

func (r *row) fields() []string {
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		whole(r.Index), r.Stage, whole(r.Session), whole(int64(r.Turn)), r.Class, r.Due.Text(), r.Sent.Text(), r.FirstToken.Text(),
		r.FirstAnswer.Text(), r.LastToken.Text(), r.End.Text(), r.Outcome, r.Cause, whole(int64(r.Attempts)), r.RetryAfter.Text(), r.Status.Text(), r.FinishReason, r.InputTokens.Text(),
		r.OutputTokens.Text(), r.CachedTokens.Text(), whole(int64(r.TokenEvents)), whole(r.MergedReads), r.Error,
	}
}
