package erasure

// Searched returns the columns that the erasure of a user searches.
func (t Table) Searched() string { return t.searched }

// IsPurged reports whether the rows of the table expire.
func (t Table) IsPurged() bool { return t.purged != nil }
