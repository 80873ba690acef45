package erasure

import (
	"slices"
	"strings"
)

// Columns returns the names of the columns that have a fate, sorted, by the names of tables.
func Columns() map[string][]string {
	names := map[string][]string{}
	for table, fates := range columns {
		for _, list := range fates {
			names[table] = append(names[table], strings.Fields(list)...)
		}
		slices.Sort(names[table])
	}
	return names
}
