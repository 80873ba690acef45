package reference

import (
	"fmt"
	"strings"
	"time"

	"portal/templates"
)

// Changelog reads CHANGELOG.md of the API: headings such as "## 1.1.0, 2026-11-22", and below each
// a list of changes. If any other text follows the first heading, Changelog returns an error.
func Changelog(text string) ([]templates.Release, error) {
	var releases []templates.Release
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		last := len(releases) - 1
		heading, isHeading := strings.CutPrefix(line, "## ")
		change, isChange := strings.CutPrefix(line, "- ")
		switch {
		case isHeading:
			version, date, _ := strings.Cut(heading, ", ")
			if _, err := time.Parse(time.DateOnly, date); err != nil {
				return nil, fmt.Errorf("CHANGELOG.md: heading %q: %w", heading, err)
			}
			releases = append(releases, templates.Release{Version: version, Date: date})
		case last < 0 || line == "":
		case isChange:
			releases[last].Changes = append(releases[last].Changes, templates.NewProse(change))
		default:
			return nil, fmt.Errorf("CHANGELOG.md: line %q is neither a heading nor a change", line)
		}
	}
	return releases, nil
}
