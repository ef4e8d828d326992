package service

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service/upstreams"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// upstreamMapping is an UpstreamAddress as a mapping in the file of settings.
type upstreamMapping struct {
	Path    string            `json:"path,omitempty" jsonschema:"path of the issuer under which clients reach the server"`
	URL     string            `json:"url,omitempty" jsonschema:"URL of the server's MCP endpoint"`
	Command string            `json:"command,omitempty" jsonschema:"program that speaks MCP over its standard streams: a path, or a name that is looked up in PATH"`
	Args    []string          `json:"args,omitempty" jsonschema:"arguments of the command"`
	Dir     string            `json:"dir,omitempty" jsonschema:"working folder of the program; the default is the root folder"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"the whole environment of the program, as templates such as {token}"`
}

// upstreamItem reads a line such as "/path = URL" or "stdio: command", or a mapping.
func upstreamItem() settings.Item[UpstreamAddress] {
	mapping := settings.Mapping[upstreamMapping]("MCP servers such as \"http://127.0.0.1:9000/mcp\", \"/files = " +
		"http://127.0.0.1:9001/mcp\" or 'stdio: npx -y package'")
	return settings.Item[UpstreamAddress]{
		Expected: mapping.Expected,
		Mapping:  mapping.Mapping,
		Parse: func(text string) (UpstreamAddress, error) {
			if !strings.HasPrefix(text, "{\"") { // a mapping is JSON
				return parseUpstream(text)
			}
			m, err := mapping.Parse(text)
			return UpstreamAddress{Path: m.Path, URL: m.URL, Program: bootstrap.Program{
				Command: m.Command,
				Args:    m.Args,
				Dir:     m.Dir,
				Env:     m.Env,
			}}, err
		},
		Format: func(u UpstreamAddress) string {
			if u.Program.Dir == "" {
				return formatUpstream(u)
			}
			return mapping.Format(upstreamMapping{u.Path, u.URL, u.Program.Command, u.Program.Args, u.Program.Dir,
				u.Program.Env})
		},
	}
}

func parseUpstream(line string) (u UpstreamAddress, err error) {
	target := line
	if strings.HasPrefix(line, "/") {
		at, rest, found := strings.Cut(line, "=")
		if !found {
			return u, errors.New("it has no URL")
		}
		u.Path, target = strings.TrimSpace(at), strings.TrimSpace(rest)
	}
	command, isProgram := strings.CutPrefix(target, programPrefix)
	if !isProgram {
		u.URL = target
		return u, nil
	}
	u.Program, u.mistake = parseProgram(command)
	return u, nil
}

func formatUpstream(u UpstreamAddress) string {
	target := u.URL
	if u.IsProgram() {
		target = formatProgram(u.Program)
	}
	if u.Path == "" {
		return target
	}
	return u.Path + " = " + target
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
		return programPrefix + " " + u.Program.Command
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
