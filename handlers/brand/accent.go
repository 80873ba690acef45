package brand

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// MinContrast is the contrast that text must have (WCAG 2.2, criterion 1.4.3).
const MinContrast = 4.5

// Shades are the colors that replace those of the style sheet in one color scheme.
type Shades struct {
	Accent Color // of the background of the main button
	Text   Color // of links: Accent, or a shade that can be read on every background
	Strong Color // under the pointer, and on Soft
	Soft   Color // the background of the current entry
	On     Color // of text on Accent and on Strong
}

// Accent is an accent color for both color schemes.
type Accent struct{ Light, Dark Shades }

// The backgrounds of the style sheet on which text in the accent color stands. The first one is
// that of the page.
var (
	lightPages = []Color{mustParse("#fafaf8"), mustParse("#ffffff"), mustParse("#f5f5f1"), mustParse("#f3f3ef"), mustParse("#ecece6")}
	darkPages  = []Color{mustParse("#121514"), mustParse("#171b19"), mustParse("#1b1f1d"), mustParse("#151917"), mustParse("#262c29")}
)

var (
	white = Color{R: 255, G: 255, B: 255}
	black = Color{}
)

// NewAccent returns the shades of a color such as #0b6b4e. If text in this color on the page, or
// white text on it, has too little contrast, or in the dark scheme its lighter shade has, the error
// says so.
func NewAccent(value string) (*Accent, error) {
	accent, err := parseColor(value)
	if err != nil {
		return nil, err
	}
	if found := leastContrast(accent, []Color{lightPages[0], white}); found < MinContrast {
		return nil, fmt.Errorf("%s is too light: text in it on the page has a contrast of %.1f, and %.1f is needed; choose a darker color",
			value, math.Floor(found*10)/10, MinContrast)
	}
	light := Shades{Accent: accent, Text: accent, Soft: accent.mixed(white, 0.9), On: white}
	for share := 0.0; leastContrast(light.Text, append(lightPages, light.Soft)) < MinContrast; share += 0.02 {
		light.Text = accent.mixed(black, share)
	}
	light.Strong = light.Text.mixed(black, 0.2)
	dark := Shades{Accent: accent, Soft: accent.mixed(darkPages[0], 0.75), On: accent.mixed(black, 0.85)}
	for share := 0.0; leastContrast(dark.Accent, append(darkPages, dark.Soft, dark.On)) < MinContrast; share += 0.02 {
		if share > 1 {
			return nil, fmt.Errorf("%s has no lighter shade that can be read in the dark scheme; choose another color", value)
		}
		dark.Accent = accent.mixed(white, share)
	}
	dark.Text, dark.Strong = dark.Accent, dark.Accent.mixed(white, 0.3)
	return &Accent{light, dark}, nil
}

// Stylesheet returns the style sheet that follows the portal's own. On paper everything stays
// black, and with forced colors the browser chooses all colors.
func (a *Accent) Stylesheet() string {
	return "@media screen and (forced-colors: none) { :root { " + a.Light.declarations() + " } }\n" +
		"@media screen and (forced-colors: none) and (prefers-color-scheme: dark) { :root { " + a.Dark.declarations() + " } }\n"
}

func (s Shades) declarations() string {
	return fmt.Sprintf("--accent: %s; --accent-text: %s; --accent-strong: %s; --accent-soft: %s; --on-accent: %s;", s.Accent, s.Text, s.Strong, s.Soft, s.On)
}

// Color is an sRGB color.
type Color struct{ R, G, B uint8 }

var hexColor = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

func parseColor(value string) (Color, error) {
	if !hexColor.MatchString(value) {
		return Color{}, errors.New("write the color as # and six hexadecimal digits, such as #0b6b4e")
	}
	n, err := strconv.ParseUint(value[1:], 16, 32)
	return Color{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n)}, err //nolint:gosec // cut on purpose
}

func mustParse(value string) Color {
	c, err := parseColor(value)
	if err != nil {
		panic(err) // a constant of this file
	}
	return c
}

// String returns the color as style sheets have it.
func (c Color) String() string { return strings.ToLower(fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)) }

// mixed returns the color with a share of another one.
func (c Color) mixed(with Color, share float64) Color {
	share = min(share, 1)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-share) + float64(b)*share)) }
	return Color{R: mix(c.R, with.R), G: mix(c.G, with.G), B: mix(c.B, with.B)}
}

// luminance is the relative luminance (WCAG 2.2).
func (c Color) luminance() float64 {
	linear := func(channel uint8) float64 {
		v := float64(channel) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// contrast is the contrast of two colors, from 1 to 21 (WCAG 2.2).
func contrast(a, b Color) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func leastContrast(c Color, backgrounds []Color) float64 {
	least := math.Inf(1)
	for _, background := range backgrounds {
		least = min(least, contrast(c, background))
	}
	return least
}
