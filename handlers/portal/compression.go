package portal

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"portal/static"
)

// worthCompressing is the length in bytes from which a page is compressed: what
// is shorter fits into one packet as it is.
const worthCompressing = 1 << 10

// compressors are kept, for one takes more memory than most pages.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// compressed returns the page as it is sent to whoever takes it compressed, and
// says so in the headers.
//
// Only what answers a GET is: a key is shown in the answer to a form alone, and
// the length of what is compressed tells of what stands beside it.
func compressed(c *gin.Context, html []byte) []byte {
	c.Writer.Header().Add("Vary", "Accept-Encoding")
	if c.Request.Method != http.MethodGet || Reveals(c) || len(html) < worthCompressing || !static.AcceptsGzip(c.Request) {
		return html
	}
	compressor := compressors.Get().(*gzip.Writer)
	defer compressors.Put(compressor)
	var smaller bytes.Buffer
	compressor.Reset(&smaller)
	_, _ = compressor.Write(html) // a buffer takes everything
	_ = compressor.Close()
	c.Header("Content-Encoding", "gzip")
	return smaller.Bytes()
}
