package templates

import "strings"

type deviceSign struct{ sign, name string }

// The signs in a User-Agent and the names they stand for. Because most browsers also name the
// browsers that they imitate, the first match counts.
var (
	browsers = []deviceSign{
		{"Edg/", "Edge"},
		{"EdgA/", "Edge"},
		{"EdgiOS/", "Edge"},
		{"OPR/", "Opera"},
		{"Vivaldi/", "Vivaldi"},
		{"SamsungBrowser/", "Samsung Internet"},
		{"Firefox/", "Firefox"},
		{"FxiOS/", "Firefox"},
		{"HeadlessChrome/", "Chrome"},
		{"CriOS/", "Chrome"},
		{"Chrome/", "Chrome"},
		{"Safari/", "Safari"},
		{"curl/", "curl"},
	}
	systems = []deviceSign{
		{"iPhone", "iPhone"},
		{"iPad", "iPad"},
		{"Android", "Android"},
		{"CrOS", "ChromeOS"},
		{"Windows", "Windows"},
		{"Macintosh", "Mac"},
		{"Linux", "Linux"},
	}
)

// Device returns a name for the browser and the system of a User-Agent. Clients can send anything.
func Device(userAgent string) string {
	browser, system := firstKnown(browsers, userAgent), firstKnown(systems, userAgent)
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser != "":
		return browser
	case system != "":
		return "Browser on " + system
	default:
		return "Unknown device"
	}
}

func firstKnown(signs []deviceSign, userAgent string) string {
	for _, known := range signs {
		if strings.Contains(userAgent, known.sign) {
			return known.name
		}
	}
	return ""
}
