package service

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service/upstreams"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Upstream is an MCP server, and the path of the issuer under which clients reach it.
type Upstream struct {
	Path               string `json:"path,omitempty" yaml:"path,omitempty" jsonschema:"path of the issuer under which clients reach the server"`
	bootstrap.Upstream `yaml:",inline"`
}

// UnmarshalText reads "URL", "stdio: command", or one of them after "/path = ".
func (u *Upstream) UnmarshalText(text []byte) error {
	target := string(text)
	if strings.HasPrefix(target, "/") {
		at, rest, found := strings.Cut(target, "=")
		if !found {
			return errors.New("it has no URL")
		}
		u.Path, target = strings.TrimSpace(at), strings.TrimSpace(rest)
	}
	command, isProgram := strings.CutPrefix(target, programPrefix)
	if !isProgram {
		u.URL = target
		return nil
	}
	// A mistake in the command is not one of the setting, which repeats its value.
	u.Upstream, u.Mistake = parseProgram(command)
	return nil
}

// MarshalYAML returns the text that UnmarshalText reads, or a mapping if none has every field.
func (u Upstream) MarshalYAML() (any, error) {
	if u.Dir != "" {
		type mapping Upstream
		return mapping(u), nil
	}
	target := u.URL
	if u.IsProgram() {
		target = formatProgram(u.Upstream)
	}
	if u.Path == "" {
		return target, nil
	}
	return u.Path + " = " + target, nil
}

// watch returns the checks of the upstreams, whose servers and resources are in the same order.
func (c Config) watch(servers []*bootstrap.MCPServer, resources []oauth.ProtectedResource) *upstreams.Watch {
	var all []upstreams.Upstream
	for i, to := range c.Gateway.Upstreams {
		address, _, _ := strings.Cut(to.URL, "?") // the query may have a key
		u := upstreams.Upstream{
			Name:     to.name(),
			Address:  cmp.Or(address, to.name()),
			Resource: resources[i].Resource.String(),
			Gateway:  servers[i],
		}
		if c.Gateway.countNamed(u.Name) > 1 {
			u.Name += " of " + strings.TrimPrefix(u.Resource, c.Issuer)
		}
		all = append(all, u)
	}
	return upstreams.New(all, c.Logger)
}

func (g GatewayConfig) countNamed(name string) (count int) {
	for _, u := range g.Upstreams {
		if u.name() == name {
			count++
		}
	}
	return count
}

// name returns the scheme and host of the address, whose path and query may have a key, or the
// command without its arguments and environment.
func (u Upstream) name() string {
	if u.IsProgram() {
		return programPrefix + " " + u.Command
	}
	address, err := url.Parse(u.URL)
	if err != nil { // checkUpstreams has reported it
		return ""
	}
	return (&url.URL{Scheme: address.Scheme, Host: address.Host}).String()
}
