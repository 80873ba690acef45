package templates

import "bytes"

// rowID stands for the id of a row or an item anywhere after its start. Each has up to 20 ids,
// which would take half of the time of the page as template actions. Escaping replaces the "<" of
// values, so no value on a page contains a rowID or a start.
const rowID = "<id>"

// rowStarts come before the id of a row.
var rowStarts = [][]byte{[]byte(`<tr id="api-key-`), []byte(`<li id="agent-`)}

const idLength = len("00000000-0000-0000-0000-000000000000")

// fillRowIDs returns the page with the id of its row in place of each rowID.
func fillRowIDs(html []byte) []byte {
	count := bytes.Count(html, []byte(rowID))
	if count == 0 {
		return html
	}
	filled := make([]byte, 0, len(html)+count*(idLength-len(rowID)))
	var id []byte
	for range count {
		before, rest, _ := bytes.Cut(html, []byte(rowID))
		for _, start := range rowStarts {
			// Several rows may end here. bytes.LastIndex is much slower.
			for _, row, found := bytes.Cut(before, start); found; _, row, found = bytes.Cut(row, start) {
				id = row[:idLength]
			}
		}
		filled = append(append(filled, before...), id...)
		html = rest
	}
	return append(filled, html...)
}
