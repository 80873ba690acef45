package templates

import (
	"fmt"
	"strings"
)

// The sizes of the drawing of hours, in its units.
const (
	hoursHeight = 32
	hoursStep   = 10
)

// Hours returns the path of a small drawing with one line an hour, of ten units
// in width and up to 32 in height to the scale of most, which may be another
// key's. Hours without requests are left out.
func Hours(requests []int64, most int64) string {
	var path strings.Builder
	for i, n := range requests {
		if n > 0 {
			fmt.Fprintf(&path, "M%d %dv-%d", i*hoursStep+hoursStep/2, hoursHeight, scaled(n, max(n, most), hoursHeight))
		}
	}
	return path.String()
}
