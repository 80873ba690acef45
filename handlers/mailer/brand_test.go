package mailer_test

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"portal/handlers/brand"
	"portal/handlers/mailer/mailertest"
	"portal/models/modelstest"
)

func TestMailsHaveTheBrand(t *testing.T) {
	var picture bytes.Buffer
	modelstest.Must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))))
	accent := modelstest.Value(brand.NewAccent("#7a1fa2"))(t)
	for _, logo := range []*brand.Logo{
		{Content: picture.Bytes(), ContentType: "image/png", Extension: ".png"},
		// It is left out.
		{Content: []byte("<svg/>"), ContentType: "image/svg+xml", Extension: ".svg"},
		nil,
	} {
		s, server := newSystem(t, modelstest.SQLiteURL(t)), mailertest.Start(t)
		s.runBranded(t, s.Store, server.URL(), brand.Brand{Logo: logo, Accent: accent, HomeURL: "https://acme.example.com/"})
		s.queue(t, "ada@example.com")
		mail := server.Await(1)[0]
		for _, part := range []string{
			"background: #7a1fa2; color: #ffffff;", "background: " + accent.Dark.Accent.String() + " !important", `<a class="soft" href="https://acme.example.com/"`,
		} {
			if !strings.Contains(mail.HTML, part) {
				t.Errorf("the mail lacks %s:\n%s", part, mail.HTML)
			}
		}
		if !strings.Contains(mail.Text, "\n\nBack to Voice Portal: https://acme.example.com/\n") {
			t.Errorf("the text is %s", mail.Text)
		}
		shown := strings.Contains(mail.HTML, `<img src="cid:`+mail.PictureID+`"`)
		if logo == nil || logo.IsSVG() {
			if len(mail.Picture) > 0 || strings.Contains(mail.HTML, "<img") {
				t.Error("a mail without a PNG has a picture")
			}
		} else if !shown || !bytes.Equal(mail.Picture, picture.Bytes()) {
			t.Errorf("the mail has no picture %q:\n%s", mail.PictureID, mail.HTML)
		}
	}
}
