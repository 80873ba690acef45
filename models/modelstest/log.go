package modelstest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// LogBuffer collects output. It is safe for concurrent use, and the zero value is empty.
type LogBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends p.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns everything written since the last Reset.
func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Reset empties the buffer.
func (b *LogBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// LineWith returns the first line that contains text, or "".
func (b *LogBuffer) LineWith(text string) string {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// Logger returns a logger that writes lines of JSON to the buffer.
func (b *LogBuffer) Logger() *slog.Logger { return slog.New(slog.NewJSONHandler(b, nil)) }
