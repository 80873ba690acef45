package templates

import (
	"fmt"
	"strings"
)

// The sizes of the hourly chart, in SVG units.
const (
	hoursHeight = 32
	hoursStep   = 10
)

// Hours returns the SVG path of a small chart with one vertical line for each hour that has
// requests. The height is relative to most, so that the charts of two keys have the same scale.
func Hours(requests []int64, most int64) string {
	var path strings.Builder
	for i, n := range requests {
		if n > 0 {
			fmt.Fprintf(&path, "M%d %dv-%d", i*hoursStep+hoursStep/2, hoursHeight, scaled(n, max(n, most), hoursHeight))
		}
	}
	return path.String()
}
