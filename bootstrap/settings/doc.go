// Package settings reads the configuration: flags, environment variables and one YAML file, in this order of
// precedence, over defaults. A setting has one flat name in three spellings: --access-token-ttl, PASTEPORT_ACCESS_TOKEN_TTL, and
// access-token-ttl: in the file. Help, shell completion, the output of "pasteport config", the JSON schema, the example file and
// the table in docs/settings.md come from the same Table.
//
// To add a setting, give it a field in server.Config and one entry in bootstrap/server/settings.go:
//
//	settings.Duration("access-token-ttl", &c.AccessTokenTTL, "lifetime of an access token, 1m to 24h"),
//
// The value of the field when the Table is made is the default. Then run "go run ./bootstrap/settings/write" for docs/settings.md. The code
// that uses a value checks it: Table.Explain reports an oauth.Mistake about the field AccessTokenTTL as one about access-token-ttl, in the
// spelling that was used. Setting.Fields names the fields when the names differ. Start reading at Table and Setting.
package settings
