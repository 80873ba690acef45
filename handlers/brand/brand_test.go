package brand_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"portal/handlers/brand"
	"portal/models/modelstest"
)

const svg = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8"/></svg>`

func picture(t *testing.T, width, height int) string {
	t.Helper()
	var content bytes.Buffer
	modelstest.Must(t, png.Encode(&content, image.NewGray(image.Rect(0, 0, width, height))))
	return content.String()
}

func TestLogos(t *testing.T) {
	small := picture(t, 8, 8)
	for name, logo := range map[string]struct{ content, contentType, refusal string }{
		"an SVG":                     {svg, "image/svg+xml", ""},
		"an SVG named as a PNG":      {svg, "image/svg+xml", ""},
		"the largest":                {svg + strings.Repeat(" ", brand.MaxLogo-len(svg)), "image/svg+xml", ""},
		"too large":                  {svg + strings.Repeat(" ", brand.MaxLogo-len(svg)+1), "", "larger than 32 KiB"},
		"a PNG":                      {small, "image/png", ""},
		"half a PNG":                 {small[:len(small)/2], "", "neither a valid SVG nor a valid PNG"},
		"a PNG with too many pixels": {picture(t, 2049, 1), "", "2049 × 1 pixels"},
		"empty":                      {"", "", "no element svg"},
		"HTML":                       {"<html><body/></html>", "", "root is no svg"},
		"no namespace":               {"<svg/>", "", "root is no svg"},
		"two roots":                  {svg + `<svg xmlns="http://www.w3.org/2000/svg"/>`, "", "root is no svg"},
		"an open element":            {svg[:len(svg)-2], "", "valid"},
		"a JPEG":                     {"\xff\xd8\xff\xe0\x00\x10JFIF", "", "valid"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "logo.png")
			modelstest.Must(t, os.WriteFile(path, []byte(logo.content), 0o600))
			found, err := brand.ReadLogo(path)
			switch {
			case logo.refusal != "" && (err == nil || !strings.Contains(err.Error(), logo.refusal) || strings.Contains(err.Error(), "\n")):
				t.Errorf("the error is %v", err)
			case logo.refusal == "" && (err != nil || found.ContentType != logo.contentType || string(found.Content) != logo.content):
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
	if _, err := brand.ReadLogo(filepath.Join(t.TempDir(), "none.svg")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "name an SVG or PNG file") {
		t.Errorf("a missing file: %v", err)
	}
}

// luminance computes as WCAG 2.2 defines it, without the code under test.
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	n := modelstest.Value(strconv.ParseUint(strings.TrimPrefix(color, "#"), 16, 32))(t)
	sum := 0.0
	for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
		v := float64(n>>(8*i)&255) / 255
		if v > 0.04045 {
			v = math.Pow((v+0.055)/1.055, 2.4)
		} else {
			v /= 12.92
		}
		sum += weight * v
	}
	return sum
}

// backgrounds returns the values of tokens.css for each scheme.
func backgrounds(t *testing.T, dark bool) (all []string) {
	t.Helper()
	light, rest, found := strings.Cut(string(modelstest.Value(os.ReadFile("../../static/css/tokens.css"))(t)), "@media screen and (prefers-color-scheme: dark)")
	if dark {
		light = rest
	}
	for _, match := range regexp.MustCompile(`--(?:canvas|sidebar|surface|sunken|hover): (#[0-9a-f]{6})`).FindAllStringSubmatch(light, -1) {
		all = append(all, match[1])
	}
	if !found || len(all) != 5 {
		t.Fatalf("tokens.css has the backgrounds %q", all)
	}
	return all
}

func TestAccentHasContrast(t *testing.T) {
	accepted := 0
	// All colors in steps, and the corners.
	for r := range 6 {
		for g := range 6 {
			for b := range 6 {
				value := "#" + strings.Join([]string{hex(r * 51), hex(g * 51), hex(b * 51)}, "")
				accent, err := brand.NewAccent(value)
				least := 21.0
				for _, page := range []string{"#ffffff", backgrounds(t, false)[0]} {
					least = min(least, ratio(t, value, page))
				}
				if (err == nil) != (least >= 4.5) {
					t.Errorf("%s has a contrast of %.2f: %v", value, least, err)
				}
				if err != nil {
					continue
				}
				accepted++
				for _, scheme := range []struct {
					shades brand.Shades
					pages  []string
				}{{accent.Light, backgrounds(t, false)}, {accent.Dark, backgrounds(t, true)}} {
					s := scheme.shades
					pairs := [][2]string{
						{s.On.String(), s.Accent.String()},
						{s.On.String(), s.Strong.String()},
						{s.Text.String(), s.Soft.String()},
						{s.Strong.String(), s.Soft.String()},
					}
					for _, page := range scheme.pages {
						pairs = append(pairs, [2]string{s.Text.String(), page}, [2]string{s.Strong.String(), page})
					}
					for _, pair := range pairs {
						if found := ratio(t, pair[0], pair[1]); found < 4.5 {
							t.Errorf("%s: %s on %s has a contrast of %.2f", value, pair[0], pair[1], found)
						}
					}
				}
			}
		}
	}
	if accepted < 50 {
		t.Errorf("only %d colors are accepted", accepted)
	}
}

func hex(n int) string { return string("0123456789abcdef"[n/16]) + string("0123456789abcdef"[n%16]) }

func ratio(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Links are darker than the accent where it can be read on the page, but not on all backgrounds.
func TestAccentIsUsedAsItIs(t *testing.T) {
	for value, darker := range map[string]bool{"#0b6b4e": false, "#2563eb": true} {
		accent := modelstest.Value(brand.NewAccent(value))(t)
		if light := accent.Light; light.Accent.String() != value || (light.Text != light.Accent) != darker {
			t.Errorf("%s has the shades %v", value, light)
		}
	}
}

func TestAccentThatIsNoColor(t *testing.T) {
	for _, value := range []string{"", "red", "#0b6", "0b6b4e", "#0b6b4g", "#0b6b4e80", "#0b6b4e;}"} {
		if _, err := brand.NewAccent(value); err == nil || !strings.Contains(err.Error(), "#0b6b4e") {
			t.Errorf("%q: %v", value, err)
		}
	}
	if _, err := brand.NewAccent("#ffcc00"); err == nil || !strings.Contains(err.Error(), "contrast of 1.") || !strings.Contains(err.Error(), "darker") {
		t.Errorf("yellow: %v", err)
	}
}
