package outbound

import "net/url"

const maxHost = 300 // bytes

// Target names the target of a redirect without its path and query, which may have a key.
func Target(to, from *url.URL) string {
	switch {
	case to.Scheme != from.Scheme || to.Host != from.Host:
		if len(to.Host) > maxHost {
			return "elsewhere"
		}
		return "to " + (&url.URL{Scheme: to.Scheme, Host: to.Host}).String()
	case to.Path == from.Path+"/":
		return "to the same address with a slash at the end of its path"
	case to.Path+"/" == from.Path:
		return "to the same address without the slash at the end of its path"
	}
	return "to another path or query there"
}
