package widget

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"
)

// constantClaims returns the JSON of the claims that come first and are the same in every token.
func constantClaims(issuer string) string {
	quoted, err := json.Marshal(issuer)
	if err != nil {
		panic(err) // encoding a string cannot fail
	}
	return `{"iss":` + string(quoted) + `,"aud":"` + audience + `","sub":"`
}

// appendClaims appends the JSON of the claims of a new token, as json.Marshal encodes it.
// BenchmarkClaims compares the two.
func (t *Tokens) appendClaims(b []byte, c Claims) []byte {
	b = appendID(append(b, t.claims...), c.AccountID)
	b = appendID(append(b, `","client_id":"`...), c.KeyID)
	b = appendID(append(b, `","agent_id":"`...), c.AgentID)
	b = strconv.AppendInt(append(b, `","scope":"`+scope+`","iat":`...), c.IssuedAt, 10)
	b = strconv.AppendInt(append(b, `,"nbf":`...), c.NotBefore, 10)
	b = strconv.AppendInt(append(b, `,"exp":`...), c.ExpiresAt, 10)
	b = append(appendID(append(b, `,"jti":"`...), c.ID), '"')
	if c.Context != nil {
		b = c.appendFields(b)
	}
	return append(b, '}')
}

// appendFields appends the fields of the context, each after a comma. Because escaping for HTML
// would make a token up to six times as long, it leaves that out.
func (c *Context) appendFields(b []byte) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		panic(err) // encoding strings cannot fail
	}
	fields := bytes.TrimSuffix(text.Bytes()[1:], []byte("}\n"))
	if len(fields) == 0 {
		return b
	}
	return append(append(b, ','), fields...)
}

// appendID appends the 36-character form of an id.
func appendID(b []byte, id uuid.UUID) []byte {
	b = append(hex.AppendEncode(b, id[:4]), '-')
	b = append(hex.AppendEncode(b, id[4:6]), '-')
	b = append(hex.AppendEncode(b, id[6:8]), '-')
	b = append(hex.AppendEncode(b, id[8:10]), '-')
	return hex.AppendEncode(b, id[10:])
}
