package portal

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gorilla/securecookie"
	"github.com/gorilla/sessions"

	"portal/handlers/middleware"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// sessionStore is the [sessions.Store] of the users who have signed in. The database has their
// sessions, and the browser a signed cookie with the token of one, so a session that has ended has
// ended everywhere. Package people makes the tokens, in the transaction that checks what the user
// has entered.
type sessionStore struct {
	name    string // of the cookie
	cookies *sessions.CookieStore
	stored  *people.Sessions
	timeout time.Duration    // of the database
	slots   middleware.Slots // of look-ups
}

// maxTokens is how many tokens of one request are looked up.
const maxTokens = 3

// storedKey is the key of the [people.Session] among the values of a session. A visitor has none.
type storedKey struct{}

// visit is the part of a request that only gin knows.
type visit struct {
	client     people.Client
	background bool // an open page sends the request by itself
}

// visitKey is the context key of a request's visit.
type visitKey struct{}

func visitOf(r *http.Request) visit {
	found, _ := r.Context().Value(visitKey{}).(visit)
	return found
}

// Get implements [sessions.Store]. It looks the session up once for each request.
func (s *sessionStore) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New implements [sessions.Store]. It returns the session of the request's cookie, whose ID is the
// token. If the cookie is missing, forged or too old, or if the session has ended, New returns a
// visitor's session, which has no ID: nothing can save an ended session again. Other programs of
// the domain may use the cookie's name, so each cookie of this name is tried, but only a few with
// our signature: an ended session can be sent often. The error is about the database, never about
// the cookie.
func (s *sessionStore) New(r *http.Request, name string) (*sessions.Session, error) {
	session, tokens := s.newSession(), 0
	for _, cookie := range r.CookiesNamed(name) {
		var token string
		if tokens == maxTokens || securecookie.DecodeMulti(name, cookie.Value, &token, s.cookies.Codecs...) != nil {
			continue
		}
		tokens++
		found, err := s.find(r, token)
		if errors.Is(err, value.ErrSessionNotFound) {
			continue
		}
		if err == nil {
			session.ID, session.IsNew, session.Values[storedKey{}] = token, false, found
		}
		return session, err
	}
	return session, nil
}

// newSession returns a visitor's session.
func (s *sessionStore) newSession() *sessions.Session {
	session, options := sessions.NewSession(s, s.name), *s.cookies.Options
	session.Options, session.IsNew = &options, true
	return session
}

// find looks up the session with the token. A background request does not keep it alive.
func (s *sessionStore) find(r *http.Request, token string) (found people.Session, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	err = s.slots.Run(func() (err error) {
		if visit := visitOf(r); visit.background {
			found, err = s.stored.Peek(ctx, token)
		} else {
			found, err = s.stored.Find(ctx, token, visit.client)
		}
		return err
	})
	return found, err
}

// Save implements [sessions.Store]. With a negative MaxAge it ends the session and deletes the
// cookie. Otherwise it gives the browser the token in the ID: a new one of the same session, or, if
// IsNew, that of a session that has begun and that ends the browser's earlier one. Without an ID it
// does nothing.
func (s *sessionStore) Save(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	if session.Options.MaxAge < 0 {
		if err := s.end(r, session); err != nil {
			return err
		}
		session.ID = ""
		http.SetCookie(w, sessions.NewCookie(session.Name(), "", session.Options))
		return nil
	}
	if session.ID == "" {
		return nil
	}
	value, err := securecookie.EncodeMulti(session.Name(), session.ID, s.cookies.Codecs...)
	if err != nil {
		return err
	}
	// Most proofs work only once, so the new session must start even if the earlier one cannot
	// be ended.
	http.SetCookie(w, sessions.NewCookie(session.Name(), value, session.Options))
	if session.IsNew {
		return s.end(r, session)
	}
	return nil
}

// end ends the session that New has found, if it has not already ended.
func (s *sessionStore) end(r *http.Request, session *sessions.Session) error {
	stored, ok := storedSession(session)
	if !ok {
		return nil
	}
	delete(session.Values, storedKey{})
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	err := s.stored.End(ctx, stored.AccountID, stored.ID, record.UserActor(stored.UserID, visitOf(r).client.Address))
	if errors.Is(err, value.ErrSessionNotFound) {
		return nil
	}
	return err
}

// storedSession returns the session in the database. A visitor has none.
func storedSession(session *sessions.Session) (people.Session, bool) {
	stored, ok := session.Values[storedKey{}].(people.Session)
	return stored, ok
}
