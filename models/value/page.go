package value

import (
	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Page selects a part of a list.
type Page struct {
	After uuid.UUID // the last entry of the previous page; zero for the first page
	Limit int       // the maximum number of entries, at least 1
}

// List is a page of a list.
type List[T any] struct {
	Items []T       // never nil
	Next  uuid.UUID // After of the next page; zero on the last page
}

// Entry is an entry of a list.
type Entry interface{ EntryID() uuid.UUID }

// IDs returns the ids of entries.
func IDs[T Entry](entries []T) (ids []uuid.UUID) {
	for _, entry := range entries {
		ids = append(ids, entry.EntryID())
	}
	return ids
}

// Cut returns the list of rows, which a query with the limit p.Limit + 1 has returned.
func Cut[T Entry](rows []T, p Page) List[T] {
	if len(rows) <= p.Limit {
		return List[T]{Items: rows}
	}
	rows = rows[:p.Limit]
	return List[T]{rows, rows[len(rows)-1].EntryID()}
}

// ByID orders the query by id and limits it to the page and one row more.
func (p Page) ByID(query *bun.SelectQuery) *bun.SelectQuery {
	if p.After != uuid.Nil {
		query = query.Where("?TableAlias.id > ?", p.After)
	}
	return query.OrderExpr("?TableAlias.id").Limit(int64(p.Limit) + 1)
}
