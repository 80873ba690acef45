package value

// InvalidError reports input that breaks a rule.
type InvalidError struct {
	Field   string // the input's name, such as "label"
	Message string // for the user; says what to do
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Message }
