package features_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// law lists what packages may import besides the standard library, and what they may never import.
// Patterns are those of Go: "a/..." is a and everything below it.
type law struct {
	of, may, never []string
}

const (
	echo      = "github.com/labstack/echo/v4/..."
	sdk       = "github.com/modelcontextprotocol/go-sdk/"
	templates = "github.com/a-h/templ/..."
)

var (
	anything = []string{"..."}
	ginkgo   = []string{"github.com/onsi/ginkgo/v2", "github.com/onsi/gomega/..."}
)

// The import table. The first law that matches the package holds.
var table = []law{
	{of: []string{"domain/seal"}, never: []string{"net/...", "encoding/json/...", "crypto/rand", "math/rand/..."}},
	{of: []string{"domain/access"}, may: []string{"domain/oauth"},
		never: []string{"net/...", "encoding/json/...", "crypto/rand", "math/rand/..."}},
	{of: []string{"domain/..."}, may: []string{"domain/..."},
		never: []string{"net/http/...", "encoding/json/...", "crypto/rand", "math/rand/..."}},
	{of: []string{"application"}, may: []string{"domain/...", "golang.org/x/sync/singleflight"},
		never: []string{"net/http/...", "encoding/json/..."}},
	{of: []string{"adapters/mcp/eventstore"}, may: []string{sdk + "mcp", "adapters/mcp/jsonrpc"}},
	{of: []string{"adapters/mcp/jsonrpc"}, may: []string{
		"domain/...", sdk + "mcp", sdk + "jsonrpc",
		"github.com/go-json-experiment/json/...", "golang.org/x/text/..."}},
	{of: []string{"adapters/mcp/gateway/filter"},
		may: []string{"adapters/mcp/jsonrpc", "github.com/go-json-experiment/json/..."}},
	{of: []string{"adapters/mcp/gateway/uri"}, may: []string{"adapters/mcp/jsonrpc"},
		never: []string{"net/http/...", "encoding/json/..."}},
	{of: []string{"adapters/mcp/response"},
		may: []string{"domain/...", "adapters/mcp/jsonrpc", sdk + "auth", sdk + "jsonrpc"}},
	{of: []string{"adapters/mcp/replica"},
		may: []string{"domain/...", "adapters/mcp/jsonrpc", "adapters/mcp/response"}},
	{of: []string{"adapters/mcp"}, may: []string{
		"domain/...", echo, "adapters/http/wellknown", "adapters/mcp/...", sdk + "..."}},
	{of: []string{"adapters/http/pages"},
		may: []string{"domain/...", templates, "golang.org/x/text/...", "github.com/lucasb-eyer/go-colorful",
			"github.com/hashicorp/golang-lru/v2"}},
	{of: []string{"adapters/mcp/gateway/upstream"},
		may: []string{"domain/...", "adapters/mcp/jsonrpc", "github.com/hashicorp/golang-lru/v2", "adapters/outbound",
			"adapters/mcp/gateway/secret", "adapters/mcp/gateway/check", "github.com/sony/gobreaker/v2",
			"golang.org/x/net/http/httpguts"}},
	{of: []string{"adapters/mcp/gateway/program"},
		may: []string{"domain/...", "adapters/mcp/eventstore", "adapters/mcp/jsonrpc",
			"adapters/mcp/response",
			"adapters/mcp/gateway/secret", "adapters/mcp/gateway/program/process", sdk + "jsonrpc",
			"github.com/hashicorp/golang-lru/v2/simplelru", "golang.org/x/time/rate"}},
	{of: []string{"adapters/readiness"}},
	{of: []string{"adapters/http/admin"},
		may: []string{"domain/...", "adapters/readiness", echo, templates, "golang.org/x/sync/singleflight"}},
	{of: []string{"adapters/http/telemetry"},
		may: []string{"domain/...", echo, "github.com/prometheus/client_golang/...", "go.opentelemetry.io/otel/..."}},
	{of: []string{"adapters/http/forwarded"}, may: []string{echo}},
	{of: []string{"adapters/http/..."},
		may: []string{"domain/...", "application", echo, "adapters/http/pages", "adapters/http/wellknown",
			"adapters/strictjson"}},
	{of: []string{"adapters/persistence"}, may: []string{
		"domain/...", "adapters/persistence/internal/...", "adapters/persistence/maintenance",
		"adapters/persistence/secretfile", "adapters/persistence/sqlite", "gorm.io/gorm/...",
		"github.com/go-gormigrate/gormigrate/v2", "github.com/hashicorp/golang-lru/v2"}},
	{of: []string{"adapters/persistence/sqlite"}, may: []string{
		"domain/oauth", "gorm.io/gorm/...", "gorm.io/driver/sqlite", "modernc.org/sqlite/...",
		"github.com/hashicorp/golang-lru/v2/simplelru"}},
	{of: []string{"adapters/persistence/maintenance"}, may: []string{"gorm.io/gorm/..."}},
	{of: []string{"adapters/persistence/secretfile"}, may: []string{"domain/oauth"}},
	{of: []string{"adapters/persistence/internal/mapper"}, may: []string{"gorm.io/gorm/..."}},
	{of: []string{"adapters/persistence/internal/drivers"}, may: []string{"gorm.io/gorm"}},
	{of: []string{"adapters/persistence/postgres"},
		may: []string{"adapters/persistence/internal/drivers", "gorm.io/gorm", "gorm.io/driver/postgres",
			"github.com/jackc/pgx/v5/..."}},
	{of: []string{"adapters/persistence/mysql"},
		may: []string{"adapters/persistence/internal/drivers", "gorm.io/gorm", "gorm.io/driver/mysql",
			"github.com/go-sql-driver/mysql"}},
	{of: []string{"adapters/cimd"}, may: []string{
		"domain/...", "adapters/timestamps", "code.dny.dev/ssrf", "github.com/hashicorp/golang-lru/v2/...",
		"golang.org/x/net/publicsuffix",
		"github.com/pquerna/cachecontrol/...", "adapters/strictjson"}},
	{of: []string{"adapters/audit"}, may: []string{"domain/audit", "golang.org/x/sys/unix"},
		never: []string{"net/..."}},
	{of: []string{"adapters/strictjson"}, may: []string{"github.com/go-json-experiment/json/..."}},
	{of: []string{"adapters/jose"}, may: []string{"domain/...", "github.com/go-jose/go-jose/v4/..."}},
	{of: []string{"adapters/verification/tokenfile"}, may: []string{"domain/...", "golang.org/x/crypto/argon2"},
		never: []string{"net/..."}},
	{of: []string{"adapters/outbound"}},
	{of: []string{"adapters/mcp/gateway/program/process"}, may: []string{"golang.org/x/sys/unix"},
		never: []string{"net/..."}},
	{of: []string{"adapters/mcp/gateway/secret"}, may: []string{"domain/credential", "golang.org/x/net/http/httpguts"}},
	{of: []string{"adapters/mcp/gateway/check"}, may: []string{"adapters/outbound", "adapters/mcp/gateway/secret"}},
	{of: []string{"adapters/verification/remote"},
		may: []string{"domain/...", "adapters/outbound", "adapters/mcp/gateway/secret", "adapters/mcp/gateway/check",
			"github.com/go-json-experiment/json/..."}},
	{of: []string{"adapters/journal"}, may: []string{"domain/...", "github.com/hashicorp/golang-lru/v2/..."}},
	{of: []string{"adapters/timestamps"}, may: []string{"github.com/hashicorp/golang-lru/v2"}},
	{of: []string{"adapters/limits"},
		may: []string{"domain/...", "adapters/timestamps", "github.com/hashicorp/golang-lru/v2/...",
			"golang.org/x/time/rate"}},
	{of: []string{"adapters/nats"}, may: []string{"domain/oauth", "github.com/nats-io/nats.go"}},
	{of: []string{"adapters/doctor"}, may: []string{
		sdk + "mcp", sdk + "oauthex", "adapters/htmlpage", "adapters/readiness",
		"github.com/pquerna/cachecontrol/..."}},
	{of: []string{"adapters/htmlpage"}, may: []string{"golang.org/x/net/html/..."}},
	{of: []string{"adapters/certificates"}, may: []string{"golang.org/x/crypto/acme/..."}},
	// A host links everything that bootstrap imports, so bootstrap imports nothing that only the
	// service needs.
	{of: []string{"bootstrap"},
		may: []string{"domain/...", "application", echo, sdk + "mcp", "adapters/http", "adapters/http/forwarded",
			"adapters/mcp/...",
			"adapters/http/pages", "adapters/mcp/gateway/program", "adapters/mcp/gateway/upstream", "adapters/cimd",
			"adapters/jose",
			"adapters/journal", "adapters/outbound", "adapters/mcp/gateway/secret", "adapters/mcp/gateway/check",
			"adapters/mcp/gateway/program/process",
			"adapters/limits",
			"bootstrap/internal/..."}},
	{of: []string{"bootstrap/internal/memory"}, may: []string{"github.com/KimMachineGun/automemlimit/memlimit"}},
	{of: []string{"bootstrap/pasteporttest"}, may: []string{ // only tests import it
		"domain/oauth", sdk + "mcp", sdk + "auth", sdk + "oauthex", "golang.org/x/oauth2", "adapters/htmlpage"}},
	{of: []string{"bootstrap/settings"}, may: []string{"domain/oauth", "github.com/spf13/...", "go.yaml.in/yaml/v3",
		"github.com/google/jsonschema-go/jsonschema", "github.com/agnivade/levenshtein",
		"github.com/dustin/go-humanize"}},
	{of: []string{"bootstrap/settings/write"}, may: []string{"bootstrap/service"}},
	{of: []string{"bootstrap/demosite"},
		may: []string{"domain/oauth", sdk + "mcp", sdk + "jsonrpc", "gorm.io/gorm/...", "gorm.io/driver/sqlite",
			"modernc.org/sqlite",
			"github.com/go-gormigrate/gormigrate/v2", "golang.org/x/text/unicode/norm"}},
	{of: []string{"bootstrap/service"}, may: []string{"github.com/gofrs/flock", "domain/access", "domain/credential",
		"domain/oauth", "application", echo, "go.opentelemetry.io/otel/trace", "golang.org/x/sys/unix",
		"adapters/audit", "adapters/http", "adapters/http/admin", "adapters/mcp/jsonrpc", "adapters/mcp/gateway/uri",
		"adapters/http/telemetry", "adapters/certificates", "adapters/doctor", "adapters/nats", "adapters/outbound",
		"adapters/mcp/gateway/secret", "adapters/persistence/...",
		"adapters/verification/...", "bootstrap", "bootstrap/demosite", "bootstrap/service/httpserver",
		"bootstrap/service/upstreams", "bootstrap/settings"}},
	{of: []string{"bootstrap/service/upstreams"},
		may: []string{"adapters/http/admin", "adapters/http/telemetry", "adapters/readiness", "bootstrap"}},
	{of: []string{"bootstrap/service/httpserver"},
		may: []string{"bootstrap/internal/memory", "golang.org/x/sys/unix", "golang.org/x/time/rate"}},
	{of: []string{"bootstrap/cli"},
		may: []string{"domain/oauth", "domain/seal", "application", "adapters/audit", "adapters/journal",
			"adapters/persistence", "adapters/persistence/maintenance", "adapters/readiness",
			"adapters/verification/tokenfile",
			"bootstrap", "bootstrap/cli/...", "bootstrap/demosite", "bootstrap/internal/memory", "bootstrap/service",
			"bootstrap/settings", "github.com/spf13/...", "golang.org/x/sync/errgroup"}},
	{of: []string{"bootstrap/cli/demo"},
		may: []string{"domain/oauth", "domain/trace", "adapters/certificates", "bootstrap/cli/term",
			"bootstrap/demosite", "bootstrap/service/...",
			"adapters/htmlpage", "github.com/cli/browser", "github.com/spf13/cobra", templates, sdk + "...",
			"golang.org/x/sync/errgroup"}},
	{of: []string{"bootstrap/cli/diagnosis"},
		may: []string{"adapters/certificates", "adapters/doctor", "bootstrap", "bootstrap/cli/term",
			"bootstrap/service",
			"github.com/spf13/cobra"}},
	{of: []string{"bootstrap/cli/tracing"},
		may: []string{"domain/...", "bootstrap/cli/term", "bootstrap/service", "github.com/spf13/cobra"}},
	{of: []string{"bootstrap/cli/term"}, may: []string{"domain/credential", "domain/oauth", "github.com/spf13/cobra",
		"github.com/mattn/...", "golang.org/x/term"}},
	{of: []string{"bootstrap/cmd/..."}, may: []string{"bootstrap/cli"}},
	{of: []string{"features/broker"},
		may: slices.Concat(ginkgo, []string{"github.com/nats-io/nats-server/v2/server", "github.com/nats-io/nats.go"})},
	{of: []string{"features/engines"}, may: []string{"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql"}},
	{of: []string{"features/storespec"}, may: slices.Concat(ginkgo, []string{"domain/..."})},
	{of: []string{"features/storespec/boltstore"}, may: []string{"domain/oauth", "go.etcd.io/bbolt"}},
	{of: []string{"features/suite"}, may: []string{"github.com/onsi/ginkgo/v2/...", "github.com/onsi/gomega"}},
	{of: []string{"features/conformance"}}, // the runner of the official suite
	{of: []string{"features/matrix/..."}, may: []string{"features/matrix"}},
	{of: []string{"features/mutations"},
		may: []string{"features/engines", "features/matrix", "golang.org/x/sync/errgroup"}},
	{of: []string{"features/chromium"}, may: []string{"github.com/chromedp/chromedp"}},
	{of: []string{"features/attacks"}, may: []string{ // simulated people and attackers, over HTTP only
		"features/engines", "golang.org/x/net/html", "github.com/go-jose/go-jose/v4",
		"github.com/nats-io/nats-server/v2/server"}},
	// A user with the released program only.
	{of: []string{"features/newcomer"}, may: []string{"features/chromium", "github.com/chromedp/chromedp"}},
	{of: []string{"features/interop/goclient"}, may: []string{sdk + "mcp", sdk + "auth", sdk + "oauthex"}},
	{of: []string{"features/interop/fixtures"}, may: []string{ // a site with the tools that the suite expects
		"bootstrap", "domain/oauth", "adapters/persistence", "github.com/labstack/echo/v4", sdk + "mcp",
		sdk + "jsonrpc"}},
	// Few dependencies, because it shares the computer with the measured servers.
	{of: []string{"bench/load"}, may: []string{"golang.org/x/sys/unix"}},
	{of: []string{"bench/server"}, may: []string{"bench/load"}},
	{of: []string{"bench/server/gateway"}, may: []string{"bench/load", "bench/server/...", "bootstrap/service"}},
	{of: []string{"bench/server/site"}, may: []string{echo}},
	{of: []string{"bench/server/echo"}, may: []string{"bench/load", "bench/server/...", echo}},
	{of: []string{"bench/server/guarded"}, may: []string{ // a site, so limited to the packages of a site
		"bench/load", "bench/server/...", "bootstrap", "domain/oauth", "adapters/persistence"}},
	{of: []string{"bench/server/greeter"}, may: []string{sdk + "mcp"}},
	{of: []string{"bench/server/sdk"},
		may: []string{"bench/load", "bench/server/...", echo, sdk + "mcp", sdk + "auth"}},
	{of: []string{"bench/server/pasteport"}, may: []string{"bench/server/..."}},
	{of: []string{"bench/server/replica"},
		may: []string{"bench/server/...", "adapters/persistence/postgres", "adapters/persistence/mysql"}},
	{of: []string{"bench/server/fosite"},
		may: []string{"bench/load", "bench/server", "github.com/ory/fosite/...", "modernc.org/sqlite"}},
	{of: []string{"bench/server/gooauth2"}, may: []string{"bench/server", "github.com/go-oauth2/oauth2/v4/..."}},
	{of: []string{"bench/server/raw"}, may: []string{"domain/oauth", "adapters/persistence"}},
	{of: []string{"bench/server/byhand"}, may: []string{"bench/server/...", echo}},
	{of: []string{"bench/server/onebyone"}, may: []string{"domain/oauth", "adapters/persistence"}},
	{of: []string{"bench/server/write"},
		may: []string{"bench/load", "bench/server/onebyone", "bench/server/raw", "domain/oauth",
			"adapters/persistence"}},
	{of: []string{"bench"}, may: []string{"bench/load", "bench/server", "domain/...", "application",
		"adapters/persistence/...", "bootstrap", "golang.org/x/sys/unix", "github.com/jackc/pgx/v5/stdlib",
		"github.com/go-sql-driver/mysql"}},
}

