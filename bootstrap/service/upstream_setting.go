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

// UpstreamAddress is the URL or the program of an upstream, and the path of the issuer under which
// clients reach it.
type UpstreamAddress struct {
	Path    string            `json:"path,omitempty" yaml:"path,omitempty" jsonschema:"path of the issuer under which clients reach the server"`
	URL     string            `json:"url,omitempty" yaml:"url,omitempty" jsonschema:"URL of the server's MCP endpoint"`
	Command string            `json:"command,omitempty" yaml:"command,omitempty" jsonschema:"program that speaks MCP over its standard streams: a path, or a name that is looked up in PATH"`
	Args    []string          `json:"args,omitempty" yaml:"args,omitempty" jsonschema:"arguments of the command"`
	Dir     string            `json:"dir,omitempty" yaml:"dir,omitempty" jsonschema:"working folder of the program; the default is the root folder"`
	Env     map[string]string `json:"env,omitempty" yaml:"env,omitempty" jsonschema:"the whole environment of the program, as templates such as {token}"`

	mistake error // in the command line of the program; not an error of the setting, which repeats its value
}

// UnmarshalText reads "URL", "stdio: command", or one of them after "/path = ".
func (u *UpstreamAddress) UnmarshalText(text []byte) error {
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
	program, err := parseProgram(command)
	u.Command, u.Args, u.Env, u.mistake = program.Command, program.Args, program.Env, err
	return nil
}

// MarshalYAML returns the text that UnmarshalText reads, or a mapping if none has every field.
func (u UpstreamAddress) MarshalYAML() (any, error) {
	if u.Dir != "" {
		type mapping UpstreamAddress
		return mapping(u), nil
	}
	target := u.URL
	if u.IsProgram() {
		target = formatProgram(u.program())
	}
	if u.Path == "" {
		return target, nil
	}
	return u.Path + " = " + target, nil
}

func (u UpstreamAddress) program() bootstrap.Program {
	return bootstrap.Program{
		Command: u.Command,
		Args:    u.Args,
		Dir:     u.Dir,
		Env:     u.Env,
	}
}

// watch returns the checks of the upstreams, whose servers and resources are in the same order.
func (c Config) watch(servers mcpServers, resources []oauth.ProtectedResource) *upstreams.Watch {
	var all []upstreams.Upstream
	for i, address := range c.Gateway.Upstreams {
		u := upstreams.Upstream{
			Name:     address.name(),
			Address:  address.withoutQuery(),
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
func (u UpstreamAddress) name() string {
	if u.IsProgram() {
		return programPrefix + " " + u.Command
	}
	address, err := url.Parse(u.URL)
	if err != nil { // checkUpstreams has reported it
		return ""
	}
	return (&url.URL{Scheme: address.Scheme, Host: address.Host}).String()
}

// withoutQuery returns the address without its query, which may have a key.
func (u UpstreamAddress) withoutQuery() string {
	address, _, _ := strings.Cut(u.URL, "?")
	return cmp.Or(address, u.name())
}
