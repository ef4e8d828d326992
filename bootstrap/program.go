package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/program"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/program/process"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Program is an MCP server that speaks over its standard streams. Each session gets a process of
// its own, which runs as the user of this process.
type Program struct {
	Command string // a path, or a name that is looked up in PATH
	Args    []string
	Dir     string // working folder; the default is the root folder, where other users cannot place files
	// The whole environment, as templates such as "{token}"; without a PATH it gets a default one.
	Env map[string]string
}

// ProgramLimits are the limits of the processes of an Upstream. A zero field has its default.
type ProgramLimits struct {
	MaxProcesses int           // of all people, of which one person may have a twentieth; the default is 200
	IdleTimeout  time.Duration // without a request, open call or listening client; the default is 15 minutes
	Memory       int64         // bytes of data of each process, on Linux; the default is 2 GiB
}

const (
	minMemory = 32 << 20
	// cpuTime is the processor time of a process, on Linux.
	cpuTime = time.Hour
	// peopleAtLimit is how many people with as many processes as one may have reach MaxProcesses.
	peopleAtLimit = 20

	systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// DefaultProgramLimits returns the limits of an Upstream that sets none.
func DefaultProgramLimits() ProgramLimits {
	return ProgramLimits{MaxProcesses: 200, IdleTimeout: 15 * time.Minute, Memory: 2 << 30}
}

func (l ProgramLimits) withDefaults() ProgramLimits {
	defaults := DefaultProgramLimits()
	return ProgramLimits{
		MaxProcesses: cmp.Or(l.MaxProcesses, defaults.MaxProcesses),
		IdleTimeout:  cmp.Or(l.IdleTimeout, defaults.IdleTimeout),
		Memory:       cmp.Or(l.Memory, defaults.Memory),
	}
}

// perPerson returns the most processes of one person.
func (l ProgramLimits) perPerson() int { return max(1, l.MaxProcesses/peopleAtLimit) }

// Check reports all mistakes in one error.
func (l ProgramLimits) Check() error {
	var mistakes []error
	if l.MaxProcesses < 1 {
		mistakes = append(mistakes, oauth.NewMistake("ProgramLimits.MaxProcesses", "is %d: choose 1 or more",
			l.MaxProcesses))
	}
	if l.IdleTimeout < time.Second {
		mistakes = append(mistakes, oauth.NewMistake("ProgramLimits.IdleTimeout", "is %s: choose 1s or more",
			l.IdleTimeout))
	}
	if l.Memory < minMemory {
		mistakes = append(mistakes, oauth.NewMistake("ProgramLimits.Memory", "is %d bytes: choose 32MiB or more, "+
			"with which most programs can start", l.Memory))
	}
	return errors.Join(mistakes...)
}

// Check returns the mistakes of a program that gets that Upstream.Credential, each with the remedy.
// The fields are those that people enter (oauth.Config.HostFields).
func (p Program) Check(credentialKind string, fields credential.Fields) []error {
	_, mistakes := p.parse(credentialKind, UpstreamOptions{Credential: credentialKind}.presented(fields))
	return mistakes
}

// parsedProgram is the path and the environment of a Program.
type parsedProgram struct {
	path        string
	environment secret.Environment
}

func (p Program) parse(credentialKind string, fields credential.Fields) (parsed parsedProgram, mistakes []error) {
	var err error
	if parsed.path, err = p.find(); err != nil {
		mistakes = append(mistakes, err)
	}
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		mistakes = append(mistakes, fmt.Errorf("the working folder %q is relative: write its full path", p.Dir))
	}
	words := append([]string{p.Command, p.Dir}, p.Args...)
	switch isNUL := func(word string) bool { return strings.ContainsRune(word, 0) }; {
	case slices.ContainsFunc(words, isNUL):
		mistakes = append(mistakes, errors.New("the command has a NUL: remove it"))
	case slices.ContainsFunc(p.Args, func(word string) bool { return namesField(word, fields) }):
		mistakes = append(mistakes, errors.New("an argument has {token} or another field, but all users of this "+
			"computer can read arguments: put it into the environment"))
	}
	var wrong []error
	parsed.environment, wrong = secret.ParseEnvironment(p.Env, fields)
	mistakes = append(mistakes, wrong...)
	unused := parsed.environment.Unused()
	switch {
	case len(wrong) > 0:
	case credentialKind != CredentialNone:
		for _, name := range unused {
			mistakes = append(mistakes, fmt.Errorf("no variable has {%s}, so that the program would not get it: set "+
				"one, such as API_KEY={%s}, or choose the credential %q",
				name, name, CredentialNone))
		}
	case len(unused) < len(fields.OrSingle()):
		mistakes = append(mistakes,
			fmt.Errorf("the environment has {token} or another field, but the credential is %q: leave it out, or "+
				"choose %q", credentialKind, CredentialHostToken))
	}
	return parsed, mistakes
}

