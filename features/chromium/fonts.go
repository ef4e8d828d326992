package chromium

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

// Fonts are what a browser has to render text with, whatever the machine has. Chinese, Japanese and
// Korean text is in Noto Sans CJK.
type Fonts struct {
	Folder string // below root
	Sans   string
	Mono   string
}

// The fonts that Linux distributions render sans-serif with. DejaVu Sans is the widest, and the
// first choice of fontconfig.
var (
	DejaVu     = Fonts{"truetype/dejavu", "DejaVu Sans", "DejaVu Sans Mono"}
	Liberation = Fonts{"truetype/liberation", "Liberation Sans", "Liberation Mono"}
	Noto       = Fonts{"truetype/noto", "Noto Sans", "DejaVu Sans Mono"}
)

// Common are the fonts that a page has to fit with.
var Common = []Fonts{DejaVu, Liberation, Noto}

// The folders of fonts of Debian and Ubuntu.
const (
	root = "/usr/share/fonts"
	cjk  = "opentype/noto"
)

// configuration is a file of fontconfig(5).
var configuration = template.Must(template.New("").Parse(`<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  {{range .Folders}}<dir>{{.}}</dir>
  {{end}}<cachedir>{{.Cache}}</cachedir>
  <match>
    <test name="family"><string>monospace</string></test>
    <edit name="family" mode="prepend" binding="strong"><string>{{.Mono}}</string></edit>
  </match>
  <match>
    <edit name="family" mode="append_last"><string>{{.Sans}}</string></edit>
  </match>
</fontconfig>
`))

// configure writes the configuration and the cache of fontconfig into the folder, and returns the
// file for FONTCONFIG_FILE.
func (f Fonts) configure(folder string) (file string, err error) {
	folders := []string{filepath.Join(root, f.Folder), filepath.Join(root, DejaVu.Folder), filepath.Join(root, cjk)}
	for _, fonts := range folders {
		if _, err := os.Stat(fonts); err != nil {
			return "", fmt.Errorf("finding the fonts that .ci/run installs: %w", err)
		}
	}
	file = filepath.Join(folder, "fonts.conf")
	config, err := os.Create(file)
	if err != nil {
		return "", fmt.Errorf("creating the configuration of fontconfig: %w", err)
	}
	values := struct {
		Fonts
		Folders []string
		Cache   string
	}{f, folders, filepath.Join(folder, "cache")}
	return file, errors.Join(configuration.Execute(config, values), config.Close())
}
