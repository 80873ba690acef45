package portal

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"portal/static"
)

// minCompressed is the minimum length in bytes of a page that is compressed. A shorter page fits
// into one packet anyway.
const minCompressed = 1 << 10

// compressionLevel takes a quarter of the time of the default level, 1 ms for the longest list, and
// its result is a tenth larger.
const compressionLevel = 3

// compressors are reused: one takes more memory than most pages.
var compressors = sync.Pool{New: func() any {
	compressor, _ := gzip.NewWriterLevel(nil, compressionLevel) // the level is valid
	return compressor
}}

// compressed returns the page, compressed if the client accepts that, and sets the headers.
//
// It compresses responses to GET only: responses to forms may show a key, and the length of
// compressed text depends on its content.
func compressed(c *gin.Context, html []byte) []byte {
	c.Writer.Header().Add("Vary", "Accept-Encoding")
	if c.Request.Method != http.MethodGet || len(html) < minCompressed || !static.AcceptsGzip(c.Request) {
		return html
	}
	compressor := compressors.Get().(*gzip.Writer)
	defer compressors.Put(compressor)
	var smaller bytes.Buffer
	compressor.Reset(&smaller)
	_, _ = compressor.Write(html) // a buffer accepts every write
	_ = compressor.Close()
	c.Header("Content-Encoding", "gzip")
	return smaller.Bytes()
}
