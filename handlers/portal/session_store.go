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

// sessionStore is a [sessions.Store] that keeps sessions in the database. The browser's cookie
// holds only a signed token, so a session that ends on the server has ended everywhere.
type sessionStore struct {
	store   *models.Store
	codecs  []securecookie.Codec
	options sessions.Options
	name    string // of the cookie
}

// sessionKey is the key of the session in the database among a gorilla session's values.
type sessionKey struct{}

func newSessionStore(store *models.Store, keys [][]byte, age time.Duration, cookies cookies) *sessionStore {
	return &sessionStore{
		store: store, codecs: newCodecs(keys, age),
		options: cookies.options(int(age / time.Second)), name: cookies.name("session"),
	}
}

// Get returns the session of the request. It looks the session up once; see New.
func (s *sessionStore) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New looks up the session of the cookie. A missing, forged or expired cookie or session yields a
// visitor's session and no error. That session keeps nothing of the cookie, so an ended session
// cannot be saved again. The error may be [models.ErrUnavailable].
func (s *sessionStore) New(r *http.Request, name string) (*sessions.Session, error) {
	visitor := s.newSession()
	cookie, err := r.Cookie(name)
	if err != nil {
		return visitor, nil
	}
	var token string
	if err := securecookie.DecodeMulti(name, cookie.Value, &token, s.codecs...); err != nil {
		return visitor, nil
	}
	session, err := s.find(r, token)
	if errors.Is(err, models.ErrSessionNotFound) {
		return visitor, nil
	}
	if err != nil {
		return visitor, err
	}
	visitor.Values[sessionKey{}], visitor.IsNew = &session, false
	return visitor, nil
}

// find returns the session with the token. A background request does not keep it alive.
func (s *sessionStore) find(r *http.Request, token string) (models.Session, error) {
	if r.Context().Value(backgroundKey{}) != nil {
		return s.store.Sessions.Peek(r.Context(), token)
	}
	return s.store.Sessions.Find(r.Context(), token, clientOf(r))
}

// Save ends the session if its MaxAge is negative, and otherwise does nothing. The error may be
// [models.ErrUnavailable].
func (s *sessionStore) Save(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	if session.Options.MaxAge >= 0 {
		return nil
	}
	if err := s.end(r, session); err != nil {
		return err
	}
	http.SetCookie(w, sessions.NewCookie(session.Name(), "", session.Options))
	return nil
}

func (s *sessionStore) setCookie(w http.ResponseWriter, token string) error {
	value, err := securecookie.EncodeMulti(s.name, token, s.codecs...)
	if err != nil {
		return err
	}
	http.SetCookie(w, sessions.NewCookie(s.name, value, &s.options))
	return nil
}

// end ends the session in the database. It succeeds if the session has already ended.
func (s *sessionStore) end(r *http.Request, session *sessions.Session) error {
	stored := storedSession(session)
	if stored == nil {
		return nil
	}
	actor := models.UserActor(stored.UserID, clientOf(r).Address)
	err := s.store.Sessions.End(r.Context(), stored.AccountID, stored.ID, actor)
	if errors.Is(err, models.ErrSessionNotFound) {
		return nil
	}
	return err
}

// newSession returns the session of a visitor.
func (s *sessionStore) newSession() *sessions.Session {
	session, options := sessions.NewSession(s, s.name), s.options
	session.Options, session.IsNew = &options, true
	return session
}

// storedSession returns the session in the database, or nil for a visitor.
func storedSession(session *sessions.Session) *models.Session {
	stored, _ := session.Values[sessionKey{}].(*models.Session)
	return stored
}

// clientKey is the context key of the request's [models.Client]. Gorilla passes only the request
// to a store, and only gin knows which proxies to trust.
type clientKey struct{}

// withClient stores the client in the request's context and returns the request.
func withClient(c *gin.Context) *http.Request {
	client := models.Client{Address: c.ClientIP(), UserAgent: c.Request.UserAgent()}
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), clientKey{}, client))
	return c.Request
}

// backgroundKey is the context key that marks a request that an open page sends by itself.
type backgroundKey struct{}

// background marks the requests of a route that open pages poll. They do not keep a session alive.
func background(c *gin.Context) {
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), backgroundKey{}, true))
}

// newClient returns the client of a sign-in.
func (p *Portal) newClient(c *gin.Context) models.Client {
	return models.Client{Address: c.ClientIP(), UserAgent: c.Request.UserAgent(), Device: p.deviceOf(c)}
}

func clientOf(r *http.Request) models.Client {
	client, _ := r.Context().Value(clientKey{}).(models.Client)
	return client
}
