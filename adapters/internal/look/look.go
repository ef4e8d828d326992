// Package look has the style that the pages of people and those of the operator share.
package look

import _ "embed" // the style

// Style is the text of a style element.
//
//go:embed style.css
var Style string
