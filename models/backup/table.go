package backup

import (
	"cmp"
	"strings"

	"portal/models/erasure"
)

// table is a table that is restored.
type table erasure.Table

// readCurrent returns the statement that copies what a restore keeps of the current database, or ""
// if it keeps nothing. The copy's name is that of the table with the prefix "current_".
func (t table) readCurrent() string {
	columns := words(t.Current, t.Lower, t.Higher, t.Stated)
	if len(columns) == 0 && t.Rows != erasure.RowsOfBoth {
		return ""
	}
	switch t.Rows {
	case erasure.RowsOfBoth:
		columns = append(words(t.Restored), columns...)
	case erasure.RowsOfBackup:
		columns = append(words(t.same()), columns...)
	case erasure.RowsOfUsers, erasure.NoRows:
	}
	return "CREATE TEMPORARY TABLE current_" + t.Name + " AS SELECT " + strings.Join(columns, ", ") + " FROM PREFIX" + t.Name + " WHERE COMPARED;\n"
}

// restore returns the statements that turn the table of the backup into the restored one.
func (t table) restore() string {
	switch t.Rows {
	case erasure.NoRows:
		return "DELETE FROM " + t.Name + ";\n"
	case erasure.RowsOfUsers:
		return t.replaceUsers()
	case erasure.RowsOfBoth:
		return t.update() + t.insert("NOT "+t.sameRow(t.Name), t.Referring)
	default:
		return t.update()
	}
}

// update changes the rows that both databases have.
func (t table) update() string {
	var set []string
	for _, column := range words(t.Current) {
		set = append(set, column+" = c."+column)
	}
	choose := func(columns, operator string) {
		for _, column := range words(columns) {
			own, other := t.Name+"."+column, "c."+column
			set = append(set, column+" = COALESCE(CASE WHEN "+other+operator+own+" THEN "+other+" ELSE "+own+" END, "+other+")")
		}
	}
	choose(t.Lower, " < ")
	choose(t.Higher, " > ")
	if set == nil {
		return ""
	}
	return "UPDATE " + t.Name + " SET " + strings.Join(set, ", ") + " FROM current_" + t.Name + " AS c WHERE " + t.equalKeys() + ";\n"
}

// insert adds rows of the current database that meet the conditions.
func (t table) insert(conditions ...string) string {
	columns := strings.Join(words(t.Restored, t.Current, t.Lower, t.Higher, t.Stated), ", ")
	where := ""
	for _, condition := range conditions {
		if condition != "" {
			where += " AND " + condition
		}
	}
	return "INSERT INTO " + t.Name + " (" + columns + ") SELECT " + columns + " FROM current_" + t.Name + " AS c WHERE true" + where + ";\n"
}

// replaceUsers takes the rows of each user from the current database, if that has the user.
func (t table) replaceUsers() string {
	return "DELETE FROM " + t.Name + " WHERE user_id IN (SELECT id FROM current_users) OR " + t.sameRow("current_"+t.Name+" AS c") + ";\n" +
		t.insert("user_id IN (SELECT id FROM users)")
}

// renew sets the columns that are renewed.
func (t table) renew() (statements string) {
	for _, r := range t.Renewed {
		statements += "UPDATE " + t.Name + " SET " + r.Column + " = " + r.Value
		if r.Where != "" {
			statements += " WHERE " + r.Where
		}
		statements += ";\n"
	}
	return statements
}

// sameRow returns the condition that other, which is the table or its copy, has the same row.
func (t table) sameRow(other string) string {
	return "EXISTS (SELECT 1 FROM " + other + " WHERE " + t.equalKeys() + ")"
}

// equalKeys returns the condition that a row and one of the copy, c, have the same key.
func (t table) equalKeys() string {
	var equal []string
	for _, column := range words(t.same()) {
		equal = append(equal, "c."+column+" = "+t.Name+"."+column)
	}
	return strings.Join(equal, " AND ")
}

// same returns the columns by which both databases have the same row.
func (t table) same() string { return cmp.Or(t.Same, t.Key) }

// words returns the words of all lists.
func words(lists ...string) []string { return strings.Fields(strings.Join(lists, " ")) }
