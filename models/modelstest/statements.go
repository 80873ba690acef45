package modelstest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/uptrace/bun"
)

// QueryLog collects the statements of a store.
type QueryLog struct {
	mu  sync.Mutex
	All []string
}

// BeforeQuery does nothing.
func (s *QueryLog) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

// AfterQuery keeps the statement.
func (s *QueryLog) AfterQuery(_ context.Context, event *bun.QueryEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if regexp.MustCompile(`^(SELECT|UPDATE|DELETE|WITH|\()`).MatchString(event.Query) {
		s.All = append(s.All, event.Query)
	}
}

// AtOnce calls do n times concurrently. It returns the number of successes and the errors of the
// other calls.
func AtOnce(n int, do func(i int) error) (succeeded int, failures []error) {
	start, results := make(chan struct{}), make(chan error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			<-start
			results <- do(i)
		})
	}
	close(start)
	running.Wait()
	close(results)
	for err := range results {
		if err == nil {
			succeeded++
		} else {
			failures = append(failures, err)
		}
	}
	return succeeded, failures
}

// Dump returns every value of every table as text. Bytes are dumped as text and in hexadecimal.
func (f *Fixture) Dump(t *testing.T) string {
	t.Helper()
	tables := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if f.Postgres() {
		tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	}
	var names []string
	Must(t, f.DB.NewRaw(tables).Scan(t.Context(), &names))
	if len(names) < 11 {
		t.Fatalf("only the tables %s", names)
	}
	var text strings.Builder
	for _, name := range names {
		rows := Value(f.DB.QueryContext(t.Context(), "SELECT * FROM "+name))(t)
		columns := Value(rows.Columns())(t)
		for rows.Next() {
			values, targets := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				targets[i] = &values[i]
			}
			Must(t, rows.Scan(targets...))
			fmt.Fprintf(&text, "%s:", name)
			for i, value := range values {
				fmt.Fprintf(&text, " %s=%v", columns[i], value)
				if raw, ok := value.([]byte); ok {
					fmt.Fprintf(&text, " (%s %x)", raw, raw)
				}
			}
			text.WriteByte('\n')
		}
		Must(t, rows.Err())
	}
	return text.String()
}
