package features_test

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// SigningClient is a client that uses private_key_jwt, without the JOSE library of the server.
type SigningClient struct {
	*Client
	Algorithm string
	KeyID     string
	Key       crypto.Signer
	Keys      *publishedKeys
}

// publishedKeys is the key set at a client's jwks_uri.
type publishedKeys struct {
	url     string
	fetches atomic.Int64
	answer  atomic.Pointer[http.HandlerFunc]
}

func (k *publishedKeys) serve(answer http.HandlerFunc) { k.answer.Store(&answer) }

// publish serves the key set, cacheable for an hour.
func (k *publishedKeys) publish(keys ...map[string]any) {
	GinkgoHelper()
	set := must(json.Marshal(map[string]any{"keys": keys}))
	k.serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = w.Write(set)
	})
}

// NewSigningClient publishes a client with a jwks_uri; change may alter the document.
func (w *World) NewSigningClient(algorithm string, change ...func(document map[string]any)) *SigningClient {
	GinkgoHelper()
	name := strings.ToLower(rand.Text())
	c := &SigningClient{
		Client:    w.NewClient(),
		Algorithm: algorithm,
		KeyID:     "key of " + name,
		Key:       newKey(algorithm),
		Keys:      &publishedKeys{},
	}
	c.ID, c.Keys.url = w.Clients.URL("/"+name+".json"), w.Clients.URL("/"+name+"/jwks.json")
	w.Clients.Serve("/"+name+"/jwks.json", func(w http.ResponseWriter, r *http.Request) {
		c.Keys.fetches.Add(1)
		(*c.Keys.answer.Load())(w, r)
	})
	c.Keys.publish(c.JWK())
	c.Publish(append([]func(map[string]any){func(document map[string]any) {
		document["token_endpoint_auth_method"], document["jwks_uri"] = "private_key_jwt", c.Keys.url
	}}, change...)...)
	return c
}

func (c *SigningClient) Publish(change ...func(document map[string]any)) {
	GinkgoHelper()
	document := map[string]any{"client_id": c.ID, "client_name": "Signing Client",
		"redirect_uris": []string{"http://127.0.0.1/callback"}}
	for _, apply := range change {
		apply(document)
	}
	c.World.Clients.Publish(strings.TrimPrefix(c.ID, c.World.Clients.URL("")), string(must(json.Marshal(document))))
}

// spoil changes the assertion before it is signed.
type spoil func(header, claims map[string]any)

func (c *SigningClient) Assertion(change ...spoil) string {
	GinkgoHelper()
	header := map[string]any{"alg": c.Algorithm, "typ": "JWT", "kid": c.KeyID}
	claims := map[string]any{
		"iss": c.ID,
		"sub": c.ID,
		"aud": c.World.Issuer,
		"jti": rand.Text(),
		"exp": c.World.Clock.Now().Add(time.Minute).Unix(),
	}
	for _, apply := range change {
		apply(header, claims)
	}
	input := encodePart(header) + "." + encodePart(claims)
	return input + "." + base64.RawURLEncoding.EncodeToString(c.sign(header["alg"], input))
}

func encodePart(part map[string]any) string {
	GinkgoHelper()
	return base64.RawURLEncoding.EncodeToString(must(json.Marshal(part)))
}

// sign signs with the algorithm, even a forbidden one.
func (c *SigningClient) sign(algorithm any, input string) (signature []byte) {
	GinkgoHelper()
	var err error
	digest := sha256.Sum256([]byte(input))
	switch algorithm {
	case "none":
		return nil
	case "HS256":
		mac := hmac.New(sha256.New, publicBytes(c.Key))
		_, err = mac.Write([]byte(input))
		signature = mac.Sum(nil)
	case "ES256":
		var r, s *big.Int
		r, s, err = ecdsa.Sign(rand.Reader, c.Key.(*ecdsa.PrivateKey), digest[:])
		signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case "PS256":
		signature, err = c.Key.Sign(rand.Reader, digest[:],
			&rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256})
	case "RS256":
		signature, err = c.Key.Sign(rand.Reader, digest[:], crypto.SHA256)
	default:
		signature, err = c.Key.Sign(rand.Reader, []byte(input), crypto.Hash(0))
	}
	Expect(err).NotTo(HaveOccurred())
	return signature
}

