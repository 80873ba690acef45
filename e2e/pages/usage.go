package pages

// Usage is the page at /usage.
type Usage struct{ Frame }

// OpenUsage opens the page.
func OpenUsage(b *Tab) Usage {
	b.open("/usage", "Usage")
	return Usage{Frame{b}}
}

// Table returns the table of keys.
func (u Usage) Table() Area { return u.In("table", "Usage") }

// ShowKey shows the chart of the key with this label.
func (u Usage) ShowKey(label string) Area {
	u.Table().Follow(label)
	return u.In("figure", "Usage")
}
