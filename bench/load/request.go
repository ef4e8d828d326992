package load

import (
	"fmt"
	"net/url"
	"strings"
)

// Form is the content type of forms.
const Form = "application/x-www-form-urlencoded"

// Request returns the bytes of a request, which can be sent many times. Headers are "Name: value".
func Request(method string, target *url.URL, contentType, body string, headers ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target.RequestURI(), target.Host)
	for _, line := range headers {
		b.WriteString(line + "\r\n")
	}
	if method != "GET" {
		fmt.Fprintf(&b, "Content-Type: %s\r\nContent-Length: %d\r\n", contentType, len(body))
	}
	return []byte(b.String() + "\r\n" + body)
}