// programs are the only folders with a main function.
var programs = []string{"bootstrap/cmd/...", "bootstrap/settings/write", "features/attacks", "features/conformance",
	"features/matrix/write", "features/mutations", "features/newcomer",
	"features/interop/fixtures", "features/interop/goclient",
	"bench", "bench/server/echo", "bench/server/pasteport", "bench/server/fosite", "bench/server/gooauth2",
	"bench/server/write", "bench/server/replica", "bench/server/sdk", "bench/server/byhand", "bench/server/gateway"}

// Tests next to the code may use whatever they need; the specs here stand outside.
var testTable = []law{
	{of: []string{"features"}, may: slices.Concat(ginkgo,
		[]string{"bootstrap/...", sdk + "mcp", sdk + "auth", sdk + "oauthex", "golang.org/x/net/html", "adapters/audit",
			"domain/audit", "features/broker", "features/matrix", "features/chromium", "features/engines",
			"features/suite",
			"github.com/chromedp/...", "github.com/jackc/pgx/v5", "github.com/google/jsonschema-go/jsonschema",
			"go.yaml.in/yaml/v3",
			"go.opentelemetry.io/proto/otlp/...", "google.golang.org/protobuf/proto", "github.com/creack/pty",
			"golang.org/x/sync/errgroup", "golang.org/x/sys/unix"})},
	{of: []string{"features/storespec"},
		may: slices.Concat(ginkgo, []string{"domain/...", "features/storespec", "features/suite"})},
	{of: anything, may: anything},
}

