package portal

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/securecookie"
	"github.com/gorilla/sessions"

	"portal/models"
)

// sessionStore keeps gorilla's sessions in the models. The browser's cookie
// holds a signed reference and nothing else, so that a session that has ended
// has ended everywhere.
type sessionStore struct {
	store   *models.Store
	codecs  []securecookie.Codec
	options sessions.Options
	name    string // of the cookie
}

// What a session of gorilla's holds: the stay in the portal that was found, and
// before there is one, the user who has just proved who they are.
type (
	stayKey struct{}
	userKey struct{}
)

func newSessionStore(store *models.Store, keys [][]byte, age time.Duration, cookies cookies) *sessionStore {
	return &sessionStore{
		store: store, codecs: newCodecs(keys, age),
		options: cookies.options(int(age / time.Second)), name: cookies.name("session"),
	}
}

// Get returns the session of the request, which is looked up once. See New.
func (s *sessionStore) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New looks up the session that the cookie refers to. A cookie that is missing,
// forged or too old, or whose session has ended, makes a visitor and no error;
// and nothing of it is kept, so that it cannot come to life again. The error may
// be [models.ErrUnavailable].
func (s *sessionStore) New(r *http.Request, name string) (*sessions.Session, error) {
	session := s.fresh()
	cookie, err := r.Cookie(name)
	if err != nil {
		return session, nil
	}
	var reference string
	if err := securecookie.DecodeMulti(name, cookie.Value, &reference, s.codecs...); err != nil {
		return session, nil
	}
	stay, err := s.store.Session(r.Context(), reference, clientOf(r))
	if errors.Is(err, models.ErrSessionNotFound) {
		return session, nil
	}
	if err != nil {
		return session, err
	}
	session.Values[stayKey{}], session.IsNew = &stay, false
	return session, nil
}

// Save begins the stay of the user that the session holds, under a reference
// that no one has seen before, or ends the stay of a session whose MaxAge is
// negative. The error may be [models.ErrUnavailable].
func (s *sessionStore) Save(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	if session.Options.MaxAge < 0 {
		if err := s.end(r, session); err != nil {
			return err
		}
		http.SetCookie(w, sessions.NewCookie(session.Name(), "", session.Options))
		return nil
	}
	user, ok := session.Values[userKey{}].(models.User)
	if !ok {
		return nil // there is nothing that a stay does not hold already
	}
	reference, err := s.store.CreateSession(r.Context(), user, clientOf(r))
	if err != nil {
		return err
	}
	return s.hand(w, session, reference)
}

// hand gives the browser the reference to its session.
func (s *sessionStore) hand(w http.ResponseWriter, session *sessions.Session, reference string) error {
	value, err := securecookie.EncodeMulti(session.Name(), reference, s.codecs...)
	if err != nil {
		return err
	}
	http.SetCookie(w, sessions.NewCookie(session.Name(), value, session.Options))
	return nil
}

// end ends the stay on the server; one that has ended already is no error.
func (s *sessionStore) end(r *http.Request, session *sessions.Session) error {
	stay := stayOf(session)
	if stay == nil {
		return nil
	}
	actor := models.UserActor(stay.UserID, clientOf(r).Address)
	err := s.store.EndSession(r.Context(), stay.AccountID, stay.ID, actor)
	if errors.Is(err, models.ErrSessionNotFound) {
		return nil
	}
	return err
}

// fresh returns the session of a visitor.
func (s *sessionStore) fresh() *sessions.Session {
	session, options := sessions.NewSession(s, s.name), s.options
	session.Options, session.IsNew = &options, true
	return session
}

// stayOf returns the stay that a session stands for, or nil for a visitor's.
func stayOf(session *sessions.Session) *models.Session {
	stay, _ := session.Values[stayKey{}].(*models.Session)
	return stay
}

// clientKey is where a request's context holds where it comes from: gorilla's
// stores are given the request alone, and only gin knows which proxies to
// believe.
type clientKey struct{}

// withClient returns the request with where it comes from.
func withClient(c *gin.Context) *http.Request {
	client := models.Client{Address: c.ClientIP(), UserAgent: c.Request.UserAgent()}
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), clientKey{}, client))
	return c.Request
}

func clientOf(r *http.Request) models.Client {
	client, _ := r.Context().Value(clientKey{}).(models.Client)
	return client
}
