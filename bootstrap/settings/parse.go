package settings

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/pasteport/pasteport/domain/oauth"
)

// parse reads a text into a variable.
func parse(text string, to reflect.Value) (err error) {
	switch target := to.Addr().Interface().(type) {
	case *netip.Prefix:
		*target, err = parseNetwork(text)
	case encoding.TextUnmarshaler:
		err = target.UnmarshalText([]byte(text))
	case *string:
		*target = text
	case *bool:
		switches := map[string]string{"on": "true", "off": "false"}
		*target, err = strconv.ParseBool(cmp.Or(switches[text], text))
	case *int:
		*target, err = strconv.Atoi(text)
	case *uint16:
		var port uint64
		port, err = strconv.ParseUint(text, 10, 16)
		*target = uint16(port)
	case *int64:
		*target, err = parseSize(text)
	case *time.Duration:
		*target, err = parseDuration(text)
	case **url.URL:
		if text != "" {
			*target, err = url.Parse(text)
		}
	default:
		err = fmt.Errorf("a setting has the type %s", to.Type())
	}
	return err
}

// parseNetwork also reads a single address.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err == nil && network.Addr().Is4In6() { // addresses are unmapped, so it would match none
		err = errors.New("an IPv4 network is written as one")
	}
	return network, err
}

func parseSize(text string) (int64, error) {
	size, err := humanize.ParseBytes(text)
	if err == nil && (size == 0 || size > math.MaxInt64) {
		err = errors.New("it is 0 or too large")
	}
	return int64(size), err //nolint:gosec // a size that is too large has an error
}

// formatSize uses the largest binary unit that fits without a remainder.
func formatSize(size int64) string {
	units := []string{"", "KiB", "MiB", "GiB"}
	for size >= 1<<10 && size%(1<<10) == 0 && len(units) > 1 {
		size, units = size>>10, units[1:]
	}
	return strconv.FormatInt(size, 10) + units[0]
}

// parseDuration reads whole days, such as 7d, or the syntax of Go, in which zero means oauth.Off.
func parseDuration(text string) (time.Duration, error) {
	value, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		var number uint64
		number, err = strconv.ParseUint(days, 10, 16)
		value = time.Duration(number) * 24 * time.Hour
	}
	if value == 0 {
		value = oauth.Off
	}
	return value, err
}

// FormatDuration omits zero units: 1h instead of 1h0m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
