package api

import (
	"encoding/json"
	"fmt"
	"math"

	"portal/handlers/problem"
	"portal/models/value"
)

// limits are the limits of the calls of a key or an account; null: none.
type limits struct {
	Calls           *int64 `json:"calls"`
	MinutesPerCall  *int64 `json:"minutesPerCall"`
	MinutesPerMonth *int64 `json:"minutesPerMonth"`
}

func newLimits(l value.Limits) limits {
	set := func(value int64) *int64 {
		if value == 0 {
			return nil
		}
		return &value
	}
	return limits{Calls: set(l.Calls), MinutesPerCall: set(l.MinutesPerCall), MinutesPerMonth: set(l.MinutesPerMonth)}
}

// limits returns the field limits, or nil if it is missing. Null, and a field that is missing or
// null, mean no limit.
func (o *object) limits() *value.Limits {
	if !o.has("limits") {
		return nil
	}
	fields := o.optional("limits")
	limit := func(name string) int64 {
		value := fields[name]
		if value == nil {
			return 0
		}
		number, _ := value.(json.Number)
		n, err := number.Float64()
		if err != nil || n != math.Trunc(n) || n < 1 || n > math.MaxInt32 {
			o.refuse(fmt.Sprintf("The field limits.%s is neither null nor a whole number above zero.", name))
			return 0
		}
		return int64(n)
	}
	l := value.Limits{Calls: limit("calls"), MinutesPerCall: limit("minutesPerCall"), MinutesPerMonth: limit("minutesPerMonth")}
	if err := value.CheckLimits(l); err != nil {
		o.refuse(problem.From(err).Message)
	}
	return &l
}
