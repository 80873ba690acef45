package webhooks_test

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"portal/models/webhooks"
)

// The vectors of Standard Webhooks' specification, and one of a body like ours.
func TestSignature(t *testing.T) {
	for _, v := range []struct {
		secret, id, body, want string
		at                     int64
	}{
		{"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", 1614265330},
		{
			"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "0198c2f4-7a31-7c6e-9d52-3f8be6a1c0ff",
			`{"type":"api_key.revoked","timestamp":"2025-11-23T12:00:00Z","data":{"id":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c0ff"}}`,
			"v1,UXNsdHCbRV9ulPyA5OjINV776m5HDL/95zHVJNALz8s=", 1763899200,
		},
	} {
		secret, err := base64.StdEncoding.DecodeString(v.secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := webhooks.Sign(v.id, time.Unix(v.at, 0), []byte(v.body), secret); got != v.want {
			t.Errorf("%s: %s, want %s", v.id, got, v.want)
		}
		if got := webhooks.Sign(v.id, time.Unix(v.at, 0), []byte(v.body), []byte("x"), secret); !strings.HasSuffix(got, " "+v.want) {
			t.Errorf("two secrets: %s", got)
		}
		if got := webhooks.SecretText(secret); got != "whsec_"+v.secret {
			t.Errorf("the secret reads %s", got)
		}
	}
}

func dials(g *webhooks.Guard, address string) error {
	return g.Control(false)("tcp", netip.AddrPortFrom(netip.MustParseAddr(address), 443).String(), nil)
}

func TestRefusedAddresses(t *testing.T) {
	guard := &webhooks.Guard{}
	for _, address := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255",
		"::", "::1", "fc00::1", "fd12::1", "fe80::1", "ff02::1", "2001:db8::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1", "fec0::1",
	} {
		if dials(guard, address) == nil {
			t.Errorf("%s is allowed", address)
		}
		host := address
		if strings.Contains(address, ":") {
			host = "[" + address + "]"
		}
		if guard.CheckURL("https://"+host+"/x") == "" {
			t.Errorf("a URL with %s is allowed", address)
		}
	}
	for _, address := range []string{"1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1", "100.63.255.255", "172.32.0.1"} {
		if err := dials(guard, address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAllowedNetworks(t *testing.T) {
	base, _ := url.Parse("https://portal.internal:8443")
	guard := &webhooks.Guard{
		Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("127.0.0.0/8")},
		Own:      []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:443"), netip.MustParseAddrPort("[::]:9090")},
		BaseURL:  base,
	}
	control := func(unencrypted bool, address string) error {
		return guard.Control(unencrypted)("tcp", address, nil)
	}
	for address, want := range map[string]error{
		"10.1.2.3:443": nil, "[::ffff:10.1.2.3]:443": nil, "10.2.0.1:443": webhooks.ErrAddress, "127.0.0.2:443": nil,
		// The portal itself, also where its network is allowed.
		"127.0.0.1:443": webhooks.ErrOwnAddress, "[::ffff:127.0.0.1]:443": webhooks.ErrOwnAddress, "[64:ff9b::7f00:1]:443": webhooks.ErrOwnAddress,
		"127.0.0.1:9090": webhooks.ErrOwnAddress, "[::1]:9090": webhooks.ErrOwnAddress, "127.0.0.1:9091": nil,
	} {
		if err := control(false, address); err != want { //nolint:errorlint // the error itself
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
	if control(true, "127.0.0.5:80") != nil || control(true, "10.1.2.3:80") == nil || control(true, "1.1.1.1:80") == nil {
		t.Error("http is not for loopback addresses alone")
	}
	for text, allowed := range map[string]bool{
		"https://example.com/x?y=z": true, "http://example.com/": false, "http://127.0.0.7:8081/x": true, "http://localhost:8081/": true,
		"http://10.1.2.3/": false, "https://10.1.2.3/": true, "https://10.2.0.1/": false, "http://[::1]/": false, "ftp://127.0.0.1/": false,
		"https://PORTAL.internal:8443/x": false, "https://portal.internal.:8443/": false, "https://portal.internal/x": true,
		"https://user@example.com/": false, "https://user:pw@example.com/": false, "https://example.com/#x": false, "https://example.com/#": false,
		"https://2130706433/": false, "https://0x7f000001/": false, "https://127.1/": false, "https://0177.0.0.1/": false, "https://127.0.0.1./": false, "https://8.8.8.8/": true,
		"https://1.example/": true, "https://example.com:8443/": true, "https://example.com:0/": false, "https://example.com:65536/": false, "": false, "example.com": false, "https://": false, "https:///x": false, "https://exa mple.com/": false, "https://example.com/\n": false,
		"https://example.com/" + strings.Repeat("x", 480): true, "https://example.com/" + strings.Repeat("x", 481): false,
	} {
		if message := guard.CheckURL(text); (message == "") != allowed {
			t.Errorf("%q: %q", text, message)
		}
	}
}

// A host in other characters than it is resolved with is the same host. Nobody can tell from the
// text where a URL with invisible characters leads.
func TestHostsInOtherCharacters(t *testing.T) {
	base, _ := url.Parse("https://b\u00fccher.example")
	guard := &webhooks.Guard{BaseURL: base}
	for text, allowed := range map[string]bool{
		"https://m\u00fcller.example/": true, "https://example.com/\u6771\u4eac?q=\u6771": true, "https://xn--mller-kva.example/": true,
		"https://b\u00fccher.example/": false, "https://B\u00dcCHER.example./": false, "https://xn--bcher-kva.example/": false, "https://bu\u0308cher.example/": false,
		"https://xn--bcher-kva.example:8443/": true,
		// Full-width digits and letters, an ideographic full stop, and digits in circles.
		"https://\uff11\uff12\uff17.0.0.1/": false, "https://127\u30020\u30020\u30021/": false, "https://\u2460\u2461\u2466.0.0.1/": false, "https://\uff11\uff12\uff17\uff0e1/": false,
		"https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/": false, "https://\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54/": false, "https://\uff45xample.com/": false,
		"https://m\u00fcller.\uff11\uff12\uff17/": false, "https://m%C3%BCller.example/": false, "https://\u2100.example/": false,
		"https://exam\u200bple.com/": false, "https://exam%E2%80%8Bple.com/": false, "https://exam\u00adple.com/": false, "https://example.com\u202e/": false,
		"https://example.com/\u202egpj.exe": false, "https://example.com/x\u200b": false, "https://example.com/\u2066x\u2069": false, "https://example.com/\ufeff": false,
		"https://example.com/?\u3164": false, "https://example.com/\u0085": false, "https://example.com/\xff": false, "https://example.com/\u00a0": false,
	} {
		if message := guard.CheckURL(text); (message == "") != allowed {
			t.Errorf("%+q: %q", text, message)
		}
	}
}