func newKey(algorithm string) (key crypto.Signer) {
	GinkgoHelper()
	var err error
	switch algorithm {
	case "ES256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "EdDSA":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	Expect(err).NotTo(HaveOccurred())
	return key
}

// JWK returns the client's public key (RFC 7518 §6, RFC 8037 §2).
func (c *SigningClient) JWK() map[string]any {
	key := map[string]any{"kid": c.KeyID, "use": "sig"}
	spelled := base64.RawURLEncoding.EncodeToString
	switch public := c.Key.Public().(type) {
	case *ecdsa.PublicKey:
		point := publicBytes(c.Key)
		key["kty"], key["crv"], key["x"], key["y"] = "EC", "P-256", spelled(point[1:33]), spelled(point[33:])
	case ed25519.PublicKey:
		key["kty"], key["crv"], key["x"] = "OKP", "Ed25519", spelled(public)
	case *rsa.PublicKey:
		key["kty"], key["n"], key["e"] = "RSA", spelled(public.N.Bytes()), spelled(big.NewInt(int64(public.E)).Bytes())
	}
	return key
}

func publicBytes(key crypto.Signer) []byte {
	GinkgoHelper()
	return must(key.Public().(*ecdsa.PublicKey).Bytes())
}

func (c *SigningClient) Sign(form url.Values, change ...spoil) url.Values {
	GinkgoHelper()
	return withAssertion(form, c.Assertion(change...))
}

func withAssertion(form url.Values, assertion string) url.Values {
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", assertion)
	return form
}

// Connect runs a whole code flow and returns the tokens.
func (c *SigningClient) Connect(ctx context.Context) Tokens {
	GinkgoHelper()
	answer := c.Token(ctx, c.Sign(c.Exchange(c.Authorize(ctx))))
	Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
	return answer.Tokens()
}

// Rotate generates a new key with a new id, without publishing it.
func (c *SigningClient) Rotate() {
	GinkgoHelper()
	c.Key, c.KeyID = newKey(c.Algorithm), c.KeyID+"'"
}

func (c *SigningClient) Revocation(ctx context.Context, form url.Values) Response {
	GinkgoHelper()
	return Post(ctx, c.World.Issuer+"/oauth/revoke", form)
}

func statuses(answers []Response) (codes []int) {
	for _, answer := range answers {
		codes = append(codes, answer.StatusCode)
	}
	slices.Sort(codes)
	return codes
}

// KeySite is a site whose keys each have an answer of the verifier. It counts the questions.
type KeySite struct {
	*ClientSite
	mutex   sync.Mutex
	answers map[string]string
	asked   map[string]int
	fails   bool
	held    chan struct{} // closed once a check of the held key waits
	resume  chan struct{}
	hold    string // key whose next check waits, and is answered by the state after it
}

// NewKeySite starts a site that knows these keys.
func NewKeySite(answers map[string]string) *KeySite {
	GinkgoHelper()
	s := &KeySite{ClientSite: NewClientSite(), answers: map[string]string{}, asked: map[string]int{}}
	maps.Copy(s.answers, answers)
	s.Serve("/token", func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.wait(key)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.asked[key]++
		answer := s.answers[key]
		w.Header().Set("Content-Type", "application/json")
		switch {
		case s.fails:
			w.WriteHeader(http.StatusInternalServerError)
		case answer == "":
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, cmp.Or(answer, "{}"))
	})
	return s
}

// Answer sets the answer about a key; "" means that the site does not know it.
func (s *KeySite) Answer(key, answer string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answers[key] = answer
}

// Fail lets every check fail, or no more.
func (s *KeySite) Fail(fails bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.fails = fails
}

// Questions returns how often the site was asked about a key.
func (s *KeySite) Questions(key string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.asked[key]
}

// Hold lets the next check of the key wait.
func (s *KeySite) Hold(key string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.hold, s.held, s.resume = key, make(chan struct{}), make(chan struct{})
}

func (s *KeySite) wait(key string) {
	s.mutex.Lock()
	held, resume, waits := s.held, s.resume, s.hold == key && key != ""
	if waits {
		s.hold = ""
	}
	s.mutex.Unlock()
	if waits {
		close(held)
		<-resume
	}
}

func (s *KeySite) Verify(config *service.Config) {
	config.Verification, config.RecheckEvery = overHTTP.configure(s.URL("/token")), time.Minute
}
