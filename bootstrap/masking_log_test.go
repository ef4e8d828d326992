package bootstrap_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
)

var _ = Describe("A log that masks tokens", Label("H8"), func() {
	It("does so in messages, and in attributes of every kind", func() {
		token := "ppa_" + strings.Repeat("x", 80)
		var written bytes.Buffer
		logger := bootstrap.MaskTokens(slog.New(slog.NewTextHandler(&written, nil)))
		Expect(bootstrap.MaskTokens(logger)).To(BeIdenticalTo(logger))
		logger.With("kept", token).WithGroup("group").Error("panic of "+token,
			"text", "/"+token, "error", fmt.Errorf("reading: %w", errors.New("no "+token)),
			slog.Group("inner", "list", []string{token}), "number", 7, "body", json.RawMessage(`"`+token+`"`))
		Expect(written.String()).To(And(Not(ContainSubstring("ppa_")),
			ContainSubstring(`kept="[access token]"`), ContainSubstring(`msg="panic of [access token]"`),
			ContainSubstring(`group.text="/[access token]"`),
			ContainSubstring(`group.error="reading: no [access token]"`),
			ContainSubstring(`group.inner.list="[[access token]]"`), ContainSubstring("group.number=7"),
			ContainSubstring(`group.body="\"[access token]\""`)))
	})
})
