package http

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	wellKnownPath = "/.well-known/"
	// maxWellKnownFile is the size in bytes above which a file is not served.
	maxWellKnownFile = 1 << 20
)

// ownWellKnown are the documents of this server below wellKnownPath. A file with such a name, or
// below one, is never served.
var ownWellKnown = []string{"oauth-authorization-server", "oauth-protected-resource", "openid-configuration"}

// WellKnownFiles serves the regular files of a folder below /.well-known/, such as security.txt. It
// reads a file at each request, and never one outside of the folder, or with a name that begins
// with a dot.
func WellKnownFiles(folder string) echo.HandlerFunc {
	return func(c echo.Context) error {
		name := strings.TrimPrefix(c.Request().URL.Path, wellKnownPath)
		content, modified, err := readWellKnown(folder, name)
		if err != nil {
			return echo.NewHTTPError(http.StatusNotFound) // echo.ErrNotFound is taken for a wrong MCP URL
		}
		kind := "text/plain; charset=utf-8"
		if extension := path.Ext(name); extension != "" {
			kind = cmp.Or(mime.TypeByExtension(extension), "application/octet-stream")
		} else if json.Valid(content) && bytes.ContainsAny(bytes.TrimSpace(content)[:1], "{[") {
			kind = "application/json" // apps do not read apple-app-site-association as anything else
		}
		header := c.Response().Header()
		header.Set("Content-Type", kind)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'; sandbox") // a page has no rights of this origin
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Cache-Control", "public, max-age=300")
		http.ServeContent(c.Response(), c.Request(), "", modified, bytes.NewReader(content))
		return nil
	}
}

func readWellKnown(folder, name string) (content []byte, modified time.Time, err error) {
	if err := checkWellKnownName(name); err != nil {
		return nil, modified, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, modified, err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(name) // before ReadFile, which waits at a pipe
	if err != nil {
		return nil, modified, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxWellKnownFile {
		return nil, modified, fs.ErrInvalid
	}
	content, err = root.ReadFile(name)
	return content, info.ModTime(), err
}

func checkWellKnownName(name string) error {
	segments := strings.Split(name, "/")
	switch {
	case !fs.ValidPath(name), slices.ContainsFunc(segments, func(s string) bool { return strings.HasPrefix(s, ".") }):
		return fs.ErrNotExist
	case slices.Contains(ownWellKnown, segments[0]):
		return fmt.Errorf("%s has the name of a document of this server: rename it", name)
	}
	return nil
}

// CheckWellKnownFiles reports the files of a folder that WellKnownFiles would not serve because of
// their name or length. It ignores those whose name begins with a dot.
func CheckWellKnownFiles(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var mistakes []error
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		switch err := checkWellKnownName(name); {
		case errors.Is(err, fs.ErrNotExist) && entry.IsDir():
			return fs.SkipDir
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			mistakes = append(mistakes, err)
		}
		if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > maxWellKnownFile {
			mistakes = append(mistakes, fmt.Errorf("%s has more than %d bytes: remove it", name, maxWellKnownFile))
		}
		return nil
	})
	return errors.Join(append(mistakes, err)...)
}
