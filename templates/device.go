package templates

import "strings"

// The signs in a User-Agent and the names they stand for. Because most browsers also name the
// browsers that they imitate, the first match counts.
var (
	browsers = []struct{ sign, name string }{
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
	systems = []struct{ sign, name string }{
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
	var browser, system string
	for _, known := range browsers {
		if strings.Contains(userAgent, known.sign) {
			browser = known.name
			break
		}
	}
	for _, known := range systems {
		if strings.Contains(userAgent, known.sign) {
			system = known.name
			break
		}
	}
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
