package outbound

import "net/http"

// Target describes the target of a redirect in our own words, because its text may have a key.
func Target(redirect *http.Response) string {
	to, err := redirect.Location()
	from := redirect.Request.URL
	switch {
	case err != nil:
		return "without an address"
	case to.Host != from.Host:
		return "to another host"
	case to.Scheme != from.Scheme:
		return "to another scheme at the same host"
	case to.Path == from.Path+"/":
		return "to the same address with a slash at the end of its path"
	case to.Path+"/" == from.Path:
		return "to the same address without the slash at the end of its path"
	}
	return "to another path or query there"
}
