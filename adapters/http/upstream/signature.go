package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// component is a component of the signature base (RFC 9421 §2) and its header; @method has none.
type component struct{ name, header string }

// components are the signed components in their order. They include the digest of the body, so that the signature is not valid for another body.
var components = []component{
	{`"@method"`, ""}, {`"content-digest"`, "Content-Digest"},
	{`"x-pasteport-subject"`, ownPrefix + "Subject"}, {`"x-pasteport-roles"`, ownPrefix + "Roles"},
	{`"x-pasteport-client"`, ownPrefix + "Client"}, {`"x-pasteport-grant"`, ownPrefix + "Grant"},
	{`"x-pasteport-resource"`, ownPrefix + "Resource"},
}

// parametersPrefix is the beginning of the signature parameters.
var parametersPrefix = func() string {
	var names []string
	for _, c := range components {
		names = append(names, c.name)
	}
	return "(" + strings.Join(names, " ") + ");created="
}()

// sign adds an HTTP message signature with HMAC-SHA256 (RFC 9421 §3.3.3) over components, with the label pasteport.
func (s Signer) sign(out *http.Request, body []byte) {
	digest := sha256.Sum256(body)
	out.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(digest[:])+":") // RFC 9530
	parameters := parametersPrefix + strconv.FormatInt(s.Now().Unix(), 10) + `;keyid="pasteport";alg="hmac-sha256"`
	mac := hmac.New(sha256.New, s.Key)
	_, _ = io.WriteString(mac, signatureBase(out, parameters))
	out.Header.Set("Signature-Input", "pasteport="+parameters)
	out.Header.Set("Signature", "pasteport=:"+base64.StdEncoding.EncodeToString(mac.Sum(nil))+":")
}

// signatureBase returns the text that is signed (RFC 9421 §2.5).
func signatureBase(out *http.Request, parameters string) string {
	var base strings.Builder
	for _, c := range components {
		value := out.Method
		if c.header != "" {
			value = out.Header.Get(c.header)
		}
		base.WriteString(c.name + ": " + value + "\n")
	}
	base.WriteString(`"@signature-params": ` + parameters)
	return base.String()
}
