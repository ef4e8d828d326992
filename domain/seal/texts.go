package seal

import (
	"errors"
	"strconv"
	"strings"
)

// PackTexts joins texts with length prefixes, because escaping would make the largest request too
// large for its form.
func PackTexts(texts ...string) (packed []byte) {
	for _, text := range texts {
		packed = strconv.AppendInt(packed, int64(len(text)), 10)
		packed = append(packed, ':')
		packed = append(packed, text...)
	}
	return packed
}

// UnpackTexts is the reverse of PackTexts.
func UnpackTexts(packed []byte) (texts []string, err error) {
	for rest := string(packed); rest != ""; {
		length, after, _ := strings.Cut(rest, ":")
		end, err := strconv.Atoi(length)
		if err != nil || end < 0 || end > len(after) {
			return nil, errors.New("it is cut off")
		}
		// Clone, so that a stored text does not keep all of them in memory.
		texts, rest = append(texts, strings.Clone(after[:end])), after[end:]
	}
	return texts, nil
}
