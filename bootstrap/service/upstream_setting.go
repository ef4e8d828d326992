package service

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
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
	// A mistake returned here would be reported with the whole text, which may have a secret.
	u.Upstream, u.Mistake = parseProgram(command)
	return nil
}

// MarshalYAML returns the text that UnmarshalText reads, or a mapping for a Dir, which no text has.
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

// watch returns the checks of the upstreams. Its arguments are in the order of the upstreams.
func (c Config) watch(servers []*bootstrap.MCPServer, resources []oauth.ProtectedResource) *upstreams.Watch {
	var all []*upstreams.Upstream
	named := map[string]int{}
	for _, upstream := range c.Gateway.Upstreams {
		named[upstream.name()]++
	}
	for i, upstream := range c.Gateway.Upstreams {
		address, _, _ := strings.Cut(upstream.URL, "?") // the query may have a key
		u := &upstreams.Upstream{
			Name:     upstream.name(),
			Address:  cmp.Or(address, upstream.name()),
			Resource: resources[i].Resource.String(),
			Gateway:  servers[i],
		}
		if named[u.Name] > 1 {
			u.Name += " of " + strings.TrimPrefix(u.Resource, c.Issuer)
		}
		all = append(all, u)
	}
	return upstreams.New(all, c.Logger)
}

// name returns the scheme and host of the address, whose path and query may have a key, or the
// command without its arguments and environment.
func (u Upstream) name() string {
	if u.IsProgram() {
		return programPrefix + " " + u.Command
	}
	address, err := url.Parse(u.URL)
	if err != nil { // GatewayConfig.check has reported it
		return ""
	}
	return (&url.URL{Scheme: address.Scheme, Host: address.Host}).String()
}

// programPrefix precedes the command line of a program in the setting upstream.
const programPrefix = "stdio:"

// parseProgram reads "NAME=value… command argument…". Spaces separate words; single or double
// quotes keep them in a word. No shell reads the line.
func parseProgram(line string) (p bootstrap.Upstream, err error) {
	words, err := splitWords(line)
	if err != nil {
		return p, err
	}
	for len(words) > 0 {
		name, value, assigns := strings.Cut(words[0], "=")
		if !assigns || !secret.IsVariable(name) {
			break
		}
		if _, set := p.Env[name]; set {
			return p, fmt.Errorf("it sets the variable %s twice: keep one", name)
		}
		if p.Env == nil {
			p.Env = map[string]string{}
		}
		p.Env[name], words = value, words[1:]
	}
	if len(words) == 0 {
		return p, errors.New("it has no command: write one, such as npx")
	}
	p.Command, p.Args = words[0], words[1:]
	return p, nil
}

// splitWords splits a command line at spaces outside of quotes.
func splitWords(line string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inWord := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
		case quote == 0 && strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote in the command has no end: close it")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// formatProgram returns programPrefix and a command line that parseProgram reads as p.
func formatProgram(p bootstrap.Upstream) string {
	words := []string{programPrefix}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		words = append(words, name+"="+quoteWord(p.Env[name]))
	}
	for _, word := range append([]string{p.Command}, p.Args...) {
		words = append(words, quoteWord(word))
	}
	return strings.Join(words, " ")
}

func quoteWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\r\n'\"") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
}

// hasProgram reports whether an upstream is a program.
func (g GatewayConfig) hasProgram() bool {
	return slices.ContainsFunc(g.Upstreams, func(u Upstream) bool { return u.IsProgram() })
}

// hasURL reports whether an upstream is not a program.
func (g GatewayConfig) hasURL() bool {
	return slices.ContainsFunc(g.Upstreams, func(u Upstream) bool { return !u.IsProgram() })
}