// namesField reports whether a word names a field in braces.
func namesField(word string, fields credential.Fields) bool {
	return slices.ContainsFunc(fields.OrSingle(), func(f credential.Field) bool {
		return strings.Contains(word, "{"+f.Name+"}")
	})
}

// find returns the path of the command.
func (p Program) find() (string, error) {
	if p.Command == "" {
		return "", errors.New("the program has no command: write one, such as npx")
	}
	path, err := exec.LookPath(p.Command)
	if err != nil {
		return "", fmt.Errorf("the command %q cannot be run (%w): install it where the PATH of the gateway finds it, "+
			"or write its full path", p.Command, errors.Unwrap(err))
	}
	return filepath.Abs(path)
}

// check reports whether the command is found; only a session starts it.
func (p Program) check(context.Context) check.Result {
	path, err := p.find()
	if err != nil {
		return check.Mistake(fmt.Sprintf("the command %q cannot be run", p.Command),
			"install it where the PATH of the gateway finds it, or write its full path in upstream")
	}
	return check.Program(path)
}

// CheckProgram reports the mistakes of the options of programs in one error.
func (u UpstreamOptions) CheckProgram() error {
	mistakes := []error{u.ProgramLimits.Check()}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"Host", u.Host != ""}, {"Present", len(u.Present) > 0}, {"Headers", len(u.Headers) > 0},
		{"Parameters", len(u.Parameters) > 0},
		{"SigningSecret", u.SigningSecret != ""},
	} {
		if field.set {
			mistakes = append(mistakes,
				oauth.NewMistake(field.name, "is set, but has no effect on a program: leave it out"))
		}
	}
	switch isStatic := u.Credential == CredentialStatic; {
	case !slices.Contains(Credentials(), u.Credential):
		mistakes = append(mistakes, oauth.NewMistake("Credential", "is %q: choose one of %s", u.Credential,
			strings.Join(Credentials(), ", ")))
	case isStatic && u.Secret == "":
		mistakes = append(mistakes, oauth.NewMistake("Secret", "is empty: the credential %q needs it",
			u.Credential))
	case !isStatic && u.Secret != "":
		mistakes = append(mistakes, oauth.NewMistake("Secret", "is set, but the credential is %q: leave it out, "+
			"or choose %q", u.Credential, CredentialStatic))
	}
	return errors.Join(mistakes...)
}

// parseProgram reports the mistakes of an Upstream with a Program.
func (u Upstream) parseProgram(fields credential.Fields) (parsedProgram, error) {
	mistakes := []error{u.CheckProgram()}
	if u.URL != "" {
		mistakes = append(mistakes,
			oauth.NewMistake("URL", "is set, but has no effect on a program: leave it out"))
	}
	parsed, wrong := u.Program.parse(u.Credential, u.presented(fields))
	for _, err := range wrong {
		mistakes = append(mistakes, oauth.NewMistake("Program", ": %w", err))
	}
	return parsed, errors.Join(mistakes...)
}

// mountProgram opens the gateway to a program.
func (m *MCPServer) mountProgram(to Upstream, protection gateway.Options, parsed parsedProgram) {
	limits := to.ProgramLimits
	run := process.Program{
		Path:    parsed.path,
		Args:    to.Program.Args,
		Dir:     cmp.Or(to.Program.Dir, string(filepath.Separator)),
		Memory:  limits.Memory,
		CPUTime: cpuTime,
	}
	if !parsed.environment.Sets("PATH") { // scripts such as npx look for their interpreter in it
		run.Env = []string{"PATH=" + filepath.Dir(parsed.path) + string(filepath.ListSeparator) + systemPath}
	}
	started := program.New(program.Options{
		Program:     run,
		Environment: parsed.environment,
		Values:      to.values,
		Bodies:      protection.Bodies,
		Sessions:    m.sessions(&protection.Options),
		Resource:    protection.Resource,
		Limits: oauth.Limits{
			MaxSessions:          limits.MaxProcesses,
			MaxSessionsPerPerson: limits.perPerson(),
		},
		IdleTimeout:  limits.IdleTimeout,
		StartTimeout: to.Patience,
		MayStart:     newStarts(limits.perPerson()),
		Logger:       to.Logger,
	})
	m.mounted = gateway.New(started, protection)
	m.keepState(started.Health, nil, to.Program.check)
}

// values returns the values of the fields for a process.
func (u UpstreamOptions) values(host oauth.HostToken) credential.Values {
	switch u.Credential {
	case CredentialHostToken:
		return host.Values()
	case CredentialStatic:
		return credential.Values{credential.Token: u.Secret}
	}
	return nil
}