var _ = Describe("Keeping the architecture", Label("architecture"), func() {
	It("imports only what the table allows", func() {
		files := sources("..", "../bench")
		Expect(files).To(ContainElement(WithTransform(func(s source) string { return s.file }, Equal("bench/main.go"))))
		Expect(len(files)).To(BeNumerically(">", 80))
		for _, file := range files {
			Expect(file.breaches()).To(BeEmpty())
		}
	})

	It("links nothing into a host that only the service needs", func(ctx SpecContext) {
		linked, err := exec.CommandContext(ctx, "go", "list", "-deps", module+"bootstrap").Output()
		Expect(err).NotTo(HaveOccurred())
		packages := strings.Fields(string(linked))
		Expect(packages).To(ContainElement(module + "domain/oauth"))
		heavy := regexp.MustCompile(
			"nats|grpc|otlp|opentelemetry|prometheus|cobra|yaml|bootstrap/(service|cli|settings|demosite)|" +
				"adapters/(persistence|doctor|certificates)")
		Expect(slices.DeleteFunc(packages, func(name string) bool { return !heavy.MatchString(name) })).To(BeEmpty())
	})

	It("lets the linker remove unused methods: no package looks up methods by variable names", func() {
		needs := BuildBinary().Needs()
		Expect(needs).To(ContainSubstring("main.main"))
		Expect(regexp.MustCompile(`.*<ReflectMethod>.*`).FindAllString(needs, -1)).To(BeEmpty())
	})

	It("does not link a database server's driver into a host with a SQLite store", func(ctx SpecContext) {
		linked, err := exec.CommandContext(ctx, "go", "list", "-deps", module+"adapters/persistence").Output()
		Expect(err).NotTo(HaveOccurred())
		packages := strings.Fields(string(linked))
		Expect(packages).To(ContainElement(module + "adapters/persistence/internal/drivers"))
		Expect(packages).NotTo(ContainElement(MatchRegexp("pgx|go-sql-driver|gorm.io/driver/(postgres|mysql)")))
	})

	It("runs all specs: every folder with specs has a suite", func() {
		ran := map[string]bool{}
		for _, file := range sources("..") {
			folder := path.Dir(file.file)
			if slices.Contains(file.calls, "Describe") {
				ran[folder] = ran[folder] || false
			}
			if slices.ContainsFunc(file.uses, func(used string) bool {
				return strings.HasPrefix(used, module+"features/suite.Run")
			}) {
				ran[folder] = true
			}
		}
		Expect(len(ran)).To(BeNumerically(">", 10))
		for folder, hasSuite := range ran {
			Expect(hasSuite).To(BeTrue(), folder+" runs no specs")
		}
	})

	It("documents each package", func() {
		said := map[string]bool{}
		for _, file := range sources("..") {
			said[path.Dir(file.file)] = said[path.Dir(file.file)] || file.comment
		}
		Expect(said).To(HaveKey("domain/oauth"))
		for folder, commented := range said {
			Expect(commented).To(BeTrue(), folder+" has no package comment")
		}
	})

	DescribeTable("reports a forbidden import in", func(file string, imports ...string) {
		for _, imported := range imports {
			Expect(source{file: file, imports: []string{imported}}.breaches()).
				To(Equal([]string{file + " imports " + imported}))
		}
	},
		Entry("the domain, of HTTP, JSON, randomness or libraries", "domain/oauth/grant.go", "net/http",
			"net/http/httptest", "encoding/json", "crypto/rand", "math/rand/v2", "golang.org/x/net/idna"),
		Entry("the domain, of its users", "domain/oauth/store.go", "application", "adapters/persistence", "bootstrap",
			"features/storespec"),
		Entry("the access rules, of their users", "domain/access/rules.go", "adapters/mcp/jsonrpc", "domain/trace",
			"golang.org/x/text/cases"),
		Entry("the filter of responses, of the MCP server", "adapters/mcp/gateway/filter/writer.go", "adapters/mcp",
			"domain/access", sdk+"mcp"),
		Entry("the key ring, of what it seals", "domain/seal/key_ring.go", "domain/oauth", "net/http", "encoding/json",
			"crypto/rand"),
		Entry("a use case, of HTTP, JSON or adapters", "application/refresh.go", "net/http", "encoding/json", echo,
			"adapters/http", "gorm.io/gorm"),
		Entry("an adapter, of the MCP SDK", "adapters/http/token.go", sdk+"mcp", sdk+"auth",
			"github.com/segmentio/encoding/json"),
		Entry("the pages, of the MCP SDK", "adapters/http/pages/pages.go", sdk+"mcp"),
		Entry("an adapter, of another adapter", "adapters/http/routes.go", "adapters/mcp", "adapters/persistence",
			"adapters/cimd", "bootstrap"),
		Entry("an adapter, of its parent package", "adapters/mcp/guard.go", "adapters/http",
			"adapters/persistence", "adapters/cimd"),
		Entry("the JSON-RPC reader, of the MCP server", "adapters/mcp/jsonrpc/message.go", "adapters/mcp",
			"adapters/mcp/response", echo),
		Entry("the forwarder, of the MCP server", "adapters/mcp/replica/forwarder.go", "adapters/mcp",
			"adapters/nats", sdk+"mcp", echo),
		Entry("the store, of use cases, HTTP or cgo", "adapters/persistence/store.go", "application", "adapters/cimd",
			echo, "github.com/mattn/go-sqlite3", "features/storespec"),
		Entry("the SQLite package, of the store", "adapters/persistence/sqlite/database.go", "adapters/persistence",
			"adapters/persistence/secretfile", "github.com/mattn/go-sqlite3"),
		Entry("the client directory, of other libraries", "adapters/cimd/directory.go", "application", "adapters/http",
			echo, "golang.org/x/sync/errgroup"),
		Entry("the assertion reader, of HTTP", "adapters/jose/reader.go", "application", "adapters/cimd",
			"adapters/http", echo, "github.com/golang-jwt/jwt/v5"),
		Entry("the certificates, of another ACME library", "adapters/certificates/acme.go",
			"github.com/caddyserver/certmagic", echo, "domain/oauth"),
		Entry("the audit file, of HTTP or libraries", "adapters/audit/file.go", "net/http",
			"gopkg.in/natefinch/lumberjack.v2", "domain/oauth"),
		Entry("the throttle, of HTTP", "adapters/limits/guesses.go", "application", "adapters/http", echo),
		Entry("the doctor, of the code that it examines", "adapters/doctor/flow.go", "domain/oauth", "application",
			"adapters/http", "adapters/cimd", sdk+"auth"),
		Entry("the doctor command, of more than the doctor", "bootstrap/cli/diagnosis/doctor.go", "adapters/mcp",
			"adapters/persistence", "domain/oauth"),
		Entry("the token file, of HTTP", "adapters/verification/tokenfile/file.go", "net/http",
			"adapters/verification/remote", "application"),
		Entry("the remote verifier, of other libraries", "adapters/verification/remote/client.go", "adapters/cimd",
			"application", echo, "golang.org/x/oauth2"),
		Entry("the message bus, of its users", "adapters/nats/bus.go", "adapters/mcp", "application",
			"github.com/nats-io/nats-server/v2/server"),
		Entry("the service, of a NATS server", "bootstrap/service/replicas.go",
			"github.com/nats-io/nats-server/v2/server", "github.com/nats-io/nats.go"),
		Entry("the host's package, of the service", "bootstrap/app.go", "bootstrap/service", "bootstrap/cli",
			"bootstrap/settings", "adapters/nats", "adapters/persistence", "adapters/certificates", "adapters/doctor",
			"adapters/http/telemetry", "adapters/http/admin", "adapters/verification/remote", "github.com/spf13/cobra",
			"go.yaml.in/yaml/v3"),
		Entry("a command, of adapters", "bootstrap/cli/serve.go", "adapters/http", "adapters/nats", "adapters/cimd",
			echo, "features/storespec"),
		Entry("the demo, of adapters", "bootstrap/cli/demo/demo.go", "adapters/persistence", "application",
			"bootstrap"),
		Entry("the trace command, of adapters", "bootstrap/cli/tracing/follow.go", "adapters/persistence",
			"application"),
		Entry("the terminal package, of the commands", "bootstrap/cli/term/terminal.go", "bootstrap/cli",
			"bootstrap/service", "adapters/persistence"),
		Entry("the HTTP server package, of its handlers", "bootstrap/service/httpserver/server.go", "bootstrap/service",
			"domain/oauth", echo),
		Entry("the service, of the test kit", "bootstrap/service/service.go", "bootstrap/pasteporttest"),
		Entry("a benchmark, of the test kit", "bench/server/guarded/guarded.go", "bootstrap/pasteporttest"),
		Entry("the test kit, of more than a host may import", "bootstrap/pasteporttest/site.go", "adapters/http",
			"application", "bootstrap/service", ginkgo[0], echo),
		Entry("the settings, of their users", "bootstrap/settings/read.go", "bootstrap", "adapters/http/pages",
			"application"),
		Entry("the demo site, of Pasteport", "bootstrap/demosite/site.go", "adapters/persistence", "bootstrap",
			"application"),
		Entry("a store command, of a database driver", "bootstrap/cli/store_copy.go", "adapters/persistence/postgres",
			"gorm.io/gorm"),
		Entry("the service, of packages that bootstrap assembles", "bootstrap/service/service.go", "adapters/cimd",
			"adapters/mcp", "adapters/http/pages", "bootstrap/cli"),
		Entry("the admin listener, of what it observes", "adapters/http/admin/ready.go", "application",
			"adapters/persistence", "adapters/http/telemetry"),
		Entry("the product, of its own specs", "bootstrap/app.go", "features/storespec"),
		Entry("the store contract, of the product", "features/storespec/storespec.go", "adapters/persistence",
			"bootstrap", "application"),
		Entry("the conformance runner, of internals", "features/conformance/main.go", "bootstrap",
			"domain/oauth", sdk+"mcp"),
		Entry("the attacks, of internals", "features/attacks/person.go", "bootstrap", "domain/oauth",
			"adapters/limits", sdk+"mcp"),
		Entry("the newcomer run, of internals", "features/newcomer/story.go", "bootstrap", "domain/trace", sdk+"mcp"),
		Entry("the interop site, of more than bootstrap", "features/interop/fixtures/main.go", "application",
			"adapters/http", "adapters/cimd", sdk+"auth"),
		Entry("a benchmarked site, of more than bootstrap", "bench/server/pasteport/main.go", "application",
			"adapters/mcp", "features/storespec"),
		Entry("the load generator, of a measured server", "bench/load/loop.go", "bench/server", "bootstrap",
			"github.com/valyala/fasthttp"),
		Entry("the matrix, of the product", "features/matrix/matrix.go", "bootstrap", "features/storespec",
			"golang.org/x/tools/go/packages"),
		Entry("a feature spec, of internals", "features/refresh_test.go", "domain/oauth", "application",
			"adapters/persistence", "features/storespec", echo, sdk+"jsonrpc", "golang.org/x/oauth2"),
	)

	DescribeTable("reports", func(file source, breach string) {
		Expect(file.breaches()).To(Equal([]string{breach}))
	},
		Entry("a clock in the domain",
			source{file: "domain/oauth/grant.go", imports: []string{"time"}, uses: []string{"time.Now"}},
			"domain/oauth/grant.go uses time.Now"),
		Entry("a second program", source{file: "bootstrap/tool.go", clause: "main"}, "bootstrap/tool.go is a program"),
		Entry("a folder outside the table", source{file: "util/strings.go"},
			"util/strings.go has no place in the table"),
		Entry("an adapter outside the table", source{file: "adapters/redis/store.go"},
			"adapters/redis/store.go has no place in the table"),
	)

	It("accepts a test that uses the contract", func() {
		Expect(source{file: "adapters/persistence/store_test.go",
			imports: []string{"features/storespec", "encoding/json"}}.breaches()).To(BeEmpty())
	})

	It("resolves renamed imports", func() {
		root := GinkgoT().TempDir()
		Expect(os.MkdirAll(filepath.Join(root, "domain", "oauth"), 0o700)).To(Succeed())
		text := "package oauth\n\nimport (\n\tclock \"time\"\n\twire \"" + module +
			"adapters/http\"\n)\n\nvar now, w = clock.Now(), wire.New\n"
		Expect(os.WriteFile(filepath.Join(root, "domain", "oauth", "x.go"), []byte(text), 0o600)).To(Succeed())
		Expect(sources(root)).To(HaveLen(1))
		Expect(sources(root)[0].breaches()).
			To(ConsistOf("domain/oauth/x.go imports adapters/http", "domain/oauth/x.go uses time.Now"))
		Expect(sources(root)[0].comment).To(BeFalse())
	})
})
