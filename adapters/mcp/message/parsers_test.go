package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

// readers are programs that read a message in each line, and write every value of it with its path:
// a text and a name in hexadecimal UTF-8, a number as the bits of a float64.
var readers = map[string][]string{
	"node": {"-e", `
const hex = (text) => Buffer.from(text.toWellFormed()).toString('hex')
const bits = (number) => { const b = Buffer.alloc(8); b.writeDoubleBE(number); return b.toString('hex') }
const walk = (path, value) => {
  if (typeof value === 'string') return [path + '=s' + hex(value)]
  if (typeof value === 'number') return [path + '=n' + bits(value)]
  if (value === null || typeof value === 'boolean') return [path + '=' + value]
  const below = Object.keys(value).map((key) => walk(path + '/' + hex(key), value[key])).flat()
  return [path + '=' + (Array.isArray(value) ? 'list' : 'object'), ...below]
}
const lines = require('fs').readFileSync(0, 'utf8').split('\n').slice(0, -1)
for (const line of lines) console.log(walk('', JSON.parse(line)).sort().join(' '))`},
	"python3": {"-c", `
import json, struct, sys
def hexadecimal(text):
    return text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace').encode().hex()
def walk(path, value):
    if isinstance(value, str): return [path + '=s' + hexadecimal(value)]
    if isinstance(value, float): return [path + '=n' + struct.pack('>d', value).hex()]
    if value is None: return [path + '=null']
    if isinstance(value, bool): return [path + '=' + str(value).lower()]
    if isinstance(value, list):
        kind, below = 'list', ((str(i), one) for i, one in enumerate(value))
    else:
        kind, below = 'object', value.items()
    found = [path + '=' + kind]
    for name, one in below: found += walk(path + '/' + hexadecimal(name), one)
    return found
for line in sys.stdin.buffer.read().split(b'\n')[:-1]:
    print(' '.join(sorted(walk('', json.loads(line, parse_int=float)))))`},
}

// inGo is what a program of readers writes for one message.
func inGo(text []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var message any
	Expect(decoder.Decode(&message)).To(Succeed())
	found := walk("", message)
	slices.Sort(found)
	return strings.Join(found, " ")
}

func walk(path string, value any) []string {
	switch v := value.(type) {
	case string:
		return []string{fmt.Sprintf("%s=s%x", path, v)}
	case json.Number:
		number, _ := strconv.ParseFloat(v.String(), 64) // beyond the range, it is infinite
		return []string{fmt.Sprintf("%s=n%016x", path, math.Float64bits(number))}
	case []any:
		found := []string{path + "=list"}
		for i, one := range v {
			found = append(found, walk(fmt.Sprintf("%s/%x", path, strconv.Itoa(i)), one)...)
		}
		return found
	case map[string]any:
		found := []string{path + "=object"}
		for name, one := range v {
			found = append(found, walk(fmt.Sprintf("%s/%x", path, name), one)...)
		}
		return found
	case nil:
		return []string{path + "=null"}
	}
	return []string{fmt.Sprintf("%s=%v", path, value)}
}

// crafted are messages that parsers read differently, or might.
var crafted = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"x":2}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":{"y":1,"\u0079":2}}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"\ud83d":1,"\ud83e":2}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"\ud83d"}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"__proto__":{"name":"b"}}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","__proto__":{"name":"b"}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"1":1,"0":2,"":3}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1e400,"y":-0.0}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":9007199254740993}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":01}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":NaN}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":Infinity}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a\u0000b","arguments":{"\u0000":"\u0000"}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"` + "\u2028\ufeff" + `"}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"` + "\xed\xa0\xbd" + `"}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",},}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"/*,*/}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}{"method":"b"}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":'a'}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"a"}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"b"},"params":{"name":"a"}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"paramſ":{"name":"b"}}`,
	`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`,
	`{"jsonrpc":"2.0","id":1.0,"method":"ping","params":null}`,
	"\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	"\x0b" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
}

var _ = Describe("A message that goes on", Label("U11"), func() {
	It("has one reading in Go, Node and Python", Label("parsers"), func(ctx SpecContext) {
		suite.Needs("parsers")
		bodies := crafted
		for _, corpus := range []string{"FuzzDecode", "FuzzRenumber"} {
			files, err := filepath.Glob(filepath.Join("testdata", "fuzz", corpus, "*"))
			Expect(err).NotTo(HaveOccurred())
			Expect(files).NotTo(BeEmpty())
			for _, file := range files {
				text, err := os.ReadFile(file)
				Expect(err).NotTo(HaveOccurred())
				_, quoted, found := strings.Cut(strings.TrimSpace(string(text)), "\n[]byte(")
				Expect(found).To(BeTrue(), file)
				body, err := strconv.Unquote(strings.TrimSuffix(quoted, ")"))
				Expect(err).NotTo(HaveOccurred())
				bodies = append(bodies, body)
			}
		}

		var sent, expected []string
		for _, body := range bodies {
			b, err := Read(inJSON, []byte(body))
			if err != nil {
				continue
			}
			text := b.Encode()
			Expect(utf8.Valid(text)).To(BeTrue(), "%q", text)
			sent, expected = append(sent, string(text)), append(expected, inGo(text))
		}
		Expect(len(sent)).To(And(BeNumerically(">=", 15), BeNumerically("<", len(bodies)-20)))
		for program, arguments := range readers {
			command := exec.CommandContext(ctx, program, arguments...)
			command.Stdin = strings.NewReader(strings.Join(sent, "\n") + "\n")
			command.Stderr = GinkgoWriter
			output, err := command.Output()
			Expect(err).NotTo(HaveOccurred(), program)
			read := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
			Expect(read).To(HaveLen(len(sent)), program)
			for i := range sent {
				Expect(read[i]).To(Equal(expected[i]), "%s reads %q", program, sent[i])
			}
		}
	})
})
