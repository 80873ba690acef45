package templates

import "strconv"

// Count is a number, formatted with thousands separators: "1,204".
type Count int64

func (n Count) String() string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
