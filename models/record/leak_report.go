package record

import "net/url"

// LeakReporter says who reported a leaked key; empty for a key that nobody has reported.
type LeakReporter string

// The reporters.
const (
	LeakGitHub LeakReporter = "github"
	LeakPublic LeakReporter = "public" // anyone, without credentials
)

// String returns the reporter as users see it, such as "Reported as leaked by GitHub".
func (r LeakReporter) String() string { return "R" + r.Words()[1:] }

// Words is String in a sentence, such as "reported as leaked by GitHub".
func (r LeakReporter) Words() string {
	if r == LeakGitHub {
		return "reported as leaked by GitHub"
	}
	return "reported as leaked"
}

// Leak says who reported a key as leaked, and where it was found.
type Leak struct {
	Reporter LeakReporter `bun:",nullzero"`
	URL      string       `bun:"url,nullzero"` // as cleaned by cleanLeakURL
}

// String returns the reason with the URL, such as "Reported as leaked by GitHub: https://...".
// Unless the key was reported, it is empty.
func (l Leak) String() string {
	switch {
	case l.Reporter == "":
		return ""
	case l.URL == "":
		return l.Reporter.String()
	default:
		return l.Reporter.String() + ": " + l.URL
	}
}

// Link returns the URL if it is an http or https URL, and "" if it must not be a link.
func (l Leak) Link() string {
	u, err := url.Parse(l.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	return l.URL
}
