// Package brand has what an operator sets so that the portal looks like a part of the platform: a
// logo, an accent color and a way home. It imports nothing of ours.
package brand

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"io/fs"
	"os"
)

// Brand is the look of a portal. Its zero value is the portal's own.
type Brand struct {
	Logo    *Logo   // nil: the portal's own
	Accent  *Accent // nil: the portal's own
	HomeURL string  // of the platform; may be empty
}

// MaxLogo is the maximum size of a logo in bytes, because every visitor loads it.
const MaxLogo = 32 << 10

// maxLogoSide limits the pixels of a PNG, because a small file can unpack to a huge picture.
const maxLogoSide = 2048

// Logo is a picture that has been checked.
type Logo struct {
	Content     []byte
	ContentType string
	Extension   string // of a file, with the dot
}

// IsSVG reports whether the logo is an SVG, which email programs do not show.
func (l *Logo) IsSVG() bool { return l.Extension == ".svg" }

// unreadable returns the error of a file that cannot be read.
func unreadable(path string, err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return fmt.Errorf("%s cannot be read: %w; name an SVG or PNG file that the user that runs the portal may read", path, err)
}

// ReadLogo reads a file and decides by its content what it is. The error says what is wrong.
func ReadLogo(path string) (*Logo, error) {
	file, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, MaxLogo+1))
	switch {
	case err != nil:
		return nil, unreadable(path, err)
	case len(content) > MaxLogo:
		return nil, fmt.Errorf("%s is larger than %d KiB", path, MaxLogo>>10)
	}
	logo := &Logo{Content: content, ContentType: "image/svg+xml", Extension: ".svg"}
	problem := checkSVG(content)
	if bytes.HasPrefix(content, []byte("\x89PNG\r\n\x1a\n")) {
		logo = &Logo{Content: content, ContentType: "image/png", Extension: ".png"}
		problem = checkPNG(content)
	}
	if problem != nil {
		return nil, fmt.Errorf("%s is neither a valid SVG nor a valid PNG: %w", path, problem)
	}
	return logo, nil
}

func checkPNG(content []byte) error {
	config, err := png.DecodeConfig(bytes.NewReader(content))
	if err != nil {
		return err
	}
	if config.Width > maxLogoSide || config.Height > maxLogoSide {
		return fmt.Errorf("it has %d × %d pixels, and at most %d on a side are shown", config.Width, config.Height, maxLogoSide)
	}
	_, err = png.Decode(bytes.NewReader(content))
	return err
}

// checkSVG checks that the content is one XML document whose root is an SVG. What the SVG may do is
// limited by the headers of its response.
func checkSVG(content []byte) error {
	decoder, depth, found := xml.NewDecoder(bytes.NewReader(content)), 0, false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && found {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return errors.New("it has no element svg")
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth == 0 && (found || token.Name != xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}) {
				return errors.New("its root is no svg with the namespace http://www.w3.org/2000/svg")
			}
			depth, found = depth+1, true
		case xml.EndElement:
			depth--
		}
	}
}
