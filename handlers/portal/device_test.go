package portal_test

import "testing"

func TestDeviceNames(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for userAgent, want := range map[string]string{
			firefox: "Firefox on Linux",
			iPhone:  "Safari on iPhone",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36":               "Chrome on Windows",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0": "Edge on Windows",
			"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15":         "Safari on Mac",
			"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":                  "Chrome on Android",
			"Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1": "Chrome on iPad",
			"curl/8.5.0":                      "curl",
			"Mozilla/5.0 (X11; Linux x86_64)": "Browser on Linux",
			"<script>alert(1)</script>":       "Unknown device",
		} {
			here := c.elsewhere(userAgent)
			here.t = t
			sessionItems(here.get("/account"))[0].says(want + " This session")
			here.post("/logout", nil)
		}
	})
}
