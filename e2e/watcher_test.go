package e2e

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/playwright-community/playwright-go"
)

// watcher records the responses, console messages and uncaught exceptions of a browser profile.
// Violations of the Content-Security-Policy and failed requests are console errors.
type watcher struct {
	mu        sync.Mutex
	errors    []string // errors, warnings and exceptions
	console   []string // all messages, for the artifacts
	allowed   []*regexp.Regexp
	responses []response
}

// response is one response that the browser received.
type response struct {
	method, path string
	status       int
}

// watch records the events of a browser profile from now on.
func watch(context playwright.BrowserContext) *watcher {
	w := &watcher{}
	context.OnConsole(func(m playwright.ConsoleMessage) {
		line := m.Type() + ": " + m.Text()
		if place := m.Location(); place != nil && place.URL != "" {
			line += " (" + place.URL + ")"
		}
		w.note(line, m.Type() == "error" || m.Type() == "warning")
	})
	context.OnWebError(func(e playwright.WebError) {
		w.note(fmt.Sprintf("uncaught: %v", e.Error()), true)
	})
	context.OnResponse(func(r playwright.Response) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.responses = append(w.responses, response{method: r.Request().Method(), path: pathOf(r.URL()), status: r.Status()})
	})
	return w
}

func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Path
}

func (w *watcher) note(line string, isError bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.console = append(w.console, line)
	if isError {
		w.errors = append(w.errors, line)
	}
}

// allowStatus allows responses with these statuses, which Chromium logs as console errors.
func (w *watcher) allowStatus(statuses ...int) {
	for _, status := range statuses {
		w.allow(fmt.Sprintf(`Failed to load resource: the server responded with a status of %d\b`, status))
	}
}

// allow allows errors and warnings that match pattern.
func (w *watcher) allow(pattern string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allowed = append(w.allowed, regexp.MustCompile(pattern))
}

// problems returns the errors and warnings that are not allowed.
func (w *watcher) problems() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var problems []string
next:
	for _, line := range w.errors {
		for _, allowed := range w.allowed {
			if allowed.MatchString(line) {
				continue next
			}
		}
		problems = append(problems, line)
	}
	return problems
}

// count returns the number of responses to method on path with this status.
func (w *watcher) count(method, path string, status int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, a := range w.responses {
		if a == (response{method: method, path: path, status: status}) {
			n++
		}
	}
	return n
}

// transcript returns all messages and responses as text.
func (w *watcher) transcript() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, line := range w.console {
		fmt.Fprintln(&b, line)
	}
	for _, a := range w.responses {
		fmt.Fprintf(&b, "%s %s -> %d\n", a.method, a.path, a.status)
	}
	return b.String()
}
