package templates

import "bytes"

// A row with up to 20 copies of its id begins with rowStart and the id. In the rest of the row,
// rowID stands for the id. Template actions in its place would take half of the time of the page,
// which BenchmarkPages of handlers/portal measures. Escaping replaces the "<" of values, so no
// value contains either.
var (
	rowStart = []byte("<row>")
	rowID    = []byte("<id>")
)

const idLength = len("00000000-0000-0000-0000-000000000000")

// fillRowIDs returns a copy of the page without the starts of its rows, and with the id of the row
// in place of each rowID.
func fillRowIDs(html []byte) []byte {
	parts := bytes.Split(html, rowStart)
	for i, row := range parts[1:] {
		parts[i+1] = bytes.ReplaceAll(row[idLength:], rowID, row[:idLength])
	}
	return bytes.Join(parts, nil)
}
