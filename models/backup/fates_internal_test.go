package backup

import (
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
)

func TestEveryColumnHasAFateAtARestore(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		query := "SELECT m.name || '.' || c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'"
		if strings.HasPrefix(url, "postgres") {
			query = "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public'"
		}
		var stored, listed []string
		modelstest.Must(t, modelstest.OpenDatabase(t, url).NewRaw(query).Scan(t.Context(), &stored))
		for _, table := range tables {
			columns := words(table.restored, table.current, table.lower, table.higher, table.stated, table.gone)
			for _, renewal := range table.renewed {
				columns = append(columns, renewal.column)
			}
			for _, column := range columns {
				listed = append(listed, table.name+"."+column)
			}
		}
		slices.Sort(stored)
		slices.Sort(listed)
		for _, column := range stored {
			if !slices.Contains(listed, column) {
				t.Errorf("what does a restore make of %s? If it is as in the backup, what comes back that somebody has taken away since?", column)
			}
		}
		if !slices.Equal(stored, listed) {
			t.Errorf("the columns are %q, want %q", listed, stored)
		}
	})
}
